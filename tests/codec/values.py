"""Values of every type for the codec's laws: a fixed corpus of edge values, and generated ones.

BELVEDERE_PROFILE=quick (the default) or full says how many examples a law is tried with.
"""

from __future__ import annotations

import functools
import os
import random
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Context, Decimal
from typing import Any
from uuid import UUID as PythonUuid
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from belvedere.codec.keys import KeyColumn
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
    UUID,
    VARCHAR,
    Interval,
    Kind,
    SqlType,
    char_type,
    numeric_type,
    varchar_type,
)

FULL = os.environ.get("BELVEDERE_PROFILE", "quick") == "full"


def examples(quick: int) -> int:
    """How many examples to try: what fits the quick run, or twenty times as many."""
    return quick * 20 if FULL else quick


NARROW = numeric_type(5, 2)
MIDDLE = numeric_type(18, 6)
WIDE = numeric_type(38, 10)
ALL_SCALE = numeric_type(38, 38)
HUGE = numeric_type(50, 3)
ROUNDED = numeric_type(3, -2)
SMALL = numeric_type(3, 5)

KEY_TYPES: tuple[SqlType, ...] = (
    BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, NUMERIC, NARROW, MIDDLE, WIDE, ALL_SCALE,
    HUGE, ROUNDED, SMALL, TEXT, VARCHAR, varchar_type(10), char_type(4), BYTEA, DATE, TIME,
    TIMESTAMP, TIMESTAMPTZ, INTERVAL, UUID,
)  # fmt: skip
ROW_TYPES = (*KEY_TYPES, JSON)

