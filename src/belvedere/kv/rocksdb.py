"""The batch store on RocksDB, through rocksdict in raw mode, with a single column family.

Much of this file works around the binding (docs/rocksdb.md): errors
are bare exceptions, so each call maps them; `close` leaves the lock behind while an iterator or a
checkpoint object lives, so neither outlives it, and fails while another thread is inside a call, so
it lets none begin and waits for those that run; a write with the sync option holds the GIL through
the fsync, so a durable write is a write and then `flush_wal`, which does not; an empty or inverted
`delete_range` makes every later write fail, so it never reaches the engine; settings given only for
the database are ignored when it exists, so they are given for its column family too.

get and write are the hot paths: one frame and a try above the binding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, Never, Self, cast

from rocksdict import (
    AccessType,
    Checkpoint,
    DbClosedError,
    IngestExternalFileOptions,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    SstFileWriter,
    WriteBatch,
)

from belvedere import forks
from belvedere.errors import Corruption, Error, InvalidInput, Unavailable
from belvedere.kv.batch import (
    BULK_BATCH_ROWS,
    KEY_BYTES_MAX,
    SCAN_BATCH_ROWS,
    KeySpan,
    Pair,
    SortedFileWriter,
    Write,
    check_bytes,
    check_lengths,
    check_pair,
    check_scan,
)
from belvedere.kv.files import check_file, check_target, map_os_errors
from belvedere.kv.rocksdb_errors import (
    already_open_error,
    lock_owner,
    translate_error,
    translate_open_error,
)
from belvedere.kv.rocksdb_log import Ingest, check_logs, cut_logs, read_ingests, write_ingests
from belvedere.kv.rocksdb_scan import (
    BulkScan,
    PageScan,
    RocksScan,
    ScanRegistry,
    fetch_pairs,
    fetch_pairs_reverse,
    take_pairs,
    take_pairs_reverse,
    take_values,
)
from belvedere.kv.rocksdb_settings import CACHE_BYTES, store_options

CLOSE_WAIT_S = 0.001
CLOSE_WAITS_MAX = 30_000


class RocksStore:
    """A BatchStore in a directory. One process may have it open."""

    __slots__ = (
        "__weakref__",
        "_close_lock",
        "_closed",
        "_database",
        "_flush_wal",
        "_get",
        "_ingest_lock",
        "_options",
        "_scans",
        "_write",
        "directory",
    )

    def __init__(self, database: Rdict, directory: Path, options: Options) -> None:
        self.directory = directory
        self._database = database
        self._options = options
        self._get: Callable[..., Any] = database.get
        self._write: Callable[..., None] = database.write
        self._flush_wal: Callable[[bool], None] = database.flush_wal
        self._scans = ScanRegistry()
        self._close_lock = Lock()
        self._ingest_lock = Lock()
        self._closed = False
        forks.track_handle(self)

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        create: bool,
        salvage: bool = False,
        read_only: bool = False,
        cache_bytes: int = CACHE_BYTES,
    ) -> Self:
        """Open the store in `directory`; with `create`, make it when there is none. One that is
        `read_only` writes no file.

        A log damaged anywhere but in its last, torn record is refused with Corruption; `salvage`
        opens it with everything from the first damage on gone.
        """
        _check_directory(directory, create)
        owner_pid = lock_owner(directory)
        if owner_pid is not None:
            raise already_open_error(directory, owner_pid)
        if salvage:
            cut_logs(directory)
        else:
            check_logs(directory)
        options = store_options(create=create, salvage=salvage, cache_bytes=cache_bytes)
        try:
            database = Rdict(
                str(directory),
                options,
                column_families={"default": options},
                access_type=AccessType.read_only(False) if read_only else AccessType.read_write(),
            )
        except Exception as error:
            raise translate_open_error(error, directory) from error
        return cls(database, directory, options)

    @property
    def bare_get(self) -> Callable[[bytes], bytes | None]:
        """`get` without a Python frame: the caller maps what it raises by `map_error`."""
        return self._get

    def get(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._get(key)
        except Exception as error:
            raise self.map_error(error) from error
        return value

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        try:
            values = self._get(list(keys))
        except Exception as error:
            raise self.map_error(error) from error
        return cast("list[bytes | None]", values)

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
        self._check_open()
        return RocksScan(
            self,
            self._scans,
            take_pairs_reverse if reverse else take_pairs,
            start,
            end,
            reverse=reverse,
            limit=limit,
            batch_rows=batch_rows,
        )

    def fetch_range(
        self, start: bytes, end: bytes, limit: int, *, reverse: bool = False
    ) -> list[Pair]:
        if not start < end:
            return []
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        fetching = self._scans.fetching
        fetching.add(options)
        try:
            if reverse:
                return fetch_pairs_reverse(self, start, end, limit, options)
            return fetch_pairs(self, start, limit, options)
        except Error:
            raise
        except Exception as error:
            raise self.map_error(error) from error
        finally:
            fetching.discard(options)

    def scan_values(
        self, start: bytes, end: bytes | None, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        check_scan(start, end, None, batch_rows)
        self._check_open()
        if batch_rows >= BULK_BATCH_ROWS:
            return BulkScan(self, self._scans, start, end, batch_rows=batch_rows)
        kind = PageScan if batch_rows < SCAN_BATCH_ROWS else RocksScan[bytes]
        return kind(
            self,
            self._scans,
            take_values,
            start,
            end,
            reverse=False,
            limit=None,
            batch_rows=batch_rows,
        )

    def write(
        self, batch: Sequence[Write], *, sync: bool = False, cleared: Sequence[KeySpan] = ()
    ) -> None:
        try:
            native = WriteBatch(True)
            for start, end in cleared:
                check_bytes(start, end)
                if start < end:
                    native.delete_range(start, end)
            for key, value in batch:
                if value is None:
                    del native[key]
                else:
                    native[key] = value
            # A batch smaller than the smallest limit holds nothing over any limit.
            if native.size_in_bytes() > KEY_BYTES_MAX:
                check_lengths(batch)
            self._write(native)
            if sync:
                self._flush_wal(True)
        except Error:
            raise
        except Exception as error:
            raise self.map_error(error) from error

    def delete_range(self, start: bytes, end: bytes) -> None:
        check_bytes(start, end)
        self._check_open()
        if end <= start:
            return
        try:
            self._database.delete_range(start, end)
        except Exception as error:
            raise self.map_error(error) from error

    def sync(self) -> None:
        try:
            self._flush_wal(True)
        except Exception as error:
            raise self.map_error(error) from error

    def checkpoint(self, directory: Path) -> None:
        self._check_open()
        check_target(directory)
        try:
            # Dropped at once: the object would keep the database open past `close`.
            Checkpoint(self._database).create_checkpoint(str(directory))
        except Exception as error:
            raise self.map_error(error) from error

    def ingest(self, files: Sequence[Path]) -> None:
        self._check_open()
        for file in files:
            check_file(file)
        if not files:
            return
        options = IngestExternalFileOptions()
        options.set_move_files(True)
        with self._ingest_lock:
            earlier = read_ingests(self.directory)
            try:
                before = self._database.latest_sequence_number()
                write_ingests(self.directory, [*earlier, Ingest(before, -1, len(files))])
                self._database.ingest_external_file([str(file) for file in files], options)
                after = self._database.latest_sequence_number()
                write_ingests(self.directory, [*earlier, Ingest(before, after, len(files))])
            except Error:
                raise
            except Exception as error:
                raise self.map_error(error) from error

    def sorted_file_writer(self, path: Path) -> SortedFileWriter:
        self._check_open()
        check_target(path)
        return RocksSortedFileWriter(path, self._options)

    def close(self) -> None:
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
            self._get = self._write = self._flush_wal = _raise_closed
            self._scans.release_all()
            for _ in range(CLOSE_WAITS_MAX):
                if not self._scans.fetching:
                    break
                time.sleep(CLOSE_WAIT_S)
            for waits_left in range(CLOSE_WAITS_MAX, -1, -1):
                if self._close_engine(waits_left):
                    break
                time.sleep(CLOSE_WAIT_S)

    def abandon_after_fork(self) -> None:
        forks.keep_forever(self._database)
        self._scans.keep_iterators_forever()

    def _close_engine(self, waits_left: int) -> bool:
        try:
            self._database.close()
        except Exception as error:
            if waits_left and "Already borrowed" in str(error):
                return False  # a call of another thread is running in the engine
            raise self.map_error(error) from error
        return True

    def open_cursor(self, options: ReadOptions) -> RdictIter:
        """For scans: an iterator that the store can release when it closes."""
        self._check_open()
        return self._database.iter(options)

    def open_items(self, start: bytes, options: ReadOptions) -> Iterator[Pair]:
        """For ranges that are fetched at once: the same over pairs."""
        self._check_open()
        return cast("Iterator[Pair]", self._database.items(from_key=start, read_opt=options))

    def open_values(self, start: bytes, options: ReadOptions) -> Iterator[bytes]:
        """For bulk scans and pages: the same over values."""
        self._check_open()
        return cast("Iterator[bytes]", self._database.values(from_key=start, read_opt=options))

    def map_error(self, error: Exception) -> Error:
        """The error to raise in place of `error`."""
        return translate_error(error, self.directory)

    def _check_open(self) -> None:
        if self._closed:
            self._refuse_closed()

    def _refuse_closed(self) -> Never:
        raise Unavailable("store is closed", sqlstate="57P01", directory=self.directory)


class RocksSortedFileWriter:
    """Writes one SST file with the settings of the store that will ingest it."""

    __slots__ = ("_count", "_native", "_path")

    def __init__(self, path: Path, options: Options) -> None:
        self._path = path
        self._count = 0
        self._native = SstFileWriter(options)
        try:
            self._native.open(str(path))
        except Exception as error:
            raise translate_error(error, path) from error

    def put(self, key: bytes, value: bytes) -> None:
        self.put_pairs(((key, value),))

    def put_pairs(self, pairs: Iterable[Pair]) -> None:
        native, key, given = self._native, b"", list(pairs)
        try:
            if max(map(len, chain.from_iterable(given)), default=0) > KEY_BYTES_MAX:
                for key, value in given:
                    check_pair(key, value)
            for key, value in given:
                native[key] = value
            self._count += len(given)
        except Error:
            raise
        except Exception as error:
            if "strict ascending order" in str(error):
                raise InvalidInput("keys of a sorted file must ascend", key=key) from error
            raise translate_error(error, self._path) from error

    def finish(self) -> Path | None:
        if self._count == 0:
            del self._native
            with map_os_errors(self._path):
                self._path.unlink()
            return None
        try:
            self._native.finish()
        except Exception as error:
            raise translate_error(error, self._path) from error
        return self._path


def _raise_closed(*_: object) -> Never:
    """Replaces the engine's functions once the store is closed."""
    raise DbClosedError


def _check_directory(directory: Path, create: bool) -> None:
    """Refuse what is no store, and what was one: RocksDB would start afresh over its remains."""
    if (directory / "CURRENT").is_file():
        return
    if directory.exists() and not directory.is_dir():
        raise InvalidInput("not a directory", sqlstate="3D000", directory=directory)
    remains = sorted(path.name for path in directory.glob("*.sst"))
    remains += sorted(path.name for path in directory.glob("MANIFEST-*"))
    remains += sorted(path.name for path in directory.glob("*.log"))
    if remains:
        raise Corruption("store has lost its root file", directory=directory, found=remains[:5])
    if not create:
        raise InvalidInput("no store in this directory", sqlstate="3D000", directory=directory)
