"""Accepts clients on a Unix socket and on TCP, one thread each, until it is closed."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from belvedere import forks
from belvedere.catalog.model import OWNER_ROLE, Role
from belvedere.errors import Error, InvalidInput, Unavailable
from belvedere.interfaces.server.client import Client
from belvedere.interfaces.server.error_fields import build_error
from belvedere.interfaces.server.hangup_watch import HangupWatch, WatchedClient
from belvedere.interfaces.server.login import LoginPolicy, log_in
from belvedere.interfaces.server.messages import (
    MESSAGE_BYTES_MAX,
    ConnectionEnd,
    MessageReader,
    MessageWriter,
    build_message,
    pack_int32,
)
from belvedere.interfaces.server.read_poller import ReadPoller
from belvedere.interfaces.server.startup import (
    CancelRequest,
    StartupParameters,
    receive_startup,
)
from belvedere.session.context.shared_state import SharedState
from belvedere.session.rights.denials import permission_denied
from belvedere.session.rights.identity import SessionIdentity
from belvedere.session.session import Session

LOGIN_TIMEOUT_S = 60.0
MAX_CONNECTIONS = 500
BACKLOG = 1024
"""Connections that wait to be accepted; on a Unix socket one more is refused at once."""
ACCEPT_PAUSE_S = 0.1
"""After a connection could not be accepted, as when no file descriptor is left."""
END_PATIENCE_S = 5.0
"""How long clients are given to take their last answers when the server ends."""
_AUTHENTICATED = build_message(b"R", pack_int32(0))
_log = logging.getLogger("belvedere.server")


@dataclass(slots=True)
class ClientEntry:
    """A client that is being served: what cancels it, and what ends it."""

    reader: MessageReader
    key: bytes
    session: Session | None = None
    thread: threading.Thread = field(default_factory=threading.current_thread)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where clients connect: `.s.PGSQL.PORT` in a directory, and an address of TCP. Port 0 of an
    address is a free one."""

    directory: Path | None = None
    socket_port: int = 5432
    address: tuple[str, int] | None = None
    tls: ssl.SSLContext | None = None


