"""Existing rows as DDL sees them: default values; checks of NOT NULL, CHECK and foreign keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Column, Table
from belvedere.catalog.relation import compiled_table
from belvedere.errors import InvalidInput
from belvedere.execution.direct.changes import narrower
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.context import Context
from belvedere.plan import expressions as e
from belvedere.plan.functions import Volatility
from belvedere.session import front
from belvedere.sql import definitions as d
from belvedere.txn.border import Reader
from belvedere.types import Row

if TYPE_CHECKING:
    from belvedere.session.session import Session


def reader_of(session: Session) -> Reader:
    transaction = session.transactions.open
    return session.shared.newest_reader() if transaction is None else transaction


def stored_rows(session: Session, table: Table) -> Iterator[Row]:
    reader = reader_of(session)
    if table.id not in reader.catalog.objects:
        return
    compiled = compiled_table(reader.catalog, table.id)
    for values in reader.scan_values(compiled.start, compiled.end):
        yield from map(compiled.decode, values)


def has_rows(session: Session, table: Table) -> bool:
    return next(stored_rows(session, table), None) is not None


def has_null(session: Session, table: Table, column: Column) -> bool:
    return any(row[column.slot] is None for row in stored_rows(session, table))


def default_value(session: Session, column: d.ColumnDefinition) -> Any:
    """The value of the column in existing rows: its default, evaluated once."""
    expression = front.bind_default(session, column.default or "null", column.type)
    return evaluate(session, expression, ())


def is_volatile(session: Session, column: d.ColumnDefinition) -> bool:
    """Whether the column's default has to be evaluated for every row."""
    stack: list[Any] = [front.bind_default(session, column.default or "null", column.type)]
    while stack:
        item = stack.pop()
        match item:
            case e.Call():
                if item.function.volatility is Volatility.VOLATILE:
                    return True
                stack += item.arguments
            case e.Cast():
                stack.append(item.operand)
            case e.SequenceCall():
                return True
            case _:
                pass
    return False


def evaluate(session: Session, expression: e.Expression, row: Row) -> Any:
    catalog = session.catalog
    context = Context(catalog, lambda node: compile_plan(catalog, node))
    return context.value_of(expression)(session.new_run(reader_of(session), ()))(row)


def require_check(session: Session, catalog: Catalog, table: Table, name: str, text: str) -> None:
    """23514 when an existing row, read by the changed catalog, violates a new CHECK."""
    reader = reader_of(session)
    if table.id not in reader.catalog.objects:
        return
    condition = front.bind_over(catalog, table, text)
    compiled = compiled_table(catalog, table.id)
    narrow = narrower(compiled)
    context = Context(catalog, lambda node: compile_plan(catalog, node))
    test = context.value_of(condition)(session.new_run(reader, ()))
    values = chain.from_iterable(reader.scan_values(compiled.start, compiled.end))
    for row in map(compiled.decode, values):
        if test(narrow(row)) is False:
            raise InvalidInput(
                "check constraint is violated by some row",
                sqlstate="23514",
                constraint=name,
                table=table.name,
            )


def require_parents(session: Session, table: Table, wanted: d.ForeignKeyDefinition) -> None:
    """23503 when an existing row has no parent."""
    catalog = session.catalog
    parent = catalog.expect(Table, wanted.parent.name, wanted.parent.schema or "public")
    names = {column.name: column.slot for column in table.columns if not column.dropped}
    slots = [names[name] for name in wanted.columns if name in names]
    by_name = {column.name: column.slot for column in parent.columns if not column.dropped}
    referenced = [by_name[name] for name in wanted.parent_columns if name in by_name]
    parents = {
        tuple([row[slot] for slot in referenced or parent.primary_key])
        for row in stored_rows(session, parent)
    }
    for row in stored_rows(session, table):
        values = tuple([row[slot] for slot in slots])
        if None not in values and values not in parents:
            raise InvalidInput(
                "foreign key constraint violated",
                sqlstate="23503",
                detail=f"({', '.join(wanted.columns)}) = ({', '.join(map(str, values))})",
                table=table.name,
            )
