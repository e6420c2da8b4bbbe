"""Verbs that run SQL text in a session of the peer's own."""

from __future__ import annotations

from belvedere.catalog.model import TypeName
from belvedere.interfaces.arrow import table_of_rows
from belvedere.interfaces.verbs.serving import Arguments, Peer, Stream, Verb


def execute(peer: Peer, arguments: Arguments) -> object:
    """Run the statements of a text; the answer is the last one's. A transaction that it begins
    lasts until the peer ends it or hangs up."""
    session = peer.session
    parameters = arguments.items("parameters") if arguments.has("parameters") else []
    result = session.execute(
        arguments.text("sql"), parameters, arguments.optional_text("freshness")
    )
    value = {
        "tag": result.tag,
        "affected": result.affected,
        "position": max(session.transactions.position, 0),
        "fields": None,
    }
    if result.fields is None:
        return value
    result.materialize()
    value["fields"] = [[field.name, *_encoded(TypeName.of(field.type))] for field in result.fields]
    table = table_of_rows(result.fields, result.rows)
    return Stream(table.schema, table.to_batches(), value)


def _encoded(name: TypeName) -> list[str | int | None]:
    return [name.kind, name.length, name.precision, name.scale]


VERBS: dict[str, Verb] = {"execute": execute}
