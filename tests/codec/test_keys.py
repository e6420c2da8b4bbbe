from __future__ import annotations

import contextlib
import functools
import itertools
import random
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.keyspace import row_prefix
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
)
from tests.codec.values import (
    KEY_TYPES,
    PLUS_FIVE,
    compare,
    compare_rows,
    corpus,
    examples,
    generated,
    key_columns,
    nullable,
    random_value,
)

DIRECTIONS = list(itertools.product((False, True), (None, True, False)))
PREFIX = row_prefix(7)


@st.composite
def keyed_rows(draw: st.DrawFn, most: int = 12) -> tuple[tuple[KeyColumn, ...], list[Any]]:
    """Key columns and rows of them, many of which agree in their first columns."""
    columns = tuple(draw(st.lists(key_columns(), min_size=1, max_size=4)))
    pools = [draw(st.lists(nullable(column.type), min_size=1, max_size=4)) for column in columns]
    row = st.tuples(*(st.sampled_from(pool) for pool in pools))
    return columns, draw(st.lists(row, min_size=1, max_size=most))


def assert_laws_of_one_column(column: KeyColumn, found: list[Any]) -> None:
    """Order, equality and prefix-freedom of all pairs, by looking at neighbours in order."""
    codec = KeyCodec((column,), PREFIX)
    order = functools.cmp_to_key(functools.partial(compare, column))
    ordered = sorted(found, key=order)
    keys = [codec.encode((value,)) for value in ordered]
    for (left, a), (right, b) in itertools.pairwise(zip(ordered, keys)):
        if compare(column, left, right) == 0:
            assert a == b, (column, left, right)
        else:
            assert a < b, (column, left, right)
            assert not b.startswith(a), (column, left, right)
    for value, key in zip(ordered, keys):
        assert codec.encode_first(value) == key
        (decoded,) = codec.decode(key)
        assert compare(column, decoded, value) == 0, (column, value, decoded)
        assert decoded is None or type(decoded) is type(value)
        assert codec.encode((decoded,)) == key


@pytest.mark.parametrize(("descending", "nulls_first"), DIRECTIONS)
@pytest.mark.parametrize("sql_type", KEY_TYPES, ids=str)
def test_edge_values_keep_their_order(
    sql_type: SqlType, descending: bool, nulls_first: bool | None
) -> None:
    column = KeyColumn(sql_type, descending, nulls_first)
    assert_laws_of_one_column(column, [None, *corpus(sql_type)])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sql_type", KEY_TYPES, ids=str)
def test_any_values_keep_their_order(sql_type: SqlType, descending: bool) -> None:
    edges = corpus(sql_type)

    @settings(max_examples=examples(15))
    @given(st.lists(generated(sql_type), min_size=1, max_size=10))
    def law(found: list[Any]) -> None:
        assert_laws_of_one_column(KeyColumn(sql_type, descending), [*found, *edges])

    law()


