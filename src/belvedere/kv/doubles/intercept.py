"""A batch store that wraps another one and passes every call through one method.

The recorder and the faults are each one `around` method. A scan is one call per batch, because that
is when the inner store is asked; its end is a batch of no rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from belvedere.kv.batch import SCAN_BATCH_ROWS, BatchStore, Pair, SortedFileWriter, Write

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a store method: its name and its arguments by name."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


class InterceptedStore(ABC):
    """A BatchStore that hands every call to `around`, which may or may not `act`."""

    __slots__ = ("inner",)

    def __init__(self, inner: BatchStore) -> None:
        self.inner = inner

    @abstractmethod
    def around(self, call: Call, act: Callable[[], Answer]) -> Answer:
        """Answer `call`; `act` asks the inner store."""

    def get(self, key: bytes) -> bytes | None:
        return self.around(Call("get", {"key": key}), lambda: self.inner.get(key))

    @property
    def bare_get(self) -> Callable[[bytes], bytes | None]:
        return self.get

    def failed(self, error: Exception) -> Exception:
        return error

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self.around(Call("multi_get", {"keys": keys}), lambda: self.inner.multi_get(keys))

    def scan(
        self,
        start: bytes,
        end: bytes | None,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        arguments = {"start": start, "end": end, "reverse": reverse, "limit": limit}
        batches = self.inner.scan(start, end, reverse=reverse, limit=limit, batch_rows=batch_rows)
        return self._batches(Call("scan", arguments), batches)

    def scan_values(
        self, start: bytes, end: bytes | None, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        batches = self.inner.scan_values(start, end, batch_rows=batch_rows)
        return self._batches(Call("scan_values", {"start": start, "end": end}), batches)

    def write(self, batch: Sequence[Write], *, sync: bool = False) -> None:
        arguments = {"batch": batch, "sync": sync}
        self.around(Call("write", arguments), lambda: self.inner.write(batch, sync=sync))

    def delete_range(self, start: bytes, end: bytes) -> None:
        arguments = {"start": start, "end": end}
        self.around(Call("delete_range", arguments), lambda: self.inner.delete_range(start, end))

    def sync(self) -> None:
        self.around(Call("sync"), self.inner.sync)

    def checkpoint(self, directory: Path) -> None:
        arguments = {"directory": directory}
        self.around(Call("checkpoint", arguments), lambda: self.inner.checkpoint(directory))

    def ingest(self, files: Sequence[Path]) -> None:
        self.around(Call("ingest", {"files": files}), lambda: self.inner.ingest(files))

    def sorted_file_writer(self, path: Path) -> SortedFileWriter:
        return self.around(
            Call("sorted_file_writer", {"path": path}), lambda: self.inner.sorted_file_writer(path)
        )

    def close(self) -> None:
        self.around(Call("close"), self.inner.close)

    def _batches(self, call: Call, batches: Iterator[list[Answer]]) -> Iterator[list[Answer]]:
        def next_batch() -> list[Answer]:
            return next(batches, [])

        while batch := self.around(call, next_batch):
            yield batch
