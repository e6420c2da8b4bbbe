"""Client of the owner: the process that has a store open."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from belvedere import forks
from belvedere.errors import Unavailable
from belvedere.remote.frames import (
    CLOSED,
    SOCKET_FILE,
    Reply,
    Request,
    error_from_failure,
    receive_message,
    send_message,
    socket_address,
)

if TYPE_CHECKING:
    import pyarrow as pa

TIMEOUT_S = 3600.0
HUNG_UP = "the owner of the store hung up"


class SentRows(NamedTuple):
    """Rows that go with a request."""

    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]


def is_reachable(directory: Path) -> bool:
    """Whether some process has this store open and accepts connections."""
    connection = _connect_owner(directory) if (directory / SOCKET_FILE).is_socket() else None
    if connection is None:
        return False
    connection.close()
    return True


def ask_owner_once(directory: Path, request: Request, timeout_s: float = TIMEOUT_S) -> Any:
    """Send one request on a connection of its own; returns the owner's answer or raises its
    error."""
    with OwnerConnection(directory, timeout_s) as conversation:
        return conversation.ask_owner(request)


class OwnerConnection:
    """One connection to the owner. State that the owner has for it (a session, a transaction) ends
    with it. `broken`: an exchange did not come to its end, so no other can follow."""

    def __init__(self, directory: Path, timeout_s: float | None = TIMEOUT_S) -> None:
        connection = _connect_owner(directory)
        if connection is None:
            raise Unavailable(
                "nobody answers for the store",
                sqlstate="08001",
                hint="open it with belvedere.connect, or let a belvedere command do it",
                path=str(directory),
            )
        connection.settimeout(timeout_s)
        self._connection = connection
        self.broken = False
        forks.track_handle(self)

    def abandon_after_fork(self) -> None:
        self._connection.close()

    def ask_owner(self, request: Request) -> Any:
        with self._exchange():
            send_message(self._connection, request)
            reply = self._receive_reply()
        return _value_or_error(reply)

    def fetch(self, request: Request) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The answer of a verb that streams; the batches must be read to the end, where a failure
        of the owner is raised."""
        _, rows = self.call_verb(request)
        if rows is None:
            raise Unavailable("the owner sent no rows", sqlstate="08P01")
        return rows

    def call_verb(
        self, request: Request
    ) -> tuple[Any, tuple[pa.Schema, Iterator[pa.RecordBatch]] | None]:
        """The answer of a verb that may stream: its value, and the rows or None."""
        self.send_request(request)
        return self.receive_answer()

    def send_request(self, request: Request, rows: SentRows | None = None) -> None:
        """Begin an exchange; `receive_answer` must follow."""
        with self._exchange(ends=False):
            if rows is None:
                send_message(self._connection, request)
                return
            from belvedere.remote.streams import send_batches  # heavy

            send_message(self._connection, msgspec.structs.replace(request, upload=True))
            send_batches(self._connection, rows.schema, rows.batches)

    def wait_for_answer(self) -> None:
        """Return when something has arrived. It may be interrupted, and called again."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        poll.poll()

    def receive_answer(self) -> tuple[Any, tuple[pa.Schema, Iterator[pa.RecordBatch]] | None]:
        with self._exchange():
            reply = self._receive_reply()
        if reply.failure is not None or not reply.download:
            return _value_or_error(reply), None
        from belvedere.remote.streams import receive_batches  # heavy

        with self._exchange(ends=False):
            schema, batches = receive_batches(self._connection)
        return reply.value, (schema, self._download_batches(batches))

    def put(self, request: Request, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Any:
        """Send a request with rows; returns the owner's answer."""
        self.send_request(request, SentRows(schema, batches))
        return self.receive_answer()[0]

    def _download_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while True:
            with self._exchange(ends=False):
                batch = next(batches, None)
            if batch is None:
                break
            yield batch
        with self._exchange():
            reply = self._receive_reply()
        _value_or_error(reply)

    def _receive_reply(self) -> Reply:
        data = receive_message(self._connection)
        if data is None:
            raise Unavailable(HUNG_UP, sqlstate="08006")
        reply = msgspec.msgpack.decode(data, type=Reply)
        if reply.failure is not None and reply.failure.message == CLOSED:
            raise error_from_failure(reply.failure)  # the last reply: the exchange stays broken
        return reply

    @contextlib.contextmanager
    def _exchange(self, *, ends: bool = True) -> Iterator[None]:
        """A part of an exchange: broken unless it, and with `ends` the exchange, is complete."""
        self.broken = True
        try:
            yield
        except OSError as error:
            with contextlib.suppress(OSError):
                self._receive_reply()  # what the owner said before it hung up
            raise Unavailable(HUNG_UP, sqlstate="08006", detail=str(error)) from error
        self.broken = not ends

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _value_or_error(reply: Reply) -> Any:
    if reply.failure is not None:
        raise error_from_failure(reply.failure)
    return reply.value


def _connect_owner(directory: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(directory) as address:
            connection.connect(address)
    except OSError:
        connection.close()
        return None
    return connection
