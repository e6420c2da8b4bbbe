"""How a statement runs in a transaction, and when it runs again.

- In a transaction of its own it runs again as a whole when it loses a race: nothing was returned
  yet.
- Under READ COMMITTED it restarts when a row that it writes or locks was changed by another
  transaction after its snapshot, mostly by one that it waited for. Its changes are taken back, its
  locks stay, and it sees what is published now. Nobody can change what it has locked, so every
  attempt holds more than the one before, and it does not fail.
- Under the other levels a statement of a longer transaction fails with 40001 then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from belvedere.errors import InvalidInput, Retry, Unavailable
from belvedere.session.context.result import Result
from belvedere.session.statement.immediate_checks import check_constraints_of_changes
from belvedere.session.statement.transaction_size import require_room_for_changes
from belvedere.txn.contracts import LockRequest, TransactionSavepoint
from belvedere.txn.transaction.retry_locks import DEADLOCK, acquire_first, locks_to_retry
from belvedere.txn.transaction.transaction import Transaction

if TYPE_CHECKING:
    from belvedere.session.session import Session

Action = Callable[[Transaction], Result]


def run_in_transaction(
    session: Session, changes: bool, action: Action, *, restarts: bool, repeats: bool
) -> Result:
    """Run an action in the open transaction, or in one of its own. `restarts`: it may run again
    inside a transaction; `repeats`: its transaction may run again, if it is its own."""
    state = session.transactions
    if state.open is None:
        return _run_in_own_transaction(session, changes, action, restarts, repeats)
    state.require_not_failed()
    if not state.open.begun:  # not by way of a statement's text
        state.open.begin_statement()
    return _run_with_restarts(session, state.open, changes, action, restarts)


def _run_in_own_transaction(
    session: Session, changes: bool, action: Action, restarts: bool, repeats: bool
) -> Result:
    state = session.transactions
    attempts = session.host.config.statement_retries_max if repeats else 0
    locks: tuple[LockRequest, ...] = ()
    seen = state.floor
    while True:
        try:
            transaction = session.begin_implicit_transaction()
        except Unavailable:
            state.floor = seen  # what the race was lost to is not to come
            raise
        try:
            acquire_first(transaction, locks)
            transaction.begin_first_statement()
            result = _run_with_restarts(session, transaction, changes, action, restarts)
            if session.autocommit:
                session.interrupt.check()
                state.commit()
            return result
        except Retry as lost:
            attempts -= 1
            if attempts < 0:
                if session.autocommit:
                    state.rollback()
                raise
            locks = locks_to_retry(transaction, lost)
            state.rollback()
            state.floor = max(state.floor, lost.lost_to)
        except BaseException:
            if session.autocommit:
                state.rollback()
            raise


def _run_with_restarts(
    session: Session, transaction: Transaction, changes: bool, action: Action, restarts: bool
) -> Result:
    state = session.transactions
    if changes and state.read_only:
        state.fail()
        raise InvalidInput("cannot change data in a read-only transaction", sqlstate="25006")
    session.services.transaction = transaction
    restarts = restarts and transaction.isolation.snapshot_per_statement
    single = session.autocommit and not state.explicit
    savepoint = TransactionSavepoint(0, 0) if single else transaction.set_savepoint()
    try:
        if changes and savepoint.journal >= state.measure_size_at:
            require_room_for_changes(session, transaction, savepoint)
        while True:
            locks = transaction.lock_count
            try:
                result = action(transaction)
                break
            except Retry as lost:
                progress = lost.sqlstate != DEADLOCK and transaction.lock_count > locks
                if not (restarts and progress and _try_restart_statement(transaction, savepoint)):
                    raise
        if changes and not single:
            check_constraints_of_changes(session, transaction, transaction.changes_since(savepoint))
        return result
    except BaseException:
        state.fail()
        raise
    finally:
        transaction.end_restarts()


def _try_restart_statement(transaction: Transaction, savepoint: TransactionSavepoint) -> bool:
    """False: the statement's plan is of another catalog than the new snapshot's."""
    catalog = transaction.catalog
    transaction.restart_statement(savepoint)
    return transaction.catalog is catalog
