"""The batch store in memory: the reference twin of every other engine, and the store of `:memory:`.

One SortedDict behind one lock. A batch is checked before it is applied, so it is all or nothing,
and readers take the lock, so no reader sees half of one. A scan reads batch by batch, from the key
after the last one. It shows what was there when it began: the first write that comes while it is
open copies the rest of its range for it (references, not bytes) and forgets it, so a scan costs
what is read of it, and a writer pays for an open scan once.

Nothing survives the process except checkpoints and sorted files (format: sorted_file.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from threading import Lock

from sortedcontainers import SortedDict

from belvedere import forks
from belvedere.errors import Unavailable
from belvedere.kv.batch import (
    SCAN_BATCH_ROWS,
    KeySpan,
    Pair,
    SortedFileWriter,
    Write,
    check_batch,
    check_bytes,
    check_scan,
    fetch_by_scan,
)
from belvedere.kv.files import check_target, map_os_errors
from belvedere.kv.sorted_file import PairFileWriter, read_pair_file

CHECKPOINT_FILE = "pairs"


class _OpenScan:
    """How far a scan has come. `copied` is the rest, once a write has come in between."""

    __slots__ = ("bounds", "copied", "left", "reverse")

    def __init__(self, start: bytes, end: bytes | None, reverse: bool, limit: int | None) -> None:
        self.bounds: tuple[bytes, bytes | None] = (start, end)
        self.reverse = reverse
        self.left = limit
        self.copied: Iterator[Pair] | None = None

    def pass_key(self, key: bytes, count: int) -> None:
        start, end = self.bounds
        self.bounds = (start, key) if self.reverse else (key + b"\0", end)
        if self.left is not None:
            self.left -= count


class MemoryStore:
    """A BatchStore whose sync is free and whose contents die with the process."""

    __slots__ = ("__weakref__", "_closed", "_lock", "_pairs", "_scans")

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        self._pairs: SortedDict[bytes, bytes] = SortedDict(pairs)
        self._scans: dict[int, _OpenScan] = {}
        self._lock = Lock()
        self._closed = False
        forks.track_handle(self)

    @classmethod
    def from_checkpoint(cls, directory: Path) -> MemoryStore:
        """A new store with the pairs of a checkpoint; the checkpoint stays as it is."""
        return cls(read_pair_file(directory / CHECKPOINT_FILE))

    def get(self, key: bytes) -> bytes | None:
        if type(key) is not bytes:
            check_bytes(key)
        with self._lock:
            self._check_open()
            value: bytes | None = self._pairs.get(key)
            return value

    @property
    def bare_get(self) -> Callable[[bytes], bytes | None]:
        return self.get

    def map_error(self, error: Exception) -> Exception:
        return error

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        check_bytes(*keys)
        with self._lock:
            self._check_open()
            return list(map(self._pairs.get, keys))

    def scan(
        self,
        start: bytes,
        end: bytes | None,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        check_scan(start, end, limit, batch_rows)
        with self._lock:
            self._check_open()
        return self._scan_batches(start, end, reverse, limit, batch_rows)

    def fetch_range(
        self, start: bytes, end: bytes, limit: int, *, reverse: bool = False
    ) -> list[Pair]:
        return fetch_by_scan(self, start, end, limit, reverse)

    def scan_values(
        self, start: bytes, end: bytes | None, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        batches = self.scan(start, end, batch_rows=batch_rows)
        return ([value for _, value in batch] for batch in batches)

    def write(
        self, batch: Sequence[Write], *, sync: bool = False, cleared: Sequence[KeySpan] = ()
    ) -> None:
        check_batch(batch)
        check_bytes(*chain.from_iterable(cleared))
        with self._lock:
            self._check_open()
            if self._scans:
                self._copy_for_scans()
            for start, end in cleared:
                self._remove_range(start, end)
            for key, value in batch:
                if value is None:
                    self._pairs.pop(key, None)
                else:
                    self._pairs[key] = value

    def delete_range(self, start: bytes, end: bytes) -> None:
        check_bytes(start, end)
        with self._lock:
            self._check_open()
            self._copy_for_scans()
            self._remove_range(start, end)

    def _remove_range(self, start: bytes, end: bytes) -> None:
        for key in list(self._keys_in_range(start, end, reverse=False)):
            del self._pairs[key]

    def sync(self) -> None:
        with self._lock:
            self._check_open()

    def checkpoint(self, directory: Path) -> None:
        check_target(directory)
        with self._lock:
            self._check_open()
            pairs = list(self._pairs.items())
        with map_os_errors(directory):
            directory.mkdir()
        writer = PairFileWriter(directory / CHECKPOINT_FILE)
        for key, value in pairs:
            writer.put(key, value)
        writer.seal_file()

    def ingest(self, files: Sequence[Path]) -> None:
        pairs = [pair for file in files for pair in read_pair_file(file)]
        with self._lock:
            self._check_open()
            self._copy_for_scans()
            self._pairs.update(pairs)
        for file in files:
            with map_os_errors(file):
                file.unlink()

    def sorted_file_writer(self, path: Path) -> SortedFileWriter:
        with self._lock:
            self._check_open()
        return PairFileWriter(path)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._pairs = SortedDict()

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("store is closed", sqlstate="57P01")

    def _keys_in_range(self, start: bytes, end: bytes | None, *, reverse: bool) -> Iterator[bytes]:
        if end is not None and end <= start:
            return iter(())
        keys: Iterator[bytes] = self._pairs.irange(start, end, (True, False), reverse)
        return keys

    def _scan_batches(
        self, start: bytes, end: bytes | None, reverse: bool, limit: int | None, batch_rows: int
    ) -> Iterator[list[Pair]]:
        scan = _OpenScan(start, end, reverse, limit)
        with self._lock:
            self._check_open()
            batch = self._read_batch(scan, batch_rows)
            if len(batch) == batch_rows:
                self._scans[id(scan)] = scan
        try:
            while batch:
                yield batch
                if len(batch) < batch_rows:
                    return
                with self._lock:
                    self._check_open()
                    batch = self._read_batch(scan, batch_rows)
        finally:
            # Without the lock: a generator may be collected at any moment, also under it.
            self._scans.pop(id(scan), None)

    def _read_batch(self, scan: _OpenScan, rows: int | None) -> list[Pair]:
        """The next pairs of a scan, all that are left for None; under the lock."""
        if scan.copied is not None:
            return list(islice(scan.copied, rows))
        if rows is None or (scan.left is not None and scan.left < rows):
            rows = scan.left
        found = islice(self._keys_in_range(*scan.bounds, reverse=scan.reverse), rows)
        value_of = self._pairs.__getitem__
        batch = [(key, value_of(key)) for key in found]
        if batch:
            scan.pass_key(batch[-1][0], len(batch))
        return batch

    def _copy_for_scans(self) -> None:
        """Give the open scans what they have not read yet, before it changes; under the lock."""
        for scan in list(self._scans.values()):
            scan.copied = iter(self._read_batch(scan, None))
        self._scans.clear()
