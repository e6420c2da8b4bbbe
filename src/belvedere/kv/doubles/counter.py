"""A batch store that counts what is read and written: the cost of a step, whatever the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from belvedere.kv.batch import BatchStore
from belvedere.kv.doubles.intercept import InterceptedStore, StoreCall

Answer = TypeVar("Answer")


class TouchedKeys(NamedTuple):
    """How many keys were asked for, or given by scans, and how many were written."""

    read: int
    written: int


class CountingStore(InterceptedStore):
    """Passes every call on, and counts its keys."""

    __slots__ = ("read", "written")

    def __init__(self, inner: BatchStore) -> None:
        super().__init__(inner)
        self.read = 0
        self.written = 0

    def intercept_call(self, call: StoreCall, act: Callable[[], Answer]) -> Answer:
        answer: Any = act()
        match call.name:
            case "get":
                self.read += 1
            case "multi_get" | "scan" | "scan_values":
                self.read += len(answer)
            case "write":
                self.written += len(call.arguments["batch"])
        return answer  # type: ignore[no-any-return]

    def take_counts(self) -> TouchedKeys:
        """What was counted since the last call."""
        found = TouchedKeys(self.read, self.written)
        self.read = self.written = 0
        return found
