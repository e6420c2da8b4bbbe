"""Lossless conversion of Python values to values that msgpack has, and back: parameters of
statements, and small results.

None, bool, float, str, bytes, lists and integers of 64 bits are sent as they are. Every other value
is a dict of one entry, from the name of its type to what makes it again:

    Decimal("1.50")       {"decimal": "1.50"}
    date(2026, 11, 17)    {"date": "2026-11-17"}
    (1, 2)                {"tuple": [1, 2]}

The type of a parameter takes part in what a statement means, so it crosses too.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from belvedere.errors import InvalidInput
from belvedere.types import Interval

_SENT_AS_IS = frozenset({type(None), bool, float, str, bytes})
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1

_ENCODERS: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = (
    (Interval, "interval", lambda v: [v.months, v.days, v.microseconds]),
    (bool, "bool", bool),
    (int, "integer", str),
    (float, "float", float),
    (str, "text", str),
    (bytes | bytearray | memoryview, "bytes", bytes),
    (decimal.Decimal, "decimal", str),
    (datetime.datetime, "datetime", lambda v: v.isoformat()),
    (datetime.date, "date", lambda v: v.isoformat()),
    (datetime.time, "time", lambda v: v.isoformat()),
    (datetime.timedelta, "timedelta", lambda v: [v.days, v.seconds, v.microseconds]),
    (uuid.UUID, "uuid", lambda v: v.bytes),
    (tuple, "tuple", lambda v: [encode_value(item) for item in v]),
    (list, "list", lambda v: [encode_value(item) for item in v]),
    (dict, "dict", lambda v: [[encode_value(key), encode_value(item)] for key, item in v.items()]),
)
"""A type before those that it is derived from."""

_DECODERS: dict[str, Callable[[Any], Any]] = {
    "interval": lambda v: Interval(*v),
    "bool": bool,
    "integer": int,
    "float": float,
    "text": str,
    "bytes": bytes,
    "decimal": decimal.Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda v: datetime.timedelta(v[0], v[1], v[2]),
    "uuid": lambda v: uuid.UUID(bytes=v),
    "tuple": lambda v: tuple([decode_value(item) for item in v]),
    "list": lambda v: [decode_value(item) for item in v],
    "dict": lambda v: {decode_value(key): decode_value(item) for key, item in v},
}


def encode_value(value: Any) -> Any:
    kind = type(value)
    if kind in _SENT_AS_IS or (kind is int and _INTEGER_MIN <= value <= _INTEGER_MAX):
        return value
    if kind is list:
        return [encode_value(item) for item in value]
    for known, name, encode in _ENCODERS:
        if isinstance(value, known):
            return {name: encode(value)}
    raise InvalidInput("no SQL type for this Python type", sqlstate="42804", type=kind.__name__)


def decode_value(value: Any) -> Any:
    if type(value) is list:
        return [decode_value(item) for item in value]
    if type(value) is not dict:
        return value
    try:
        ((name, content),) = value.items()
        return _DECODERS[name](content)
    except (ValueError, TypeError, KeyError, IndexError, decimal.InvalidOperation) as error:
        raise InvalidInput(
            "not a value of a request", sqlstate="08P01", detail=repr(error)[:200]
        ) from error


def encode_values(values: Sequence[Any]) -> list[Any]:
    return [encode_value(value) for value in values]


def decode_values(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([decode_value(value) for value in values])
