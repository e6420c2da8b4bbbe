"""Lossless conversion of result rows to Arrow batches and back.

Values without an exact Arrow type are sent as text: NUMERIC, and values of unknown type.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from belvedere.catalog.model import TypeName
from belvedere.codec.arrow.rows_to_arrow import arrow_type
from belvedere.plan.fields import Field, Fields
from belvedere.types import Interval, Kind, Row, SqlType, record_of

FieldDescription = list[Any]
"""Name and type of a field: name, kind, length, precision, scale, and for an array its element."""

_TEXT_KINDS = frozenset({Kind.NUMERIC, Kind.UNKNOWN})


def describe_fields(fields: Fields) -> list[FieldDescription]:
    return [[field.name, *_type_parts(field.type)] for field in fields]


def _type_parts(sql_type: SqlType) -> list[Any]:
    if sql_type.element is not None:
        return [sql_type.kind.value, None, None, None, _type_parts(sql_type.element)]
    if sql_type.items:
        items = [[name, *_type_parts(one)] for name, one in sql_type.items]
        return [sql_type.kind.value, None, None, None, items]
    name = TypeName.from_type(sql_type)
    return [name.kind, name.length, name.precision, name.scale]


def parse_fields(given: Sequence[FieldDescription]) -> Fields:
    return tuple(Field(name, _type_of(parts)) for name, *parts in given)


def _type_of(parts: Sequence[Any]) -> SqlType:
    kind, length, precision, scale, *element = parts
    if kind == Kind.RECORD:
        return record_of((name, _type_of(one)) for name, *one in element[0])
    inner = _type_of(element[0]) if element else None
    return SqlType(Kind(kind), length, precision, scale, inner)


def rows_to_batch(fields: Fields, rows: Sequence[Row]) -> pa.RecordBatch:
    columns = list(zip(*rows)) if rows else [()] * len(fields)
    arrays = [_make_array(values, field.type) for values, field in zip(columns, fields)]
    names = [f"c{i}" for i in range(len(fields))]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _make_array(values: Sequence[Any], sql_type: SqlType) -> pa.Array:
    return pa.array([_encode_value(value, sql_type) for value in values], _wire_type(sql_type))


def _wire_type(sql_type: SqlType) -> pa.DataType:
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return pa.list_(_wire_type(sql_type.element))
    if sql_type.items:
        return pa.struct([(f"f{i}", _wire_type(one)) for i, (_, one) in enumerate(sql_type.items)])
    return pa.utf8() if sql_type.kind in _TEXT_KINDS else arrow_type(sql_type)


def _encode_value(value: Any, sql_type: SqlType) -> Any:
    match value:
        case None:
            return None
        case uuid.UUID():
            return value.bytes
        case Interval():
            return (value.months, value.days, value.microseconds * 1000)
        case tuple() if sql_type.items:
            items = zip(value, sql_type.items)
            return {f"f{i}": _encode_value(one, t) for i, (one, (_, t)) in enumerate(items)}
        case list():
            assert sql_type.element is not None
            return [_encode_value(item, sql_type.element) for item in value]
        case _:
            return str(value) if sql_type.kind in _TEXT_KINDS else value


def bytes_to_batch(data: bytes) -> pa.RecordBatch:
    """One value of any length, as the only row of a batch."""
    return pa.record_batch([pa.array([data], pa.large_binary())], names=["part"])


def batch_to_rows(batch: pa.RecordBatch, fields: Fields) -> Iterator[Row]:
    if not fields:
        return iter([()] * batch.num_rows)
    columns = [
        [_decode_value(value, field.type) for value in column.to_pylist()]
        for column, field in zip(batch.columns, fields)
    ]
    return zip(*columns)


def _decode_value(value: Any, sql_type: SqlType) -> Any:
    if value is None:
        return None
    match sql_type.kind:
        case Kind.UUID:
            return uuid.UUID(bytes=value)
        case Kind.INTERVAL:
            return Interval(value.months, value.days, value.nanoseconds // 1000)
        case Kind.NUMERIC:
            return Decimal(value)
        case Kind.TIMESTAMPTZ:
            return value.astimezone(datetime.UTC)
        case Kind.ARRAY:
            assert sql_type.element is not None
            return [_decode_value(item, sql_type.element) for item in value]
        case Kind.RECORD:
            items = zip(value.values(), sql_type.items)
            return tuple([_decode_value(one, item_type) for one, (_, item_type) in items])
        case _:
            return value
