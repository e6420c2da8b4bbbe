"""A server for other processes of the same user, on a Unix socket in an open store's directory.

One thread accepts, one thread serves each connection. The socket can be opened by the owner of the
directory only (mode 0600). An unknown verb is answered with an error; a peer that breaks the
framing gets an error and is disconnected.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec

from belvedere import forks
from belvedere.database import Database
from belvedere.errors import Error, InvalidInput
from belvedere.interfaces.verbs.leases import LeaseTable
from belvedere.interfaces.verbs.peer import Arguments, Peer, ServedStore, Stream, Upload
from belvedere.remote.frames import (
    CLOSED,
    SOCKET_FILE,
    Failure,
    Reply,
    Request,
    failure_from_error,
    receive_message,
    send_message,
    socket_address,
)
from belvedere.session.context.shared_state import SharedState

PEER_TIMEOUT_S = 3600.0
IDLE_CHECK_S = 30.0
"""How often leases that peers no longer use are released."""
ACCEPT_AGAIN_S = 0.1
CANCEL_EVERY_S = 0.1
CLOSE_PATIENCE_S = 5.0
"""How long requests under way may take when the owner closes, before they are canceled."""
STAGING = "staging"
WORK_DIRECTORY = "pipeline"
"""The directory in which jobs that backfill views have theirs."""
JOBS_REMEMBERED = 1_000


class OwnerServer:
    """Serves the verbs of an open database until `close`."""

    def __init__(self, database: Database, shared: SharedState, directory: Path) -> None:
        jobs: deque[str] = deque(maxlen=JOBS_REMEMBERED)
        backfill = database.views.open_external_backfill(directory / WORK_DIRECTORY)
        self._serving = ServedStore(
            database, shared, directory, LeaseTable(database), jobs, backfill
        )
        shutil.rmtree(directory / STAGING, ignore_errors=True)  # parts of jobs that are no more
        self._path = directory / SOCKET_FILE
        self._path.unlink(missing_ok=True)
        self._connections: dict[socket.socket, Peer] = {}
        self._peers: dict[threading.Thread, Peer] = {}
        self._mutex = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            with socket_address(directory) as address:
                self._listener.bind(address)
        finally:
            os.umask(before)
        self._listener.listen(64)
        self._listener.settimeout(IDLE_CHECK_S)
        self._thread = threading.Thread(
            target=self._accept_connections, name="belvedere owner", daemon=True
        )
        forks.track_handle(self)
        self._thread.start()

    def abandon_after_fork(self) -> None:
        """A child's copies of the sockets would hide from peers that the owner is gone."""
        for inherited in (self._listener, *self._connections):
            inherited.close()

    def close(self) -> None:
        """Disconnect all peers: what they have asked is answered, new requests are refused. What
        takes longer than CLOSE_PATIENCE_S is canceled. Then release the leases."""
        self._serving.closing.set()
        _shut_down(self._listener)
        self._listener.close()
        self._thread.join()
        with self._mutex:
            peers = dict(self._peers)
            for connection, peer in self._connections.items():
                if not peer.answers_request:  # its thread waits for a request: it is to wake up
                    _shut_down(connection, socket.SHUT_RD)
        peers.pop(threading.current_thread(), None)
        deadline = time.monotonic() + CLOSE_PATIENCE_S
        for thread in peers:
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._mutex:
            for connection in self._connections:
                _shut_down(connection)
        for thread, peer in peers.items():
            while thread.is_alive():
                peer.cancel()  # again and again: a statement may be about to begin
                thread.join(CANCEL_EVERY_S)
        self._serving.leases.close()
        self._path.unlink(missing_ok=True)

    def _accept_connections(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                self._serving.leases.release_idle()
                continue
            except OSError:
                # Without descriptors or memory, or with a peer that has gone already: later again.
                if self._serving.closing.wait(ACCEPT_AGAIN_S):
                    return
                continue
            self._start_peer(connection)

    def _start_peer(self, connection: socket.socket) -> None:
        peer = Peer(self._serving)
        thread = threading.Thread(target=self._serve_peer, args=(connection, peer), daemon=True)
        with self._mutex:
            self._connections[connection] = peer
            self._peers[thread] = peer
        try:
            thread.start()
        except RuntimeError:  # the process may have no more threads: the peer sees its end
            self._forget_peer(connection, thread)

    def _forget_peer(self, connection: socket.socket, thread: threading.Thread) -> None:
        with self._mutex:
            self._connections.pop(connection, None)
            self._peers.pop(thread, None)
        connection.close()

    def _serve_peer(self, connection: socket.socket, peer: Peer) -> None:
        try:
            closing = self._serving.closing
            while (data := _wait_for_request(connection, peer)) is not None:
                peer.answers_request = True  # before the look at `closing`: see `close`
                if closing.is_set():
                    break
                self._answer_request(connection, peer, data)
                peer.answers_request = False
                if closing.is_set():
                    break
            if closing.is_set():
                send_message(connection, Reply(failure=Failure(CLOSED, "08006")))
        except Error as error:
            with contextlib.suppress(OSError):  # the peer may have disconnected
                send_message(connection, Reply(failure=failure_from_error(error)))
        except OSError:
            return
        finally:
            peer.close()
            self._forget_peer(connection, threading.current_thread())

    def _answer_request(self, connection: socket.socket, peer: Peer, data: bytes) -> None:
        try:
            request = msgspec.msgpack.decode(data, type=Request)
        except msgspec.MsgspecError as error:
            failure = Failure("not a request", "08P01", detail=str(error)[:200])
            send_message(connection, Reply(failure=failure))
            return
        upload = _UploadReader(connection) if request.upload else None
        try:
            answer = _run_verb(peer, request, upload)
            if not isinstance(answer, Stream):
                send_message(connection, Reply(value=answer))
                return
        except Exception as error:  # noqa: BLE001 (a fault here is reported to the peer too)
            if upload is not None:
                upload.drain()
            send_message(connection, Reply(failure=_make_failure(error)))
            if upload is not None and upload.is_broken:
                _shut_down(connection)
            return
        _send_stream(connection, answer)


def _wait_for_request(connection: socket.socket, peer: Peer) -> bytes | None:
    """A peer with a session may be idle as long as it lives: its end closes the socket."""
    connection.settimeout(None if peer.has_session else PEER_TIMEOUT_S)
    data = receive_message(connection)
    connection.settimeout(PEER_TIMEOUT_S)
    return data


def _run_verb(peer: Peer, request: Request, upload: _UploadReader | None) -> Any:
    from belvedere.interfaces.verbs.registry import VERBS  # heavy

    verb = VERBS.get(request.verb)
    if verb is None:
        raise InvalidInput("unknown request", sqlstate="0A000", verb=request.verb[:80])
    answer = verb(
        peer, Arguments(request.arguments, None if upload is None else upload.begin_upload())
    )
    if upload is not None:
        upload.drain()
    return answer


def _send_stream(connection: socket.socket, answer: Stream) -> None:
    """Send the batches, then a reply that says whether they are complete: a failure ends them."""
    from belvedere.remote.streams import FrameSink, write_batches  # heavy

    send_message(connection, Reply(value=answer.value, download=True))
    sink = FrameSink(connection)
    last = Reply()
    try:
        write_batches(sink, answer.schema, answer.batches)
    except (ConnectionError, TimeoutError):
        raise  # the peer is gone
    except Exception as error:  # noqa: BLE001 (a fault here is reported to the peer too)
        last = Reply(failure=_make_failure(error))
    finally:
        if isinstance(answer.batches, Generator):
            answer.batches.close()  # releases the lease also when the peer is gone
    sink.finish()
    send_message(connection, last)


def _make_failure(error: Exception) -> Failure:
    if isinstance(error, Error):
        return failure_from_error(error)
    if isinstance(error, ConnectionError | TimeoutError):
        raise error  # the peer is gone
    return Failure("the owner of the store failed", "XX000", detail=repr(error)[:1000])


class _UploadReader:
    """Reads the rows that a peer sends with a request."""

    def __init__(self, connection: socket.socket) -> None:
        from belvedere.remote.streams import FrameSource  # heavy

        self._source = FrameSource(connection)

    def begin_upload(self) -> Upload:
        from belvedere.remote.streams import read_batches  # heavy

        return Upload(*read_batches(self._source, full=True))

    def drain(self) -> None:
        self._source.drain()

    @property
    def is_broken(self) -> bool:
        return self._source.broken


def _shut_down(connection: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    with contextlib.suppress(OSError):  # a listener is never connected
        connection.shutdown(how)
