"""Filters of scans: which rows a store leaves out before it sends them.

AND and OR of comparisons of one cell each with a value, as unsigned bytes. Of a column the newest
version that the scan sees counts; the scan must read every column that its filter compares.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

OPERATORS: dict[str, Callable[[bytes, bytes], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class CellComparison:
    """cell OPERATOR value. A row without the cell passes when `passes_missing`."""

    column: bytes
    operator: str
    value: bytes
    passes_missing: bool = False


@dataclass(frozen=True, slots=True)
class AllOf:
    filters: tuple[CellFilter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    filters: tuple[CellFilter, ...]


CellFilter = CellComparison | AllOf | AnyOf


def passes_filter(wanted: CellFilter, newest: dict[bytes, bytes]) -> bool:
    """What the filter says of a row, given the newest value of each of its columns."""
    match wanted:
        case AllOf(filters):
            return all(passes_filter(each, newest) for each in filters)
        case AnyOf(filters):
            return any(passes_filter(each, newest) for each in filters)
        case CellComparison(column, name, value, passes_missing):
            if column not in newest:
                return passes_missing
            return OPERATORS[name](newest[column], value)


def compared_columns(wanted: CellFilter) -> Iterator[bytes]:
    if isinstance(wanted, CellComparison):
        yield wanted.column
    else:
        for each in wanted.filters:
            yield from compared_columns(each)
