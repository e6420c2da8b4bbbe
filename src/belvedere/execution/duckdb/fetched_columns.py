"""The columns of one table in memory, each fetched from the store when a statement first reads it.

For stores that send single columns (`txn.scan_request`): a statement waits for its own columns, not
for all of every row. All columns are as of one position, that of the reader which the first of them
was fetched with, so that the same place in two of them is the same row whenever they were fetched.
What has happened since is for the copy (`columnar_copy`) to add.

Invariant: fetched columns never change, so a reader may hold on to them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pyarrow as pa

from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.errors import Corruption
from belvedere.execution.run import Run
from belvedere.txn.contracts import Reader
from belvedere.txn.scan_request import NarrowReader, ScanRequest, narrow_scans


class FetchedColumns:
    def __init__(self, compiled: CompiledTable, reader: Reader) -> None:
        """`reader` is kept, and read from later."""
        self._compiled = compiled
        self._reader = reader
        self._arrays: dict[int, pa.ChunkedArray] = {}
        self._fetching = threading.Lock()
        self.rows = 0

    @property
    def size_bytes(self) -> int:
        return sum(array.nbytes for array in tuple(self._arrays.values()))

    @property
    def decoded_count(self) -> int:
        """How many columns are here."""
        return len(self._arrays)

    def has_slots(self, slots: Sequence[int]) -> bool:
        return self._arrays.keys() >= {*slots}

    def drop_columns(self) -> None:
        """Frees the columns; they can be fetched again."""
        self._arrays = {}

    def fetch_slots(self, slots: Sequence[int], run: Run, bytes_max: int) -> bool:
        """Fetches those of these slots, and of the primary key, that are not here; False when they
        are too large. Unsupported when Arrow cannot represent a value; Unavailable when the store
        no longer has what rows were at the position."""
        with self._fetching:
            wanted = dict.fromkeys([*self._compiled.table.primary_key, *slots])
            missing = tuple(slot for slot in wanted if slot not in self._arrays)
            if not missing:
                return True
            request = ScanRequest(self._compiled.table.id, missing)
            narrowed = narrow_scans(self._reader, request)
            assert narrowed is not None
            return self._fetch_columns(narrowed, missing, run, bytes_max)

    def _fetch_columns(
        self, narrowed: NarrowReader, slots: tuple[int, ...], run: Run, bytes_max: int
    ) -> bool:
        batches, size = list[pa.RecordBatch](), self.size_bytes
        for batch in narrowed.scan_columns(self._compiled.start, self._compiled.end):
            run.interrupt.count_rows(batch.num_rows)
            batches.append(batch)
            size += batch.nbytes
            if size > bytes_max:
                return False
        rows = sum(batch.num_rows for batch in batches)
        if self.rows and rows != self.rows:
            raise Corruption("rows as of a position changed", table=self._compiled.table.name)
        self.rows = rows
        if batches:
            table = pa.Table.from_batches(batches)
            found = {slot: table.column(at) for at, slot in enumerate(slots)}
            self._arrays = {**self._arrays, **found}
        return True

    def arrow_table(self, slots: Sequence[int]) -> pa.Table:
        """Columns s0.. of these slots, which are here."""
        arrays = [self._arrays[slot] for slot in slots]
        return pa.Table.from_arrays(arrays, names=[f"s{slot}" for slot in slots])

    def decode_batches(self, slots: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The same as batches."""
        yield from self.arrow_table(slots).to_batches()