class Listener:
    """The sockets of a server, and its clients."""

    def __init__(
        self,
        shared: SharedState,
        database: str,
        endpoints: Endpoints,
        policy: LoginPolicy | None = None,
        *,
        connections_max: int = MAX_CONNECTIONS,
    ) -> None:
        self._shared = shared
        self._databases = (database, "belvedere")
        self._connections_max = connections_max
        self._policy = policy or LoginPolicy()
        self._tls = endpoints.tls
        self._mutex = threading.Lock()
        self._clients: dict[int, ClientEntry] = {}
        self._next = 1
        self._closing = threading.Event()
        self._poller = ReadPoller()
        self._sockets: list[socket.socket] = []
        self.path: Path | None = None
        self.port: int | None = None
        if endpoints.directory is not None:
            self.path = endpoints.directory / f".s.PGSQL.{endpoints.socket_port}"
            self._sockets.append(_bind_unix(self.path))
        if endpoints.address is not None:
            self._sockets.append(_bind_tcp(endpoints.address))
            self.port = self._sockets[-1].getsockname()[1]
        self._threads = [
            threading.Thread(target=self._accept, args=(one,), name="belvedere server", daemon=True)
            for one in self._sockets
        ]
        forks.track_handle(self)
        for thread in self._threads:
            thread.start()
        self._hangups = HangupWatch(self._list_watched)

    def abandon_after_fork(self) -> None:
        """A child's copies of the sockets would take clients that nobody serves."""
        served = [client.reader.connection for client in self._clients.values()]
        for inherited in (*self._sockets, *served):
            inherited.close()
        self._poller.abandon_after_fork()

    def close(self) -> None:
        """Refuse new clients, end those that are there, and wait for them."""
        self._closing.set()
        self._hangups.close()
        for one in self._sockets:
            with contextlib.suppress(OSError):  # a listener is never connected
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join()
        with self._mutex:
            clients = list(self._clients.values())
        for client in clients:
            if client.session is not None:
                client.session.cancel()
            with contextlib.suppress(OSError):  # it may have gone by itself
                # Of the descriptor: its thread keeps using the TLS layer above it.
                socket.socket.shutdown(client.reader.connection, socket.SHUT_RD)
        deadline = time.monotonic() + END_PATIENCE_S
        for client in clients:
            client.thread.join(max(0.0, deadline - time.monotonic()))
            if client.thread.is_alive():  # it may be sending to a client that does not read
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(client.reader.connection, socket.SHUT_RDWR)
            client.thread.join()
        self._poller.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _list_watched(self) -> list[WatchedClient]:
        with self._mutex:
            return [
                WatchedClient(number, one.reader.connection, one.session.cancel)
                for number, one in self._clients.items()
                if one.session is not None
            ]

    def _accept(self, listener: socket.socket) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = listener.accept()
            except OSError as error:
                if not self._closing.is_set():
                    _log.warning("connection not accepted: %s", error)
                    self._closing.wait(ACCEPT_PAUSE_S)
                continue
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        reader, writer = MessageReader(connection), MessageWriter(connection)
        number = self._register(reader)
        try:
            connection.settimeout(LOGIN_TIMEOUT_S)
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
            reader.connection.close()

    def _register(self, reader: MessageReader) -> int:
        with self._mutex:
            number = self._next
            self._next += 1
            self._clients[number] = ClientEntry(reader, secrets.token_bytes(4))
        return number

    def _serve_client(self, number: int, reader: MessageReader, writer: MessageWriter) -> None:
        wanted = receive_startup(reader, writer, self._tls)
        if isinstance(wanted, CancelRequest):
            self._cancel(wanted)
            return
        self._require_room()
        role = log_in(self._policy, self._shared.host.catalog, wanted, reader, writer)
        self._require_database(wanted)
        session = self._open_session(number, role, wanted)
        client = self._clients[number]
        writer.add(_AUTHENTICATED)
        writer.add(build_message(b"K", pack_int32(number) + client.key))
        reader.limit = MESSAGE_BYTES_MAX
        reader.connection.settimeout(None)
        client_loop = Client(session, reader, writer, self._poller)
        try:
            client_loop.serve()
        finally:
            client_loop.close()

    def _open_session(self, number: int, role: Role | None, wanted: StartupParameters) -> Session:
        """A session of the role, with its settings and then those that the client asks for."""
        login = OWNER_ROLE if role is None else role.id
        identity = SessionIdentity(login, wanted.user, wanted.database)
        session = Session(self._shared, autocommit=True, identity=identity)
        session.notifications.process = number
        self._note_address(number, session)
        if role is not None:
            self._require_connect(session, role)
        with self._mutex:
            self._clients[number].session = session
        for name, value in {**(role.settings if role else {}), **wanted.settings}.items():
            session.settings.set(name, value)
        session.settings.keep_as_reset_values()
        return session

    def _note_address(self, number: int, session: Session) -> None:
        connection = self._clients[number].reader.connection
        if connection.family != socket.AF_UNIX:
            session.activity.address, session.activity.port = connection.getpeername()[:2]

    def _require_connect(self, session: Session, role: Role) -> None:
        rights = session.identity.find_rights(session.catalog)
        if not rights.has(session.catalog.head, "c"):
            raise permission_denied(session.catalog.head)
        if role.connection_limit >= 0 and not role.superuser:
            with self._mutex:
                others = [one.session for one in self._clients.values() if one.session is not None]
            own = sum(one.identity.login == role.id for one in others)
            if own >= role.connection_limit:
                raise Unavailable("too many connections for role", sqlstate="53300")

    def _require_room(self) -> None:
        if self._closing.is_set():
            raise Unavailable("the database system is shutting down", sqlstate="57P03")
        if len(self._clients) > self._connections_max:
            raise Unavailable("sorry, too many clients already", sqlstate="53300")

    def _require_database(self, wanted: StartupParameters) -> None:
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


def _bind_unix(path: Path) -> socket.socket:
    """A socket that only the system user who runs the server can open."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise _socket_error(str(path), error) from error
    finally:
        os.umask(before)
    listener.listen(BACKLOG)
    return listener


def _bind_tcp(address: tuple[str, int]) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        raise _socket_error(f"{address[0]}:{address[1]}", error) from error


def _socket_error(where: str, error: OSError) -> Unavailable:
    return Unavailable(
        "socket cannot be opened", sqlstate="58030", detail=str(error), address=where
    )
