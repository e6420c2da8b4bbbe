"""Queries of other processes, at a held position.

At the newest position a query is planned as any other, with the views it reads brought to that
position. At a past one there are only base tables, without their indexes: views are replaced by
their definitions and DuckDB computes the rest.
"""

from __future__ import annotations

import pyarrow as pa

from belvedere.codec.arrow import SQL_TYPE_KEY, arrow_type
from belvedere.errors import InvalidInput
from belvedere.execution.choose import Choice, Tier, compile_for
from belvedere.execution.run import Rows
from belvedere.interfaces.arrow import table_of_rows
from belvedere.interfaces.verbs.leases import Lease
from belvedere.interfaces.verbs.relations import Named, quoted
from belvedere.interfaces.verbs.serving import Arguments, Peer, Stream
from belvedere.plan.fields import Fields
from belvedere.session import front, views
from belvedere.session.session import Session
from belvedere.sql.statements import DataPlan
from belvedere.txn.border import Reader
from belvedere.types import Kind

VIEW_BATCH_ROWS = 20_000


def schema_of(peer: Peer, text: str) -> pa.Schema:
    return schema_of_fields(_bound(Session(peer.serving.shared), text).plan.fields)


def schema_of_fields(fields: Fields) -> pa.Schema:
    return pa.schema(
        [
            pa.field(
                field.name,
                pa.utf8() if field.type.kind is Kind.UNKNOWN else arrow_type(field.type),
                metadata={SQL_TYPE_KEY: str(field.type).encode()},
            )
            for field in fields
        ]
    )


def run(peer: Peer, held: Lease, text: str) -> pa.Table:
    """The rows of a SELECT, in the types of `schema_of`."""
    session = Session(peer.serving.shared)
    fields, rows, reader = (
        _planned(session, text, held)
        if held.transaction is not None
        else _past(session, text, held)
    )
    found = rows(session.new_run(reader, ()))
    table = getattr(found, "table", None)
    schema = schema_of_fields(fields)
    if table is None:
        table = table_of_rows(fields, list(found))
    return pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(table.columns, schema)], schema=schema
    )


def _planned(session: Session, text: str, held: Lease) -> tuple[Fields, Rows, Reader]:
    transaction = held.transaction
    assert transaction is not None
    data = _bound(session, text)
    entry = session.prepare(data, text)
    return data.plan.fields, entry.rows, views.fresh_reader(session, transaction, entry.deferred)


def _past(session: Session, text: str, held: Lease) -> tuple[Fields, Rows, Reader]:
    catalog = held.reader.catalog
    plan = views.written(catalog, text)
    choice = Choice(Tier.DUCKDB, "a past position", 0)
    return plan.fields, compile_for(catalog, plan, choice, session.shared.engine), held.reader


def _bound(session: Session, text: str) -> DataPlan:
    found = front.parse(text)
    if len(found) != 1:
        raise InvalidInput("one query is wanted", sqlstate="42601", found=len(found))
    statement, _ = front.bind(session, found[0], ())
    if not isinstance(statement, DataPlan) or statement.changes:
        raise InvalidInput("not a query", sqlstate="42601", hint="only SELECT gives rows here")
    return statement


def view_rows(peer: Peer, arguments: Arguments, found: Named) -> Stream:
    """A view is read as a query of it would."""
    catalog = peer.database.catalog
    schema = next(s.name for s in catalog.schemas if s.id == found.item.schema)
    columns = ", ".join(quoted(name) for name in found.names)
    text = f"SELECT {columns} FROM {quoted(schema, found.item.name)}"
    with peer.serving.leases.using(arguments.text("lease"), arguments.number("position")) as held:
        table = run(peer, held, text)
    return Stream(table.schema, table.to_batches(max_chunksize=VIEW_BATCH_ROWS))
