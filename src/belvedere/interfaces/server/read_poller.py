"""One thread that waits for many clients and answers their point reads.

A thread of its own for each client is what a statement needs that may wait, take long or be
canceled. Between reads of one row it costs more than the reads: every answer wakes another thread,
which first has to get the interpreter. So clients that send only such reads are lent to this
thread, when there are several of them:

    thread of a client   lends it after READS_BEFORE point reads in a row, and sleeps
    poller               waits for all lent clients at once, and answers their point reads
                         gives a client back with the first request that is anything else

Invariants: a client is used by one thread at a time. The poller never waits for a client: it
receives what is there, and what the kernel does not take of an answer goes back with the client.
What fails here is given back too: a read has no effect, so the usual way runs it again and tells.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from typing import Any, Protocol

from belvedere.errors import Error
from belvedere.interfaces.server.messages import HEADER_BYTES, BodyReader, build_completion
from belvedere.interfaces.server.portals import Portals
from belvedere.interfaces.server.prepared_rounds import PreparedRound
from belvedere.interfaces.server.row_encoder import RowFormat, make_text_row_format
from belvedere.session.context.result import Result
from belvedere.session.prepared_text import try_run_prepared_point_read
from belvedere.session.session import Session
from belvedere.session.simple_query import try_run_simple_point_read
from belvedere.session.statement.parameters import ParameterTypesDiffer

READS_BEFORE = 8
RECEIVE_BYTES = 16 * 1024
EVENTS_MAX = 64
ANSWER_BYTES_MAX = 32 * 1024
_QUERY = ord("Q")
_ROUND_STARTS = frozenset(b"PB")
_log = logging.getLogger("belvedere.server")


class PolledClient(Protocol):
    """A client between two requests."""

    @property
    def connection(self) -> socket.socket: ...

    def answer_point_read(self, data: bytes) -> bytes | None:
        """The answer to a request that is a point read; None: it is not, and nothing was done."""

    def continue_with(self, received: bytes, unsent: bytes) -> None:
        """What its own thread continues with: a request, or the rest of an answer."""


class _LentClient:
    __slots__ = ("client", "returned")

    def __init__(self, client: PolledClient) -> None:
        self.client = client
        self.returned = threading.Lock()
        self.returned.acquire()


class ReadPoller:
    """The thread, which starts with the first client that is lent."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._mutex = threading.Lock()  # guards the four below
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        self._epoll.register(self._stop, select.EPOLLIN)
        self._lent: dict[int, _LentClient] = {}
        self._thread: threading.Thread | None = None
        self._closed = False
        self._readers: set[PolledClient] = set()

    def note_reader(self, client: PolledClient) -> bool:
        """Note a client that sends only point reads; whether there are others, so that it is worth
        to lend it."""
        self._readers.add(client)
        return len(self._readers) > 1

    def forget_reader(self, client: PolledClient) -> None:
        self._readers.discard(client)

    def lend(self, client: PolledClient) -> None:
        """Return when the client has sent something that the poller does not answer."""
        descriptor = client.connection.fileno()
        lent = _LentClient(client)
        with self._mutex:
            if self._closed:
                return
            self._lent[descriptor] = lent
            self._epoll.register(descriptor, select.EPOLLIN)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="read poller", daemon=True)
                self._thread.start()
        lent.returned.acquire()

    def close(self) -> None:
        """Give all clients back and end the thread."""
        with self._mutex:
            self._closed = True
            stop, self._stop = self._stop, -1
        if stop < 0:
            return
        os.eventfd_write(stop, 1)
        if self._thread is not None:
            self._thread.join()
        self._epoll.close()
        os.close(stop)

    def abandon_after_fork(self) -> None:
        """A child has no such thread."""
        self._epoll.close()
        if self._stop >= 0:
            os.close(self._stop)

    def _run(self) -> None:
        try:
            while not self._closed:
                for descriptor, _ in self._epoll.poll(maxevents=EVENTS_MAX):
                    if descriptor in self._lent:
                        self._serve_request(descriptor)
        finally:
            with self._mutex:
                self._closed = True
            for descriptor in list(self._lent):
                self._give_back(descriptor)

    def _serve_request(self, descriptor: int) -> None:
        client = self._lent[descriptor].client
        connection = client.connection
        data = answer = b""
        sent = 0
        try:
            data = connection.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
            answer = client.answer_point_read(data) or b""
            if answer:
                sent = connection.send(answer, socket.MSG_DONTWAIT)
        except OSError:
            pass  # nothing was taken: its thread meets it again
        except Exception as error:  # noqa: BLE001 (its thread runs it again, and tells)
            _log.warning("point read failed: %r", error)
        if not answer:
            self._give_back(descriptor, data)
        elif sent < len(answer):
            self._give_back(descriptor, unsent=answer[sent:])

    def _give_back(self, descriptor: int, received: bytes = b"", unsent: bytes = b"") -> None:
        self._epoll.unregister(descriptor)
        lent = self._lent.pop(descriptor)
        self._readers.discard(lent.client)
        lent.client.continue_with(received, unsent)
        lent.returned.release()


# -- point reads ----------------------------------------------------------------------------------


class PointReader:
    """Answers the point reads of one client, while no transaction is open."""

    def __init__(self, session: Session, portals: Portals) -> None:
        self._session = session
        self._portals = portals

    def answer_request(self, data: bytes) -> bytes | None:
        """The answer up to ReadyForQuery; None: it is another request, and nothing was done."""
        kind = data[0] if data else None
        if kind == _QUERY:
            return self._answer_text(data)
        found = self._portals.read_round(data) if kind in _ROUND_STARTS else None
        return None if found is None else self.answer_round(*found)

    def answer_round(self, known: PreparedRound, values: tuple[Any, ...]) -> bytes | None:
        """The same for a round that was read."""
        try:
            result = try_run_prepared_point_read(self._session, known.statement, values)
        except (Error, ParameterTypesDiffer):  # the usual way meets and tells it
            return None
        if result is None:
            return None
        self._portals.close_portals()
        return _build_answer(result, *known.get_formats(self._session.settings.zone))

    def _answer_text(self, data: bytes) -> bytes | None:
        if int.from_bytes(data[1:HEADER_BYTES], "big") != len(data) - 1:
            return None
        body = BodyReader(data[HEADER_BYTES:])
        try:
            text = body.read_text()
            result = try_run_simple_point_read(self._session, text) if body.is_at_end else None
        except (Error, ParameterTypesDiffer):
            return None
        if result is None or result.fields is None:
            return None
        self._portals.close_portal("")
        row_format = make_text_row_format(
            result.fields, self._session.settings.zone, result.origins
        )
        return _build_answer(result, row_format.description, row_format)


def _build_answer(result: Result, prefix: bytes, row_format: RowFormat | None) -> bytes | None:
    rows = () if row_format is None else row_format.encode_rows(result.rows)
    completion = build_completion(result.tag, result.affected, len(result.rows))
    answer = b"".join((prefix, *rows, completion))
    return answer if len(answer) <= ANSWER_BYTES_MAX else None
