"""Group commit: one sync of the log for everybody who wrote before it began.

Whoever needs durability first becomes the leader: it notes what is written, syncs the store (which
releases the GIL, so others keep writing), writes the anchor, publishes what it noted, and wakes the
rest. Those who wrote meanwhile elect the next leader among themselves.

Invariant: what is published, and hence what is acknowledged, was written before a sync that
returned success, and the anchor says so. The first failure ends writing for good: a sync that
failed once proves nothing when it succeeds later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from belvedere import failpoints
from belvedere.errors import Error, Unavailable
from belvedere.txn.commit.visibility import Visibility


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
        self._turn = threading.Condition()
        self._leading = False
        self._durable = visibility.published.batch
        self.failure: Unavailable | None = None
        self.groups = 0

    def wait(self, batch: int) -> None:
        """Return when everything up to `batch` is durable and published."""
        if failpoints.armed and failpoints.planted("ack_before_sync"):
            self._visibility.publish(self._visibility.written)
            return
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._settled(batch) or not self._leading)
                if self._durable >= batch:
                    return
                if self.failure is not None:
                    raise self.failure
                self._leading = True
            self._lead()

    def finish(self) -> None:
        """Make everything written durable; nobody syncs or writes the anchor after it. A failure
        stays in `failure`, and those whom it concerns are told."""
        try:
            self.wait(self._visibility.written.batch)
        except Unavailable as error:
            if error is not self.failure:
                raise

    def _settled(self, batch: int) -> bool:
        return self._durable >= batch or self.failure is not None

    def _lead(self) -> None:
        durable, failure = self._durable, None
        try:
            durable = self._sync_once()
        except (Error, OSError) as error:
            failure = unknown_outcome("the log could not be synced", error)
            self._visibility.end_waits()
        finally:
            with self._turn:
                self._durable = durable
                self.failure = failure
                self._leading = False
                self._turn.notify_all()

    def _sync_once(self) -> int:
        state = self._visibility.written
        if failpoints.armed:
            self._sync_with_failpoints()
        else:
            self._sync()
        self._anchor(state.position, state.hash)
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
