"""NUMERIC values: parsing, formatting, rounding, and the scale rules of division.

A NUMERIC is a Decimal whose exponent is never positive (its display scale is -exponent), that is
never negative zero, and that may be NaN or infinite. Every function here preserves that.
"""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, Overflow

from belvedere.errors import InvalidInput
from belvedere.types import SqlType, numeric_type
from belvedere.values.failures import bad_text, division_by_zero, out_of_range, show_number
from belvedere.values.numbers import SPACE, parse_digits

DIGITS_BEFORE_MAX = 131_072
SCALE_MAX = 16_383
DISPLAY_SCALE_MAX = 1_000
SIGNIFICANT_MIN = 16
GROUP = 4  # PostgreSQL stores base-10000 digits; its scale rules count in them.

# Wide enough for every exact sum and product; overflow is an error, never an infinity.
EXACT = Context(
    prec=2 * (DIGITS_BEFORE_MAX + SCALE_MAX),
    rounding=ROUND_HALF_UP,
    Emax=DIGITS_BEFORE_MAX - 1,
    Emin=-999_999_999,
    traps=[Overflow],
)
# As wide, for what is not a NUMERIC yet.
WIDE = EXACT.copy()
WIDE.Emax = 999_999_999
_TRUNCATING = Context(prec=100, rounding=ROUND_DOWN, Emax=999_999_999, Emin=-999_999_999, traps=[])

_BITS_AT_ONCE, _DIGITS_AT_ONCE = 20_000, 3_000
_TEXT_MAX = 1_000_000
_BITS_MAX = (10**DIGITS_BEFORE_MAX).bit_length()

NAN = Decimal("NaN")
INFINITY = Decimal("Infinity")
MINUS_INFINITY = Decimal("-Infinity")
ZERO = Decimal(0)
ONE = Decimal(1)

_UNITS = [Decimal((0, (1,), -scale)) for scale in range(64)]
_NUMERIC = re.compile(
    r"([-+]?)(?:([0-9](?:_?[0-9])*)(?:\.((?:[0-9](?:_?[0-9])*)?))?|\.([0-9](?:_?[0-9])*))"
    r"(?:[eE]([-+]?[0-9](?:_?[0-9])*))?"
)
_PLAIN = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_SPECIAL = {
    "nan": NAN,
    "inf": INFINITY,
    "+inf": INFINITY,
    "infinity": INFINITY,
    "+infinity": INFINITY,
    "-inf": MINUS_INFINITY,
    "-infinity": MINUS_INFINITY,
}
_quantize = EXACT.quantize
_add, _subtract, _multiply = EXACT.add, EXACT.subtract, EXACT.multiply
_divide = _TRUNCATING.divide


def scale_unit(scale: int) -> Decimal:
    """10 ** -scale, the exponent argument of `quantize`."""
    return _UNITS[scale] if 0 <= scale < 64 else Decimal((0, (1,), -scale))


