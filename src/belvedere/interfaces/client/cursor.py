"""A cursor: runs statements and holds the rows of the last one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from belvedere import errors, forks, interrupts
from belvedere.interfaces import arrow
from belvedere.interfaces.client.arguments import require_integer, require_sequence, require_texts
from belvedere.interfaces.client.copy_data import CopyExchange
from belvedere.interfaces.client.named_parameters import number_parameters
from belvedere.interfaces.exceptions import (
    DatabaseError,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
    translate_error,
)
from belvedere.interfaces.values import Description, describe_fields, make_row_converter
from belvedere.plan.fields import Fields
from belvedere.session.context.result import Result
from belvedere.types import Row

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from belvedere.interfaces.client.connection import Connection


_SAVEPOINT = "belvedere_executemany"
_BATCH_ROWS = 1000
"""Rows of parameters that executemany takes from its argument before it runs the statement."""


class Cursor:
    """Runs statements and holds the rows of the last one."""

    __slots__ = ("_at", "_connection", "_fields", "_result", "_rows", "arraysize", "rowcount")

    def __init__(self, connection: Connection) -> None:
        self._connection: Connection | None = connection
        self._rows: list[Row] = []
        self._fields: Fields | None = None
        self._result: Result | None = None
        self._at = 0
        self.arraysize = 1
        self.rowcount = -1

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            raise InterfaceError("cursor is closed", sqlstate="24000")
        return self._connection

    @property
    def description(self) -> list[Description] | None:
        return None if self._fields is None else describe_fields(self._fields)

    @property
    def result(self) -> Result:
        """The last statement's result as the session returned it, for other doors and for tools."""
        if self._result is None:
            raise InterfaceError("nothing was executed", sqlstate="24000")
        return self._result

    @property
    def rownumber(self) -> int | None:
        return None if self._fields is None else self._at

    def execute(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        freshness: str | None = None,
    ) -> Self:
        connection = self._connection
        if connection is None:
            raise InterfaceError("cursor or connection is closed", sqlstate="08003")
        return self._execute_statement(connection, sql, parameters, freshness)

    def _execute_statement(
        self,
        connection: Connection,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any],
        freshness: str | None,
    ) -> Self:
        session = connection._session
        if session.closed:
            raise InterfaceError("cursor or connection is closed", sqlstate="08003")
        if type(sql) is not str or freshness is not None:
            require_texts(sql, freshness)
        if type(parameters) is not tuple and not isinstance(parameters, list):
            if isinstance(parameters, Mapping):
                return self._execute_named(connection, sql, parameters, freshness)
            parameters = require_sequence(parameters)
        with connection._lock:
            try:
                result = session.execute(sql, parameters, freshness)
            except errors.Error as error:
                self._clear_result()
                raise translate_error(error) from None
        if interrupts.pending is not None:
            interrupts.deliver_pending()
        self._result = result
        self._fields = fields = result.fields
        self._rows = result.rows
        self._at = 0
        self.rowcount = result.affected
        if fields is not None and not result.plain and result.table is None:
            convert = make_row_converter(fields, session.settings.zone)
            if convert is not None:
                self._rows = convert(result.rows)
        return self

    def _execute_named(
        self, connection: Connection, sql: str, parameters: Mapping[str, Any], freshness: str | None
    ) -> Self:
        try:
            numbered = number_parameters(sql)
            values = numbered.select_values(parameters)
        except errors.Error as error:
            raise translate_error(error) from None
        try:
            return self._execute_statement(connection, numbered.text, values, freshness)
        except DatabaseError as error:
            error.position = numbered.original_position(error.position)
            raise

    def executemany(
        self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> Self:
        """Run the statement once for every parameter row, all of them or none."""
        connection = self.connection
        if not isinstance(parameters, Iterable):
            raise ProgrammingError("executemany takes a sequence of rows", sqlstate="42804")
        with connection._lock:
            transactions = connection._session.transactions
            inside = transactions.open is not None
            alone = connection._session.autocommit and not inside
            if not transactions.failed:
                self.execute(f"SAVEPOINT {_SAVEPOINT}" if inside else "BEGIN")
            try:
                count = self._execute_rows(connection, sql, parameters)
                if self._fields is not None:
                    raise ProgrammingError("executemany cannot return rows", sqlstate="42601")
            except BaseException:
                self._undo_many(connection, inside)
                raise
            if alone:
                connection.commit()
            elif inside:
                self.execute(f"RELEASE {_SAVEPOINT}")
        self._clear_result()
        self.rowcount = count
        return self

    def _execute_rows(self, connection: Connection, sql: str, parameters: Iterable[Any]) -> int:
        """Run the statement for every parameter row; how many rows it changed. Rows of an INSERT go
        many at a time, and one by one where those of a batch cannot."""
        rows, count, batch_rows = iter(parameters), 0, 0
        while batch := list(itertools.islice(rows, batch_rows or 1)):
            inserted = self._insert_batch(connection, sql, batch) if batch_rows > 1 else None
            if inserted is not None:
                count += inserted
                continue
            for one in batch:
                self.execute(sql, one)
                count += max(self.rowcount, 0)
            if not batch_rows:  # the first row has made the plan
                can_batch = self._insert_batch(connection, sql, []) is not None
                batch_rows = _BATCH_ROWS if can_batch else 1
        return count

    def _insert_batch(self, connection: Connection, sql: str, batch: list[Any]) -> int | None:
        if type(sql) is not str or not set(map(type, batch)) <= {tuple, list}:
            return None
        try:
            inserted = connection._session.insert_rows(sql, batch)
        except errors.Error as error:
            raise translate_error(error) from None
        if interrupts.pending is not None:
            interrupts.deliver_pending()
        return inserted

    def _undo_many(self, connection: Connection, inside: bool) -> None:
        """Take back the rows before the one that failed. A transaction that its statement has
        failed stays failed, as after any statement."""
        session = connection._session
        if not inside and session.autocommit:
            connection.rollback()
        elif not session.transactions.failed:
            if inside:
                self.execute(f"ROLLBACK TO {_SAVEPOINT}; RELEASE {_SAVEPOINT}")
            else:
                connection.rollback()

    def copy(self, sql: str) -> CopyExchange:
        """COPY .. FROM STDIN or COPY .. TO STDOUT: a context manager to write to or to read."""
        connection = self.connection
        connection._require_open()
        require_texts(sql)
        self._clear_result()
        return CopyExchange(self, connection, sql)

    def _clear_result(self) -> None:
        self._rows, self._fields, self._result, self._at = [], None, None, 0
        self.rowcount = -1

    # -- rows ---------------------------------------------------------------------------------

    def fetchone(self) -> Row | None:
        rows = self._materialize_rows()
        at = self._at
        if at >= len(rows):
            return None
        self._at = at + 1
        return rows[at]

    def fetchmany(self, size: int | None = None) -> list[Row]:
        rows = self._materialize_rows()
        wanted = self.arraysize if size is None else size
        end = self._at + require_integer("the number of rows", wanted, least=0)
        found = rows[self._at : end]
        self._at += len(found)
        return found

    def fetchall(self) -> list[Row]:
        rows = self._materialize_rows()
        found = rows[self._at :] if self._at else rows
        self._at = len(rows)
        return list(found)

    def fetch_arrow(self) -> pa.Table:
        """The rows not yet fetched, as an Arrow table."""
        self._require_rows()
        assert self._fields is not None
        assert self._result is not None
        table = self._result.table
        if table is not None:
            names = [field.name for field in self._fields]
            return table.slice(self._at).rename_columns(names)
        return arrow.table_of_rows(self._fields, self._result.rows[self._at :])

    def fetch_polars(self) -> pl.DataFrame:
        """The rows not yet fetched, as a polars data frame."""
        try:
            import polars as pl  # heavy
        except ImportError as error:
            raise NotSupportedError(
                "polars data frames need polars", sqlstate="0A000", hint="pip install polars"
            ) from error
        frame = pl.from_arrow(self.fetch_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def fetch_df(self) -> pd.DataFrame:
        """The rows not yet fetched, as a pandas data frame."""
        try:
            import pandas  # noqa: F401  # heavy
        except ImportError as error:
            raise NotSupportedError(
                "data frames need pandas", sqlstate="0A000", hint="pip install pandas"
            ) from error
        frame: pd.DataFrame = self.fetch_arrow().to_pandas()
        return frame

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def _materialize_rows(self) -> list[Row]:
        if self._fields is None:
            self._require_rows()
        result = self._result
        if result is not None and result.table is not None:
            result.convert_arrow_to_rows()
            assert self._connection is not None
            zone = self._connection._session.settings.zone
            convert = make_row_converter(result.fields or (), zone)
            self._rows = result.rows if convert is None else convert(result.rows)
        return self._rows

    def _require_rows(self) -> None:
        if self._connection is None:
            raise InterfaceError("cursor is closed", sqlstate="24000")
        if self._fields is None:
            raise ProgrammingError("there are no rows to fetch", sqlstate="24000")

    # -- the rest of PEP 249 ------------------------------------------------------------------

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Accepted and ignored, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Accepted and ignored, as PEP 249 allows."""

    def close(self) -> None:
        if self._connection is None:
            raise InterfaceError("cursor is closed", sqlstate="24000")
        self._clear_result()
        self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self.close()


_materialize_rows, _require_rows = Cursor._materialize_rows, Cursor._require_rows


def _materialize_own_rows(self: Cursor) -> list[Row]:
    _require_own_connection(self)
    return _materialize_rows(self)


def _require_own_rows(self: Cursor) -> None:
    _require_own_connection(self)
    _require_rows(self)


def _require_own_connection(cursor: Cursor) -> None:
    """Refuse a cursor whose connection was inherited, which refuses every use."""
    if cursor._connection is not None:
        _ = cursor._connection._session


@forks.run_in_heirs
def _check_cursors_of_parents() -> None:
    """In a forked child: rows are those of a connection of its own. Cursors are too many to track
    each as a handle, and fetching elsewhere asks nothing."""
    Cursor._materialize_rows = _materialize_own_rows  # type: ignore[method-assign]
    Cursor._require_rows = _require_own_rows  # type: ignore[method-assign]
