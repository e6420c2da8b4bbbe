from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime, time
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.codec.rows import SLOTS_MAX, RowLayout, Slot
from belvedere.errors import Corruption, InvalidInput, Unsupported
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    Interval,
    SqlType,
    char_type,
    numeric_type,
    varchar_type,
)
from tests.codec.values import ROW_TYPES, corpus, examples, nullable, same, values


@st.composite
def layouts_with_rows(
    draw: st.DrawFn, most_slots: int = 12
) -> tuple[tuple[Slot, ...], list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(ROW_TYPES), max_size=most_slots))
    slots = tuple(Slot(sql_type, draw(nullable(sql_type))) for sql_type in types)
    row = st.tuples(*(nullable(sql_type) for sql_type in types))
    return slots, draw(st.lists(row, min_size=1, max_size=4))


@pytest.mark.parametrize("sql_type", ROW_TYPES, ids=str)
def test_edge_values_come_back_as_they_were(sql_type: SqlType) -> None:
    layout = RowLayout((Slot(sql_type), Slot(TEXT), Slot(sql_type)))
    for value in [None, *corpus(sql_type)]:
        row = (value, "between", value)
        data = layout.encode(row)
        assert same(layout.decode(data), row)
        assert same(layout.getter(2)(data), value)


@settings(max_examples=examples(200))
@given(layouts_with_rows())
def test_a_row_comes_back_as_it_was(case: tuple[tuple[Slot, ...], list[tuple[Any, ...]]]) -> None:
    slots, rows = case
    layout = RowLayout(slots)
    for row in rows:
        data = layout.encode(row)
        assert same(layout.decode(data), row)
        for index, value in enumerate(row):
            assert same(layout.getter(index)(data), value)


