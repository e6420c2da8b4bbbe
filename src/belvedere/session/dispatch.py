"""Dispatch of utility statements: transactions, settings, prepared statements, EXPLAIN, COPY; every
other one is DDL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from belvedere.catalog.model import AnyObject, Table
from belvedere.errors import InvalidInput, Unsupported
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext
from belvedere.plan import expressions as e
from belvedere.plan.fields import Field
from belvedere.session import cursors, notify
from belvedere.session.context.notices import add_notice_unless_silenced
from belvedere.session.context.result import Result
from belvedere.session.context.settings import (
    ISOLATIONS,
    SETTINGS,
    parse_boolean,
    parse_isolation,
)
from belvedere.session.copy import copy
from belvedere.session.ddl.ddl_statements import run_ddl_statement
from belvedere.session.explain import statement as explain
from belvedere.session.statement import bind
from belvedere.session.statement.immediate_checks import check_constraints_of_changes
from belvedere.session.statement.parameters import make_assignment_converter
from belvedere.sql import statements as s
from belvedere.sql.definitions import QualifiedName
from belvedere.txn.contracts import Isolation, LockRequest
from belvedere.types import TEXT, Kind
from belvedere.values.datetimes import UTC, in_zone

if TYPE_CHECKING:
    from belvedere.session.session import Session

SETTING_FIELDS = (Field("name", TEXT), Field("setting", TEXT), Field("description", TEXT))
Handler = Callable[["Session", Any, Sequence[Any]], Result]


def dispatch_statement(
    session: Session, statement: s.Statement, parameters: Sequence[Any]
) -> Result:
    handler = _HANDLERS.get(type(statement))
    if type(statement) not in _ALLOWED_IN_FAILED:
        session.transactions.require_not_failed()
    if handler is not None:
        return handler(session, statement, parameters)
    return run_ddl_statement(session, statement)


# -- transactions ----------------------------------------------------------------------------------


def _run_begin(session: Session, statement: s.Begin, _: Sequence[Any]) -> Result:
    state = session.transactions
    if state.open is not None and state.explicit:
        return Result("BEGIN")  # PostgreSQL warns and continues
    if state.open is None:
        isolation = ISOLATIONS.get(statement.modes.isolation or "")
        session.begin_explicit_transaction(isolation)
    state.explicit = True
    if statement.modes.read_only is not None:
        state.set_read_only(statement.modes.read_only)
    return Result("BEGIN")


def _run_commit(session: Session, statement: s.Commit, _: Sequence[Any]) -> Result:
    done = session.transactions.commit()
    if statement.chain:
        session.begin_explicit_transaction()
    return Result("COMMIT" if done else "ROLLBACK")


def _run_rollback(session: Session, statement: s.Rollback, _: Sequence[Any]) -> Result:
    session.transactions.rollback()
    if statement.chain:
        session.begin_explicit_transaction()
    return Result("ROLLBACK")


def _run_savepoint(session: Session, statement: s.Savepoint, _: Sequence[Any]) -> Result:
    session.begin_unless_autocommit()
    session.transactions.create_savepoint(statement.name)
    return Result("SAVEPOINT")


def _run_release_savepoint(
    session: Session, statement: s.ReleaseSavepoint, _: Sequence[Any]
) -> Result:
    session.transactions.release_savepoint(statement.name)
    return Result("RELEASE")


def _run_rollback_to_savepoint(
    session: Session, statement: s.RollbackTo, _: Sequence[Any]
) -> Result:
    session.transactions.rollback_to_savepoint(statement.name)
    return Result("ROLLBACK")


def _run_set_transaction(session: Session, statement: s.SetTransaction, _: Sequence[Any]) -> Result:
    modes = statement.modes
    if statement.session:
        if modes.isolation is not None:
            session.settings.set("default_transaction_isolation", modes.isolation)
        if modes.read_only is not None:
            value = "on" if modes.read_only else "off"
            session.settings.set("default_transaction_read_only", value)
        return Result("SET")
    _set_transaction_modes(session, ISOLATIONS.get(modes.isolation or ""), modes.read_only)
    return Result("SET")


def _set_transaction_modes(
    session: Session, isolation: Isolation | None, read_only: bool | None
) -> None:
    """Of the open transaction; without one it has no effect, as in PostgreSQL."""
    session.begin_unless_autocommit()
    state = session.transactions
    if state.open is None:
        return
    if isolation is not None:
        state.set_isolation(isolation)
    if read_only is not None:
        state.set_read_only(read_only)


def _run_set_constraints(session: Session, statement: s.SetConstraints, _: Sequence[Any]) -> Result:
    state = session.transactions
    if state.open is None:
        return Result("SET CONSTRAINTS")  # PostgreSQL warns that there is no transaction
    if statement.names:
        for name in statement.names:
            _require_deferrable_constraint(session, name)
            state.deferred_names[name.name] = statement.deferred
    else:
        state.deferred, state.deferred_names = statement.deferred, {}
    if not statement.deferred:
        check_constraints_of_changes(session, state.open, state.open.changes)
    return Result("SET CONSTRAINTS")


def _require_deferrable_constraint(session: Session, name: QualifiedName) -> None:
    keys = [key for table in session.catalog.tables for key in table.foreign_keys]
    found = [key for key in keys if key.name == name.name]
    if not found:
        raise InvalidInput("constraint does not exist", sqlstate="42704", name=str(name))
    if not any(key.deferrable for key in found):
        raise InvalidInput("constraint is not deferrable", sqlstate="42809", name=str(name))


def _run_lock_table(session: Session, statement: s.LockTable, _: Sequence[Any]) -> Result:
    session.begin_unless_autocommit()
    transaction = session.transactions.open
    if transaction is None or (session.autocommit and not session.transactions.explicit):
        raise InvalidInput("LOCK TABLE can only be used in transaction blocks", sqlstate="25P01")
    for name in statement.names:
        item = transaction.catalog.find_relation(name.name, name.schema or "public")
        if item is None:
            raise InvalidInput("table does not exist", sqlstate="42P01", name=str(name))
        shared = "share" in statement.mode and "exclusive" not in statement.mode
        request = LockRequest("table", item.id.to_bytes(4), int(shared))
        transaction.acquire_lock(request, 0 if statement.nowait else None)
    return Result("LOCK TABLE")


# -- settings --------------------------------------------------------------------------------------

ISOLATION, READ_ONLY = "transaction_isolation", "transaction_read_only"
OF_TRANSACTION = (ISOLATION, READ_ONLY)
"""Settings of the open transaction; between transactions, of the next one."""

SHARE, MAINTENANCE_TIER = "maintenance_share", "maintenance_tier"
"""Settings of the open store, not only of the session."""


def _run_set_variable(session: Session, statement: s.SetVariable, _: Sequence[Any]) -> Result:
    if statement.name.lower() in OF_TRANSACTION:
        _set_transaction_variable(session, statement)
        return Result("SET")
    if statement.local:
        session.begin_unless_autocommit()
    session.settings.set(statement.name, statement.value, local=statement.local)
    if session.transactions.open is None:
        session.settings.restore_after_transaction(committed=not statement.local)
    _apply_maintenance_setting(session, statement.name.lower())
    return Result("SET")


def _set_transaction_variable(session: Session, statement: s.SetVariable) -> None:
    """SET transaction_isolation is SET TRANSACTION ISOLATION LEVEL in other words."""
    state = session.transactions
    if statement.name.lower() == ISOLATION:
        default = session.default_isolation
        level = default if statement.value is None else parse_isolation(statement.value)
        _set_transaction_modes(session, level, None)
    else:
        by_default = state.is_read_only_by_default
        only = by_default if statement.value is None else parse_boolean(statement.value)
        _set_transaction_modes(session, None, only)


def _run_reset_variable(session: Session, statement: s.ResetVariable, _: Sequence[Any]) -> Result:
    session.settings.reset(statement.name)
    if session.transactions.open is None:
        session.settings.restore_after_transaction(committed=True)
    _apply_maintenance_setting(session, statement.name.lower())
    return Result("RESET")


def _apply_maintenance_setting(session: Session, name: str) -> None:
    if name in (SHARE, "all"):
        session.host.views.maintenance_share = session.settings.get(SHARE)
    if name in (MAINTENANCE_TIER, "all"):
        session.host.views.registry.tiers.requested_tier = session.settings.get(MAINTENANCE_TIER)


def _run_show_variable(session: Session, statement: s.ShowVariable, _: Sequence[Any]) -> Result:
    if statement.name == "all":
        rows = [
            (one.name, session.show_setting(one.name), one.description) for one in SETTINGS.values()
        ]
        return Result("SHOW", SETTING_FIELDS, rows, len(rows))
    value = session.show_setting(statement.name)
    return Result("SHOW", (Field(statement.name.lower(), TEXT),), [(value,)], 1)


# -- prepared statements ---------------------------------------------------------------------------


def _run_prepare(session: Session, statement: s.Prepare, _: Sequence[Any]) -> Result:
    if statement.name in session.prepared:
        raise InvalidInput(
            "prepared statement already exists", sqlstate="42P05", name=statement.name
        )
    bind.resolve_prepared_source(session, statement)  # refuse an invalid statement now
    session.prepared[statement.name] = statement
    return Result("PREPARE")


def _run_execute_prepared(
    session: Session, statement: s.Execute, parameters: Sequence[Any]
) -> Result:
    found = session.prepared.get(statement.name)
    if found is None:
        raise InvalidInput(
            "prepared statement does not exist", sqlstate="26000", name=statement.name
        )
    values = tuple(
        evaluate_constant_expression(session, one, parameters) for one in statement.arguments
    )
    bound = bind.resolve_prepared_source(session, found)
    if isinstance(bound, s.DataPlan):
        wanted = len(bound.parameters)
        if wanted != len(values):
            raise InvalidInput(
                "wrong number of parameters", sqlstate="42601", wanted=wanted, given=len(values)
            )
        entry = session.compile_statement(bound, found.source)
        entry.convert = make_assignment_converter(bound.parameters, bound.zone)  # as assignments
        return session.run_and_record_statement(entry, values)
    return dispatch_statement(session, bound, values)


def evaluate_constant_expression(
    session: Session, expression: e.Expression, parameters: Sequence[Any]
) -> Any:
    """The value of an expression without columns."""
    catalog = session.catalog
    context = CompileContext(catalog, lambda node: compile_plan(catalog, node))
    transaction = session.transactions.open
    reader = session.shared.get_published_reader() if transaction is None else transaction
    return context.value_of(expression)(session.make_run_context(reader, tuple(parameters)))(())


def _run_deallocate(session: Session, statement: s.Deallocate, _: Sequence[Any]) -> Result:
    if statement.name is None:
        session.prepared.clear()
    elif session.prepared.pop(statement.name, None) is None:
        raise InvalidInput(
            "prepared statement does not exist", sqlstate="26000", name=statement.name
        )
    return Result("DEALLOCATE")


def _discard_session_state(session: Session, statement: s.Discard, _: Sequence[Any]) -> Result:
    """Discard the state of the session; plans are shared, and follow the catalog anyway."""
    if statement.what == "all":
        if session.transactions.explicit:
            raise InvalidInput("discard all cannot run inside a transaction", sqlstate="25001")
        session.settings.reset("all")
        session.settings.reset("session_authorization")
        session.cursors.close_cursors(None)
        session.prepared.clear()
        session.notifications.unlisten(None)
        notify.publish_unless_in_transaction(session)
    if statement.what in ("all", "sequences"):
        session.services.forget_sequence_values()
    return Result("DISCARD")


# -- the rest --------------------------------------------------------------------------------------


def _run_analyze_or_vacuum(
    session: Session, statement: s.Analyze | s.Vacuum, _: Sequence[Any]
) -> Result:
    tables = session.catalog.tables
    if statement.names:
        found = [_require_relation(session, name) for name in statement.names]
        tables = tuple(item for item in found if isinstance(item, Table))
    tables = _select_maintainable_tables(session, tables)
    if isinstance(statement, s.Analyze) or statement.analyze:
        for table in tables:
            if table.id in session.host.catalog.objects:  # not one of this transaction's own
                session.shared.table_statistics.sample_complete_table(table.id)
        session.shared.plans.clear()
        session.shared.shapes.clear()
    return Result("ANALYZE" if isinstance(statement, s.Analyze) else "VACUUM")


def _select_maintainable_tables(session: Session, tables: tuple[Table, ...]) -> tuple[Table, ...]:
    """Those that the session's role may maintain; the others are skipped with a notice."""
    rights = session.identity.find_rights_unless_superuser(session.catalog)
    if rights is None:
        return tables
    allowed = tuple(table for table in tables if rights.has(table, "m"))
    for table in tables:
        if table not in allowed:
            text = f'permission denied to analyze "{table.name}", skipping it'
            add_notice_unless_silenced(session, text)
    return allowed


