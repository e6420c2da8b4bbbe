"""Generated source of one key column: how each type is encoded as ordered bytes and decoded.

A column is a tag byte and, unless it is NULL, a payload:

| type | payload |
|---|---|
| BOOLEAN | 0 or 1 |
| integers, DATE, TIME, TIMESTAMP, TIMESTAMPTZ | 8 bytes, big-endian, sign flipped |
| REAL, DOUBLE | 8 bytes, IEEE, sign flipped (negative: all bits); -0.0 is 0.0; one NaN, last |
| NUMERIC | `codec.numeric` |
| VARCHAR, TEXT, BYTEA | the bytes (UTF-8), 00 as 00 FF, ended by 00 00 |
| CHAR | the same, without trailing blanks |
| UUID | 16 bytes |
| INTERVAL | its span, 16 bytes, big-endian, sign flipped |

A descending column is the same with every byte inverted, tag included.

Bytes that are longer than the `cut` of the codec, if it has one, are their beginning and a digest
of all of them (`codec.scalars`).

In the source below `{v}` is the value, `{head}` the constant bytes before the payload (tag, and for
the first column the prefix of the codec), `{p}` the position of the payload in `key`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import date
from typing import Any

from belvedere.codec import scalars
from belvedere.codec.numeric import INVERTED, decode_numeric, encode_numeric
from belvedere.codec.scalars import DIGEST_MARK, shorten_value, show_shortened
from belvedere.errors import InvalidInput, Unsupported
from belvedere.types import Kind, SqlType

_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_NAN = 0x7FF8 << 48
_SPAN_SIGN = 1 << 127

_TO_INTEGER = {
    Kind.DATE: "days",
    Kind.TIME: "time_microseconds",
    Kind.TIMESTAMP: "timestamp_microseconds",
    Kind.TIMESTAMPTZ: "timestamptz_microseconds",
}
_FROM_INTEGER = {
    Kind.DATE: "date_of",
    Kind.TIME: "time_of",
    Kind.TIMESTAMP: "timestamp_of",
    Kind.TIMESTAMPTZ: "timestamptz_of",
}

CONSTANTS: dict[str, Any] = {
    name: getattr(scalars, name)
    for name in (
        "boolean",
        "integer",
        "check_float",
        "uuid_of",
        "interval_span",
        "interval_of_span",
        *_TO_INTEGER.values(),
        *_FROM_INTEGER.values(),
    )
} | {
    "DIGEST_MARK": DIGEST_MARK,
    "date": date,
    "shorten_value": shorten_value,
    "show_shortened": show_shortened,
    "INVERTED": INVERTED,
    "encode_numeric": encode_numeric,
    "decode_numeric": decode_numeric,
    "double": struct.Struct(">d").pack,
    "double_of": struct.Struct(">d").unpack,
    "unsigned": struct.Struct(">Q").pack,
    "unsigned_of": struct.Struct(">Q").unpack_from,
    "number_of_bytes": struct.Struct(">Q").unpack,
}


@dataclass(frozen=True, slots=True)
class KeyPartSource:
    """Source to encode and decode one non-NULL column.

    `prepare` are statements that may replace `{v}`; `number` is an expression of an unsigned 64-bit
    payload, or None and then `payload` an expression of the payload's bytes. `read` are statements
    that set `{v}` and advance `p` from the start of the payload to its end.
    """

    prepare: tuple[str, ...]
    read: tuple[str, ...]
    number: str | None = None
    payload: str = ""


def key_part_of(sql_type: SqlType, descending: bool, cut: int | None = None) -> KeyPartSource:
    """The source for a column; refuses types without an order."""
    match sql_type.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return _integer_part(descending)
        case Kind.DATE | Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMPTZ as kind:
            return _time_part(kind, descending)
        case Kind.REAL | Kind.DOUBLE:
            return _float_part(descending)
        case Kind.CHAR | Kind.VARCHAR | Kind.TEXT | Kind.BYTEA:
            return _bytes_part(sql_type, descending, cut)
        case Kind.NUMERIC:
            return _numeric_part(sql_type, descending)
        case Kind.BOOLEAN:
            return _boolean_part(descending)
        case Kind.UUID:
            return _uuid_part(descending)
        case Kind.INTERVAL:
            return _interval_part(descending)
        case Kind.JSON:
            raise InvalidInput(
                "type json has no order and cannot be a key",
                sqlstate="42883",
                hint="use an expression of the document that has a simpler type",
            )
        case _:
            raise Unsupported("key column of this type", type=str(sql_type))


def _integer_part(descending: bool) -> KeyPartSource:
    return KeyPartSource(
        prepare=("if {v}.__class__ is not int: {v} = integer({v})",),
        number=f"{_SIGN - 1} - {{v}}" if descending else f"{{v}} + {_SIGN}",
        read=(_read_signed("{v}", descending), "p += 8"),
    )


def _time_part(kind: Kind, descending: bool) -> KeyPartSource:
    number = f"{_TO_INTEGER[kind]}({{v}})"
    return KeyPartSource(
        prepare=(),
        number=f"{_SIGN - 1} - {number}" if descending else f"{number} + {_SIGN}",
        read=(_read_signed("n", descending), f"{{v}} = {_FROM_INTEGER[kind]}(n)", "p += 8"),
    )


def _read_signed(target: str, descending: bool) -> str:
    if descending:
        return f"{target} = {_SIGN - 1} - unsigned_of(key, p)[0]"
    return f"{target} = unsigned_of(key, p)[0] - {_SIGN}"


def _float_part(descending: bool) -> KeyPartSource:
    # Adding 0.0 turns -0.0 into 0.0 and changes no other value.
    ascending = f"(n ^ {_ALL} if n >> 63 else n | {_SIGN})"
    return KeyPartSource(
        prepare=(
            "if {v}.__class__ is not float: {v} = check_float({v})",
            f"n = number_of_bytes(double({{v}} + 0.0))[0] if {{v}} == {{v}} else {_NAN}",
        ),
        number=f"{ascending} ^ {_ALL}" if descending else ascending,
        read=(
            "n = unsigned_of(key, p)[0]" + (f" ^ {_ALL}" if descending else ""),
            f"{{v}} = double_of(unsigned(n ^ {_SIGN} if n >> 63 else n ^ {_ALL}))[0]",
            "p += 8",
        ),
    )


def _bytes_part(sql_type: SqlType, descending: bool, cut: int | None) -> KeyPartSource:
    is_text = sql_type.kind is not Kind.BYTEA
    strip = '.rstrip(" ")' if sql_type.kind is Kind.CHAR else ""
    pad = f".ljust({sql_type.length})" if sql_type.kind is Kind.CHAR and sql_type.length else ""
    end = r'b"\xff\xff"' if descending else r'b"\0\0"'
    invert = ".translate(INVERTED)" if descending else ""
    shorten = () if cut is None else (f"if len(x) > {cut}: x = shorten_value(x, {cut})",)
    given = f"x.decode(){pad}" if is_text else "x"
    shown = f"show_shortened(x){'' if is_text else '.encode()'}"
    return KeyPartSource(
        prepare=(
            f"x = {{v}}{strip}.encode()" if is_text else "x = {v}",
            r'if 0 in x: x = x.replace(b"\0", b"\0\xff")',
            *shorten,
        ),
        payload=f"x{invert} + {end}",
        read=(
            f"e = key.index({end}, p)",
            f"x = key[p:e]{invert}",
            f"if DIGEST_MARK in x: {{v}} = {shown}",
            "else:",
            r'    if 0 in x: x = x.replace(b"\0\xff", b"\0")',
            f"    {{v}} = {given}",
            "p = e + 2",
        ),
    )


def _numeric_part(sql_type: SqlType, descending: bool) -> KeyPartSource:
    scale = (sql_type.scale or 0) if sql_type.precision is not None else None
    if descending:
        return KeyPartSource(
            prepare=(),
            payload="encode_numeric({v}).translate(INVERTED)",
            read=(f"{{v}}, p = decode_numeric(key.translate(INVERTED), p, {scale})",),
        )
    return KeyPartSource(
        prepare=(),
        payload="encode_numeric({v})",
        read=(f"{{v}}, p = decode_numeric(key, p, {scale})",),
    )


def _boolean_part(descending: bool) -> KeyPartSource:
    true, false = (0xFE, 0xFF) if descending else (0x01, 0x00)
    return KeyPartSource(
        prepare=(),
        payload=rf'(b"\x{true:02x}" if boolean({{v}}) else b"\x{false:02x}")',
        read=(
            f"if key[p] not in ({true}, {false}): raise ValueError",
            f"{{v}} = key[p] == {true}",
            "p += 1",
        ),
    )


def _uuid_part(descending: bool) -> KeyPartSource:
    invert = ".translate(INVERTED)" if descending else ""
    return KeyPartSource(
        prepare=(),
        payload=f"{{v}}.bytes{invert}",
        read=(
            "if len(key) < p + 16: raise ValueError",
            f"{{v}} = uuid_of(key[p:p + 16]{invert})",
            "p += 16",
        ),
    )


def _interval_part(descending: bool) -> KeyPartSource:
    span = (
        f"{_SPAN_SIGN - 1} - interval_span({{v}})"
        if descending
        else f"interval_span({{v}}) + {_SPAN_SIGN}"
    )
    number = 'int.from_bytes(key[p:p + 16], "big")'
    back = f"{_SPAN_SIGN - 1} - {number}" if descending else f"{number} - {_SPAN_SIGN}"
    return KeyPartSource(
        prepare=(),
        payload=f'({span}).to_bytes(16, "big")',
        read=(
            "if len(key) < p + 16: raise ValueError",
            f"{{v}} = interval_of_span({back})",
            "p += 16",
        ),
    )
