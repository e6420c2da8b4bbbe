"""The Python forms of casts between two types, neither of them text."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal

from belvedere.errors import InvalidInput
from belvedere.types import MICROSECONDS_PER_DAY, Interval
from belvedere.values.datetime_text import time_from_microseconds
from belvedere.values.datetimes import session_instant, session_local
from belvedere.values.decimals import parse_numeric, round_to_scale
from belvedere.values.failures import out_of_range
from belvedere.values.intervals import HOUR, MINUTE, SECOND
from belvedere.values.numbers import checked_float4, float4


def narrow_integer(kind: str, high: int) -> Callable[[int], int]:
    def narrow(value: int) -> int:
        if -high - 1 <= value <= high:
            return value
        raise out_of_range(kind, value)

    return narrow


def integer_to_oid(value: int) -> int:
    """An OID has 32 bits; a negative integer is the one of the same bits."""
    return value % 2**32


def bigint_to_oid(value: int) -> int:
    if not 0 <= value < 2**32:
        raise out_of_range("oid")
    return value


def oid_to_int4(value: int) -> int:
    return int(value) - 2**32 if value >= 2**31 else int(value)


def float_to_integer(kind: str, high: int) -> Callable[[float], int]:
    """Rounds half to even, as the processor does."""

    def convert(value: float) -> int:
        if not math.isfinite(value):
            raise out_of_range(kind, value)
        result = round(value)
        if -high - 1 <= result <= high:
            return result
        raise out_of_range(kind, value)

    return convert


def numeric_to_integer(kind: str, high: int) -> Callable[[Decimal], int]:
    """Rounds half away from zero."""

    def convert(value: Decimal) -> int:
        if not value.is_finite():
            raise InvalidInput(
                "cannot convert this numeric to an integer", sqlstate="0A000", type=kind
            )
        result = int(round_to_scale(value, 0))
        if -high - 1 <= result <= high:
            return result
        raise out_of_range(kind, value)

    return convert


def integer_to_float4(value: int) -> float:
    wide = float(value)
    if int(wide) != value:
        # Rounding twice can go wrong at a midpoint: lean the way the integer lies.
        wide = math.nextafter(wide, math.inf if value > wide else -math.inf)
    return float4(wide)


def float8_to_numeric(value: float) -> Decimal:
    return parse_numeric(f"{value:.15g}")


def float4_to_numeric(value: float) -> Decimal:
    return parse_numeric(f"{value:.6g}")


def numeric_to_float8(value: Decimal) -> float:
    result = float(value)
    if (math.isinf(result) and not value.is_infinite()) or (result == 0 and value):
        raise out_of_range("double precision")
    return result


def numeric_to_float4(value: Decimal) -> float:
    result = numeric_to_float8(value)
    if value.is_finite() and Decimal(result) != value:
        result = math.nextafter(result, math.inf if value > Decimal(result) else -math.inf)
    return checked_float4(result)


def float8_to_float4(value: float) -> float:
    return checked_float4(value)


def bytes_to_integer(kind: str, size: int) -> Callable[[bytes], int]:
    def convert(value: bytes) -> int:
        if len(value) > size:
            raise out_of_range(kind, value)
        result = int.from_bytes(value)
        return result - (1 << 8 * size) if result >> (8 * size - 1) else result

    return convert


def integer_to_bytes(size: int) -> Callable[[int], bytes]:
    return lambda value: value.to_bytes(size, signed=True)


def date_to_timestamp(value: datetime.date) -> datetime.datetime:
    return datetime.datetime(value.year, value.month, value.day)


def date_to_timestamptz(value: datetime.date) -> datetime.datetime:
    return session_instant(datetime.datetime(value.year, value.month, value.day))


def timestamp_to_timestamptz(value: datetime.datetime) -> datetime.datetime:
    return session_instant(value)


def timestamptz_to_timestamp(value: datetime.datetime) -> datetime.datetime:
    return session_local(value).replace(tzinfo=None)


def to_date(value: datetime.datetime) -> datetime.date:
    return value.date() if value.tzinfo is None else session_local(value).date()


def to_time(value: datetime.datetime) -> datetime.time:
    return value.time() if value.tzinfo is None else session_local(value).time()


def time_microseconds(value: datetime.time) -> int:
    return value.hour * HOUR + value.minute * MINUTE + value.second * SECOND + value.microsecond


def time_to_interval(value: datetime.time) -> Interval:
    return Interval(0, 0, time_microseconds(value))


def interval_to_time(value: Interval) -> datetime.time:
    return time_from_microseconds(value.microseconds % MICROSECONDS_PER_DAY)
