"""NUMERIC: square root, exponential, logarithms, powers.

The values are rounded from more digits than needed. The number of digits of a result is
PostgreSQL's, which it estimates in floating point from the leading base-10000 digits.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from belvedere.plan.functions.core.function import UDF, Function, scalar
from belvedere.values.decimals import (
    DIGITS_BEFORE_MAX,
    DISPLAY_SCALE_MAX,
    EXACT,
    GROUP,
    INFINITY,
    MINUS_INFINITY,
    NAN,
    ONE,
    SIGNIFICANT_MIN,
    ZERO,
    divide_to_scale,
    group_weight,
    require_numeric,
    round_to_scale,
    scale_of,
)
from belvedere.values.exponentials import exp_to_digits, ln_to_digits
from belvedere.values.failures import bad_argument, out_of_range

_RESULT_SCALE_MAX = 2000
_EXPONENT_MAX = _RESULT_SCALE_MAX * 3
_LOG10_E = 0.434294481903252
_LN_10 = 2.302585092994046
_GUARD = 12
_FEW_DIGITS = 300
"""Up to so many digits the `decimal` module is the fastest."""
_TWO, _TEN = Decimal(2), Decimal(10)


def _decimal_context(digits: int) -> Context:
    return Context(prec=max(digits, 1) + _GUARD, Emax=999_999_999, Emin=-999_999_999, traps=[])


def _has_few_digits(digits: int, *values: Decimal) -> bool:
    return max(digits, *(v.adjusted() + scale_of(v) for v in values)) < _FEW_DIGITS


def _exp(value: Decimal, digits: int) -> Decimal:
    if _has_few_digits(digits, value):
        return _decimal_context(digits).exp(value)
    return exp_to_digits(value, max(digits, 1))


def _ln(value: Decimal, digits: int) -> Decimal:
    if _has_few_digits(digits, value):
        return _decimal_context(digits).ln(value)
    return ln_to_digits(value, max(digits, 1))


def _display_scale(weight: int, *values: Decimal) -> int:
    """Digits after the point for a result of about `weight` digits before it."""
    scale = max(SIGNIFICANT_MIN - weight, *(scale_of(value) for value in values), 0)
    return min(scale, DISPLAY_SCALE_MAX)


def sqrt(value: Decimal) -> Decimal:
    if value.is_nan():
        return NAN
    if value < 0:
        raise bad_argument("cannot take square root of a negative number", "2201F")
    if value.is_infinite():
        return value
    # Half the weight, rounded as PostgreSQL does it: (weight + 1) * 4 / 2 - 1.
    weight = (group_weight(value)[0] + 1) * GROUP // 2 - 1
    if not value:
        weight = GROUP // 2 - 1
    scale = _display_scale(weight, value)
    return round_to_scale(_decimal_context(abs(weight) + scale).sqrt(value), scale)


def exp(value: Decimal) -> Decimal:
    if value.is_nan():
        return NAN
    if value.is_infinite():
        return INFINITY if value > 0 else ZERO
    weight = int(max(min(float(value), _EXPONENT_MAX), -_EXPONENT_MAX) * _LOG10_E)
    scale = _display_scale(max(min(weight, _RESULT_SCALE_MAX), -_RESULT_SCALE_MAX), value)
    if value.copy_abs() >= _EXPONENT_MAX:
        if value > 0:
            raise out_of_range("numeric")
        return round_to_scale(ZERO, scale)
    return round_to_scale(_exp(value, max(weight, 0) + scale), scale)


def _check_logarithm(value: Decimal) -> None:
    if value < 0:
        raise bad_argument("cannot take logarithm of a negative number", "2201E")
    if value == 0:
        raise bad_argument("cannot take logarithm of zero", "2201E")


def _ln_weight(value: Decimal) -> int:
    """PostgreSQL's estimate of the decimal weight of ln(value)."""
    if value <= 0:
        return 0
    if Decimal("0.9") <= value <= Decimal("1.1"):
        rest = EXACT.subtract(value, ONE)
        if not rest:
            return 0
        weight, first = group_weight(rest)
        return weight * GROUP + int(math.log10(first))
    digits, power = _leading_digits(value, 2)
    return int(math.log10(abs(math.log(digits) + power * _LN_10)))


def _leading_digits(value: Decimal, groups: int) -> tuple[float, int]:
    """The first base-10000 digits as one float, and the power of ten they stand at."""
    weight, _ = group_weight(value)
    # PostgreSQL strips trailing zero digits, so only the digits there are count.
    lowest = -scale_of(value.normalize(EXACT)) // GROUP
    available = weight - lowest + 1
    used = max(1, min(groups, available))
    power = (weight - used + 1) * GROUP
    return float(abs(int(value.scaleb(-power, EXACT)))), power


def ln(value: Decimal) -> Decimal:
    if value.is_nan():
        return NAN
    _check_logarithm(value)
    if value.is_infinite():
        return value
    weight = _ln_weight(value)
    scale = _display_scale(weight, value)
    return round_to_scale(_ln(value, max(weight, 0) + scale), scale)


def log(base: Decimal, value: Decimal) -> Decimal:
    if base.is_nan() or value.is_nan():
        return NAN
    _check_logarithm(base)
    _check_logarithm(value)
    if base.is_infinite() or value.is_infinite():
        if base.is_infinite() and value.is_infinite():
            return NAN
        return ZERO if base.is_infinite() else INFINITY
    weight = _ln_weight(value) - _ln_weight(base)
    scale = _display_scale(weight, base, value)
    digits = scale + 2 * SIGNIFICANT_MIN + max(weight, 0)
    divisor = _ln(base, digits)
    if not divisor:
        raise bad_argument("division by zero", "22012")
    return round_to_scale(_decimal_context(digits).divide(_ln(value, digits), divisor), scale)


