"""A batch store that wraps another one and passes every call through one method.

The recorder and the faults are each one `intercept_call` method. A scan is one call per batch,
because each batch is one read of the inner store; its end is a batch of no rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from belvedere.kv.batch import (
    SCAN_BATCH_ROWS,
    BatchStore,
    KeySpan,
    Pair,
    SortedFileWriter,
    Write,
    fetch_by_scan,
)

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class StoreCall:
    """One call of a store method: its name and its arguments by name."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


class InterceptedStore(ABC):
    """A BatchStore that hands every call to `intercept_call`, which may or may not `act`."""

    __slots__ = ("inner",)

    def __init__(self, inner: BatchStore) -> None:
        self.inner = inner

    @abstractmethod
    def intercept_call(self, call: StoreCall, act: Callable[[], Answer]) -> Answer:
        """Answer `call`; `act` asks the inner store."""

    def get(self, key: bytes) -> bytes | None:
        return self.intercept_call(StoreCall("get", {"key": key}), lambda: self.inner.get(key))

    @property
    def bare_get(self) -> Callable[[bytes], bytes | None]:
        return self.get

    def map_error(self, error: Exception) -> Exception:
        return error

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self.intercept_call(
            StoreCall("multi_get", {"keys": keys}), lambda: self.inner.multi_get(keys)
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
        arguments = {"start": start, "end": end, "reverse": reverse, "limit": limit}
        batches = self.inner.scan(start, end, reverse=reverse, limit=limit, batch_rows=batch_rows)
        return self._intercept_batches(StoreCall("scan", arguments), batches)

    def fetch_range(
        self, start: bytes, end: bytes, limit: int, *, reverse: bool = False
    ) -> list[Pair]:
        return fetch_by_scan(self, start, end, limit, reverse)

    def scan_values(
        self, start: bytes, end: bytes | None, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        batches = self.inner.scan_values(start, end, batch_rows=batch_rows)
        return self._intercept_batches(
            StoreCall("scan_values", {"start": start, "end": end}), batches
        )

    def write(
        self, batch: Sequence[Write], *, sync: bool = False, cleared: Sequence[KeySpan] = ()
    ) -> None:
        arguments = {"batch": batch, "sync": sync, "cleared": cleared}
        self.intercept_call(
            StoreCall("write", arguments),
            lambda: self.inner.write(batch, sync=sync, cleared=cleared),
        )

    def delete_range(self, start: bytes, end: bytes) -> None:
        arguments = {"start": start, "end": end}
        self.intercept_call(
            StoreCall("delete_range", arguments), lambda: self.inner.delete_range(start, end)
        )

    def sync(self) -> None:
        self.intercept_call(StoreCall("sync"), self.inner.sync)

    def checkpoint(self, directory: Path) -> None:
        arguments = {"directory": directory}
        self.intercept_call(
            StoreCall("checkpoint", arguments), lambda: self.inner.checkpoint(directory)
        )

    def ingest(self, files: Sequence[Path]) -> None:
        self.intercept_call(StoreCall("ingest", {"files": files}), lambda: self.inner.ingest(files))

    def sorted_file_writer(self, path: Path) -> SortedFileWriter:
        return self.intercept_call(
            StoreCall("sorted_file_writer", {"path": path}),
            lambda: self.inner.sorted_file_writer(path),
        )

    def close(self) -> None:
        self.intercept_call(StoreCall("close"), self.inner.close)

    def _intercept_batches(
        self, call: StoreCall, batches: Iterator[list[Answer]]
    ) -> Iterator[list[Answer]]:
        def next_batch() -> list[Answer]:
            return next(batches, [])

        while batch := self.intercept_call(call, next_batch):
            yield batch
