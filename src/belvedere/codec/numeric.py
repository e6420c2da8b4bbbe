"""NUMERIC as an order-preserving byte string: equal numbers are equal bytes, whatever their scale.

- class byte: 1 -Infinity, 2 negative, 3 zero, 4 positive, 5 Infinity, 6 NaN
- negative and positive numbers continue as follows; negative ones have every later byte inverted
- exponent of the first digit: one byte, exponent + 128, when it is within -100..100; otherwise 0x00
  (smaller) or 0xFF (larger) and eight big-endian bytes with flipped sign
- the significant digits without leading and trailing zeros, two to a byte, each as digit + 1; the
  first nibble 0 ends them

Example: 12.5 is 04 81 23 60, and so is 12.50.
"""

from __future__ import annotations

import re
from binascii import hexlify, unhexlify
from decimal import Decimal

from belvedere.codec.scalars import NUMERIC_DIGITS_MAX

NEGATIVE_INFINITY, NEGATIVE, ZERO, POSITIVE, INFINITY, NAN = range(1, 7)
INVERTED = bytes(range(255, -1, -1))

_EXPONENT_SHORT = 100
_EXPONENT_BIAS = 128
_SIGN = 1 << 63
_to_nibbles = bytes.maketrans(b"0123456789", b"123456789a")
_to_digits = bytes.maketrans(b"123456789a", b"0123456789")
# A byte whose low nibble is 0 holds the end.
_last_byte = re.compile(b"[\\x00\\x10\\x20\\x30\\x40\\x50\\x60\\x70\\x80\\x90\\xa0]")


def encode_numeric(value: Decimal) -> bytes:
    """Raises TypeError for anything but a Decimal."""
    if value.__class__ is not Decimal and not isinstance(value, Decimal):
        raise TypeError
    text = str(value).encode()
    if text[-1] > 57 or b"N" in text:
        return _encode_special(value)
    if not value:
        return b"\x03"
    digits = text.partition(b"E")[0].replace(b".", b"").strip(b"-0").translate(_to_nibbles)
    exponent = value.adjusted()
    if -_EXPONENT_SHORT <= exponent <= _EXPONENT_SHORT:
        head = b"%c" % (exponent + _EXPONENT_BIAS)
    else:
        head = (b"\x00", b"\xff")[exponent > 0] + (exponent + _SIGN).to_bytes(8, "big")
    tail = unhexlify(digits + (b"0" if len(digits) & 1 else b"00"))
    if text[0] == 45:
        return b"\x02" + (head + tail).translate(INVERTED)
    return b"\x04" + head + tail


def decode_numeric(key: bytes, position: int, scale: int | None) -> tuple[Decimal, int]:
    """The number that starts at `position` and where it ends. With a scale, in exactly that scale
    if its digits allow; without, as an integer or with the fewest fractional digits."""
    match key[position]:
        case 2:
            tail, end = _inverted_tail(key, position + 1)
            return _build_decimal("-", tail, scale), end
        case 3:
            return Decimal((0, (0,), -(scale or 0))), position + 1
        case 4:
            end = _end_of_digits(key, position + 1)
            return _build_decimal("", key[position + 1 : end], scale), end
        case 1:
            return Decimal("-Infinity"), position + 1
        case 5:
            return Decimal("Infinity"), position + 1
        case 6:
            return Decimal("NaN"), position + 1
    raise ValueError


def _encode_special(value: Decimal) -> bytes:
    if value.is_nan():
        return b"\x06"
    return b"\x05" if value > 0 else b"\x01"


def _end_of_digits(key: bytes, position: int) -> int:
    found = _last_byte.search(key, position + (9 if key[position] in (0, 255) else 1))
    if found is None:
        raise ValueError
    return found.end()


def _inverted_tail(key: bytes, position: int) -> tuple[bytes, int]:
    inverted = key[position:].translate(INVERTED)
    end = _end_of_digits(inverted, 0)
    return inverted[:end], position + end


def _build_decimal(sign: str, tail: bytes, scale: int | None) -> Decimal:
    if tail[0] in (0, 255):
        first, rest = int.from_bytes(tail[1:9], "big") - _SIGN, tail[9:]
    else:
        first, rest = tail[0] - _EXPONENT_BIAS, tail[1:]
    digits = hexlify(rest).rstrip(b"0").translate(_to_digits).decode()
    if not digits.isdecimal():
        raise ValueError
    exponent = first - len(digits) + 1
    wanted = -scale if scale is not None else 0
    if wanted < exponent <= NUMERIC_DIGITS_MAX:
        digits += "0" * (exponent - wanted)
        exponent = wanted
    return Decimal(f"{sign}{digits}E{exponent}")
