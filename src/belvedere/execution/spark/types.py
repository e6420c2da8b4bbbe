"""Carrier types: the Spark type that holds the values of each SQL type, lossless both ways.

| type | Spark type | native |
|---|---|---|
| BOOLEAN, integers, REAL, DOUBLE | boolean, smallint, int, bigint, float, double | yes |
| NUMERIC(p <= 38, s) | decimal(p, s) | yes |
| other NUMERIC | string, the digits | carried only |
| CHAR, VARCHAR, TEXT, JSON | string | VARCHAR and TEXT |
| BYTEA, DATE | binary, date | yes |
| TIME | bigint, microseconds of the day | yes |
| TIMESTAMP, TIMESTAMPTZ | timestamp_ntz, timestamp | yes |
| INTERVAL | string "months days microseconds" | carried only |
| UUID | string, whose order is the order of the bytes | yes |
| ARRAY | array of the element's carrier | carried only |

"Native" means that Spark's own equality and order of the carrier are those of the type. NaN has no
decimal: where a NUMERIC(p, s) may hold it, the column is carried as digits.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from belvedere.errors import Unsupported
from belvedere.types import Interval, Kind, SqlType, numeric_type
from belvedere.values.datetimes import EPOCH, EPOCH_UTC
from belvedere.values.decimals import fit_numeric

DECIMAL_DIGITS_MAX = 38
DIGITS = SqlType(Kind.NUMERIC)
"""A NUMERIC that is carried as digits."""

_MICROSECOND = datetime.timedelta(microseconds=1)
_CARRIERS: dict[Kind, tuple[str, pa.DataType]] = {
    Kind.BOOLEAN: ("boolean", pa.bool_()),
    Kind.SMALLINT: ("smallint", pa.int16()),
    Kind.INTEGER: ("int", pa.int32()),
    Kind.BIGINT: ("bigint", pa.int64()),
    Kind.REAL: ("float", pa.float32()),
    Kind.DOUBLE: ("double", pa.float64()),
    Kind.BYTEA: ("binary", pa.binary()),
    Kind.DATE: ("date", pa.date32()),
    Kind.TIME: ("bigint", pa.int64()),
    Kind.TIMESTAMP: ("timestamp_ntz", pa.timestamp("us")),
    Kind.TIMESTAMPTZ: ("timestamp", pa.timestamp("us", "UTC")),
}
_TEXT = ("string", pa.utf8())
NATIVE_KINDS = frozenset(
    {*_CARRIERS, Kind.NUMERIC, Kind.VARCHAR, Kind.TEXT, Kind.UUID} - {Kind.REAL, Kind.DOUBLE}
)
"""Kinds whose equal values are the same bytes in their carrier, so that Spark may group by them."""


class NotNative(Exception):
    """Spark has no exact form of a part of the plan. Never leaves `execution.spark`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SparkExpression:
    """An expression in Spark SQL, with the type whose carrier it has."""

    text: str
    type: SqlType
    null: bool = False  # a NULL constant, which takes any type


def is_decimal(sql_type: SqlType) -> bool:
    """Whether a NUMERIC of this type is a Spark decimal."""
    if sql_type.kind is not Kind.NUMERIC or sql_type.precision is None:
        return False
    return 0 <= (sql_type.scale or 0) <= sql_type.precision <= DECIMAL_DIGITS_MAX


def is_native(sql_type: SqlType) -> bool:
    """Whether Spark may join and group by values of the type."""
    if sql_type.kind is Kind.NUMERIC:
        return is_decimal(sql_type)
    return sql_type.kind in NATIVE_KINDS


def spark_carrier(sql_type: SqlType) -> str:
    """The Spark type of a column of this type."""
    if sql_type.element is not None:
        return f"array<{spark_carrier(sql_type.element)}>"
    if is_decimal(sql_type):
        return f"decimal({sql_type.precision},{sql_type.scale or 0})"
    return _CARRIERS.get(sql_type.kind, _TEXT)[0]


def arrow_carrier(sql_type: SqlType) -> pa.DataType:
    if sql_type.element is not None:
        return pa.list_(arrow_carrier(sql_type.element))
    if is_decimal(sql_type):
        return pa.decimal128(sql_type.precision, sql_type.scale or 0)
    return _CARRIERS.get(sql_type.kind, _TEXT)[1]


# -- columns of values -----------------------------------------------------------------------------


def to_values(column: pa.Array, sql_type: SqlType) -> list[Any]:
    """A carried column as Python values of the type."""
    if sql_type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        column = column.cast(pa.int64())
    if sql_type.element is not None:
        element = sql_type.element
        return [None if not one.is_valid else to_values(one.values, element) for one in column]
    values: list[Any] = column.to_pylist()
    decode = _value_decoder(sql_type)
    if decode is None:
        return values
    return [None if value is None else decode(value) for value in values]


