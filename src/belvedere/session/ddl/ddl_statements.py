"""DDL: definition statements as changes of the catalog.

A change becomes part of the open transaction: the transaction sees it at once and a rollback undoes
it. An index or view that has to be filled is filled by the commit; outside of BEGIN, where nothing
was changed before, it is a transaction of its own and filled while others write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from belvedere.catalog import definitions as wanted
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.foreign_key_graph import child_foreign_keys
from belvedere.catalog.model import (
    ForeignTable,
    Index,
    ObjectState,
    PlainView,
    Sequence,
    Table,
    View,
    ViewKind,
)
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.catalog.rights.ownership import assign_owner
from belvedere.errors import InvalidInput, Unsupported
from belvedere.execution.python.compile import compile_plan
from belvedere.session.context.notices import (
    add_notice_unless_silenced,
    build_cascade_notices,
    build_skip_notices,
)
from belvedere.session.context.result import Result
from belvedere.session.ddl import alter_rewrite
from belvedere.session.ddl.alter import (
    apply_alter_statement,
    apply_table_action,
    build_column_definition,
)
from belvedere.session.ddl.comments import set_comment
from belvedere.session.ddl.foreign_tables import (
    create_foreign_table,
    create_server,
    drop_foreign_table,
    drop_servers,
)
from belvedere.session.ddl.plain_views import (
    create_or_replace_plain_view,
    refuse_or_drop_invalid_views,
)
from belvedere.session.ddl.rights_changes import try_make_rights_change
from belvedere.session.ddl.schemas import create_schema, drop_schema
from belvedere.session.ddl.sequences import alter_sequence, create_sequence
from belvedere.session.materialized import replace, table_index_views, verify, view_indexes
from belvedere.sql import definitions as d
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.transaction import Transaction

if TYPE_CHECKING:
    from belvedere.session.session import Session

PUBLIC = "public"
_CLASSES: dict[str, type] = {
    "table": Table,
    "index": Index,
    "sequence": Sequence,
    "view": PlainView,
    "foreign table": ForeignTable,
    "materialized view": View,
}


def run_ddl_statement(session: Session, statement: Any) -> Result:
    if not (isinstance(statement, d.MaintainView) and statement.verb == "verify"):
        session.transactions.require_writable("change the schema")
    for notice in build_skip_notices(session.catalog, statement):
        add_notice_unless_silenced(session, notice)
    result = _dispatch_ddl_statement(session, statement)
    session.transactions.advance_position(session.host.position)
    return result


def _dispatch_ddl_statement(session: Session, statement: Any) -> Result:
    about_rights = try_make_rights_change(session, statement, _drop_catalog_object)
    if about_rights is not None:
        return _change_catalog(session, *about_rights)
    match statement:
        case d.CreateTable():
            return _create_owned_object(
                session, "CREATE TABLE", lambda edit: create_table(edit, statement)
            )
        case d.CreateIndex() if view := view_indexes.find_indexed_view(session.catalog, statement):
            return view_indexes.create_view_index(session, statement, view)
        case d.CreateIndex() if table_index_views.asks_for_index_view(statement):
            return table_index_views.create_table_index_as_view(session, statement)
        case d.CreateIndex():
            return _change_catalog(
                session, "CREATE INDEX", lambda edit: create_index(edit, statement)
            )
        case d.CreateSequence():
            return _create_owned_object(
                session, "CREATE SEQUENCE", lambda edit: create_sequence(edit, statement)
            )
        case d.CreateSchema():
            return _create_owned_object(
                session, "CREATE SCHEMA", lambda edit: create_schema(edit, statement)
            )
        case d.CreateServer() | d.DropServer() | d.CreateForeignTable():
            return _change_foreign_objects(session, statement)
        case d.CreateView():
            return _create_owned_object(
                session, "CREATE VIEW", lambda edit: create_or_replace_plain_view(edit, statement)
            )
        case d.CreateMaterializedView():
            return replace.create_or_replace_view(session, statement)
        case d.MaintainView():
            return verify.run_refresh_verify_or_repair(session, statement)
        case d.Alter() if replace.alter_needs_view_rebuild(session, statement):
            return replace.switch_maintenance_by_rebuild(session, statement)
        case d.Alter() if alter_rewrite.needs_transaction(session, statement):
            return alter_rewrite.run_alter_in_transaction(session, statement, apply_table_action)
        case d.Alter():
            return _change_catalog(
                session, "ALTER", lambda edit: apply_alter_statement(session, edit, statement)
            )
        case d.AlterSequence():
            return _change_catalog(
                session, "ALTER SEQUENCE", lambda edit: alter_sequence(session, edit, statement)
            )
        case d.Comment():
            return _change_catalog(session, "COMMENT", lambda edit: set_comment(edit, statement))
        case d.Drop():
            return _drop_with_notices(session, statement)
        case d.Truncate():
            return _truncate_tables(session, statement)
        case d.CreateTableAs():
            return _create_table_as(session, statement)
        case _:
            raise Unsupported("statement", kind=type(statement).__name__)


def _create_owned_object(
    session: Session, tag: str, change: Callable[[CatalogEdit], None]
) -> Result:
    """Apply a catalog change; what it makes belongs to the session's role."""

    def make_and_own(edit: CatalogEdit) -> None:
        change(edit)
        assign_owner(edit, session.identity.role)

    return _change_catalog(session, tag, make_and_own)