def test_very_many_pairs_keep_their_order(rng: random.Random, seed: int) -> None:
    pairs = examples(50_000)
    codecs = [
        (column, KeyCodec((column,)))
        for sql_type in KEY_TYPES
        for column in (KeyColumn(sql_type), KeyColumn(sql_type, descending=True))
    ]
    for _ in range(pairs // len(codecs)):
        for column, codec in codecs:
            left, right = random_value(rng, column.type), random_value(rng, column.type)
            a, b = codec.encode_first(left), codec.encode_first(right)
            order = compare(column, left, right)
            assert (a > b) - (a < b) == order, (seed, column, left, right)
            assert order == 0 or not (a.startswith(b) or b.startswith(a)), (seed, left, right)


@settings(max_examples=examples(150))
@given(keyed_rows())
def test_compound_keys_sort_like_their_rows(case: tuple[tuple[KeyColumn, ...], list[Any]]) -> None:
    columns, rows = case
    codec = KeyCodec(columns, PREFIX)
    order = functools.cmp_to_key(functools.partial(compare_rows, columns))
    ordered = sorted(rows, key=order)
    keys = [codec.encode(row) for row in ordered]
    for (left, a), (right, b) in itertools.pairwise(zip(ordered, keys)):
        if compare_rows(columns, left, right) == 0:
            assert a == b
        else:
            assert a < b
            assert not b.startswith(a)
    for row, key in zip(ordered, keys):
        decoded = codec.decode(key)
        assert compare_rows(columns, decoded, row) == 0
        assert codec.encode(decoded) == key


@settings(max_examples=examples(150))
@given(keyed_rows(), st.data())
def test_a_prefix_is_a_range(
    case: tuple[tuple[KeyColumn, ...], list[Any]], data: st.DataObject
) -> None:
    columns, rows = case
    codec = KeyCodec(columns, PREFIX)
    count = data.draw(st.integers(0, len(columns)))
    wanted = data.draw(st.sampled_from(rows))[:count]
    start, end = codec.prefix_range(wanted)
    assert start == codec.encode_prefix(wanted)
    assert end is not None
    for row in rows:
        agrees = compare_rows(columns[:count], row[:count], wanted) == 0
        assert (start <= codec.encode(row) < end) == agrees


@settings(max_examples=examples(300))
@given(keyed_rows(), st.data())
def test_a_range_selects_what_sql_comparison_selects(
    case: tuple[tuple[KeyColumn, ...], list[Any]], data: st.DataObject
) -> None:
    columns, rows = case
    codec = KeyCodec(columns, PREFIX)
    count = data.draw(st.integers(0, len(columns) - 1))
    column = KeyColumn(columns[count].type)
    prefix = data.draw(st.sampled_from(rows))[:count]
    bound = st.sampled_from([row[count] for row in rows]) | nullable(column.type)
    low, high = data.draw(bound), data.draw(bound)
    low_inclusive, high_inclusive = data.draw(st.booleans()), data.draw(st.booleans())

    def selects(row: Any) -> bool:
        if compare_rows(columns[:count], row[:count], prefix) != 0:
            return False
        value = row[count]
        if low is None and high is None:
            return True
        if value is None:
            return False
        above = low is None or compare(column, value, low) > (-1 if low_inclusive else 0)
        below = high is None or compare(column, value, high) < (1 if high_inclusive else 0)
        return above and below

    start, end = codec.bounded_range(prefix, low, low_inclusive, high, high_inclusive)
    assert end is not None
    assert start <= end
    for row in rows:
        assert (start <= codec.encode(row) < end) == selects(row), (row, low, high)


@settings(max_examples=examples(100))
@given(keyed_rows())
def test_null_ranges_part_the_nulls_from_the_rest(
    case: tuple[tuple[KeyColumn, ...], list[Any]],
) -> None:
    columns, rows = case
    codec = KeyCodec(columns)
    for count in range(len(columns)):
        prefix = rows[0][:count]
        null_start, null_end = codec.null_range(prefix)
        start, end = codec.not_null_range(prefix)
        for row in rows:
            key = codec.encode(row)
            agrees = compare_rows(columns[:count], row[:count], prefix) == 0
            in_nulls = null_start <= key and (null_end is None or key < null_end)
            in_rest = start <= key and (end is None or key < end)
            assert in_nulls == (agrees and row[count] is None)
            assert in_rest == (agrees and row[count] is not None)


@pytest.mark.parametrize(
    ("sql_type", "equal"),
    [
        (NUMERIC, [Decimal("1"), Decimal("1.0"), Decimal("1.00"), Decimal("100E-2")]),
        (NUMERIC, [Decimal("100"), Decimal("1E+2"), Decimal("100.00")]),
        (NUMERIC, [Decimal("0"), Decimal("-0"), Decimal("0E+9"), Decimal("0.000")]),
        (NUMERIC, [Decimal("NaN"), Decimal("-NaN"), Decimal("NaN7"), Decimal("sNaN")]),
        (DOUBLE, [0.0, -0.0]),
        (DOUBLE, [float("nan"), -float("nan")]),
        (char_type(5), ["a", "a ", "a    "]),
        (INTERVAL, [Interval(1, 0, 0), Interval(0, 30, 0), Interval(0, 29, 86_400_000_000)]),
        (
            TIMESTAMPTZ,
            [datetime(2020, 1, 1, 5, tzinfo=PLUS_FIVE), datetime(2020, 1, 1, tzinfo=UTC)],
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("descending", [False, True])
def test_equal_values_are_one_key(sql_type: SqlType, equal: list[Any], descending: bool) -> None:
    codec = KeyCodec((KeyColumn(sql_type, descending),))
    assert len({codec.encode((value,)) for value in equal}) == 1


def test_integers_of_every_width_are_one_key() -> None:
    keys = {KeyCodec((KeyColumn(t),)).encode_first(5) for t in (SMALLINT, INTEGER, BIGINT)}
    assert len(keys) == 1


def test_real_and_double_are_one_key() -> None:
    assert KeyCodec((KeyColumn(REAL),)).encode_first(1.5) == KeyCodec(
        (KeyColumn(DOUBLE),)
    ).encode_first(1.5)


def test_a_constrained_numeric_decodes_in_its_scale() -> None:
    codec = KeyCodec((KeyColumn(numeric_type(10, 2)),))
    assert str(codec.decode(codec.encode((Decimal("12.5"),)))[0]) == "12.50"
    assert str(codec.decode(codec.encode((Decimal(0),)))[0]) == "0.00"


def test_a_megabyte_of_text_is_a_key_like_any_other() -> None:
    codec = KeyCodec((KeyColumn(TEXT), KeyColumn(BIGINT)))
    text = "ab\0" * 350_000
    assert codec.decode(codec.encode((text, 1))) == (text, 1)
    assert codec.encode((text, 1)) < codec.encode((text + "\0", 0))


def test_numerics_of_any_exponent_are_keys() -> None:
    texts = ["-1E+999999999", "-1E-999999999", "0", "1E-999999999", "1", "9E+999999999"]
    codec = KeyCodec((KeyColumn(NUMERIC),))
    keys = [codec.encode_first(Decimal(text)) for text in texts]
    assert keys == sorted(keys)
    assert [codec.decode(key)[0] for key in keys] == [Decimal(text) for text in texts]


WRONG: list[tuple[SqlType, Any, str]] = [
    (BIGINT, 2**63, "22003"),
    (BIGINT, -(2**63) - 1, "22003"),
    (SMALLINT, 2**63, "22003"),
    (BIGINT, 1.0, "42804"),
    (BIGINT, "1", "42804"),
    (BIGINT, True, "42804"),
    (BIGINT, Decimal(1), "42804"),
    (DOUBLE, 1, "42804"),
    (DOUBLE, "nan", "42804"),
    (NUMERIC, 1, "42804"),
    (NUMERIC, 1.5, "42804"),
    (BOOLEAN, 1, "42804"),
    (TEXT, b"a", "42804"),
    (TEXT, 1, "42804"),
    (TEXT, "\ud800", "22021"),
    (TEXT, "a\udc80", "22021"),
    (char_type(3), "\udfff", "22021"),
    (BYTEA, "a", "42804"),
    (BYTEA, [1], "42804"),
    (DATE, datetime(2020, 1, 1), "42804"),
    (DATE, 5, "42804"),
    (TIME, time(1, tzinfo=UTC), "42804"),
    (TIME, 5, "42804"),
    (TIMESTAMP, datetime(2020, 1, 1, tzinfo=UTC), "42804"),
    (TIMESTAMP, date(2020, 1, 1), "42804"),
    (TIMESTAMPTZ, datetime(2020, 1, 1), "42804"),
    (INTERVAL, (1, 2, 3), "42804"),
    (INTERVAL, Interval(2**70, 0, 0), "22008"),
    (INTERVAL, Interval("1", 0, 0), "42804"),  # type: ignore[arg-type]
    (UUID, "x", "42804"),
    (UUID, bytes(16), "42804"),
]


@pytest.mark.parametrize(("sql_type", "value", "sqlstate"), WRONG, ids=repr)
@pytest.mark.parametrize("descending", [False, True])
def test_a_wrong_value_is_refused_and_named(
    sql_type: SqlType, value: Any, sqlstate: str, descending: bool
) -> None:
    codec = KeyCodec((KeyColumn(BIGINT), KeyColumn(sql_type, descending)))
    with pytest.raises(InvalidInput) as caught:
        codec.encode((1, value))
    assert caught.value.sqlstate == sqlstate
    assert caught.value.facts["column"] == 1
    with pytest.raises(InvalidInput):
        codec.bounded_range((1,), low=value)


@pytest.mark.parametrize("values", [(), (1,), (1, "a", 2), None, 5])
def test_a_wrong_number_of_values_is_refused(values: Any) -> None:
    with pytest.raises(InvalidInput):
        KeyCodec((KeyColumn(BIGINT), KeyColumn(TEXT))).encode(values)


def test_a_prefix_longer_than_the_key_is_refused() -> None:
    codec = KeyCodec((KeyColumn(BIGINT),))
    with pytest.raises(InvalidInput):
        codec.encode_prefix((1, 2))
    with pytest.raises(InvalidInput):
        codec.bounded_range((1,), low=2)
    with pytest.raises(InvalidInput):
        codec.null_range((1,))


def test_json_has_no_order() -> None:
    with pytest.raises(InvalidInput) as caught:
        KeyCodec((KeyColumn(JSON),))
    assert caught.value.sqlstate == "42883"
    with pytest.raises(Unsupported):
        KeyCodec((KeyColumn(UNKNOWN),))


@settings(max_examples=examples(100))
@given(keyed_rows(most=2), st.data())
def test_a_cut_or_prolonged_key_is_corruption(
    case: tuple[tuple[KeyColumn, ...], list[Any]], data: st.DataObject
) -> None:
    columns, rows = case
    codec = KeyCodec(columns, PREFIX)
    key = codec.encode(rows[0])
    cut = data.draw(st.integers(0, len(key) - 1))
    for damaged in (key[:cut], key + data.draw(st.binary(min_size=1, max_size=2))):
        with pytest.raises(Corruption):
            codec.decode(damaged)


@settings(max_examples=examples(150))
@given(keyed_rows(most=1), st.data())
def test_a_damaged_key_decodes_to_something_or_is_corruption(
    case: tuple[tuple[KeyColumn, ...], list[Any]], data: st.DataObject
) -> None:
    columns, rows = case
    codec = KeyCodec(columns, PREFIX)
    key = bytearray(codec.encode(rows[0]))
    for _ in range(data.draw(st.integers(1, 4))):
        key[data.draw(st.integers(0, len(key) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Corruption):
        assert len(codec.decode(bytes(key))) == len(columns)
