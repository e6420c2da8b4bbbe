"""CREATE INDEX .. WITH (maintenance, placement): a table's index that is stored as a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.catalog.model import Table
from belvedere.catalog.view_options import IndexColumns, check_options
from belvedere.errors import InvalidInput, Unsupported
from belvedere.session.context.result import Result
from belvedere.session.materialized.create import create_index_stored_as_view
from belvedere.sql import definitions as d
from belvedere.values.quoting import quote_identifier
from belvedere.views.compile.defined_view import NewView

if TYPE_CHECKING:
    from belvedere.session.session import Session

_DEFAULTS = {"maintenance": "immediate", "placement": "remote"}
KNOWN_OPTIONS = (*_DEFAULTS, "max_lag", "refresh_every")


def asks_for_index_view(statement: d.CreateIndex) -> bool:
    """Whether the options ask for maintenance or placement that a plain index does not have."""
    return any(_DEFAULTS.get(name) != value.lower() for name, value in statement.options)


def create_table_index_as_view(session: Session, statement: d.CreateIndex) -> Result:
    schema = statement.table.schema or "public"
    table = session.catalog.require_relation(Table, statement.table.name, schema)
    names = _check_and_list_index_columns(statement, table)
    name = statement.name or f"{table.name}_{'_'.join(names)}_idx"
    if session.catalog.find_relation(name, schema) is not None and statement.if_not_exists:
        return Result("CREATE INDEX")
    options = check_options(dict(statement.options))
    keys = [table.columns[slot].name for slot in table.primary_key]
    columns = list(dict.fromkeys([*names, *keys, *statement.include]))
    slots = {column.name: column.slot for column in table.columns if not column.dropped}
    listed = ", ".join(map(quote_identifier, columns))
    new = NewView(
        name,
        f"SELECT {listed} FROM {quote_identifier(schema, table.name)}",
        options.maintenance,
        schema,
        options,
        index=IndexColumns(tuple(slots[column] for column in columns)),
    )
    create_index_stored_as_view(session, new)
    return Result("CREATE INDEX")


def require_known_index_options(statement: d.CreateIndex) -> None:
    """22023 for an option that no index has."""
    for name, _ in statement.options:
        if name not in KNOWN_OPTIONS:
            raise InvalidInput(
                "unknown option of an index",
                sqlstate="22023",
                hint="known are " + ", ".join(KNOWN_OPTIONS),
                name=name,
            )


def _check_and_list_index_columns(statement: d.CreateIndex, table: Table) -> list[str]:
    require_known_index_options(statement)
    if statement.unique:
        raise Unsupported("a unique index that is not immediate and remote")
    if statement.where is not None or any(part.column is None for part in statement.parts):
        raise Unsupported(
            "a condition or an expression in an index that is not immediate and remote"
        )
    if any(table.columns[slot].hidden for slot in table.primary_key):
        raise Unsupported("a deferred or local index of a table without a primary key")
    known = {column.name for column in table.columns if not column.dropped}
    names = [part.column for part in statement.parts if part.column is not None]
    for name in (*names, *statement.include):
        if name not in known:
            raise InvalidInput("column does not exist", sqlstate="42703", column=name)
    return names
