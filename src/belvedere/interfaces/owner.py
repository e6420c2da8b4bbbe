"""The door for other processes of the same user: a Unix socket in the directory of an open store.

One thread accepts, one thread serves each connection. The socket can be opened by the owner of the
directory only (mode 0600). Verbs are a table; a peer that sends anything else gets one error, and a
peer that breaks the framing is hung up on.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from belvedere.database import Database
from belvedere.errors import Error, InvalidInput
from belvedere.remote.frames import (
    SOCKET_FILE,
    Failure,
    Reply,
    Request,
    receive,
    send,
    socket_address,
)

PEER_TIMEOUT_S = 60.0
Arguments = dict[str, str | int | None]
Verb = Callable[[Database, Arguments], str | int | None]


def _back_up(database: Database, arguments: Arguments) -> int:
    destination = arguments.get("destination")
    if not isinstance(destination, str) or not os.path.isabs(destination):
        raise InvalidInput("backup needs an absolute destination", sqlstate="22023")
    return database.back_up(Path(destination))


def _position(database: Database, arguments: Arguments) -> int:
    return database.position


VERBS: dict[str, Verb] = {"backup": _back_up, "position": _position}


class Owner:
    """Answers for an open database until `close`."""

    def __init__(self, database: Database, directory: Path) -> None:
        self._database = database
        self._path = directory / SOCKET_FILE
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            with socket_address(directory) as address:
                self._listener.bind(address)
        finally:
            os.umask(before)
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._accept, name="belvedere owner", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # not connected is what a listener always is
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(PEER_TIMEOUT_S)
            try:
                while (data := receive(connection)) is not None:
                    send(connection, self._answer(data))
            except (Error, OSError):
                return  # a peer that breaks the framing, or is gone, is owed nothing

    def _answer(self, data: bytes) -> Reply:
        try:
            request = msgspec.msgpack.decode(data, type=Request)
            verb = VERBS.get(request.verb)
            if verb is None:
                raise InvalidInput("unknown request", sqlstate="0A000", verb=request.verb[:80])
            return Reply(value=verb(self._database, request.arguments))
        except msgspec.MsgspecError as error:
            return Reply(failure=Failure("not a request", "08P01", detail=str(error)[:200]))
        except Error as error:
            return Reply(failure=Failure(error.message, error.sqlstate, error.detail, error.hint))
