"""The rows of one table in memory, as they are stored, and the columns somebody has read of them.

A column is made of the stored rows when a statement first reads it, as Arrow, and kept: the first
statement over a table pays for its own columns and no others. DuckDB reads them where they are.

Invariant: nothing here changes once it is made, so that a reader keeps what it was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from belvedere.catalog.relation import CompiledTable
from belvedere.codec.arrow import EncodedRows

DECODERS = 2
"""Threads that make columns at the same time."""


class Columns:
    def __init__(self, compiled: CompiledTable) -> None:
        self._layout = compiled.layout
        self._parts: list[EncodedRows] = []
        self._made: dict[int, pa.ChunkedArray] = {}
        self.rows = 0
        self._stored_bytes = self._made_bytes = 0

    def add(self, values: list[bytes]) -> None:
        part = EncodedRows(self._layout, values)
        self._parts.append(part)
        self.rows += len(part)
        self._stored_bytes += part.size_bytes

    @property
    def size_bytes(self) -> int:
        return self._stored_bytes + self._made_bytes

    @property
    def made(self) -> int:
        """How many columns there are."""
        return len(self._made)

    def forget(self) -> None:
        """Give the columns back; they can be made again."""
        self._made.clear()
        self._made_bytes = 0

    def table(self, slots: Sequence[int]) -> pa.Table:
        """Columns s0.. of these slots. Unsupported when a value has no place in Arrow."""
        missing = [slot for slot in slots if slot not in self._made]
        if missing:
            for slot, chunks in zip(missing, zip(*self._decoded(missing))):
                self._made[slot] = pa.chunked_array(list(chunks))
                self._made_bytes += self._made[slot].nbytes
        arrays = [self._made[slot] for slot in slots]
        return pa.Table.from_arrays(arrays, names=[f"s{slot}" for slot in slots])

    def _decoded(self, slots: list[int]) -> list[list[pa.Array]]:
        """The columns of each part. numpy and Arrow let go of the interpreter's lock."""
        if len(self._parts) == 1:
            return [self._parts[0].columns(slots, narrow=True)]
        with ThreadPoolExecutor(DECODERS, "belvedere-columns") as pool:
            return list(pool.map(lambda part: part.columns(slots, narrow=True), self._parts))

    def batches(self, slots: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The same as batches, made as they are asked for and not kept."""
        names = [f"s{slot}" for slot in slots]
        for part in self._parts:
            yield pa.RecordBatch.from_arrays(part.columns(slots, narrow=True), names=names)