def _change_catalog(session: Session, tag: str, change: Callable[[CatalogEdit], None]) -> Result:
    """Apply a catalog change in the open transaction, or in one of its own."""
    state = session.transactions
    if state.open is None and session.autocommit:
        session.host.change_schema(change)
        return Result(tag)
    if state.open is None:
        session.begin_implicit_transaction().begin_first_statement()
    assert state.open is not None
    edit = CatalogEdit(state.open.catalog)
    try:
        change(edit)
        if not state.has_transaction_to_keep and _needs_index_backfill(edit, session.host.catalog):
            state.end_transaction_that_only_read()
            session.host.change_schema(change)
        else:
            state.apply_catalog_edit(edit)
    except BaseException:
        state.fail()
        raise
    return Result(tag)


def _needs_index_backfill(edit: CatalogEdit, published: Catalog) -> bool:
    """Whether an index must be backfilled from existing rows."""
    return any(
        isinstance(item, Index)
        and item.state is ObjectState.BUILDING
        and item.table in published.objects
        for item in edit.changed_objects().values()
    )


# -- create ----------------------------------------------------------------------------------------


def create_table(edit: CatalogEdit, statement: d.CreateTable) -> None:
    schema = statement.name.schema or PUBLIC
    if (
        statement.if_not_exists
        and edit.catalog.find_relation(statement.name.name, schema) is not None
    ):
        return
    options = dict(statement.options)
    primary = _find_primary_key_clause(statement.constraints)
    edit.create_table(
        wanted.TableDefinition(
            name=statement.name.name,
            columns=tuple(build_column_definition(one) for one in statement.columns),
            primary_key=() if primary is None else primary.columns,
            primary_key_name=None if primary is None else primary.name,
            schema=schema,
            uniques=tuple(
                build_unique_definition(c)
                for c in statement.constraints
                if isinstance(c, d.UniqueClause)
            ),
            checks=tuple(_build_check_definitions(statement)),
            foreign_keys=tuple(
                build_foreign_key_definition(c)
                for c in statement.constraints
                if isinstance(c, d.ForeignKeyClause)
            ),
            root=options.get("root"),
            partitions=int(options.get("partitions", "1")),
            hashed=options.get("keys", "ordered") == "hashed",
        )
    )


def _find_primary_key_clause(constraints: tuple[d.Constraint, ...]) -> d.PrimaryKeyClause | None:
    found = [c for c in constraints if isinstance(c, d.PrimaryKeyClause)]
    if len(found) > 1:
        raise InvalidInput("multiple primary keys are not allowed", sqlstate="42P16")
    return found[0] if found else None


def build_unique_definition(one: d.UniqueClause) -> wanted.UniqueDefinition:
    if one.include:
        raise Unsupported("UNIQUE with INCLUDE", hint="use CREATE UNIQUE INDEX .. INCLUDE")
    return wanted.UniqueDefinition(one.columns, one.name, one.nulls_distinct)


def _build_check_definitions(statement: d.CreateTable) -> list[wanted.CheckDefinition]:
    found = []
    taken: set[str] = {c.name for c in statement.constraints if c.name is not None}
    for constraint in statement.constraints:
        if isinstance(constraint, d.CheckClause):
            name = constraint.name or generate_check_name(statement.name.name, constraint, taken)
            taken.add(name)
            found.append(wanted.CheckDefinition(constraint.expression, name))
    return found


