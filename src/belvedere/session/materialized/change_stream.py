"""What every subscription is: changes in order of positions, iterated or polled.

A subclass says where changes come from: the open store (`StoreSubscription`), or the process that
has it open (`interfaces.client.subscriptions.RemoteSubscription`).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

from belvedere import forks
from belvedere.errors import Error
from belvedere.types import Row


class ViewChange(NamedTuple):
    """`weight` copies of `row` were inserted into the view or table at `position`; deleted if
    negative."""

    position: int
    row: Row
    weight: int


class Subscription(ABC):
    """To a view or a table. A later one can resume from `position`."""

    def __init__(
        self, position: int, timeout_s: float | None, shown: Callable[[Error], Exception]
    ) -> None:
        """`shown` converts an error to the exception that the door raises."""
        self.position = position
        self._shown = shown
        self._timeout_s = timeout_s
        self._ready: deque[ViewChange] = deque()
        self._read = position
        self._closed = threading.Event()
        forks.track_handle(self, shown)

    def __iter__(self) -> Iterator[ViewChange]:
        return self

    def __next__(self) -> ViewChange:
        """The next change; ends when there was none during the timeout, or after `close`."""
        if not self._ready:
            self._ready.extend(self._wait_for_changes(self._timeout_s))
        if not self._ready or self._closed.is_set():
            self._release_source()
            raise StopIteration
        change = self._ready.popleft()
        if not self._ready:
            self.position = self._read
        elif self._ready[0].position > change.position:
            self.position = change.position
        return change

    def poll(self, timeout_s: float | None = 0.0) -> list[ViewChange]:
        """All available changes; waits for some when there are none yet, without limit for None."""
        found = [*self._ready, *([] if self._ready else self._wait_for_changes(timeout_s))]
        self._ready.clear()
        self.position = self._read
        return found

    def close(self) -> None:
        """End the subscription; a waiting iteration or `poll` returns without changes."""
        self._closed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._release_source()

    @abstractmethod
    def _wait_for_changes(self, timeout_s: float | None) -> list[ViewChange]:
        """The changes after the last position read; none when the time is over or it was closed."""

    @abstractmethod
    def _release_source(self) -> None:
        """Give up what the changes were read from, in the thread that read them."""
