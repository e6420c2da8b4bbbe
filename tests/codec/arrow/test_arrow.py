from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.codec.arrow.arrow_to_rows import arrow_to_rows
from belvedere.codec.arrow.rows_to_arrow import (
    SQL_TYPE_KEY,
    EncodedRows,
    arrow_type,
    rows_to_arrow,
)
from belvedere.codec.rows import RowLayout, Slot
from belvedere.codec.scalars import numeric_text
from belvedere.errors import Corruption, InvalidInput, Unsupported
from belvedere.types import (
    BIGINT,
    BYTEA,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    SMALLINT,
    TEXT,
    Interval,
    Kind,
    SqlType,
    char_type,
    numeric_type,
    varchar_type,
)
from tests.codec.values import ROW_TYPES, corpus, examples, generated

NANOSECONDS_MAX = 2**63 // 1000


def fits_arrow(sql_type: SqlType, value: Any) -> bool:
    if value is None:
        return True
    if sql_type.kind is Kind.NUMERIC and pa.types.is_decimal(arrow_type(sql_type)):
        return bool(value.is_finite())
    if sql_type.kind is Kind.INTERVAL:
        return bool(abs(value.microseconds) < NANOSECONDS_MAX)
    return True


def as_arrow_gives_it(sql_type: SqlType, value: Any) -> Any:
    """The Python object that Arrow makes of a column's value."""
    if value is None:
        return None
    match sql_type.kind:
        case Kind.NUMERIC if not pa.types.is_decimal(arrow_type(sql_type)):
            return numeric_text(value)
        case Kind.INTERVAL:
            return pa.MonthDayNano([value.months, value.days, value.microseconds * 1000])
        case Kind.UUID:
            return value.bytes
        case Kind.TIMESTAMPTZ:
            return value.replace(tzinfo=None)
    return value


def assert_same_column(array: pa.Array, sql_type: SqlType, expected: list[Any]) -> None:
    array.validate(full=True)
    assert array.type == arrow_type(sql_type)
    found = array.to_pylist()
    if sql_type.kind is Kind.TIMESTAMPTZ:
        found = [value and value.replace(tzinfo=None) for value in found]
    wanted = [as_arrow_gives_it(sql_type, value) for value in expected]
    if sql_type.kind is Kind.NUMERIC:
        assert found == wanted
    else:
        assert list(map(repr, found)) == list(map(repr, wanted))


def storable(sql_type: SqlType) -> st.SearchStrategy[Any]:
    edges = [value for value in corpus(sql_type) if fits_arrow(sql_type, value)]
    return st.none() | st.sampled_from(edges) | generated(sql_type)


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[Slot, ...], list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(ROW_TYPES), min_size=1, max_size=9))
    slots = tuple(Slot(sql_type, draw(storable(sql_type))) for sql_type in types)
    row = st.tuples(*(storable(sql_type) for sql_type in types))
    return slots, draw(st.lists(row, max_size=8))


@pytest.mark.parametrize("sql_type", ROW_TYPES, ids=str)
def test_edge_values_become_arrow_and_come_back(sql_type: SqlType) -> None:
    layout = RowLayout((Slot(sql_type), Slot(TEXT), Slot(sql_type)))
    found = [None, *(value for value in corpus(sql_type) if fits_arrow(sql_type, value)), None]
    rows = [layout.encode((value, "x", value)) for value in found]
    batch = rows_to_arrow(layout, rows, (2, 1, 0), ("c", "b", "a"))
    assert_same_column(batch.column(0), sql_type, found)
    assert_same_column(batch.column(2), sql_type, found)
    assert batch.schema.field("a").metadata[SQL_TYPE_KEY] == str(sql_type).encode()
    forth = rows_to_arrow(layout, rows, (0, 1, 2), ("a", "b", "c"))
    assert arrow_to_rows(layout, forth) == rows
    assert arrow_to_rows(layout, forth.slice(1, 2)) == rows[1:3]


