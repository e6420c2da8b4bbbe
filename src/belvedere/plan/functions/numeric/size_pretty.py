"""pg_size_pretty: a number of bytes in the unit that a person would choose."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal

from belvedere.plan.functions.core.function import Function, scalar
from belvedere.values.decimals import (
    EXACT,
    format_numeric,
    integer_from_numeric,
    numeric_from_integer,
)

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_BYTES_MAX = 10 * 1024
_HALVES_MAX = 20 * 1024 - 1


def format_size(size: int) -> str:
    """Beyond bytes, sizes are counted in halves of a unit, and rounded at the end."""
    if abs(size) < _BYTES_MAX:
        return f"{size} {_UNITS[0]}"
    halves = _divide_truncating(size, 512)
    unit = 1
    while abs(halves) >= _HALVES_MAX and unit < len(_UNITS) - 1:
        halves = _divide_truncating(halves, 1024)
        unit += 1
    whole = _divide_truncating(halves + (1 if halves >= 0 else -1), 2)
    return f"{format_numeric(numeric_from_integer(whole))} {_UNITS[unit]}"


def _divide_truncating(value: int, divisor: int) -> int:
    return value // divisor if value >= 0 else -(-value // divisor)


def format_numeric_size(size: Decimal) -> str:
    if not size.is_finite():
        return f"{format_numeric(size)} {_UNITS[-1]}"
    if size.copy_abs() < _BYTES_MAX:
        return f"{format_numeric(size)} {_UNITS[0]}"
    return format_size(integer_from_numeric(size.to_integral_value(ROUND_DOWN, EXACT)))


FUNCTIONS: tuple[Function, ...] = (
    scalar("pg_size_pretty(int8) text", format_size),
    scalar("pg_size_pretty(numeric) text", format_numeric_size),
)
