"""Waiting for a client that also waits for notifications.

A thread that waits for its client sleeps in the kernel. One whose session listens waits for a
second descriptor as well, which the thread of any other session makes readable.
"""

from __future__ import annotations

import contextlib
import os
import select
import ssl
import threading

from belvedere.interfaces.server.messages import MessageReader


class Wakeup:
    """The descriptor, opened when it is first needed: most clients never listen."""

    def __init__(self, reader: MessageReader) -> None:
        self._reader = reader
        self._mutex = threading.Lock()
        self._descriptor: int | None = None

    def wake(self) -> None:
        """Make `wait_for_client` return; from any thread."""
        with self._mutex:
            if self._descriptor is not None:
                os.eventfd_write(self._descriptor, 1)

    def open(self) -> None:
        with self._mutex:
            if self._descriptor is None:
                self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def close(self) -> None:
        with self._mutex:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def wait_for_client(self) -> bool:
        """Wait until there is a message of the client to read; False: woken before."""
        connection = self._reader.connection
        if not self._reader.is_empty or (
            isinstance(connection, ssl.SSLSocket) and connection.pending()
        ):
            return True
        assert self._descriptor is not None
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        poll.register(self._descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll()]
        with contextlib.suppress(BlockingIOError):  # it was the client
            os.eventfd_read(self._descriptor)
        return connection.fileno() in ready
