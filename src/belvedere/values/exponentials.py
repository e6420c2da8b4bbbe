"""Exponentials and logarithms of numerics to thousands of digits, in milliseconds.

Those of the `decimal` module take time with the cube of the digits, and hold the interpreter lock:
seconds for a power of a few thousand digits. Here a number is an integer over a power of two:

    exp(x)  n = x / ln 2; the rest is halved until it is tiny, its series summed, the sum squared
            as often; about two times the square root of the bits multiplications
    ln(x)   steps of Halley from three hundred digits on, each an exponential of thrice the digits;
            next to 1 the series of the inverse hyperbolic tangent

Results are relative to their size: as many leading digits are right as were asked for.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal

from belvedere.values.decimals import EXACT, ONE, integer_from_numeric, numeric_from_integer

_GUARD_DIGITS = 12
_GUARD_BITS = 64
_FIRST_DIGITS = 300
"""Digits of the first logarithm, which the `decimal` module gives."""
_NEAR_ONE = 20
"""Where the series needs no more terms than this, it is the shorter way."""
_BITS_OF_DIGIT = math.log2(10)
_LN_2 = ((18, 26), (-2, 4801), (8, 8749))
_LN_10 = ((46, 31), (34, 49), (20, 161))
"""As sums of multiples of atanh(1 / n)."""


def exp_to_digits(value: Decimal, digits: int) -> Decimal:
    """e to the power of a value between -10,000 and 10,000, its first `digits` digits right."""
    places = digits + _GUARD_DIGITS
    bits = int(places * _BITS_OF_DIGIT) + _GUARD_BITS
    power, mantissa = _exp_fixed(_to_fixed(value, bits), bits)
    wide = _context(places)
    return wide.multiply(_to_decimal(mantissa, bits, places), wide.power(Decimal(2), power))


def ln_to_digits(value: Decimal, digits: int) -> Decimal:
    """The natural logarithm of a positive value, its first `digits` digits right."""
    wide = _context(digits + _GUARD_DIGITS)
    power = value.adjusted()
    if power in (-1, 0):
        rest = EXACT.subtract(value, ONE)
        if not rest:
            return rest
        zeros = max(-rest.adjusted(), 0)
        if zeros * 2 * _NEAR_ONE > digits:
            return _sum_atanh_series(wide.divide(rest, EXACT.add(value, ONE)), wide)
        return _ln_near_one(value, digits + zeros)
    mantissa = _ln_near_one(value.scaleb(-power, EXACT), digits)
    bits = int((digits + _GUARD_DIGITS) * _BITS_OF_DIGIT) + _GUARD_BITS
    ln_10 = _to_decimal(_sum_atanh(_LN_10, bits), bits, digits + _GUARD_DIGITS)
    return wide.add(wide.multiply(ln_10, Decimal(power)), mantissa)


def _context(digits: int) -> Context:
    return Context(prec=digits, Emax=999_999_999, Emin=-999_999_999, traps=[])


def _sum_atanh_series(tangent: Decimal, wide: Context) -> Decimal:
    """2 atanh(tangent) of a tiny tangent."""
    square, term, total, divisor = wide.multiply(tangent, tangent), tangent, tangent, 1
    while True:
        term, divisor = wide.multiply(term, square), divisor + 2
        next_total = wide.add(total, wide.divide(term, Decimal(divisor)))
        if next_total == total:
            return wide.multiply(total, Decimal(2))
        total = next_total


def _ln_near_one(value: Decimal, places: int) -> Decimal:
    """The logarithm of a value between 0.1 and 10, right to so many places after the point."""
    places += _GUARD_DIGITS
    known = min(places, _FIRST_DIGITS)
    found = _context(known).ln(_context(known).plus(value))
    while known < places:
        known = min(3 * known - _GUARD_DIGITS, places)
        found = _improve_logarithm(found, value, known)
    return found


def _improve_logarithm(found: Decimal, value: Decimal, places: int) -> Decimal:
    """One step of Halley: y + 2 (x - exp y) / (x + exp y), with thrice the digits of y."""
    bits = int((places + _GUARD_DIGITS) * _BITS_OF_DIGIT) + _GUARD_BITS
    logarithm, target = _to_fixed(found, bits), _to_fixed(value, bits)
    power, mantissa = _exp_fixed(logarithm, bits)
    reached = mantissa << power if power >= 0 else mantissa >> -power
    logarithm += ((target - reached) << (bits + 1)) // (target + reached)
    return _to_decimal(logarithm, bits, places)


def _exp_fixed(value: int, bits: int) -> tuple[int, int]:
    """(n, m): the exponential of value / 2**bits is 2**n * m / 2**bits."""
    halvings = math.isqrt(bits)
    wide = bits + halvings + _GUARD_BITS
    ln_2 = _sum_atanh(_LN_2, wide + 16)
    power, rest = divmod(value << (wide + 16 - bits), ln_2)
    rest >>= 16 + halvings
    total = term = 1 << wide
    number = 1
    while term:
        term = (term * rest >> wide) // number
        total += term
        number += 1
    for _ in range(halvings):
        total = total * total >> wide
    return power, total >> (wide - bits)


def _sum_atanh(parts: tuple[tuple[int, int], ...], bits: int) -> int:
    """A sum of multiples of atanh(1 / n), over 2**bits."""
    total, wide = 0, bits + _GUARD_BITS
    for factor, number in parts:
        square, divisor = number * number, 1
        power = found = (factor << wide) // number
        while power not in (0, -1):
            power, divisor = power // square, divisor + 2
            found += power // divisor
        total += found
    return total >> _GUARD_BITS


def _to_fixed(value: Decimal, bits: int) -> int:
    """Value * 2**bits, of as many digits as the bits have room for."""
    places = int(bits / _BITS_OF_DIGIT) + 1
    ten_to_places: int = 10**places
    whole = integer_from_numeric(value.scaleb(places, EXACT).to_integral_value(context=EXACT))
    return (whole << bits) // ten_to_places


def _to_decimal(value: int, bits: int, places: int) -> Decimal:
    return numeric_from_integer(value * 10**places >> bits).scaleb(-places, EXACT)
