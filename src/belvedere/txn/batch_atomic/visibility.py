"""The published state, the open snapshots, and the writing of batches that snapshots must not see.

Two states matter: `written`, the newest batch in the store, known only to the commit section; and
`published_snapshot`, the newest batch that readers may see. With durability off they are the same;
with durability full a batch is published when the sync that covers it is done, and the undo index
hides it until then.

The latch guards the pair (store contents, undo index) against a snapshot being opened in between.
It is held for one store write at most, never for a sync.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.errors import InvalidInput
from belvedere.kv.batch import KEY_BYTES_MAX, BatchStore, Write
from belvedere.txn.contracts import KeyRange, RowChange, Rows, Snapshot
from belvedere.txn.history.readers import SnapshotReader
from belvedere.txn.history.undo_index import UndoIndex


class Visibility:
    def __init__(self, store: BatchStore, undo: UndoIndex, start: Snapshot, *, hold: bool) -> None:
        self.store, self.bare_get = store, store.bare_get
        self.undo = undo
        self.latch = threading.Lock()
        self.published_snapshot = start
        self.written = start
        self._hold = hold  # written batches stay hidden until publish() is called
        self._hidden: deque[Snapshot] = deque()
        self._open: dict[int, int] = {}  # how many snapshots of each batch
        self._catalogs = [(start.batch, start.catalog.version)]  # since when each is published
        self.open_count = 0
        self._moved = threading.Condition()
        self._waiting = 0
        self.has_ended = False

    # -- snapshots ----------------------------------------------------------------------------

    def open_snapshot(self) -> Snapshot:
        """A snapshot of what is published now; the caller releases it."""
        with self.latch:
            snapshot = self.published_snapshot
            batch = snapshot[0]
            self._open[batch] = self._open.get(batch, 0) + 1
            self.open_count += 1
        return snapshot

    def retain(self, snapshot: Snapshot) -> None:
        with self.latch:
            self._open[snapshot.batch] += 1
            self.open_count += 1

    def release(self, snapshot: Snapshot) -> None:
        with self.latch:
            self.open_count -= 1
            batch, opened = snapshot[0], self._open
            left = opened[batch] - 1
            if left:
                opened[batch] = left
                return
            del opened[batch]
            if self.undo.entries:
                self._purge_undo()

    def is_newest(self, snapshot: Snapshot) -> bool:
        newest = self.published_snapshot
        return newest is snapshot or newest.batch == snapshot.batch  # with a catalog of its own

    def reader(self, snapshot: Snapshot) -> SnapshotReader:
        return SnapshotReader(self, snapshot)

    def record_catalog_version(self, state: Snapshot) -> None:
        """Record that snapshots from this one on plan with its catalog."""
        with self.latch:
            self._catalogs.append((state.batch, state.catalog.version))

    @property
    def oldest_catalog_version(self) -> int:
        """The oldest catalog version an open snapshot, or a reader from now on, plans with."""
        with self.latch:
            oldest = min(self._open, default=self.published_snapshot.batch)
            while len(self._catalogs) > 1 and self._catalogs[1][0] <= oldest:
                self._catalogs.pop(0)
            return self._catalogs[0][1]

    # -- writing ------------------------------------------------------------------------------

    def write_batch(
        self,
        batch: Sequence[Write],
        successor: Snapshot,
        changes: Sequence[RowChange],
        derived: Rows | Sequence[Write],
        own: int,
        cleared: Sequence[KeyRange] = (),
    ) -> None:
        """Write a batch, made of changes and derived rows, that makes `successor` the newest
        state. `own` is how many open snapshots belong to the writer, which will not read through
        them again."""
        with self.latch:
            if failpoints.armed:
                failpoints.hit("commit.before_undo")
            observed = self._hold or self.open_count > own
            if observed:
                self._publish_images(successor, changes, derived, cleared)
            if failpoints.armed:
                failpoints.hit("commit.before_write")
            try:
                self.store.write(batch, cleared=cleared)
            except InvalidInput as error:
                # Refused, so nothing is there. After any other failure the batch may be there, and
                # stays hidden.
                if observed:
                    self.undo.withdraw_batch(successor.batch)
                raise _name_refused_relation(error, batch, successor.catalog) from error
            if failpoints.armed:
                failpoints.hit("commit.after_write")
            self.written = successor
            if self._hold:
                self._hidden.append(successor)
                return
            self.published_snapshot = successor
        if self._waiting:
            self._notify_waiters()

    def _publish_images(
        self,
        successor: Snapshot,
        changes: Sequence[RowChange],
        derived: Rows | Sequence[Write],
        cleared: Sequence[KeyRange],
    ) -> None:
        """Put the old values of what is about to be written where open snapshots look for them."""
        batch_number, position, _, _ = successor
        if len(changes) == 1 and not derived:
            key, old, _, _ = changes[0]
            self.undo.publish_image(batch_number, position, key, old)
        else:
            images = self._before_images(changes, derived, cleared)
            self.undo.publish_images(batch_number, position, images)

    def _before_images(
        self,
        changes: Sequence[RowChange],
        derived: Rows | Sequence[Write],
        cleared: Sequence[KeyRange],
    ) -> list[tuple[bytes, bytes | None]]:
        """Old values of the keys about to be written or cleared."""
        images = [(key, old) for key, old, _, _ in changes]
        gone = {
            key: value
            for start, end in cleared
            for pairs in self.store.scan(start, end)
            for key, value in pairs
        }
        images += gone.items()
        if derived:
            keys = [key for key in dict(derived) if key not in gone]
            images += zip(keys, self.store.multi_get(keys), strict=True)
        return images

    def publish_through(self, through: Snapshot) -> None:
        """Let readers see everything up to `through`, which is durable."""
        if failpoints.armed:
            failpoints.hit("publish.before")
        with self.latch:
            hidden, batch = self._hidden, through[0]
            while hidden and hidden[0][0] <= batch:
                self.published_snapshot = hidden[
                    0
                ]  # before it is removed: an interrupt may hit in between
                hidden.popleft()
            self._purge_undo()
        if self._waiting:
            self._notify_waiters()
        if failpoints.armed:
            failpoints.hit("publish.after")

    def _purge_undo(self) -> None:
        floor = self.published_snapshot[0]
        if self._open:
            floor = min(floor, *self._open)
        self.undo.purge(floor)

    # -- waiting ------------------------------------------------------------------------------

    def _notify_waiters(self) -> None:
        with self._moved:
            self._moved.notify_all()

    def wait_past(self, position: int, timeout_s: float | None) -> bool:
        """Block until something after `position` is published; False at the timeout, or when
        nothing more will be published."""
        with self._moved:
            self._waiting += 1
            try:
                self._moved.wait_for(
                    lambda: self.published_snapshot.position > position or self.has_ended, timeout_s
                )
            finally:
                self._waiting -= 1
        return self.published_snapshot.position > position

    def end_waits(self) -> None:
        """Wake all waiters: the store is being closed, or nothing more can be made durable."""
        with self._moved:
            self.has_ended = True
            self._moved.notify_all()


def _name_refused_relation(
    error: InvalidInput, batch: Sequence[Write], catalog: Catalog
) -> InvalidInput:
    """The error of a key that is too long, with the relation that the key is of."""
    longest, _ = max(batch, key=lambda write: len(write[0]))
    if len(longest) <= KEY_BYTES_MAX:
        return error
    relation = catalog.objects.get(int.from_bytes(longest[1:5]))
    named = {} if relation is None else {type(relation).__name__.lower(): relation.name}
    facts: dict[str, Any] = named | error.facts
    return InvalidInput(error.message, sqlstate=error.sqlstate, **facts)
