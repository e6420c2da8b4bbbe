"""Readers of a batch-atomic store: at a snapshot, at the newest written state, with an overlay.

All of them satisfy `Reader`.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol, TypeVar

from belvedere.catalog.catalog import Catalog
from belvedere.errors import Error
from belvedere.kv.batch import SCAN_BATCH_ROWS, BatchStore, Pair
from belvedere.txn.contracts import Get, Reader, Snapshot
from belvedere.txn.history.merge_scan import Overlay, merge_scan
from belvedere.txn.history.undo_index import UndoEntryPurged, UndoIndex

T = TypeVar("T")


class SnapshotStore(Protocol):
    """Where snapshots are read: `txn.batch_atomic.visibility`, which makes the readers."""

    store: BatchStore
    bare_get: Get
    undo: UndoIndex
    latch: threading.Lock
    written: Snapshot


class SnapshotReader:
    """The store as of a snapshot: what it holds now, with later batches undone.

    Also without an open snapshot every single read is of one moment, its own or a later one: what
    was removed from the undo index by the time of the read was published before."""

    __slots__ = ("_batch", "_fetch", "_get", "_home", "_undo", "catalog", "position")

    def __init__(self, home: SnapshotStore, snapshot: Snapshot) -> None:
        self._batch, self.position, self.catalog, _ = snapshot
        self._home = home
        self._get, self._fetch = home.bare_get, home.store.fetch_range
        self._undo = home.undo.entries

    def get(self, key: bytes) -> bytes | None:
        try:
            stored = self._get(key)
        except Error:
            raise
        except Exception as error:
            raise self._home.store.map_error(error) from error
        if key in self._undo:  # after the store: see UndoIndex
            try:
                return self._home.undo.value_at(key, self._batch, stored)
            except UndoEntryPurged:
                return self.get(key)
        return stored

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        stored = self._home.store.multi_get(keys)
        if self._undo:
            value_at, batch = self._home.undo.value_at, self._batch
            pairs = zip(keys, stored, strict=True)
            try:
                return [value_at(key, batch, value) for key, value in pairs]
            except UndoEntryPurged:
                return self.multi_get(keys)
        return stored

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        if limit is not None:
            batch_rows = min(batch_rows, max(limit, 1))
        while True:
            seen = self._home.written[0]
            batches = self._home.store.scan(start, end, reverse=reverse, batch_rows=batch_rows)
            first = next(batches, None)  # opens the iterator before the undo index is read
            overlay, forgotten = self._undo_overlay(start, end)
            # Undoing a batch that the iterator has not seen shows one before it, which it may not
            # have seen either. That takes an entire group commit in between.
            if not overlay or forgotten <= seen:
                return merge_scan(
                    _chain_first(first, batches), overlay, reverse=reverse, limit=limit
                )

    def fetch_range(
        self, start: bytes, end: bytes, limit: int, *, reverse: bool = False
    ) -> list[Pair]:
        """The first pairs of a range at once, at most `limit`."""
        pairs = self._fetch(start, end, limit, reverse=reverse)
        if self._undo and self._undo_overlay(start, end)[0]:  # after the store: see UndoIndex
            batches = self.scan(start, end, reverse=reverse, limit=limit)
            return [pair for batch in batches for pair in batch]
        return pairs

    def scan_values(
        self, start: bytes, end: bytes, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        values = self._home.store.scan_values(start, end, batch_rows=batch_rows)
        first = next(values, None)
        if not self._undo_overlay(start, end)[0]:
            return _chain_first(first, values)
        return values_only(self.scan(start, end, batch_rows=batch_rows))

    def _undo_overlay(self, start: bytes, end: bytes) -> tuple[Overlay, int]:
        """What is undone, and up to which batch nothing can be."""
        if not self._undo:
            return {}, 0
        undo = self._home.undo
        with self._home.latch:
            return undo.images_at(start, end, self._batch), undo.floor


class NewestReader:
    """The newest written state: only inside the commit section, where there is no other writer."""

    __slots__ = ("_store", "catalog", "get", "multi_get", "position", "scan_values")

    def __init__(self, store: BatchStore, position: int, catalog: Catalog) -> None:
        self._store = store
        self.get = store.get
        self.multi_get = store.multi_get
        self.scan_values = store.scan_values
        self.position = position
        self.catalog = catalog

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        return self._store.scan(start, end, reverse=reverse, limit=limit, batch_rows=batch_rows)


class ReaderWrapper:
    """Another reader, of which a subclass changes something: a key that is got, the range that is
    scanned (`_scanned_range`), or the batches that a scan gives (`_passed_on`)."""

    def __init__(self, under: Reader) -> None:
        self._under = under
        self.position = under.position
        self.catalog = under.catalog

    def get(self, key: bytes) -> bytes | None:
        return self._under.get(key)

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._under.multi_get(keys)

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        low, high = self._scanned_range(start, end)
        pairs = self._under.scan(low, high, reverse=reverse, limit=limit, batch_rows=batch_rows)
        return self._passed_on(pairs)

    def scan_values(
        self, start: bytes, end: bytes, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        low, high = self._scanned_range(start, end)
        return self._passed_on(self._under.scan_values(low, high, batch_rows=batch_rows))

    def _scanned_range(self, start: bytes, end: bytes) -> tuple[bytes, bytes]:
        return start, end

    def _passed_on(self, batches: Iterator[list[T]]) -> Iterator[list[T]]:
        return batches


class OverlayReader:
    """Another reader with some keys replaced: a past position, or state plus pending rows."""

    def __init__(self, under: Reader, overlay: Overlay, position: int, catalog: Catalog) -> None:
        self._under = under
        self._overlay = overlay
        self.position = position
        self.catalog = catalog

    @cached_property
    def _sorted_keys(self) -> list[bytes]:
        return sorted(self._overlay)

    def get(self, key: bytes) -> bytes | None:
        return self._overlay[key] if key in self._overlay else self._under.get(key)

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        overlay = self._overlay
        under = [key for key in keys if key not in overlay]
        found = dict(zip(under, self._under.multi_get(under), strict=True)) if under else {}
        return [found[key] if key in found else overlay[key] for key in keys]

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        low, high = bisect_left(self._sorted_keys, start), bisect_left(self._sorted_keys, end)
        mine = {key: self._overlay[key] for key in self._sorted_keys[low:high]}
        # Each key of the overlay hides one row at most.
        enough = None if limit is None else limit + len(mine)
        batches = self._under.scan(start, end, reverse=reverse, limit=enough, batch_rows=batch_rows)
        return merge_scan(batches, mine, reverse=reverse, limit=limit)

    def scan_values(
        self, start: bytes, end: bytes, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        return values_only(self.scan(start, end, batch_rows=batch_rows))


def values_only(pairs: Iterator[list[Pair]]) -> Iterator[list[bytes]]:
    """Batches of values, for a reader whose scans give pairs only."""
    return ([value for _, value in batch] for batch in pairs)


def _chain_first(first: T | None, rest: Iterator[T]) -> Iterator[T]:
    if first is not None:
        yield first
    yield from rest
