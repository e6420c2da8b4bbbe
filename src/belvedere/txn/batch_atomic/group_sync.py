"""Group commit: one sync of the log for all clients that wrote before it began.

The last of the expected clients to arrive leads: it notes what is written, syncs the store (which
releases the GIL, so others keep writing), writes the anchor, publishes what it noted, and starts
waking the clients that this served. As many clients are expected as took part last time. The first
to wait watches the clock: at the timeout it leads the clients that have arrived.

Served clients are woken in a chain: each one, as soon as it has the GIL, wakes the next. Woken all
at once they would only queue for the GIL, and have to be woken again when it is their turn.

Invariant: what is published, and hence what is acknowledged, was written before a sync that
returned success, and the anchor says so. The first failure ends writing for good: a sync that
failed once proves nothing when it succeeds later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from belvedere import failpoints
from belvedere.errors import Error, Unavailable
from belvedere.txn.batch_atomic.interpreter_handover import HANDOVER
from belvedere.txn.batch_atomic.visibility import Visibility

PATIENCE_EACH = 0.3
PATIENCE_MAX = 3.0
"""How long the first client waits for each of the others, and for all of them, in syncs. Without
that wait half of them write while the others are synced, and each sync serves a half."""
SYNC_S_MAX = 0.005


_Client = threading.Lock
"""A waiting client, represented by the lock that it waits for."""


class GroupSync:
    def __init__(
        self,
        visibility: Visibility,
        sync: Callable[[], None],
        anchor: Callable[[int, int], None],
    ) -> None:
        """`anchor` takes position and hash."""
        self._visibility = visibility
        self._sync = sync
        self._anchor = anchor
        self._mutex = threading.Lock()  # guards the five below
        self._leader: _Client | None = None
        self._watch: _Client | None = None  # the client that waits with a timeout
        self._waiters: dict[_Client, int] = {}  # for which batch each waits
        self._served: dict[_Client, None] = {}  # to be woken, in order
        self._expected = 1  # how many took part when the last group ended
        self._durable = visibility.published_snapshot.batch
        self.failure: Unavailable | None = None
        self._sync_s = 0.0  # how long the last sync took
        self.groups = 0

    def wait_durable(self, batch: int) -> None:
        """Return when everything up to `batch` is durable and published."""
        me = threading.Lock()
        me.acquire()
        try:
            HANDOVER.shorten_turns(me)
            while self._durable < batch:
                if self.failure is not None:
                    raise self.failure
                if self._try_to_lead(me, batch):
                    self._lead_group()
        except BaseException:  # an interrupted client must not block the others
            self._abandon_wait(me)
            raise
        finally:
            HANDOVER.restore_turns(me)

    def sync_pending(self) -> None:
        """Make everything written durable and visible, also what no client waits for any more. A
        failure stays in `failure`, and is raised in the clients that wait."""
        try:
            self.wait_durable(self._visibility.written.batch)
        except Unavailable as error:
            if error is not self.failure:
                raise

    def _try_to_lead(self, me: _Client, batch: int) -> bool:
        """Wait to be woken, or for the turn to lead; whether it is that."""
        with self._mutex:
            if self._durable >= batch or self.failure is not None:
                return False
            waiters = self._waiters
            waiters.pop(me, None)
            if self._leader is None and len(waiters) + 1 >= self._expected:
                self._leader = me
                return True
            waiters[me] = batch
            watches = self._leader is None and self._watch is None
            if watches:
                self._watch = me
        if watches and self._wait_then_lead(me):
            return True
        me.acquire()
        self._wake_next()
        return False

    def _wait_then_lead(self, me: _Client) -> bool:
        """Wait for the expected clients, up to a timeout; whether to lead without the missing
        ones."""
        patience = min(PATIENCE_EACH * (self._expected - 1), PATIENCE_MAX)
        if me.acquire(timeout=patience * self._sync_s):
            me.release()
            return False
        with self._mutex:
            if self._leader is not None or me not in self._waiters:
                return False
            self._leader = me
            del self._waiters[me]
            return True

    def _lead_group(self) -> None:
        try:
            self._sync_once()
        except (Error, OSError) as error:
            self.failure = unknown_outcome("the log could not be synced", error)
            self._visibility.end_waits()
        with self._mutex:
            self._end_leadership()
        self._wake_next()

    def _abandon_wait(self, me: _Client) -> None:
        """Remove a client that stops waiting: another one takes over its part."""
        with self._mutex:
            self._waiters.pop(me, None)
            self._served.pop(me, None)
            if self._leader is me or self._leader is None:
                self._end_leadership()
        self._wake_next()

    def _end_leadership(self) -> None:
        """End the leadership: queue the served clients to be woken, and wake one of the others,
        which decides whether to watch or to lead. Idempotent: the caller may be interrupted."""
        waiters = self._waiters
        self._expected = len(waiters) + 1
        for client, batch in list(waiters.items()):
            if batch <= self._durable or self.failure is not None:
                self._served[client] = None
                del waiters[client]
        self._leader = self._watch = None
        _wake_first(waiters)

    def _wake_next(self) -> None:
        if not self._served:
            return
        with self._mutex:
            _wake_first(self._served)

    def _sync_once(self) -> None:
        began = time.perf_counter()
        state = self._visibility.written
        if failpoints.armed:
            failpoints.hit("sync.before")
        self._sync()
        if failpoints.armed:
            failpoints.hit("sync.after")
        self._anchor(state.position, state.hash)
        self._sync_s = min(time.perf_counter() - began, SYNC_S_MAX)
        self._visibility.publish_through(state)
        self.groups += 1
        self._durable = state.batch


def _wake_first(clients: dict[_Client, Any]) -> None:
    client = next(iter(clients), None)
    if client is None:
        return
    if client.locked():  # or it is awake, and its waker was interrupted here
        client.release()
    del clients[client]


def unknown_outcome(why: str, error: Exception) -> Unavailable:
    failure = Unavailable(
        "outcome of the commit is unknown",
        sqlstate="08007",
        detail=f"{why}: {error}",
        hint="reads go on; reopen the store, then ask for the outcome by transaction id",
    )
    failure.__cause__ = error
    return failure
