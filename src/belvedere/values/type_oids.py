"""SQL types as the type numbers (OIDs) that PostgreSQL gave them, with length and modifier."""

from __future__ import annotations

from typing import NamedTuple

from belvedere.errors import Unsupported
from belvedere.types import Kind, SqlType, array_of, vector_of

_HEADER_BYTES = 4
"""What PostgreSQL adds to lengths in type modifiers."""


FIRST_OBJECT_OID = 16_384
"""The OID of an object of the catalog is its id after this."""


class WireType(NamedTuple):
    """`length` in bytes, -1 where it varies. `array` is the number of arrays of it."""

    oid: int
    length: int
    array: int


WIRE_TYPES: dict[Kind, WireType] = {
    Kind.BOOLEAN: WireType(16, 1, 1000),
    Kind.BYTEA: WireType(17, -1, 1001),
    Kind.BIGINT: WireType(20, 8, 1016),
    Kind.SMALLINT: WireType(21, 2, 1005),
    Kind.INTEGER: WireType(23, 4, 1007),
    Kind.TEXT: WireType(25, -1, 1009),
    Kind.JSON: WireType(114, -1, 199),
    Kind.REAL: WireType(700, 4, 1021),
    Kind.DOUBLE: WireType(701, 8, 1022),
    Kind.CHAR: WireType(1042, -1, 1014),
    Kind.VARCHAR: WireType(1043, -1, 1015),
    Kind.DATE: WireType(1082, 4, 1182),
    Kind.TIME: WireType(1083, 8, 1183),
    Kind.TIMESTAMP: WireType(1114, 8, 1115),
    Kind.TIMESTAMPTZ: WireType(1184, 8, 1185),
    Kind.INTERVAL: WireType(1186, 16, 1187),
    Kind.NUMERIC: WireType(1700, -1, 1231),
    Kind.UUID: WireType(2950, 16, 2951),
    Kind.OID: WireType(26, 4, 1028),
    Kind.REGCLASS: WireType(2205, 4, 2210),
    Kind.REGTYPE: WireType(2206, 4, 2211),
    Kind.REGNAMESPACE: WireType(4089, 4, 4090),
    Kind.REGPROC: WireType(24, 4, 1008),
    Kind.RECORD: WireType(2249, -1, 2287),
    Kind.UNKNOWN: WireType(25, -1, 1009),  # a result column of no type is text
}

_ARRAY_OIDS = {kind: wire.array for kind, wire in WIRE_TYPES.items()}
VECTOR_OIDS = {Kind.SMALLINT: 22, Kind.OID: 30}
"""Of arrays that count from 0."""
_UNKNOWN_OID = 705
_NAME_OID = 19
_RECEIVED_KINDS = WIRE_TYPES.keys() - {Kind.UNKNOWN, Kind.RECORD}
_KINDS = {WIRE_TYPES[kind].oid: kind for kind in _RECEIVED_KINDS}
_ELEMENTS = {WIRE_TYPES[kind].array: kind for kind in _RECEIVED_KINDS}


def find_oid(sql_type: SqlType) -> int:
    if sql_type.element is not None:
        numbers = VECTOR_OIDS if sql_type.vector else _ARRAY_OIDS
        return numbers[sql_type.element.kind]
    return WIRE_TYPES[sql_type.kind].oid


def find_length(sql_type: SqlType) -> int:
    return -1 if sql_type.element is not None else WIRE_TYPES[sql_type.kind].length


def find_modifier(sql_type: SqlType) -> int:
    """The type modifier, -1 for none."""
    one = sql_type.element or sql_type
    if one.length is not None:
        return one.length + _HEADER_BYTES
    if one.precision is None:
        return -1
    if one.kind is Kind.NUMERIC:
        return (one.precision << 16 | (one.scale or 0)) + _HEADER_BYTES
    if one.kind is Kind.INTERVAL:
        return 0x7FFF << 16 | one.precision
    return one.precision


def find_parameter_type(oid: int) -> SqlType | None:
    """The type that a client declares for a parameter; None: the statement decides."""
    if oid in (0, _UNKNOWN_OID):
        return None
    kind = Kind.TEXT if oid == _NAME_OID else _KINDS.get(oid)
    if kind is not None:
        return SqlType(kind)
    if oid in _ELEMENTS:
        return array_of(SqlType(_ELEMENTS[oid]))
    raise Unsupported("parameter type", oid=oid, hint="send it as text, without a type")


def read_type_oid(oid: int, modifier: int) -> SqlType:
    """The type of an OID and a modifier, as a column's row in the system catalogs has them."""
    for kind, number in VECTOR_OIDS.items():
        if oid == number:
            return vector_of(SqlType(kind))
    if oid in _ELEMENTS:
        return array_of(_read_modifier(_ELEMENTS[oid], modifier))
    return _read_modifier(_KINDS[oid], modifier)


def _read_modifier(kind: Kind, modifier: int) -> SqlType:
    if modifier < 0:
        return SqlType(kind)
    if kind in (Kind.CHAR, Kind.VARCHAR):
        return SqlType(kind, length=modifier - _HEADER_BYTES)
    if kind is Kind.NUMERIC:
        packed = modifier - _HEADER_BYTES
        return SqlType(kind, precision=packed >> 16, scale=packed & 0xFFFF)
    return SqlType(kind, precision=modifier & 0xFFFF)