@settings(max_examples=examples(100))
@given(tables(), st.data())
def test_arrow_equals_decode_with_rows_of_any_age(
    case: tuple[tuple[Slot, ...], list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    slots, rows = case
    layout = RowLayout(slots)
    ages = st.integers(0, len(slots)) | st.just(len(slots))
    encoded = []
    for row in rows:
        count = data.draw(ages)
        encoded.append(RowLayout(slots[:count]).encode(row[:count]))
    columns = data.draw(st.permutations(range(len(slots))))
    names = [f"c{column}" for column in columns]
    batch = rows_to_arrow(layout, encoded, columns, names)
    assert batch.schema.names == names
    decoded = [layout.decode(row) for row in encoded]
    for place, column in enumerate(columns):
        expected = [row[column] for row in decoded]
        assert_same_column(batch.column(place), slots[column].type, expected)


@settings(max_examples=examples(60))
@given(tables())
def test_arrow_to_rows_is_the_inverse(case: tuple[tuple[Slot, ...], list[tuple[Any, ...]]]) -> None:
    slots, rows = case
    layout = RowLayout(slots)
    encoded = [layout.encode(row) for row in rows]
    names = [f"c{column}" for column in range(len(slots))]
    assert (
        arrow_to_rows(layout, rows_to_arrow(layout, encoded, range(len(slots)), names)) == encoded
    )


def test_no_rows_and_no_columns_are_batches_too() -> None:
    layout = RowLayout((Slot(BIGINT), Slot(TEXT)))
    empty = rows_to_arrow(layout, [], (0, 1), ("a", "b"))
    assert (empty.num_rows, empty.num_columns) == (0, 2)
    assert arrow_to_rows(layout, empty) == []
    bare = rows_to_arrow(layout, [layout.encode((1, "a"))] * 3, (), ())
    assert (bare.num_rows, bare.num_columns) == (3, 0)


def test_text_from_a_great_offset_is_cut_right() -> None:
    layout = RowLayout((Slot(INTEGER), Slot(TEXT), Slot(BYTEA)))
    rows = [
        (index, "x" * (index % 7), bytes([index % 256]) * (index % 11)) for index in range(5000)
    ]
    batch = rows_to_arrow(layout, [layout.encode(row) for row in rows], (0, 1, 2), "abc")
    assert list(zip(*(column.to_pylist() for column in batch.columns))) == rows


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("sql_type", [numeric_type(5, 2), numeric_type(30, 2)], ids=str)
def test_what_arrow_decimals_cannot_hold_is_refused(sql_type: SqlType, text: str) -> None:
    layout = RowLayout((Slot(sql_type),))
    rows = [layout.encode((Decimal(text),)), layout.encode((Decimal(1),))]
    with pytest.raises(Unsupported):
        rows_to_arrow(layout, rows, (0,), ("a",))


def test_an_interval_that_nanoseconds_cannot_hold_is_refused() -> None:
    layout = RowLayout((Slot(INTERVAL),))
    with pytest.raises(Unsupported):
        rows_to_arrow(layout, [layout.encode((Interval(0, 0, 2**62),))], (0,), ("a",))


def test_damaged_rows_are_corruption() -> None:
    layout = RowLayout((Slot(BIGINT), Slot(TEXT), Slot(TEXT)))
    good = layout.encode((1, "abc", "def"))
    ends = layout.shape_for(3).fields[1].offset
    crossed = good[:ends] + b"\x09\0\0\0\x06\0\0\0" + good[ends + 8 :]
    newer = RowLayout((*layout.slots, Slot(TEXT))).encode((1, "abc", "def", "ghi"))
    broken_text = good[:-3] + b"\xff\xfe\xfd"
    for bad in (b"", b"\x03", good[:10], good[:-1], good + b"x", crossed, newer, broken_text):
        for values in ([bad], [good, bad], [bad, good]):
            with pytest.raises(Corruption):
                rows_to_arrow(layout, values, (0, 1, 2), "abc")


@pytest.mark.parametrize(
    ("sql_type", "array", "sqlstate"),
    [
        (SMALLINT, pa.array([70000]), "22003"),
        (numeric_type(5, 2), pa.array([Decimal("1234.5")]), "22003"),
        (numeric_type(5, 2), pa.array([Decimal("1.005")]), "22003"),
        (varchar_type(2), pa.array(["abc"]), "22001"),
        (char_type(2), pa.array(["abc"]), "22001"),
        (NUMERIC, pa.array(["twelve"]), "22P02"),
        (NUMERIC, pa.array(["1E+999999999"]), "22003"),
        (numeric_type(50, 1), pa.array(["0.25"]), "22003"),
        (BIGINT, pa.array([[1]]), "42804"),
        (DOUBLE, pa.array([b"x"]), "22003"),
        (INTERVAL, pa.array([pa.MonthDayNano([0, 0, 1])]), "22008"),
    ],
    ids=str,
)
def test_a_column_that_does_not_fit_is_refused(
    sql_type: SqlType, array: pa.Array, sqlstate: str
) -> None:
    layout = RowLayout((Slot(BIGINT), Slot(sql_type)))
    batch = pa.RecordBatch.from_arrays([pa.array([1]), array], ["a", "b"])
    with pytest.raises(InvalidInput) as caught:
        arrow_to_rows(layout, batch)
    assert caught.value.sqlstate == sqlstate
    assert caught.value.facts["column"] == 1


def test_other_arrow_types_are_cast_where_nothing_is_lost() -> None:
    layout = RowLayout((Slot(BIGINT), Slot(numeric_type(6, 2)), Slot(char_type(3)), Slot(NUMERIC)))
    columns = [
        pa.array([1, None], pa.int8()),
        pa.array([Decimal("1.5"), None], pa.decimal128(3, 1)),
        pa.array(["a    ", None], pa.large_utf8()),
        pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
    ]
    rows = arrow_to_rows(layout, pa.RecordBatch.from_arrays(columns, list("abcd")))
    assert [layout.decode(row) for row in rows] == [
        (1, Decimal("1.50"), "a  ", Decimal("1.50")),
        (None,) * 4,
    ]


def test_invalid_text_in_arrow_is_refused() -> None:
    offsets, data = pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")
    array = pa.Array.from_buffers(pa.utf8(), 1, [None, offsets, data])
    with pytest.raises(InvalidInput) as caught:
        arrow_to_rows(RowLayout((Slot(TEXT),)), pa.RecordBatch.from_arrays([array], ["a"]))
    assert caught.value.sqlstate == "22021"


def test_a_wrong_number_of_columns_is_refused() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1])], ["a"])
    for slots in itertools.chain([()], [(Slot(BIGINT), Slot(BIGINT))]):
        with pytest.raises(InvalidInput):
            arrow_to_rows(RowLayout(slots), batch)


