"""Result rows as messages: RowDescription, and a DataRow each.

A client chooses text or binary for each column. The encoder of a result is made once and kept with
its statement.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Iterable, Sequence

from belvedere.errors import InvalidInput
from belvedere.interfaces.server.messages import (
    MessageWriter,
    build_message,
    pack_int16,
    pack_text,
)
from belvedere.interfaces.server.value_encoders import make_text_encoder
from belvedere.plan.fields import Fields
from belvedere.types import Row
from belvedere.values.binary.encoders import Encode, make_binary_encoder
from belvedere.values.type_oids import find_length, find_modifier, find_oid

TEXT_FORMAT, BINARY_FORMAT = 0, 1
_FIELD = struct.Struct("!IhIhih")
_ROW = struct.Struct("!cIH")
_NULL = b"\xff\xff\xff\xff"

EncodeRows = Callable[[Iterable[Row], MessageWriter], None]


def expand_formats(codes: Sequence[int], count: int) -> tuple[int, ...]:
    """A format for each column or parameter: none given means text, one is for all."""
    if any(code not in (TEXT_FORMAT, BINARY_FORMAT) for code in codes):
        raise InvalidInput("unknown format code", sqlstate="08P01")
    if len(codes) <= 1:
        return (codes[0] if codes else TEXT_FORMAT,) * count
    if len(codes) != count:
        raise InvalidInput(
            "wrong number of format codes", sqlstate="08P01", wanted=count, given=len(codes)
        )
    return tuple(codes)


def build_row_description(fields: Fields, formats: Sequence[int]) -> bytes:
    parts = [pack_int16(len(fields))]
    for field, code in zip(fields, formats):
        one = field.type
        shape = _FIELD.pack(0, 0, find_oid(one), find_length(one), find_modifier(one), code)
        parts += (pack_text(field.name), shape)
    return build_message(b"T", b"".join(parts))


def make_row_encoder(fields: Fields, formats: Sequence[int], zone: datetime.tzinfo) -> EncodeRows:
    """A function that adds rows of these fields to what is sent."""
    encoders: list[Encode] = [
        make_binary_encoder(field.type) if code else make_text_encoder(field.type, zone)
        for field, code in zip(fields, formats)
    ]
    count = len(encoders)

    def encode_rows(rows: Iterable[Row], writer: MessageWriter) -> None:
        for row in rows:
            parts = [b""]
            for encode, value in zip(encoders, row):
                if value is None:
                    parts.append(_NULL)
                else:
                    data = encode(value)
                    parts.append(len(data).to_bytes(4, "big"))
                    parts.append(data)
            body = b"".join(parts)
            writer.add(_ROW.pack(b"D", len(body) + 6, count) + body)

    return encode_rows
