"""Booleans, integers and binary floats: parsing, formatting, ranges, rounding to 32 bits."""

from __future__ import annotations

import math
import re
import struct
import sys
from collections.abc import Callable
from decimal import Decimal

from belvedere.values.failures import bad_text, out_of_range

INT2_MAX = (1 << 15) - 1
INT4_MIN, INT4_MAX = -(1 << 31), (1 << 31) - 1
INT8_MIN, INT8_MAX = -(1 << 63), (1 << 63) - 1

SPACE = " \t\n\v\f\r"

_TRUE = {"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"}
_FALSE = {"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"}

_INTEGER = re.compile(
    r"([-+]?)(?:0[xX](?P<hex>(?:_?[0-9a-fA-F])+)|0[oO](?P<oct>(?:_?[0-7])+)"
    r"|0[bB](?P<bin>(?:_?[01])+)|(?P<dec>[0-9](?:_?[0-9])*))",
)
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_HEX_FLOAT = re.compile(
    r"[-+]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][-+]?[0-9]+)?"
)
_SPECIAL = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
}
# More significant digits than any integer type holds, in any base.
_DIGITS_MAX = 64
_BASES = {"hex": 16, "oct": 8, "bin": 2, "dec": 10}

_PACK = struct.Struct("f")
_pack, _unpack = _PACK.pack, _PACK.unpack


def parse_boolean(text: str) -> bool:
    word = text.strip(SPACE).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise bad_text("boolean", text)


def format_boolean(value: bool) -> str:
    return "true" if value else "false"


def parse_digits(text: str, kind: str, high: int | None = None) -> int:
    """An integer in PostgreSQL's notations (0x, 0o, 0b, underscores), at most `high` in size.

    Digits that are too many are 22003 even when something else follows them.
    """
    word = text.strip(SPACE)
    match = _INTEGER.match(word)
    if match is None:
        raise bad_text(kind, text)
    group = match.lastgroup
    assert group is not None
    digits = match[group].replace("_", "").lstrip("0") or "0"
    if high is not None and len(digits) > _DIGITS_MAX:
        raise out_of_range(kind)
    value = int(digits, _BASES[group])
    if match[1] == "-":
        value = -value
    if high is not None and not -high - 1 <= value <= high:
        raise out_of_range(kind)
    if match.end() != len(word):
        raise bad_text(kind, text)
    return value


def parse_int2(text: str) -> int:
    return parse_digits(text, "smallint", INT2_MAX)


def parse_int4(text: str) -> int:
    return parse_digits(text, "integer", INT4_MAX)


def parse_int8(text: str) -> int:
    return parse_digits(text, "bigint", INT8_MAX)


def parse_oid(text: str) -> int:
    found = parse_digits(text, "oid", INT8_MAX)
    if not -(2**31) <= found < 2**32:
        raise out_of_range("oid")
    return found % 2**32


def parse_float8(text: str) -> float:
    return _parse_float(text, "double precision")


def parse_float4(text: str) -> float:
    value = _parse_float(text, "real")
    if math.isinf(value) or math.isnan(value) or value == 0:
        return value
    word = text.strip(SPACE)
    return checked_float4(_nudge_toward(word, value) if _FLOAT.fullmatch(word) else value)


def _nudge_toward(word: str, value: float) -> float:
    """`value`, or its neighbour on the side where the decimal `word` lies exactly.

    Rounding text to 64 and then to 32 bits is wrong at a midpoint without this correction.
    """
    exact, held = Decimal(word), Decimal(value)
    return (
        value if exact == held else math.nextafter(value, math.inf if exact > held else -math.inf)
    )


def _parse_float(text: str, kind: str) -> float:
    word = text.strip(SPACE)
    if _FLOAT.fullmatch(word):
        value = float(word)
        mantissa = re.split("[eE]", word)[0]
        if math.isinf(value) or (value == 0 and re.search("[1-9]", mantissa)):
            raise out_of_range(kind)
        return value
    special = _SPECIAL.get(word.lower())
    if special is not None:
        return special
    if _HEX_FLOAT.fullmatch(word):
        try:
            return float.fromhex(word)
        except OverflowError:
            raise out_of_range(kind) from None
    raise bad_text(kind, text)


def float4(value: float) -> float:
    """The nearest 32-bit float; infinite when there is none."""
    try:
        return float(_unpack(_pack(value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def checked_float4(value: float) -> float:
    """As `float4`, but a finite value must stay finite and a non-zero one non-zero."""
    rounded = float4(value)
    if (math.isinf(rounded) and not math.isinf(value)) or (rounded == 0 and value != 0):
        raise out_of_range("real", f"{value:.6g}")
    return rounded


def format_float8(value: float) -> str:
    if math.isfinite(value):
        text = repr(value)
        if 1e-4 <= value < 1e15 or -1e15 < value <= -1e-4:
            return text.removesuffix(".0")
        if abs(value) >= _EXACT_FLOAT8 and _is_midpoint(text, value, math.nextafter):
            text = format(value, ".16e")
        return _lay_out_digits(text, 15)
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def format_float4(value: float) -> str:
    if not math.isfinite(value):
        return format_float8(value)
    text = repr(value)
    for digits in range(1, 10):
        text = format(value, f".{digits}g")
        if float4(_nudge_toward(text, float(text))) != value:
            continue
        if abs(value) < _EXACT_FLOAT4 or not _is_midpoint(text, value, _next_float4):
            break
    return _lay_out_digits(text, 6)


# Up to here every whole number is a float of its own, and no midpoint is a whole number.
_EXACT_FLOAT8, _EXACT_FLOAT4 = 2.0**53, 2.0**24


def _is_midpoint(text: str, value: float, following: Callable[[float, float], float]) -> bool:
    """True when `text` lies exactly between `value` and its neighbour.

    It still reads back as `value`, by rounding to even, but PostgreSQL does not rely on that.
    """
    shown, held = Decimal(text), Decimal(value)
    if shown == held:
        return False
    neighbour = following(value, math.inf if shown > held else -math.inf)
    return math.isfinite(neighbour) and 2 * abs(int(shown) - int(held)) == abs(
        int(neighbour) - int(held)
    )


def _next_float4(value: float, toward: float) -> float:
    bits = int.from_bytes(_pack(value), sys.byteorder)
    bits += 1 if (toward > value) == (value > 0) else -1
    return float(_unpack(bits.to_bytes(4, sys.byteorder))[0])


def _lay_out_digits(text: str, digits_max: int) -> str:
    """Lays out shortest digits as PostgreSQL does: plain from 1e-4 up to 10**digits_max."""
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + exponent
    minus = "-" if sign else ""
    if figures == "0":
        return minus + "0"
    if not -4 < point <= digits_max:
        power = point - 1
        fraction = "." + figures[1:] if len(figures) > 1 else ""
        return f"{minus}{figures[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{figures}"
    if len(figures) <= point:
        return minus + figures + "0" * (point - len(figures))
    return f"{minus}{figures[:point]}.{figures[point:]}"
