"""Two batch stores that must agree: every call goes to both, every answer is compared.

A difference raises AssertionError naming the call. Errors are answers too: both must raise the same
class with the same SQLSTATE. Calls are taken one at a time, so that both stores see one order; a
scan is compared batch by batch and both sides begin it at the same moment.

Files and checkpoints exist once per side: `path` becomes `path.left` and `path.right`, a checkpoint
is a directory with `left` and `right` in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import TypeVar, cast

from belvedere.errors import Error
from belvedere.kv.batch import (
    SCAN_BATCH_ROWS,
    BatchStore,
    KeySpan,
    Pair,
    SortedFileWriter,
    Write,
)
from belvedere.kv.files import check_target, map_os_errors

Answer = TypeVar("Answer")
Row = TypeVar("Row")


def compare_answers(name: str, left: Callable[[], Answer], right: Callable[[], Answer]) -> Answer:
    """Do both; the one answer, or the one error, or AssertionError."""
    one, other = call_both(name, left, right)
    if one != other:
        raise AssertionError(f"the stores differ in {name}: left {one!r}, right {other!r}")
    return one


def call_both(
    name: str, left: Callable[[], Answer], right: Callable[[], Answer]
) -> tuple[Answer, Answer]:
    """Do both; the two answers, or the one error, or AssertionError."""
    one, other = _answer_or_error(left), _answer_or_error(right)
    if _error_kind(one) != _error_kind(other):
        raise AssertionError(f"the stores differ in {name}: left {one!r}, right {other!r}")
    if isinstance(one, Error):
        raise one
    return one, cast("Answer", other)


def _answer_or_error(act: Callable[[], Answer]) -> Answer | Error:
    try:
        return act()
    except Error as error:
        return error


def _error_kind(outcome: object) -> object:
    """What two errors must share; None for any answer."""
    return (type(outcome), outcome.sqlstate) if isinstance(outcome, Error) else None


class MirrorStore:
    """A BatchStore made of two."""

    __slots__ = ("_lock", "left", "right")

    def __init__(self, left: BatchStore, right: BatchStore) -> None:
        self.left = left
        self.right = right
        self._lock = RLock()

    def get(self, key: bytes) -> bytes | None:
        return self._compare_call(f"get({format_keys(key)})", lambda store: store.get(key))

    @property
    def bare_get(self) -> Callable[[bytes], bytes | None]:
        return self.get

    def map_error(self, error: Exception) -> Exception:
        return error

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._compare_call(
            f"multi_get({format_keys(*keys)})", lambda store: store.multi_get(keys)
        )

    def scan(
        self,
        start: bytes,
        end: bytes | None,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        def begin_scan(store: BatchStore) -> Iterator[list[Pair]]:
            return store.scan(start, end, reverse=reverse, limit=limit, batch_rows=batch_rows)

        name = f"scan({start!r}, {end!r}, reverse={reverse}, limit={limit}, {batch_rows=})"
        return self._begin_batches(name, begin_scan)

    def fetch_range(
        self, start: bytes, end: bytes, limit: int, *, reverse: bool = False
    ) -> list[Pair]:
        name = f"fetch_range({start!r}, {end!r}, {limit}, {reverse=})"
        return self._compare_call(
            name, lambda store: store.fetch_range(start, end, limit, reverse=reverse)
        )

    def scan_values(
        self, start: bytes, end: bytes | None, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        def begin_scan(store: BatchStore) -> Iterator[list[bytes]]:
            return store.scan_values(start, end, batch_rows=batch_rows)

        name = f"scan_values({start!r}, {end!r}, {batch_rows=})"
        return self._begin_batches(name, begin_scan)

    def write(
        self, batch: Sequence[Write], *, sync: bool = False, cleared: Sequence[KeySpan] = ()
    ) -> None:
        name = f"write({format_keys(*(key for key, _ in batch))}, {cleared=})"
        self._compare_call(name, lambda store: store.write(batch, sync=sync, cleared=cleared))

    def delete_range(self, start: bytes, end: bytes) -> None:
        self._compare_call(
            f"delete_range({start!r}, {end!r})", lambda store: store.delete_range(start, end)
        )

    def sync(self) -> None:
        self._compare_call("sync()", lambda store: store.sync())

    def checkpoint(self, directory: Path) -> None:
        check_target(directory)
        with self._lock:
            with map_os_errors(directory):
                directory.mkdir()
            try:
                compare_answers(
                    "checkpoint()",
                    lambda: self.left.checkpoint(directory / "left"),
                    lambda: self.right.checkpoint(directory / "right"),
                )
            except Error:
                directory.rmdir()
                raise

    def ingest(self, files: Sequence[Path]) -> None:
        with self._lock:
            compare_answers(
                f"ingest({[file.name for file in files]})",
                lambda: self.left.ingest([left_path(file) for file in files]),
                lambda: self.right.ingest([right_path(file) for file in files]),
            )

    def sorted_file_writer(self, path: Path) -> SortedFileWriter:
        with self._lock:
            left, right = call_both(
                f"sorted_file_writer({path.name})",
                lambda: self.left.sorted_file_writer(left_path(path)),
                lambda: self.right.sorted_file_writer(right_path(path)),
            )
        return MirrorSortedFileWriter(path, left, right)

    def close(self) -> None:
        self._compare_call("close()", lambda store: store.close())

    def _compare_call(self, name: str, act: Callable[[BatchStore], Answer]) -> Answer:
        with self._lock:
            return compare_answers(name, lambda: act(self.left), lambda: act(self.right))

    def _begin_batches(
        self, name: str, begin: Callable[[BatchStore], Iterator[list[Row]]]
    ) -> Iterator[list[Row]]:
        with self._lock:
            left, right = call_both(name, lambda: begin(self.left), lambda: begin(self.right))
        return self._compare_batches(name, left, right)

    def _compare_batches(
        self, name: str, left: Iterator[list[Row]], right: Iterator[list[Row]]
    ) -> Iterator[list[Row]]:
        def next_batch() -> list[Row]:
            with self._lock:
                return compare_answers(name, lambda: next(left, []), lambda: next(right, []))

        while batch := next_batch():
            yield batch


class MirrorSortedFileWriter:
    """A sorted file on each side."""

    __slots__ = ("_left", "_path", "_right")

    def __init__(self, path: Path, left: SortedFileWriter, right: SortedFileWriter) -> None:
        self._path = path
        self._left = left
        self._right = right

    def put(self, key: bytes, value: bytes) -> None:
        compare_answers(
            f"put({format_keys(key)})",
            lambda: self._left.put(key, value),
            lambda: self._right.put(key, value),
        )

    def put_pairs(self, pairs: Iterable[Pair]) -> None:
        for key, value in pairs:
            self.put(key, value)

    def finish(self) -> Path | None:
        something = compare_answers(
            "finish()",
            lambda: self._left.finish() is not None,
            lambda: self._right.finish() is not None,
        )
        return self._path if something else None


def format_keys(*keys: bytes) -> str:
    """A few keys, each cut short: names are made for every call, agreeing or not."""
    shown = [repr(key[:40]) for key in keys[:8]]
    return ", ".join(shown if len(keys) <= 8 else [*shown, f"and {len(keys) - 8} more"])


def left_path(path: Path) -> Path:
    return path.with_name(path.name + ".left")


def right_path(path: Path) -> Path:
    return path.with_name(path.name + ".right")
