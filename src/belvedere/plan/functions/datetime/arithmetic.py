"""Arithmetic of dates, times, timestamps and intervals.

Adding an interval adds its months first (the day is cut to the length of the month), then its days,
then its time. The session's zone is UTC, where every day has 24 hours.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable
from typing import Any

from belvedere.plan.functions.cast.conversions import date_to_timestamp, time_microseconds
from belvedere.plan.functions.core.function import UDF, Function, Volatility, scalar
from belvedere.types import MICROSECONDS_PER_DAY, Interval
from belvedere.values import interval_math
from belvedere.values.datetime_text import time_from_microseconds
from belvedere.values.datetimes import (
    MICROSECOND,
    UTC,
    add_microseconds,
    session_instant,
    session_local,
    session_zone,
    unsupported_year,
)
from belvedere.values.failures import datetime_out_of_range

Timestamp = datetime.datetime
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def add_days(value: datetime.date, days: int) -> datetime.date:
    try:
        return value + datetime.timedelta(days=days)
    except OverflowError:
        raise _date_range_error(value.toordinal() + days) from None


def _date_range_error(ordinal: int) -> Exception:
    # PostgreSQL's dates reach from 4714 BC to 5874897.
    if -1_721_424 <= ordinal <= 2_145_762_000:
        return unsupported_year(10_000 if ordinal > 0 else 0, "date")
    return datetime_out_of_range("date")


def days_plus_date(days: int, value: datetime.date) -> datetime.date:
    return add_days(value, days)


def subtract_days(value: datetime.date, days: int) -> datetime.date:
    return add_days(value, -days)


def days_between(left: datetime.date, right: datetime.date) -> int:
    return (left - right).days


def date_and_time(date: datetime.date, time: datetime.time) -> Timestamp:
    return datetime.datetime.combine(date, time)


def time_and_date(time: datetime.time, date: datetime.date) -> Timestamp:
    return datetime.datetime.combine(date, time)


def add_months(value: Timestamp, months: int) -> Timestamp:
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise unsupported_year(year, "timestamp")
    last = _MONTH_DAYS[month] + (month == 1 and calendar.isleap(year))
    return value.replace(year=year, month=month + 1, day=min(value.day, last))


def add_interval(value: Timestamp, interval: Interval) -> Timestamp:
    months, days, microseconds = interval
    if value.tzinfo is not None and (months or days) and session_zone() is not UTC:
        # Months and days are added on the zone's calendar, the time as elapsed time.
        there = add_interval(session_local(value).replace(tzinfo=None), Interval(months, days, 0))
        return add_microseconds(session_instant(there), microseconds)
    if months:
        value = add_months(value, months)
    return add_microseconds(value, days * MICROSECONDS_PER_DAY + microseconds)


def subtract_interval(value: Timestamp, interval: Interval) -> Timestamp:
    return add_interval(value, Interval(-interval.months, -interval.days, -interval.microseconds))


def interval_plus_timestamp(interval: Interval, value: Timestamp) -> Timestamp:
    return add_interval(value, interval)


def date_add(value: datetime.date, interval: Interval) -> Timestamp:
    return add_interval(date_to_timestamp(value), interval)


def interval_plus_date(interval: Interval, value: datetime.date) -> Timestamp:
    return add_interval(date_to_timestamp(value), interval)


def date_subtract(value: datetime.date, interval: Interval) -> Timestamp:
    return subtract_interval(date_to_timestamp(value), interval)


def subtract_timestamps(left: Timestamp, right: Timestamp) -> Interval:
    """Whole days and the rest, both of one sign."""
    return interval_math.justify_hours(Interval(0, 0, (left - right) // MICROSECOND))


def time_add(value: datetime.time, interval: Interval) -> datetime.time:
    return time_from_microseconds(
        (time_microseconds(value) + interval.microseconds) % MICROSECONDS_PER_DAY
    )


def interval_plus_time(interval: Interval, value: datetime.time) -> datetime.time:
    return time_add(value, interval)


def time_subtract(value: datetime.time, interval: Interval) -> datetime.time:
    return time_from_microseconds(
        (time_microseconds(value) - interval.microseconds) % MICROSECONDS_PER_DAY
    )


def time_between(left: datetime.time, right: datetime.time) -> Interval:
    return Interval(0, 0, time_microseconds(left) - time_microseconds(right))


def factor_multiply(factor: float, value: Interval) -> Interval:
    return interval_math.multiply(value, factor)


def _timestamp_functions() -> list[Function]:
    """The operators of timestamps with and without zone; with it they depend on the session."""
    functions = []
    for name, volatility in (
        ("timestamp", Volatility.IMMUTABLE),
        ("timestamptz", Volatility.STABLE),
    ):
        # DuckDB adds the fields in another order when the timestamp has a zone.
        zoned = name == "timestamptz"
        plus, minus = (f"CAST(_0 AS TIMESTAMP) {sign} _1" for sign in "+-")
        swapped = "CAST(_1 AS TIMESTAMP) + _0"
        wrap = "CAST({} AS TIMESTAMPTZ)" if zoned else "{}"
        functions += [
            scalar(
                f"+({name},interval) {name}", add_interval, wrap.format(plus), volatility=volatility
            ),
            scalar(
                f"+(interval,{name}) {name}",
                interval_plus_timestamp,
                wrap.format(swapped),
                volatility=volatility,
            ),
            scalar(
                f"-({name},interval) {name}",
                subtract_interval,
                wrap.format(minus),
                volatility=volatility,
            ),
            scalar(f"-({name},{name}) interval", subtract_timestamps, UDF),
        ]
    return functions


def overlaps(start: Any, end: Any, other_start: Any, other_end: Any) -> bool | None:
    """SQL's OVERLAPS: each pair in either order, its first end included, NULL an unknown end."""
    first, second = _order_ends(start, end), _order_ends(other_start, other_end)
    if first is None or second is None:
        return None
    if first[0] > second[0]:
        first, second = second, first
    if first[0] == second[0]:
        return None if first[1] is None or second[1] is None else True
    if first[1] is None:
        return None
    if second[0] < first[1]:
        return True
    return None if second[1] is None else False