FIRST = datetime(1, 1, 1)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999)
_NAN_OTHER = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
_TEXTS = (
    *("", " ", "  ", "\0", "\0\0", "a", "a\0", "a\0\0", "a\0b", "a\x01", "a ", "a\t", "ab", "b"),
    *("\u00e9", "e\u0301", "\u00df", "ss", "\u0131", "i", "\U0001f600", "\u200f", "\uffff"),
    *("\ufffd", "\U0010ffff", "\x7f", "\x80", "\xff", "'", "\\", "<script>", "select", "x" * 64),
)
_NIGHTS = [
    datetime(2025, month, day, 1, 30, fold=fold, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    for zone, month, day in (
        *(("America/New_York", 11, 2), ("Europe/Vienna", 10, 26)),
        ("Australia/Lord_Howe", 4, 6),
    )
    for fold in (0, 1)
]


def _decimals(*texts: str) -> tuple[Decimal, ...]:
    return tuple(map(Decimal, texts))


_CORPUS: dict[Kind, tuple[Any, ...]] = {
    Kind.BOOLEAN: (False, True),
    Kind.SMALLINT: (-(2**15), -1, 0, 1, 255, 256, 2**15 - 1),
    Kind.INTEGER: (-(2**31), -(2**15), -1, 0, 1, 2**31 - 1),
    Kind.BIGINT: (-(2**63), -(2**31), -256, -1, 0, 1, 255, 2**53 + 1, 2**63 - 1),
    Kind.REAL: (
        *(float("-inf"), -3.4028234663852886e38, -1.5, -1.401298464324817e-45, -0.0, 0.0),
        *(1.401298464324817e-45, 0.5, 16777216.0, 3.4028234663852886e38, float("inf")),
        float("nan"),
    ),
    Kind.DOUBLE: (
        *(float("-inf"), -1.7976931348623157e308, -1e308, -1.5, -5e-324, -0.0, 0.0, 5e-324),
        *(2.2250738585072014e-308, 0.1, 2.0**53, 2.0**53 + 2, 1e308, float("inf")),
        *(float("nan"), _NAN_OTHER),
    ),
    Kind.NUMERIC: _decimals(
        *("-Infinity", "-1E+200", "-101", "-100.0", "-100", "-1E+2", "-99.5", "-1", "-0.10"),
        *("-0.1", "-1E-200", "-0", "0", "0.00", "0E+5", "1E-200", "0.001", "0.01", "0.1", "0.10"),
        *("0.11", "1", "1.0", "1.00", "9", "10", "12.5", "12.50", "99", "100", "1E+2", "101"),
        *("1E+100", "1E+101", "1E-100", "1E-101", "1E+200", "9" * 38, "0." + "9" * 38),
        *("-" + "9" * 38, "1" + "0" * 40, "Infinity", "NaN"),
    ),
    Kind.TEXT: _TEXTS,
    Kind.BYTEA: (b"", b"\0", b"\0\0", b"\0\xff", b"\0\x01", b"a", b"a\0", b"\xff", b"\xff\xff"),
    Kind.DATE: (date.min, date(1582, 10, 4), date(1582, 10, 15), date(1969, 12, 31),
                date(1970, 1, 1), date(2000, 2, 29), date.max),
    Kind.TIME: (time.min, time(0, 0, 0, 1), time(12), time(23, 59, 59), time.max),
    Kind.TIMESTAMP: (FIRST, datetime(1582, 10, 10), datetime(1969, 12, 31, 23, 59, 59, 999999),
                     datetime(1970, 1, 1), datetime(2016, 12, 31, 23, 59, 59), LAST),
    Kind.TIMESTAMPTZ: (FIRST.replace(tzinfo=UTC), *_NIGHTS,
                       LAST.replace(tzinfo=UTC)),
    Kind.INTERVAL: (
        *(Interval(-(2**31), -(2**31), -(2**63)), Interval(-1, 0, 0), Interval(0, -30, 0)),
        *(Interval(0, 0, -1), Interval(0, 0, 0), Interval(0, 0, 1), Interval(0, 1, 0)),
        *(Interval(0, 0, 86_400_000_000), Interval(0, 29, 0), Interval(1, 0, 0)),
        *(Interval(0, 30, 0), Interval(1, -30, 5), Interval(12, 0, 0), Interval(0, 360, 0)),
        Interval(2**31 - 1, 2**31 - 1, 2**63 - 1),
    ),
    Kind.UUID: (PythonUuid(int=0), PythonUuid(int=1), PythonUuid(int=2**127),
                PythonUuid(int=2**128 - 1)),
    Kind.JSON: ("null", "{}", '{"a": 1, "a": 2}', '"\\u0000"', " [1 , 2] "),
}  # fmt: skip
_CORPUS[Kind.VARCHAR] = _CORPUS[Kind.CHAR] = _CORPUS[Kind.TEXT]


def corpus(sql_type: SqlType) -> list[Any]:
    """The edge values of a type, as a column of it holds them."""
    found = []
    for value in _CORPUS[sql_type.kind]:
        stored = canonical(sql_type, value)
        if stored is not None:
            found.append(stored)
    if sql_type.kind is Kind.NUMERIC and sql_type.precision is not None:
        most = Decimal(10**sql_type.precision - 1).scaleb(-(sql_type.scale or 0), _exact)
        found += [canonical(sql_type, one) for one in (most, most.copy_negate())]
    return found


_exact = Context(prec=500)


def canonical(sql_type: SqlType, value: Any) -> Any:
    """The value as a column of the type gives it back, None when it does not fit the column."""
    if sql_type.kind is Kind.CHAR:
        fitted = value.rstrip(" ").ljust(sql_type.length or 0)
        return fitted if len(fitted) <= (sql_type.length or 0) else None
    if sql_type.kind is Kind.VARCHAR and sql_type.length is not None:
        return value if len(value) <= sql_type.length else None
    if sql_type.kind is Kind.NUMERIC:
        return _canonical_numeric(sql_type, value)
    return value


def _canonical_numeric(sql_type: SqlType, value: Decimal) -> Decimal | None:
    if not value.is_finite():
        return value
    value = value if value else value.copy_abs()
    if sql_type.precision is None:
        exponent = min(0, int(value.as_tuple().exponent))
        return value.quantize(Decimal((0, (1,), exponent)), context=_exact)
    scale = sql_type.scale or 0
    scaled = value.scaleb(scale, _exact)
    if scaled.copy_abs() >= 10**sql_type.precision or scaled != int(scaled):
        return None
    units = int(scaled)
    return Decimal(units * 10**-scale) if scale < 0 else Decimal(units).scaleb(-scale, _exact)


def generated(sql_type: SqlType) -> st.SearchStrategy[Any]:
    """Values without the corpus."""
    match sql_type.kind:
        case Kind.BOOLEAN:
            return st.booleans()
        case Kind.SMALLINT:
            return st.integers(-(2**15), 2**15 - 1)
        case Kind.INTEGER:
            return st.integers(-(2**31), 2**31 - 1)
        case Kind.BIGINT:
            return st.integers(-(2**63), 2**63 - 1)
        case Kind.REAL:
            return st.floats(width=32)
        case Kind.DOUBLE:
            return st.floats()
        case Kind.NUMERIC:
            return _numerics(sql_type)
        case Kind.CHAR | Kind.VARCHAR:
            texts = st.text(max_size=sql_type.length)
            return texts.map(functools.partial(canonical, sql_type))
        case Kind.TEXT | Kind.JSON:
            return st.text()
        case Kind.BYTEA:
            return st.binary()
        case _:
            return _moments(sql_type)


def _numerics(sql_type: SqlType) -> st.SearchStrategy[Decimal]:
    if sql_type.precision is None:
        return st.builds(
            lambda digits, exponent: canonical(NUMERIC, Decimal(digits).scaleb(exponent, _exact)),
            st.integers(-(10**40), 10**40),
            st.integers(-150, 150),
        )
    most = 10**sql_type.precision - 1
    scale = sql_type.scale or 0
    return st.integers(-most, most).map(
        lambda number: canonical(sql_type, Decimal(number).scaleb(-scale, _exact))
    )


def _moments(sql_type: SqlType) -> st.SearchStrategy[Any]:
    match sql_type.kind:
        case Kind.DATE:
            return st.dates()
        case Kind.TIME:
            return st.times().map(lambda value: value.replace(fold=0))
        case Kind.TIMESTAMP:
            return st.datetimes().map(lambda value: value.replace(fold=0))
        case Kind.TIMESTAMPTZ:
            return st.datetimes().map(lambda value: value.replace(fold=0, tzinfo=UTC))
        case Kind.INTERVAL:
            small = st.integers(-40, 40)
            return st.builds(Interval, small, small, st.integers(-(2**45), 2**45))
        case Kind.UUID:
            return st.uuids()
    raise AssertionError(sql_type)


def values(sql_type: SqlType) -> st.SearchStrategy[Any]:
    """Values of a type, edge values as often as others."""
    return st.sampled_from(corpus(sql_type)) | generated(sql_type)


def nullable(sql_type: SqlType) -> st.SearchStrategy[Any]:
    return st.none() | values(sql_type)


def key_columns() -> st.SearchStrategy[KeyColumn]:
    return st.builds(
        KeyColumn,
        st.sampled_from(KEY_TYPES),
        st.booleans(),
        st.sampled_from((None, True, False)),
    )


def rank(value: Any) -> Any:
    """What SQL compares by: NaN equals itself and is the largest, intervals are as long as they
    are, trailing blanks are left to the caller."""
    if isinstance(value, float | Decimal):
        return (1, 0) if value != value else (0, value)
    if isinstance(value, Interval):
        return value.span
    return value


def compare(column: KeyColumn, left: Any, right: Any) -> int:
    """-1, 0 or 1 as ORDER BY of the column puts left and right: the law's own opinion."""
    if left is None or right is None:
        if left is right:
            return 0
        first = column.descending if column.nulls_first is None else column.nulls_first
        return -1 if (left is None) == first else 1
    if column.type.kind is Kind.CHAR:
        left, right = left.rstrip(" "), right.rstrip(" ")
    a, b = rank(left), rank(right)
    order = (a > b) - (a < b)
    return -order if column.descending else order


def compare_rows(columns: tuple[KeyColumn, ...], left: Any, right: Any) -> int:
    for column, a, b in zip(columns, left, right):
        order = compare(column, a, b)
        if order:
            return order
    return 0


def random_value(rng: random.Random, sql_type: SqlType) -> Any:
    """A quick random value for the laws that want very many: close to the edge values."""
    value = rng.choice(corpus_cached(sql_type))
    match sql_type.kind:
        case Kind.BIGINT | Kind.INTEGER | Kind.SMALLINT:
            limit = max(corpus_cached(sql_type))
            return max(-limit, min(limit, value + rng.randrange(-300, 300)))
        case Kind.DOUBLE:
            return struct.unpack("<d", rng.randbytes(8))[0] if rng.random() < 0.5 else value
        case Kind.TEXT:
            return value + "".join(rng.choices("\0\x01a b\xff\U0001f600", k=rng.randrange(4)))
        case Kind.BYTEA:
            return value + bytes(rng.choices(b"\0\x01a\xfe\xff", k=rng.randrange(4)))
        case Kind.NUMERIC if sql_type.precision is None and value.is_finite():
            return _exact.add(
                value, Decimal(rng.randrange(-2000, 2000)).scaleb(rng.randrange(-9, 9), _exact)
            )
        case Kind.TIMESTAMP if FIRST < value < LAST:
            return value + timedelta(microseconds=rng.randrange(-300, 300))
    return value


@functools.cache
def corpus_cached(sql_type: SqlType) -> list[Any]:
    return corpus(sql_type)


def same(left: Any, right: Any) -> bool:
    """Equal in everything that can be seen: type, display scale, sign of zero, NaN."""
    return repr(left) == repr(right)


PLUS_FIVE = timezone(timedelta(hours=5))