@settings(max_examples=examples(100))
@given(layouts_with_rows(), st.data())
def test_a_projection_is_part_of_the_row(
    case: tuple[tuple[Slot, ...], list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    slots, rows = case
    layout = RowLayout(slots)
    places = st.lists(st.integers(0, len(slots) - 1), max_size=5) if slots else st.just([])
    indexes = tuple(data.draw(places))
    project = layout.projector(indexes)
    for row in rows:
        assert same(project(layout.encode(row)), tuple(row[index] for index in indexes))


@settings(max_examples=examples(100))
@given(layouts_with_rows(), st.data())
def test_an_older_row_reads_with_the_missing_values_of_added_columns(
    case: tuple[tuple[Slot, ...], list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    slots, rows = case
    count = data.draw(st.integers(0, len(slots)))
    older, layout = RowLayout(slots[:count]), RowLayout(slots)
    project = layout.projector(tuple(reversed(range(len(slots)))))
    for row in rows:
        expected = row[:count] + tuple(slot.missing_value for slot in slots[count:])
        encoded = older.encode(row[:count])
        assert same(layout.decode(encoded), expected)
        assert same(project(encoded), expected[::-1])
        for index, value in enumerate(expected):
            assert same(layout.getter(index)(encoded), value)


def test_a_row_with_more_slots_than_the_layout_is_corruption() -> None:
    newer = RowLayout((Slot(BIGINT), Slot(TEXT))).encode((1, "a"))
    layout = RowLayout((Slot(BIGINT),))
    for read in (layout.decode, layout.getter(0), layout.projector((0,)), layout.projector(())):
        with pytest.raises(Corruption, match="more slots"):
            read(newer)


@settings(max_examples=examples(100))
@given(layouts_with_rows(), st.data())
def test_a_cut_or_prolonged_row_is_corruption(
    case: tuple[tuple[Slot, ...], list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    slots, rows = case
    layout = RowLayout((*slots, Slot(INTEGER)))
    encoded = layout.encode((*rows[0], 5))
    cut = data.draw(st.integers(0, len(encoded) - 1))
    for damaged in (encoded[:cut], encoded + b"\0"):
        with pytest.raises(Corruption):
            layout.decode(damaged)


@settings(max_examples=examples(150))
@given(layouts_with_rows(), st.data())
def test_a_damaged_row_decodes_to_something_or_is_corruption(
    case: tuple[tuple[Slot, ...], list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    slots, rows = case
    layout = RowLayout(slots)
    encoded = bytearray(layout.encode(rows[0]))
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(encoded)
    with contextlib.suppress(Corruption):
        assert len(layout.decode(damaged)) == len(slots)
    for index in range(len(slots)):
        with contextlib.suppress(Corruption):
            layout.getter(index)(damaged)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 200, SLOTS_MAX])
def test_the_null_bitmap_works_at_every_width(count: int) -> None:
    layout = RowLayout((Slot(INTEGER),) * count)
    full = tuple(range(count))
    assert layout.decode(layout.encode(full)) == full
    for index in {0, count // 2, count - 1} & set(range(count)):
        row = (*full[:index], None, *full[index + 1 :])
        assert layout.decode(layout.encode(row)) == row
        assert layout.getter(index)(layout.encode(row)) is None


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        RowLayout((Slot(INTEGER),) * (SLOTS_MAX + 1))
    assert caught.value.sqlstate == "54011"


def test_a_type_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(Unsupported):
        RowLayout((Slot(UNKNOWN),))


def test_a_megabyte_of_text_is_stored_like_any_other() -> None:
    layout = RowLayout((Slot(TEXT), Slot(BYTEA)))
    row = ("\0\U0001f600" * 250_000, b"\xff" * 1_000_000)
    assert layout.decode(layout.encode(row)) == row


def test_a_numeric_keeps_its_display_scale() -> None:
    layout = RowLayout((Slot(NUMERIC), Slot(numeric_type(10, 2)), Slot(numeric_type(50, 2))))
    row = layout.decode(layout.encode((Decimal("1.00"), Decimal("1"), Decimal("1.5"))))
    assert [str(value) for value in row] == ["1.00", "1.00", "1.50"]


def test_there_is_no_negative_zero_in_a_numeric() -> None:
    layout = RowLayout((Slot(NUMERIC), Slot(numeric_type(10, 2)), Slot(numeric_type(50, 2))))
    row = layout.decode(layout.encode((Decimal("-0.000"), Decimal("-0"), Decimal("-0"))))
    assert [str(value) for value in row] == ["0.000", "0.00", "0.00"]


@pytest.mark.parametrize(
    ("sql_type", "width"), [(numeric_type(18, 2), 8), (numeric_type(38, 2), 16)]
)
def test_special_numbers_are_stored_beyond_all_digits(sql_type: SqlType, width: int) -> None:
    layout = RowLayout((Slot(sql_type),))
    smallest = -(1 << width * 8 - 1)
    for text, stored in (
        ("NaN", smallest),
        ("-Infinity", smallest + 1),
        ("Infinity", -smallest - 1),
    ):
        data = layout.encode((Decimal(text),))
        assert int.from_bytes(data[-width:], "little", signed=True) == stored


def test_the_callers_decimal_context_changes_nothing() -> None:
    layout = RowLayout((Slot(numeric_type(38, 10)), Slot(NUMERIC), Slot(numeric_type(18, 4))))
    row = (
        Decimal("1234567890123456789012345678.0123456789"),
        Decimal("1.23456"),
        Decimal("9.8765"),
    )
    with localcontext(prec=3):
        assert same(layout.decode(layout.encode(row)), row)


def test_char_is_padded_to_its_length() -> None:
    layout = RowLayout((Slot(char_type(3)),))
    assert layout.decode(layout.encode(("a",))) == ("a  ",)
    assert layout.decode(layout.encode(("a       ",))) == ("a  ",)


WRONG: list[tuple[SqlType, Any, str]] = [
    (SMALLINT, 2**15, "22003"),
    (INTEGER, 2**31, "22003"),
    (INTEGER, -(2**31) - 1, "22003"),
    (BIGINT, 2**63, "22003"),
    (INTEGER, True, "42804"),
    (INTEGER, "1", "42804"),
    (REAL, 0.1, "22003"),
    (REAL, 1e300, "22003"),
    (DOUBLE, 1, "42804"),
    (numeric_type(5, 2), Decimal("1.005"), "22003"),
    (numeric_type(5, 2), Decimal("1000"), "22003"),
    (numeric_type(5, 2), Decimal("1E+999999999"), "22003"),
    (numeric_type(5, 2), Decimal("1E-999999999"), "22003"),
    (numeric_type(38, 0), Decimal(10**38), "22003"),
    (numeric_type(50, 2), Decimal("0.001"), "22003"),
    (NUMERIC, Decimal("1E+131072"), "22003"),
    (NUMERIC, Decimal("1E-16384"), "22003"),
    (NUMERIC, Decimal("1E+999999999"), "22003"),
    (NUMERIC, 1.5, "42804"),
    (BOOLEAN, 1, "42804"),
    (char_type(3), "abcd", "22001"),
    (varchar_type(3), "abcd", "22001"),
    (varchar_type(3), "ab  ", "22001"),
    (TEXT, b"a", "42804"),
    (TEXT, "\udc80", "22021"),
    (JSON, {"a": 1}, "42804"),
    (BYTEA, "a", "42804"),
    (DATE, datetime(2020, 1, 1), "42804"),
    (TIME, time(1, tzinfo=UTC), "42804"),
    (TIMESTAMP, datetime(2020, 1, 1, tzinfo=UTC), "42804"),
    (TIMESTAMPTZ, datetime(2020, 1, 1), "42804"),
    (TIMESTAMPTZ, date(2020, 1, 1), "42804"),
    (INTERVAL, (1, 2, 3), "42804"),
    (INTERVAL, Interval(2**31, 0, 0), "22008"),
    (UUID, "x", "42804"),
]


@pytest.mark.parametrize(("sql_type", "value", "sqlstate"), WRONG, ids=repr)
def test_a_wrong_value_is_refused_and_named(sql_type: SqlType, value: Any, sqlstate: str) -> None:
    layout = RowLayout((Slot(BIGINT), Slot(sql_type)))
    with pytest.raises(InvalidInput) as caught:
        layout.encode((1, value))
    assert caught.value.sqlstate == sqlstate
    assert caught.value.facts["column"] == 1


@pytest.mark.parametrize("row", [(), (1,), (1, 2, 3), None, 7])
def test_a_wrong_number_of_values_is_refused(row: Any) -> None:
    with pytest.raises(InvalidInput):
        RowLayout((Slot(BIGINT), Slot(BIGINT))).encode(row)
    if row != ():
        with pytest.raises(InvalidInput):
            RowLayout(()).encode(row)


@pytest.mark.parametrize("sql_type", ROW_TYPES, ids=str)
def test_no_python_value_escapes_as_another_error(sql_type: SqlType) -> None:
    layout = RowLayout((Slot(sql_type),))
    strange: list[Any] = [
        *(0, True, 1.5, "", b"", Decimal(1), (), [], {}, object(), int, 2**200, "\ud800"),
        *(bytearray(b"a"), memoryview(b"a"), range(3), Ellipsis, 1j),
        *(value for other in ROW_TYPES for value in corpus(other)[:2]),
    ]
    for value in strange:
        with contextlib.suppress(InvalidInput):
            layout.decode(layout.encode((value,)))


def test_every_type_shares_one_row() -> None:
    layout = RowLayout(tuple(Slot(sql_type) for sql_type in ROW_TYPES))

    @settings(max_examples=examples(20))
    @given(st.tuples(*(values(sql_type) for sql_type in ROW_TYPES)))
    def law(row: tuple[Any, ...]) -> None:
        assert same(layout.decode(layout.encode(row)), row)

    law()
