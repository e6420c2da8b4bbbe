"""Packed rows as Arrow columns: a few operations of numpy for each column of a page.

Which cells are values of rows is decided as by `data_cells`: a row exists where its marker says so,
and its cells are those not older than that. Pages with rows of another kind (sums, or altered ones)
become columns by `cell_columns`, which also says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from belvedere.codec.arrow.rows_to_arrow import arrow_type
from belvedere.errors import Corruption
from belvedere.kv.cell import Cells
from belvedere.kv.packed_rows import PackedColumn, PackedRows
from belvedere.txn.row_atomic.cells import cell_columns
from belvedere.txn.row_atomic.cells.data_cells import DELETED, DELTA, FOLD, MARKER
from belvedere.txn.row_atomic.cells.table_cells import CellColumn
from belvedere.types import Kind

if TYPE_CHECKING:
    from belvedere.kv.packed_rows import Bytes, Integers

Flags = npt.NDArray[np.bool_]
PUT_BYTES = 9
PUT, GONE = ord("+"), DELETED[0]


def make_columns(
    found: Sequence[tuple[bytes, Cells]], columns: Sequence[CellColumn]
) -> pa.RecordBatch:
    """The rows that exist, as c0, c1.. ; their number is right without columns too."""
    born = _read_markers(found) if isinstance(found, PackedRows) else None
    if born is None:
        return cell_columns.make_columns(found, columns)
    assert isinstance(found, PackedRows)
    alive = np.flatnonzero(born >= 0)
    if not columns:
        return cell_columns.make_batch([pa.array(np.ones(len(alive), np.int32))], columns)
    arrays = [_make_array(found, born[alive], alive, column) for column in columns]
    return cell_columns.make_batch(arrays, columns)


def _read_markers(found: PackedRows) -> Integers | None:
    """Since when each row exists, -1 where it was deleted; None when there is a row of another
    kind."""
    marker = found.columns.get(MARKER)
    if marker is None or DELTA in found.columns or FOLD in found.columns:
        return None
    if (marker.lengths < 1).any():
        return None
    first = found.gather(marker.starts, 1).ravel()
    alive = (first == PUT) & (marker.lengths == PUT_BYTES)
    if not (alive | ((first == GONE) & (marker.lengths == 1))).all():
        return None
    born = np.full(len(found), -1, np.int64)
    born[alive] = found.gather(marker.starts[alive] + 1, 8).view(">i8").ravel()
    return born


def _make_array(found: PackedRows, born: Integers, rows: Integers, column: CellColumn) -> pa.Array:
    cells = found.columns.get(column.name)
    cells = PackedColumn.of_absent(len(rows)) if cells is None else cells.take(rows)
    present = (cells.lengths > 0) & (cells.timestamps >= born)
    single = np.flatnonzero(present & (cells.lengths == 1))
    present[single] &= found.gather(cells.starts[single], 1).ravel() != 0
    try:
        return _ArrayMaker(found, cells, present).make_array(column)
    except (ValueError, pa.ArrowException) as error:
        raise Corruption(
            "row was altered: unknown form", form="cell", column=column.name.decode()
        ) from error


class _ArrayMaker:
    """One column of the rows that exist. ValueError where a cell has not the form of its type."""

    def __init__(self, found: PackedRows, cells: PackedColumn, present: Flags) -> None:
        self._found = found
        self._present = present
        self._starts = np.where(present, cells.starts, 0)
        self._lengths = np.where(present, cells.lengths, 0)

    def make_array(self, column: CellColumn) -> pa.Array:
        kind = column.type.kind
        if kind in cell_columns.WIDTHS:
            form, native = cell_columns.WIDTHS[kind]
            numbers = self._gather_fixed(np.dtype(form).itemsize).view(form).ravel()
            mask = None if self._present.all() else ~self._present
            return pa.array(numbers.astype(native), mask=mask).view(arrow_type(column.type))
        if kind is Kind.BOOLEAN:
            letters = self._gather_fixed(1).ravel()
            if not np.isin(letters[self._present], (ord("t"), ord("f"))).all():
                raise ValueError("neither t nor f")
            return pa.array(letters == ord("t"), mask=~self._present)
        if kind is Kind.UUID:
            data = pa.py_buffer(self._gather_fixed(16))
            return pa.Array.from_buffers(
                pa.binary(16), len(self._present), [self._make_validity(), data]
            )
        if kind is Kind.NUMERIC:
            return cell_columns.decimal_array(self._gather_bytes(), column.type)
        found = self._gather_bytes()
        return found if kind is Kind.BYTEA else found.cast(pa.utf8())

    def _gather_fixed(self, width: int) -> Bytes:
        if (self._lengths[self._present] != width).any():
            raise ValueError("a cell has another width")
        return self._found.gather(self._starts, width)

    def _gather_bytes(self) -> pa.Array:
        """Values of any length, without the bytes that escape some of them."""
        starts, lengths = self._starts, self._lengths
        first = self._found.gather(starts, 2)
        escaped = self._present & (lengths > 1) & (first[:, 0] == 0) & (first[:, 1] == 1)
        starts, lengths = starts + 2 * escaped, lengths - 2 * escaped
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        places = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        data = np.frombuffer(self._found.buffer, np.uint8)[places]
        buffers = [self._make_validity(), pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)

    def _make_validity(self) -> pa.Buffer | None:
        if self._present.all():
            return None
        return pa.py_buffer(np.packbits(self._present, bitorder="little"))
