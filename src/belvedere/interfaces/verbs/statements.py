"""Verbs that run SQL text in a session of the peer's own."""

from __future__ import annotations

from belvedere.interfaces.verbs.peer import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.wire import describe_fields, rows_to_batch
from belvedere.session.session import Session

BATCH_ROWS = 20_000


def execute_statements(peer: Peer, arguments: Arguments) -> object:
    """Run the statements of a text; the answer is the last one's. A transaction that it begins
    lasts until the peer ends it or disconnects."""
    session = peer.session
    parameters = arguments.get_list("parameters") if arguments.has("parameters") else []
    result = session.execute(
        arguments.get_text("sql"), parameters, arguments.optional_text("freshness")
    )
    value = {
        "tag": result.tag,
        "affected": result.affected,
        "position": max(session.transactions.position, 0),
        "transaction": _transaction_state(session),
        "fields": None,
        "notices": peer.new_notices(),
    }
    if result.fields is None:
        return value
    result.convert_arrow_to_rows()
    fields, rows = result.fields, result.rows
    starts = range(0, max(len(rows), 1), BATCH_ROWS)
    batches = [rows_to_batch(fields, rows[at : at + BATCH_ROWS]) for at in starts]
    return Stream(batches[0].schema, batches, {**value, "fields": describe_fields(fields)})


def take_notices(peer: Peer, arguments: Arguments) -> list[str]:
    """The notices of a failed statement; an answer carries its own."""
    return peer.new_notices()


def _transaction_state(session: Session) -> str:
    state = session.transactions
    if state.open is None:
        return "none"
    return "failed" if state.failed else "open"


VERBS: dict[str, Verb] = {"execute": execute_statements, "notices": take_notices}
