"""SELECT statements of other processes, at a leased position.

At the newest position a query is planned as usual, and the views it reads are caught up to that
position. At a past position there are only base tables, without their indexes: views are replaced
by their definitions and DuckDB computes the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from belvedere.catalog.catalog import Catalog
from belvedere.codec.arrow.rows_to_arrow import SQL_TYPE_KEY, arrow_type
from belvedere.errors import InvalidInput
from belvedere.execution.choose_tier import ExecutionChoice, Tier, compile_for_tier
from belvedere.execution.run import Rows
from belvedere.interfaces.arrow import table_of_rows
from belvedere.interfaces.verbs.leases import SnapshotLease
from belvedere.interfaces.verbs.peer import Peer
from belvedere.interfaces.verbs.read.relations import NamedRelation
from belvedere.plan.fields import Fields
from belvedere.session.materialized import create
from belvedere.session.session import Session
from belvedere.session.statement import bind
from belvedere.session.statement.parameters import make_assignment_converter
from belvedere.sql.statements import DataPlan
from belvedere.txn.contracts import Reader
from belvedere.types import TEXT, Kind, Row, SqlType
from belvedere.values.quoting import quote_identifier

_CONVERTED_KINDS = frozenset({Kind.UUID, Kind.INTERVAL, Kind.NUMERIC, Kind.TIME})
"""Kinds that DuckDB represents differently: their columns are converted value by value."""


def schema_of(peer: Peer, text: str) -> pa.Schema:
    return schema_of_fields(bind_select(Session(peer.served_store.shared), text).plan.fields)


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


def run_select(
    peer: Peer, held: SnapshotLease, text: str, parameters: Sequence[Any] = ()
) -> pa.Table:
    """The rows of a SELECT, in the types of `schema_of`."""
    session = Session(peer.served_store.shared)
    if held.transaction is None:
        fields, rows, reader, values = _plan_past(session, text, held, parameters)
    else:
        fields, rows, reader, values = _plan_newest(session, text, held, parameters)
    found = rows(session.make_run_context(reader, values))
    return rows_to_table(fields, found)


def rows_to_table(fields: Fields, found: Any) -> pa.Table:
    """Convert rows, or the Arrow table that holds them, to the types of `schema_of_fields`."""
    schema = schema_of_fields(fields)
    table = getattr(found, "table", None)
    if table is None or any(field.type.kind in _CONVERTED_KINDS for field in fields):
        table = table_of_rows(*_with_digits(fields, list(found)))
    columns = [column.cast(field.type) for column, field in zip(table.columns, schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def _with_digits(fields: Fields, rows: list[Row]) -> tuple[Fields, list[Row]]:
    """NUMERIC without bounds as text, each value with its own digits."""
    places = [i for i, f in enumerate(fields) if arrow_type_is_text(f.type)]
    if not places:
        return fields, rows
    shown = tuple(
        field._replace(type=TEXT) if i in places else field for i, field in enumerate(fields)
    )
    return shown, [
        tuple([_numeric_text(v) if i in places else v for i, v in enumerate(row)]) for row in rows
    ]


def arrow_type_is_text(sql_type: SqlType) -> bool:
    return sql_type.kind is Kind.NUMERIC and arrow_type(sql_type) == pa.utf8()


def _numeric_text(value: Any) -> str | None:
    return None if value is None else format(value, "f")


PreparedQuery = tuple[Fields, Rows, Reader, Row]


def _plan_newest(
    session: Session, text: str, held: SnapshotLease, parameters: Sequence[Any]
) -> PreparedQuery:
    transaction = held.transaction
    assert transaction is not None
    data = bind_select(session, text, parameters)
    entry = session.compile_statement(data, text)
    reader: Reader = transaction
    if entry.deferred:
        reader = session.host.views.open_caught_up_reader(transaction, entry.deferred)
    return data.plan.fields, entry.rows, reader, entry.convert(parameters)


def _plan_past(
    session: Session, text: str, held: SnapshotLease, parameters: Sequence[Any]
) -> PreparedQuery:
    if parameters:
        raise InvalidInput("a past position takes no parameters", sqlstate="0A000")
    catalog = held.reader.catalog
    plan = create.bind_query_as_written(catalog, text)
    choice = ExecutionChoice(Tier.DUCKDB, "a past position", 0)
    return (
        plan.fields,
        compile_for_tier(catalog, plan, choice, session.shared.engine),
        held.reader,
        (),
    )


def bind_select(session: Session, text: str, parameters: Sequence[Any] = ()) -> DataPlan:
    found = bind.parse_statements(text)
    if len(found) != 1:
        raise InvalidInput("one query is wanted", sqlstate="42601", found=len(found))
    statement, _ = bind.bind_inferring_parameter_types(session, found[0], parameters)
    if not isinstance(statement, DataPlan) or statement.changes:
        raise InvalidInput("not a query", sqlstate="42601", hint="only SELECT gives rows here")
    return statement


def convert_parameters(data: DataPlan, parameters: Sequence[Any]) -> Row:
    return make_assignment_converter(data.parameters)(parameters)


def select_text(catalog: Catalog, found: NamedRelation, condition: str | None = None) -> str:
    """A SELECT of the relation's requested columns."""
    schema = next(s.name for s in catalog.schemas if s.id == found.item.schema)
    columns = ", ".join(quote_identifier(name) for name in found.column_names)
    text = f"SELECT {columns} FROM {quote_identifier(schema, found.item.name)}"
    return text if condition is None else f"{text} WHERE {condition}"
