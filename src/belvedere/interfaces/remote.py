"""A session of this process in the process that has the store open, over the owner's socket.

It has what a door uses of a `Session`, so connection, cursor and shell are the same for both. One
thread at a time may use it; `cancel` may come from any.

Ctrl-C while the owner works stops the statement, and the session continues. When it comes in the
middle of a frame, or when the owner is gone, the session is lost with its transaction: every later
statement is refused with 08006, and the program connects again.
"""

from __future__ import annotations

import datetime
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from belvedere import forks
from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.errors import Error, Unavailable
from belvedere.interfaces.verbs.plain_values import decode_values, encode_values
from belvedere.interfaces.verbs.sessions import STATEMENT_BYTES_MAX, SentStatement, parse_zone
from belvedere.interfaces.verbs.wire import batch_to_rows, bytes_to_batch, parse_fields
from belvedere.pipeline.store.client import Store
from belvedere.plan.fields import Fields
from belvedere.remote.client import HUNG_UP, OwnerConnection, SentRows, ask_owner_once
from belvedere.remote.frames import CLOSED, Request
from belvedere.session.context.notices import Notices
from belvedere.session.context.result import Result
from belvedere.types import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

CANCEL_TIMEOUT_S = 10.0
_RECONNECT = "connect again: the next process that connects opens the store"


@dataclass(slots=True)
class RemoteTransaction:
    """The transaction of the session, as of the owner's last answer."""

    open: object | None = None
    failed: bool = False

    def update_status(self, state: str) -> None:
        self.failed = state == "failed"
        self.open = None if state == "none" else self


@dataclass(slots=True)
class RemoteSettings:
    zone: datetime.tzinfo = datetime.UTC