def generate_check_name(table: str, constraint: d.CheckClause, taken: set[str]) -> str:
    """PostgreSQL's name: table, the column if it is just one, and what it is."""
    only = f"_{constraint.columns[0]}" if len(constraint.columns) == 1 else ""
    name, number = f"{table}{only}_check", 0
    while name in taken:
        number += 1
        name = f"{table}{only}_check{number}"
    return name


def build_foreign_key_definition(one: d.ForeignKeyClause) -> wanted.ForeignKeyDefinition:
    return wanted.ForeignKeyDefinition(
        one.columns,
        one.parent.name,
        one.parent_columns,
        one.parent.schema or PUBLIC,
        one.name,
        one.on_delete,
        one.on_update,
        one.enforced,
        one.deferrable,
        one.initially_deferred,
    )


def create_index(edit: CatalogEdit, statement: d.CreateIndex) -> None:
    schema = statement.table.schema or PUBLIC
    if (
        statement.if_not_exists
        and statement.name is not None
        and edit.catalog.find_relation(statement.name, schema) is not None
    ):
        return
    edit.create_index(
        wanted.IndexDefinition(
            statement.table.name,
            tuple(
                wanted.KeyPartDefinition(
                    part.column, part.expression, part.type, part.descending, part.nulls_first
                )
                for part in statement.parts
            ),
            name=statement.name,
            schema=schema,
            include=statement.include,
            unique=statement.unique,
            nulls_distinct=statement.nulls_distinct,
            where=statement.where,
        )
    )


# -- drop ------------------------------------------------------------------------------------------


def _drop_with_notices(session: Session, statement: d.Drop) -> Result:
    tag, before = f"DROP {statement.kind.upper()}", session.catalog
    result = _change_catalog(session, tag, lambda edit: drop_objects(edit, statement))
    for notice in build_cascade_notices(before, session.catalog, statement):
        add_notice_unless_silenced(session, notice)
    return result


def drop_objects(edit: CatalogEdit, statement: d.Drop) -> None:
    before = edit.catalog
    for name in statement.names:
        if statement.kind == "schema":
            drop_schema(
                edit,
                name.name,
                if_exists=statement.if_exists,
                cascade=statement.cascade,
                drop=_drop_catalog_object,
            )
            continue
        kind = _CLASSES[statement.kind]
        schema = name.schema or PUBLIC
        found = edit.catalog.find_relation(name.name, schema)
        if found is None and statement.if_exists:
            continue
        is_index = isinstance(found, View) and found.kind is ViewKind.INDEX
        if not isinstance(found, kind) and not (statement.kind == "index" and is_index):
            found = edit.catalog.require_relation(kind, name.name, schema)
        _require_not_auxiliary(edit.catalog, found)
        _drop_catalog_object(edit, found, statement.cascade)
    refuse_or_drop_invalid_views(before, edit, cascade=statement.cascade)


def _change_foreign_objects(
    session: Session, statement: d.CreateServer | d.DropServer | d.CreateForeignTable
) -> Result:
    match statement:
        case d.CreateServer():
            return _create_owned_object(
                session, "CREATE SERVER", lambda edit: create_server(edit, statement)
            )
        case d.CreateForeignTable():
            return _create_owned_object(
                session, "CREATE FOREIGN TABLE", lambda edit: create_foreign_table(edit, statement)
            )
        case d.DropServer():
            return _change_catalog(
                session, "DROP SERVER", lambda edit: _drop_servers_and_views(edit, statement)
            )


def _drop_servers_and_views(edit: CatalogEdit, statement: d.DropServer) -> None:
    before = edit.catalog
    drop_servers(edit, statement)
    refuse_or_drop_invalid_views(before, edit, cascade=statement.cascade)


def _require_not_auxiliary(catalog: Catalog, item: Any) -> None:
    """2BP01 for an index or auxiliary view that was made for views: it goes with the last."""
    users = [view for view in catalog.views if item.id in view.supporting_objects]
    if users:
        raise InvalidInput(
            "it is kept for other views",
            sqlstate="2BP01",
            detail=", ".join(view.noun_and_name for view in users),
            hint="it goes with the last of them",
            name=item.name,
        )


