"""SMALLINT, INTEGER and BIGINT: arithmetic with range checks, bits, gcd.

Each width has its own plain functions, built once; a mixed call computes in the wider type, as
PostgreSQL's cross-type operators do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from belvedere.plan.functions.core.function import UDF, Function, scalar
from belvedere.values.failures import division_by_zero, out_of_range
from belvedere.values.numbers import INT2_MAX, INT4_MAX, INT8_MAX

_WIDTHS = {
    "int2": ("smallint", 16, INT2_MAX),
    "int4": ("integer", 32, INT4_MAX),
    "int8": ("bigint", 64, INT8_MAX),
}
_ORDER = ("int2", "int4", "int8")

Binary = Callable[[int, int], int]
Unary = Callable[[int], int]


class PythonOperator(NamedTuple):
    """The Python operator that a function equals where the result is in range."""

    text: str
    low: int
    high: int


PYTHON_OPERATORS: dict[Callable[..., object], PythonOperator] = {}


def _make_add(kind: str, high: int) -> Binary:
    low = -high - 1

    def add(left: int, right: int) -> int:
        result = left + right
        if low <= result <= high:
            return result
        raise out_of_range(kind)

    PYTHON_OPERATORS[add] = PythonOperator("+", low, high)
    return add


def _make_subtract(kind: str, high: int) -> Binary:
    low = -high - 1

    def subtract(left: int, right: int) -> int:
        result = left - right
        if low <= result <= high:
            return result
        raise out_of_range(kind)

    PYTHON_OPERATORS[subtract] = PythonOperator("-", low, high)
    return subtract


def _make_multiply(kind: str, high: int) -> Binary:
    low = -high - 1

    def multiply(left: int, right: int) -> int:
        result = left * right
        if low <= result <= high:
            return result
        raise out_of_range(kind)

    PYTHON_OPERATORS[multiply] = PythonOperator("*", low, high)
    return multiply


def _make_divide(kind: str, high: int) -> Binary:
    def divide(left: int, right: int) -> int:
        if right > 0:
            return left // right if left >= 0 else -(-left // right)
        if right == 0:
            raise division_by_zero()
        result = -(left // -right) if left >= 0 else -left // -right
        if result <= high:
            return result
        raise out_of_range(kind)

    return divide


def modulo(left: int, right: int) -> int:
    """The remainder, with the sign of the dividend."""
    if right == 0:
        raise division_by_zero()
    result = abs(left) % abs(right)
    return -result if left < 0 else result


def _make_negate(kind: str, high: int) -> Unary:
    def negate(value: int) -> int:
        if value >= -high:
            return -value
        raise out_of_range(kind)

    return negate


def _make_absolute(kind: str, high: int) -> Unary:
    def absolute(value: int) -> int:
        if value >= -high:
            return abs(value)
        raise out_of_range(kind)

    return absolute


def _make_gcd(kind: str, high: int) -> Binary:
    def gcd(left: int, right: int) -> int:
        result = math.gcd(left, right)
        if result <= high:
            return result
        raise out_of_range(kind)

    return gcd


def _make_lcm(kind: str, high: int) -> Binary:
    def lcm(left: int, right: int) -> int:
        result = math.lcm(left, right)
        if result <= high:
            return result
        raise out_of_range(kind)

    return lcm


def _wrap_bits(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _make_shifts(bits: int) -> tuple[Binary, Binary]:
    # The processor takes the count modulo its word; a smallint is shifted as an integer.
    mask = max(bits, 32) - 1

    def shift_left(value: int, count: int) -> int:
        return _wrap_bits(value << (count & mask), bits)

    def shift_right(value: int, count: int) -> int:
        return value >> (count & mask)

    return shift_left, shift_right


def identity(value: int) -> int:
    return value


def invert(value: int) -> int:
    return ~value


def bit_and(left: int, right: int) -> int:
    return left & right


def bit_or(left: int, right: int) -> int:
    return left | right


def bit_xor(left: int, right: int) -> int:
    return left ^ right


def _cross_width_functions() -> list[Function]:
    """The four operations for every pair of widths."""
    functions = []
    makers = (("+", _make_add), ("-", _make_subtract), ("*", _make_multiply), ("/", _make_divide))
    made = {
        (name, width): make(_WIDTHS[width][0], _WIDTHS[width][2])
        for name, make in makers
        for width in _ORDER
    }
    for name, _ in makers:
        for left in _ORDER:
            for right in _ORDER:
                wide = max(left, right)
                sql = f"_0 {'//' if name == '/' else name} _1"
                functions.append(scalar(f"{name}({left},{right}) {wide}", made[name, wide], sql))
    return functions


def _single_width_functions(width: str) -> list[Function]:
    kind, bits, high = _WIDTHS[width]
    left, right = _make_shifts(bits)
    both, one = f"({width},{width}) {width}", f"({width}) {width}"
    # The smallest value modulo -1 is 0, which DuckDB takes for an overflow.
    wider = {16: "INTEGER", 32: "BIGINT", 64: "HUGEINT"}[bits]
    remainder = f"CAST(_0 % abs(CAST(_1 AS {wider})) AS {kind.upper()})"
    functions = [
        scalar(f"%{both}", modulo, remainder),
        scalar(f"mod{both}", modulo, remainder),
        scalar(f"+{one}", identity, "_0"),
        scalar(f"-{one}", _make_negate(kind, high), "-_0"),
        scalar(f"@{one}", _make_absolute(kind, high), "abs(_0)"),
        scalar(f"abs{one}", _make_absolute(kind, high), "abs(_0)"),
        scalar(f"&{both}", bit_and, "_0 & _1"),
        scalar(f"|{both}", bit_or, "_0 | _1"),
        scalar(f"#{both}", bit_xor, "xor(_0, _1)"),
        scalar(f"~{one}", invert, "~_0"),
        scalar(f"<<({width},int4) {width}", left, UDF),
        scalar(f">>({width},int4) {width}", right, UDF),
    ]
    if width != "int2":
        functions.append(scalar(f"gcd{both}", _make_gcd(kind, high), UDF))
        functions.append(scalar(f"lcm{both}", _make_lcm(kind, high), UDF))
    return functions


FUNCTIONS: tuple[Function, ...] = (
    *_cross_width_functions(),
    *(f for width in _ORDER for f in _single_width_functions(width)),
)
