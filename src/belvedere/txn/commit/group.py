"""Group commit: one sync of the log for everybody who wrote before it began.

Whoever needs durability first becomes the leader: it notes what is written, syncs the store (which
releases the GIL, so others keep writing), writes the anchor, publishes what it noted, and wakes
those it noted, and one of those who wrote meanwhile, to lead next. Each waits on a lock of its own:
with one condition for all, everybody is woken to find that most have to wait again.

Invariant: what is published, and hence what is acknowledged, was written before a sync that
returned success, and the anchor says so. The first failure ends writing for good: a sync that
failed once proves nothing when it succeeds later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from belvedere import failpoints
from belvedere.errors import Error, Unavailable
from belvedere.txn.commit.visibility import Visibility

PATIENCE = 0.5
"""How long a leader waits for those who took part last time, in syncs. Without it half of them
write while the others are synced, and each sync serves a half."""
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
        self._waiters: dict[threading.Lock, int] = {}  # who waits for which batch
        self._durable = visibility.published.batch
        self.failure: Unavailable | None = None
        self._together = 1  # how many took part when the last group ended
        self._gathered: threading.Lock | None = None  # held while the leader waits for so many
        self._sync_s = 0.0  # how long the last sync took
        self.groups = 0

    def wait(self, batch: int) -> None:
        """Return when everything up to `batch` is durable and published."""
        if failpoints.armed and failpoints.planted("ack_before_sync"):
            self._visibility.publish(self._visibility.written)
            return
        if self._begins_to_lead(batch):
            self._lead()
        if self._durable < batch:
            assert self.failure is not None
            raise self.failure

    def finish(self) -> None:
        """Make everything written durable; nobody syncs or writes the anchor after it. A failure
        stays in `failure`, and those whom it concerns are told."""
        try:
            self.wait(self._visibility.written.batch)
        except Unavailable as error:
            if error is not self.failure:
                raise

    def _begins_to_lead(self, batch: int) -> bool:
        """Wait for the batch to be durable, or for the turn to lead; whether it is that."""
        with self._mutex:
            if self._durable >= batch or self.failure is not None:
                return False
            if not self._leading:
                self._leading = True
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiters[turn] = batch
            if self._gathered is not None and len(self._waiters) >= self._together - 1:
                self._gathered.release()
                self._gathered = None
        try:
            turn.acquire()
        except BaseException:  # an interrupted client is not to hold up the others
            self._abandon(turn, batch)
            raise
        return self._must_lead(batch)

    def _must_lead(self, batch: int) -> bool:
        """Of one that was woken."""
        return self._durable < batch and self.failure is None

    def _abandon(self, turn: threading.Lock, batch: int) -> None:
        with self._mutex:
            waits = self._waiters.pop(turn, None) is not None
        if not waits and self._must_lead(batch):
            self._settle(self._durable, None)

    def _gather(self) -> None:
        """Wait a little for as many as there were last time."""
        with self._mutex:
            if len(self._waiters) >= self._together - 1:
                return
            self._gathered = gathered = threading.Lock()
            gathered.acquire()
        gathered.acquire(timeout=PATIENCE * self._sync_s)
        with self._mutex:
            self._gathered = None

    def _lead(self) -> None:
        durable, failure = self._durable, None
        try:
            self._gather()
            durable = self._sync_once()
        except (Error, OSError) as error:
            failure = unknown_outcome("the log could not be synced", error)
            self._visibility.end_waits()
        finally:
            self._settle(durable, failure)

    def _settle(self, durable: int, failure: Unavailable | None) -> None:
        """Wake one of those who still wait to lead, and all who need not wait any more."""
        with self._mutex:
            self._durable, self.failure = durable, failure
            waiters = self._waiters
            woken = [
                turn for turn, batch in waiters.items() if batch <= durable or failure is not None
            ]
            for turn in woken:
                del waiters[turn]
            self._together = len(woken) + 1 + len(waiters)
            next_leader = next(iter(waiters), None)
            self._leading = next_leader is not None
            if next_leader is not None:
                del waiters[next_leader]
                next_leader.release()
        for turn in woken:
            turn.release()

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
