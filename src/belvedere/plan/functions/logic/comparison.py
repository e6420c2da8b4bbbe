"""= <> < <= > >= for every type that has an order, and IS [NOT] DISTINCT FROM.

NaN equals itself and follows everything else; CHAR ignores trailing blanks; an INTERVAL compares by
its length with 30-day months; a TIMESTAMP is compared with a TIMESTAMPTZ in the session's zone,
UTC. JSON has no comparison, as in PostgreSQL.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from belvedere.plan.functions.core.function import Function, SqlForm, Volatility, scalar
from belvedere.plan.functions.numeric.decimals import aligned_bounds, when_bounded
from belvedere.types import Interval
from belvedere.values.datetimes import UTC

Test = Callable[[Any, Any], bool]
_NAMES = ("=", "<>", "<", "<=", ">", ">=")
_PLAIN: dict[str, Test] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _float_tests() -> dict[str, Test]:
    def equal(left: float, right: float) -> bool:
        return left == right or (left != left and right != right)

    def less(left: float, right: float) -> bool:
        return left < right or (right != right and left == left)

    return _tests_from_order(equal, less)


def _numeric_tests() -> dict[str, Test]:
    def equal(left: Decimal, right: Decimal) -> bool:
        return left == right or (left != left and right != right)

    def less(left: Decimal, right: Decimal) -> bool:
        try:
            return left < right
        except InvalidOperation:
            return right.is_nan() and not left.is_nan()

    return _tests_from_order(equal, less)


def _tests_from_order(equal: Test, less: Test) -> dict[str, Test]:
    """The six tests from equality and order of a total order."""
    return {
        "=": equal,
        "<>": lambda left, right: not equal(left, right),
        "<": less,
        "<=": lambda left, right: not less(right, left),
        ">": lambda left, right: less(right, left),
        ">=": lambda left, right: not less(left, right),
    }


def _tests_by_key(
    left_key: Callable[[Any], Any], right_key: Callable[[Any], Any]
) -> dict[str, Test]:
    def compare_keys(test: Test) -> Test:
        return lambda left, right: test(left_key(left), right_key(right))

    return {name: compare_keys(test) for name, test in _PLAIN.items()}


def _identity(value: Any) -> Any:
    return value


def _strip_blanks(value: str) -> str:
    return value.rstrip(" ")


def _interval_span(value: Interval) -> int:
    return value.span


def _midnight(value: datetime.date) -> datetime.datetime:
    return datetime.datetime(value.year, value.month, value.day)


def _midnight_utc(value: datetime.date) -> datetime.datetime:
    return datetime.datetime(value.year, value.month, value.day, tzinfo=UTC)


def _as_utc(value: datetime.datetime) -> datetime.datetime:
    return value.replace(tzinfo=UTC)


def _array_tests() -> dict[str, Test]:
    def equal(left: list[Any], right: list[Any]) -> bool:
        return len(left) == len(right) and _find_difference(left, right) is None

    def less(left: list[Any], right: list[Any]) -> bool:
        at = _find_difference(left, right)
        if at is None:
            return len(left) < len(right)
        return element_key(left[at]) < element_key(right[at])

    return _tests_from_order(equal, less)


def _find_difference(left: list[Any], right: list[Any]) -> int | None:
    """Where two arrays begin to differ, as far as both reach. What Python finds equal is equal, and
    is passed over in large pieces."""
    shorter = min(len(left), len(right))
    for start in range(0, shorter, _PIECE):
        end = min(start + _PIECE, shorter)
        if left[start:end] != right[start:end]:
            for at in range(start, end):
                if element_key(left[at]) != element_key(right[at]):
                    return at
    return None


def array_key(values: list[Any]) -> list[Any]:
    """An ordering key of an array: NULL elements follow the others and equal each other."""
    return [element_key(value) for value in values]


def element_key(value: Any) -> tuple[int, Any]:
    """An ordering key for a value of any one type, NULL last, NaN before it."""
    if value is None:
        return 2, 0
    if isinstance(value, float | Decimal):
        return (1, 0) if value != value else (0, value)
    if isinstance(value, Interval):
        return 0, value.span
    if isinstance(value, list):
        return 0, array_key(value)
    return 0, value


_PIECE = 1024
_FLOATS = _float_tests()
_INTEGERS = ("int2", "int4", "int8")


def _type_pairs() -> list[tuple[str, str, dict[str, Test], str]]:
    """(left type, right type, tests, template around each side in SQL)."""
    pairs = [(left, right, _PLAIN, "{}") for left in _INTEGERS for right in _INTEGERS]
    pairs += [
        (left, right, _FLOATS, "{}")
        for left in ("float4", "float8")
        for right in ("float4", "float8")
    ]
    pairs += [
        (name, name, _PLAIN, "{}")
        for name in ("bool", "text", "bytea", "date", "time", "timestamp", "timestamptz", "uuid")
    ]
    pairs += [
        ("bpchar", "bpchar", _tests_by_key(_strip_blanks, _strip_blanks), "rtrim({}, ' ')"),
        ("interval", "interval", _tests_by_key(_interval_span, _interval_span), "{}"),
        ("date", "timestamp", _tests_by_key(_midnight, _identity), "{}"),
        ("timestamp", "date", _tests_by_key(_identity, _midnight), "{}"),
        ("date", "timestamptz", _tests_by_key(_midnight_utc, _identity), "{}"),
        ("timestamptz", "date", _tests_by_key(_identity, _midnight_utc), "{}"),
        ("timestamp", "timestamptz", _tests_by_key(_as_utc, _identity), "{}"),
        ("timestamptz", "timestamp", _tests_by_key(_identity, _as_utc), "{}"),
    ]
    return pairs


def _distinct_test(equal: Test, negated: bool) -> Test:
    def distinct(left: Any, right: Any) -> bool:
        if left is None or right is None:
            return (left is not right) is not negated
        return equal(left, right) is negated

    return distinct


def _comparison_family(
    left: str, right: str, tests: dict[str, Test], sql: Callable[[str], SqlForm]
) -> list[Function]:
    zoned = {left, right} in ({"date", "timestamptz"}, {"timestamp", "timestamptz"})
    volatility = Volatility.STABLE if zoned else Volatility.IMMUTABLE
    types = f"({left},{right}) bool"
    functions = [
        scalar(name + types, tests[name], sql(name), volatility=volatility) for name in _NAMES
    ]
    for name, negated in (("is distinct from", False), ("is not distinct from", True)):
        form = _distinct_test(tests["="], negated)
        functions.append(
            scalar(name + types, form, sql(name.upper()), volatility=volatility, strict=False)
        )
    return functions


def _wrap_operands(wrap: str) -> Callable[[str], SqlForm]:
    return lambda name: f"{wrap.format('_0')} {name} {wrap.format('_1')}"


def _align_operands(name: str) -> SqlForm:
    return when_bounded(f"CAST(_0 AS {{0}}) {name} CAST(_1 AS {{0}})", aligned_bounds)


def _no_sql(name: str) -> SqlForm:
    return None


FUNCTIONS: tuple[Function, ...] = (
    *(
        f
        for left, right, tests, wrap in _type_pairs()
        for f in _comparison_family(left, right, tests, _wrap_operands(wrap))
    ),
    *_comparison_family("oid", "oid", _PLAIN, _no_sql),
    *_comparison_family("numeric", "numeric", _numeric_tests(), _align_operands),
    *_comparison_family("anyarray", "anyarray", _array_tests(), _no_sql),
)
