"""Python values of the DB-API: PEP 249's constructors and type objects, and conversion of result
rows to the types that psycopg returns."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

from belvedere.interfaces.exceptions import DataError
from belvedere.plan.fields import Fields
from belvedere.types import DAYS_PER_MONTH, Interval, Kind, Row
from belvedere.values.numbers import format_float4

Description = tuple[str, str, None, int | None, int | None, int | None, None]

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802 - PEP 249's name
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802
    return Timestamp(*time.localtime(ticks)[:6])


class TypeObject:
    """Equal to the type code of every column of its kinds."""

    def __init__(self, name: str, *kinds: Kind) -> None:
        self.name = name
        self.kinds = frozenset(kind.value for kind in kinds)

    def __eq__(self, other: object) -> bool:
        return other in self.kinds if isinstance(other, str) else self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


STRING = TypeObject("STRING", Kind.CHAR, Kind.VARCHAR, Kind.TEXT, Kind.JSON, Kind.UUID)
BINARY = TypeObject("BINARY", Kind.BYTEA)
NUMBER = TypeObject(
    "NUMBER",
    Kind.SMALLINT,
    Kind.INTEGER,
    Kind.BIGINT,
    Kind.NUMERIC,
    Kind.REAL,
    Kind.DOUBLE,
    Kind.BOOLEAN,
)
DATETIME = TypeObject(
    "DATETIME", Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL
)
ROWID = TypeObject("ROWID")


def describe_fields(fields: Fields) -> list[Description]:
    return [
        (f.name, f.type.kind.value, None, f.type.length, f.type.precision, f.type.scale, None)
        for f in fields
    ]


def make_row_converter(
    fields: Fields, zone: datetime.tzinfo = datetime.UTC
) -> Callable[[list[Row]], list[Row]] | None:
    """Make a function that converts the engine's rows to result rows: intervals to timedelta,
    reals to short floats, timestamptz to the session's zone. None when no column needs it."""
    forms: dict[int, Callable[[Any], Any]] = {}
    for i, field in enumerate(fields):
        element = field.type.element
        form = _value_converter((element or field.type).kind, zone)
        if form is not None:
            forms[i] = form if element is None else _convert_elements(form)
    if not forms:
        return None

    def convert_rows(rows: list[Row]) -> list[Row]:
        return [_convert_row(row, forms) for row in rows]

    return convert_rows


def _value_converter(kind: Kind, zone: datetime.tzinfo) -> Callable[[Any], Any] | None:
    if kind is Kind.INTERVAL:
        return interval_to_timedelta
    if kind is Kind.REAL:
        return real_to_shortest_float
    if kind is Kind.TIMESTAMPTZ and zone is not datetime.UTC:
        return lambda value: value.astimezone(zone)
    return None


def _convert_elements(form: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [None if value is None else form(value) for value in values]


def _convert_row(row: Row, forms: dict[int, Callable[[Any], Any]]) -> Row:
    values: list[Any] = list(row)
    for place, form in forms.items():
        if values[place] is not None:
            values[place] = form(values[place])
    return tuple(values)


def real_to_shortest_float(value: float) -> float:
    """The float with the fewest digits that is this REAL when it is stored again: 0.1, not
    0.10000000149011612."""
    return float(format_float4(value))


def interval_to_timedelta(value: Interval) -> datetime.timedelta:
    """Convert as psycopg does: a month is 30 days."""
    days = value.months * DAYS_PER_MONTH + value.days
    try:
        return datetime.timedelta(days=days, microseconds=value.microseconds)
    except OverflowError:
        raise DataError("interval is too long for a timedelta", sqlstate="22008") from None
