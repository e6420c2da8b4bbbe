"""Diagnosis of values that could not be encoded.

Compiled encoders do no checks that the common case would pay for. When Python raises inside one,
this module examines the values again, slowly, and reports the first wrong one with its column
position.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal, DecimalException
from typing import Any, NoReturn
from uuid import UUID

from belvedere.codec import scalars
from belvedere.errors import InvalidInput
from belvedere.types import Interval, Kind, SqlType

# Everything that a wrong value can make the compiled code raise.
ENCODE_ERRORS = (
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    struct.error,
    DecimalException,
)
DECODE_ERRORS = (
    LookupError,
    ValueError,
    OverflowError,
    struct.error,
    DecimalException,
)

_CLASSES: dict[Kind, type] = {
    Kind.BOOLEAN: bool,
    Kind.SMALLINT: int,
    Kind.INTEGER: int,
    Kind.BIGINT: int,
    Kind.NUMERIC: Decimal,
    Kind.REAL: float,
    Kind.DOUBLE: float,
    Kind.CHAR: str,
    Kind.VARCHAR: str,
    Kind.TEXT: str,
    Kind.JSON: str,
    Kind.BYTEA: bytes,
    Kind.DATE: date,
    Kind.TIME: time,
    Kind.TIMESTAMP: datetime,
    Kind.TIMESTAMPTZ: datetime,
    Kind.INTERVAL: Interval,
    Kind.UUID: UUID,
}
_STORED_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}


def raise_invalid_value(
    types: Sequence[SqlType], values: Any, *, stored: bool, cause: Exception | None = None
) -> NoReturn:
    """Raise InvalidInput for the first wrong value. `stored`: the column's own limits apply too."""
    if not isinstance(values, tuple | list):
        raise _invalid_input(
            "values must be a tuple", "42804", found=type(values).__name__
        ) from cause
    if len(values) != len(types):
        raise _invalid_input(
            "wrong number of values", "42601", expected=len(types), found=len(values)
        ) from cause
    for column, (sql_type, value) in enumerate(zip(types, values)):
        if value is not None:
            fault = _find_fault(sql_type, value, stored)
            if fault is not None:
                message, sqlstate = fault
                raise _invalid_input(
                    message, sqlstate, column=column, type=str(sql_type)
                ) from cause
    raise _invalid_input("values cannot be encoded", "54000", cause=str(cause)) from cause


def _invalid_input(message: str, sqlstate: str, **facts: Any) -> InvalidInput:
    return InvalidInput(message, sqlstate=sqlstate, **facts)


def _find_fault(sql_type: SqlType, value: Any, stored: bool) -> tuple[str, str] | None:
    kind = sql_type.kind
    if not _has_class(kind, value):
        return "value has the wrong type for its column", "42804"
    match kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            bits = _STORED_BITS[kind] if stored else 64
            return None if _fits_bits(value, bits) else ("integer out of range", "22003")
        case Kind.CHAR | Kind.VARCHAR | Kind.TEXT | Kind.JSON:
            return _text_fault(sql_type, value, stored)
        case Kind.NUMERIC if stored:
            return _numeric_fault(sql_type, value)
        case Kind.REAL if stored:
            return _real_fault(value)
        case Kind.INTERVAL:
            return _interval_fault(value)
        case _:
            return None


def _has_class(kind: Kind, value: Any) -> bool:
    expected = _CLASSES.get(kind)
    if expected is None or not isinstance(value, expected):
        return False
    match kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return not isinstance(value, bool)
        case Kind.DATE:
            return not isinstance(value, datetime)
        case Kind.TIME | Kind.TIMESTAMP:
            return isinstance(value, time | datetime) and value.tzinfo is None
        case Kind.TIMESTAMPTZ:
            return isinstance(value, datetime) and value.tzinfo is not None
        case _:
            return True


def _fits_bits(value: int, bits: int) -> bool:
    return isinstance(value, int) and -(1 << bits - 1) <= value < 1 << bits - 1


def _text_fault(sql_type: SqlType, value: str, stored: bool) -> tuple[str, str] | None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return "text is not valid unicode", "22021"
    length = sql_type.length
    if stored and length is not None:
        kept = value.rstrip(" ") if sql_type.kind is Kind.CHAR else value
        if len(kept) > length:
            return "value too long for its type", "22001"
    return None


def _numeric_fault(sql_type: SqlType, value: Decimal) -> tuple[str, str] | None:
    if not value.is_finite():
        return None
    if sql_type.precision is None:
        try:
            scalars.check_numeric_size(value)
        except OverflowError:
            return "value overflows numeric format", "22003"
        return None
    scale = sql_type.scale or 0
    if value and value.adjusted() >= sql_type.precision - scale:
        return "numeric field overflow", "22003"
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and value and _significant_exponent(value) < -scale:
        return "numeric value has more fractional digits than its type", "22003"
    return None


def _significant_exponent(value: Decimal) -> int:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    zeros = len(digits) - len(bytes(digits).rstrip(b"\0"))
    return exponent + zeros


def _real_fault(value: float) -> tuple[str, str] | None:
    try:
        scalars.real(value)
    except OverflowError:
        return "value is not a 32-bit float", "22003"
    return None


def _interval_fault(value: Interval) -> tuple[str, str] | None:
    fields = (value.months, value.days, value.microseconds)
    if any(isinstance(field, bool) or not isinstance(field, int) for field in fields):
        return "value has the wrong type for its column", "42804"
    if all(_fits_bits(field, width) for field, width in zip(fields, (32, 32, 64))):
        return None
    return "interval out of range", "22008"
