"""Table rows as cells, one cell a column, so that other users of the store can read them.

The cell of slot 3 is the column `c3`: columns may be renamed, slots stay. NULL is no cell. What is
in a cell:

| type | cell |
|---|---|
| BOOLEAN | `t` or `f` |
| SMALLINT 2, INTEGER 4, BIGINT 8; REAL 4, DOUBLE 8 bytes | big-endian, as HBase's own clients |
| DATE 4; TIME, TIMESTAMP, TIMESTAMPTZ 8 bytes | days; microseconds, big-endian |
| NUMERIC, of any precision | digits as text |
| CHAR, VARCHAR, TEXT, JSON; BYTEA | UTF-8; the bytes |
| INTERVAL, UUID | 16 bytes, as in a row (`codec.row_slots`) |

Bytes that are empty or begin with 00 have 00 01 before them: a cell is never empty, and a single 00
is the NULL of a column that had a value before (`encode_cells`). A column that was added later with
a default has the default where there is no cell; its NULL is therefore a cell of its own, 00 00 00.

Only what changed is written: the cells of an update are the difference of two rows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.codec import scalars
from belvedere.errors import Corruption, Error
from belvedere.kv.batch import Pair
from belvedere.types import Kind, SqlType

STORED_NULL = b"\x00\x00\x00"
ESCAPE = b"\x00\x01"

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


def cells_of(catalog: Catalog, relation: int) -> TableCells | None:
    """How rows of a table become cells, kept per catalog; None when the relation is no table."""
    memo_key = ("cells", relation)
    if memo_key not in catalog.derived_cache:
        found = None
        if isinstance(catalog.get(relation), Table):
            found = TableCells(compiled_table(catalog, relation))
        catalog.derived_cache[memo_key] = found
    return catalog.derived_cache[memo_key]  # type: ignore[return-value]


class CellColumn(NamedTuple):
    """The cell of a column: its name, its form, and the value of a row that has no such cell."""

    name: bytes
    encode: Encode
    decode: Decode
    missing: Any
    type: SqlType


class TableCells:
    def __init__(self, table: CompiledTable) -> None:
        self._decode_row = table.decode
        self._encode_row = table.encode
        self._columns = {
            slot.slot: CellColumn(
                b"c%d" % slot.slot,
                *_cell_codec(slot.type),
                table.layout.slots[slot.slot].missing_value,
                slot.type,
            )
            for slot in table.table.columns
        }
        self._slots = [column[:4] for column in self._columns.values()]
        self.column_names = {column.name for column in self._columns.values()}

    def column_of(self, slot: int) -> CellColumn:
        return self._columns[slot]

    def changed_cells(self, old: bytes | None, new: bytes) -> dict[bytes, bytes | None]:
        """The cells to write when a row becomes `new`; None: the value is removed."""
        after = self.encode_cells(new)
        if old is None:
            return {column: value for column, value in after.items() if value is not None}
        before = self.encode_cells(old)
        return {column: value for column, value in after.items() if value != before[column]}

    def encode_cells(self, value: bytes) -> dict[bytes, bytes | None]:
        """Every column of a stored row; None: no cell."""
        found: dict[bytes, bytes | None] = {}
        for (column, encode, _, missing), each in zip(self._slots, self._decode_row(value)):
            if each is None:
                found[column] = None if missing is None else STORED_NULL
            else:
                found[column] = encode(each)
        return found

    def decode_rows(self, rows: Iterable[tuple[bytes, dict[bytes, bytes]]]) -> list[Pair]:
        return [(key, self.decode_row(key, cells)) for key, cells in rows]

    def decode_row(self, key: bytes, cells: dict[bytes, bytes]) -> bytes:
        """The stored row that these cells are. Corruption, naming the row, when they are none."""
        values = []
        try:
            for column, _, decode, missing in self._slots:
                cell = cells.get(column)
                if cell is None:
                    values.append(missing)
                else:
                    values.append(None if cell == STORED_NULL else decode(cell))
            return self._encode_row(tuple(values))
        except (ValueError, ArithmeticError, struct.error, Error) as error:
            raise Corruption("row was altered: unknown form", row=key.hex(), form="cell") from error


def _cell_codec(type_: SqlType) -> tuple[Encode, Decode]:
    match type_.kind:
        case Kind.BOOLEAN:
            return (lambda value: b"t" if value else b"f"), _decode_boolean
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT | Kind.REAL | Kind.DOUBLE:
            return _struct_codec(_FORMATS[type_.kind])
        case Kind.DATE:
            return _datetime_codec(">i", scalars.days, scalars.date_of)
        case Kind.TIME:
            return _datetime_codec(">q", scalars.time_microseconds, scalars.time_of)
        case Kind.TIMESTAMP:
            return _datetime_codec(">q", scalars.timestamp_microseconds, scalars.timestamp_of)
        case Kind.TIMESTAMPTZ:
            return _datetime_codec(">q", scalars.timestamptz_microseconds, scalars.timestamptz_of)
        case Kind.NUMERIC:
            return (lambda value: scalars.numeric_text(value).encode()), _decode_number
        case Kind.INTERVAL:
            return scalars.interval_bytes, scalars.interval_of
        case Kind.UUID:
            return (lambda value: value.bytes), scalars.uuid_of
        case Kind.BYTEA:
            return _escape_bytes, _unescape_bytes
        case _:
            return _encode_text, lambda cell: _unescape_bytes(cell).decode()


_FORMATS = {
    Kind.SMALLINT: ">h",
    Kind.INTEGER: ">i",
    Kind.BIGINT: ">q",
    Kind.REAL: ">f",
    Kind.DOUBLE: ">d",
}


def _struct_codec(form: str) -> tuple[Encode, Decode]:
    packer = struct.Struct(form)
    return packer.pack, lambda cell: packer.unpack(cell)[0]


def _datetime_codec(
    form: str, number_of: Callable[[Any], int], of_number: Callable[[int], Any]
) -> tuple[Encode, Decode]:
    packer = struct.Struct(form)
    return (
        lambda value: packer.pack(number_of(value)),
        lambda cell: of_number(packer.unpack(cell)[0]),
    )


def _decode_boolean(cell: bytes) -> bool:
    if cell not in (b"t", b"f"):
        raise ValueError
    return cell == b"t"


def _decode_number(cell: bytes) -> Decimal:
    return Decimal(cell.decode())


def _encode_text(value: str) -> bytes:
    return _escape_bytes(value.encode())


def _escape_bytes(value: bytes) -> bytes:
    return ESCAPE + value if value[:1] in (b"", b"\x00") else value


def _unescape_bytes(cell: bytes) -> bytes:
    return cell[len(ESCAPE) :] if cell.startswith(ESCAPE) else cell