def _check_reindex_target(session: Session, statement: s.Reindex, _: Sequence[Any]) -> Result:
    if statement.kind in ("table", "index"):
        _require_relation(session, statement.name)
    elif statement.kind == "schema":
        session.catalog.schema_id(statement.name.name)
    return Result("REINDEX")


def _run_copy_in_zone(session: Session, statement: s.Copy, parameters: Sequence[Any]) -> Result:
    zone = session.settings.zone
    if zone is UTC:
        return copy.run_copy(session, statement, parameters)
    if statement.direction == "from":
        # Its commit would run under the zone, too.
        if any(field.type.kind is Kind.TIMESTAMPTZ for field in statement.columns):
            raise Unsupported("COPY FROM of instants in another zone than UTC")
        return copy.run_copy(session, statement, parameters)
    with in_zone(zone):
        return copy.run_copy(session, statement, parameters)


def _require_relation(session: Session, name: QualifiedName) -> AnyObject:
    found = session.catalog.find_relation(
        name.name, name.schema or bind.find_current_schema(session)
    )
    if found is None:
        raise InvalidInput("table does not exist", sqlstate="42P01", name=str(name))
    return found


_HANDLERS: dict[type, Handler] = {
    s.Begin: _run_begin,
    s.Commit: _run_commit,
    s.Rollback: _run_rollback,
    s.Savepoint: _run_savepoint,
    s.ReleaseSavepoint: _run_release_savepoint,
    s.RollbackTo: _run_rollback_to_savepoint,
    s.SetTransaction: _run_set_transaction,
    s.SetConstraints: _run_set_constraints,
    s.LockTable: _run_lock_table,
    s.SetVariable: _run_set_variable,
    s.ResetVariable: _run_reset_variable,
    s.ShowVariable: _run_show_variable,
    s.Prepare: _run_prepare,
    s.Execute: _run_execute_prepared,
    s.Deallocate: _run_deallocate,
    s.Discard: _discard_session_state,
    s.DeclareCursor: cursors.declare_cursor,
    s.FetchCursor: cursors.fetch_from_cursor,
    s.CloseCursor: cursors.close_cursor,
    s.Listen: notify.run_listen,
    s.Unlisten: notify.run_unlisten,
    s.Notify: notify.run_notify,
    s.Analyze: _run_analyze_or_vacuum,
    s.Vacuum: _run_analyze_or_vacuum,
    s.Reindex: _check_reindex_target,
    s.Explain: explain.run_explain,
    s.Copy: _run_copy_in_zone,
}
_ALLOWED_IN_FAILED = (s.Commit, s.Rollback, s.RollbackTo)
WITHOUT_SNAPSHOT = (
    s.Begin,
    s.Commit,
    s.Rollback,
    s.Savepoint,
    s.ReleaseSavepoint,
    s.RollbackTo,
    s.SetTransaction,
    s.SetConstraints,
    s.LockTable,
    s.SetVariable,
    s.ResetVariable,
    s.ShowVariable,
    s.Deallocate,
    s.FetchCursor,
    s.CloseCursor,
    s.Listen,
    s.Unlisten,
    s.Notify,
)
"""Statements that see no data: a transaction has its snapshot from the first other one."""
