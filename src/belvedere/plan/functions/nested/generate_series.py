"""generate_series, generate_subscripts and information_schema._pg_expandarray."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from belvedere.plan.functions.core.function import Function, Volatility, scalar, set_returning
from belvedere.plan.functions.core.function import FunctionKind as Kind
from belvedere.plan.functions.datetime.arithmetic import add_interval
from belvedere.types import Interval
from belvedere.values import decimals
from belvedere.values.arrays import find_lower_bound
from belvedere.values.datetimes import find_zone, in_zone
from belvedere.values.failures import bad_argument


def _zero_step_error() -> Exception:
    return bad_argument("step size cannot equal zero")


def integer_series(first: int, last: int, step: int = 1) -> Iterator[int]:
    if step == 0:
        raise _zero_step_error()
    return iter(range(first, last + 1 if step > 0 else last - 1, step))


def numeric_series(
    first: Decimal, last: Decimal, step: Decimal = decimals.ONE
) -> Iterator[Decimal]:
    for value in (first, last, step):
        if not value.is_finite():
            raise bad_argument("start, stop and step cannot be nan or infinity")
    if not step:
        raise _zero_step_error()
    return _numeric_steps(first, last, step)


def _numeric_steps(first: Decimal, last: Decimal, step: Decimal) -> Iterator[Decimal]:
    value = first
    while value <= last if step > 0 else value >= last:
        yield value
        value = decimals.add(value, step)


def timestamp_series(
    first: datetime.datetime, last: datetime.datetime, step: Interval
) -> Iterator[datetime.datetime]:
    if step.span == 0:
        raise _zero_step_error()
    return _timestamp_steps(first, last, step)


def _timestamp_steps(
    first: datetime.datetime, last: datetime.datetime, step: Interval
) -> Iterator[datetime.datetime]:
    value = first
    while value <= last if step.span > 0 else value >= last:
        yield value
        value = add_interval(value, step)


def timestamp_series_in_zone(
    first: datetime.datetime, last: datetime.datetime, step: Interval, zone: str
) -> list[datetime.datetime]:
    """generate_series in a named zone: days and months are those of the zone."""
    with in_zone(find_zone(zone)):
        return list(timestamp_series(first, last, step))


def generate_subscripts(values: list[Any], dimension: int, reverse: bool = False) -> Iterator[int]:
    first = find_lower_bound(values)
    found = range(first, first + len(values) if dimension == 1 else first)
    return iter(found[::-1] if reverse else found)


def number_elements(values: list[Any]) -> Iterator[tuple[Any, int]]:
    return ((value, number) for number, value in enumerate(values, 1))


FUNCTIONS: tuple[Function, ...] = (
    set_returning("generate_series(int4,int4) int4", integer_series),
    set_returning("generate_series(int4,int4,int4) int4", integer_series),
    set_returning("generate_series(int8,int8) int8", integer_series),
    set_returning("generate_series(int8,int8,int8) int8", integer_series),
    set_returning("generate_series(numeric,numeric) numeric", numeric_series),
    set_returning("generate_series(numeric,numeric,numeric) numeric", numeric_series),
    set_returning("generate_series(timestamp,timestamp,interval) timestamp", timestamp_series),
    scalar(
        "generate_series(timestamptz,timestamptz,interval) timestamptz",
        timestamp_series,
        kind=Kind.SET,
        volatility=Volatility.STABLE,
    ),
    set_returning(
        "generate_series(timestamptz,timestamptz,interval,text) timestamptz",
        timestamp_series_in_zone,
    ),
    set_returning("generate_subscripts(anyarray,int4) int4", generate_subscripts),
    set_returning("generate_subscripts(anyarray,int4,bool) int4", generate_subscripts),
    set_returning("_pg_expandarray(anyarray) anyelement", number_elements),
)
