"""The fast paths: a cached statement about one row or a few rows of one range, without a Run and,
under autocommit, for reads and for commits of one row, without a transaction.

Each function falls back to the general path when the statement does not fit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from belvedere.errors import InvalidInput, Retry, Unavailable
from belvedere.execution.python.statements.point_statements import (
    FastPathCommit,
    FastPathRead,
    FastPathRun,
    FastPathWrite,
)
from belvedere.session.context.result import Result
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.session.statement.freshness_reads import try_read_deferred_view
from belvedere.session.statement.immediate_checks import (
    NO_CHECKS,
    check_constraints_of_changes,
    run_immediate_checks,
)
from belvedere.session.statement.parameters import ParameterTypesDiffer
from belvedere.session.statement.transaction_size import require_room_for_changes
from belvedere.txn.contracts import LockRequest, Reader
from belvedere.txn.transaction.retry_locks import acquire_first, locks_to_retry
from belvedere.types import Row

if TYPE_CHECKING:
    from belvedere.session.session import Session


def run_by_fastest_path(
    session: Session, entry: CompiledStatement, parameters: Sequence[Any]
) -> Result:
    """Run a cached statement by the fast path that it has, or else in general."""
    if not session.transactions.failed:
        if entry.fast_read is not None:
            return run_fast_read(session, entry, entry.fast_read, parameters)
        if entry.deferred_read is not None:
            wanted = session.settings.get("freshness")
            result = try_read_deferred_view(session, entry, parameters, wanted)
            if result is not None:
                return result
        if entry.fast_write is not None:
            if session.transactions.open is not None or not session.autocommit:
                return run_write_in_transaction(session, entry, entry.fast_write, parameters)
            if entry.single_row_commit is not None:
                return run_single_row_commit(session, entry, entry.single_row_commit, parameters)
            return run_write_in_own_transaction(session, entry, entry.fast_write, parameters)
    return session.run_with_timeout(lambda: session.run_cached_statement(entry, parameters))


def run_fast_read(
    session: Session, entry: CompiledStatement, read: FastPathRead, parameters: Sequence[Any]
) -> Result:
    """Run a cached read of one row or page: no Run, and no transaction under autocommit."""
    started = time.perf_counter()
    transaction = session.transactions.open
    reader: Reader
    if transaction is None and session.autocommit:
        if entry.needs_snapshot:
            return _run_read_at_snapshot(session, entry, read, parameters, started)
        reader = session.shared.get_published_reader()
    elif transaction is None:
        reader = transaction = session.begin_implicit_transaction()
        transaction.begin_first_statement()
    else:
        reader = transaction
        transaction.begin_statement()
    if reader.catalog is not entry.catalog:
        return session.run_with_timeout(lambda: session.run_cached_statement(entry, parameters))
    try:
        run = session.fast_path_run
        run.parameters = entry.convert(parameters)
        rows = read(reader, run)
    except ParameterTypesDiffer:
        raise
    except BaseException:
        session.transactions.fail()
        raise
    if rows is None:
        return session.run_with_timeout(lambda: session.run_cached_statement(entry, parameters))
    session.transactions.last_reader = reader
    return _record_read_result(entry, rows, started)


def _run_read_at_snapshot(
    session: Session,
    entry: CompiledStatement,
    read: FastPathRead,
    parameters: Sequence[Any],
    started: float,
) -> Result:
    """Run a cached read under autocommit that looks at the store more than once."""
    state, rows = session.transactions, None
    transaction = session.host.begin(session.default_isolation, at_least=state.floor)
    try:
        if transaction.catalog is entry.catalog:
            run = session.fast_path_run
            run.parameters = entry.convert(parameters)
            rows = read(transaction, run)
    finally:
        transaction.rollback()
    if rows is None:
        return session.run_with_timeout(lambda: session.run_cached_statement(entry, parameters))
    state.advance_position(transaction.position)
    return _record_read_result(entry, rows, started)


def try_run_point_read(
    session: Session, entry: CompiledStatement, parameters: Sequence[Any]
) -> Result | None:
    """Run a cached read of one key, which waits for nothing and is soon done; None: it is another
    statement, or for the usual path."""
    read = entry.fast_read
    state = session.transactions
    if read is None or not entry.is_point_read or state.open is not None or not session.autocommit:
        return None
    started = time.perf_counter()
    reader = session.shared.get_published_reader()
    if reader.catalog is not entry.catalog:
        return None
    run = session.fast_path_run
    run.parameters = entry.convert(parameters)
    rows = read(reader, run)
    if rows is None:
        return None
    state.last_reader = reader
    return _record_read_result(entry, rows, started)


def _record_read_result(entry: CompiledStatement, rows: list[Row], started: float) -> Result:
    record = entry.record
    record.calls += 1
    record.rows += len(rows)
    record.total_us += (time.perf_counter() - started) * 1e6
    return Result(
        "SELECT",
        entry.data.plan.fields,
        rows,
        len(rows),
        plain=entry.plain,
        is_point_read=entry.is_point_read,
        origins=entry.data.origins,
    )


def run_single_row_commit(
    session: Session,
    entry: CompiledStatement,
    commit_row: FastPathCommit,
    parameters: Sequence[Any],
) -> Result:
    """Run a cached write of one row as a single-row commit; as a transaction when that declines."""
    started = time.perf_counter()
    state, record, single_row_commits = (
        session.transactions,
        entry.record,
        session.host.single_row_commits,
    )
    position = None
    if single_row_commits is not None and not state.is_read_only_by_default:
        run = FastPathRun(entry.convert(parameters), session.services)
        try:
            position = commit_row(single_row_commits, run)
        except Retry:
            pass  # a lost race: run again below, where attempts are counted
        except InvalidInput:
            if session.host.catalog is entry.catalog:  # else the rule that refused it may be gone
                record.errors += 1
                raise
        except BaseException:
            record.errors += 1
            raise
    if position is None:
        assert entry.fast_write is not None
        return run_write_in_own_transaction(session, entry, entry.fast_write, parameters)
    state.floor = state.position = position
    record.calls += 1
    record.rows += 1
    record.total_us += (time.perf_counter() - started) * 1e6
    return Result(entry.verb, None, None, 1)


def run_write_in_transaction(
    session: Session, entry: CompiledStatement, write: FastPathWrite, parameters: Sequence[Any]
) -> Result:
    """Run a cached write of a few rows in the open transaction, or as the first statement of one.

    It waits for no lock. What would wait, or has lost a race, is taken back and runs in general,
    where it can be cancelled and is run again as its isolation level says."""
    started = time.perf_counter()
    state, services, record = session.transactions, session.services, entry.record
    run = session.fast_path_run
    run.parameters = session.convert_parameters(entry, parameters)
    transaction = state.open
    first = transaction is None
    if transaction is None:
        transaction = session.begin_implicit_transaction()
        transaction.begin_first_statement()
    else:
        transaction.begin_statement()
    affected = None
    if transaction.snapshot.catalog is entry.catalog and not state.read_only:
        savepoint = transaction.set_savepoint()
        if savepoint[0] >= state.measure_size_at:
            require_room_for_changes(session, transaction, savepoint)
        services.transaction, transaction.lock_wait_ms = transaction, 0
        try:
            affected = write(transaction, run)
            checks = entry.checks
            if affected and checks is not NO_CHECKS:
                changes = transaction.changes_since(savepoint)
                if checks is None:
                    check_constraints_of_changes(session, transaction, changes)
                else:
                    run_immediate_checks(session, transaction, checks, changes)
        except (Retry, Unavailable):
            transaction.rollback_to(savepoint)
            transaction.release_locks_since(savepoint)
            affected = None
        except BaseException:
            record.errors += 1
            state.fail()
            raise
        finally:
            transaction.lock_wait_ms = state.lock_wait_ms
    if affected is None:
        if first:
            state.rollback()
        return session.run_with_timeout(lambda: session.run_cached_statement(entry, parameters))
    record.calls += 1
    record.rows += affected
    record.total_us += (time.perf_counter() - started) * 1e6
    return Result(entry.verb, None, None, affected)


def run_write_in_own_transaction(
    session: Session, entry: CompiledStatement, write: FastPathWrite, parameters: Sequence[Any]
) -> Result:
    """Run a cached write in a transaction of its own; again when it loses a race."""
    started = time.perf_counter()
    run = FastPathRun(entry.convert(parameters), session.services)
    affected = try_write_in_own_transaction(session, entry, write, run)
    if affected is None:
        return session.run_with_timeout(lambda: session.run_cached_statement(entry, parameters))
    record = entry.record
    record.calls += 1
    record.rows += affected
    record.total_us += (time.perf_counter() - started) * 1e6
    return Result(entry.verb, None, None, affected)


def try_write_in_own_transaction(
    session: Session, entry: CompiledStatement, write: FastPathWrite, run: FastPathRun
) -> int | None:
    """Commit a write in a transaction of its own; None: the general path has to run it, and
    nothing was written."""
    state, record = session.transactions, entry.record
    attempts = session.host.config.statement_retries_max
    locks: tuple[LockRequest, ...] = ()
    seen = state.floor
    while True:
        try:
            transaction = session.host.begin(session.default_isolation, at_least=state.floor)
        except Unavailable:
            state.floor = seen  # what the race was lost to is not to come
            raise
        transaction.lock_wait_ms = state.lock_wait_ms
        try:
            if locks:
                acquire_first(transaction, locks)
            if transaction.catalog is not entry.catalog or state.is_read_only_by_default:
                return None
            affected = write(transaction, run)
            if affected is None:
                return None
            state.position = transaction.commit().position
            break
        except Retry as lost:
            attempts -= 1
            if attempts < 0:
                raise
            state.floor = max(state.floor, lost.lost_to)
            locks = locks_to_retry(transaction, lost)
        except BaseException:
            record.errors += 1
            raise
        finally:
            transaction.rollback()
    state.floor = max(state.floor, state.position)
    return affected
