"""A connection: one session, here or in the process that has the store open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from belvedere import errors, forks
from belvedere.interfaces import arrow
from belvedere.interfaces.client.arguments import (
    require_integer,
    require_parameters,
    require_relation_name,
    require_seconds,
    require_texts,
)
from belvedere.interfaces.client.copy_data import insert_table
from belvedere.interfaces.client.cursor import Cursor
from belvedere.interfaces.client.named_parameters import number_parameters
from belvedere.interfaces.client.row_factories import RowFactory
from belvedere.interfaces.client.row_stream import RowStream
from belvedere.interfaces.client.shaped_cursor import ShapedCursor, is_statement_logged
from belvedere.interfaces.client.subscriptions import open_door_subscription
from belvedere.interfaces.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004
    translate_error,
)
from belvedere.session.query_stream import open_query_stream
from belvedere.session.session import Session

if TYPE_CHECKING:
    from belvedere.interfaces.remote import RemoteSession
    from belvedere.session.materialized.change_stream import Subscription


class Connection:
    """One session with an open store, returned by `connect`."""

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, session: Session | RemoteSession, release: Callable[[], None]) -> None:
        """`release` is called when the session is closed."""
        self._session = session
        self._release = release
        self._lock = threading.RLock()
        self._row_factory: RowFactory | None = None
        self._json_values = False
        self._logs_statements = is_statement_logged()
        self._cursor_class = ShapedCursor if self._logs_statements else Cursor
        forks.track_handle(self, translate_error)

    @property
    def session(self) -> Session | RemoteSession:
        """The session of this connection, for other doors and for tools."""
        return self._session

    @property
    def autocommit(self) -> bool:
        return self._session.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        with self._lock:
            self._require_open()
            if self._session.transactions.open is not None:
                raise ProgrammingError(
                    "autocommit cannot change inside a transaction",
                    sqlstate="25001",
                    hint="commit or roll back first",
                )
            try:
                self._session.autocommit = bool(value)
            except errors.Error as error:
                raise translate_error(error) from None

    @property
    def row_factory(self) -> RowFactory | None:
        """What makes rows of tuples for the cursors opened from now on; None: rows are tuples."""
        return self._row_factory

    @row_factory.setter
    def row_factory(self, factory: RowFactory | None) -> None:
        if factory is not None and not callable(factory):
            raise InterfaceError("row_factory must be callable or None", sqlstate="HY024")
        self._row_factory = factory
        self._choose_cursor_class()

    @property
    def json_values(self) -> bool:
        """Whether JSON is fetched as Python values (`json.loads`), or as text."""
        return self._json_values

    @json_values.setter
    def json_values(self, value: bool) -> None:
        self._json_values = bool(value)
        self._choose_cursor_class()

    def _choose_cursor_class(self) -> None:
        """Cursors of a connection that asks for nothing pay for nothing."""
        shaped = self._row_factory is not None or self._json_values or self._logs_statements
        self._cursor_class = ShapedCursor if shaped else Cursor

    @property
    def token(self) -> str:
        """A token; a connection that presents it sees all that this one has seen and written."""
        with self._lock:
            self._require_open()
            try:
                return self._session.freshness_token
            except errors.Error as error:
                raise translate_error(error) from None

    @property
    def notices(self) -> list[str]:
        """The newest notices: messages that are neither results nor errors, oldest first."""
        with self._lock:
            return list(self._session.notices.newest)

    def cursor(self, *, row_factory: RowFactory | None = None) -> Cursor:
        """A cursor; `row_factory` is its own instead of the connection's."""
        self._require_open()
        if row_factory is not None:
            return ShapedCursor(self, row_factory)
        return self._cursor_class(self)

    def execute(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        freshness: str | None = None,
    ) -> Cursor:
        """Run a statement in a new cursor and return the cursor."""
        return self._cursor_class(self)._execute_statement(self, sql, parameters, freshness)

    def executemany(
        self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> Cursor:
        return self._cursor_class(self).executemany(sql, parameters)

    def stream(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        freshness: str | None = None,
    ) -> RowStream:
        """The rows of a query as they are computed, a few at a time."""
        with self._lock:
            self._require_open()
            require_texts(sql, freshness)
            require_parameters(parameters)
            try:
                if isinstance(parameters, Mapping):
                    numbered = number_parameters(sql)
                    sql, parameters = numbered.text, numbered.select_values(parameters)
                session = self._session
                source = (
                    open_query_stream(session, sql, parameters, freshness)
                    if isinstance(session, Session)
                    else session.open_stream(sql, parameters, freshness)
                )
            except errors.Error as error:
                raise translate_error(error) from None
        return RowStream(self, source, self._row_factory)

    def insert(self, table: str, data: Any) -> int:
        """Insert a table of Arrow, pandas or polars, or anything else that Arrow can read, by the
        names of its columns, all rows or none; returns their number."""
        with self._lock:
            self._require_open()
            require_relation_name(table)
            rows = arrow.read_any_table(data)
            try:
                return insert_table(self._session, table, rows)
            except errors.Error as error:
                raise translate_error(error) from None

    def subscribe(
        self, view: str, from_position: int | str | None = None, *, timeout_s: float | None = None
    ) -> Subscription:
        """The changes of a table or materialized view after a position, after that of a token, or
        from now on: an iterator of (position, row, weight). It ends after `timeout_s` without a
        change; None: it waits."""
        with self._lock:
            self._require_open()
            require_relation_name(view)
            require_seconds(timeout_s)
            if from_position is not None and not isinstance(from_position, str):
                from_position = require_integer("a position", from_position)
            try:
                return open_door_subscription(self._session, view, from_position, timeout_s)
            except errors.Error as error:
                raise translate_error(error) from None

    def commit(self) -> None:
        with self._lock:
            self._require_open()
            try:
                self._session.commit()
            except errors.Error as error:
                raise translate_error(error) from None

    def rollback(self) -> None:
        with self._lock:
            self._require_open()
            try:
                self._session.rollback()
            except errors.Error as error:
                raise translate_error(error) from None

    def cancel(self) -> None:
        """Cancel the running statement, from another thread."""
        self._session.cancel()

    def close(self) -> None:
        """Roll back, and close the store if this is its last connection."""
        with self._lock:
            self._require_open()
            try:
                self._session.close()
                self._release()
            except errors.Error as error:
                raise translate_error(error) from error

    def _require_open(self) -> None:
        if self._session.closed:
            raise InterfaceError("connection is closed", sqlstate="08003")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit, or roll back after an exception; then close."""
        if self._session.closed:
            return
        try:
            if kind is None:
                self.commit()
            else:
                self.rollback()
        finally:
            self.close()