def test_columns_of_encoded_rows_are_made_one_by_one() -> None:
    slots = (Slot(INTEGER), Slot(numeric_type(10, 2)), Slot(TEXT))
    layout = RowLayout(slots)
    rows = [(1, Decimal("1.50"), "ab"), (None, Decimal("-2"), "cd"), (3, None, "zz")]
    encoded = EncodedRows(layout, [layout.encode(row) for row in rows])
    assert len(encoded) == 3
    assert encoded.decode_columns((2,))[0].to_pylist() == ["ab", "cd", "zz"]
    (narrow,) = encoded.decode_columns((1,), narrow=True)
    assert narrow.type == pa.decimal64(10, 2)
    assert narrow.to_pylist() == [Decimal("1.50"), Decimal("-2.00"), None]
    assert encoded.decode_columns((1, 0))[0].type == pa.decimal128(10, 2)
    encoded.decode_columns((0,))[0].validate(full=True)


def test_narrow_columns_of_rows_of_different_ages() -> None:
    old = RowLayout((Slot(INTEGER),))
    missing = Slot(numeric_type(5, 1), missing_value=Decimal("7.5"))
    new = RowLayout((Slot(INTEGER), missing))
    rows = [old.encode((1,)), new.encode((2, Decimal("0.5"))), old.encode((3,))]
    (found,) = EncodedRows(new, rows).decode_columns((1,), narrow=True)
    assert found.type == pa.decimal64(5, 1)
    assert found.to_pylist() == [Decimal("7.5"), Decimal("0.5"), Decimal("7.5")]
