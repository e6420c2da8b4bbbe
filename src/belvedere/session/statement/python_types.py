"""The SQL types that Python values have by themselves, as psycopg gives them to PostgreSQL.

| Python | SQL |
|---|---|
| int, integers of numpy | integer, bigint or numeric: the first that holds the value |
| float, numpy.float64 | double precision |
| numpy.float32, numpy.float16 | real |
| decimal.Decimal | numeric |
| bool, numpy.bool_ | boolean |
| bytes, bytearray, memoryview | bytea |
| datetime.date, time, timedelta | date, time, interval |
| datetime.datetime | timestamp; timestamptz when it has a zone |
| uuid.UUID | uuid |
| list, tuple | an array of the type that all items have |
| str, None, lists of those | none: the type that the statement wants there |
| enum.Enum | that of its value when it is an int, str, .. too; else its name, as str |
"""

from __future__ import annotations

import datetime
import decimal
import enum
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from belvedere.errors import InvalidInput, Unsupported
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    REAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    Interval,
    Kind,
    SqlType,
    array_of,
)

UNTYPED_LIST = array_of(UNKNOWN)
"""What a list of text has by itself: as text the type that the statement wants."""

Signature = tuple[SqlType | None, ...]
"""The types that parameters have by themselves; None: the statement decides."""

_INTEGER_MAX = 2**31
_BIGINT_MAX = 2**63

EXACT_TYPES: dict[type, SqlType] = {
    bool: BOOLEAN,
    float: DOUBLE,
    decimal.Decimal: NUMERIC,
    str: UNKNOWN,
    bytes: BYTEA,
    bytearray: BYTEA,
    memoryview: BYTEA,
    datetime.date: DATE,
    datetime.time: TIME,
    datetime.timedelta: INTERVAL,
    Interval: INTERVAL,
    uuid.UUID: UUID,
}
"""Python types all of whose values have one SQL type."""


def infer_parameter_types(values: Sequence[Any]) -> Signature:
    """The types that all parameters of a statement have by themselves."""
    found = [infer_sql_type(value) for value in values]
    return tuple([None if one.kind is Kind.UNKNOWN else one for one in found])


def infer_sql_type(value: Any) -> SqlType:
    """The SQL type a Python value has by itself; text has none of its own, nor have lists of it."""
    kind = type(value)
    if kind is int:
        if -_INTEGER_MAX <= value < _INTEGER_MAX:
            return INTEGER
        return BIGINT if -_BIGINT_MAX <= value < _BIGINT_MAX else NUMERIC
    if isinstance(value, datetime.datetime) and value == value:  # not pandas' NaT
        return TIMESTAMP if value.tzinfo is None else TIMESTAMPTZ
    if isinstance(value, datetime.time) and value.tzinfo is not None:
        raise Unsupported("time with time zone", hint="give a time without tzinfo")
    found = EXACT_TYPES.get(kind)
    if found is not None:
        return found
    if value is None:
        return UNKNOWN
    if isinstance(value, list | tuple):
        element = _infer_element_type(value)
        if element.element is not None:
            raise Unsupported("array of arrays")
        return array_of(element)
    if _is_numpy_small_float(value):
        return REAL
    plain = convert_to_plain_value(value)
    if type(plain) is not kind:
        return infer_sql_type(plain)
    for base, sql_type in EXACT_TYPES.items():
        if isinstance(value, base) and not _is_pandas_nat(value):
            return sql_type
    raise InvalidInput(
        "no SQL type for this Python type",
        sqlstate="42804",
        hint="give JSON as text: json.dumps(value)" if kind is dict else None,
        type=kind.__name__,
    )


def _infer_element_type(items: Sequence[Any]) -> SqlType:
    """The type of all items of a list: the widest of integers."""
    known = {infer_sql_type(item) for item in items if item is not None}
    if not known:
        return UNKNOWN
    for widest in (NUMERIC, BIGINT, INTEGER):
        if widest in known and known <= {INTEGER, BIGINT, widest}:
            whole = all(
                isinstance(convert_to_plain_value(one), int) for one in items if one is not None
            )
            if len(known) == 1 or whole:
                return widest
    if len(known) > 1:
        names = sorted({type(item).__name__ for item in items if item is not None})
        raise InvalidInput("list of mixed types", sqlstate="42804", types=", ".join(names))
    return known.pop()


def convert_to_plain_value(value: Any) -> Any:
    """A member of an enum, a scalar of numpy or a value of a subclass as a value of the plain
    Python type; other values as they are."""
    if isinstance(value, enum.Enum):
        has_value = isinstance(value, (int, *EXACT_TYPES))
        return convert_to_plain_value(value.value) if has_value else value.name
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        # Dates and times of numpy may be finer than a microsecond: they have no SQL type.
        return value if isinstance(value, numpy.datetime64 | numpy.timedelta64) else value.item()
    for kind, simplify in _SUBCLASS_VALUES:
        if isinstance(value, kind) and type(value) is not bool and not _is_pandas_nat(value):
            return simplify(value)
    return value


def _is_pandas_nat(value: Any) -> bool:
    """Whether it is pandas' NaT, which is called a datetime and has no fields."""
    return isinstance(value, datetime.datetime) and value != value


def _convert_to_plain_datetime(value: datetime.datetime) -> datetime.datetime:
    return datetime.datetime.combine(value.date(), value.timetz())


_SUBCLASS_VALUES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (str, str.__str__),
    (float, float.__float__),
    (datetime.datetime, _convert_to_plain_datetime),
)


def _is_numpy_small_float(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.float32 | numpy.float16)
