"""Arrow columns to view state, for fills: the same keys and values as `KeyCodec.encode`,
`RowLayout.encode` and `codec.accumulator` give row by row.

    keys      parts of fixed width (the tag and the eight bytes of an integer) are one matrix;
              Arrow joins it with the bytes of text columns
    values    the head with the amounts is one matrix, joined with the payload

Integers, dates, timestamps, TEXT and VARCHAR have keys here, and amounts of eight bytes a value. A
caller encodes all others row by row: None stands for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.codec.arrow.arrow_to_rows import Bytes, matrix_to_binary, split_binary
from belvedere.codec.arrow.exact_kinds import EIGHT_BYTE_KINDS, TEXT_KINDS
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.types import Kind

Integers = npt.NDArray[np.int64]

_WIDE = pa.large_binary()
_NOTHING = pa.scalar(b"", _WIDE)
_ARROW_TYPES = {
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
}
"""Of EIGHT_BYTE_KINDS."""

_SIGN = np.uint64(1 << 63)
_HEAD = np.dtype([("form", "u1"), ("amounts", "<u2"), ("payload", "<u4")])


def arrow_to_keys(codec: KeyCodec, columns: Sequence[pa.Array]) -> pa.Array | None:
    """The keys of these columns as a binary array; None where a column has no form here."""
    if not columns or len(columns) != len(codec.columns):
        return None
    if codec.long is not None and _has_long_value(columns, codec.long.entry_bytes):
        return None
    parts: list[pa.Array] = []
    fixed = [np.tile(np.frombuffer(codec.prefix, np.uint8), (len(columns[0]), 1))]
    for column, array in zip(codec.columns, columns):
        if column.type.kind in EIGHT_BYTE_KINDS and not array.null_count:
            fixed.append(_encode_integers(column, array))
            continue
        part = _encode_column(column, array)
        if part is None:
            return None
        parts += [matrix_to_binary(np.hstack(fixed))] if fixed else []
        parts.append(part)
        fixed = []
    parts += [matrix_to_binary(np.hstack(fixed))] if fixed else []
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _NOTHING)


def _has_long_value(columns: Sequence[pa.Array], limit: int) -> bool:
    """Whether a key may keep a text of these columns by its digest."""
    return any(
        (pc.max(pc.binary_length(array)).as_py() or 0) > limit
        for array in columns
        if pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    )


def _encode_column(column: KeyColumn, array: pa.Array) -> pa.Array | None:
    """A column with NULLs, or of text, with its tags."""
    if column.type.kind in EIGHT_BYTE_KINDS:
        found = matrix_to_binary(_encode_integers(column, array))
    elif column.type.kind in TEXT_KINDS and not column.descending:
        data = array.cast(pa.large_utf8()).cast(_WIDE)
        if pc.any(pc.match_substring(data, b"\0")).as_py():
            return None
        ends = pa.scalar(b"\0\0", _WIDE)
        tag = pa.scalar(column.value_tag, _WIDE)
        found = pc.binary_join_element_wise(tag, data, ends, _NOTHING)
    else:
        return None
    if not array.null_count:
        return found
    return pc.if_else(array.is_null(), pa.scalar(column.null_tag, _WIDE), found)


def _encode_integers(column: KeyColumn, array: pa.Array) -> Bytes:
    """Tag and payload of each value; anything where it is NULL."""
    plain = array.cast(_ARROW_TYPES[column.type.kind])
    width = plain.type.bit_width
    numbers = plain.view(f"int{width}").cast(pa.int64()).fill_null(0).to_numpy()
    ordered = numbers.view(np.uint64) ^ _SIGN
    if column.descending:
        ordered = ~ordered
    found = np.empty((len(array), 9), np.uint8)
    found[:, 0] = column.value_tag[0]
    found[:, 1:] = ordered.astype(">u8").view(np.uint8).reshape(-1, 8)
    return found


def encode_state_values(payloads: pa.Array, amounts: Integers) -> pa.Array:
    """The values of states with these payloads, and these amounts, a line of the matrix each."""
    count, width = amounts.shape
    head = np.zeros(count, _HEAD)
    head["amounts"] = width
    head["payload"] = pc.binary_length(payloads).to_numpy()
    heads = np.hstack(
        [
            head.view(np.uint8).reshape(count, _HEAD.itemsize),
            np.ascontiguousarray(amounts, "<i8").view(np.uint8).reshape(count, 8 * width),
        ]
    )
    return pc.binary_join_element_wise(matrix_to_binary(heads), payloads, _NOTHING)


def sort_pairs(keys: pa.Array, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Keys in order, with their values."""
    order = pc.sort_indices(keys)
    return keys.take(order), values.take(order)


def split_into_pairs(
    keys: pa.Array, values: pa.Array, rows: int
) -> Iterator[list[tuple[bytes, bytes]]]:
    """Keys and values as lists of at most so many pairs."""
    for start in range(0, len(keys), rows):
        some = [split_binary(one.slice(start, rows)) for one in (keys, values)]
        yield list(zip(*some, strict=True))
