"""Values in PostgreSQL's binary form, as clients and binary COPY have them:

boolean              one byte
smallint .. bigint   2, 4, 8 bytes, big end first
real, double         IEEE 754, big end first
date                 days since 2000-01-01, 4 bytes
time                 microseconds of the day, 8 bytes
timestamp(tz)        microseconds since 2000-01-01 (UTC), 8 bytes
interval             microseconds (8 bytes), days (4), months (4)
numeric              count of digits, weight, sign, scale (2 bytes each), digits base 10,000
uuid, bytea, text    the bytes
array                dimensions, whether it has NULLs, element type, length, lower bound, items
"""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from belvedere.types import NAMED_OBJECT_KINDS, Interval, Kind, SqlType
from belvedere.values.arrays import find_lower_bound
from belvedere.values.type_oids import find_oid

Encode = Callable[[Any], bytes]

PG_DATE = datetime.date(2000, 1, 1).toordinal()
PG_EPOCH = datetime.datetime(2000, 1, 1)
PG_EPOCH_UTC = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
NUMERIC_NAN, NUMERIC_INFINITY, NUMERIC_MINUS_INFINITY = 0xC000, 0xD000, 0xF000
_NUMERIC_HEADER = struct.Struct("!HhHH")
_NULL_ITEM = b"\xff\xff\xff\xff"


def make_binary_encoder(sql_type: SqlType) -> Encode:
    """Values of the type to PostgreSQL's binary form."""
    if sql_type.element is not None:
        return _make_array_encoder(sql_type.element)
    if sql_type.kind is Kind.RECORD:
        return _make_record_encoder(sql_type)
    return BINARY_ENCODERS[sql_type.kind]


def _encode_boolean(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def _encode_date(value: datetime.date) -> bytes:
    return struct.pack("!i", value.toordinal() - PG_DATE)


def _encode_time(value: datetime.time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack("!q", seconds * 1_000_000 + value.microsecond)


def _encode_timestamp(value: datetime.datetime) -> bytes:
    return struct.pack("!q", (value - PG_EPOCH) // MICROSECOND)


def _encode_timestamptz(value: datetime.datetime) -> bytes:
    return struct.pack("!q", (value - PG_EPOCH_UTC) // MICROSECOND)


def _encode_interval(value: Interval) -> bytes:
    return struct.pack("!qii", value.microseconds, value.days, value.months)


def _encode_uuid(value: uuid.UUID) -> bytes:
    return value.bytes


def encode_numeric(value: Decimal) -> bytes:
    """The digits of the value in groups of four, from the point to both sides."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        special = NUMERIC_NAN
        if value.is_infinite():
            special = NUMERIC_MINUS_INFINITY if sign else NUMERIC_INFINITY
        return _NUMERIC_HEADER.pack(0, 0, special, 0)
    text = "".join(map(str, digits)) + "0" * max(exponent, 0)
    scale = max(-exponent, 0)
    whole, fraction = text[: len(text) - scale], text[len(text) - scale :].rjust(scale, "0")
    whole = whole.lstrip("0")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int((whole + fraction)[at : at + 4]) for at in range(0, len(whole + fraction), 4)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        weight, sign = 0, 0
    header = _NUMERIC_HEADER.pack(len(groups), weight, 0x4000 if sign else 0, scale)
    return header + struct.pack(f"!{len(groups)}H", *groups)


BINARY_ENCODERS: dict[Kind, Encode] = {
    Kind.BOOLEAN: _encode_boolean,
    Kind.SMALLINT: struct.Struct("!h").pack,
    Kind.INTEGER: struct.Struct("!i").pack,
    Kind.BIGINT: struct.Struct("!q").pack,
    Kind.REAL: struct.Struct("!f").pack,
    Kind.DOUBLE: struct.Struct("!d").pack,
    Kind.NUMERIC: encode_numeric,
    Kind.CHAR: str.encode,
    Kind.VARCHAR: str.encode,
    Kind.TEXT: str.encode,
    Kind.UNKNOWN: str.encode,
    Kind.JSON: str.encode,
    Kind.BYTEA: bytes,
    Kind.DATE: _encode_date,
    Kind.TIME: _encode_time,
    Kind.TIMESTAMP: _encode_timestamp,
    Kind.TIMESTAMPTZ: _encode_timestamptz,
    Kind.INTERVAL: _encode_interval,
    Kind.UUID: _encode_uuid,
    Kind.OID: struct.Struct("!I").pack,
    **dict.fromkeys(NAMED_OBJECT_KINDS, struct.Struct("!I").pack),
}


def _make_record_encoder(record: SqlType) -> Encode:
    items = [(find_oid(one), make_binary_encoder(one)) for _, one in record.items]

    def encode_record(values: Sequence[Any]) -> bytes:
        parts = [struct.pack("!i", len(items))]
        for value, (oid, encode) in zip(values, items):
            data = None if value is None else encode(value)
            parts.append(struct.pack("!I", oid))
            parts += [_NULL_ITEM] if data is None else [struct.pack("!i", len(data)), data]
        return b"".join(parts)

    return encode_record


def _make_array_encoder(element: SqlType) -> Encode:
    encode, oid = make_binary_encoder(element), find_oid(element)

    def encode_array(values: Sequence[Any]) -> bytes:
        if not values:
            return struct.pack("!iii", 0, 0, oid)
        first = find_lower_bound(values)
        parts = [struct.pack("!iiiii", 1, int(None in values), oid, len(values), first)]
        for value in values:
            if value is None:
                parts.append(_NULL_ITEM)
            else:
                data = encode(value)
                parts += (struct.pack("!i", len(data)), data)
        return b"".join(parts)

    return encode_array
