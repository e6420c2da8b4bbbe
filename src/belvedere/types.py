"""The SQL types and the Python values that stand for them.

| kind | Python value |
|---|---|
| BOOLEAN | bool |
| SMALLINT, INTEGER, BIGINT | int |
| NUMERIC | decimal.Decimal (NaN and infinities allowed) |
| REAL, DOUBLE | float (REAL already rounded to 32 bits) |
| CHAR, VARCHAR, TEXT | str (CHAR blank-padded to its length) |
| JSON | str, the text as given |
| BYTEA | bytes |
| DATE, TIME, TIMESTAMP | datetime.date, datetime.time, naive datetime.datetime |
| TIMESTAMPTZ | datetime.datetime in UTC |
| INTERVAL | Interval(months, days, microseconds) |
| UUID | uuid.UUID |
| ARRAY | list of the element's values; in expressions only, never stored |
| OID | int, the number of an object in the system catalogs; never stored |
| REGCLASS, REGTYPE, REGNAMESPACE, REGPROC | ObjectName: an OID that prints as a name |
| RECORD | tuple of the values of its items, whose names and types it has; never stored |
| NULL | None; the type of an untyped NULL or string literal is UNKNOWN |
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

MICROSECONDS_PER_DAY = 86_400_000_000
DAYS_PER_MONTH = 30


class Kind(enum.StrEnum):
    BOOLEAN = "boolean"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    NUMERIC = "numeric"
    REAL = "real"
    DOUBLE = "double precision"
    CHAR = "character"
    VARCHAR = "character varying"
    TEXT = "text"
    JSON = "json"
    BYTEA = "bytea"
    DATE = "date"
    TIME = "time without time zone"
    TIMESTAMP = "timestamp without time zone"
    TIMESTAMPTZ = "timestamp with time zone"
    INTERVAL = "interval"
    UUID = "uuid"
    ARRAY = "array"
    OID = "oid"
    REGCLASS = "regclass"
    REGTYPE = "regtype"
    REGNAMESPACE = "regnamespace"
    REGPROC = "regproc"
    RECORD = "record"
    UNKNOWN = "unknown"


NAMED_OBJECT_KINDS = frozenset({Kind.REGCLASS, Kind.REGTYPE, Kind.REGNAMESPACE, Kind.REGPROC})
"""OIDs that are written and printed as names."""
UNSTORED_KINDS = NAMED_OBJECT_KINDS | {Kind.ARRAY, Kind.OID, Kind.RECORD, Kind.UNKNOWN}
"""Types of expressions that no column of a table has."""
UNCOMPARED_KINDS = frozenset({Kind.JSON, Kind.RECORD})
"""Types whose values are neither equal nor in an order."""
TIMED_KINDS = frozenset({Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL})
SECOND_DIGITS_MAX = 6


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type with its modifiers. `length` is of CHAR and VARCHAR, `precision` and `scale` are of
    NUMERIC; times, timestamps and intervals have a `precision` of less than six digits. A `vector`
    is an array of the system catalogs, which counts from 0: PostgreSQL's int2vector, oidvector.
    `items` are the names and types of a RECORD."""

    kind: Kind
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    element: SqlType | None = None
    vector: bool = False
    items: tuple[tuple[str, SqlType], ...] = ()

    def __str__(self) -> str:
        if self.vector:
            return "oidvector" if self.element == OID else "int2vector"
        if self.kind is Kind.ARRAY:
            return f"{self.element}[]"
        if self.length is not None:
            return f"{self.kind.value}({self.length})"
        if self.precision is not None and self.kind in TIMED_KINDS:
            name, *zone = self.kind.value.split(" ", 1)
            return " ".join([f"{name}({self.precision})", *zone])
        if self.precision is not None:
            return f"{self.kind.value}({self.precision},{self.scale or 0})"
        return self.kind.value


BOOLEAN = SqlType(Kind.BOOLEAN)
SMALLINT = SqlType(Kind.SMALLINT)
INTEGER = SqlType(Kind.INTEGER)
BIGINT = SqlType(Kind.BIGINT)
NUMERIC = SqlType(Kind.NUMERIC)
REAL = SqlType(Kind.REAL)
DOUBLE = SqlType(Kind.DOUBLE)
TEXT = SqlType(Kind.TEXT)
VARCHAR = SqlType(Kind.VARCHAR)
JSON = SqlType(Kind.JSON)
BYTEA = SqlType(Kind.BYTEA)
DATE = SqlType(Kind.DATE)
TIME = SqlType(Kind.TIME)
TIMESTAMP = SqlType(Kind.TIMESTAMP)
TIMESTAMPTZ = SqlType(Kind.TIMESTAMPTZ)
INTERVAL = SqlType(Kind.INTERVAL)
UUID = SqlType(Kind.UUID)
OID = SqlType(Kind.OID)
REGCLASS = SqlType(Kind.REGCLASS)
REGTYPE = SqlType(Kind.REGTYPE)
REGNAMESPACE = SqlType(Kind.REGNAMESPACE)
REGPROC = SqlType(Kind.REGPROC)
UNKNOWN = SqlType(Kind.UNKNOWN)


def numeric_type(precision: int, scale: int = 0) -> SqlType:
    return SqlType(Kind.NUMERIC, precision=precision, scale=scale)


def varchar_type(length: int) -> SqlType:
    return SqlType(Kind.VARCHAR, length=length)


def char_type(length: int) -> SqlType:
    return SqlType(Kind.CHAR, length=length)


def with_second_digits(sql_type: SqlType, precision: int) -> SqlType:
    """A time, timestamp or interval type with so many digits of a second; with six or more, the
    type itself."""
    if precision >= SECOND_DIGITS_MAX:
        return sql_type
    return SqlType(sql_type.kind, precision=precision)


def array_of(element: SqlType) -> SqlType:
    return SqlType(Kind.ARRAY, element=element)


def vector_of(element: SqlType) -> SqlType:
    return SqlType(Kind.ARRAY, element=element, vector=True)


def record_of(items: Iterable[tuple[str, SqlType]]) -> SqlType:
    return SqlType(Kind.RECORD, items=tuple(items))


class Interval(NamedTuple):
    """PostgreSQL's interval: three independent fields. Comparison is by `span`, not by fields."""

    months: int
    days: int
    microseconds: int

    @property
    def span(self) -> int:
        """Length in microseconds with 30-day months and 24-hour days: what equality and order
        use."""
        days = self.months * DAYS_PER_MONTH + self.days
        return days * MICROSECONDS_PER_DAY + self.microseconds


class ObjectName(int):
    """The OID of an object with its name, which is its text."""

    text: str

    def __new__(cls, oid: int, text: str) -> Self:
        made = super().__new__(cls, oid)
        made.text = text
        return made


Row = tuple[Any, ...]
