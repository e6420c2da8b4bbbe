"""Cursors of SQL: DECLARE, FETCH, MOVE and CLOSE.

A cursor is a stream of its query (`query_stream`): it shows what DECLARE saw, and rows are computed
as they are fetched. With SCROLL the rows that were fetched are kept, to go back to; without it a
cursor only goes forward. It ends with its transaction, unless it is WITH HOLD.

Positions count from 1; 0 is before the first row, one more than the last is after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from belvedere.errors import InvalidInput
from belvedere.plan.fields import ColumnOrigins, Fields
from belvedere.session.context.result import Result
from belvedere.session.query_stream import QueryStream, open_query_stream
from belvedere.sql import statements as s
from belvedere.types import Row

if TYPE_CHECKING:
    from belvedere.session.session import Session

READ_AHEAD = 1_000


class SqlCursor:
    """`hold`: it outlives the transaction that declared it."""

    def __init__(self, stream: QueryStream, *, scroll: bool, hold: bool) -> None:
        self._stream = stream
        self._scroll = scroll
        self.hold = hold
        self._position = 0
        self._kept: list[Row] = []  # with SCROLL, all rows so far
        self._after_last = False
        self.committed = False  # with the transaction that declared it

    @property
    def fields(self) -> Fields:
        return self._stream.fields

    @property
    def origins(self) -> ColumnOrigins:
        return self._stream.origins

    def close(self) -> None:
        self._stream.close()

    def move_and_fetch(self, direction: str, count: int | None) -> list[Row]:
        """The rows that a FETCH passes. `direction` is 'forward', 'backward', 'absolute' or
        'relative'; `count` None is ALL."""
        if direction == "forward" and (count is None or count > 0):
            return self._fetch_forward(count)
        if direction == "forward" and count is not None and count < 0:
            direction, count = "backward", -count
        if direction == "backward" and count is not None and count < 0:
            return self._fetch_forward(-count)
        if direction == "backward" and count != 0:
            return self._fetch_backward(count)
        if direction in ("forward", "backward"):
            count = 0
        assert count is not None
        return self._fetch_at_position(direction, count)

    def _fetch_forward(self, count: int | None) -> list[Row]:
        found: list[Row] = []
        while count is None or len(found) < count:
            wanted = READ_AHEAD if count is None else min(READ_AHEAD, count - len(found))
            rows = self._take_next_rows(wanted)
            found += rows
            self._position += len(rows)
            if len(rows) < wanted:
                self._position += 0 if self._after_last else 1
                self._after_last = True
                break
        return found

    def _take_next_rows(self, count: int) -> list[Row]:
        """The rows after the position, from those that are kept and then from the stream."""
        if not self._scroll:
            return self._stream.fetch_rows(count)
        missing = self._position + count - len(self._kept)
        if missing > 0 and not self._after_last:
            self._kept += self._stream.fetch_rows(missing)
        return self._kept[self._position : self._position + count]

    def _fetch_backward(self, count: int | None) -> list[Row]:
        self._require_scroll()
        first = 0 if count is None else max(self._position - 1 - count, 0)
        found = self._kept[first : max(self._position - 1, 0)]
        whole = count is not None and len(found) == count
        self._position = self._position - len(found) if whole else 0
        self._after_last = False
        return found[::-1]

    def _fetch_at_position(self, direction: str, count: int) -> list[Row]:
        """ABSOLUTE n (from the end below 0) and RELATIVE n: one row, or none outside."""
        if direction == "absolute" and count < 0:
            self._fetch_forward(None)
            target = max(self._position + count, 0)
        else:
            target = count if direction == "absolute" else self._position + count
        if direction != "absolute" and count == 0:
            return self._list_current_row()
        distance = target - self._position
        if distance > 0:
            return self._fetch_forward(distance)[distance - 1 :]
        self._require_scroll()
        self._position, self._after_last = max(target, 0), False
        return self._list_current_row()

    def _list_current_row(self) -> list[Row]:
        self._require_scroll()
        at = self._position
        return [self._kept[at - 1]] if 0 < at <= len(self._kept) else []

    def _require_scroll(self) -> None:
        if not self._scroll:
            raise InvalidInput(
                "cursor can only scan forward",
                sqlstate="55000",
                hint="declare it with scroll option to enable backward scan",
            )


class SqlCursors:
    """The open cursors of a session, by name."""

    def __init__(self) -> None:
        self._open: dict[str, SqlCursor] = {}

    def find_cursor(self, name: str) -> SqlCursor | None:
        return self._open.get(name)

    def require_cursor(self, name: str) -> SqlCursor:
        found = self._open.get(name)
        if found is None:
            raise InvalidInput("cursor does not exist", sqlstate="34000", name=name)
        return found

    def add_cursor(self, name: str, cursor: SqlCursor) -> None:
        self._open[name] = cursor

    def close_cursors(self, name: str | None) -> None:
        """One of that name, or all."""
        names = list(self._open) if name is None else [name]
        for one in names:
            self.require_cursor(one).close()
            del self._open[one]

    @property
    def transaction_cursor_count(self) -> int:
        """How many end with the open transaction, or are kept only when it commits."""
        return sum(not cursor.committed for cursor in self._open.values())

    def end_transaction(self, *, committed: bool) -> None:
        """Close what does not outlive its transaction."""
        for name, cursor in list(self._open.items()):
            cursor.committed = cursor.committed or (committed and cursor.hold)
            if not cursor.committed:
                cursor.close()
                del self._open[name]


def declare_cursor(
    session: Session, statement: s.DeclareCursor, parameters: Sequence[Any]
) -> Result:
    session.begin_unless_autocommit()
    if session.transactions.open is None and not statement.hold:
        raise InvalidInput(
            "declare cursor can only be used in transaction blocks", sqlstate="25P01"
        )
    if session.cursors.find_cursor(statement.name) is not None:
        raise InvalidInput("cursor already exists", sqlstate="42P03", name=statement.name)
    stream = open_query_stream(session, statement.source, parameters)
    made = SqlCursor(stream, scroll=statement.scroll, hold=statement.hold)
    session.cursors.add_cursor(statement.name, made)
    session.transactions.cursors = session.cursors
    return Result("DECLARE CURSOR")


def fetch_from_cursor(session: Session, statement: s.FetchCursor, _: Sequence[Any]) -> Result:
    cursor = session.cursors.require_cursor(statement.name)
    rows = cursor.move_and_fetch(statement.direction, statement.count)
    if statement.moves:
        return Result("MOVE", None, None, len(rows))
    return Result("FETCH", cursor.fields, rows, len(rows), origins=cursor.origins)


def close_cursor(session: Session, statement: s.CloseCursor, _: Sequence[Any]) -> Result:
    session.cursors.close_cursors(statement.name)
    return Result("CLOSE CURSOR" if statement.name is not None else "CLOSE CURSOR ALL")
