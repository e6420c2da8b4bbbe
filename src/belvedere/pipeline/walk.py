"""One scan of each table for many views: the task that reads rows also sums them.

For views that use the rows of their tables one by one (`pipeline.changed`): their backfill equals a
range of the log that inserts every row. Only sums leave a task, and the rows of a table are read
and decoded once, however many views use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from belvedere import failpoints
from belvedere.errors import Error
from belvedere.execution.spark.operators import Failed
from belvedere.pipeline.additions import SCHEMA, SumRecorder, encoded
from belvedere.pipeline.bulk import Source
from belvedere.pipeline.changed import added_up
from belvedere.pipeline.inputs import Batches, Definitions, numbers, tasks, whole_table
from belvedere.pipeline.ready import Ready, ready
from belvedere.pipeline.store import Relation, Split


def table_sums(
    spark: SparkSession,
    source: Source,
    objects: tuple[bytes, ...],
    definitions: Definitions,
    views: Sequence[int],
    partitions: int,
) -> list[DataFrame]:
    """Columns key and value, for each table: what its rows add to these views."""
    known = ready(objects, definitions)
    found = []
    for table, rows in added_up(known, views)[1].items():
        relation = whole_table(known.catalog, table, rows.slots)
        splits = tuple(source.store.splits(relation, source.lease, partitions))
        step = TableSums(source, objects, definitions, tuple(views), table, relation, splits)
        found.append(tasks(spark, len(splits)).mapInArrow(step, SCHEMA))
    return found


@dataclass(frozen=True, slots=True)
class TableSums:
    """In a task: sums what the rows of its key range add to the views."""

    source: Source
    objects: tuple[bytes, ...]
    definitions: Definitions
    views: tuple[int, ...]
    table: int
    relation: Relation
    splits: tuple[Split, ...]

    def __call__(self, batches: Batches) -> Batches:
        known = ready(self.objects, self.definitions)
        for number in numbers(batches):
            if number >= len(self.splits):
                continue
            if failpoints.armed:
                failpoints.hit("fill.task")
            adders, readers = added_up(known, self.views)
            recorder = SumRecorder()
            try:
                for batch in self._rows(known, number):
                    readers[self.table].add(batch, batch.num_rows, 1)
                for adder in adders:
                    adder.record(recorder)
            except Error as error:
                raise Failed(error) from None
            yield from encoded(recorder.sums)

    def _rows(self, known: Ready, number: int) -> Iterator[pa.RecordBatch]:
        return self.source.scan(known.catalog, self.table, self.relation, self.splits[number])
