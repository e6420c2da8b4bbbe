"""The batch-atomic store contract: ordered bytes to bytes, any batch atomic.

Engines: `memory` and `rocksdb`. Doubles for tests: `doubles.mirror`, `doubles.recorder`,
`doubles.faults`. All pass the one conformance suite in tests/kv.

A store knows nothing of versions, rows or transactions, and callers may use it from any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Protocol

from belvedere.errors import InvalidInput

KEY_BYTES_MAX = 64 * 1024
VALUE_BYTES_MAX = 64 * 1024 * 1024
SCAN_BATCH_ROWS = 4096
BULK_BATCH_ROWS = 25_000
"""At or above this, callers read a large range once and promise that no two values in it are equal
(as rows of a table with their keys are not); the scan bypasses the cache."""


Pair = tuple[bytes, bytes]
Write = tuple[bytes, bytes | None]
"""A key with its new value; None deletes the key."""
_KEY, _VALUE = itemgetter(0), itemgetter(1)
KeySpan = tuple[bytes, bytes]
"""start <= key < end; nothing when end <= start."""


class BatchStore(Protocol):
    """Ordered bytes to bytes. Every call may raise Unavailable or Corruption, no bare error."""

    def get(self, key: bytes) -> bytes | None:
        """The newest value of `key`, or None."""

    @property
    def bare_get(self) -> Callable[[bytes], bytes | None]:
        """`get` with no frame in between, where the store has that: the caller maps a bare
        exception of it, by `map_error`."""

    def map_error(self, error: Exception) -> Exception:
        """The error to raise in place of one that `bare_get` raised."""

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The newest values, in the order of `keys`; not necessarily of one moment."""

    def scan(
        self,
        start: bytes,
        end: bytes | None,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        """Pairs with start <= key < end (None: to the last key), in key order or its reverse, in
        lists of at most `batch_rows`, none empty. The entire scan sees the moment of its first
        batch."""

    def fetch_range(
        self, start: bytes, end: bytes, limit: int, *, reverse: bool = False
    ) -> list[Pair]:
        """The first pairs of a range, at most `limit` (1 or more), of the moment of this call: the
        same as a scan's first batch, for ranges of a few rows."""

    def scan_values(
        self, start: bytes, end: bytes | None, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        """Only the values, in key order: what a vectorised decoder needs, at half the cost.
        BULK_BATCH_ROWS or more are for ranges in which no two values are equal: such a range is
        read faster still, and not kept in the store's cache."""

    def write(
        self, batch: Sequence[Write], *, sync: bool = False, cleared: Sequence[KeySpan] = ()
    ) -> None:
        """Apply all or nothing; a later write of one key in the batch wins. The `cleared` ranges
        are emptied before, as a part of it. With `sync`, return only when it would survive a power
        cut."""

    def delete_range(self, start: bytes, end: bytes) -> None:
        """Remove start <= key < end; nothing when end <= start. Atomic, not synced."""

    def sync(self) -> None:
        """Make everything written before this call survive a power cut. Releases the GIL."""

    def checkpoint(self, directory: Path) -> None:
        """A consistent copy of the store as of now in `directory`, which must not exist."""

    def ingest(self, files: Sequence[Path]) -> None:
        """Move sorted files, made by `sorted_file_writer`, into the store: all or nothing. Of a key
        in several files the last file wins. What was ingested survives a power cut, even where
        earlier unsynced writes do not."""

    def sorted_file_writer(self, path: Path) -> SortedFileWriter:
        """A writer of one file for `ingest`."""

    def close(self) -> None:
        """Release everything; idempotent. Any later call raises Unavailable."""


class SortedFileWriter(Protocol):
    def put(self, key: bytes, value: bytes) -> None:
        """Append a pair; keys must come in strictly ascending order (InvalidInput otherwise)."""

    def put_pairs(self, pairs: Iterable[Pair]) -> None:
        """Append many."""

    def finish(self) -> Path | None:
        """Close the file; None when nothing was put."""


def check_pair(key: bytes, value: bytes | None) -> None:
    """InvalidInput for a pair no store takes."""
    check_bytes(key, value)
    if len(key) > KEY_BYTES_MAX:
        raise InvalidInput(
            "key is too long", sqlstate="54000", key_bytes=len(key), key_bytes_max=KEY_BYTES_MAX
        )
    if value is not None and len(value) > VALUE_BYTES_MAX:
        raise InvalidInput(
            "value is too long",
            sqlstate="54000",
            value_bytes=len(value),
            value_bytes_max=VALUE_BYTES_MAX,
        )


def check_batch(batch: Sequence[Write]) -> None:
    """InvalidInput for a batch with a pair that no store takes."""
    for key, value in batch:
        check_pair(key, value)


def check_lengths(batch: Sequence[Write]) -> None:
    """InvalidInput for a key or value over its limit, in a batch of bytes."""
    longest_key = max(map(len, map(_KEY, batch)), default=0)
    longest_value = max(map(len, filter(None, map(_VALUE, batch))), default=0)
    if longest_key > KEY_BYTES_MAX or longest_value > VALUE_BYTES_MAX:
        check_batch(batch)


def check_bytes(*given: object) -> None:
    """InvalidInput for anything but bytes and None."""
    for one in given:
        if one is not None and not isinstance(one, bytes):
            raise InvalidInput("keys and values must be bytes", sqlstate="42804")


def fetch_by_scan(
    store: BatchStore, start: bytes, end: bytes, limit: int, reverse: bool
) -> list[Pair]:
    """`BatchStore.fetch_range` of a store that has no shorter way than its scan."""
    return next(store.scan(start, end, reverse=reverse, limit=limit, batch_rows=limit), [])


def check_scan(start: bytes, end: bytes | None, limit: int | None, batch_rows: int) -> None:
    """InvalidInput for a scan that could not end or could not start."""
    check_bytes(start, end)
    if batch_rows < 1 or (limit is not None and limit < 0):
        raise InvalidInput("scan limits cannot be negative", limit=limit, batch_rows=batch_rows)
