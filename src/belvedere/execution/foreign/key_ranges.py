"""Conditions on the columns of a row key as ranges of row keys.

Equalities of the first columns give a prefix, IN lists several; a comparison of the column after
them bounds the range. A range may have more rows than meet the condition, never fewer: the
statement checks the condition again.

    key 'site, day'  site = 'a' AND day >= 5     [a | 00000005, a | 80000000)
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from belvedere.catalog.foreign_options import ForeignColumn
from belvedere.errors import Error
from belvedere.execution.foreign.encodings import ColumnCodec
from belvedere.txn.scan_request import AllConditions, AnyCondition, RowCondition, SlotComparison
from belvedere.types import Kind

RANGES_MAX = 256
KeyRange = tuple[bytes, bytes | None]
"""First key, and the key after the last; None: to the end."""

_UNORDERED = (Kind.REAL, Kind.DOUBLE)


@dataclass(frozen=True, slots=True)
class RowKeyPart:
    """A column of the key; `end` are the bytes after it."""

    column: ForeignColumn
    codec: ColumnCodec
    end: bytes
    is_last: bool

    def encode(self, value: Any) -> bytes | None:
        """None: no value of the column has just this one form."""
        if not self.codec.comparable or self.column.type.kind in _UNORDERED:
            return None
        try:
            return self.codec.encode(value)
        except (struct.error, Error, ValueError, ArithmeticError, AttributeError, TypeError):
            return None


def find_key_ranges(
    parts: tuple[RowKeyPart, ...], prefix: bytes, condition: RowCondition | None
) -> list[KeyRange]:
    """The ranges, in the order of keys, that have every row that meets the condition."""
    comparisons = list(_list_conjuncts(condition))
    prefixes = [prefix]
    for part in parts:
        values = _find_equal_values(part, comparisons)
        if values is None or len(prefixes) * len(values) > RANGES_MAX:
            bounds = _find_bounds(part, comparisons)
            return sorted(
                found for one in prefixes if (found := bounds.apply(one, part)) is not None
            )
        ends = (value + part.end for value in values)
        prefixes = [one + end for one, end in itertools.product(prefixes, ends)]
    if parts[-1].column.width is None:
        return sorted({(one, one + b"\x00") for one in prefixes})
    return sorted({(one, next_prefix(one)) for one in prefixes})


def _list_conjuncts(condition: RowCondition | None) -> Iterator[RowCondition]:
    match condition:
        case AllConditions(conditions):
            for each in conditions:
                yield from _list_conjuncts(each)
        case None:
            return
        case _:
            yield condition


def _find_equal_values(part: RowKeyPart, conditions: list[RowCondition]) -> list[bytes] | None:
    """The forms of the values that the column may have; None: not known."""
    for each in conditions:
        alternatives = each.conditions if isinstance(each, AnyCondition) else (each,)
        values = [
            part.encode(one.value)
            for one in alternatives
            if isinstance(one, SlotComparison)
            and one.slot == part.column.slot
            and one.operator == "="
        ]
        known = [value for value in values if value is not None]
        if known and len(known) == len(alternatives):
            return sorted(set(known))
    return None


@dataclass(slots=True)
class _Bounds:
    low: bytes | None = None
    high: bytes | None = None
    includes_high: bool = True

    def apply(self, prefix: bytes, part: RowKeyPart) -> KeyRange | None:
        """The range of keys with this prefix; None: it is empty."""
        start = prefix + (self.low or b"")
        end = next_prefix(prefix)
        if self.high is not None:
            bound = prefix + self.high
            end = next_prefix(bound) if self.includes_high else bound
            if part.end:
                # A shorter value sorts by what ends it, perhaps after the bound.
                shorter = [
                    next_prefix(prefix + self.high[:length] + part.end)
                    for length in range(len(self.high))
                ]
                end = None if end is None else _find_latest([end, *shorter])
        return None if end is not None and start >= end else (start, end)


def _find_latest(ends: list[bytes | None]) -> bytes | None:
    known = [each for each in ends if each is not None]
    return max(known) if len(known) == len(ends) else None


def _find_bounds(part: RowKeyPart, conditions: list[RowCondition]) -> _Bounds:
    lows: list[bytes] = []
    highs: list[tuple[bytes, bool]] = []
    for each in conditions:
        if not isinstance(each, SlotComparison) or each.slot != part.column.slot:
            continue
        value = part.encode(each.value) if each.operator in ("<", "<=", ">", ">=") else None
        if value is None:
            continue
        if each.operator in (">", ">="):
            lows.append(value)
        else:
            highs.append((value, each.operator == "<="))
    return _choose_signed(lows, highs) if part.codec.signed else _choose_bounds(lows, highs)


def _choose_bounds(lows: list[bytes], highs: list[tuple[bytes, bool]]) -> _Bounds:
    high, includes = min(highs, default=(None, True))
    return _Bounds(max(lows, default=None), high, includes)


def _choose_signed(lows: list[bytes], highs: list[tuple[bytes, bool]]) -> _Bounds:
    """Negative numbers come after the others, so that a bound helps where the sign is known."""
    if any(value[0] < 0x80 for value in lows):  # not negative
        kept = [value for value in lows if value[0] < 0x80]
        half = (b"\x7f" + b"\xff" * (len(kept[0]) - 1), True)
        return _choose_bounds(kept, [half, *(one for one in highs if one[0][0] < 0x80)])
    if any(value[0] >= 0x80 for value, _ in highs):  # negative
        below = [one for one in highs if one[0][0] >= 0x80]
        half_low = b"\x80" + bytes(len(below[0][0]) - 1)
        return _choose_bounds([half_low, *lows], below)
    return _Bounds()


def next_prefix(prefix: bytes) -> bytes | None:
    """The first key after all that begin with the prefix; None: there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None
