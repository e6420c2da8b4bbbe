"""Leases: snapshots held for other processes, so that all tasks of a job read one position.

The process that plans a read takes a lease; the tasks that read name it. The last task is not
known, so a lease that was idle for a while is released. A later task can still read base tables:
the log reaches back to the position, and the lease is recreated from it.

On a row-atomic store a task is a node itself and makes the lease anew from its position, of all
that is stored. Every process reads as of that position exactly, also the one that holds it: a batch
of maintenance behind it, which changes no position, is not seen by some of them only.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from belvedere.database import Database
from belvedere.errors import InvalidInput
from belvedere.txn.contracts import Reader
from belvedere.txn.transaction.transaction import Transaction

IDLE_S_MAX = 600.0


@dataclass(slots=True)
class SnapshotLease:
    """A held snapshot. `transaction` is None at a past position of a store that keeps one version:
    only base tables can be read there."""

    id: str
    position: int
    reader: Reader
    transaction: Transaction | None
    stack: ExitStack
    used_s: float
    users: int = 0


class LeaseTable:
    def __init__(
        self,
        database: Database,
        clock_s: Callable[[], float] = time.monotonic,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._database = database
        self._clock_s = clock_s
        self._new_id = new_id
        self._mutex = threading.Lock()
        self._leases: dict[str, SnapshotLease] = {}

    def take_lease(self, position: int | None = None) -> SnapshotLease:
        """Hold `position`, by default the newest."""
        self.release_idle()
        lease = self._make_lease(self._new_id(), position)
        with self._mutex:
            self._leases[lease.id] = lease
        return lease

    @contextmanager
    def use_lease(self, id_: str, position: int) -> Iterator[SnapshotLease]:
        """Use the lease of that id; if it was released, a new one for the duration of the block."""
        with self._mutex:
            lease = self._leases.get(id_)
            if lease is not None:
                lease.users += 1
        if lease is None:
            lease = self._make_lease(id_, position)
            with lease.stack:
                yield lease
            return
        try:
            yield lease
        finally:
            with self._mutex:
                lease.users -= 1
                lease.used_s = self._clock_s()

    def release(self, id_: str) -> None:
        """Release a lease; a no-op if it is released already."""
        with self._mutex:
            lease = self._leases.pop(id_, None)
        if lease is not None and not lease.users:
            lease.stack.close()

    def close(self) -> None:
        with self._mutex:
            held = list(self._leases.values())
            self._leases.clear()
        for lease in held:
            lease.stack.close()

    def __len__(self) -> int:
        return len(self._leases)

    def release_idle(self) -> None:
        """Release idle leases: a held position keeps old rows in memory."""
        floor = self._clock_s() - IDLE_S_MAX
        with self._mutex:
            idle = [one for one in self._leases.values() if not one.users and one.used_s < floor]
            for lease in idle:
                del self._leases[lease.id]
        for lease in idle:
            lease.stack.close()

    def _make_lease(self, id_: str, position: int | None) -> SnapshotLease:
        stack, now = ExitStack(), self._clock_s()
        if self._database.row_atomic:
            held = self._database.begin_at(
                self._database.position if position is None else position
            )
            stack.callback(held.rollback)
            return SnapshotLease(id_, held.position, held, held, stack, now)
        newest = self._database.begin()
        reached = newest.position
        stack.callback(newest.rollback)
        if position is None or position == newest.position:
            return SnapshotLease(id_, newest.position, newest, newest, stack, now)
        stack.close()
        if position > newest.position or position < 0:
            raise InvalidInput(
                "position is not in the log",
                sqlstate="22023",
                position_wanted=position,
                newest=reached,
            )
        reader = stack.enter_context(self._database.open_past_reader(position))
        return SnapshotLease(id_, position, reader, None, stack, now)