class RemoteSession:
    def __init__(
        self, directory: Path, *, autocommit: bool = True, read_only: bool = False
    ) -> None:
        self.directory = directory
        self.read_only = read_only
        self._conversation = OwnerConnection(directory, timeout_s=None)
        self._autocommit = autocommit
        self.transactions = RemoteTransaction()
        self.settings = RemoteSettings()
        self.notices = Notices()
        self.on_progress: Callable[[str, int, float], None] | None = None
        self.abandoned_streams: deque[int] = deque()
        self.closed = False
        arguments = {"autocommit": int(autocommit), "read_only": int(read_only)}
        opened = self._conversation.ask_owner(Request("open_session", arguments))
        self._key: str = opened["key"]
        self.owner_pid: int = opened["pid"]
        self.store_settings: dict[str, Any] = opened["settings"]
        forks.track_handle(self)

    # -- what a door uses ---------------------------------------------------------------------

    @property
    def autocommit(self) -> bool:
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self._ask(Request("configure", {"autocommit": int(value)}))
        self._autocommit = value

    @property
    def catalog(self) -> Catalog:
        """The catalog that is published in the owner."""
        store = Store.in_directory(self.directory)
        lease = store.take_position_lease()
        try:
            found = store.call_owner_verb("catalog", **lease.to_verb_arguments())
            objects = map(model.decode, found)
            return Catalog({item.id: item for item in objects})
        finally:
            store.release_position_lease(lease)

    @property
    def freshness_token(self) -> str:
        return str(self._ask(Request("token"))[0])

    def execute(
        self, text: str, parameters: Sequence[Any] = (), freshness: str | None = None
    ) -> Result:
        statement = SentStatement(text, encode_values(parameters), freshness)
        data = msgspec.msgpack.encode(statement)
        if len(data) <= STATEMENT_BYTES_MAX:
            value, rows = self._ask(Request("run", {"statement": data}))
        else:
            value, rows = self._ask(Request("run"), _upload_bytes(data))
        self._update_state(value)
        return _make_result(value, rows)

    def insert_rows(self, text: str, given: Sequence[Sequence[Any]]) -> None:
        """None: rows are sent one by one."""

    def open_stream(
        self, text: str, parameters: Sequence[Any] = (), freshness: str | None = None
    ) -> RemoteStream:
        while self.abandoned_streams:
            arguments = {"number": self.abandoned_streams.popleft()}
            self.ask_and_update(Request("close_stream", arguments))
        data = msgspec.msgpack.encode(SentStatement(text, encode_values(parameters), freshness))
        if len(data) <= STATEMENT_BYTES_MAX:
            value, _ = self._ask(Request("open_stream", {"statement": data}))
        else:
            value, _ = self._ask(Request("open_stream"), _upload_bytes(data))
        self._update_state(value)
        return RemoteStream(self, value["number"], parse_fields(value["fields"]))

    def ask_and_update(
        self, request: Request, rows: SentRows | None = None
    ) -> tuple[Any, Iterator[pa.RecordBatch] | None]:
        """Send a request about the session; its answer, whose state is taken over."""
        value, found = self._ask(request, rows)
        if value is not None:
            self._update_state(value)
        return value, found

    def commit(self) -> None:
        self._end_transaction("commit")

    def rollback(self) -> None:
        if not self._conversation.broken:  # else the owner has done it
            self._end_transaction("rollback")

    def cancel(self) -> None:
        """Stop the running statement, if there is one; from any thread."""
        request = Request("cancel", {"key": self._key})
        ask_owner_once(self.directory, request, CANCEL_TIMEOUT_S)

    def close(self) -> None:
        self.closed = True
        self._conversation.close()

    # -- exchanges ----------------------------------------------------------------------------

    def _end_transaction(self, verb: str) -> None:
        self._require_usable()
        if self.transactions.open is not None:
            self._update_state(self._ask(Request(verb))[0])

    def _ask(
        self, request: Request, rows: SentRows | None = None
    ) -> tuple[Any, Iterator[pa.RecordBatch] | None]:
        """Send a request and wait for its answer: a value, and the rows that follow it."""
        self._require_usable()
        try:
            self._conversation.send_request(request, rows)
            self._wait_for_answer()
            value, found = self._conversation.receive_answer()
        except Error as error:
            self._note_failure(request, error)
            raise
        except BaseException:
            if self._conversation.broken:
                self._conversation.close()
            raise
        return value, None if found is None else self._read_batches(found[1])

    def _wait_for_answer(self) -> None:
        """Wait; an interrupt cancels the statement, whose answer is then received and dropped."""
        try:
            self._conversation.wait_for_answer()
        except KeyboardInterrupt:
            self.cancel()
            self._drop_answer()
            raise

    def _drop_answer(self) -> None:
        try:
            _, found = self._conversation.receive_answer()
            deque(() if found is None else found[1], maxlen=0)
        except Error:
            if self._conversation.broken:
                return
        self._update_state(self._conversation.ask_owner(Request("session_state")))

    def _read_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BaseException:
            if self._conversation.broken:
                self._conversation.close()
            raise

    def _note_failure(self, request: Request, error: Error) -> None:
        """Take over what the failed request has left in the owner; say what is lost with it."""
        if not self._conversation.broken:
            self._update_state(self._conversation.ask_owner(Request("session_state")))
            return
        self._conversation.close()
        lost = self.transactions.open is not None
        if error.message == CLOSED:
            error.detail = "the transaction is lost" if lost else "the statement was not run"
        elif request.verb == "commit":
            error.sqlstate = "08007"
            error.detail = "it is not known whether the transaction was committed"
        elif lost:
            error.detail = "the transaction is lost"
        elif request.verb == "run":
            error.detail = "it is not known whether the statement took effect"
        error.hint = _RECONNECT

    def _update_state(self, value: dict[str, Any]) -> None:
        self.transactions.update_status(value["transaction"])
        self.settings.zone = parse_zone(value["zone"])
        for text in value["notices"]:
            self.notices.add(text)

    def _require_usable(self) -> None:
        if self._conversation.broken:
            raise Unavailable(HUNG_UP, sqlstate="08006", hint=_RECONNECT)


class RemoteStream:
    """A query in the owner whose rows are fetched as they are computed."""

    def __init__(self, session: RemoteSession, number: int, fields: Fields) -> None:
        self.fields = fields
        self._session = session
        self._number = number

    def fetch_rows(self, count: int) -> list[Row]:
        """At most `count` rows; fewer at its end."""
        request = Request("fetch_stream", {"number": self._number, "rows": count})
        return _make_result(*self._session.ask_and_update(request)).rows

    def close(self) -> None:
        if not self._session.closed:
            self._session.ask_and_update(Request("close_stream", {"number": self._number}))

    def abandon(self) -> None:
        self._session.abandoned_streams.append(self._number)


def _make_result(value: dict[str, Any], batches: Iterable[pa.RecordBatch] | None) -> Result:
    described = value.get("fields")
    if described is None:
        return Result(value["tag"], affected=value["affected"])
    fields = parse_fields(described)
    if batches is None:
        rows = [decode_values(row) for row in msgspec.msgpack.decode(value["rows"])]
    else:
        rows = [row for batch in batches for row in batch_to_rows(batch, fields)]
    return Result(value["tag"], fields, rows, value["affected"])


def _upload_bytes(data: bytes) -> SentRows:
    batch = bytes_to_batch(data)
    return SentRows(batch.schema, [batch])
