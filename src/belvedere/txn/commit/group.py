"""Group commit: one sync of the log for everybody who wrote before it began.

The last to come of those who are expected leads: it notes what is written, syncs the store (which
releases the GIL, so others keep writing), writes the anchor, publishes what it noted, and has those
woken whom that served. As many are expected as took part last time. The first to wait watches the
clock: when not all have come in time, it leads those who have.

Those served are woken in a chain: each one, as soon as it has the GIL, wakes the next. Woken all at
once they would only queue for the GIL, and have to be woken again when it is their turn.

Invariant: what is published, and hence what is acknowledged, was written before a sync that
returned success, and the anchor says so. The first failure ends writing for good: a sync that
failed once proves nothing when it succeeds later.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from belvedere import failpoints
from belvedere.errors import Error, Unavailable
from belvedere.txn.commit.visibility import Visibility

PATIENCE_EACH = 0.3
PATIENCE_MAX = 3.0
"""How long is waited for each who is expected, and for all of them, in syncs. Without patience half
of them write while the others are synced, and each sync serves a half."""
SYNC_S_MAX = 0.005


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
        self._mutex = threading.Lock()  # guards the six below
        self._leading = False
        self._watched = False  # one of those who wait does it with an eye on the clock
        self._waiters: dict[threading.Lock, int] = {}  # who waits for which batch
        self._durable = visibility.published.batch
        self.failure: Unavailable | None = None
        self._expected = 1  # how many took part when the last group ended
        self._served: deque[threading.Lock] = deque()  # to be woken
        self._sync_s = 0.0  # how long the last sync took
        self.groups = 0

    def wait(self, batch: int) -> None:
        """Return when everything up to `batch` is durable and published."""
        if failpoints.armed and failpoints.planted("ack_before_sync"):
            self._visibility.publish(self._visibility.written)
            return
        while self._durable < batch:
            if self.failure is not None:
                raise self.failure
            if self._begins_to_lead(batch):
                self._lead()

    def finish(self) -> None:
        """Make everything written durable; nobody syncs or writes the anchor after it. A failure
        stays in `failure`, and those whom it concerns are told."""
        try:
            self.wait(self._visibility.written.batch)
        except Unavailable as error:
            if error is not self.failure:
                raise

    def _begins_to_lead(self, batch: int) -> bool:
        """Wait to be woken, or for the turn to lead; whether it is that."""
        with self._mutex:
            if self._durable >= batch or self.failure is not None:
                return False
            waiters = self._waiters
            if not self._leading and len(waiters) + 1 >= self._expected:
                self._leading = True
                return True
            turn = threading.Lock()
            turn.acquire()
            waiters[turn] = batch
            watches = not (self._leading or self._watched)
            if watches:
                self._watched = True
        try:
            if watches and self._watch(turn):
                return True
            turn.acquire()
            self._wake_next()
        except BaseException:  # an interrupted client is not to hold up the others
            self._abandon(turn)
            raise
        return False

    def _watch(self, turn: threading.Lock) -> bool:
        """Wait for those who are expected, for some time; whether to lead those who came."""
        patience = min(PATIENCE_EACH * self._expected, PATIENCE_MAX)
        if turn.acquire(timeout=patience * self._sync_s):
            turn.release()
            return False
        with self._mutex:
            if self._leading or turn not in self._waiters:
                return False
            del self._waiters[turn]
            self._leading = True
            return True

    def _abandon(self, turn: threading.Lock) -> None:
        """Of one who will not wait any more: what it was to do, another one does."""
        with self._mutex:
            self._waiters.pop(turn, None)
            if turn in self._served:
                self._served.remove(turn)
            self._let_one_look()
        self._wake_next()

    def _let_one_look(self) -> None:
        """Wake one of those who wait, to watch or to lead, unless somebody leads."""
        if self._leading:
            return
        self._watched = False
        turn = next(iter(self._waiters), None)
        if turn is not None:
            del self._waiters[turn]
            turn.release()

    def _wake_next(self) -> None:
        try:
            turn = self._served.popleft()
        except IndexError:  # everybody is awake
            return
        turn.release()

    def _lead(self) -> None:
        durable, failure = self._durable, None
        try:
            durable = self._sync_once()
        except (Error, OSError) as error:
            failure = unknown_outcome("the log could not be synced", error)
            self._visibility.end_waits()
        finally:
            self._settle(durable, failure)

    def _settle(self, durable: int, failure: Unavailable | None) -> None:
        """Have those woken who need not wait any more, and let one of the others look."""
        with self._mutex:
            self._durable, self.failure = durable, failure
            waiters = self._waiters
            self._expected = len(waiters) + 1
            served = [
                turn for turn, batch in waiters.items() if batch <= durable or failure is not None
            ]
            for turn in served:
                del waiters[turn]
            self._served += served
            self._leading = False
            self._let_one_look()
        self._wake_next()

    def _sync_once(self) -> int:
        began = time.perf_counter()
        state = self._visibility.written
        if failpoints.armed:
            self._sync_with_failpoints()
        else:
            self._sync()
        self._anchor(state.position, state.hash)
        self._sync_s = min(time.perf_counter() - began, SYNC_S_MAX)
        self._visibility.publish(state)
        self.groups += 1
        return state.batch

    def _sync_with_failpoints(self) -> None:
        if failpoints.planted("sync_skipped"):
            return
        try:
            failpoints.hit("sync.before")
            self._sync()
        except (Error, OSError):
            if not failpoints.planted("sync_error_swallowed"):
                raise
        failpoints.hit("sync.after")


def unknown_outcome(why: str, error: Exception) -> Unavailable:
    failure = Unavailable(
        "outcome of the commit is unknown",
        sqlstate="08007",
        detail=f"{why}: {error}",
        hint="reads go on; reopen the store, then ask for the outcome by transaction id",
    )
    failure.__cause__ = error
    return failure
