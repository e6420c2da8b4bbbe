"""Many rows of one INSERT at once, as one statement: executemany, and long VALUES lists.

Either all rows are inserted, or none are and None is returned: the caller then runs them in
general, which waits for locks, and says what is wrong with which row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from belvedere.errors import Error, InvalidInput, Retry, Unavailable
from belvedere.execution.python.statements.many_rows_insert import ManyRowsInsert, NewRows
from belvedere.execution.python.statements.point_statements import FastPathRun
from belvedere.session.context.result import Result
from belvedere.session.statement import fast_path
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.session.statement.immediate_checks import (
    NO_CHECKS,
    check_constraints_of_changes,
    run_immediate_checks,
)
from belvedere.session.statement.parameters import ParameterTypesDiffer
from belvedere.session.statement.transaction_size import require_room_for_changes
from belvedere.txn.transaction.transaction import Transaction

if TYPE_CHECKING:
    from belvedere.session.session import Session


def insert_parameter_rows(
    session: Session, entry: CompiledStatement | None, given: Sequence[Sequence[Any]]
) -> int | None:
    """Insert a row for each row of parameters, in the open transaction; how many there are."""
    transaction = session.transactions.open
    if entry is None or transaction is None or session.transactions.failed:
        return None
    insert = entry.find_many_rows_insert() if entry.tier is session.settings.tier else None
    if insert is None or not given:
        return None if insert is None else 0
    started = time.perf_counter()
    run = FastPathRun((), session.services)
    session.services.transaction = transaction
    try:
        rows = insert.make_rows(run, map(entry.convert, given))
    except (Error, ParameterTypesDiffer):
        return None
    if not _insert_in_transaction(session, transaction, entry, insert, rows):
        return None
    _record_rows(entry, len(given), len(given), started)
    return len(given)


def insert_listed_rows(
    session: Session, entry: CompiledStatement, make_rows: Callable[[FastPathRun], NewRows]
) -> Result | None:
    """Insert the rows of a VALUES list, in the open transaction or in one of its own."""
    insert, state = entry.find_many_rows_insert(), session.transactions
    if insert is None or state.failed:
        return None
    started = time.perf_counter()
    session.services.transaction = state.open
    run = FastPathRun((), session.services)
    try:
        rows = make_rows(run)
        if state.open is None and session.autocommit:
            done = _insert_in_own_transaction(session, entry, insert, rows)
        else:
            done = _insert_as_statement(session, entry, insert, rows)
    except InvalidInput:
        return None
    if not done:
        return None
    _record_rows(entry, 1, len(rows.keys), started)
    return Result(entry.verb, None, None, len(rows.keys))


def _insert_as_statement(
    session: Session, entry: CompiledStatement, insert: ManyRowsInsert, rows: NewRows
) -> bool:
    state = session.transactions
    transaction = state.open
    if transaction is not None:
        return _insert_in_transaction(session, transaction, entry, insert, rows)
    done = False
    transaction = session.begin_implicit_transaction()
    try:
        done = _insert_in_transaction(session, transaction, entry, insert, rows)
    finally:
        if not done:
            state.rollback()
    return done


def _insert_in_own_transaction(
    session: Session, entry: CompiledStatement, insert: ManyRowsInsert, rows: NewRows
) -> bool:
    def write(transaction: Transaction, _: FastPathRun) -> int | None:
        return len(rows.keys) if insert.insert_rows(transaction, rows) else None

    run = FastPathRun((), session.services)
    return fast_path.try_write_in_own_transaction(session, entry, write, run) is not None


def _insert_in_transaction(
    session: Session,
    transaction: Transaction,
    entry: CompiledStatement,
    insert: ManyRowsInsert,
    rows: NewRows,
) -> bool:
    """It waits for no lock, and says what is wrong with no row: False, and nothing was done."""
    state = session.transactions
    transaction.begin_statement()
    if transaction.snapshot.catalog is not entry.catalog or state.read_only:
        return False
    savepoint = transaction.set_savepoint()
    if savepoint[0] >= state.measure_size_at:
        require_room_for_changes(session, transaction, savepoint)
    done, transaction.lock_wait_ms = False, 0
    try:
        done = insert.insert_rows(transaction, rows)
        if done and entry.checks is not NO_CHECKS:
            changes = transaction.changes_since(savepoint)
            if entry.checks is None:
                check_constraints_of_changes(session, transaction, changes)
            else:
                run_immediate_checks(session, transaction, entry.checks, changes)
    except (InvalidInput, Retry, Unavailable):
        done = False
    except BaseException:
        entry.record.errors += 1
        state.fail()
        raise
    finally:
        transaction.lock_wait_ms = state.lock_wait_ms
    if not done:
        transaction.rollback_to(savepoint)
        transaction.release_locks_since(savepoint)
    return done


def _record_rows(entry: CompiledStatement, calls: int, rows: int, started: float) -> None:
    record = entry.record
    record.calls += calls
    record.rows += rows
    record.total_us += (time.perf_counter() - started) * 1e6
