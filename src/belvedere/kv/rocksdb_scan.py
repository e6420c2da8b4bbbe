"""Scans over a live RocksDB iterator, and the registry by which a closing store releases them.

Five properties of the binding shape this file (each has a test):
  - `Rdict.items()` and `values()` end silently at a block they cannot read, so a damaged store
    would seem merely shorter. The plain iterator has `status()`, which is checked at every end.
  - Both are a third faster than the plain iterator, `values()` most of all. Bulk scans, pages and
    ranges that are fetched at once draw from them, and let a plain iterator see whether that was
    the end.
  - An iterator keeps its database open, lock included, after `close()`. So the store knows every
    scan that holds one, and releases it first.
  - An iterator does not copy its upper bound: the scan keeps the bytes.
  - The lower bound of a read option overwrites the upper bound; reverse scans compare keys instead.

A live iterator sees the moment of its creation, which is the first `next` of the scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar, cast
from weakref import WeakSet

from rocksdict import RdictIter, ReadOptions

from belvedere import forks
from belvedere.errors import Error
from belvedere.kv.batch import Pair

Row = TypeVar("Row")
Take = Callable[[RdictIter, int, bytes], list[Row]]
"""Draw up to so many rows from the cursor, none before the start key."""


class ScanOwner(Protocol):
    """The store, as a scan sees it."""

    def open_cursor(self, options: ReadOptions) -> RdictIter:
        """A new iterator; fails when the store is closed."""

    def open_items(self, start: bytes, options: ReadOptions) -> Iterator[Pair]:
        """The same over pairs."""

    def open_values(self, start: bytes, options: ReadOptions) -> Iterator[bytes]:
        """A new iterator over values, from this key on; fails when the store is closed."""

    def map_error(self, error: Exception) -> Error:
        """The error to raise instead of `error`."""


class ScanRegistry:
    """Every scan that may hold an iterator: in a call right now, or between two batches. A range
    that is fetched at once holds one during a call, and is known by its options."""

    __slots__ = ("between", "fetching", "running")

    def __init__(self) -> None:
        self.fetching: set[ReadOptions] = set()
        self.running: set[RocksScan[Any]] = set()
        self.between: WeakSet[RocksScan[Any]] = WeakSet()

    def release_all(self) -> None:
        """Release every iterator, waiting for batches being read. A scan that begins after the
        store was marked closed gets no iterator, so none is missed."""
        for scan in [*self.running, *self.between]:
            scan.release_iterator()

    def keep_iterators_forever(self) -> None:
        """In a forked child: destroy none."""
        for scan in [*self.running, *self.between]:
            forks.keep_forever(scan._cursor)


class RocksScan(Generic[Row]):
    """One scan, in batches. The iterator lives from the first batch to the last."""

    __slots__ = (
        "__weakref__",
        "_batch_rows",
        "_cursor",
        "_done",
        "_end",
        "_left",
        "_lock",
        "_owner",
        "_registry",
        "_reverse",
        "_start",
        "_take",
    )

    def __init__(
        self,
        owner: ScanOwner,
        registry: ScanRegistry,
        take: Take[Row],
        start: bytes,
        end: bytes | None,
        *,
        reverse: bool,
        limit: int | None,
        batch_rows: int,
    ) -> None:
        self._owner = owner
        self._registry = registry
        self._take = take
        self._start = start
        self._end = end
        self._reverse = reverse
        self._left = limit
        self._batch_rows = batch_rows
        self._lock = Lock()
        self._cursor: Any = None  # an iterator of the binding
        self._done = limit == 0 or (end is not None and end <= start)

    def __iter__(self) -> Iterator[list[Row]]:
        return self

    def __next__(self) -> list[Row]:
        if self._done:
            raise StopIteration
        running = self._registry.running
        running.add(self)
        try:
            with self._lock:
                rows = [] if self._done else self._next_batch()
        finally:
            running.discard(self)
        if not rows:
            raise StopIteration
        return rows

    def release_iterator(self) -> None:
        """Release the iterator. To read on, the scan requests a new one from the closed store,
        which refuses: an interrupted scan is never mistaken for one that ended."""
        with self._lock:
            self._cursor = None

    def _next_batch(self) -> list[Row]:
        try:
            first = self._cursor is None
            cursor = self._cursor or self._open_cursor()
            left = self._left
            wanted = self._batch_rows if left is None else min(self._batch_rows, left)
            rows = self._draw_rows(cursor, wanted)
            if len(rows) < wanted:
                self._check_end(cursor)
                self._end_scan()
            elif left == wanted:
                self._end_scan()
            else:
                self._keep_cursor(cursor, first)
                self._left = None if left is None else left - wanted
        except Error:
            self._end_scan()
            raise
        except Exception as error:
            self._end_scan()
            raise self._owner.map_error(error) from error
        return rows

    def _draw_rows(self, cursor: Any, wanted: int) -> list[Row]:
        return self._take(cursor, wanted, self._start)

    def _check_end(self, cursor: Any) -> None:
        """Fail when the rows did not end but could not be read."""
        cursor.status()

    def _read_options(self) -> ReadOptions:
        options = ReadOptions()
        if self._end is not None:
            options.set_iterate_upper_bound(self._end)
        return options

    def _open_cursor(self) -> Any:
        cursor = self._owner.open_cursor(self._read_options())
        if not self._reverse:
            cursor.seek(self._start)
        elif self._end is None:
            cursor.seek_to_last()
        else:
            cursor.seek_for_prev(self._end)
        return cursor

    def _keep_cursor(self, cursor: Any, first: bool) -> None:
        self._cursor = cursor
        if first:
            self._registry.between.add(self)

    def _end_scan(self) -> None:
        self._done = True
        self._cursor = None


class BulkScan(RocksScan[bytes]):
    """The values of a range that is read once and completely: they are not kept in the cache, where
    they would evict what others read again and again. No two of them are equal."""

    __slots__ = ("_last",)

    def __init__(
        self,
        owner: ScanOwner,
        registry: ScanRegistry,
        start: bytes,
        end: bytes | None,
        *,
        batch_rows: int,
    ) -> None:
        super().__init__(
            owner,
            registry,
            take_values,
            start,
            end,
            reverse=False,
            limit=None,
            batch_rows=batch_rows,
        )
        self._last: bytes | None = None

    def _open_cursor(self) -> Iterator[bytes]:
        options = self._read_options()
        cast(Any, options).fill_cache(False)  # the binding's stub lacks the argument
        return self._owner.open_values(self._start, options)

    def _draw_rows(self, cursor: Any, wanted: int) -> list[bytes]:
        values = list(islice(cursor, wanted))
        if values:
            self._last = values[-1]
        return values

    def _check_end(self, cursor: Any) -> None:
        """The rows ended at the last one there is now; or it was written since, and then all
        blocks must be readable."""
        plain = self._owner.open_cursor(self._read_options())
        if self._end is None:
            plain.seek_to_last()
        else:
            plain.seek_for_prev(self._end)
        plain.status()
        if plain.valid() and plain.key() >= self._start and plain.value() == self._last:
            return
        plain.seek(self._start)
        while plain.valid():
            plain.next()
        plain.status()


class PageScan(RocksScan[bytes]):
    """The first values of a range: most readers of small batches stop after one."""

    __slots__ = ()

    def _open_cursor(self) -> Iterator[bytes]:
        return self._owner.open_values(self._start, self._read_options())

    def _draw_rows(self, cursor: Any, wanted: int) -> list[bytes]:
        return list(islice(cursor, wanted))

    def _check_end(self, cursor: Any) -> None:
        """Rows written since may follow; what matters is that everything can be read."""
        plain = super()._open_cursor()
        while plain.valid():
            plain.next()
        plain.status()


# Zipping the bound methods keeps the per-row work in C: 0.47 us a pair against 0.54 in a loop.


def take_pairs(cursor: RdictIter, wanted: int, start: bytes) -> list[Pair]:
    rows = zip(iter(cursor.key, None), iter(cursor.value, None), iter(cursor.next, True))
    return [(key, value) for key, value, _ in islice(rows, wanted)]


def take_values(cursor: RdictIter, wanted: int, start: bytes) -> list[bytes]:
    rows = zip(iter(cursor.value, None), iter(cursor.next, True))
    return [value for value, _ in islice(rows, wanted)]


def take_pairs_reverse(cursor: RdictIter, wanted: int, start: bytes) -> list[Pair]:
    pairs: list[Pair] = []
    rows = zip(iter(cursor.key, None), iter(cursor.value, None), iter(cursor.prev, True))
    for key, value, _ in islice(rows, wanted):
        if key < start:
            break
        pairs.append((key, value))
    return pairs


def fetch_pairs(owner: ScanOwner, start: bytes, limit: int, options: ReadOptions) -> list[Pair]:
    """The first pairs from a key on, up to the upper bound of the options."""
    pairs = list(islice(owner.open_items(start, options), limit))
    if len(pairs) < limit:  # rows written since may follow; all that matters is that all is read
        plain = owner.open_cursor(options)
        plain.seek(pairs[-1][0] if pairs else start)
        while plain.valid():
            plain.next()
        plain.status()
    return pairs


def fetch_pairs_reverse(
    owner: ScanOwner, start: bytes, end: bytes, limit: int, options: ReadOptions
) -> list[Pair]:
    """The last pairs of a range, the upper bound of which is that of the options."""
    cursor = owner.open_cursor(options)
    cursor.seek_for_prev(end)
    pairs = take_pairs_reverse(cursor, limit, start)
    if len(pairs) < limit:
        cursor.status()
    return pairs
