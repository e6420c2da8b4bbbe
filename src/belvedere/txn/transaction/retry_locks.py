"""Locks that an attempt takes first, after an earlier one has lost a race."""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.errors import Retry
from belvedere.txn.contracts import LockRequest
from belvedere.txn.transaction.transaction import Transaction

DEADLOCK = "40P01"


def locks_to_retry(transaction: Transaction, lost: Retry) -> tuple[LockRequest, ...]:
    """The locks another attempt should take first; none after a deadlock, which they caused."""
    return () if lost.sqlstate == DEADLOCK else tuple(sorted(transaction.held_locks))


def acquire_first(transaction: Transaction, requests: Sequence[LockRequest]) -> None:
    """Take these locks before anything is read, and then take a new snapshot: for another attempt
    after a lost race. The winner published before it released the lock, so this attempt cannot
    lose to a holder of the same locks again."""
    for request in requests:
        transaction.acquire_lock(request)
    if requests:
        transaction.renew_snapshot()
