"""Conversion of parameters: Python values to values of the types that the statement expects.

A value of the right Python type passes as it is; text is read as PostgreSQL would read it; numbers
become other numbers when nothing is lost. Anything else is 42804, or 22003 when it does not fit.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from belvedere.errors import InvalidInput
from belvedere.plan.functions import cast_function, text_parser
from belvedere.plan.functions.cast.casts import CastContext
from belvedere.txn.transaction.table_rows import describe_failing_row
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    Interval,
    Kind,
    Row,
    SqlType,
    array_of,
)
from belvedere.values.datetimes import in_zone
from belvedere.values.texts import require_text

Convert = Callable[[Any], Any]

_RANGES = {
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INTEGER: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
}
_INTEGER_MAX = 2**31
_BIGINT_MAX = 2**63


def make_parameter_converter(
    types: Sequence[SqlType], zone: datetime.tzinfo = datetime.UTC
) -> Callable[[Sequence[Any]], Row]:
    """A function from given parameters to a row of values of these types, read in the zone."""
    made = _make_row_converter(types)
    if zone is datetime.UTC:
        return made

    def convert_in_zone(given: Sequence[Any]) -> Row:
        with in_zone(zone):
            return made(given)

    return convert_in_zone


def make_row_reporting_converter(
    convert: Callable[[Sequence[Any]], Row],
) -> Callable[[Sequence[Any]], Row]:
    """The same conversion for rows of a file: the error of a refused value shows its row."""

    def convert_or_report_row(given: Sequence[Any]) -> Row:
        try:
            return convert(given)
        except InvalidInput as error:
            error.detail = error.detail or describe_failing_row(given)
            raise

    return convert_or_report_row


def _make_row_converter(types: Sequence[SqlType]) -> Callable[[Sequence[Any]], Row]:
    forms = [_make_type_converter(one) for one in types]
    count = len(forms)
    if count == 1:
        only = forms[0]

        def convert_one_parameter(given: Sequence[Any]) -> Row:
            if len(given) != 1:
                raise _parameter_count_error(1, len(given))
            value = given[0]
            return (None if value is None else only(value),)

        return convert_one_parameter

    def convert_all_parameters(given: Sequence[Any]) -> Row:
        if len(given) != count:
            raise _parameter_count_error(count, len(given))
        return tuple([None if v is None else form(v) for form, v in zip(forms, given)])

    return convert_all_parameters


def _parameter_count_error(wanted: int, given: int) -> InvalidInput:
    return InvalidInput("wrong number of parameters", sqlstate="08P01", wanted=wanted, given=given)


def _make_type_converter(sql_type: SqlType) -> Convert:
    match sql_type.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return _make_integer_converter(sql_type)
        case Kind.TEXT | Kind.UNKNOWN | Kind.JSON:
            return lambda value: (
                require_text(value) if type(value) is str else _convert_to_text(value, sql_type)
            )
        case Kind.ARRAY:
            assert sql_type.element is not None
            return _make_array_converter(sql_type.element)
        case _:
            return _make_cast_converter(sql_type)


_PLAIN = (str, decimal.Decimal, float, bool, datetime.date)
"""Python types whose values need nothing but the cast from the SQL type that each has."""


def _make_cast_converter(sql_type: SqlType) -> Convert:
    """The cast is looked up once for each Python type that is given, not for each value."""
    casts: dict[type, Convert] = {}

    def convert_value(value: Any) -> Any:
        known = casts.get(type(value))
        if known is not None:
            return known(value)
        found = _cast_from_inferred_type(value, sql_type)
        if type(value) in _PLAIN:
            casts[type(value)] = _make_plain_cast(_TYPES[type(value)], sql_type)
        return found

    return convert_value


def _make_plain_cast(source: SqlType, target: SqlType) -> Convert:
    if source == target:
        return lambda value: value
    function = cast_function(source, target, CastContext.ASSIGNMENT).python
    assert callable(function)
    if target.kind in (Kind.VARCHAR, Kind.CHAR) and source.kind is Kind.UNKNOWN:
        return lambda value: function(require_text(value))
    return function


def _make_integer_converter(sql_type: SqlType) -> Convert:
    low, high = _RANGES[sql_type.kind]

    def convert_integer(value: Any) -> int:
        if type(value) is int and low <= value <= high:
            return value
        return _convert_other_to_integer(value, sql_type, low, high)

    return convert_integer


def _convert_other_to_integer(value: Any, sql_type: SqlType, low: int, high: int) -> int:
    if isinstance(value, str):
        found: int = text_parser(sql_type)(value)
        return found
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        raise _type_mismatch_error(value, sql_type)
    if value != int(value):
        raise _type_mismatch_error(value, sql_type)
    if not low <= value <= high:
        raise InvalidInput("value out of range", sqlstate="22003", type=str(sql_type))
    return int(value)


def _make_array_converter(element: SqlType) -> Convert:
    form = _make_type_converter(element)

    def convert_array(value: Any) -> list[Any]:
        if isinstance(value, str):
            found: list[Any] = text_parser(array_of(element))(require_text(value))
            return found
        if not isinstance(value, list | tuple):
            raise _type_mismatch_error(value, array_of(element))
        return [None if item is None else form(item) for item in value]

    return convert_array


def _convert_to_text(value: Any, sql_type: SqlType) -> str:
    given = infer_sql_type(value)
    if given.kind is Kind.UNKNOWN or given.element is not None:
        raise _type_mismatch_error(value, sql_type)
    return str(_cast_value(value, given, TEXT))


def _cast_from_inferred_type(value: Any, sql_type: SqlType) -> Any:
    given = infer_sql_type(value)
    if isinstance(value, str):
        require_text(value)
    elif isinstance(value, datetime.timedelta):
        value = _interval_from_timedelta(value)
    if given == sql_type:
        return _normalize_zone_and_bytes(value)
    if given.kind is Kind.UNKNOWN:
        return _cast_value(value, UNKNOWN, sql_type)
    return _cast_value(_normalize_zone_and_bytes(value), given, sql_type)


def _cast_value(value: Any, source: SqlType, target: SqlType) -> Any:
    function = cast_function(source, target, CastContext.ASSIGNMENT)
    assert callable(function.python)
    return function.python(value)


def _normalize_zone_and_bytes(value: Any) -> Any:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _interval_from_timedelta(value: datetime.timedelta) -> Interval:
    micros = value // datetime.timedelta(microseconds=1)
    day = 86_400_000_000
    days = int(micros / day)
    return Interval(0, days, micros - days * day)


_TYPES: dict[type, SqlType] = {
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


def infer_sql_type(value: Any) -> SqlType:
    """The SQL type a Python value has by itself; text has none of its own."""
    kind = type(value)
    if kind is int:
        if -_INTEGER_MAX <= value < _INTEGER_MAX:
            return INTEGER
        return BIGINT if -_BIGINT_MAX <= value < _BIGINT_MAX else NUMERIC
    if isinstance(value, datetime.datetime):
        return TIMESTAMP if value.tzinfo is None else TIMESTAMPTZ
    found = _TYPES.get(kind)
    if found is not None:
        return found
    if value is None:
        return UNKNOWN
    if isinstance(value, list | tuple):
        known = [infer_sql_type(item) for item in value if item is not None]
        return array_of(known[0] if known and known[0].kind is not Kind.UNKNOWN else TEXT)
    for base, sql_type in _TYPES.items():
        if isinstance(value, base):
            return sql_type
    raise InvalidInput("no SQL type for this Python type", sqlstate="42804", type=kind.__name__)


def _type_mismatch_error(value: Any, sql_type: SqlType) -> InvalidInput:
    return InvalidInput(
        "parameter has the wrong type",
        sqlstate="42804",
        wanted=str(sql_type),
        given=type(value).__name__,
    )
