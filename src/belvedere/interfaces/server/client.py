"""One client: reads its messages and answers each, on the thread of its connection.

    simple      Query -> (RowDescription DataRow* CommandComplete)* ReadyForQuery
    extended    Parse Bind Describe Execute Close Flush .. Sync -> ReadyForQuery

After an error of the extended protocol everything up to the next Sync is skipped. What is executed
before a Sync is one transaction: a single Execute that a Sync follows commits by itself, on the
single-row fast path where there is one; several share a transaction that the Sync commits.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from belvedere.errors import Error, InvalidInput, Unavailable
from belvedere.interfaces.server.copy_streams import ClientCopies
from belvedere.interfaces.server.error_fields import build_error, build_notice
from belvedere.interfaces.server.messages import (
    BodyReader,
    ConnectionEnd,
    MessageReader,
    MessageWriter,
    build_completion,
    build_message,
    build_parameter_status,
    build_ready,
    pack_int16,
    pack_int32,
    pack_text,
)
from belvedere.interfaces.server.portals import Portal, Portals, read_portal
from belvedere.interfaces.server.prepared_rounds import (
    BIND_COMPLETE,
    NO_DATA,
    PARSE_COMPLETE,
    PreparedRound,
)
from belvedere.interfaces.server.read_poller import READS_BEFORE, PointReader, ReadPoller
from belvedere.interfaces.server.row_encoder import RowFormat, make_row_format, make_text_row_format
from belvedere.interfaces.server.wakeup import Wakeup
from belvedere.plan.fields import ColumnOrigins, Fields
from belvedere.session.context.result import Result
from belvedere.session.prepared_text import PreparedText, prepare_text, run_prepared_text
from belvedere.session.session import Session
from belvedere.session.simple_query import run_simple_query
from belvedere.values.type_oids import find_oid, find_parameter_type

T = TypeVar("T")
REPORTED_SETTINGS = {
    "server_version": "server_version",
    "server_encoding": "server_encoding",
    "client_encoding": "client_encoding",
    "application_name": "application_name",
    "datestyle": "DateStyle",
    "timezone": "TimeZone",
    "intervalstyle": "IntervalStyle",
    "integer_datetimes": "integer_datetimes",
    "is_superuser": "is_superuser",
    "session_authorization": "session_authorization",
    "standard_conforming_strings": "standard_conforming_strings",
    "default_transaction_read_only": "default_transaction_read_only",
}
"""Settings whose value a client is told, at the start and when it changes."""
TOKEN_PARAMETER = "belvedere.token"
_TERMINATE, _EXECUTE, _SYNC, _QUERY = map(ord, "XESQ")
_ROUND_STARTS = frozenset(b"PB")
_NO_BODY = BodyReader(b"")
_CLOSE_COMPLETE = build_message(b"3")
_SUSPENDED = build_message(b"s")
_EMPTY_QUERY = build_message(b"I")
_READY_IDLE = build_ready(b"I")


class Client:
    """A client that has logged in. `serve` returns when it says goodbye."""

    def __init__(
        self, session: Session, reader: MessageReader, writer: MessageWriter, poller: ReadPoller
    ) -> None:
        self.session = session
        self._poller = poller
        self._point_reads = 0  # in a row
        self._reader = reader
        self._writer = writer
        self._portals = Portals(session)
        self._point_reader = PointReader(session, self._portals)
        self._skipping = False  # up to the next Sync, after an error of the extended protocol
        self._shown_settings: dict[str, str] = {}
        self._shown_version = -1
        self._shown_position = -1
        self._notice_count = session.notices.total_count
        session.sends_streams = True
        self._copies = ClientCopies(session.copy_streams, reader, writer)
        self._wakeup = Wakeup(reader)
        session.notifications.on_arrival = self._wakeup.wake

    def close(self) -> None:
        self._poller.forget_reader(self)
        self.session.notifications.close()
        self._wakeup.close()

    def serve(self) -> None:
        self._add_ready()
        self._writer.flush()
        while True:
            if self._point_reads >= READS_BEFORE and self._is_idle():
                self._lend_to_poller()
            self._await_client(self._reader.receive_if_empty)
            if self._reader.peek_kind() in _ROUND_STARTS and self._answer_round():
                continue
            kind, body = self._await_client(self._reader.read_message)
            if kind == _TERMINATE:
                return
            handle = _HANDLERS.get(kind)
            if handle is None:
                raise InvalidInput("unknown message type", sqlstate="08P01", type=chr(kind))
            if kind != _QUERY:
                self._end_point_reads()
            if self._skipping and kind != _SYNC:
                continue
            self._attempt(kind, partial(handle, self), BodyReader(body))

    def _attempt(self, kind: int, answer: Callable[[T], None], given: T) -> None:
        """Answer a message, or tell the client why not."""
        try:
            answer(given)
        except Error as error:
            self._answer_error(error, kind)
        except UnicodeDecodeError as error:
            self._answer_error(_encoding_error(error), kind)
        except (OSError, MemoryError, ConnectionEnd):
            raise
        except Exception as error:  # noqa: BLE001 (a bug is told to the client, others go on)
            self._answer_error(error, kind)

    def _await_client(self, receive: Callable[[], T]) -> T:
        """What the client sends next; 25P03 when a transaction has been idle for too long."""
        if self.session.transactions.open is None:
            if self.session.notifications.channels:
                self._send_notifications_until_message()
            return receive()
        wait_ms = self.session.settings.get("idle_in_transaction_session_timeout")
        if not wait_ms:
            return receive()
        self._reader.connection.settimeout(wait_ms / 1000)
        try:
            return receive()
        except TimeoutError:
            raise Unavailable(
                "terminating connection due to idle-in-transaction timeout", sqlstate="25P03"
            ) from None
        finally:
            self._reader.connection.settimeout(None)

    def _send_notifications_until_message(self) -> None:
        self._wakeup.open()
        while True:
            # Looked for after the descriptor is there: what comes later wakes it.
            self._add_notifications()
            self._writer.flush()
            if self._wakeup.wait_for_client():
                return

    # -- point reads --------------------------------------------------------------------------

    @property
    def connection(self) -> socket.socket:
        return self._reader.connection

    def _is_idle(self) -> bool:
        """Whether a request would be the first thing to be done for this client."""
        session = self.session
        return (
            self._reader.is_empty
            and session.transactions.open is None
            and not self._skipping
            and not session.notifications.channels
            and not isinstance(self.connection, ssl.SSLSocket)
        )

    def _lend_to_poller(self) -> None:
        if self._poller.note_reader(self):
            self._poller.lend(self)
            self._end_point_reads()
            self._writer.flush()

    def _count_point_read(self, result: Result) -> None:
        if result.is_point_read:
            self._point_reads += 1
        else:
            self._end_point_reads()

    def _end_point_reads(self) -> None:
        if self._point_reads:
            self._point_reads = 0
            self._poller.forget_reader(self)

    def continue_with(self, received: bytes, unsent: bytes) -> None:
        self._reader.put_data(received)
        if unsent:
            self._writer.add(unsent)

    def answer_point_read(self, data: bytes) -> bytes | None:
        answer = self._point_reader.answer_request(data)
        if answer is None:
            return None
        self._add_point(answer)
        return self._writer.take()

    def _add_point(self, answer: bytes) -> None:
        self._writer.add(answer)
        session = self.session
        if (
            session.settings.version == self._shown_version
            and session.transactions.position == self._shown_position
            and not session.notifications.channels
        ):
            self._writer.add(_READY_IDLE)
        else:
            self._add_ready()

    # -- a round ------------------------------------------------------------------------------

    def _answer_round(self) -> bool:
        """Answer (Parse and) Bind to Sync of a statement at once, if that is what has arrived."""
        found = None if self._skipping else self._portals.read_round(self._reader.peek_data())
        if found is None:
            return False
        self._reader.skip_data()
        self.session.autocommit = True
        point = self._point_reader.answer_round(*found)
        if point is not None:
            self._point_reads += 1
            self._add_point(point)
            self._writer.flush()
            return True
        self._end_point_reads()
        self._attempt(_EXECUTE, self._run_round, found)
        self._attempt(_SYNC, self._handle_sync, _NO_BODY)
        return True

    def _run_round(self, found: tuple[PreparedRound, tuple[Any, ...]]) -> None:
        known, values = found
        session, writer = self.session, self._writer
        prefix, row_format = known.get_formats(session.settings.zone)
        writer.add(prefix)
        if session.transactions.open is None:  # the Sync closes its portal
            result = run_prepared_text(session, known.statement, values)
        else:
            portal = Portal(known.statement, values, known.formats)
            self._portals.replace_unnamed(portal)
            portal.result = result = run_prepared_text(session, known.statement, values)
            result.convert_arrow_to_rows()
            portal.sent = len(result.rows)
        self._add_notices()
        self._add_rows(result, row_format)

    # -- simple protocol ----------------------------------------------------------------------

    def _handle_query(self, body: BodyReader) -> None:
        text = body.read_text()
        body.require_end()
        self._portals.close_portal("")
        count = 0
        for result in run_simple_query(self.session, text):
            count += 1
            self._count_point_read(result)
            self._add_notices()
            self._add_result(result)
        if not count:
            self._writer.add(_EMPTY_QUERY)
        self._add_ready()
        self._writer.flush()

    def _add_result(self, result: Result) -> None:
        row_format = None
        if result.fields is not None:
            zone = self.session.settings.zone
            row_format = make_text_row_format(result.fields, zone, result.origins)
            self._writer.add(row_format.description)
        self._add_rows(result, row_format)

    def _add_rows(self, result: Result, row_format: RowFormat | None) -> None:
        sent = result.count_rows()
        if row_format is not None and result.stream is not None:
            sent = result.stream.send_parts(partial(self._send_part, row_format))
        elif row_format is not None:
            for part in row_format.encode_result(result):
                self._writer.add(part)
        self._copies.add_end()
        self._add_completion(result, sent)

    def _send_part(self, row_format: RowFormat, part: Any) -> int:
        for data in row_format.encode_part(part):
            self._writer.add(data)
        return len(part)

    def _add_completion(self, result: Result, sent: int) -> None:
        self._writer.add(build_completion(result.tag, result.affected, sent))

    # -- extended protocol --------------------------------------------------------------------

    def _handle_parse(self, body: BodyReader) -> None:
        name, text = body.read_text(), body.read_text()
        types = tuple(find_parameter_type(body.read_int32()) for _ in range(body.read_int16()))
        body.require_end()
        if not name:
            self._portals.close_statement("")
        statement = prepare_text(self.session, text, types)
        self._portals.add_statement(name, statement)
        if not name and statement is not None:
            self._portals.keep_parsed(body.data, statement)
        self._writer.add(PARSE_COMPLETE)

    def _handle_bind(self, body: BodyReader) -> None:
        name = body.read_text()
        statement = self._portals.require_statement(body.read_text())
        portal = read_portal(body, statement)
        if name:
            self._portals.add_portal(name, portal)
        else:
            self._portals.replace_unnamed(portal)
        self._writer.add(BIND_COMPLETE)

    def _handle_describe(self, body: BodyReader) -> None:
        kind, name = body.read_byte(), body.read_text()
        body.require_end()
        if kind == ord("S"):
            statement = self._portals.require_statement(name)
            types = () if statement is None else statement.parameters
            oids = b"".join(pack_int32(find_oid(one)) for one in types)
            self._writer.add(build_message(b"t", pack_int16(len(types)) + oids))
            self._add_prepared_description(statement, None)
        elif kind == ord("P") and (cursor := self.session.cursors.find_cursor(name)) is not None:
            self._add_description(cursor.fields, (0,) * len(cursor.fields), cursor.origins)
        elif kind == ord("P"):
            portal = self._portals.require_portal(name)
            self._add_prepared_description(portal.statement, portal.formats)
        else:
            raise InvalidInput("malformed message", sqlstate="08P01")

    def _add_prepared_description(
        self, statement: PreparedText | None, formats: tuple[int, ...] | None
    ) -> None:
        if statement is None or statement.fields is None:
            self._writer.add(NO_DATA)
        else:
            codes = (0,) * len(statement.fields) if formats is None else formats
            self._add_description(statement.fields, codes, statement.origins)

    def _add_description(
        self, fields: Fields, formats: tuple[int, ...], origins: ColumnOrigins
    ) -> None:
        row_format = make_row_format(fields, formats, self.session.settings.zone, origins)
        self._writer.add(row_format.description)

    def _handle_execute(self, body: BodyReader) -> None:
        portal = self._portals.require_portal(body.read_text())
        limit = body.read_int32()
        body.require_end()
        if portal.statement is None:
            self._writer.add(_EMPTY_QUERY)
            return
        if portal.result is None:
            # Alone before its Sync it commits by itself; otherwise the Sync commits.
            self.session.autocommit = self._reader.peek_kind() == _SYNC and not limit
            portal.result = run_prepared_text(self.session, portal.statement, portal.values)
            if limit:
                portal.result.convert_arrow_to_rows()
            self._add_notices()
            self._copies.add_end()
        self._add_portal_rows(portal, portal.result, limit)

    def _add_portal_rows(self, portal: Portal, result: Result, limit: int) -> None:
        if result.fields is not None and not limit and not portal.sent:
            portal.sent = result.count_rows()
            zone = self.session.settings.zone
            self._add_rows(result, make_row_format(result.fields, portal.formats, zone))
            return
        rows, is_complete = portal.take_rows(limit)
        if result.fields is not None:
            zone = self.session.settings.zone
            row_format = make_row_format(result.fields, portal.formats, zone)
            for part in row_format.encode_rows(rows):
                self._writer.add(part)
        if is_complete:
            self._add_completion(result, len(rows))
        else:
            self._writer.add(_SUSPENDED)

    def _handle_close(self, body: BodyReader) -> None:
        kind, name = body.read_byte(), body.read_text()
        body.require_end()
        if kind == ord("S"):
            self._portals.close_statement(name)
        else:
            self._portals.close_portal(name)
        self._writer.add(_CLOSE_COMPLETE)

    def _handle_flush(self, body: BodyReader) -> None:
        self._writer.flush()

    def _handle_sync(self, body: BodyReader) -> None:
        self._skipping = False
        self.session.autocommit = True
        state = self.session.transactions
        if state.open is not None and not state.explicit:
            state.commit()
        self._add_ready()
        self._writer.flush()

    def _ignore_copy(self, body: BodyReader) -> None:
        """What is left of a COPY that has failed."""

    # -- what every answer has ----------------------------------------------------------------

    def _answer_error(self, error: Exception, kind: int) -> None:
        state = self.session.transactions
        self._copies.abandon_output()
        self._add_notices()
        self._writer.add(build_error(error))
        if state.open is not None:
            if state.explicit:
                self.session.transactions.fail()
            else:
                state.rollback()
        if kind in (_QUERY, _SYNC):
            self.session.autocommit = True
            self._add_ready()
        else:
            self._skipping = True
        self._writer.flush()  # here too: a Flush that follows is skipped

    def _add_notices(self) -> None:
        notices = self.session.notices
        if notices.total_count != self._notice_count:
            for text in notices.list_after_count(self._notice_count):
                self._writer.add(build_notice(text))
            self._notice_count = notices.total_count

    def _add_notifications(self) -> None:
        for process, channel, payload in self.session.notifications.take_received():
            text = pack_text(channel) + pack_text(payload)
            self._writer.add(build_message(b"A", pack_int32(process) + text))

    def _add_ready(self) -> None:
        self._add_changed_settings()
        state = self.session.transactions
        if state.open is None:
            self._portals.close_portals()
            self._add_notifications()
            self._writer.add(build_ready(b"I"))
        else:
            self._writer.add(build_ready(b"E" if state.failed else b"T"))

    def _add_changed_settings(self) -> None:
        settings, state = self.session.settings, self.session.transactions
        if settings.version != self._shown_version:
            self._shown_version = settings.version
            for name, shown in REPORTED_SETTINGS.items():
                value = settings.get_shown_text(name)
                if self._shown_settings.get(name) != value:
                    self._shown_settings[name] = value
                    self._writer.add(build_parameter_status(shown, value))
        if state.position != self._shown_position and state.open is None:
            self._shown_position = state.position
            token = self.session.freshness_token
            self._writer.add(build_parameter_status(TOKEN_PARAMETER, token))


def _encoding_error(error: UnicodeDecodeError) -> InvalidInput:
    return InvalidInput("invalid byte sequence for encoding UTF8", sqlstate="22021", at=error.start)


_HANDLERS: dict[int, Callable[[Client, BodyReader], None]] = {
    ord("Q"): Client._handle_query,
    ord("P"): Client._handle_parse,
    ord("B"): Client._handle_bind,
    ord("D"): Client._handle_describe,
    ord("E"): Client._handle_execute,
    ord("C"): Client._handle_close,
    ord("H"): Client._handle_flush,
    ord("S"): Client._handle_sync,
    ord("d"): Client._ignore_copy,
    ord("c"): Client._ignore_copy,
    ord("f"): Client._ignore_copy,
}
