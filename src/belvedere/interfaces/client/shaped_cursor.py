"""A cursor whose rows have another shape than tuples of the engine's values, or whose statements
are logged: what a connection uses that asks for a row factory, JSON as Python values, or a log."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from belvedere.interfaces.client.cursor import Cursor
from belvedere.interfaces.client.row_factories import RowFactory, RowMaker
from belvedere.interfaces.exceptions import Error
from belvedere.plan.fields import Fields
from belvedere.types import Kind, Row

if TYPE_CHECKING:
    from belvedere.interfaces.client.connection import Connection

STATEMENT_LOG = logging.getLogger("belvedere.statements")
"""Statements at DEBUG, failed ones at INFO; of connections opened while it is enabled."""


def is_statement_logged() -> bool:
    return STATEMENT_LOG.isEnabledFor(logging.INFO)


class ShapedCursor(Cursor):
    __slots__ = ("_make_row", "row_factory")

    def __init__(self, connection: Connection, row_factory: RowFactory | None = None) -> None:
        super().__init__(connection)
        self.row_factory = row_factory or connection.row_factory
        self._make_row: RowMaker | None = None

    def _execute_statement(
        self,
        connection: Connection,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any],
        freshness: str | None,
    ) -> Self:
        started = time.perf_counter()
        try:
            super()._execute_statement(connection, sql, parameters, freshness)
        except Error as error:
            STATEMENT_LOG.info("%s failed with %s: %s", sql, error.sqlstate, error)
            raise
        spent_ms = (time.perf_counter() - started) * 1000
        STATEMENT_LOG.debug("%s took %.3f ms, rows %d", sql, spent_ms, self.rowcount)
        self._make_row = self._choose_row_maker(connection)
        return self

    def _choose_row_maker(self, connection: Connection) -> RowMaker | None:
        if self._fields is None:
            return None
        maker = None if self.row_factory is None else self.row_factory(self)
        if not connection.json_values:
            return maker
        return make_json_reader(self._fields, maker)

    def fetchone(self) -> Any:
        row = super().fetchone()
        return row if row is None or self._make_row is None else self._make_row(row)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        return self._make_rows(super().fetchmany(size))

    def fetchall(self) -> list[Any]:
        return self._make_rows(super().fetchall())

    def _make_rows(self, rows: list[Row]) -> list[Any]:
        return rows if self._make_row is None else list(map(self._make_row, rows))

    def __next__(self) -> Any:
        row = super().fetchone()
        if row is None:
            raise StopIteration
        return row if self._make_row is None else self._make_row(row)


def make_json_reader(fields: Fields, maker: RowMaker | None) -> RowMaker | None:
    """`maker` over rows whose JSON is Python values."""
    places = frozenset(i for i, field in enumerate(fields) if field.type.kind is Kind.JSON)
    if not places:
        return maker

    def read_json(row: Row) -> Any:
        values = tuple(
            [
                json.loads(value) if i in places and value is not None else value
                for i, value in enumerate(row)
            ]
        )
        return values if maker is None else maker(values)

    return read_json
