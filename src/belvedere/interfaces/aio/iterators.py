"""Streams and subscriptions as asynchronous iterators."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from belvedere.interfaces.aio.worker import CallWorker
from belvedere.interfaces.values import Description

if TYPE_CHECKING:
    from belvedere.interfaces.client.row_stream import RowStream
    from belvedere.session.materialized.change_stream import Subscription, ViewChange

ROWS_PER_CALL = 256
POLL_S = 0.25
"""The longest wait of one call, after which a cancelled task is noticed."""


class AsyncStream:
    """Rows of a query as they are computed; an asynchronous iterator and context manager."""

    def __init__(self, worker: CallWorker, stream: RowStream, cancel: Callable[[], None]) -> None:
        self._worker = worker
        self._stream = stream
        self._cancel = cancel
        self._rows: deque[Any] = deque()
        self._ended = False

    @property
    def description(self) -> list[Description]:
        return self._stream.description

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if not self._rows and not self._ended:
            self._rows.extend(await self._worker.run_call(self._take_rows, self._cancel))
            self._ended = not self._rows
        if not self._rows:
            raise StopAsyncIteration
        return self._rows.popleft()

    def _take_rows(self) -> list[Any]:
        return list(islice(self._stream, ROWS_PER_CALL))

    async def close(self) -> None:
        self._rows.clear()
        self._ended = True
        await self._worker.run_call(self._stream.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncSubscription:
    """The changes of a table or view; an asynchronous iterator and context manager. It waits in a
    thread of its own, so that its connection stays free."""

    def __init__(self, subscription: Subscription, timeout_s: float | None) -> None:
        self._subscription = subscription
        self._worker = CallWorker()
        self._timeout_s = timeout_s
        self._ready: deque[ViewChange] = deque()
        self.position = subscription.position

    def __aiter__(self) -> AsyncIterator[ViewChange]:
        return self

    async def __anext__(self) -> ViewChange:
        """The next change; ends when there was none during the timeout."""
        if not self._ready:
            self._ready.extend(await self.poll(self._timeout_s))
        if not self._ready:
            raise StopAsyncIteration
        change = self._ready.popleft()
        if not self._ready:
            self.position = self._subscription.position
        elif self._ready[0].position > change.position:
            self.position = change.position
        return change

    async def poll(self, timeout_s: float | None = 0.0) -> list[ViewChange]:
        """All available changes; waits for some when there are none yet, without limit for None."""
        left = timeout_s
        while True:
            wait_s = POLL_S if left is None else min(left, POLL_S)
            found = await self._worker.run_call(partial(self._subscription.poll, wait_s))
            left = None if left is None else left - wait_s
            if found or (left is not None and left <= 0):
                return found

    async def close(self) -> None:
        self._subscription.close()
        self._worker.end_thread()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
