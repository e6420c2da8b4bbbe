"""Conversion of Python values to values of SQL types, in two ways.

- *Parameters* (`make_exact_converter`): a value must have the type that the plan was made for, by
  itself (session.statement.python_types) or as text, which is read as PostgreSQL reads it. Another
  type is another plan: `ParameterTypesDiffer`.
- *Rows of files and of other processes* (`make_assignment_converter`): a value becomes one of the
  column's type; numbers become other numbers when nothing is lost. Anything else is 42804, or
  22003 when it does not fit.
"""

from __future__ import annotations

import datetime
import decimal
import functools
from collections.abc import Callable, Sequence
from typing import Any

from belvedere.codec.compile import compile_function
from belvedere.errors import InvalidInput
from belvedere.plan.functions import cast_function, text_parser
from belvedere.plan.functions.cast.casts import CastContext
from belvedere.session.statement.python_types import (
    EXACT_TYPES,
    UNTYPED_LIST,
    convert_to_plain_value,
    infer_sql_type,
)
from belvedere.txn.transaction.table_rows import describe_failing_row
from belvedere.types import (
    TEXT,
    UNKNOWN,
    Interval,
    Kind,
    Row,
    SqlType,
    array_of,
)
from belvedere.values.arrays import format_array
from belvedere.values.datetimes import in_zone
from belvedere.values.decimals import numeric_from_decimal, numeric_from_integer
from belvedere.values.failures import datetime_out_of_range
from belvedere.values.texts import parse_json, require_text

Convert = Callable[[Any], Any]
INLINE_PARAMETERS_MAX = 64

_RANGES = {
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INTEGER: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
    Kind.OID: (0, 2**32 - 1),
}


def make_assignment_converter(
    types: Sequence[SqlType], zone: datetime.tzinfo = datetime.UTC
) -> Callable[[Sequence[Any]], Row]:
    """A function from given parameters to a row of values of these types, read in the zone."""
    return _wrap_converter_in_zone(
        _combine_value_converters([_make_value_converter(one) for one in types]), zone
    )


def _wrap_converter_in_zone(
    made: Callable[[Sequence[Any]], Row], zone: datetime.tzinfo
) -> Callable[[Sequence[Any]], Row]:
    if zone is datetime.UTC:
        return made

    def convert_in_zone(given: Sequence[Any]) -> Row:
        with in_zone(zone):
            return made(given)

    return convert_in_zone


class ParameterTypesDiffer(Exception):
    """A parameter has another type than the plan was made for."""


def make_exact_converter(
    types: Sequence[SqlType], zone: datetime.tzinfo = datetime.UTC
) -> Callable[[Sequence[Any]], Row]:
    """The same for values that must have these types: ParameterTypesDiffer when one has not."""
    return _wrap_converter_in_zone(_compile_exact_converter(tuple(types)), zone)


@functools.lru_cache(maxsize=1_000)
def _compile_exact_converter(types: tuple[SqlType, ...]) -> Callable[[Sequence[Any]], Row]:
    """Usual values pass by a test in line; a call for each would cost more than the test."""
    readers = [_make_exact_value_converter(one) for one in types]
    count = len(types)
    if not 0 < count <= INLINE_PARAMETERS_MAX:
        return _combine_value_converters(readers)
    names = [f"v{number}" for number in range(count)]
    lines = [f"if len(given) != {count}: raise count_error({count}, len(given))"]
    lines += [f"{', '.join(names)}, = given"]
    for name, one in zip(names, types):
        lines.append(_generate_usual_value_test(name, one) + f"{name} = read_{name}({name})")
    lines.append(f"return ({', '.join(names)}, )")
    space = {f"read_{name}": read for name, read in zip(names, readers)}
    return compile_function("convert", "given", lines, space | {"count_error": _make_count_error})


