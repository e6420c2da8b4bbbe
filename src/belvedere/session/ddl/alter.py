"""ALTER: each action as a change of the catalog; existing rows are checked where needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from belvedere.catalog import definitions as wanted
from belvedere.catalog.comments import rename_constraint_comment
from belvedere.catalog.definition_rules import require_column
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import ForeignTable, PlainView, Sequence, Table, TypeName, View
from belvedere.catalog.table_rewrite import has_primary_key
from belvedere.errors import InvalidInput, Unsupported
from belvedere.session.ddl import column_dependencies, existing_rows
from belvedere.session.ddl.plain_views import refuse_or_drop_invalid_views
from belvedere.session.ddl.rename_in_views import (
    rename_view_column,
    rewrite_dependent_definitions,
)
from belvedere.session.ddl.schemas import move_relation_to_schema, rename_schema
from belvedere.session.ddl.sequences import (
    add_or_drop_identity,
    build_identity_sequence_options,
    build_sequence_definition,
)
from belvedere.session.materialized import create, view_indexes
from belvedere.sql import definitions as d

if TYPE_CHECKING:
    from belvedere.session.session import Session

PUBLIC = "public"


def apply_alter_statement(session: Session, edit: CatalogEdit, statement: d.Alter) -> None:
    before = edit.catalog
    if statement.kind == "schema":
        rename_schema(edit, statement)
        refuse_or_drop_invalid_views(before, edit)
        return
    found = edit.catalog.find_relation(statement.name.name, statement.name.schema or PUBLIC)
    if found is None:
        if statement.if_exists:
            return
        raise InvalidInput("relation does not exist", sqlstate="42P01", name=str(statement.name))
    if isinstance(found, ForeignTable):
        raise Unsupported("ALTER of a foreign table", hint="drop it and create it again")
    if isinstance(found, View) and found.part:
        raise Unsupported("ALTER of an auxiliary view", hint="it is kept for others as it is")
    for action in statement.actions:
        if isinstance(action, d.Rename) and action.what == "table":
            edit.rename_relation(found.id, action.new)
            if isinstance(found, Table | View | PlainView):
                rewrite_dependent_definitions(edit, found)
        elif isinstance(found, View | PlainView) and isinstance(action, d.Rename):
            view = edit.catalog.get(found.id)
            assert action.old is not None
            assert isinstance(view, View | PlainView)
            rename_view_column(edit, view, action.old, action.new)
        elif isinstance(action, d.SetSchema):
            item = edit.catalog.get(found.id)
            assert isinstance(item, Table | Sequence | PlainView | View)
            move_relation_to_schema(edit, item, action.schema)
        elif isinstance(found, Table):
            apply_table_action(session, edit, edit.catalog.table(found.id), action)
        elif isinstance(found, View) and isinstance(action, d.SetOptions | d.ResetOptions):
            create.apply_view_options(session, edit, found, action)
            view_indexes.switch_index_maintenance(session, before, edit, found.id)
        else:
            raise Unsupported(f"ALTER {statement.kind.upper()}", action=type(action).__name__)
    dropped = [one for one in statement.actions if isinstance(one, d.DropColumn)]
    refuse_or_drop_invalid_views(
        before, edit, cascade=any(one.cascade for one in dropped), can_cascade=bool(dropped)
    )


def apply_table_action(
    session: Session, edit: CatalogEdit, table: Table, action: d.AlterAction
) -> None:
    match action:
        case d.AddColumn():
            _add_column_without_rewrite(session, edit, table, action)
        case d.DropColumn():
            _drop_column(edit, table, action)
        case d.SetColumnType():  # one that needs no new rows
            column = require_column(table, action.name)
            wider = msgspec.structs.replace(column, type_name=TypeName.from_type(action.type))
            edit.replace_column(table.id, wider)
        case d.SetColumnDefault():
            column = require_column(table, action.name)
            edit.replace_column(table.id, msgspec.structs.replace(column, default=action.default))
        case d.SetColumnNotNull():
            _set_or_drop_not_null(session, edit, table, action)
        case d.AddConstraint():
            _check_and_add_constraint(session, edit, table, action.constraint)
        case d.DropConstraint():
            _drop_constraint(edit, table, action)
            rename_constraint_comment(edit, table.id, action.name, None)
        case d.Rename():
            _rename_column_or_constraint(edit, table, action)
            if action.what == "constraint":
                rename_constraint_comment(edit, table.id, action.old, action.new)
        case d.SetOptions():
            _set_root_option(edit, table, dict(action.options))
        case d.SetColumnIdentity():
            add_or_drop_identity(edit, table, action)
        case d.DropColumnExpression():
            column = require_column(table, action.name)
            edit.replace_column(table.id, msgspec.structs.replace(column, generated=None))
        case _:
            raise Unsupported("ALTER TABLE action", action=type(action).__name__)


def _add_column_without_rewrite(
    session: Session, edit: CatalogEdit, table: Table, action: d.AddColumn
) -> None:
    column = action.column
    exists = any(c.name == column.name and not c.dropped for c in table.columns)
    if exists and action.if_not_exists:
        return
    missing = None
    if column.default is not None:
        missing = existing_rows.evaluate_column_default(session, column)
    if column.not_null and missing is None and existing_rows.table_has_rows(session, table):
        raise InvalidInput(
            "column contains null values", sqlstate="23502", column=column.name, table=table.name
        )
    edit.add_column(table.id, build_column_definition(column, missing))
    for constraint in action.constraints:
        _check_and_add_constraint(session, edit, edit.catalog.table(table.id), constraint)


def build_column_definition(one: d.ColumnClause, missing: Any = None) -> wanted.ColumnDefinition:
    """What the catalog is told of a column; `missing` is what rows have that are there already."""
    numbers = None
    if one.serial or one.identity is not None:
        options = build_identity_sequence_options(one.sequence, one.type)
        numbers = build_sequence_definition(one.name, PUBLIC, options)
    return wanted.ColumnDefinition(
        one.name,
        one.type,
        not_null=one.not_null,
        default=one.default,
        missing=missing,
        identity=one.identity,
        serial=one.serial,
        generated=one.generated,
        numbers=numbers,
    )


def _drop_column(edit: CatalogEdit, table: Table, action: d.DropColumn) -> None:
    known = any(c.name == action.name and not c.dropped for c in table.columns)
    if not known and action.if_exists:
        return
    column_dependencies.drop_column_with_dependents(
        edit, table, action.name, cascade=action.cascade
    )


def _set_or_drop_not_null(
    session: Session, edit: CatalogEdit, table: Table, action: d.SetColumnNotNull
) -> None:
    column = require_column(table, action.name)
    if action.not_null and existing_rows.has_null_in_column(session, edit.catalog, table, column):
        raise InvalidInput(
            "column contains null values", sqlstate="23502", column=column.name, table=table.name
        )
    if not action.not_null and column.slot in table.primary_key:
        raise InvalidInput("column is in a primary key", sqlstate="42P16", column=column.name)
    edit.replace_column(table.id, msgspec.structs.replace(column, not_null=action.not_null))


def _check_and_add_constraint(
    session: Session, edit: CatalogEdit, table: Table, constraint: d.Constraint
) -> None:
    _require_free_constraint_name(table, constraint.name)
    match constraint:
        case d.CheckClause():
            name = constraint.name or _generate_check_name(table, constraint)
            existing_rows.require_check_holds(
                session, edit.catalog, table, name, constraint.expression
            )
            edit.add_check(table.id, wanted.CheckDefinition(constraint.expression, name))
        case d.UniqueClause():
            edit.add_unique(
                table.id,
                wanted.UniqueDefinition(
                    constraint.columns, constraint.name, constraint.nulls_distinct
                ),
            )
        case d.ForeignKeyClause():
            if existing_rows.table_has_rows(session, table):
                existing_rows.require_parents_of_rows(session, edit.catalog, table, constraint)
            edit.add_foreign_key(
                table.id,
                wanted.ForeignKeyDefinition(
                    constraint.columns,
                    constraint.parent.name,
                    constraint.parent_columns,
                    constraint.parent.schema or PUBLIC,
                    constraint.name,
                    constraint.on_delete,
                    constraint.on_update,
                    constraint.enforced,
                    constraint.deferrable,
                    constraint.initially_deferred,
                ),
            )
        case d.PrimaryKeyClause():
            raise AssertionError("session.ddl.alter_rewrite adds primary keys")


def _require_free_constraint_name(table: Table, name: str | None) -> None:
    taken = {check.name for check in table.checks} | {key.name for key in table.foreign_keys}
    if name is not None and name in taken:
        raise InvalidInput("constraint already exists", sqlstate="42710", name=name)


def _generate_check_name(table: Table, constraint: d.CheckClause) -> str:
    taken = {check.name for check in table.checks}
    only = f"_{constraint.columns[0]}" if len(constraint.columns) == 1 else ""
    name, number = f"{table.name}{only}_check", 0
    while name in taken:
        number += 1
        name = f"{table.name}{only}_check{number}"
    return name


def _drop_constraint(edit: CatalogEdit, table: Table, action: d.DropConstraint) -> None:
    name = action.name
    checks = tuple(check for check in table.checks if check.name != name)
    if len(checks) < len(table.checks):
        edit.put(msgspec.structs.replace(table, checks=checks))
        return
    if any(key.name == name for key in table.foreign_keys):
        edit.drop_foreign_key(table.id, name)
        return
    for index in edit.catalog.table_indexes(table.id):
        if index.name == name and index.constraint:
            edit.drop_index(index.id)
            return
    if not action.if_exists:
        raise InvalidInput("constraint does not exist", sqlstate="42704", name=name)


def _rename_column_or_constraint(edit: CatalogEdit, table: Table, action: d.Rename) -> None:
    if action.what == "column":
        column = require_column(table, action.old)
        if any(c.name == action.new and not c.dropped for c in table.columns):
            raise InvalidInput("column already exists", sqlstate="42701", name=action.new)
        column_dependencies.rename_column_in_expressions(edit, table, column, action.new)
        rewrite_dependent_definitions(edit, table)
        return
    if has_primary_key(table) and action.old == table.primary_key_name:
        edit.put(msgspec.structs.replace(table, primary_key_name=action.new))
        return
    for index in edit.catalog.table_indexes(table.id):
        if index.constraint and index.name == action.old:
            edit.rename_relation(index.id, action.new)
            return
    checks = tuple(
        msgspec.structs.replace(one, name=action.new) if one.name == action.old else one
        for one in table.checks
    )
    keys = tuple(
        msgspec.structs.replace(one, name=action.new) if one.name == action.old else one
        for one in table.foreign_keys
    )
    if checks == table.checks and keys == table.foreign_keys:
        raise InvalidInput("constraint does not exist", sqlstate="42704", name=action.old)
    edit.put(msgspec.structs.replace(table, checks=checks, foreign_keys=keys))


def _set_root_option(edit: CatalogEdit, table: Table, options: dict[str, str]) -> None:
    for name, value in options.items():
        if name != "root":
            raise Unsupported("table option", name=name)
        known = {key.name for key in table.foreign_keys}
        if value != "self" and value not in known:
            raise InvalidInput("no such foreign key", sqlstate="42704", name=value)
        edit.set_root(table.id, value)
