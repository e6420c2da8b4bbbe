"""Full table scans from a checkpoint of the store in the tasks themselves, not through its owner.

The owner reads and decodes with one thread, about two million rows a second, whatever the number of
tasks. A checkpoint (`pipeline.store.checkpoint`) costs some milliseconds and is read by any number
of processes at once, each with a core of its own. It is a little newer than the position of the
job's lease: later commits are undone by the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec import keyspace
from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow
from belvedere.pipeline.store.checkpoint import Checkpoint
from belvedere.pipeline.store.client import PositionLease, ReadRequest, RelationSplit, Store
from belvedere.txn.contracts import Reader
from belvedere.txn.history.readers import OverlayReader

BATCH_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class TableSource:
    """Where the tasks of a job read tables at one position: a checkpoint, or the store's owner."""

    store: Store
    lease: PositionLease
    copy: Checkpoint | None = None

    def scan_table_split(
        self, catalog: Catalog, table: int, relation: ReadRequest, split: RelationSplit
    ) -> Iterator[pa.RecordBatch]:
        """In a task: the rows of a split, with the columns that the relation names."""
        if self.copy is None or not split.ranges:  # without ranges only a query finds the rows
            yield from self.store.scan_relation_split(relation, self.lease, split)
            return
        compiled = compiled_table(catalog, table)
        slots = {column.name: column.slot for column in catalog.table(table).columns}
        assert relation.columns is not None, "jobs name their columns"
        wanted = tuple(slots[name] for name in relation.columns)
        with self.copy.open_reader(catalog) as newest:
            reader = self._build_reader_at_lease(newest, table)
            for low, high in split.ranges:
                start, end = max(low, compiled.start), min(high, compiled.end)
                for values in reader.scan_values(start, end, batch_rows=BATCH_ROWS):
                    yield rows_to_arrow(compiled.layout, values, wanted, relation.columns)

    def _build_reader_at_lease(self, newest: Reader, table: int) -> Reader:
        """The checkpoint's table as it was at the position of the lease."""
        assert self.copy is not None
        before: dict[bytes, bytes | None] = {}
        if self.lease.position < self.copy.position:
            prefix = keyspace.row_prefix(table)
            for batch in self.store.read_log(None, self.lease.position, self.copy.position):
                columns = (batch.column(name).to_pylist() for name in ("relation", "key", "old"))
                for relation, key, old in zip(*columns):
                    if relation == table:
                        before.setdefault(prefix + key, old)
        if not before:
            return newest
        return OverlayReader(newest, before, self.lease.position, newest.catalog)