def _generate_usual_value_test(name: str, sql_type: SqlType) -> str:
    """The beginning of a line that reads a value, unless that may pass as it is."""
    if sql_type.kind in _RANGES:
        low, high = _RANGES[sql_type.kind]
        usual = f"{name}.__class__ is int and {low} <= {name} <= {high}"
    elif sql_type.kind is Kind.TEXT:
        usual = f"{name}.__class__ is str and {name}.isascii() and '\\0' not in {name}"
    else:
        return f"if {name} is not None: "
    return f"if not ({usual}) and {name} is not None: "


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


def _combine_value_converters(forms: Sequence[Convert]) -> Callable[[Sequence[Any]], Row]:
    count = len(forms)
    if count == 1:
        only = forms[0]

        def convert_one_parameter(given: Sequence[Any]) -> Row:
            if len(given) != 1:
                raise _make_count_error(1, len(given))
            value = given[0]
            return (None if value is None else only(value),)

        return convert_one_parameter

    def convert_all_parameters(given: Sequence[Any]) -> Row:
        if len(given) != count:
            raise _make_count_error(count, len(given))
        return tuple([None if v is None else form(v) for form, v in zip(forms, given)])

    return convert_all_parameters


def _make_count_error(wanted: int, given: int) -> InvalidInput:
    return InvalidInput("wrong number of parameters", sqlstate="08P01", wanted=wanted, given=given)


def _make_value_converter(sql_type: SqlType) -> Convert:
    match sql_type.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return _make_integer_converter(sql_type)
        case Kind.TEXT | Kind.UNKNOWN:
            return lambda value: (
                require_text(value) if type(value) is str else _convert_to_text(value, sql_type)
            )
        case Kind.JSON:
            return lambda value: parse_json(_convert_to_text(value, sql_type))
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
            casts[type(value)] = _make_plain_cast(EXACT_TYPES[type(value)], sql_type)
        return found

    return convert_value


def _make_plain_cast(source: SqlType, target: SqlType) -> Convert:
    if source == target:
        return numeric_from_decimal if source.kind is Kind.NUMERIC else lambda value: value
    function = cast_function(source, target, CastContext.ASSIGNMENT).python
    assert callable(function)
    if source.kind is Kind.NUMERIC:
        return lambda value: function(numeric_from_decimal(value))
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
    value = convert_to_plain_value(value)
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        raise _make_type_mismatch_error(value, sql_type)
    if not low <= value <= high:  # nor NaN
        raise InvalidInput(
            "value out of range", sqlstate="22003", type=str(sql_type), value=str(value)
        )
    if value != int(value):
        raise _make_type_mismatch_error(value, sql_type)
    return int(value)


def _make_array_converter(element: SqlType) -> Convert:
    form = _make_value_converter(element)

    def convert_array(value: Any) -> list[Any]:
        if isinstance(value, str):
            found: list[Any] = text_parser(array_of(element))(require_text(value))
            return found
        if not isinstance(value, list | tuple):
            raise _make_type_mismatch_error(value, array_of(element))
        return [None if item is None else form(item) for item in value]

    return convert_array


def _convert_to_text(value: Any, sql_type: SqlType) -> str:
    given = infer_sql_type(value)
    plain = convert_to_plain_value(value)
    if isinstance(plain, str):
        return require_text(plain)
    if given.kind is Kind.UNKNOWN or given.element is not None:
        raise _make_type_mismatch_error(value, sql_type)
    return str(_cast_value(_convert_to_sql_value(plain, given), given, TEXT))


def _cast_from_inferred_type(value: Any, sql_type: SqlType) -> Any:
    given = infer_sql_type(value)
    plain = convert_to_plain_value(value)
    if isinstance(plain, str):
        require_text(plain)
    found = _convert_to_sql_value(plain, given)
    return found if given == sql_type else _cast_value(found, given, sql_type)


def _cast_value(value: Any, source: SqlType, target: SqlType) -> Any:
    function = cast_function(source, target, CastContext.ASSIGNMENT)
    assert callable(function.python)
    return function.python(value)


