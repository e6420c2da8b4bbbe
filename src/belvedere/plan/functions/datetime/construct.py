"""Dates and times from numbers, zones and the clock: make_*, to_timestamp, AT TIME ZONE, now."""

from __future__ import annotations

import datetime
import math

from belvedere.errors import Unsupported
from belvedere.plan.functions.core.function import (
    UDF,
    Environment,
    Function,
    scalar,
    stable,
    volatile,
)
from belvedere.types import MICROSECONDS_PER_DAY, Interval
from belvedere.values.datetime_text import time_from_microseconds
from belvedere.values.datetimes import (
    UTC,
    add_microseconds,
    find_zone,
    from_microseconds,
    session_instant,
    session_local,
    to_local,
    to_utc,
    unsupported_year,
)
from belvedere.values.failures import bad_argument, datetime_out_of_range, out_of_range
from belvedere.values.intervals import HOUR, MINUTE, SECOND, make_interval


def make_date(year: int, month: int, day: int) -> datetime.date:
    if year < 0 or year > 9999:
        _check_date(year, month, day)
        raise unsupported_year(year, "date")
    try:
        return datetime.date(year, month, day)
    except ValueError:
        raise datetime_out_of_range("date") from None


def _check_date(year: int, month: int, day: int) -> None:
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        raise datetime_out_of_range("date")


def make_time(hour: int, minute: int, second: float) -> datetime.time:
    micros = _clock_microseconds(hour, minute, second)
    if micros == MICROSECONDS_PER_DAY:
        raise Unsupported("the time 24:00:00 is not supported", hint="use 00:00:00 of the next day")
    return time_from_microseconds(micros)


def _clock_microseconds(hour: int, minute: int, second: float) -> int:
    if math.isnan(second) or not (0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= second <= 60):
        raise datetime_out_of_range("time")
    micros = hour * HOUR + minute * MINUTE + round(second * SECOND)
    if micros > MICROSECONDS_PER_DAY:
        raise datetime_out_of_range("time")
    return micros


def make_timestamp(
    year: int, month: int, day: int, hour: int, minute: int, second: float
) -> datetime.datetime:
    date = make_date(year, month, day)
    micros = _clock_microseconds(hour, minute, second)
    return add_microseconds(datetime.datetime(date.year, date.month, date.day), micros)


def make_timestamptz(
    year: int, month: int, day: int, hour: int, minute: int, second: float
) -> datetime.datetime:
    return session_instant(make_timestamp(year, month, day, hour, minute, second))


def make_timestamptz_in(
    year: int, month: int, day: int, hour: int, minute: int, second: float, zone: str
) -> datetime.datetime:
    return at_zone(zone, make_timestamp(year, month, day, hour, minute, second))


def interval_from_fields(
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: int = 0,
    minutes: int = 0,
    seconds: float = 0.0,
) -> Interval:
    if not math.isfinite(seconds):
        raise datetime_out_of_range("interval")
    months, days, micros = years * 12 + months, weeks * 7 + days, hours * HOUR + minutes * MINUTE
    if math.isinf(seconds * SECOND):
        make_interval(months, days, micros)  # what the other fields exceed is said first
        raise out_of_range("double precision")
    return make_interval(months, days, micros + round(seconds * SECOND))


def to_timestamp(seconds: float) -> datetime.datetime:
    if math.isnan(seconds):
        raise bad_argument("timestamp cannot be nan", "22008")
    if math.isinf(seconds):
        raise Unsupported("infinite dates are not supported")
    if not -210_866_803_200 <= seconds < 9_224_318_016_000:
        raise datetime_out_of_range("timestamp with time zone")
    # PostgreSQL counts from 2000 in floating point and rounds there.
    micros = round((seconds - 946_684_800.0) * 1_000_000.0)
    return from_microseconds(micros + 946_684_800_000_000).replace(tzinfo=UTC)


