"""INTERVAL arithmetic: each field by itself, fractions cascading down as in PostgreSQL."""

from __future__ import annotations

import math

from belvedere.errors import Unsupported
from belvedere.types import DAYS_PER_MONTH, MICROSECONDS_PER_DAY, Interval
from belvedere.values.failures import datetime_out_of_range, division_by_zero
from belvedere.values.intervals import SECOND, make_interval
from belvedere.values.numbers import INT4_MAX, INT4_MIN

_SECONDS_PER_DAY = 86_400


def add(left: Interval, right: Interval) -> Interval:
    return make_interval(
        left.months + right.months,
        left.days + right.days,
        left.microseconds + right.microseconds,
    )


def subtract(left: Interval, right: Interval) -> Interval:
    return make_interval(
        left.months - right.months,
        left.days - right.days,
        left.microseconds - right.microseconds,
    )


def negate(value: Interval) -> Interval:
    return make_interval(-value.months, -value.days, -value.microseconds)


def multiply(value: Interval, factor: float) -> Interval:
    if factor != factor:
        raise datetime_out_of_range("interval")
    if math.isinf(factor):
        if value.span == 0:
            raise datetime_out_of_range("interval")
        raise Unsupported("infinite intervals are not supported")
    return _cascade_fractions(
        value, value.months * factor, value.days * factor, value.microseconds * factor
    )


def divide(value: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise division_by_zero()
    if divisor != divisor:
        raise datetime_out_of_range("interval")
    return _cascade_fractions(
        value, value.months / divisor, value.days / divisor, value.microseconds / divisor
    )


def _cascade_fractions(
    value: Interval, months: float, days: float, microseconds: float
) -> Interval:
    """Whole months and days, the rest of each spilled into days and microseconds."""
    if not (INT4_MIN <= months <= INT4_MAX and INT4_MIN <= days <= INT4_MAX):
        raise datetime_out_of_range("interval")
    whole_months, whole_days = int(months), int(days)
    month_days = _to_microsecond((months - whole_months) * DAYS_PER_MONTH)
    seconds = _to_microsecond((days - whole_days + month_days - int(month_days)) * _SECONDS_PER_DAY)
    if abs(seconds) >= _SECONDS_PER_DAY:
        extra = int(seconds / _SECONDS_PER_DAY)
        whole_days += extra
        seconds -= extra * _SECONDS_PER_DAY
    whole_days += int(month_days)
    rest = microseconds + seconds * SECOND
    if abs(rest) >= 2.0**63:
        raise datetime_out_of_range("interval")
    return make_interval(whole_months, whole_days, round(rest))


def _to_microsecond(value: float) -> float:
    return round(value * 1_000_000.0) / 1_000_000.0


def _divide_toward_zero(amount: int, size: int) -> tuple[int, int]:
    whole = abs(amount) // size
    whole = -whole if amount < 0 else whole
    return whole, amount - whole * size


def justify_hours(value: Interval) -> Interval:
    """Whole days out of the time, both of one sign."""
    whole, rest = _divide_toward_zero(value.microseconds, MICROSECONDS_PER_DAY)
    days = value.days + whole
    if days > 0 > rest:
        days, rest = days - 1, rest + MICROSECONDS_PER_DAY
    elif days < 0 < rest:
        days, rest = days + 1, rest - MICROSECONDS_PER_DAY
    return make_interval(value.months, days, rest)


def justify_days(value: Interval) -> Interval:
    """Whole 30-day months out of the days, both of one sign."""
    whole, days = _divide_toward_zero(value.days, DAYS_PER_MONTH)
    months = value.months + whole
    if months > 0 > days:
        months, days = months - 1, days + DAYS_PER_MONTH
    elif months < 0 < days:
        months, days = months + 1, days - DAYS_PER_MONTH
    return make_interval(months, days, value.microseconds)


def justify_interval(value: Interval) -> Interval:
    months, days, rest = value
    # Bring days toward the time's sign first, so that no field overflows on the way.
    if (days > 0 and rest > 0) or (days < 0 and rest < 0):
        whole, days = _divide_toward_zero(days, DAYS_PER_MONTH)
        months += whole
    whole, rest = _divide_toward_zero(rest, MICROSECONDS_PER_DAY)
    days += whole
    whole, days = _divide_toward_zero(days, DAYS_PER_MONTH)
    months += whole
    if months > 0 and (days < 0 or (days == 0 and rest < 0)):
        months, days = months - 1, days + DAYS_PER_MONTH
    elif months < 0 and (days > 0 or (days == 0 and rest > 0)):
        months, days = months + 1, days - DAYS_PER_MONTH
    if days > 0 > rest:
        days, rest = days - 1, rest + MICROSECONDS_PER_DAY
    elif days < 0 < rest:
        days, rest = days + 1, rest - MICROSECONDS_PER_DAY
    return make_interval(months, days, rest)
