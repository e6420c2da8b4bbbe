"""A RocksDB store that buffers small writes, and hands them to the engine together at a sync.

With group commit no write is acknowledged before the sync that covers it, so there is no reason to
call the engine for each: one call for eight commits costs little more than one for a single.

The contract is that of every store: what was written is read. A get searches the buffered writes
first; operations on the entire engine (scans, checkpoints, ranges, large batches) hand them over
before.

Invariants
- The engine holds a prefix of what was written, batch by batch, and gets more of it atomically.
- A key is looked for in `_fresh`, then in `_leaving`, then in the engine, and writes move in that
  order, each added to the next before it is removed from the last.
- After the engine refused buffered writes, no more are accepted, and every sync raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from rocksdict import Options, Rdict, RdictIter, ReadOptions

from belvedere.errors import Error, Unavailable
from belvedere.kv.batch import KEY_BYTES_MAX, KeySpan, Pair, Write
from belvedere.kv.rocksdb import RocksStore

BATCH_WRITES_MAX = 64
"""Larger batches, and values longer than a key may be, go to the engine themselves."""
GATHERED_WRITES_MAX = 1024


class Refusal(NamedTuple):
    """SQLSTATE and message of the engine's error. Not the error itself: its traceback would keep
    the iterator alive for which writes were handed over."""

    sqlstate: str
    message: str


class GatheringStore(RocksStore):
    __slots__ = ("_closing", "_failure", "_fresh", "_handing", "_leaving")

    def __init__(self, database: Rdict, directory: Path, options: Options) -> None:
        super().__init__(database, directory, options)
        self._handing = Lock()  # guards the four below; reading them needs it not
        self._fresh: dict[bytes, bytes | None] = {}
        self._leaving: dict[bytes, bytes | None] = {}
        self._failure: Refusal | None = None
        self._closing = False

    @property
    def bare_get(self) -> Callable[[bytes], bytes | None]:
        return self.get

    def get(self, key: bytes) -> bytes | None:
        fresh = self._fresh
        if key in fresh:
            return fresh[key]
        leaving = self._leaving
        if key in leaving:
            return leaving[key]
        return super().get(key)

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        fresh, leaving = self._fresh, self._leaving
        stored = super().multi_get(keys)
        if not fresh and not leaving:
            return stored
        return [
            fresh[key] if key in fresh else leaving.get(key, value)
            for key, value in zip(keys, stored, strict=True)
        ]

    def write(
        self, batch: Sequence[Write], *, sync: bool = False, cleared: Sequence[KeySpan] = ()
    ) -> None:
        gathered = not sync and not cleared and _is_small(batch)
        with self._handing:
            if self._closing:
                self._refuse_closed()
            self._require_no_failure()
            if gathered:
                self._fresh.update(batch)
            if not gathered or len(self._fresh) > GATHERED_WRITES_MAX:
                self._hand_over()
                self._require_no_failure()
            if not gathered:
                super().write(batch, sync=sync, cleared=cleared)

    def sync(self) -> None:
        with self._handing:
            self._hand_over()
            self._require_no_failure()
        super().sync()

    def delete_range(self, start: bytes, end: bytes) -> None:
        self._hand_over_first()
        super().delete_range(start, end)

    def checkpoint(self, directory: Path) -> None:
        self._hand_over_first()
        super().checkpoint(directory)

    def ingest(self, files: Sequence[Path]) -> None:
        self._hand_over_first()
        super().ingest(files)

    def open_cursor(self, options: ReadOptions) -> RdictIter:
        self._hand_over_for_scan()
        return super().open_cursor(options)

    def open_items(self, start: bytes, options: ReadOptions) -> Iterator[Pair]:
        self._hand_over_for_scan()
        return super().open_items(start, options)

    def open_values(self, start: bytes, options: ReadOptions) -> Iterator[bytes]:
        self._hand_over_for_scan()
        return super().open_values(start, options)

    def close(self) -> None:
        try:
            with self._handing:
                told, self._closing = self._failure, True
                self._hand_over()
            if told is None:
                self._require_no_failure()
        finally:
            super().close()
            self._fresh, self._leaving = {}, {}

    def _hand_over_for_scan(self) -> None:
        """Let an iterator see everything. After a failure it sees what was there before, which is
        all that was acknowledged."""
        if self._fresh or self._leaving:
            with self._handing:
                self._hand_over()

    def _hand_over_first(self) -> None:
        with self._handing:
            self._hand_over()
            self._require_no_failure()

    def _hand_over(self) -> None:
        """Give the gathered writes to the engine; what goes wrong stays in `_failure`."""
        if self._failure is not None:
            return
        if self._fresh:
            # Some are there already when the last attempt was interrupted; twice does no harm.
            self._leaving = {**self._leaving, **self._fresh} if self._leaving else self._fresh
            self._fresh = {}
        if not self._leaving:
            return
        try:
            super().write(list(self._leaving.items()))
        except Error as error:
            self._failure = Refusal(error.sqlstate, error.message)
        else:
            self._leaving = {}

    def _require_no_failure(self) -> None:
        if self._failure is not None:
            sqlstate, message = self._failure
            raise Unavailable("the store could not be written", sqlstate=sqlstate, detail=message)


def _is_small(batch: Sequence[Write]) -> bool:
    if len(batch) > BATCH_WRITES_MAX:
        return False
    for key, value in batch:
        if type(key) is not bytes or len(key) > KEY_BYTES_MAX:
            return False
        if value is not None and (type(value) is not bytes or len(value) > KEY_BYTES_MAX):
            return False
    return True
