"""Existing rows as DDL sees them: default values; checks of NOT NULL, CHECK and foreign keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CatalogColumn, Table
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.errors import InvalidInput
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.statements.dml import row_narrower
from belvedere.plan import expressions as e
from belvedere.plan.functions import Volatility
from belvedere.session.statement import bind
from belvedere.sql import definitions as d
from belvedere.txn.contracts import Reader
from belvedere.types import Row

if TYPE_CHECKING:
    from belvedere.session.session import Session


def get_open_or_published_reader(session: Session) -> Reader:
    transaction = session.transactions.open
    return session.shared.get_published_reader() if transaction is None else transaction


def scan_table_rows(
    session: Session, table: Table, catalog: Catalog | None = None
) -> Iterator[Row]:
    """The table's rows, read by the reader's catalog unless another one is given. The commit of an
    open transaction fails with Retry when another one changes some of them, or adds some."""
    reader = get_open_or_published_reader(session)
    if table.id not in reader.catalog.objects:
        return
    compiled = compiled_table(catalog or reader.catalog, table.id)
    if session.transactions.open is not None and not session.host.row_atomic:
        session.transactions.open.require_stable(compiled.start, compiled.end)
    for values in reader.scan_values(compiled.start, compiled.end):
        session.interrupt.check()
        yield from map(compiled.decode, values)


def table_has_rows(session: Session, table: Table) -> bool:
    return next(scan_table_rows(session, table), None) is not None


def has_null_in_column(
    session: Session, catalog: Catalog, table: Table, column: CatalogColumn
) -> bool:
    return any(row[column.slot] is None for row in scan_table_rows(session, table, catalog))


def evaluate_column_default(session: Session, column: d.ColumnClause) -> Any:
    """The value of the column in existing rows: its default, evaluated once."""
    expression = bind.bind_default_expression(session, column)
    return evaluate_row_expression(session, expression, ())


def has_volatile_default(session: Session, column: d.ColumnClause) -> bool:
    """Whether the column's default has to be evaluated for every row."""
    stack: list[Any] = [bind.bind_default_expression(session, column)]
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


def evaluate_row_expression(session: Session, expression: e.Expression, row: Row) -> Any:
    catalog = session.catalog
    context = CompileContext(catalog, lambda node: compile_plan(catalog, node))
    return context.value_of(expression)(
        session.make_run_context(get_open_or_published_reader(session), ())
    )(row)


def require_check_holds(
    session: Session, catalog: Catalog, table: Table, name: str, text: str
) -> None:
    """23514 when an existing row, read by the changed catalog, violates a new CHECK."""
    reader = get_open_or_published_reader(session)
    condition = bind.bind_row_expression(catalog, table, text)
    compiled = compiled_table(catalog, table.id)
    narrow = row_narrower(compiled)
    context = CompileContext(catalog, lambda node: compile_plan(catalog, node))
    test = context.value_of(condition)(session.make_run_context(reader, ()))
    for row in scan_table_rows(session, table, catalog):
        if test(narrow(row)) is False:
            raise InvalidInput(
                "check constraint is violated by some row",
                sqlstate="23514",
                constraint=name,
                table=table.name,
            )


def require_parents_of_rows(
    session: Session, catalog: Catalog, table: Table, wanted: d.ForeignKeyClause
) -> None:
    """23503 when an existing row, read by the changed catalog, has no parent."""
    parent = catalog.require_relation(Table, wanted.parent.name, wanted.parent.schema or "public")
    names = {column.name: column.slot for column in table.columns if not column.dropped}
    slots = [names[name] for name in wanted.columns if name in names]
    by_name = {column.name: column.slot for column in parent.columns if not column.dropped}
    referenced = [by_name[name] for name in wanted.parent_columns if name in by_name]
    parents = {
        tuple([row[slot] for slot in referenced or parent.primary_key])
        for row in scan_table_rows(session, parent, catalog)
    }
    for row in scan_table_rows(session, table, catalog):
        values = tuple([row[slot] for slot in slots])
        if None not in values and values not in parents:
            raise InvalidInput(
                "foreign key constraint violated",
                sqlstate="23503",
                detail=f"({', '.join(wanted.columns)}) = ({', '.join(map(str, values))})",
                table=table.name,
            )
