"""Ranges of row keys have every row that meets the condition, and few others."""

from __future__ import annotations

import itertools
import operator
import random
from typing import Any

import pytest

from belvedere.catalog.foreign_options import ForeignColumn
from belvedere.execution.foreign.encodings import build_codec
from belvedere.execution.foreign.key_ranges import RowKeyPart, find_key_ranges, next_prefix
from belvedere.txn.scan_request import AllConditions, AnyCondition, RowCondition, SlotComparison
from belvedere.types import BIGINT, SMALLINT, TEXT, SqlType

COMPARE = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
VALUES: dict[SqlType, list[Any]] = {
    TEXT: ["", "a", "ab", "a~", "b", "ba", "é"],
    SMALLINT: [-300, -1, 0, 1, 2, 300],
    BIGINT: [-(2**50), -5, -1, 0, 3, 2**50],
}


def make_parts(*columns: tuple[SqlType, str]) -> tuple[RowKeyPart, ...]:
    last = len(columns) - 1
    found = []
    for number, (sql_type, encoding) in enumerate(columns):
        column = ForeignColumn(number, f"k{number}", sql_type, True, encoding)
        end = b"|" if column.width is None and number < last else b""
        found.append(RowKeyPart(column, build_codec(column), end, number == last))
    return tuple(found)


def encode_key(parts: tuple[RowKeyPart, ...], values: tuple[Any, ...]) -> bytes:
    pieces = [part.codec.encode(value) + part.end for part, value in zip(parts, values)]
    return b"p:" + b"".join(pieces)


def meets(condition: RowCondition, values: tuple[Any, ...]) -> bool:
    match condition:
        case AllConditions(conditions):
            return all(meets(each, values) for each in conditions)
        case AnyCondition(conditions):
            return any(meets(each, values) for each in conditions)
        case SlotComparison(slot, name, value):
            return bool(COMPARE[name](values[slot], value))


def draw_condition(chance: random.Random, parts: tuple[RowKeyPart, ...]) -> RowCondition:
    found: list[RowCondition] = []
    for part in parts:
        values = VALUES[part.column.type]
        kind = chance.choice(("equal", "in", "range", "between", "none"))
        slot = part.column.slot
        if kind == "equal":
            found.append(SlotComparison(slot, "=", chance.choice(values)))
        elif kind == "in":
            some = chance.sample(values, 2)
            found.append(AnyCondition(tuple(SlotComparison(slot, "=", one) for one in some)))
        elif kind == "range":
            sign = chance.choice(("<", "<=", ">", ">="))
            found.append(SlotComparison(slot, sign, chance.choice(values)))
        elif kind == "between":
            found.append(SlotComparison(slot, ">=", chance.choice(values)))
            found.append(SlotComparison(slot, "<=", chance.choice(values)))
    return AllConditions(tuple(found))


@pytest.mark.parametrize(
    "columns",
    [
        ((TEXT, "text"),),
        ((TEXT, "text"), (TEXT, "text")),
        ((TEXT, "text"), (SMALLINT, "binary")),
        ((SMALLINT, "binary"), (TEXT, "text")),
        ((BIGINT, "ordered"), (TEXT, "text"), (SMALLINT, "binary")),
        ((SMALLINT, "binary"), (BIGINT, "binary")),
    ],
)
def test_ranges_have_every_row_that_meets_the_condition(
    columns: tuple[tuple[SqlType, str], ...],
) -> None:
    chance = random.Random(len(columns))
    parts = make_parts(*columns)
    rows = [tuple(chance.choice(VALUES[kind]) for kind, _ in columns) for _ in range(60)]
    for _ in range(300):
        condition = draw_condition(chance, parts)
        ranges = find_key_ranges(parts, b"p:", condition)
        for row in rows:
            key = encode_key(parts, row)
            inside = any(start <= key and (end is None or key < end) for start, end in ranges)
            assert inside or not meets(condition, row), (condition, row)
        for (_, end), (start, _) in itertools.pairwise(ranges):
            assert end is not None
            assert end <= start  # no row is read twice


def test_a_whole_key_is_one_row() -> None:
    parts = make_parts((TEXT, "text"), (SMALLINT, "binary"))
    condition = AllConditions((SlotComparison(0, "=", "a"), SlotComparison(1, "=", 3)))
    assert find_key_ranges(parts, b"p:", condition) == [(b"p:a|\x00\x03", b"p:a|\x00\x04")]


def test_a_bound_of_a_signed_number_helps_where_its_sign_is_known() -> None:
    parts = make_parts((SMALLINT, "binary"))
    low = find_key_ranges(parts, b"", SlotComparison(0, ">=", 5))
    assert low == [(b"\x00\x05", b"\x80")]
    assert find_key_ranges(parts, b"", SlotComparison(0, "<", -1)) == [(b"\x80\x00", b"\xff\xff")]
    assert find_key_ranges(parts, b"", SlotComparison(0, "<", 5)) == [(b"", None)]


def test_a_value_with_several_forms_bounds_nothing() -> None:
    parts = make_parts((BIGINT, "text"))
    assert find_key_ranges(parts, b"p", SlotComparison(0, "=", 7)) == [(b"p", b"q")]


@pytest.mark.parametrize(
    ("prefix", "expected"), [(b"a", b"b"), (b"a\xff\xff", b"b"), (b"\xff", None), (b"", None)]
)
def test_the_key_after_a_prefix(prefix: bytes, expected: bytes | None) -> None:
    assert next_prefix(prefix) == expected
