"""The thread in which the calls of one connection run, one after another, so that none of them
blocks the event loop. It sleeps between calls and ends with the connection.

A task that is cancelled while it awaits a call cancels the statement, and waits until that has
ended: afterwards the connection can be used, and nothing runs that nobody awaits.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from belvedere.interfaces.exceptions import Error, InterfaceError

T = TypeVar("T")

CANCEL_EVERY_S = 0.05
"""How often a cancellation is repeated: the statement may not have begun."""


class CallWorker:
    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="belvedere aio")
        self._process = os.getpid()
        self._ended = False

    async def run_call(self, call: Callable[[], T], cancel: Callable[[], None] | None = None) -> T:
        """Run `call` in the thread. `cancel` stops it, from any thread."""
        if os.getpid() != self._process:  # where its thread is not
            raise InterfaceError(
                "the connection belongs to another process",
                sqlstate="08003",
                hint="connect in the forked process",
            )
        if self._ended:
            raise InterfaceError("connection is closed", sqlstate="08003")
        running = asyncio.get_running_loop().run_in_executor(self._executor, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await _wait_for_end(running, cancel)
            raise

    def end_thread(self) -> None:
        """Let the thread end after its last call; idempotent."""
        self._ended = True
        self._executor.shutdown(wait=False)


async def _wait_for_end(running: asyncio.Future[T], cancel: Callable[[], None] | None) -> None:
    while not running.done():
        if cancel is not None:
            await asyncio.to_thread(_cancel_quietly, cancel)
        await asyncio.wait([running], timeout=CANCEL_EVERY_S)
    if not running.cancelled():
        running.exception()  # the cancelled task has no use for it


def _cancel_quietly(cancel: Callable[[], None]) -> None:
    """Cancel; the statement's own end says more than a failure to cancel it."""
    try:
        cancel()
    except Error:
        return
