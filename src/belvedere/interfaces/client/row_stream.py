"""Rows of a query as they are computed: `con.stream(sql)`, here or in the process that has the
store open."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, Self

from belvedere import forks
from belvedere.errors import Error
from belvedere.interfaces.client.row_factories import RowFactory, RowMaker
from belvedere.interfaces.client.shaped_cursor import make_json_reader
from belvedere.interfaces.exceptions import InterfaceError, translate_error
from belvedere.interfaces.values import Description, describe_fields, make_row_converter
from belvedere.plan.fields import Fields
from belvedere.types import Row

if TYPE_CHECKING:
    from belvedere.interfaces.client.connection import Connection

FIRST_ROWS = 16
ROWS_MAX = 4_096
"""How many rows are fetched at a time: few at first, so that the first row comes soon."""


class OpenStream(Protocol):
    """A `QueryStream` of this process, or one of the owner."""

    fields: Fields

    def fetch_rows(self, count: int) -> list[Row]: ...

    def close(self) -> None: ...

    def abandon(self) -> None:
        """As `close`, at the next opportunity."""


class RowStream:
    """An iterator of rows. It shows what was there when it was opened, while its connection runs
    other statements; close it, or use it in `with`, unless it is read to its end."""

    def __init__(
        self, connection: Connection, source: OpenStream, row_factory: RowFactory | None
    ) -> None:
        self._connection = connection
        self._source: OpenStream | None = source
        self._fields = source.fields
        self._rows: deque[Row] = deque()
        self._count = FIRST_ROWS
        self._convert = make_row_converter(source.fields, connection.session.settings.zone)
        maker = None if row_factory is None else row_factory(self)
        self._make_row: RowMaker | None = (
            make_json_reader(source.fields, maker) if connection.json_values else maker
        )
        weakref.finalize(self, source.abandon).atexit = False
        forks.track_handle(self, translate_error)

    @property
    def description(self) -> list[Description]:
        return describe_fields(self._fields)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._rows:
            self._rows.extend(self._fetch_rows())
        if not self._rows:
            raise StopIteration
        row = self._rows.popleft()
        return row if self._make_row is None else self._make_row(row)

    def close(self) -> None:
        """End it before its end; idempotent."""
        source, self._source = self._source, None
        self._rows.clear()
        if source is not None:
            with self._connection._lock:
                try:
                    source.close()
                except Error as error:
                    raise translate_error(error) from None

    def _fetch_rows(self) -> list[Row]:
        if self._source is None:
            return []
        with self._connection._lock:
            if self._connection.session.closed:
                raise InterfaceError("connection is closed", sqlstate="08003")
            try:
                found = self._source.fetch_rows(self._count)
            except Error as error:
                self._source = None
                raise translate_error(error) from None
        if len(found) < self._count:
            self._source = None
        self._count = min(2 * self._count, ROWS_MAX)
        return found if self._convert is None else self._convert(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
