"""The rows of a foreign table: what is asked of HBase, and how its answers become rows.

A row of HBase whose key begins with the table's prefix is a row of the foreign table, whichever
cells it has; a cell that is not there is NULL. So whole rows are asked for, unless it is known that
each row has a cell among those that are read: a column that is NOT NULL, or one that a condition
compares. Rows are those of the moment in which each is read: there is no snapshot of what others
write.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.foreign_options import ForeignColumn, ForeignLayout, build_layout
from belvedere.catalog.model import ForeignServer, ForeignTable
from belvedere.errors import Error, InvalidInput
from belvedere.execution.foreign.encodings import ColumnCodec, build_codec
from belvedere.execution.foreign.key_ranges import RowKeyPart, find_key_ranges
from belvedere.kv.cell_filter import CellFilter, compared_columns
from belvedere.kv.hbase.table_scan import (
    PAGE_ROWS,
    TableRow,
    TableScan,
    open_shared_exchange,
    scan_table,
)
from belvedere.kv.hbase.url import HBaseUrl, parse_url
from belvedere.txn.row_atomic.cells.table_cells import CellColumn
from belvedere.txn.row_atomic.cells.table_filters import build_filter
from belvedere.txn.scan_request import AllConditions, AnyCondition, RowCondition, SlotComparison
from belvedere.types import NUMERIC, Row

NAMESPACE = "foreign"
"""URLs name a namespace; tables of a server name their own."""


def build_server_url(server: ForeignServer) -> HBaseUrl:
    """Where the gateways of a server are; InvalidInput when its options say nothing of the kind."""
    more = [
        f"{name}={server.options[name]}"
        for name in ("connections", "timeout_ms")
        if name in server.options
    ]
    return parse_url(f"hbase://{server.options['gateways']}/{NAMESPACE}?{'&'.join(more)}")


def open_foreign_rows(catalog: Catalog, relation: int) -> ForeignRows:
    table = catalog.get(relation)
    assert isinstance(table, ForeignTable)
    server = catalog.get(table.server)
    assert isinstance(server, ForeignServer)
    return ForeignRows(table.name, build_layout(table), build_server_url(server))


@dataclass(frozen=True, slots=True)
class ForeignRequest:
    """The slots to read, in the order of the rows, the condition that rows have to meet as far as
    HBase can tell, and how many rows are probably enough (0: all)."""

    slots: tuple[int, ...]
    condition: RowCondition | None = None
    wanted: int = 0


class ForeignRows:
    def __init__(self, name: str, layout: ForeignLayout, url: HBaseUrl) -> None:
        self._name = name
        self._layout = layout
        self._url = url
        last = len(layout.key) - 1
        self._key = tuple(
            RowKeyPart(
                column,
                build_codec(column),
                layout.separator if column.width is None and number < last else b"",
                number == last,
            )
            for number, column in enumerate(layout.key)
        )
        self._key_slots = {part.column.slot for part in self._key}
        self._codecs = {slot: build_codec(column) for slot, column in layout.cells.items()}
        self._required = next((c for c in layout.cells.values() if c.not_null), None)

    def read_rows(self, request: ForeignRequest) -> Iterator[list[Row]]:
        """Pages of rows. The condition may leave out too few of them, never too many."""
        wanted = self._build_filter(request.condition)
        columns = self._choose_columns(request.slots, wanted)
        exchange = open_shared_exchange(self._url)
        page = min(request.wanted, PAGE_ROWS) or PAGE_ROWS
        for start, end in find_key_ranges(self._key, self._layout.prefix, request.condition):
            scan = TableScan(self._layout.table, start, end, columns, wanted)
            for rows in scan_table(exchange, scan, page):
                yield self._decode_rows(rows, request.slots)

    def describe_push_down(self, condition: RowCondition | None) -> list[str]:
        """What of a condition HBase does, for EXPLAIN."""
        said = []
        whole = find_key_ranges(self._key, self._layout.prefix, None)
        found = find_key_ranges(self._key, self._layout.prefix, condition)
        if found != whole:
            said.append("a range of keys" if len(found) == 1 else f"{len(found)} ranges of keys")
        if self._build_filter(condition) is not None:
            said.append("a filter of cells")
        return said

    @property
    def table(self) -> str:
        return self._layout.table

    # -- what is asked ------------------------------------------------------------------------

    def _build_filter(self, condition: RowCondition | None) -> CellFilter | None:
        cells = None if condition is None else _drop_key_conditions(condition, self._key_slots)
        return None if cells is None else build_filter(cells, self._find_cell, b"")

    def _find_cell(self, slot: int) -> CellColumn:
        column, codec = self._layout.cells[slot], self._codecs[slot]
        compared = codec.compares_as if codec.comparable else NUMERIC
        return CellColumn(_name_cell(column), codec.encode, codec.decode, None, compared)

    def _choose_columns(
        self, slots: tuple[int, ...], wanted: CellFilter | None
    ) -> tuple[bytes, ...] | None:
        """The cells to ask for; None: all, because a row may have none of those."""
        cells = self._layout.cells
        read = {_name_cell(cells[slot]) for slot in slots if slot in cells}
        if wanted is not None:
            return tuple(sorted(read | set(compared_columns(wanted))))
        if not read:
            return ()
        if self._required is None:
            return None
        return tuple(sorted(read | {_name_cell(self._required)}))

    # -- what is answered ---------------------------------------------------------------------

    def _decode_rows(self, rows: list[TableRow], slots: tuple[int, ...]) -> list[Row]:
        reads_key = any(slot in self._key_slots for slot in slots)
        cells = [
            (_name_cell(self._layout.cells[slot]), self._codecs[slot].decode, slot)
            if slot in self._codecs
            else None
            for slot in slots
        ]
        found = []
        for key, values in rows:
            parts = self._decode_key(key) if reads_key else {}
            row = []
            for slot, cell in zip(slots, cells):
                if cell is None:
                    row.append(parts[slot])
                    continue
                value = values.get(cell[0])
                row.append(None if value is None else self._decode_cell(key, slot, value))
            found.append(tuple(row))
        return found

    def _decode_cell(self, key: bytes, slot: int, value: bytes) -> Any:
        column = self._layout.cells[slot]
        return self._decode_value(self._codecs[slot], column, key, value)

    def _decode_key(self, key: bytes) -> dict[int, Any]:
        found: dict[int, Any] = {}
        at = len(self._layout.prefix)
        for part in self._key:
            end = self._find_part_end(part, key, at)
            found[part.column.slot] = self._decode_value(part.codec, part.column, key, key[at:end])
            at = end + len(part.end)
        if at < len(key):
            raise self._decoding_error("the row key is longer than its columns", key, None)
        return found

    def _find_part_end(self, part: RowKeyPart, key: bytes, at: int) -> int:
        width = part.column.width
        if width is not None:
            return min(at + width, len(key))
        if part.is_last:
            return len(key)
        end = key.find(part.end, at)
        if end < 0:
            raise self._decoding_error("the row key has no separator there", key, part.column)
        return end

    def _decode_value(
        self, codec: ColumnCodec, column: ForeignColumn, key: bytes, value: bytes
    ) -> Any:
        try:
            return codec.decode(value)
        except (ValueError, ArithmeticError, struct.error, Error) as error:
            raise self._decoding_error(
                "a value does not have the form that was declared", key, column
            ) from error

    def _decoding_error(
        self, message: str, key: bytes, column: ForeignColumn | None
    ) -> InvalidInput:
        facts: dict[str, Any] = (
            {} if column is None else {"column": column.name, "type": str(column.type)}
        )
        facts |= {} if column is None else {"encoding": column.encoding}
        return InvalidInput(
            message, sqlstate="22P03", foreign_table=self._name, row=_show_key(key), **facts
        )


def _name_cell(column: ForeignColumn) -> bytes:
    return column.family + b":" + column.qualifier


def _show_key(key: bytes) -> str:
    shown = key.decode("ascii", "replace")
    return shown if key.isascii() and shown.isprintable() else f"\\x{key.hex()}"


def _drop_key_conditions(condition: RowCondition, key: set[int]) -> RowCondition | None:
    """What a condition says of cells; of an OR all or nothing."""
    match condition:
        case SlotComparison(slot):
            return None if slot in key else condition
        case AllConditions(conditions):
            found = [_drop_key_conditions(each, key) for each in conditions]
            kept = tuple(each for each in found if each is not None)
            return AllConditions(kept) if kept else None
        case AnyCondition(conditions):
            found = [_drop_key_conditions(each, key) for each in conditions]
            some = tuple(each for each in found if each is not None)
            return AnyCondition(some) if some and len(some) == len(found) else None
