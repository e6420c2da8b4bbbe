"""Conditions on columns as filters of cells, which the store evaluates before it sends rows.

A store compares cells as unsigned bytes. Text, bytes and UUIDs are in order that way. Numbers and
times are big-endian with a sign: one comparison of values is one or two ranges of bytes.

    x < 5     00000000 <= cell < 00000005  or  80000000 <= cell        (negative numbers come last)
    x < -5    80000000 <= cell < fffffffb

A filter may let rows pass that do not meet the condition, never the other way round. So NULL, a
cell of its own or none, and cells of an earlier life of the row, need no thought: where the newest
cell is not the row's value, the value is NULL, which meets no comparison. NUMERIC (digits) and CHAR
(blanks) have no such order: their conditions are left to the caller.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from belvedere.errors import Error
from belvedere.kv.cell_filter import AllOf, AnyOf, CellComparison, CellFilter
from belvedere.txn.row_atomic.cells.table_cells import CellColumn
from belvedere.txn.scan_request import AllConditions, AnyCondition, RowCondition, SlotComparison
from belvedere.types import Kind

SIGNED_KINDS = frozenset(
    {
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.DATE,
        Kind.TIME,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
    }
)
FLOAT_KINDS = frozenset({Kind.REAL, Kind.DOUBLE})
ORDERED_KINDS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.BYTEA, Kind.UUID, Kind.BOOLEAN})

NOT_NULL = "not null"

ColumnOf = Callable[[int], CellColumn]


def build_filter(
    condition: RowCondition, column_of: ColumnOf, lowest: bytes = b"\x00"
) -> CellFilter | None:
    """None: no cell says anything about it. Of an AND, what can be filtered by; of an OR all or
    nothing. `lowest` is the least value of a cell."""
    match condition:
        case AllConditions(conditions):
            found = [build_filter(each, column_of, lowest) for each in conditions]
            kept = tuple(each for each in found if each is not None)
            return AllOf(kept) if len(kept) > 1 else (kept[0] if kept else None)
        case AnyCondition(conditions):
            found = [build_filter(each, column_of, lowest) for each in conditions]
            some = tuple(each for each in found if each is not None)
            return AnyOf(some) if some and len(some) == len(found) else None
        case SlotComparison(slot):
            return _compare_column(condition, column_of(slot), lowest)


def _compare_column(
    condition: SlotComparison, column: CellColumn, lowest: bytes
) -> CellFilter | None:
    def compare(name: str, value: bytes) -> CellComparison:
        return CellComparison(column.name, name, value, column.missing is not None)

    if condition.operator == NOT_NULL:
        return compare(">=", lowest)
    kind = column.type.kind
    if kind not in SIGNED_KINDS | FLOAT_KINDS | ORDERED_KINDS:
        return None
    try:
        cell = column.encode(condition.value)
    except (struct.error, Error, ValueError, ArithmeticError):
        return None  # no value of the column: the caller compares
    if kind in ORDERED_KINDS:
        return compare(condition.operator, cell)
    if kind in FLOAT_KINDS:
        return _compare_float(condition.operator, condition.value, cell, compare)
    return _compare_signed(condition.operator, cell, compare)


Compare = Callable[[str, bytes], CellComparison]


def _compare_signed(name: str, cell: bytes, compare: Compare) -> CellFilter:
    if name in ("=", "<>"):
        return compare(name, cell)
    negative = b"\x80" + bytes(len(cell) - 1)
    below = name in ("<", "<=")
    if cell >= negative:  # the value is negative
        if below:
            return AllOf((compare(">=", negative), compare(name, cell)))
        return AnyOf((compare("<", negative), compare(name, cell)))
    if below:
        return AnyOf((compare(name, cell), compare(">=", negative)))
    return AllOf((compare(name, cell), compare("<", negative)))


def _compare_float(name: str, value: Any, cell: bytes, compare: Compare) -> CellFilter | None:
    """The bytes of negative numbers are in reverse order. Zero has two forms, NaN many, which is
    above everything: all these pass where they could."""
    if name not in ("<", "<=", ">", ">=") or not math.isfinite(value) or value == 0:
        return None
    negative = b"\x80" + bytes(len(cell) - 1)
    negative_nan = (b"\xff\xf0" if len(cell) == 8 else b"\xff\x80") + bytes(len(cell) - 2)
    if name in ("<", "<="):
        if value < 0:
            return compare(">" if name == "<" else ">=", cell)
        return AnyOf((compare(name, cell), compare(">=", negative)))
    if value < 0:
        reverse = compare("<" if name == ">" else "<=", cell)
        return AnyOf((reverse, compare(">", negative_nan)))
    return AnyOf((AllOf((compare(name, cell), compare("<", negative))), compare(">", negative_nan)))
