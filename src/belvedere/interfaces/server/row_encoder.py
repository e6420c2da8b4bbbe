"""Result rows as messages: RowDescription, and a DataRow each.

A client chooses text or binary for each column. Both messages of a result are made for its
description once, and kept for all clients: the RowDescription as bytes, and two encoders of rows.

    few rows    generated code for one row, without a loop over its values
    many rows   a column at a time, by functions that loop in C; then all parts are joined at once

A result that has Arrow columns is sent by these: `table_encoder`.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import operator
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from belvedere.codec.compile import compile_function
from belvedere.errors import InvalidInput
from belvedere.interfaces.server.messages import build_message, pack_int16, pack_int32, pack_text
from belvedere.interfaces.server.value_encoders import encode_integer, make_text_encoder
from belvedere.plan.fields import ColumnOrigins, Fields
from belvedere.session.context.result import Result
from belvedere.types import Row
from belvedere.values.binary.encoders import Encode, make_binary_encoder
from belvedere.values.type_oids import FIRST_OBJECT_OID, find_length, find_modifier, find_oid

TEXT_FORMAT, BINARY_FORMAT = 0, 1
_FIELD = struct.Struct("!IhIhih")
_NULL = b"\xff\xff\xff\xff"
_LENGTHS = tuple(pack_int32(length) for length in range(4096))
"""Lengths as they are sent, of values and rows of usual size."""
FEW_ROWS = 4
CHUNK_ROWS = 2_000
"""Rows that are encoded together: what is sent is gathered in parts of about this many."""
DESCRIPTIONS_MAX = 1_000

if TYPE_CHECKING:
    import pyarrow as pa

    from belvedere.interfaces.server.table_encoder import TableEncoder

EncodeColumn = Callable[[Sequence[Any]], list[bytes]]


class RowFormat:
    """How rows of one description are sent: `description` is its RowDescription."""

    __slots__ = ("_count", "_encode_columns", "_encode_row", "_make_table_encoder", "description")

    def __init__(
        self,
        description: bytes,
        encoders: Sequence[Encode],
        make_table_encoder: Callable[[], TableEncoder],
    ) -> None:
        self.description = description
        self._make_table_encoder = make_table_encoder
        self._count = pack_int16(len(encoders))
        self._encode_row = _compile_row_encoder(encoders)
        self._encode_columns = [_make_column_encoder(encode) for encode in encoders]

    def encode_rows(self, rows: Sequence[Row]) -> Iterable[bytes]:
        """The DataRows, in parts."""
        if len(rows) <= FEW_ROWS or not self._encode_columns:
            return map(self._encode_row, rows)
        starts = range(0, len(rows), CHUNK_ROWS)
        return (self._encode_chunk(rows[start : start + CHUNK_ROWS]) for start in starts)

    def encode_result(self, result: Result) -> Iterable[bytes]:
        """The DataRows of a result, by its Arrow columns if it has them."""
        if result.table is None or result.rows or not self._encode_columns:
            result.convert_arrow_to_rows()
            return self.encode_rows(result.rows)
        return self._make_table_encoder().encode_table(result.table)

    def encode_part(self, part: pa.Table | list[Row]) -> Iterable[bytes]:
        """The DataRows of a part of a stream."""
        if isinstance(part, list):
            return self.encode_rows(part)
        return self._make_table_encoder().encode_table(part)

    def _encode_chunk(self, rows: Sequence[Row]) -> bytes:
        """Header, then length and bytes of each value: every list of parts has one of each row."""
        width = 3 + 2 * len(self._encode_columns)
        parts: list[bytes] = [b"D"] * (width * len(rows))
        parts[2::width] = [self._count] * len(rows)
        totals: Iterable[int] = [6 + 4 * len(self._encode_columns)] * len(rows)
        for place, (encode, column) in enumerate(zip(self._encode_columns, zip(*rows))):
            at = 3 + 2 * place
            if None in column:
                data = [b""] * len(rows)
                held = [i for i, value in enumerate(column) if value is not None]
                for i, one in zip(held, encode([column[i] for i in held])):
                    data[i] = one
                sizes = list(map(len, data))
                lengths = _pack_lengths(sizes)
                for i, value in enumerate(column):
                    if value is None:
                        lengths[i] = _NULL
            else:
                data = encode(column)
                sizes = list(map(len, data))
                lengths = _pack_lengths(sizes)
            parts[at::width], parts[at + 1 :: width] = lengths, data
            totals = map(operator.add, totals, sizes)
        parts[1::width] = _pack_lengths(list(totals))
        return b"".join(parts)


def _pack_lengths(sizes: list[int]) -> list[bytes]:
    if max(sizes) < len(_LENGTHS):
        return list(map(_LENGTHS.__getitem__, sizes))
    return list(map(pack_int32, sizes))


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


def build_row_description(fields: Fields, formats: Sequence[int], origins: ColumnOrigins) -> bytes:
    parts = [pack_int16(len(fields))]
    for field, code, origin in zip(fields, formats, origins or itertools.repeat(None)):
        one = field.type
        table, number = (
            (0, 0) if origin is None else (FIRST_OBJECT_OID + origin.relation, origin.number)
        )
        shape = _FIELD.pack(
            table, number, find_oid(one), find_length(one), find_modifier(one), code
        )
        parts += (pack_text(field.name), shape)
    return build_message(b"T", b"".join(parts))


@functools.lru_cache(DESCRIPTIONS_MAX)
def make_row_format(
    fields: Fields, formats: tuple[int, ...], zone: datetime.tzinfo, origins: ColumnOrigins = ()
) -> RowFormat:
    """How rows of these fields are sent to a client that wants these formats."""
    encoders = [
        make_binary_encoder(field.type) if code else make_text_encoder(field.type, zone)
        for field, code in zip(fields, formats)
    ]
    make_table_encoder = functools.partial(_make_table_encoder, fields, formats, encoders)
    return RowFormat(build_row_description(fields, formats, origins), encoders, make_table_encoder)


def _make_table_encoder(
    fields: Fields, formats: tuple[int, ...], encoders: Sequence[Encode]
) -> TableEncoder:
    from belvedere.interfaces.server.table_encoder import TableEncoder  # heavy

    return TableEncoder(fields, formats, encoders)


def make_text_row_format(
    fields: Fields, zone: datetime.tzinfo, origins: ColumnOrigins
) -> RowFormat:
    return make_row_format(fields, (TEXT_FORMAT,) * len(fields), zone, origins)


def _make_column_encoder(encode: Encode) -> EncodeColumn:
    if encode is encode_integer:  # all numbers in one conversion
        return lambda values: (b"%d " * len(values) % tuple(values)).split()
    return lambda values: list(map(encode, values))


def _compile_row_encoder(encoders: Sequence[Encode]) -> Callable[[Row], bytes]:
    """Straight code for one row. A value that is NULL has no bytes, and -1 as its length."""
    names = [f"v{place}" for place in range(len(encoders))]
    lines = [f"{', '.join(names)}, = row"] if names else []
    for name in names:
        lines += [
            f"if {name} is None: {name}, n{name} = b'', NULL",
            "else:",
            f"    {name} = encode_{name}({name})",
            f"    n{name} = len({name}).to_bytes(4, 'big')",
        ]
    values = "".join(f" + n{name} + {name}" for name in names)
    lines += [
        f"body = COUNT{values}",
        "return b'D' + (len(body) + 4).to_bytes(4, 'big') + body",
    ]
    space: dict[str, Any] = {f"encode_{name}": one for name, one in zip(names, encoders)}
    space |= {"NULL": _NULL, "COUNT": pack_int16(len(encoders))}
    return compile_function("encode_row", "row", lines, space)