def _value_decoder(sql_type: SqlType) -> Callable[[Any], Any] | None:
    match sql_type.kind:
        case Kind.NUMERIC:
            return None if is_decimal(sql_type) else decimal.Decimal
        case Kind.TIME:
            return lambda value: (EPOCH + datetime.timedelta(microseconds=value)).time()
        case Kind.TIMESTAMP:
            return lambda value: EPOCH + datetime.timedelta(microseconds=value)
        case Kind.TIMESTAMPTZ:
            return lambda value: EPOCH_UTC + datetime.timedelta(microseconds=value)
        case Kind.INTERVAL:
            return lambda value: Interval(*map(int, value.split(" ")))
        case Kind.UUID:
            return uuid.UUID
        case _:
            return None


def to_array(values: list[Any], sql_type: SqlType) -> pa.Array:
    """Python values of the type as a carried column."""
    encode = value_encoder(sql_type)
    if encode is not None:
        values = [None if value is None else encode(value) for value in values]
    try:
        return pa.array(values, arrow_carrier(sql_type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise Unsupported(
            "value has no place in a column of Spark", detail=str(error)[:200], type=str(sql_type)
        ) from error


def value_encoder(sql_type: SqlType) -> Callable[[Any], Any] | None:
    """The function from a Python value to its carried value; None when they are the same."""
    match sql_type.kind:
        case Kind.NUMERIC:
            return _decimal_fitter(sql_type.scale or 0) if is_decimal(sql_type) else str
        case Kind.TIME:
            return _microseconds_of_day
        case Kind.TIMESTAMP:
            return lambda value: (value - EPOCH) // _MICROSECOND
        case Kind.TIMESTAMPTZ:
            return lambda value: (value - EPOCH_UTC) // _MICROSECOND
        case Kind.INTERVAL:
            return lambda value: f"{value.months} {value.days} {value.microseconds}"
        case Kind.UUID:
            return str
        case Kind.ARRAY:
            return _array_encoder(sql_type)
        case _:
            return None


def _decimal_fitter(scale: int) -> Callable[[decimal.Decimal], decimal.Decimal]:
    unit = decimal.Decimal((0, (1,), -scale))
    context = decimal.Context(prec=DECIMAL_DIGITS_MAX, traps=[decimal.Inexact])

    def fit_decimal(value: decimal.Decimal) -> decimal.Decimal:
        if not value.is_finite():
            raise Unsupported("NaN or infinity in a decimal of Spark", value=str(value))
        try:
            return value.quantize(unit, context=context)
        except (decimal.Inexact, decimal.InvalidOperation):
            raise Unsupported("digits beyond a decimal of Spark", value=str(value)[:80]) from None

    return fit_decimal


def _microseconds_of_day(value: datetime.time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def _array_encoder(sql_type: SqlType) -> Callable[[list[Any]], list[Any]] | None:
    assert sql_type.element is not None
    encode = value_encoder(sql_type.element)
    if encode is None:
        return None
    inner = encode
    return lambda items: [None if item is None else inner(item) for item in items]


# -- constants -------------------------------------------------------------------------------------


def lower_constant(value: Any, sql_type: SqlType) -> SparkExpression:
    """A constant as Spark SQL, always of exactly its carrier; a NUMERIC with the digits it has."""
    carried, sql_type = encode_constant(value, sql_type)
    name = spark_carrier(sql_type)
    if value is None:
        return SparkExpression(f"CAST(NULL AS {name})", sql_type, null=True)
    match carried:
        case bool():
            text = "TRUE" if carried else "FALSE"
        case bytes():
            text = f"X'{carried.hex()}'"
        case str():
            text = quote_spark_literal(carried)
        case int() if sql_type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            text = f"CAST({quote_spark_literal(value.isoformat(sep=' '))} AS {name})"
        case _:
            text = f"CAST({quote_spark_literal(_spell_value(carried))} AS {name})"
    return SparkExpression(text, sql_type)


def encode_constant(value: Any, sql_type: SqlType) -> tuple[Any, SqlType]:
    """The carried value of a constant, and the type whose carrier it has."""
    sql_type = _constant_type(value, sql_type)
    encode = value_encoder(sql_type)
    carried = value if value is None or encode is None else encode(value)
    if isinstance(carried, list):
        raise NotNative("an array constant")
    return carried, sql_type


def _constant_type(value: Any, sql_type: SqlType) -> SqlType:
    if sql_type.kind is not Kind.NUMERIC or sql_type.precision is not None:
        return sql_type
    if value is None:
        return numeric_type(1, 0)
    return fit_numeric(value) if value.is_finite() else sql_type


def _spell_value(value: Any) -> str:
    match value:
        case decimal.Decimal():
            return f"{value:f}"
        case float():
            return repr(value)
        case _:
            return str(value)


def quote_spark_literal(text: str) -> str:
    """A text in single quotes as Spark reads it: a backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
