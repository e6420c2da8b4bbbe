"""REAL and DOUBLE PRECISION: arithmetic, roots, logarithms, trigonometry.

A finite computation that becomes infinite, or a non-zero one that becomes zero, is 22003.
REAL is computed in 64 bits and rounded once, which gives the 32-bit result for + - * / and sqrt.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from belvedere.plan.functions.core.function import UDF, Function, scalar
from belvedere.plan.functions.core.sql_form import error_sql
from belvedere.values.failures import bad_argument, division_by_zero, out_of_range
from belvedere.values.numbers import float4

_isinf = math.isinf


def add(left: float, right: float) -> float:
    result = left + right
    if _isinf(result) and not (_isinf(left) or _isinf(right)):
        raise out_of_range("double precision")
    return result


def subtract(left: float, right: float) -> float:
    result = left - right
    if _isinf(result) and not (_isinf(left) or _isinf(right)):
        raise out_of_range("double precision")
    return result


def multiply(left: float, right: float) -> float:
    result = left * right
    if _isinf(result):
        if not (_isinf(left) or _isinf(right)):
            raise out_of_range("double precision")
    elif result == 0 and left != 0 and right != 0:
        raise out_of_range("double precision")
    return result


def divide(left: float, right: float) -> float:
    if right == 0:
        # Not a number divided by zero is not a number.
        if left != left:
            return left
        raise division_by_zero()
    result = left / right
    if _isinf(result):
        if not _isinf(left):
            raise out_of_range("double precision")
    elif result == 0 and left != 0 and not _isinf(right):
        raise out_of_range("double precision")
    return result


def _round_to_real(
    form: Callable[[float, float], float], by_product: bool
) -> Callable[[float, float], float]:
    def narrow(left: float, right: float) -> float:
        wide = form(left, right)
        result = float4(wide)
        if (_isinf(result) and not _isinf(wide)) or (by_product and result == 0 and wide != 0):
            raise out_of_range("real")
        return result

    return narrow


def negate(value: float) -> float:
    return -value


def identity(value: float) -> float:
    return value


def sqrt(value: float) -> float:
    if value < 0:
        raise bad_argument("cannot take square root of a negative number", "2201F")
    return math.sqrt(value)


def cbrt(value: float) -> float:
    return math.cbrt(value)


def power(base: float, exponent: float) -> float:
    if base == 1 or exponent == 0:
        return 1.0
    if base != base or exponent != exponent:
        return math.nan
    if base == 0 and exponent < 0:
        raise bad_argument("zero raised to a negative power is undefined", "2201F")
    if base < 0 and math.isfinite(exponent) and math.floor(exponent) != exponent:
        raise bad_argument("a negative number raised to a non-integer power is complex", "2201F")
    try:
        result = math.pow(base, exponent)
    except OverflowError:
        raise out_of_range("double precision") from None
    if result == 0 and base != 0 and not _isinf(base) and not _isinf(exponent):
        raise out_of_range("double precision")
    return result


def exp(value: float) -> float:
    try:
        result = math.exp(value)
    except OverflowError:
        raise out_of_range("double precision") from None
    if result == 0 and not _isinf(value):
        raise out_of_range("double precision")
    return result


def _logarithm_form(form: Callable[[float], float]) -> Callable[[float], float]:
    def logarithm(value: float) -> float:
        if value == 0:
            raise bad_argument("cannot take logarithm of zero", "2201E")
        if value < 0:
            raise bad_argument("cannot take logarithm of a negative number", "2201E")
        return form(value)

    return logarithm


def rint(value: float) -> float:
    """Nearest whole number, ties to even; infinities and NaN as they are, the sign of zero kept."""
    return math.copysign(float(round(value)), value) if math.isfinite(value) else value


def trunc(value: float) -> float:
    return math.copysign(float(math.trunc(value)), value) if math.isfinite(value) else value


def ceil(value: float) -> float:
    return math.copysign(float(math.ceil(value)), value) if math.isfinite(value) else value


def floor(value: float) -> float:
    return math.copysign(float(math.floor(value)), value) if math.isfinite(value) else value


def sign(value: float) -> float:
    return 1.0 if value > 0 else -1.0 if value < 0 else 0.0


def _trigonometric_form(form: Callable[[float], float]) -> Callable[[float], float]:
    """A function of the C library whose domain error is 22003."""

    def trigonometric(value: float) -> float:
        try:
            return form(value)
        except (ValueError, OverflowError):
            raise out_of_range("double precision") from None

    return trigonometric


def sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def cosh(value: float) -> float:
    try:
        return math.cosh(value)
    except OverflowError:
        return math.inf


def degrees(value: float) -> float:
    return divide(value, math.pi / 180.0)


def radians(value: float) -> float:
    return multiply(value, math.pi / 180.0)


_OVERFLOW = error_sql("22003", "value out of range")
_SUM = (
    "CASE WHEN isinf(_0 {0} _1) AND NOT isinf(_0) AND NOT isinf(_1) "
    f"THEN {_OVERFLOW} ELSE _0 {{0}} _1 END"
)
_PRODUCT = (
    "CASE WHEN (isinf(_0 * _1) AND NOT isinf(_0) AND NOT isinf(_1)) "
    f"OR (_0 * _1 = 0 AND _0 <> 0 AND _1 <> 0) THEN {_OVERFLOW} ELSE _0 * _1 END"
)
# NaN divided by zero is NaN; anything else by zero is DuckDB's own error.
_QUOTIENT = (
    "CASE WHEN isnan(_0) AND _1 = 0 THEN _0 WHEN (isinf(_0 / _1) AND NOT isinf(_0)) "
    f"OR (_0 / _1 = 0 AND _0 <> 0 AND NOT isinf(_1)) THEN {_OVERFLOW} ELSE _0 / _1 END"
)


def _arithmetic_functions() -> list[Function]:
    functions = []
    forms = (
        ("+", add, False, _SUM.format("+")),
        ("-", subtract, False, _SUM.format("-")),
        ("*", multiply, True, _PRODUCT),
        ("/", divide, True, _QUOTIENT),
    )
    for name, form, by_product, sql in forms:
        functions.append(
            scalar(f"{name}(float4,float4) float4", _round_to_real(form, by_product), sql)
        )
        for left, right in (("float4", "float8"), ("float8", "float4"), ("float8", "float8")):
            functions.append(scalar(f"{name}({left},{right}) float8", form, sql))
    for width in ("float4", "float8"):
        functions.append(scalar(f"-({width}) {width}", negate, "-_0"))
        functions.append(scalar(f"+({width}) {width}", identity, "_0"))
        functions.append(scalar(f"@({width}) {width}", abs, "abs(_0)"))
        functions.append(scalar(f"abs({width}) {width}", abs, "abs(_0)"))
    return functions


def _float_functions(
    names: str, form: Callable[..., float], sql: object = UDF, count: int = 1
) -> list[Function]:
    types = ",".join(["float8"] * count)
    return [scalar(f"{name}({types}) float8", form, sql) for name in names.split()]  # type: ignore[arg-type]


FUNCTIONS: tuple[Function, ...] = (
    *_arithmetic_functions(),
    *_float_functions("sqrt dsqrt |/", sqrt),
    *_float_functions("cbrt ||/", cbrt),
    *_float_functions("power pow ^", power, UDF, 2),
    *_float_functions("exp", exp),
    *_float_functions("ln", _logarithm_form(math.log)),
    *_float_functions("log log10", _logarithm_form(math.log10)),
    *_float_functions("round", rint),
    *_float_functions("trunc", trunc, "trunc(_0)"),
    *_float_functions("ceil ceiling", ceil, "ceil(_0)"),
    *_float_functions("floor", floor, "floor(_0)"),
    *_float_functions("sign", sign),
    *_float_functions("degrees", degrees),
    *_float_functions("radians", radians),
    *_float_functions("sin", _trigonometric_form(math.sin)),
    *_float_functions("cos", _trigonometric_form(math.cos)),
    *_float_functions("tan", _trigonometric_form(math.tan)),
    *_float_functions("asin", _trigonometric_form(math.asin)),
    *_float_functions("acos", _trigonometric_form(math.acos)),
    *_float_functions("atan", math.atan),
    *_float_functions("atan2", math.atan2, UDF, 2),
    *_float_functions("sinh", sinh),
    *_float_functions("cosh", cosh),
    *_float_functions("tanh", math.tanh),
    scalar("pi() float8", lambda: math.pi, "pi()"),
)
