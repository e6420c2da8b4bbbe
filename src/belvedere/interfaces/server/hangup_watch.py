"""Cancels the statements of clients that are gone.

A thread that waits for its client sees by itself that the connection has ended. One that runs a
statement does not look, so a thread of its own looks at all connections once in a while: who has
hung up and is still here at the next look has a statement that runs.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

CHECK_INTERVAL_S = 1.0


class WatchedClient(NamedTuple):
    number: int
    connection: socket.socket
    cancel: Callable[[], None]


class HangupWatch:
    """The thread. `list_clients` tells whom to watch."""

    def __init__(self, list_clients: Callable[[], Iterable[WatchedClient]]) -> None:
        self._list_clients = list_clients
        self._closing = threading.Event()
        self._gone: set[int] = set()  # at the last look
        self._thread = threading.Thread(target=self._run, name="hang-up watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(CHECK_INTERVAL_S):
            self._cancel_statements()

    def _cancel_statements(self) -> None:
        by_descriptor = {one.connection.fileno(): one for one in self._list_clients()}
        by_descriptor.pop(-1, None)  # closed meanwhile
        poll = select.poll()
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLRDHUP)
        gone = [by_descriptor[descriptor] for descriptor, _ in poll.poll(0)]
        for one in gone:
            if one.number in self._gone:
                one.cancel()
        self._gone = {one.number for one in gone}
