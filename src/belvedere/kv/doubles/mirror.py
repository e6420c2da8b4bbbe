"""Two batch stores that must agree: every call goes to both, every answer is compared.

A difference raises AssertionError naming the call. Errors are answers too: both must raise the same
class with the same SQLSTATE. Calls are taken one at a time, so that both stores see one order; a
scan is compared batch by batch and both sides begin it at the same moment.

Files and checkpoints exist once per side: `path` becomes `path.left` and `path.right`, a checkpoint
is a directory with `left` and `right` in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import TypeVar, cast

from belvedere.errors import Error
from belvedere.kv.batch import SCAN_BATCH_ROWS, BatchStore, Pair, SortedFileWriter, Write
from belvedere.kv.files import check_target, os_errors_mapped

Answer = TypeVar("Answer")
Row = TypeVar("Row")


def compared(name: str, left: Callable[[], Answer], right: Callable[[], Answer]) -> Answer:
    """Do both; the one answer, or the one error, or AssertionError."""
    one, other = paired(name, left, right)
    if one != other:
        raise AssertionError(f"the stores differ in {name}: left {one!r}, right {other!r}")
    return one


def paired(
    name: str, left: Callable[[], Answer], right: Callable[[], Answer]
) -> tuple[Answer, Answer]:
    """Do both; the two answers, or the one error, or AssertionError."""
    one, other = _outcome(left), _outcome(right)
    if _kind(one) != _kind(other):
        raise AssertionError(f"the stores differ in {name}: left {one!r}, right {other!r}")
    if isinstance(one, Error):
        raise one
    return one, cast("Answer", other)


def _outcome(act: Callable[[], Answer]) -> Answer | Error:
    try:
        return act()
    except Error as error:
        return error


def _kind(outcome: object) -> object:
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
        return self._both(f"get({brief(key)})", lambda store: store.get(key))

    @property
    def bare_get(self) -> Callable[[bytes], bytes | None]:
        return self.get

    def failed(self, error: Exception) -> Exception:
        return error

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._both(f"multi_get({brief(*keys)})", lambda store: store.multi_get(keys))

    def scan(
        self,
        start: bytes,
        end: bytes | None,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        def begin(store: BatchStore) -> Iterator[list[Pair]]:
            return store.scan(start, end, reverse=reverse, limit=limit, batch_rows=batch_rows)

        name = f"scan({start!r}, {end!r}, reverse={reverse}, limit={limit}, {batch_rows=})"
        return self._batches(name, begin)

    def scan_values(
        self, start: bytes, end: bytes | None, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        def begin(store: BatchStore) -> Iterator[list[bytes]]:
            return store.scan_values(start, end, batch_rows=batch_rows)

        name = f"scan_values({start!r}, {end!r}, {batch_rows=})"
        return self._batches(name, begin)

    def write(self, batch: Sequence[Write], *, sync: bool = False) -> None:
        name = f"write({brief(*(key for key, _ in batch))})"
        self._both(name, lambda store: store.write(batch, sync=sync))

    def delete_range(self, start: bytes, end: bytes) -> None:
        self._both(
            f"delete_range({start!r}, {end!r})", lambda store: store.delete_range(start, end)
        )

    def sync(self) -> None:
        self._both("sync()", lambda store: store.sync())

    def checkpoint(self, directory: Path) -> None:
        check_target(directory)
        with self._lock:
            with os_errors_mapped(directory):
                directory.mkdir()
            try:
                compared(
                    "checkpoint()",
                    lambda: self.left.checkpoint(directory / "left"),
                    lambda: self.right.checkpoint(directory / "right"),
                )
            except Error:
                directory.rmdir()
                raise

    def ingest(self, files: Sequence[Path]) -> None:
        with self._lock:
            compared(
                f"ingest({[file.name for file in files]})",
                lambda: self.left.ingest([left_of(file) for file in files]),
                lambda: self.right.ingest([right_of(file) for file in files]),
            )

    def sorted_file_writer(self, path: Path) -> SortedFileWriter:
        with self._lock:
            left, right = paired(
                f"sorted_file_writer({path.name})",
                lambda: self.left.sorted_file_writer(left_of(path)),
                lambda: self.right.sorted_file_writer(right_of(path)),
            )
        return MirrorSortedFileWriter(path, left, right)

    def close(self) -> None:
        self._both("close()", lambda store: store.close())

    def _both(self, name: str, act: Callable[[BatchStore], Answer]) -> Answer:
        with self._lock:
            return compared(name, lambda: act(self.left), lambda: act(self.right))

    def _batches(
        self, name: str, begin: Callable[[BatchStore], Iterator[list[Row]]]
    ) -> Iterator[list[Row]]:
        with self._lock:
            left, right = paired(name, lambda: begin(self.left), lambda: begin(self.right))
        return self._compared_batches(name, left, right)

    def _compared_batches(
        self, name: str, left: Iterator[list[Row]], right: Iterator[list[Row]]
    ) -> Iterator[list[Row]]:
        def one_batch() -> list[Row]:
            with self._lock:
                return compared(name, lambda: next(left, []), lambda: next(right, []))

        while batch := one_batch():
            yield batch


class MirrorSortedFileWriter:
    """A sorted file on each side."""

    __slots__ = ("_left", "_path", "_right")

    def __init__(self, path: Path, left: SortedFileWriter, right: SortedFileWriter) -> None:
        self._path = path
        self._left = left
        self._right = right

    def put(self, key: bytes, value: bytes) -> None:
        compared(
            f"put({brief(key)})",
            lambda: self._left.put(key, value),
            lambda: self._right.put(key, value),
        )

    def finish(self) -> Path | None:
        something = compared(
            "finish()",
            lambda: self._left.finish() is not None,
            lambda: self._right.finish() is not None,
        )
        return self._path if something else None


def brief(*keys: bytes) -> str:
    """A few keys, each cut short: names are made for every call, agreeing or not."""
    shown = [repr(key[:40]) for key in keys[:8]]
    return ", ".join(shown if len(keys) <= 8 else [*shown, f"and {len(keys) - 8} more"])


def left_of(path: Path) -> Path:
    return path.with_name(path.name + ".left")


def right_of(path: Path) -> Path:
    return path.with_name(path.name + ".right")
