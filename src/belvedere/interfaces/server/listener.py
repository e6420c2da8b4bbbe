"""Accepts clients on a Unix socket, one thread each, until it is closed.

Only the system user who runs the server may connect: the socket has mode 0600, and the kernel says
who is at the other end. He is the owner of the database, under his own name.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pwd
import secrets
import socket
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path

from belvedere.errors import Error, InvalidInput, Unavailable
from belvedere.interfaces.server.client import Client
from belvedere.interfaces.server.error_fields import build_error
from belvedere.interfaces.server.messages import (
    MESSAGE_BYTES_MAX,
    ConnectionEnd,
    MessageReader,
    MessageWriter,
    build_message,
    pack_int32,
)
from belvedere.interfaces.server.startup import (
    CancelRequest,
    StartupParameters,
    receive_startup,
)
from belvedere.session.context.shared_state import SharedState
from belvedere.session.session import Session

LOGIN_TIMEOUT_S = 60.0
MAX_CONNECTIONS = 500
_AUTHENTICATED = build_message(b"R", pack_int32(0))
_CREDENTIALS = struct.Struct("3i")
_log = logging.getLogger("belvedere.server")


@dataclass(slots=True)
class ClientEntry:
    """A client that is being served: what cancels it, and what ends it."""

    connection: socket.socket
    key: bytes
    session: Session | None = None
    thread: threading.Thread = field(default_factory=threading.current_thread)


class Listener:
    """The server's socket in `directory`, and its clients."""

    def __init__(
        self,
        shared: SharedState,
        database: str,
        directory: Path,
        port: int = 5432,
        *,
        connections_max: int = MAX_CONNECTIONS,
    ) -> None:
        self._shared = shared
        self._databases = (database, "belvedere")
        self._connections_max = connections_max
        self.path = directory / f".s.PGSQL.{port}"
        self._mutex = threading.Lock()
        self._clients: dict[int, ClientEntry] = {}
        self._next = 1
        self._closing = False
        self._listener = _bind_socket(self.path)
        self._thread = threading.Thread(target=self._accept, name="belvedere server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Refuse new clients, end those that are there, and wait for them."""
        self._closing = True
        with contextlib.suppress(OSError):  # a listener is never connected
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        with self._mutex:
            clients = list(self._clients.values())
        for client in clients:
            if client.session is not None:
                client.session.cancel()
            with contextlib.suppress(OSError):  # it may have gone by itself
                client.connection.shutdown(socket.SHUT_RD)
        for client in clients:
            client.thread.join()
        self.path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        reader, writer = MessageReader(connection), MessageWriter(connection)
        number = self._register(connection)
        try:
            connection.settimeout(LOGIN_TIMEOUT_S)
            self._serve_client(number, reader, writer)
        except Error as error:
            _log.info("connection ended: %s", error)
            with contextlib.suppress(OSError):  # the client may have gone
                writer.add(build_error(error, fatal=True))
                writer.flush()
        except (OSError, ConnectionEnd):
            _log.info("connection lost")
        finally:
            with self._mutex:
                client = self._clients.pop(number)
            if client.session is not None:
                client.session.close()
            connection.close()

    def _register(self, connection: socket.socket) -> int:
        with self._mutex:
            number = self._next
            self._next += 1
            self._clients[number] = ClientEntry(connection, secrets.token_bytes(4))
        return number

    def _serve_client(self, number: int, reader: MessageReader, writer: MessageWriter) -> None:
        wanted = receive_startup(reader, writer, None)
        if isinstance(wanted, CancelRequest):
            self._cancel(wanted)
            return
        self._admit(wanted, reader.connection)
        session = Session(self._shared, autocommit=True)
        client = self._clients[number]
        client.session = session
        for name, value in wanted.settings.items():
            session.settings.set(name, value)
        session.settings.restore_after_transaction(committed=True)
        writer.add(_AUTHENTICATED)
        writer.add(build_message(b"K", pack_int32(number) + client.key))
        reader.limit = MESSAGE_BYTES_MAX
        reader.connection.settimeout(None)
        Client(session, reader, writer).serve()

    def _admit(self, wanted: StartupParameters, connection: socket.socket) -> None:
        if self._closing:
            raise Unavailable("the database system is shutting down", sqlstate="57P03")
        if len(self._clients) > self._connections_max:
            raise Unavailable("sorry, too many clients already", sqlstate="53300")
        if wanted.user != _find_peer_name(connection):
            raise InvalidInput("peer authentication failed", sqlstate="28000", user=wanted.user)
        if wanted.database not in self._databases:
            raise InvalidInput(
                "database does not exist",
                sqlstate="3D000",
                database=wanted.database,
                hint=f"connect to {self._databases[0]}",
            )

    def _cancel(self, wanted: CancelRequest) -> None:
        with self._mutex:
            client = self._clients.get(wanted.process)
        if client is not None and client.session is not None:
            if secrets.compare_digest(client.key, wanted.key):
                client.session.cancel()


def _bind_socket(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise Unavailable(
            "socket cannot be opened", sqlstate="58030", detail=str(error), path=str(path)
        ) from error
    finally:
        os.umask(before)
    listener.listen(128)
    return listener


def _find_peer_name(connection: socket.socket) -> str | None:
    """The name of the system user at the other end, when he is the one who runs the server."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(data)
    return pwd.getpwuid(user).pw_name if user == os.getuid() else None
