"""The undo index: before-images of recent batches, so that snapshots can read a one-version store.

Every batch publishes the old values of its keys here, under its batch number, *before* it is
written. A reader of snapshot b reads the store first and the undo index second: the first entry of
the key with a batch number above b is the value at b; without one, what the store said is.

Invariants
- Entries of one key are in batch order.
- An entry is removed only when no open snapshot, and not the published batch, is older than it.
- It is removed before its spilled value: a reader that misses the value does not find the entry
  again.
- Changes and range queries happen under the publish latch, which the caller holds. A lookup of
  one key needs no latch: it is atomic, and an entry list is only ever replaced.

Most entries live and die without a range query, so keys are sorted only when there is one.

Old values beyond the memory budget move to a scratch store, which is emptied on open: snapshots die
with the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sortedcontainers import SortedList

from belvedere.errors import Unavailable
from belvedere.kv.batch import BatchStore
from belvedere.txn.contracts import new_tuple

STALE_KEYS_MAX = 1000


class SpilledValue(NamedTuple):
    """An old value moved to the scratch store, by its key there."""

    id: int


class UndoEntryPurged(Exception):
    """An old value was removed after its entry was found. Its batch is published, then, and a
    reader without an open snapshot reads a later moment instead."""


class UndoEntry(NamedTuple):
    batch: int
    position: int
    old: bytes | SpilledValue | None


_Batch = tuple[int, tuple[bytes, ...]]
"""Number and keys."""


class UndoIndex:
    def __init__(self, bytes_max: int, open_scratch: Callable[[], BatchStore]) -> None:
        self._entries: dict[bytes, tuple[UndoEntry, ...]] = {}
        self._order: SortedList[bytes] = SortedList()  # of keys, some of them without entries now
        self._unsorted: dict[bytes, None] = {}  # keys with entries that are not in it yet
        self._batches: deque[_Batch] = deque()
        self._bytes = 0
        self._bytes_max = bytes_max
        self._open_scratch = open_scratch
        self._scratch: BatchStore | None = None
        self._spilled_count = 0
        self.floor = 0  # up to which batch entries were removed
        self.entries = self._entries  # for the two hot checks: is it empty, is this key in it

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes_in_memory(self) -> int:
        return self._bytes

    @property
    def spilled_count(self) -> int:
        """How many old values were moved to the scratch store since it was opened."""
        return self._spilled_count

    def publish_images(
        self, batch: int, position: int, images: Sequence[tuple[bytes, bytes | None]]
    ) -> None:
        """Keep the old values of the keys that this batch is about to write, each once."""
        entries, unsorted = self._entries, self._unsorted
        absent = (new_tuple(UndoEntry, (batch, position, None)),)
        for key, old in images:
            if old is None and key not in entries:  # a new key: most of those of a large batch
                entries[key] = absent
                unsorted[key] = None
            else:
                self._add_entry(batch, position, key, old)
        self._batches.append((batch, tuple([key for key, _ in images])))

    def publish_image(self, batch: int, position: int, key: bytes, old: bytes | None) -> None:
        """The same for a batch of one key."""
        self._add_entry(batch, position, key, old)
        self._batches.append((batch, (key,)))

    def _add_entry(self, batch: int, position: int, key: bytes, old: bytes | None) -> None:
        kept: bytes | SpilledValue | None = old
        if old is not None:
            self._bytes += len(old)
            if self._bytes > self._bytes_max:
                self._bytes -= len(old)
                kept = self._spill_value(old)
        entry = new_tuple(UndoEntry, (batch, position, kept))
        known = self._entries.get(key)
        if known is None:
            self._entries[key] = (entry,)
            self._unsorted[key] = None
        else:
            self._entries[key] = (*known, entry)

    def withdraw_batch(self, batch: int) -> None:
        """Remove the newest batch, the write of which failed."""
        number, keys = self._batches.pop()
        assert number == batch
        for key in keys:
            self._drop_outside(key, 0, batch - 1)

    def purge(self, floor: int) -> None:
        """Remove the entries of batches at or below `floor`: no reader is older than it."""
        batches, entries, unsorted = self._batches, self._entries, self._unsorted
        self.floor = floor
        while batches and batches[0][0] <= floor:
            for key in batches.popleft()[1]:
                known = entries.get(key)
                if known is not None and len(known) == 1 and known[0][0] <= floor:
                    del entries[key]
                    unsorted.pop(key, None)
                    if known[0][2] is not None:
                        self._forget_value(known[0][2])
                else:
                    self._drop_outside(key, floor + 1, None)

    def _drop_outside(self, key: bytes, low: int, high: int | None) -> None:
        """Drop the key's entries outside low <= batch <= high."""
        kept: list[UndoEntry] = []
        dropped: list[UndoEntry] = []
        for entry in self._entries.get(key, ()):
            keeps = entry.batch >= low and (high is None or entry.batch <= high)
            (kept if keeps else dropped).append(entry)
        if kept:
            self._entries[key] = tuple(kept)
        else:
            self._entries.pop(key, None)
            self._unsorted.pop(key, None)
        for entry in dropped:
            self._forget_value(entry.old)

    def _keys_in_range(self, start: bytes, end: bytes) -> Iterator[bytes]:
        """Keys with entries in start <= key < end, in order."""
        order, entries = self._order, self._entries
        if len(order) + len(self._unsorted) > 2 * len(entries) + STALE_KEYS_MAX:
            order.clear()
            order.update(entries)
        else:
            order.update([key for key in self._unsorted if key not in order])
        self._unsorted.clear()
        return (key for key in order.irange(start, end, inclusive=(True, False)) if key in entries)

    def value_at(self, key: bytes, batch: int, stored: bytes | None) -> bytes | None:
        """The value of `key` for a reader at `batch` that found `stored` in the store."""
        for entry in self._entries.get(key, ()):
            if entry.batch > batch:
                return self.resolve_value(entry.old)
        return stored

    def changed_after(self, key: bytes, batch: int) -> int:
        """Position of the newest change of `key` after `batch`; 0 when there is none."""
        known = self._entries.get(key)
        return known[-1].position if known and known[-1].batch > batch else 0

    def range_changed_after(self, start: bytes, end: bytes, batch: int) -> int:
        """Position of some change in start <= key < end after `batch`; 0 when there is none."""
        for key in self._keys_in_range(start, end):
            position = self.changed_after(key, batch)
            if position:
                return position
        return 0

    def images_at(self, start: bytes, end: bytes, batch: int) -> dict[bytes, bytes | None]:
        """For every key of the range changed after `batch`, its value at `batch`, in key order."""
        found: dict[bytes, bytes | None] = {}
        for key in self._keys_in_range(start, end):
            for entry in self._entries[key]:
                if entry.batch > batch:
                    found[key] = self.resolve_value(entry.old)
                    break
        return found

    def resolve_value(self, old: bytes | SpilledValue | None) -> bytes | None:
        if isinstance(old, SpilledValue):
            if self._scratch is None:
                raise Unavailable("the database is closed", sqlstate="08003")
            value = self._scratch.get(old.id.to_bytes(8))
            if value is None:  # an absent row is not spilled
                raise UndoEntryPurged
            return value
        return old

    def _spill_value(self, old: bytes) -> SpilledValue:
        if self._scratch is None:
            self._scratch = self._open_scratch()
        self._spilled_count += 1
        self._scratch.write([(self._spilled_count.to_bytes(8), old)])
        return SpilledValue(self._spilled_count)

    def _forget_value(self, old: bytes | SpilledValue | None) -> None:
        if type(old) is bytes:
            self._bytes -= len(old)
        elif old is not None:
            assert isinstance(old, SpilledValue)
            assert self._scratch is not None
            self._scratch.write([(old.id.to_bytes(8), None)])

    def close(self) -> None:
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None
