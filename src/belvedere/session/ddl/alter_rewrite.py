"""ALTER TABLE that writes every row: another column type, another key, computed new columns.

Such a statement is one transaction: it changes the catalog and writes the rows, and its commit is
refused when another transaction wrote to the table in the meantime (then it runs again). Another
type or key rebuilds the table (catalog.table_rewrite); updates give a new column its values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from belvedere.catalog.definition_rules import require_column, truncate_name
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import CatalogColumn, Sequence, Table, TypeName
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.catalog.table_rewrite import (
    has_primary_key,
    retype_parts,
    rewrite_table,
    with_primary_key,
    without_primary_key,
)
from belvedere.errors import InvalidInput, Unsupported
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.statements.dml import row_narrower
from belvedere.plan import expressions as e
from belvedere.session.context.result import Result
from belvedere.session.ddl import column_dependencies, existing_rows
from belvedere.session.ddl.plain_views import (
    find_dependent_plain_views,
    refuse_or_drop_invalid_views,
)
from belvedere.session.ddl.rebuild_views import drop_dependent_views, recreate_dropped_views
from belvedere.session.statement import bind
from belvedere.sql import definitions as d
from belvedere.sql.bind.expressions.stored_expressions import live_columns
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.sequences import store_last
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Kind, Row
from belvedere.values.failures import add_column_to_error

if TYPE_CHECKING:
    from belvedere.session.session import Session

PUBLIC = "public"
CHECK_ROWS = 256
"""How many rows are written between two looks whether the statement has to stop."""
_TEXTS = (Kind.VARCHAR, Kind.TEXT)
replace = msgspec.structs.replace

CatalogAction = Callable[["Session", CatalogEdit, Table, d.AlterAction], None]
"""An action that writes no rows."""


def needs_transaction(session: Session, statement: d.Alter) -> bool:
    """Whether some action writes rows, or is refused for one that is there: no other may come
    meanwhile."""
    found = session.catalog.find_relation(statement.name.name, statement.name.schema or PUBLIC)
    return isinstance(found, Table) and any(
        _action_rewrites_rows(session, found, action)
        or (not session.host.row_atomic and _action_checks_rows(action))
        for action in statement.actions
    )


def _action_rewrites_rows(session: Session, table: Table, action: d.AlterAction) -> bool:
    match action:
        case d.SetColumnType():
            known = [one for one in live_columns(table) if one.name == action.name]
            return not (known and _only_widens_text(known[0], action))
        case d.AddConstraint():
            return isinstance(action.constraint, d.PrimaryKeyClause)
        case d.DropConstraint():
            return has_primary_key(table) and action.name == table.primary_key_name
        case d.DropColumn():
            return any(table.columns[slot].name == action.name for slot in table.primary_key)
        case d.AddColumn():
            column = action.column
            known_name = any(one.name == column.name for one in live_columns(table))
            computed = column.serial or column.identity or column.generated
            if known_name or (not computed and column.default is None):
                return False
            return bool(computed) or existing_rows.has_volatile_default(session, column)
        case _:
            return False


def _action_checks_rows(action: d.AlterAction) -> bool:
    match action:
        case d.SetColumnNotNull():
            return action.not_null
        case d.AddConstraint():
            return isinstance(action.constraint, d.CheckClause)
        case d.AddColumn():
            checked = any(isinstance(one, d.CheckClause) for one in action.constraints)
            return checked or (action.column.not_null and action.column.default is None)
        case _:
            return False


def _only_widens_text(column: CatalogColumn, action: d.SetColumnType) -> bool:
    """Whether only a text length grows: varchar and text have the same stored rows and keys."""
    old, new = column.type, action.type
    if action.using is not None or old.kind not in _TEXTS or new.kind not in _TEXTS:
        return False
    return new.length is None or (old.length is not None and old.length <= new.length)


def run_alter_in_transaction(session: Session, statement: d.Alter, plain: CatalogAction) -> Result:
    """Run all actions of the statement in one transaction."""
    return session.run_in_transaction(
        True, lambda txn: _apply_alter_actions(session, txn, statement, plain)
    )


def _apply_alter_actions(
    session: Session, transaction: Transaction, statement: d.Alter, plain: CatalogAction
) -> Result:
    name, schema = statement.name.name, statement.name.schema or PUBLIC
    for action in statement.actions:
        edit = CatalogEdit(transaction.catalog)
        table = edit.catalog.require_relation(Table, name, schema)
        if isinstance(action, d.Rename) and action.what == "table":
            name = action.new
        match action:
            case d.SetColumnType() if _action_rewrites_rows(session, table, action):
                _change_type_and_rewrite(session, transaction, edit, table, action)
            case d.AddConstraint(constraint=d.PrimaryKeyClause() as key):
                _add_primary_key_and_rebuild(session, transaction, edit, table, key)
            case d.DropConstraint() if _action_rewrites_rows(session, table, action):
                _drop_primary_key_and_rebuild(session, transaction, edit, table, action.cascade)
            case d.DropColumn() if _action_rewrites_rows(session, table, action):
                _drop_primary_key_and_rebuild(session, transaction, edit, table, action.cascade)
                _apply_catalog_only_action(
                    session, CatalogEdit(transaction.catalog), plain, (name, schema), action
                )
            case d.AddColumn() if _action_rewrites_rows(session, table, action):
                _add_computed_column(session, transaction, edit, table, action, plain)
            case _:
                _apply_catalog_only_action(session, edit, plain, (name, schema), action)
    return Result("ALTER")


def _apply_catalog_only_action(
    session: Session,
    edit: CatalogEdit,
    plain: CatalogAction,
    name: tuple[str, str],
    action: d.AlterAction,
) -> None:
    before = edit.catalog
    plain(session, edit, edit.catalog.require_relation(Table, *name), action)
    cascade = isinstance(action, d.DropColumn) and action.cascade
    refuse_or_drop_invalid_views(before, edit, cascade=cascade)
    session.transactions.apply_catalog_edit(edit)


# -- rebuilding a table ----------------------------------------------------------------------------


def _rebuild_table_and_copy_rows(
    session: Session,
    transaction: Transaction,
    edit: CatalogEdit,
    table: Table,
    change: Callable[[Row], Row] = lambda row: row,
    retyped: CatalogColumn | None = None,
) -> None:
    """Replace the table with the same id by this one, and copy its rows through `change`, which
    may give a column another type."""
    views = drop_dependent_views(edit, edit.catalog.table(table.id), retyped)
    old = compiled_table(transaction.catalog, table.id)
    transaction.require_stable(old.start, old.end)
    stored = [old.decode(v) for batch in transaction.scan_values(old.start, old.end) for v in batch]
    for mine in transaction.changes:
        if mine.relation == table.id:  # inserted below as rows of the new table
            transaction.write(mine.key, mine.new, mine.old)
    made = rewrite_table(edit, table)
    for index in edit.catalog.table_indexes(made.id):
        edit.put(
            retype_parts(index, column_dependencies.infer_index_expression_types(edit, made, index))
        )
    recreate_dropped_views(session, edit, views)
    session.transactions.apply_catalog_edit(edit)
    new = compiled_table(transaction.catalog, made.id)
    width, keyed = len(new.table.columns), has_primary_key(new.table)
    dropped = [column.slot for column in new.table.columns if column.dropped]
    check = _make_check_constraint_tester(session, transaction, new)
    for number, row in enumerate(stored):
        if not number % CHECK_ROWS:
            session.interrupt.check()
        values = [*change(row), None][:width]
        for slot in dropped:
            values[slot] = None
        if not keyed:
            values[new.table.primary_key[0]] = session.services.row_id(made.id)
        check(tuple(values))
        table_rows.insert_row(transaction, new, tuple(values))


def _make_check_constraint_tester(
    session: Session, transaction: Transaction, table: CompiledTable
) -> Callable[[Row], None]:
    """A function that raises 23514 for a row that violates a CHECK."""
    tests = [
        (one.name, _make_row_evaluator(session, transaction, table, bound))
        for one in table.table.checks
        for bound in (bind.bind_row_expression(transaction.catalog, table.table, one.expression),)
    ]

    def require_checks_hold(row: Row) -> None:
        for name, test in tests:
            if test(row) is False:
                raise InvalidInput(
                    "check constraint is violated by some row",
                    sqlstate="23514",
                    constraint=name,
                    table=table.table.name,
                )

    return require_checks_hold


def _make_row_evaluator(
    session: Session, transaction: Transaction, table: CompiledTable, expression: e.Expression
) -> Callable[[Row], Any]:
    """A function that evaluates the expression over a stored row."""
    catalog = transaction.catalog
    context = CompileContext(catalog, lambda node: compile_plan(catalog, node))
    evaluate = context.value_of(expression)(session.make_run_context(transaction, ()))
    narrow = row_narrower(table)
    return lambda row: evaluate(narrow(row))


# -- the actions -----------------------------------------------------------------------------------


def _change_type_and_rewrite(
    session: Session,
    transaction: Transaction,
    edit: CatalogEdit,
    table: Table,
    action: d.SetColumnType,
) -> None:
    column = require_column(table, action.name)
    _require_unread_column(edit, table, column)
    using = action.using or f'"{column.name.replace(chr(34), chr(34) * 2)}"'
    value = bind.bind_column_value_expression(session.catalog, table, using, action.type)
    evaluate = _make_row_evaluator(
        session, transaction, compiled_table(transaction.catalog, table.id), value
    )

    def convert_value(row: Row) -> Any:
        try:
            return evaluate(row)
        except InvalidInput as error:
            add_column_to_error(error, column.name)
            raise

    changed = replace(column, type_name=TypeName.from_type(action.type))
    _require_default_fits_type(session, changed)
    slot = column.slot
    made = replace(
        table, columns=tuple(changed if one.slot == slot else one for one in table.columns)
    )
    _rebuild_table_and_copy_rows(
        session,
        transaction,
        edit,
        made,
        lambda row: (*row[:slot], convert_value(row), *row[slot + 1 :]),
        column,
    )


def _require_unread_column(edit: CatalogEdit, table: Table, column: CatalogColumn) -> None:
    """Unsupported, as in PostgreSQL, for a column that views or generated columns read."""
    readers = [f"view {one.name}" for one in find_dependent_plain_views(edit, table, column)]
    readers += [
        f"column {one.name}"
        for one in column_dependencies.find_generated_dependents(edit, table, column)
    ]
    if column.generated is not None:
        readers.append("its own generation expression")
    if readers:
        raise Unsupported(
            "another type of a column that is read",
            hint="drop what reads it first",
            column=column.name,
            readers=", ".join(readers),
        )


def _require_default_fits_type(session: Session, column: CatalogColumn) -> None:
    if column.sequence is not None:
        if column.type.kind not in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
            raise InvalidInput(
                "identity column type must be smallint, integer, or bigint",
                sqlstate="22023",
                column=column.name,
            )
    elif column.default is not None:
        bind.bind_default_expression(session, column)


def _add_primary_key_and_rebuild(
    session: Session,
    transaction: Transaction,
    edit: CatalogEdit,
    table: Table,
    key: d.PrimaryKeyClause,
) -> None:
    if has_primary_key(table):
        raise InvalidInput(
            "multiple primary keys are not allowed", sqlstate="42P16", table=table.name
        )
    slots = tuple(require_column(table, name).slot for name in key.columns)
    name = key.name or truncate_name(table.name, "_pkey")
    _rebuild_table_and_copy_rows(session, transaction, edit, with_primary_key(table, slots, name))


def _drop_primary_key_and_rebuild(
    session: Session, transaction: Transaction, edit: CatalogEdit, table: Table, cascade: bool
) -> None:
    users = [
        (other, key)
        for other in edit.catalog.tables
        for key in other.foreign_keys
        if key.parent == table.id and key.parent_index is None
    ]
    if users and not cascade:
        raise InvalidInput(
            "other objects depend on it",
            sqlstate="2BP01",
            detail=", ".join(f"constraint {key.name} on {other.name}" for other, key in users),
            hint="drop them first, or use CASCADE",
            name=table.primary_key_name,
        )
    for other, key in users:
        edit.drop_foreign_key(other.id, key.name)
    _rebuild_table_and_copy_rows(
        session, transaction, edit, without_primary_key(edit.catalog.table(table.id))
    )


def _add_computed_column(
    session: Session,
    transaction: Transaction,
    edit: CatalogEdit,
    table: Table,
    action: d.AddColumn,
    plain: CatalogAction,
) -> None:
    """Add the column as if there were no rows, then write its value into every row."""
    wanted = action.column
    bare = replace(wanted, not_null=False, default=None)
    plain(session, edit, table, replace(action, column=bare, constraints=()))
    made = require_column(edit.catalog.table(table.id), wanted.name)
    not_null = wanted.not_null or made.not_null
    edit.replace_column(table.id, replace(made, default=wanted.default, not_null=not_null))
    session.transactions.apply_catalog_edit(edit)
    compiled = compiled_table(transaction.catalog, table.id)
    value = _make_new_column_evaluator(
        session, transaction, compiled, require_column(compiled.table, wanted.name)
    )
    transaction.require_stable(compiled.start, compiled.end)
    for batch in list(transaction.scan_values(compiled.start, compiled.end)):
        session.interrupt.check()
        for data in batch:
            row = compiled.decode(data)
            filled = (*row[: made.slot], value(row), *row[made.slot + 1 :])
            table_rows.update_row(transaction, compiled, row, filled, data)
    for constraint in action.constraints:
        after = CatalogEdit(transaction.catalog)
        plain(session, after, after.catalog.table(table.id), d.AddConstraint(constraint))
        session.transactions.apply_catalog_edit(after)


def _make_new_column_evaluator(
    session: Session, transaction: Transaction, table: CompiledTable, column: CatalogColumn
) -> Callable[[Row], Any]:
    if column.sequence is not None:
        sequence = transaction.catalog.get(column.sequence)
        assert isinstance(sequence, Sequence)
        return _make_sequence_number_source(transaction, table, sequence)
    if column.generated is not None:
        text = column.generated
        bound = bind.bind_column_value_expression(
            transaction.catalog, table.table, text, column.type
        )
        return _make_row_evaluator(session, transaction, table, bound)
    default = bind.bind_default_expression(session, column)
    return _make_row_evaluator(session, transaction, table, default)


def _make_sequence_number_source(
    transaction: Transaction, table: CompiledTable, sequence: Sequence
) -> Callable[[Row], int]:
    """The first numbers of a new sequence, one per row; its next value follows them."""
    count = sum(len(batch) for batch in transaction.scan_values(table.start, table.end))
    first, step = sequence.start, sequence.increment
    if count:
        store_last(transaction, sequence.id, first + step * (count - 1))
    numbers = iter(range(first, first + step * count, step))
    return lambda _: next(numbers)
