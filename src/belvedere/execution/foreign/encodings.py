"""Values as other users of HBase write them, in cells and in row keys.

    binary    big-endian, as HBase's own clients write them: SMALLINT 2, INTEGER 4, BIGINT 8 bytes;
              REAL 4, DOUBLE PRECISION 8; BOOLEAN 1, where 00 is false; UUID 16; TIMESTAMP and
              TIMESTAMPTZ 8, milliseconds since 1970
    ordered   integers and times with the sign bit flipped, so that bytes are in the order of values
    text      UTF-8: text as it is, any other type as PostgreSQL prints it; BYTEA its bytes

A value may have several forms (007, true as 01 or ff): `comparable` says whether it has just one,
in which case HBase can compare for us.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from belvedere.catalog.foreign_options import BINARY, ORDERED, ForeignColumn
from belvedere.codec import scalars
from belvedere.plan.functions import text_parser
from belvedere.types import BYTEA, NUMERIC, Kind, SqlType

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


class ColumnCodec(NamedTuple):
    """`compares_as` is the type by whose rules bytes are compared; NUMERIC: by none. `signed`: its
    negative values come after the others."""

    encode: Encode
    decode: Decode
    compares_as: SqlType
    signed: bool = False

    @property
    def comparable(self) -> bool:
        return self.compares_as.kind is not Kind.NUMERIC


_FORMATS = {
    Kind.SMALLINT: ">h",
    Kind.INTEGER: ">i",
    Kind.BIGINT: ">q",
    Kind.REAL: ">f",
    Kind.DOUBLE: ">d",
}
_ORDERED_FORMATS = {Kind.SMALLINT: ">H", Kind.INTEGER: ">I", Kind.BIGINT: ">Q"}


def build_codec(column: ForeignColumn) -> ColumnCodec:
    if column.encoding == BINARY:
        return _build_binary_codec(column.type)
    if column.encoding == ORDERED:
        return _build_ordered_codec(column.type)
    return _build_text_codec(column.type)


def _build_binary_codec(type_: SqlType) -> ColumnCodec:
    match type_.kind:
        case Kind.BOOLEAN:
            return ColumnCodec(_refuse_to_encode, _decode_boolean, NUMERIC)
        case Kind.UUID:
            return ColumnCodec(lambda value: value.bytes, _decode_uuid, type_)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            pack = struct.Struct(">q")
            to_ms, of_ms = _make_time_functions(type_)
            return ColumnCodec(
                lambda value: pack.pack(to_ms(value)),
                lambda data: of_ms(pack.unpack(data)[0]),
                type_,
                signed=True,
            )
        case _:
            packer = struct.Struct(_FORMATS[type_.kind])
            is_float = type_.kind in (Kind.REAL, Kind.DOUBLE)
            return ColumnCodec(
                packer.pack, lambda data: packer.unpack(data)[0], type_, signed=not is_float
            )


def _build_ordered_codec(type_: SqlType) -> ColumnCodec:
    packer = struct.Struct(_ORDERED_FORMATS.get(type_.kind, ">Q"))
    half = 1 << (8 * packer.size - 1)
    to_number: Callable[[Any], int] = int
    of_number: Callable[[int], Any] = int
    if type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        to_number, of_number = _make_time_functions(type_)
    return ColumnCodec(
        lambda value: packer.pack(to_number(value) + half),
        lambda data: of_number(packer.unpack(data)[0] - half),
        BYTEA,
    )


def _build_text_codec(type_: SqlType) -> ColumnCodec:
    match type_.kind:
        case Kind.TEXT | Kind.VARCHAR:
            return ColumnCodec(str.encode, bytes.decode, type_)
        case Kind.BYTEA:
            return ColumnCodec(bytes, bytes, type_)
        case _:
            parse = text_parser(type_)
            return ColumnCodec(_refuse_to_encode, lambda data: parse(data.decode()), NUMERIC)


def _make_time_functions(type_: SqlType) -> tuple[Callable[[Any], int], Callable[[int], Any]]:
    zoned = type_.kind is Kind.TIMESTAMPTZ
    to_us = scalars.timestamptz_microseconds if zoned else scalars.timestamp_microseconds
    of_us = scalars.timestamptz_of if zoned else scalars.timestamp_of

    def to_milliseconds(value: Any) -> int:
        whole, rest = divmod(to_us(value), 1000)
        if rest:
            raise ValueError("not a whole millisecond")
        return whole

    return to_milliseconds, lambda milliseconds: of_us(milliseconds * 1000)


def _decode_boolean(data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError("a boolean is one byte")
    return data != b"\x00"


def _decode_uuid(data: bytes) -> Any:
    if len(data) != 16:
        raise ValueError("a UUID is 16 bytes")
    return scalars.uuid_of(data)


def _refuse_to_encode(value: Any) -> bytes:
    raise ValueError("a value of this type has several forms")
