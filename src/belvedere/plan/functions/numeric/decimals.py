"""NUMERIC: arithmetic and rounding.

DuckDB's DECIMAL has a precision and scale per column where PostgreSQL's NUMERIC has a scale per
value. So SQL forms exist for arguments whose bounds the planner knows, where the scale of the
result follows from them: sums, products, remainders, rounding. `bounds` gives the result's bounds,
at most 38 digits; a value beyond that is an overflow error in DuckDB, never a wrong digit. The
scale of a quotient depends on the values, so division has no SQL form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from belvedere.plan.functions.core.function import UDF, Function, Types, scalar
from belvedere.plan.functions.core.sql_form import DECIMAL_DIGITS_MAX
from belvedere.types import SqlType, numeric_type
from belvedere.values.decimals import (
    EXACT,
    NAN,
    ONE,
    SCALE_MAX,
    WIDE,
    ZERO,
    add,
    divide,
    integer_from_numeric,
    multiply,
    numeric_from_integer,
    require_numeric,
    round_to_scale,
    scale_of,
    scale_unit,
    subtract,
    truncate_to_scale,
)
from belvedere.values.failures import division_by_zero, out_of_range


def modulo(left: Decimal, right: Decimal) -> Decimal:
    if left.is_finite() and right.is_finite():
        if not right:
            raise division_by_zero()
        return require_numeric(EXACT.remainder(left, right))
    if left.is_nan() or right.is_nan():
        return NAN
    if left.is_infinite():
        if not right:
            raise division_by_zero()
        return NAN
    return left


def integer_quotient(left: Decimal, right: Decimal) -> Decimal:
    """div(): the quotient cut to a whole number."""
    if left.is_finite() and right.is_finite():
        if not right:
            raise division_by_zero()
        return require_numeric(EXACT.divide_int(left, right))
    return divide(left, right)


def negate(value: Decimal) -> Decimal:
    return EXACT.minus(value) if value else value


def identity(value: Decimal) -> Decimal:
    return value


def absolute(value: Decimal) -> Decimal:
    return EXACT.abs(value)


def sign(value: Decimal) -> Decimal:
    if value.is_nan():
        return NAN
    return ONE if value > 0 else -ONE if value < 0 else ZERO


def round_to_integer(value: Decimal) -> Decimal:
    return round_to_scale(value, 0) if value.is_finite() else value


def round_to(value: Decimal, scale: int) -> Decimal:
    if not value.is_finite():
        return value
    return _at_scale(value, scale, round_to_scale)


def truncate_to_integer(value: Decimal) -> Decimal:
    return truncate_to_scale(value, 0) if value.is_finite() else value


def truncate_to(value: Decimal, scale: int) -> Decimal:
    if not value.is_finite():
        return value
    return _at_scale(value, scale, truncate_to_scale)


def _at_scale(value: Decimal, scale: int, cut: Callable[[Decimal, int], Decimal]) -> Decimal:
    scale = min(scale, SCALE_MAX)
    if scale >= 0:
        return cut(value, scale)
    # Beyond the first digit everything is rounded away; quantize would refuse such exponents.
    if -scale > value.adjusted() + 1:
        return ZERO
    result = cut(value, scale)
    return require_numeric(round_to_scale(result, 0)) if result else ZERO


def ceiling(value: Decimal) -> Decimal:
    return (
        require_numeric(value.quantize(scale_unit(0), ROUND_CEILING, EXACT))
        if value.is_finite()
        else value
    )


def floor(value: Decimal) -> Decimal:
    return (
        require_numeric(value.quantize(scale_unit(0), ROUND_FLOOR, EXACT))
        if value.is_finite()
        else value
    )


def scale(value: Decimal) -> int | None:
    return scale_of(value) if value.is_finite() else None


def min_scale(value: Decimal) -> int | None:
    if not value.is_finite():
        return None
    return max(scale_of(value.normalize(EXACT)), 0) if value else 0


def trim_scale(value: Decimal) -> Decimal:
    if not value.is_finite():
        return value
    return round_to_scale(value, min_scale(value) or 0)


def factorial(value: int) -> Decimal:
    if value < 0:
        raise out_of_range("numeric")
    if value > 32177:
        raise out_of_range("numeric")
    return numeric_from_integer(math.factorial(value))


def gcd(left: Decimal, right: Decimal) -> Decimal:
    if not (left.is_finite() and right.is_finite()):
        return NAN
    digits = max(scale_of(left), scale_of(right))
    whole = math.gcd(*_scale_to_integers(left, right, digits))
    return _divide_by_power_of_ten(whole, digits)


def _scale_to_integers(left: Decimal, right: Decimal, digits: int) -> tuple[int, int]:
    """Both times 10 ** digits, which may have more digits than a NUMERIC."""
    return (
        integer_from_numeric(left.scaleb(digits, WIDE)),
        integer_from_numeric(right.scaleb(digits, WIDE)),
    )


def _divide_by_power_of_ten(whole: int, digits: int) -> Decimal:
    before, after = divmod(whole, 10**digits)
    places = numeric_from_integer(after).scaleb(-digits, WIDE)
    return round_to_scale(WIDE.add(numeric_from_integer(before), places), digits)


def lcm(left: Decimal, right: Decimal) -> Decimal:
    if not (left.is_finite() and right.is_finite()):
        return NAN
    digits = max(scale_of(left), scale_of(right))
    whole = math.lcm(*_scale_to_integers(left, right, digits))
    return _divide_by_power_of_ten(whole, digits)


def digit_counts(sql_type: SqlType) -> tuple[int, int]:
    """Digits before and after the point of a bounded NUMERIC."""
    assert sql_type.precision is not None
    after = sql_type.scale or 0
    return sql_type.precision - after, after


def are_bounded(types: Types) -> bool:
    return all(one.precision is not None for one in types)


def _decimal_type(before: int, after: int) -> SqlType | None:
    if after > DECIMAL_DIGITS_MAX:
        return None
    return numeric_type(max(min(before + after, DECIMAL_DIGITS_MAX), after, 1), after)


def sum_bounds(types: Types) -> SqlType | None:
    (before, after), (other_before, other_after) = digit_counts(types[0]), digit_counts(types[1])
    before, after = max(before, other_before), max(after, other_after)
    if before + after > DECIMAL_DIGITS_MAX:
        return None
    return _decimal_type(before + 1, after)


def product_bounds(types: Types) -> SqlType | None:
    (before, after), (other_before, other_after) = digit_counts(types[0]), digit_counts(types[1])
    return _decimal_type(before + other_before, after + other_after)


def aligned_bounds(types: Types) -> SqlType | None:
    """Both arguments at one precision and scale, as comparison and remainder need them. The digits
    of a sum are bounded by DuckDB's maximum, not by its values: a value that does not fit is an
    error in DuckDB."""
    before = max(digit_counts(one)[0] for one in types)
    after = max(digit_counts(one)[1] for one in types)
    return _decimal_type(before, after)


def same_bounds(types: Types) -> SqlType | None:
    return types[0]


def integer_bounds(types: Types) -> SqlType | None:
    before, _ = digit_counts(types[0])
    return numeric_type(min(before + 1, DECIMAL_DIGITS_MAX), 0)


def when_bounded(
    template: str, bounds: Callable[[Types], SqlType | None]
) -> Callable[[Types], str | None]:
    """The template, for arguments whose bounds are known and leave the result representable.

    `{}` in it stands for the DECIMAL type of the result.
    """

    def rule(types: Types) -> str | None:
        if not are_bounded(types):
            return None
        result = bounds(types)
        if result is None:
            return None
        return template.format(f"DECIMAL({result.precision},{result.scale})")

    return rule


def _binary_function(
    name: str,
    form: Callable[..., Decimal],
    template: str,
    bounds: Callable[[Types], SqlType | None],
) -> Function:
    rule = when_bounded(template, bounds)
    return scalar(f"{name}(numeric,numeric) numeric", form, rule, bounds=bounds)


def _unary_function(
    name: str,
    form: Callable[..., Decimal],
    template: str,
    bounds: Callable[[Types], SqlType | None],
) -> Function:
    rule = when_bounded(template, bounds)
    return scalar(f"{name}(numeric) numeric", form, rule, bounds=bounds)


FUNCTIONS: tuple[Function, ...] = (
    _binary_function("+", add, "CAST(_0 AS {0}) + _1", sum_bounds),
    _binary_function("-", subtract, "CAST(_0 AS {0}) - _1", sum_bounds),
    _binary_function("*", multiply, "_0 * _1", product_bounds),
    scalar("/(numeric,numeric) numeric", divide),
    _binary_function("%", modulo, "CAST(_0 AS {0}) % CAST(_1 AS {0})", aligned_bounds),
    _binary_function("mod", modulo, "CAST(_0 AS {0}) % CAST(_1 AS {0})", aligned_bounds),
    scalar("div(numeric,numeric) numeric", integer_quotient),
    _unary_function("-", negate, "-_0", same_bounds),
    _unary_function("+", identity, "_0", same_bounds),
    _unary_function("@", absolute, "abs(_0)", same_bounds),
    _unary_function("abs", absolute, "abs(_0)", same_bounds),
    _unary_function(
        "sign", sign, "CAST(sign(_0) AS DECIMAL(1,0))", lambda types: numeric_type(1, 0)
    ),
    _unary_function("round", round_to_integer, "CAST(_0 AS {})", integer_bounds),
    _unary_function("trunc", truncate_to_integer, "CAST(trunc(_0) AS {})", integer_bounds),
    _unary_function("ceil", ceiling, "CAST(ceil(_0) AS {})", integer_bounds),
    _unary_function("ceiling", ceiling, "CAST(ceil(_0) AS {})", integer_bounds),
    _unary_function("floor", floor, "CAST(floor(_0) AS {})", integer_bounds),
    scalar("round(numeric,int4) numeric", round_to),
    scalar("trunc(numeric,int4) numeric", truncate_to),
    scalar("scale(numeric) int4", scale, UDF),
    scalar("min_scale(numeric) int4", min_scale, UDF),
    scalar("trim_scale(numeric) numeric", trim_scale),
    scalar("factorial(int8) numeric", factorial),
    scalar("gcd(numeric,numeric) numeric", gcd),
    scalar("lcm(numeric,numeric) numeric", lcm),
)