def _convert_to_sql_value(value: Any, sql_type: SqlType) -> Any:
    """The value that stands for a simplified Python value of this SQL type."""
    match value:
        case datetime.datetime() if value.tzinfo is not None:
            try:
                return value.astimezone(datetime.UTC)
            except OverflowError:
                raise datetime_out_of_range("timestamptz") from None
        case datetime.timedelta():
            return _convert_timedelta_to_interval(value)
        case bytearray() | memoryview():
            return bytes(value)
        case int() if sql_type.kind is Kind.NUMERIC:
            return numeric_from_integer(value)
        case decimal.Decimal():
            return numeric_from_decimal(value)
        case _:
            return value


def _convert_timedelta_to_interval(value: datetime.timedelta) -> Interval:
    micros = value // datetime.timedelta(microseconds=1)
    day = 86_400_000_000
    days = int(micros / day)
    return Interval(0, days, micros - days * day)


def _make_type_mismatch_error(value: Any, sql_type: SqlType) -> InvalidInput:
    return InvalidInput(
        "parameter has the wrong type",
        sqlstate="42804",
        wanted=str(sql_type),
        given=type(value).__name__,
    )


# -- values that have the type ---------------------------------------------------------------------


def _make_exact_value_converter(sql_type: SqlType) -> Convert:
    """A function from a value that has this type, or is text, to what stands for it."""
    kind = sql_type.kind
    if kind in _RANGES:
        return _make_exact_integer_converter(sql_type)
    if kind in (Kind.TEXT, Kind.JSON):
        read_text = require_text if kind is Kind.TEXT else _read_json
        return lambda value: (
            read_text(value) if type(value) is str else _convert_unusual_value(value, sql_type)
        )
    if kind is Kind.ARRAY:
        assert sql_type.element is not None
        return _make_exact_array_converter(sql_type.element)
    if kind is Kind.NUMERIC:
        return lambda value: (
            numeric_from_decimal(value)
            if type(value) is decimal.Decimal
            else _convert_unusual_value(value, sql_type)
        )
    exact = _EXACT.get(kind)
    return lambda value: value if type(value) is exact else _convert_unusual_value(value, sql_type)


def _read_json(value: str) -> str:
    return parse_json(require_text(value))


_EXACT: dict[Kind, type] = {
    Kind.BOOLEAN: bool,
    Kind.DOUBLE: float,
    Kind.BYTEA: bytes,
    Kind.DATE: datetime.date,
}
"""Python types whose values pass as they are."""


def _make_exact_integer_converter(sql_type: SqlType) -> Convert:
    low, high = _RANGES[sql_type.kind]

    def convert_exact_integer(value: Any) -> Any:
        if type(value) is int and low <= value <= high:
            return value
        return _convert_unusual_value(value, sql_type)

    return convert_exact_integer


def _make_exact_array_converter(element: SqlType) -> Convert:
    read_item = _make_exact_value_converter(element)

    def convert_exact_array(value: Any) -> Any:
        if type(value) is not list and type(value) is not tuple:
            return _convert_unusual_value(value, array_of(element))
        return [None if item is None else read_item(item) for item in value]

    return convert_exact_array


def _convert_unusual_value(value: Any, sql_type: SqlType) -> Any:
    plain = convert_to_plain_value(value)
    if isinstance(plain, str):
        return _cast_value(require_text(plain), UNKNOWN, sql_type)
    given = infer_sql_type(value)
    if given == UNTYPED_LIST:
        items = [None if item is None else convert_to_plain_value(item) for item in value]
        text = format_array(items, str)
        return _cast_value(require_text(text), UNKNOWN, sql_type)
    both_whole = given.kind in _RANGES and sql_type.kind in _RANGES
    if given.kind is sql_type.kind and given.element is None and not both_whole:
        return _convert_to_sql_value(plain, given)
    if both_whole:
        low, high = _RANGES[sql_type.kind]
        if low <= plain <= high:
            return plain
    raise ParameterTypesDiffer
