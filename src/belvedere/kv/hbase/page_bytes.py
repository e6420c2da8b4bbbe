"""Pages of scans, read from the bytes of the gateway's answer without making objects of them.

An answer to getScannerResults in Thrift's binary protocol, after the header of the message:

    0f 0000 0c COUNT                        a list of rows
      0b 0001 LENGTH key                    a row
      0f 0002 0c COUNT                        a list of cells
        0b 0001 LENGTH family                 a cell
        0b 0002 LENGTH column
        0b 0003 LENGTH value
        0a 0004 TIMESTAMP
        [03 0006 TYPE]
        00
      [02 0003 STALE] [02 0004 PARTIAL]
      00
    00

Where a row begins is found by the prefix that all keys have. Then all rows are read in step: the
first cell of each, the second of each, with every byte that is not data compared with this form.
What does not have it to the last byte (an error, fields of another release, bytes in a value that
look like a row) is left to Thrift's own decoder, which is told nothing of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from belvedere.kv.packed_rows import ABSENT, PackedColumn, PackedRows, gather_bytes

if TYPE_CHECKING:
    from belvedere.kv.packed_rows import Bytes, Integers

REPLY = 2
ROW_FIELD = b"\x0b\x00\x01"
CELLS_FIELD = b"\x0f\x00\x02\x0c"
COLUMN_FIELD, VALUE_FIELD, TIME_FIELD = b"\x0b\x00\x02", b"\x0b\x00\x03", b"\x0a\x00\x04"
TYPE_FIELD, STALE_FIELD, PARTIAL_FIELD = b"\x03\x00\x06", b"\x02\x00\x03", b"\x02\x00\x04"
PADDING = bytes(64)
"""After the bytes of a page, so that fields may be looked for at its end."""

COLUMN_BYTES_MAX = 8
CELLS_MAX = 2_000
_PLACES = np.array([1 << 56, 1 << 48, 1 << 40, 1 << 32, 1 << 24, 1 << 16, 1 << 8, 1], np.uint64)


class OtherForm(Exception):
    """Bytes that are not a page of this form. It never leaves this module."""


class PageHeader:
    """What the first bytes of an answer have to be."""

    def __init__(self, name: str, sequence: int) -> None:
        begin = b"\x80\x01\x00" + bytes((REPLY,)) + len(name).to_bytes(4) + name.encode()
        self._expected = begin + sequence.to_bytes(4) + b"\x0f\x00\x00\x0c"
        self.size = len(self._expected) + 4

    def may_begin(self, data: bytearray) -> bool:
        """Whether an answer that begins so may be a page."""
        return data[: len(self._expected)] == self._expected[: len(data)]

    def read_count(self, data: bytearray) -> int:
        """How many rows follow, by the first `size` bytes."""
        return int.from_bytes(data[self.size - 4 : self.size])


def may_be_complete(data: bytearray, count: int, prefix: bytes) -> bool:
    """False while bytes of a page of so many rows are certainly still to come."""
    return data.endswith(b"\x00\x00" if count else b"\x00") and data.count(prefix) >= count


def unpack_page(
    data: bytes, begin: int, count: int, prefix: bytes, family: bytes
) -> PackedRows | None:
    """The rows of a complete answer, of which those before `begin` are the header; None when it is
    not, or has another form."""
    try:
        return _PageReader(data, prefix, family).read_page(begin, count)
    except (OtherForm, IndexError):
        return None


class _PageReader:
    def __init__(self, data: bytes, prefix: bytes, family: bytes) -> None:
        self._buffer = data + PADDING
        self._size = len(data)
        self._data: Bytes = np.frombuffer(self._buffer, np.uint8)
        self._prefix = prefix
        self._family = ROW_FIELD + len(family).to_bytes(4) + family

    def read_page(self, begin: int, count: int) -> PackedRows:
        if count == 0:
            return self._read_no_rows(begin)
        rows = self._find_rows()
        if len(rows) != count or rows[0] != begin:
            raise OtherForm
        at, lengths = self._read_length(rows, ROW_FIELD)
        keys = (at, lengths)
        at, cells = self._read_length(at + lengths, CELLS_FIELD)
        columns: dict[bytes, PackedColumn] = {}
        if not 0 < cells.max() <= CELLS_MAX:
            raise OtherForm
        for number in range(int(cells.max())):
            some = slice(None) if (cells > number).all() else np.flatnonzero(cells > number)
            at[some] = self._read_cells(at[some], some, columns, count)
        at = self._skip_optional(at, STALE_FIELD)
        at = self._skip_optional(at, PARTIAL_FIELD)
        self._require(at, b"\x00")
        at = at + 1
        if (at[:-1] != rows[1:]).any() or at[-1] != self._size - 1:
            raise OtherForm
        self._require(at[-1:], b"\x00")
        return PackedRows(self._buffer, keys, columns)

    def _read_no_rows(self, begin: int) -> PackedRows:
        if self._size != begin + 1 or self._buffer[begin] != 0:
            raise OtherForm
        none = np.zeros(0, np.int64)
        return PackedRows(self._buffer, (none, none), {})

    def _find_rows(self) -> Integers:
        """Where a field begins that may be the key of a row."""
        data, prefix = self._data, self._prefix
        found = np.flatnonzero(data[: self._size] == prefix[0])
        for place, byte in enumerate(prefix[1:], 1):
            found = found[data[found + place] == byte]
        found = found[found >= 7] - 7
        for place, byte in enumerate(ROW_FIELD):
            found = found[data[found + place] == byte]
        return found

    def _read_cells(
        self,
        at: Integers,
        rows: slice | Integers,
        columns: dict[bytes, PackedColumn],
        count: int,
    ) -> Integers:
        """One cell of each of these rows into the columns; where the next one begins."""
        self._require(at, self._family)
        names, name_lengths = self._read_length(at + len(self._family), COLUMN_FIELD)
        starts, lengths = self._read_length(names + name_lengths, VALUE_FIELD)
        self._require(starts + lengths, TIME_FIELD)
        at = starts + lengths + len(TIME_FIELD)
        timestamps = self._read_numbers(at, 8)
        at = self._skip_optional(at + 8, TYPE_FIELD)
        self._require(at, b"\x00")
        for name, some in self._group_by_name(names, name_lengths):
            column = columns.get(name)
            if column is None:
                column = columns[name] = PackedColumn.of_absent(count)
            places = np.arange(count)[rows][some]
            if (column.lengths[places] != ABSENT).any():
                raise OtherForm
            column.starts[places] = starts[some]
            column.lengths[places] = lengths[some]
            column.timestamps[places] = timestamps[some]
        return at + 1

    def _group_by_name(
        self, starts: Integers, lengths: Integers
    ) -> list[tuple[bytes, slice | Integers]]:
        """The columns among these cells, nearly always one, with the cells that are theirs."""
        if lengths.max() > COLUMN_BYTES_MAX:
            raise OtherForm
        wide = gather_bytes(self._data, starts, COLUMN_BYTES_MAX)
        wide[np.arange(COLUMN_BYTES_MAX) >= lengths[:, None]] = 0
        codes = wide.astype(np.uint64) @ _PLACES
        first = bytes(wide[0, : lengths[0]])
        if (codes == codes[0]).all() and (lengths == lengths[0]).all():
            return [(first, slice(None))]
        found: list[tuple[bytes, slice | Integers]] = []
        for code, length in {*zip(codes.tolist(), lengths.tolist())}:
            some = np.flatnonzero((codes == code) & (lengths == length))
            found.append((int(code).to_bytes(COLUMN_BYTES_MAX)[:length], some))
        return found

    def _read_length(self, at: Integers, field: bytes) -> tuple[Integers, Integers]:
        """What follows a field and its length: where it begins, and the length."""
        self._require(at, field)
        at = at + len(field)
        lengths = self._read_numbers(at, 4)
        return at + 4, lengths

    def _read_numbers(self, at: Integers, width: int) -> Integers:
        self._require_inside(at, width)
        found = gather_bytes(self._data, at, width).view(f">i{width}").ravel().astype(np.int64)
        if (found < 0).any():
            raise OtherForm
        return found

    def _require(self, at: Integers, expected: bytes) -> None:
        self._require_inside(at, len(expected))
        for place, byte in enumerate(expected):
            if (self._data[at + place] != byte).any():
                raise OtherForm

    def _skip_optional(self, at: Integers, field: bytes) -> Integers:
        """Past a field of one byte, where it is: perhaps in the padding."""
        self._require_inside(at, 0)
        there = np.ones(len(at), np.bool_)
        for place, byte in enumerate(field):
            there &= self._data[at + place] == byte
        return at + np.where(there, len(field) + 1, 0)

    def _require_inside(self, at: Integers, width: int) -> None:
        if (at + width > self._size).any():
            raise OtherForm
