"""DuckDB's results as Python rows, converted only when rows and not columns are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from belvedere.execution.duckdb.types import RaggedNumeric, to_values
from belvedere.types import Row, SqlType
from belvedere.values.decimals import round_to_scale

if TYPE_CHECKING:
    import pyarrow as pa


class TableRows:
    """An iterator of rows with access to the Arrow table they are converted from."""

    __slots__ = ("_rows", "_types", "table")

    def __init__(self, table: pa.Table, types: tuple[SqlType, ...]) -> None:
        self.table = table
        self._types = types
        self._rows: Iterator[Row] | None = None

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        if self._rows is None:
            self._rows = rows_of(self.table, self._types)
        return next(self._rows)


def rows_of(table: pa.Table, types: tuple[SqlType, ...]) -> Iterator[Row]:
    if not types:
        return iter([()] * table.num_rows)
    columns = [to_values(table.column(i), one) for i, one in enumerate(types)]
    return zip(*columns)


def ragged_rows(table: pa.Table, types: tuple[SqlType, ...]) -> Iterator[Row]:
    """The same where some columns are ragged: every value at its display scale."""
    columns = []
    for i, one in enumerate(types):
        values = to_values(table.column(f"c{i}"), one)
        if isinstance(one, RaggedNumeric):
            scales = table.column(f"c{i}s").to_pylist()
            values = [None if v is None else round_to_scale(v, s) for v, s in zip(values, scales)]
        columns.append(values)
    return zip(*columns)
