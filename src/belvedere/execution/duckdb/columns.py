"""The rows of one table in memory, in stored form, with the Arrow columns decoded from them.

A column is decoded to Arrow when a statement first reads it, and cached: the first statement over a
table pays only for its own columns. DuckDB reads the Arrow buffers without a copy.

Invariant: decoded columns never change, so a reader may hold on to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.codec.arrow.rows_to_arrow import EncodedRows

DECODERS = 2
"""Threads that decode columns in parallel."""


class TableColumns:
    def __init__(self, compiled: CompiledTable) -> None:
        self._layout = compiled.layout
        self._parts: list[EncodedRows] = []
        self._arrays: dict[int, pa.ChunkedArray] = {}
        self.rows = 0
        self._stored_bytes = self._array_bytes = 0

    def add_rows(self, values: list[bytes]) -> None:
        part = EncodedRows(self._layout, values)
        self._parts.append(part)
        self.rows += len(part)
        self._stored_bytes += part.size_bytes

    @property
    def size_bytes(self) -> int:
        return self._stored_bytes + self._array_bytes

    @property
    def decoded_count(self) -> int:
        """How many columns are decoded."""
        return len(self._arrays)

    def drop_columns(self) -> None:
        """Frees the decoded columns; they can be decoded again."""
        self._arrays.clear()
        self._array_bytes = 0

    def arrow_table(self, slots: Sequence[int]) -> pa.Table:
        """Columns s0.. of these slots. Unsupported when Arrow cannot represent a value."""
        missing = [slot for slot in slots if slot not in self._arrays]
        if missing:
            for slot, chunks in zip(missing, zip(*self._decode_slots(missing))):
                self._arrays[slot] = pa.chunked_array(list(chunks))
                self._array_bytes += self._arrays[slot].nbytes
        arrays = [self._arrays[slot] for slot in slots]
        return pa.Table.from_arrays(arrays, names=[f"s{slot}" for slot in slots])

    def _decode_slots(self, slots: list[int]) -> list[list[pa.Array]]:
        """The columns of each part, in parallel: numpy and Arrow release the interpreter's lock."""
        if len(self._parts) == 1:
            return [self._parts[0].decode_columns(slots, narrow=True)]
        with ThreadPoolExecutor(DECODERS, "belvedere-columns") as pool:
            return list(pool.map(lambda part: part.decode_columns(slots, narrow=True), self._parts))

    def decode_batches(self, slots: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The same as batches, decoded one by one and not cached."""
        names = [f"s{slot}" for slot in slots]
        for part in self._parts:
            yield pa.RecordBatch.from_arrays(part.decode_columns(slots, narrow=True), names=names)