def log10(value: Decimal) -> Decimal:
    return log(_TEN, value)


def power(base: Decimal, exponent: Decimal) -> Decimal:
    if not (base.is_finite() and exponent.is_finite()):
        return _power_special(base, exponent)
    if not base and exponent < 0:
        raise bad_argument("zero raised to a negative power is undefined", "2201F")
    whole = exponent == exponent.to_integral_value()
    if whole and -(2**31) <= exponent < 2**31:
        return _power_integer(base, int(exponent), scale_of(exponent))
    if base < 0 and not whole:
        raise bad_argument("a negative number raised to a non-integer power is complex", "2201F")
    if not base:
        return round_to_scale(ZERO, SIGNIFICANT_MIN)
    negative = base < 0 and _is_odd(exponent)
    return _power_real(base.copy_abs(), exponent, negative)


def _power_special(base: Decimal, exponent: Decimal) -> Decimal:
    if exponent == 0 or base == 1:
        return ONE
    if base.is_nan() or exponent.is_nan():
        return NAN
    if not base and exponent < 0:
        raise bad_argument("zero raised to a negative power is undefined", "2201F")
    if exponent.is_infinite():
        if base == -1:
            return ONE
        return INFINITY if (base.copy_abs() > 1) == (exponent > 0) else ZERO
    whole = exponent == exponent.to_integral_value()
    if base < 0 and not whole:
        raise bad_argument("a negative number raised to a non-integer power is complex", "2201F")
    if exponent < 0:
        return ZERO
    return MINUS_INFINITY if base < 0 and _is_odd(exponent) else INFINITY


def _power_integer(base: Decimal, exponent: int, exponent_scale: int) -> Decimal:
    weight = 0.0
    if base:
        digits, ten = _leading_digits(base, 4)
        weight = exponent * (math.log10(digits) + ten)
    if weight > DIGITS_BEFORE_MAX:
        raise out_of_range("numeric")
    if weight + 1 < -DISPLAY_SCALE_MAX:
        return round_to_scale(ZERO, DISPLAY_SCALE_MAX)
    scale = max(SIGNIFICANT_MIN - int(weight), scale_of(base), exponent_scale, 0)
    scale = min(scale, DISPLAY_SCALE_MAX)
    if exponent == -1:
        return divide_to_scale(ONE, base, scale)
    if exponent == 0 or not base:
        return round_to_scale(ONE if exponent == 0 else ZERO, scale)
    return require_numeric(
        round_to_scale(_decimal_context(abs(int(weight)) + scale + 4).power(base, exponent), scale)
    )


def _power_real(base: Decimal, exponent: Decimal, negative: bool) -> Decimal:
    # PostgreSQL estimates from a logarithm of about eight digits, and so must the scale here.
    digits = max(8 - _ln_weight(base), 0)
    logarithm = round_to_scale(_ln(base, 2 * SIGNIFICANT_MIN), digits)
    estimate = float(round_to_scale(EXACT.multiply(logarithm, exponent), digits))
    if abs(estimate) > _RESULT_SCALE_MAX * 3.01:
        if estimate > 0:
            raise out_of_range("numeric")
        return round_to_scale(ZERO, DISPLAY_SCALE_MAX)
    weight = int(estimate * _LOG10_E)
    scale = _display_scale(weight, base, exponent)
    digits = abs(weight) + scale + 8
    if _has_few_digits(digits, base, exponent):
        found = _decimal_context(digits).power(base, exponent)
    else:
        found = _exp(_decimal_context(digits).multiply(_ln(base, digits), exponent), digits)
    result = round_to_scale(found, scale)
    return result.copy_negate() if negative and result else result


def _is_odd(value: Decimal) -> bool:
    return bool(EXACT.remainder(value, _TWO))


def width_bucket(value: Any, low: Any, high: Any, count: int) -> int:
    """The number of the bucket of equal width that the value is in; 0 below, count + 1 above."""
    if count <= 0:
        raise bad_argument("count must be greater than zero", "2201G")
    for bound in (low, high):
        if not (math.isfinite(bound) if isinstance(bound, float) else bound.is_finite()):
            raise bad_argument("lower and upper bounds must be finite", "2201G")
    if math.isnan(value) or math.isnan(low) or math.isnan(high):
        raise bad_argument("operand, lower bound, and upper bound cannot be nan", "2201G")
    if low == high:
        raise bad_argument("lower bound cannot equal upper bound", "2201G")
    if (value > low) if low > high else (value < low):
        return 0
    if (value > high) if low > high else (value < high):
        if isinstance(value, float):
            return min(int(count * ((value - low) / (high - low))), count - 1) + 1
        share = (Fraction(value) - Fraction(low)) / (Fraction(high) - Fraction(low))
        return int(share * count) + 1
    if count >= 2**31 - 1:
        raise out_of_range("integer")
    return count + 1


FUNCTIONS: tuple[Function, ...] = (
    scalar("width_bucket(numeric,numeric,numeric,int4) int4", width_bucket, UDF),
    scalar("width_bucket(float8,float8,float8,int4) int4", width_bucket, UDF),
    scalar("sqrt(numeric) numeric", sqrt),
    scalar("exp(numeric) numeric", exp),
    scalar("ln(numeric) numeric", ln),
    scalar("log(numeric) numeric", log10),
    scalar("log10(numeric) numeric", log10),
    scalar("log(numeric,numeric) numeric", log),
    scalar("power(numeric,numeric) numeric", power),
    scalar("pow(numeric,numeric) numeric", power),
    scalar("^(numeric,numeric) numeric", power),
)