def scale_of(value: Decimal) -> int:
    """The display scale: digits shown after the point. Finite values only."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent


def round_to_scale(value: Decimal, scale: int) -> Decimal:
    """Finite `value` with exactly `scale` digits after the point, half away from zero."""
    result = _quantize(value, scale_unit(scale))
    return result if result else result.copy_abs()


def truncate_to_scale(value: Decimal, scale: int) -> Decimal:
    result = value.quantize(scale_unit(scale), ROUND_DOWN, EXACT)
    return result if result else result.copy_abs()


def require_numeric(value: Decimal) -> Decimal:
    """`value` as a NUMERIC: no negative zero, not too large."""
    if not value:
        return value.copy_abs()
    if value.is_finite() and value.adjusted() >= DIGITS_BEFORE_MAX:
        raise out_of_range("numeric")
    return value


def numeric_from_decimal(value: Decimal) -> Decimal:
    """Any Decimal as a NUMERIC; 22003 when it has too many digits."""
    exponent = value.as_tuple().exponent
    if isinstance(exponent, str):
        return NAN if value.is_nan() else value
    if -exponent > SCALE_MAX or (value and value.adjusted() >= DIGITS_BEFORE_MAX):
        raise out_of_range("numeric")
    if exponent > 0:
        return round_to_scale(value, 0) if value else ZERO
    return value if value else value.copy_abs()


def numeric_from_integer(value: int) -> Decimal:
    if value.bit_length() > _BITS_MAX:
        raise out_of_range("numeric")
    return require_numeric(_convert_integer(value))


def _convert_integer(value: int) -> Decimal:
    """Decimal(value), by halves: its time grows with the square of the digits."""
    if value.bit_length() < _BITS_AT_ONCE:
        return Decimal(value)
    digits = int(value.bit_length() * 0.30103) // 2
    high, low = divmod(abs(value), 10**digits)
    found = EXACT.add(_convert_integer(high).scaleb(digits, EXACT), _convert_integer(low))
    return found if value > 0 else found.copy_negate()


def integer_from_numeric(value: Decimal) -> int:
    """int(value) of a whole number, by halves."""
    digits = (value.adjusted() + 1) // 2
    if digits < _DIGITS_AT_ONCE:
        return int(value)
    magnitude = value.copy_abs()
    high = WIDE.divide_int(magnitude, ONE.scaleb(digits, WIDE))
    low = WIDE.subtract(magnitude, high.scaleb(digits, WIDE))
    found: int = integer_from_numeric(high) * 10**digits + integer_from_numeric(low)
    return found if value > 0 else -found


def parse_numeric(text: str) -> Decimal:
    word = text.strip(SPACE)
    if len(word) < 1000 and _PLAIN.fullmatch(word):
        value = Decimal(word)
        return value if value else value.copy_abs()
    if len(word) > _TEXT_MAX:
        raise out_of_range("numeric")
    match = _NUMERIC.fullmatch(word)
    if match is None:
        special = _SPECIAL.get(word.lower())
        if special is not None:
            return special
        if word[:2].isdigit() or word.lstrip("+-")[:2].lower() in ("0x", "0o", "0b"):
            return numeric_from_integer(parse_digits(text, "numeric"))
        raise bad_text("numeric", text)
    sign, whole, fraction, only, power = match.groups()
    digits = ((whole or "") + (fraction or only or "")).replace("_", "")
    exponent = int((power or "0").replace("_", "")) - len((fraction or only or "").replace("_", ""))
    return _build_decimal(sign, digits, exponent)


def _build_decimal(sign: str, digits: str, exponent: int) -> Decimal:
    figures = digits.lstrip("0")
    if len(figures) + exponent > DIGITS_BEFORE_MAX and figures:
        raise out_of_range("numeric")
    if exponent > 0:
        figures, exponent = (figures + "0" * exponent if figures else ""), 0
    if -exponent > SCALE_MAX:
        raise out_of_range("numeric")
    value = Decimal(f"{figures or 0}E{exponent}")
    return value.copy_negate() if sign == "-" and value else value


def format_numeric(value: Decimal) -> str:
    if value.is_nan():
        return "NaN"
    return format(value, "f")


def fit(value: Decimal, precision: int, scale: int) -> Decimal:
    """`value` as NUMERIC(precision, scale): rounded half away from zero, 22003 when too large."""
    if not value.is_finite():
        if value.is_nan():
            return value
        raise InvalidInput(
            "numeric field overflow", sqlstate="22003", precision=precision, scale=scale
        )
    result = _quantize(value, scale_unit(scale))
    if not result:
        return round_to_scale(ZERO, max(scale, 0))
    if result.adjusted() >= precision - scale:
        raise InvalidInput(
            "numeric field overflow",
            sqlstate="22003",
            precision=precision,
            scale=scale,
            value=show_number(value),
        )
    return result if scale >= 0 else round_to_scale(result, 0)


def group_weight(value: Decimal) -> tuple[int, int]:
    """Weight of the first base-10000 digit and that digit, as PostgreSQL stores the value."""
    weight, first, _ = _digit_measures(value)
    return weight, first


def _digit_measures(value: Decimal) -> tuple[int, int, int]:
    """Weight of the first base-10000 digit, that digit, and the display scale."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if not value:
        return 0, 0, -exponent
    adjusted = exponent + len(digits) - 1
    first = 0
    for digit in digits[: adjusted % GROUP + 1]:
        first = first * 10 + digit
    missing = adjusted % GROUP + 1 - len(digits)
    return adjusted // GROUP, first * 10**missing if missing > 0 else first, -exponent


def division_scale(dividend: Decimal, divisor: Decimal) -> int:
    """The number of digits after the point of a quotient: at least 16 significant ones."""
    weight, first, scale = _digit_measures(dividend)
    divisor_weight, divisor_first, divisor_scale = _digit_measures(divisor)
    weight -= divisor_weight
    if first <= divisor_first:
        weight -= 1
    scale = max(SIGNIFICANT_MIN - weight * GROUP, scale, divisor_scale, 0)
    return min(scale, DISPLAY_SCALE_MAX)


def divide_to_scale(dividend: Decimal, divisor: Decimal, scale: int) -> Decimal:
    """The quotient rounded half away from zero to `scale` digits. Finite, divisor not zero."""
    # One digit more than needed, the rest cut off, is enough for rounding half away from zero.
    digits = dividend.adjusted() - divisor.adjusted() + scale + 3
    if digits <= 100:
        return round_to_scale(_divide(dividend, divisor), scale)
    wide = _TRUNCATING.copy()
    wide.prec = digits
    return round_to_scale(wide.divide(dividend, divisor), scale)


def divide(dividend: Decimal, divisor: Decimal) -> Decimal:
    """NUMERIC / NUMERIC."""
    if dividend.is_finite() and divisor.is_finite():
        if not divisor:
            raise division_by_zero()
        return require_numeric(
            divide_to_scale(dividend, divisor, division_scale(dividend, divisor))
        )
    if dividend.is_nan() or divisor.is_nan():
        return NAN
    if dividend.is_infinite():
        if divisor.is_infinite():
            return NAN
        if not divisor:
            raise division_by_zero()
        return INFINITY if (dividend > 0) == (divisor > 0) else MINUS_INFINITY
    return ZERO


def add(left: Decimal, right: Decimal) -> Decimal:
    try:
        result = _add(left, right)
    except Overflow:
        raise out_of_range("numeric") from None
    return result if result else result.copy_abs()


def subtract(left: Decimal, right: Decimal) -> Decimal:
    try:
        result = _subtract(left, right)
    except Overflow:
        raise out_of_range("numeric") from None
    return result if result else result.copy_abs()


def multiply(left: Decimal, right: Decimal) -> Decimal:
    try:
        result = _multiply(left, right)
    except Overflow:
        raise out_of_range("numeric") from None
    if not result:
        return result.copy_abs()
    # A small object that is not tiny in value cannot have that many digits after the point.
    if result.__sizeof__() < 2000 and result.adjusted() > -8000:
        return result
    if result.is_finite() and scale_of(result) > SCALE_MAX:
        return round_to_scale(result, SCALE_MAX)
    return result


def fit_numeric(value: Decimal) -> SqlType:
    """The NUMERIC with just the digits that a finite value has."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    return numeric_type(max(max(len(digits) + exponent, 0) + scale, 1), scale)
