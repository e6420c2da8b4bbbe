"""Second precision: rounding of times, timestamps and intervals to fewer digits of a second.

As in PostgreSQL halves round away from zero, and the zero of timestamps is the year 2000.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from belvedere.errors import Unsupported
from belvedere.types import MICROSECONDS_PER_DAY, SECOND_DIGITS_MAX, Interval, Kind, SqlType
from belvedere.values.datetime_text import time_from_microseconds
from belvedere.values.datetimes import UTC
from belvedere.values.failures import datetime_out_of_range

_ZERO = datetime.datetime(2000, 1, 1)
_ZERO_UTC = _ZERO.replace(tzinfo=UTC)
_ZERO_EPOCH_US = 946_684_800_000_000
_MICROSECOND = datetime.timedelta(microseconds=1)


def _round_microseconds(digits: int, microseconds: int) -> int:
    unit: int = 10 ** (SECOND_DIGITS_MAX - digits)
    away = (abs(microseconds) + unit // 2) // unit * unit
    return away if microseconds >= 0 else -away


def _round_timestamp(digits: int, value: datetime.datetime) -> datetime.datetime:
    zero = _ZERO if value.tzinfo is None else _ZERO_UTC
    try:
        return zero + _round_microseconds(digits, (value - zero) // _MICROSECOND) * _MICROSECOND
    except OverflowError:
        raise datetime_out_of_range("timestamp") from None


def _round_time(digits: int, value: datetime.time) -> datetime.time:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    found = _round_microseconds(digits, seconds * 1_000_000 + value.microsecond)
    if found >= MICROSECONDS_PER_DAY:
        raise Unsupported("the time 24:00:00 is not supported", hint="use 00:00:00 of the next day")
    return time_from_microseconds(found)


def _round_interval(digits: int, value: Interval) -> Interval:
    return value._replace(microseconds=_round_microseconds(digits, value.microseconds))


ROUNDERS: dict[Kind, Callable[[int, Any], Any]] = {
    Kind.TIME: _round_time,
    Kind.TIMESTAMP: _round_timestamp,
    Kind.TIMESTAMPTZ: _round_timestamp,
    Kind.INTERVAL: _round_interval,
}


def rounding_sql(sql_type: SqlType) -> str | None:
    """The template of DuckDB's form for a type with a precision, if there is one."""
    if sql_type.kind is not Kind.TIMESTAMP or sql_type.precision is None:
        return None
    unit = 10 ** (SECOND_DIGITS_MAX - sql_type.precision)
    since = f"(epoch_us({{0}}) - {_ZERO_EPOCH_US})"
    away = f"((abs({since}) + {unit // 2}) // {unit} * {unit})"
    return f"make_timestamp({_ZERO_EPOCH_US} + {away} * (CASE WHEN {since} < 0 THEN -1 ELSE 1 END))"
