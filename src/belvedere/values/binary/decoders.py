"""Values from PostgreSQL's binary form: the inverse of `encoders`.

Nothing of what a client sends is trusted: a wrong length is 22P03, a value out of a type's range
22008 or 22003.
"""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from belvedere.errors import InvalidInput, Unsupported
from belvedere.types import Interval, Kind, SqlType
from belvedere.values.binary.encoders import (
    MICROSECOND,
    NUMERIC_INFINITY,
    NUMERIC_MINUS_INFINITY,
    NUMERIC_NAN,
    PG_DATE,
    PG_EPOCH,
    PG_EPOCH_UTC,
)
from belvedere.values.datetime_text import time_from_microseconds
from belvedere.values.texts import parse_json, require_text
from belvedere.values.type_oids import find_parameter_type

Decode = Callable[[bytes], Any]

_NUMERIC_HEADER = struct.Struct("!HhHH")
_ARRAY_HEADER = struct.Struct("!iiI")
_PAIR = struct.Struct("!ii")
_INT32 = struct.Struct("!i")
_DAY_US = 86_400_000_000


def make_binary_decoder(sql_type: SqlType) -> Decode:
    if sql_type.element is not None:
        return _make_array_decoder(sql_type.element)
    return BINARY_DECODERS[sql_type.kind]


def _invalid_format() -> InvalidInput:
    return InvalidInput("incorrect binary data format", sqlstate="22P03")


def _out_of_range() -> InvalidInput:
    return InvalidInput("date or time out of range", sqlstate="22008")


def _make_fixed_decoder(form: str) -> Decode:
    layout = struct.Struct(form)

    def decode_fixed(data: bytes) -> Any:
        if len(data) != layout.size:
            raise _invalid_format()
        return layout.unpack(data)[0]

    return decode_fixed


_decode_int4 = _make_fixed_decoder("!i")
_decode_int8 = _make_fixed_decoder("!q")


def _decode_text(data: bytes) -> str:
    try:
        return require_text(data.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "invalid byte sequence for encoding UTF8", sqlstate="22021", at=error.start
        ) from None


def _decode_json(data: bytes) -> str:
    return parse_json(_decode_text(data))


def _decode_boolean(data: bytes) -> bool:
    if len(data) != 1:
        raise _invalid_format()
    return data != b"\0"


def _decode_date(data: bytes) -> datetime.date:
    try:
        return datetime.date.fromordinal(_decode_int4(data) + PG_DATE)
    except (OverflowError, ValueError):
        raise _out_of_range() from None


def _decode_time(data: bytes) -> datetime.time:
    microseconds = _decode_int8(data)
    if not 0 <= microseconds <= _DAY_US:
        raise _out_of_range()
    return time_from_microseconds(microseconds)


def _make_timestamp_decoder(epoch: datetime.datetime) -> Decode:
    def decode_timestamp(data: bytes) -> datetime.datetime:
        try:
            distance: datetime.timedelta = _decode_int8(data) * MICROSECOND
            return epoch + distance
        except OverflowError:
            raise Unsupported("times before the year 1, after 9999 or infinite") from None

    return decode_timestamp


def _decode_interval(data: bytes) -> Interval:
    if len(data) != 16:
        raise _invalid_format()
    microseconds, days, months = struct.unpack("!qii", data)
    return Interval(months, days, microseconds)


def _decode_uuid(data: bytes) -> uuid.UUID:
    if len(data) != 16:
        raise _invalid_format()
    return uuid.UUID(bytes=data)


def decode_numeric(data: bytes) -> Decimal:
    if len(data) < _NUMERIC_HEADER.size:
        raise _invalid_format()
    count, weight, sign, scale = _NUMERIC_HEADER.unpack_from(data)
    if len(data) != _NUMERIC_HEADER.size + 2 * count or scale > 0x3FFF:
        raise _invalid_format()
    if sign in _SPECIAL_NUMERICS:
        return Decimal(_SPECIAL_NUMERICS[sign])
    groups = struct.unpack_from(f"!{count}H", data, _NUMERIC_HEADER.size)
    if sign not in (0, 0x4000) or any(group > 9999 for group in groups):
        raise _invalid_format()
    number = 0
    for group in groups:
        number = number * 10_000 + group
    power = (weight - count + 1) * 4 + scale  # of ten, for a whole number of units of the scale
    number = number * 10**power if power >= 0 else number // 10**-power
    return Decimal((int(sign == 0x4000 and number != 0), tuple(map(int, str(number))), -scale))


_SPECIAL_NUMERICS = {
    NUMERIC_NAN: "NaN",
    NUMERIC_INFINITY: "Infinity",
    NUMERIC_MINUS_INFINITY: "-Infinity",
}

BINARY_DECODERS: dict[Kind, Decode] = {
    Kind.BOOLEAN: _decode_boolean,
    Kind.SMALLINT: _make_fixed_decoder("!h"),
    Kind.INTEGER: _decode_int4,
    Kind.BIGINT: _decode_int8,
    Kind.REAL: _make_fixed_decoder("!f"),
    Kind.DOUBLE: _make_fixed_decoder("!d"),
    Kind.NUMERIC: decode_numeric,
    Kind.CHAR: _decode_text,
    Kind.VARCHAR: _decode_text,
    Kind.TEXT: _decode_text,
    Kind.UNKNOWN: _decode_text,
    Kind.JSON: _decode_json,
    Kind.BYTEA: bytes,
    Kind.DATE: _decode_date,
    Kind.TIME: _decode_time,
    Kind.TIMESTAMP: _make_timestamp_decoder(PG_EPOCH),
    Kind.TIMESTAMPTZ: _make_timestamp_decoder(PG_EPOCH_UTC),
    Kind.INTERVAL: _decode_interval,
    Kind.UUID: _decode_uuid,
    Kind.OID: _make_fixed_decoder("!I"),
}


def _make_array_decoder(element: SqlType) -> Decode:
    decode = BINARY_DECODERS[element.kind]

    def decode_array(data: bytes) -> list[Any]:
        if len(data) < _ARRAY_HEADER.size:
            raise _invalid_format()
        dimensions, _, oid = _ARRAY_HEADER.unpack_from(data)
        found = find_parameter_type(oid)
        if found is not None and found.kind is not element.kind:
            raise InvalidInput("wrong element type", sqlstate="42804", oid=oid)
        if dimensions == 0:
            return []
        if dimensions != 1:
            raise Unsupported("arrays of arrays")
        return [None if item is None else decode(item) for item in _split_items(data)]

    return decode_array


def _split_items(data: bytes) -> Iterator[bytes | None]:
    """The items of an array of one dimension, after their number and the lower bound."""
    try:
        (length, _), at = _PAIR.unpack_from(data, _ARRAY_HEADER.size), _ARRAY_HEADER.size + 8
        for _ in range(length):
            (size,) = _INT32.unpack_from(data, at)
            at += 4 + max(size, 0)
            if size < -1 or at > len(data):
                raise _invalid_format()
            yield None if size == -1 else data[at - size : at]
    except struct.error:
        raise _invalid_format() from None
    if at != len(data):
        raise _invalid_format()