def at_zone(zone: str, value: datetime.datetime) -> datetime.datetime:
    """timestamp AT TIME ZONE: the instant at which clocks there show it."""
    return to_utc(value, find_zone(zone))


def from_zone(zone: str, value: datetime.datetime) -> datetime.datetime:
    """timestamptz AT TIME ZONE: what clocks there show at the instant."""
    return to_local(value, find_zone(zone))


def at_local(value: datetime.datetime) -> datetime.datetime:
    """timestamp AT LOCAL: the instant, by the session's zone."""
    return session_instant(value)


def from_local(value: datetime.datetime) -> datetime.datetime:
    return session_local(value).replace(tzinfo=None)


def _offset_microseconds(zone: Interval) -> int:
    """The offset in microseconds, cut to whole seconds."""
    if zone.months or zone.days:
        raise bad_argument("interval time zone must not include months or days")
    seconds = abs(zone.microseconds) // SECOND * SECOND
    return -seconds if zone.microseconds < 0 else seconds


def at_offset(zone: Interval, value: datetime.datetime) -> datetime.datetime:
    return add_microseconds(value, -_offset_microseconds(zone)).replace(tzinfo=UTC)


def from_offset(zone: Interval, value: datetime.datetime) -> datetime.datetime:
    return add_microseconds(value.replace(tzinfo=None), _offset_microseconds(zone))


def transaction_time(environment: Environment) -> datetime.datetime:
    return environment.transaction_time


def statement_time(environment: Environment) -> datetime.datetime:
    return environment.statement_time


def clock_time(environment: Environment) -> datetime.datetime:
    return environment.clock()


def current_date(environment: Environment) -> datetime.date:
    return session_local(environment.transaction_time).date()


def local_time(environment: Environment) -> datetime.time:
    return session_local(environment.transaction_time).time()


def local_timestamp(environment: Environment) -> datetime.datetime:
    return session_local(environment.transaction_time).replace(tzinfo=None)


_INTERVAL_TYPES = ("int4", "int4", "int4", "int4", "int4", "int4", "float8")

FUNCTIONS: tuple[Function, ...] = (
    scalar("make_date(int4,int4,int4) date", make_date, UDF),
    scalar("make_time(int4,int4,float8) time", make_time, UDF),
    scalar("make_timestamp(int4,int4,int4,int4,int4,float8) timestamp", make_timestamp, UDF),
    stable("make_timestamptz(int4,int4,int4,int4,int4,float8) timestamptz", make_timestamptz, UDF),
    stable(
        "make_timestamptz(int4,int4,int4,int4,int4,float8,text) timestamptz",
        make_timestamptz_in,
        UDF,
    ),
    *(
        scalar(
            f"make_interval({','.join(_INTERVAL_TYPES[:count])}) interval",
            interval_from_fields,
            UDF,
        )
        for count in range(1, 8)
    ),
    scalar("to_timestamp(float8) timestamptz", to_timestamp, UDF),
    scalar("timezone(text,timestamp) timestamptz", at_zone, UDF),
    scalar("timezone(text,timestamptz) timestamp", from_zone, UDF),
    stable("timezone(timestamp) timestamptz", at_local, UDF),
    stable("timezone(timestamptz) timestamp", from_local, UDF),
    scalar("timezone(interval,timestamp) timestamptz", at_offset, UDF),
    scalar("timezone(interval,timestamptz) timestamp", from_offset, UDF),
    *(
        stable(f"{name}() timestamptz", transaction_time, environment=True)
        for name in ("now", "transaction_timestamp", "current_timestamp")
    ),
    stable("statement_timestamp() timestamptz", statement_time, environment=True),
    volatile("clock_timestamp() timestamptz", clock_time, environment=True),
    stable("current_date() date", current_date, environment=True),
    stable("localtime() time", local_time, environment=True),
    stable("localtimestamp() timestamp", local_timestamp, environment=True),
)