def _order_ends(start: Any, end: Any) -> tuple[Any, Any] | None:
    if start is None:
        return None if end is None else (end, None)
    if end is not None and start > end:
        return end, start
    return start, end


def _overlaps_with_lengths(
    form: Callable[[Any, Interval], Any], which: tuple[bool, bool]
) -> Callable[..., Any]:
    """OVERLAPS where one or both ends are given as a length from the start."""

    def with_lengths(start: Any, end: Any, other_start: Any, other_end: Any) -> bool | None:
        if which[0]:
            end = None if start is None or end is None else form(start, end)
        if which[1]:
            given = other_start is not None and other_end is not None
            other_end = form(other_start, other_end) if given else None
        return overlaps(start, end, other_start, other_end)

    return with_lengths


def _overlaps_functions() -> list[Function]:
    functions = []
    forms: dict[str, Callable[[Any, Interval], Any]] = {
        "timestamp": add_interval,
        "timestamptz": add_interval,
        "time": time_add,
    }
    for name, form in forms.items():
        for which in ((False, False), (False, True), (True, False), (True, True)):
            first, second = ("interval" if length else name for length in which)
            stable = name == "timestamptz" and any(which)
            functions.append(
                scalar(
                    f"overlaps({name},{first},{name},{second}) bool",
                    _overlaps_with_lengths(form, which),
                    UDF,
                    strict=False,
                    volatility=Volatility.STABLE if stable else Volatility.IMMUTABLE,
                )
            )
    return functions


FUNCTIONS: tuple[Function, ...] = (
    scalar("+(date,int4) date", add_days, UDF),
    scalar("+(int4,date) date", days_plus_date, UDF),
    scalar("-(date,int4) date", subtract_days, UDF),
    scalar("-(date,date) int4", days_between, "CAST(_0 - _1 AS INTEGER)"),
    scalar("+(date,time) timestamp", date_and_time, "_0 + _1"),
    scalar("+(time,date) timestamp", time_and_date, "_1 + _0"),
    scalar("+(date,interval) timestamp", date_add, "_0 + _1"),
    scalar("+(interval,date) timestamp", interval_plus_date, "_1 + _0"),
    scalar("-(date,interval) timestamp", date_subtract, "_0 - _1"),
    *_timestamp_functions(),
    scalar("+(time,interval) time", time_add, UDF),
    scalar("+(interval,time) time", interval_plus_time, UDF),
    scalar("-(time,interval) time", time_subtract, UDF),
    scalar("-(time,time) interval", time_between, UDF),
    scalar("+(interval,interval) interval", interval_math.add, UDF),
    scalar("-(interval,interval) interval", interval_math.subtract, UDF),
    scalar("-(interval) interval", interval_math.negate, UDF),
    scalar("*(interval,float8) interval", interval_math.multiply, UDF),
    scalar("*(float8,interval) interval", factor_multiply, UDF),
    scalar("/(interval,float8) interval", interval_math.divide, UDF),
    scalar("justify_hours(interval) interval", interval_math.justify_hours, UDF),
    scalar("justify_days(interval) interval", interval_math.justify_days, UDF),
    scalar("justify_interval(interval) interval", interval_math.justify_interval, UDF),
    *_overlaps_functions(),
)
