"""Cells of many rows as Arrow columns, without making the rows in between.

Cells of a fixed width are joined and read as numbers by numpy; text and digits are cast by Arrow.
Columns of other types, and those with a default for rows that were there before them, are not made
here: `can_make_columns` says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.codec.arrow.rows_to_arrow import arrow_field, arrow_type
from belvedere.codec.row_slots import numeric_bits
from belvedere.errors import Corruption, Unsupported
from belvedere.kv.cell import Cells
from belvedere.txn.row_atomic.cells import data_cells
from belvedere.txn.row_atomic.cells.table_cells import ESCAPE, CellColumn
from belvedere.types import Kind, SqlType

WIDTHS: dict[Kind, tuple[str, Any]] = {
    Kind.SMALLINT: (">i2", np.int16),
    Kind.INTEGER: (">i4", np.int32),
    Kind.BIGINT: (">i8", np.int64),
    Kind.REAL: (">f4", np.float32),
    Kind.DOUBLE: (">f8", np.float64),
    Kind.DATE: (">i4", np.int32),
    Kind.TIME: (">i8", np.int64),
    Kind.TIMESTAMP: (">i8", np.int64),
    Kind.TIMESTAMPTZ: (">i8", np.int64),
}
_TEXTS = frozenset({Kind.CHAR, Kind.VARCHAR, Kind.TEXT, Kind.JSON})
_NO_SPECIAL = "NaN or infinity of a numeric column in Arrow"

Values = list[bytes | None]


def can_make_columns(columns: Sequence[CellColumn]) -> bool:
    return all(
        column.missing is None
        and (
            column.type.kind in WIDTHS
            or column.type.kind in _TEXTS
            or column.type.kind in (Kind.BOOLEAN, Kind.BYTEA, Kind.UUID)
            or (column.type.kind is Kind.NUMERIC and numeric_bits(column.type) is not None)
        )
        for column in columns
    )


def make_columns(
    found: Sequence[tuple[bytes, Cells]], columns: Sequence[CellColumn]
) -> pa.RecordBatch:
    """The rows that exist, as c0, c1.. ; their number is right without columns too."""
    rows = [row for key, cells in found if (row := _row_values(key, cells)) is not None]
    if not columns:
        return make_batch([pa.array([1] * len(rows), pa.int32())], columns)
    arrays = [_make_array([row.get(column.name) for row in rows], column) for column in columns]
    return make_batch(arrays, columns)


def make_batch(arrays: list[pa.Array], columns: Sequence[CellColumn]) -> pa.RecordBatch:
    if not columns:
        return pa.RecordBatch.from_arrays(arrays, names=["nothing"])
    fields = [arrow_field(f"c{number}", column.type) for number, column in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _row_values(key: bytes, cells: Cells) -> dict[bytes, bytes] | None:
    """The columns of a row; None when it was deleted."""
    marker = cells[0]
    if marker[0] != data_cells.MARKER:
        row = data_cells.read_row(key, cells)
        return None if row is None else row.columns
    born = data_cells.born_of(key, marker[2])
    if born is None:
        return None
    return {
        column: value
        for column, timestamp, value in cells[1:]
        if timestamp >= born and value != data_cells.NULL_CELL
    }


def _make_array(values: Values, column: CellColumn) -> pa.Array:
    kind = column.type.kind
    try:
        if kind in WIDTHS:
            return _number_array(values, column.type)
        if kind is Kind.BOOLEAN:
            return _boolean_array(values)
        if kind is Kind.UUID:
            return pa.array(values, pa.binary(16))
        if kind is Kind.NUMERIC:
            return decimal_array(pa.array(values, pa.binary()), column.type)
        found = pa.array([_unescape(value) for value in values], pa.binary())
        return found if kind is Kind.BYTEA else found.cast(pa.utf8())
    except (ValueError, pa.ArrowException) as error:
        raise Corruption(
            "row was altered: unknown form", form="cell", column=column.name.decode()
        ) from error


def _number_array(values: Values, sql_type: SqlType) -> pa.Array:
    form, native = WIDTHS[sql_type.kind]
    width = np.dtype(form).itemsize
    absent = None
    if None in values:
        absent = np.fromiter((value is None for value in values), np.bool_, len(values))
        values = [bytes(width) if value is None else value for value in values]
    joined = b"".join(values)  # type: ignore[arg-type]
    if {*map(len, values)} - {width}:  # type: ignore[arg-type]
        raise ValueError("a cell has another width")
    numbers = np.frombuffer(joined, form).astype(native)
    return pa.array(numbers, mask=absent).view(arrow_type(sql_type))


def _boolean_array(values: Values) -> pa.Array:
    if {*values} - {b"t", b"f", None}:
        raise ValueError("neither t nor f")
    return pa.array([None if value is None else value == b"t" for value in values], pa.bool_())


def decimal_array(digits: pa.Array, sql_type: SqlType) -> pa.Array:
    digits = digits.cast(pa.utf8())
    if pc.any(pc.match_substring_regex(digits, "[NI]")).as_py():
        raise Unsupported(
            _NO_SPECIAL, hint="cast the column to double precision", type=str(sql_type)
        )
    return digits.cast(arrow_type(sql_type))


def _unescape(value: bytes | None) -> bytes | None:
    if value is not None and value[0] == 0 and value.startswith(ESCAPE):
        return value[len(ESCAPE) :]
    return value
