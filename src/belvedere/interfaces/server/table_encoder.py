"""Arrow columns as DataRow messages, without a Python object for each value.

Integers, booleans and texts become columns of bytes by functions of Arrow; values of other types
are encoded one by one. Then each row is joined of its parts, as lengths and bytes lie in it:

    "D" length count (length bytes)*
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.execution.duckdb.rows import rows_of
from belvedere.interfaces.server.messages import pack_int16
from belvedere.plan.fields import Fields
from belvedere.types import Kind, SqlType
from belvedere.values.binary.encoders import Encode

BATCH_ROWS = 4_000
BATCH_BYTES = 8 * 1024 * 1024
"""About what a batch takes at most: rows are joined a batch at a time."""
ROW_BYTES_MAX = 2**31 - 1
_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.JSON)
_INTEGERS = {Kind.SMALLINT: ">i2", Kind.INTEGER: ">i4", Kind.BIGINT: ">i8"}
_BYTES = pa.large_binary()
_NULL_LENGTH = -1

EncodeArray = Callable[[pa.Array], pa.Array]
"""A column of values to one of bytes, with the same NULLs."""


class TableEncoder:
    """Rows of one description; `encoders` are for single values."""

    def __init__(self, fields: Fields, formats: Sequence[int], encoders: Sequence[Encode]) -> None:
        self._count = pa.scalar(pack_int16(len(fields)), _BYTES)
        self._columns = [
            _choose_encoding(field.type, code, encode)
            for field, code, encode in zip(fields, formats, encoders)
        ]

    def encode_table(self, table: pa.Table) -> Iterator[bytes]:
        """The DataRows, in parts."""
        if not table.num_rows:
            return
        each = max(1, table.nbytes // table.num_rows)
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES // each))
        for batch in table.to_batches(max_chunksize=rows):
            if batch.num_rows:
                yield self._encode_batch(batch)

    def _encode_batch(self, batch: pa.RecordBatch) -> bytes:
        totals = np.full(batch.num_rows, 6 + 4 * len(self._columns), np.int64)
        parts: list[Any] = []
        for encode, column in zip(self._columns, batch.columns):
            data = encode(column)
            lengths = pc.binary_length(data)
            filled = pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
            totals += filled
            if data.null_count:
                filled = pc.fill_null(lengths, _NULL_LENGTH).to_numpy(zero_copy_only=False)
                data = pc.fill_null(data, b"")
            parts += (_pack_numbers(filled, ">i4"), data)
        if int(totals.max()) > ROW_BYTES_MAX:
            raise OverflowError("a row is too long for a message")
        head = (pa.scalar(b"D", _BYTES), _pack_numbers(totals, ">i4"), self._count)
        return _take_bytes(pc.binary_join_element_wise(*head, *parts, pa.scalar(b"", _BYTES)))


def _choose_encoding(sql_type: SqlType, code: int, encode: Encode) -> EncodeArray:
    kind = sql_type.kind
    if kind in _TEXTS:
        return lambda array: array.cast(pa.large_string()).cast(_BYTES)
    if kind in _INTEGERS and code:
        return partial(_encode_binary_integers, _INTEGERS[kind])
    if kind in _INTEGERS:
        return lambda array: array.cast(pa.large_string()).cast(_BYTES)
    if kind is Kind.BOOLEAN:
        true, false = [pa.scalar(encode(value), _BYTES) for value in (True, False)]
        return lambda array: pc.if_else(array, true, false)
    return lambda array: _encode_one_by_one(sql_type, encode, array)


def _encode_binary_integers(form: str, array: pa.Array) -> pa.Array:
    numbers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    packed = _pack_numbers(numbers, form)
    return pc.if_else(array.is_valid(), packed, pa.scalar(None, _BYTES))


def _encode_one_by_one(sql_type: SqlType, encode: Encode, array: pa.Array) -> pa.Array:
    rows = rows_of(pa.table([array], ["column"]), (sql_type,))
    return pa.array([None if value is None else encode(value) for (value,) in rows], _BYTES)


def _pack_numbers(numbers: npt.NDArray[Any], form: str) -> pa.Array:
    """Numbers as bytes of equal length."""
    packed = numbers.astype(form)
    ends = np.arange(0, packed.nbytes + 1, packed.itemsize, dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(packed.tobytes())]
    return pa.Array.from_buffers(_BYTES, len(packed), buffers)


def _take_bytes(joined: pa.Array) -> bytes:
    """All values, one after the other."""
    _, ends, data = joined.buffers()
    at, end = np.frombuffer(ends, np.int64)[[joined.offset, joined.offset + len(joined)]]
    return bytes(memoryview(data)[at:end])