def _drop_catalog_object(edit: CatalogEdit, found: Any, cascade: bool) -> None:
    match found:
        case Table():
            edit.drop_table(found.id, cascade=cascade)
        case Sequence():
            edit.drop_sequence(found.id)
        case PlainView():
            edit.drop_plain_view(found.id)
        case ForeignTable():
            drop_foreign_table(edit, found, cascade=cascade)
        case Index():
            if found.constraint:
                raise InvalidInput(
                    "index belongs to a constraint",
                    sqlstate="2BP01",
                    hint="drop the constraint",
                    name=found.name,
                )
            edit.drop_index(found.id)
        case View():
            view_indexes.drop_view_indexes(edit, found)
            edit.drop_view(found.id, cascade=cascade)
        case _:
            raise Unsupported("DROP of this kind", kind=type(found).__name__)


# -- statements that also touch rows ---------------------------------------------------------------


def _truncate_tables(session: Session, statement: d.Truncate) -> Result:
    """Delete row by row: every change is logged, so that views and log readers stay correct."""
    catalog = session.catalog
    for name in statement.names:
        if isinstance(catalog.find_relation(name.name, name.schema or PUBLIC), ForeignTable):
            raise Unsupported("TRUNCATE of a foreign table", table=name.name)
    tables = [
        catalog.require_relation(Table, name.name, name.schema or PUBLIC)
        for name in statement.names
    ]
    tables = _include_referencing_tables(catalog, tables, statement.cascade)

    def delete_all_rows(transaction: Transaction) -> Result:
        for table in tables:
            compiled = compiled_table(transaction.catalog, table.id)
            found = transaction.scan_values(compiled.start, compiled.end)
            for number, value in enumerate([value for values in found for value in values]):
                if not number % alter_rewrite.CHECK_ROWS:
                    session.interrupt.check()
                table_rows.delete_row(transaction, compiled, compiled.decode(value), value)
        return Result("TRUNCATE TABLE")

    result = session.run_in_transaction(True, delete_all_rows)
    if statement.restart_identity:
        for table in tables:
            for sequence in _find_owned_sequences(catalog, table):
                session.host.sequences.restart_after(sequence, sequence.start - sequence.increment)
    return result


def _include_referencing_tables(
    catalog: Catalog, tables: list[Table], cascade: bool
) -> list[Table]:
    """The tables and, with CASCADE, all that reference them; 0A000 without it."""
    found = {table.id: table for table in tables}
    waiting = list(tables)
    while waiting:
        parent = waiting.pop()
        for child, key in child_foreign_keys(catalog, parent.id):
            if child.id in found:
                continue
            if not cascade:
                raise InvalidInput(
                    "cannot truncate a table referenced by a foreign key",
                    sqlstate="0A000",
                    hint="truncate both, or use CASCADE",
                    constraint=key.name,
                    table=child.name,
                )
            found[child.id] = child
            waiting.append(child)
    return list(found.values())


def _find_owned_sequences(catalog: Catalog, table: Table) -> list[Sequence]:
    ids = [c.sequence for c in table.columns if c.sequence is not None and not c.dropped]
    found = [catalog.get(id_) for id_ in ids]
    return [item for item in found if isinstance(item, Sequence)]


def _create_table_as(session: Session, statement: d.CreateTableAs) -> Result:
    schema = statement.name.schema or PUBLIC
    if (
        statement.if_not_exists
        and session.catalog.find_relation(statement.name.name, schema) is not None
    ):
        return Result("CREATE TABLE AS", affected=0)
    made = d.CreateTable(statement.name, statement.columns, (), statement.options)

    def create_table_with_rows(transaction: Transaction) -> Result:
        edit = CatalogEdit(transaction.catalog)
        create_table(edit, made)
        assign_owner(edit, session.identity.role)
        session.transactions.apply_catalog_edit(edit)
        if not statement.with_data:
            return Result("CREATE TABLE AS", affected=0)
        return _insert_query_rows(session, transaction, statement)

    return session.run_in_transaction(True, create_table_with_rows)


def _insert_query_rows(
    session: Session, transaction: Transaction, statement: d.CreateTableAs
) -> Result:
    schema = statement.name.schema or PUBLIC
    table = transaction.catalog.require_relation(Table, statement.name.name, schema)
    compiled = compiled_table(transaction.catalog, table.id)
    plan = session.expand_views_and_optimize(statement.plan)
    run = session.make_run_context(transaction, ())
    held = run.memory.hold_rows(compile_plan(transaction.catalog, plan)(run))
    count = 0
    for row in session.interrupt.check_rows(held):
        table_rows.insert_row(transaction, compiled, (*row, session.services.row_id(table.id)))
        count += 1
    return Result("CREATE TABLE AS", affected=count)
