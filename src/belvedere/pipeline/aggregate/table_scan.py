"""One scan of each table for many views: the task that reads rows also sums them.

For views that use the rows of their tables one by one (`pipeline.aggregate.linear_views`): their
backfill equals a range of the log that inserts every row. Only sums leave a task, and the rows of a
table are read and decoded once, however many views use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from belvedere import failpoints
from belvedere.errors import Error
from belvedere.execution.spark.operators import TaskFailure
from belvedere.pipeline.aggregate.additions import SCHEMA, SumRecorder, encode_sums
from belvedere.pipeline.aggregate.linear_views import prepare_adders
from belvedere.pipeline.store.checkpoint_scan import TableSource
from belvedere.pipeline.store.client import ReadRequest, RelationSplit
from belvedere.pipeline.store.compiled_views import CompiledViews, compile_catalog_views
from belvedere.pipeline.store.tables import (
    Batches,
    DefinitionCompiler,
    create_tasks,
    table_request,
    task_numbers,
)


def sum_tables(
    spark: SparkSession,
    source: TableSource,
    objects: tuple[bytes, ...],
    definitions: DefinitionCompiler,
    views: Sequence[int],
    partitions: int,
) -> list[DataFrame]:
    """Columns key and value, for each table: what its rows add to these views."""
    known = compile_catalog_views(objects, definitions)
    found = []
    for table, rows in prepare_adders(known, views)[1].items():
        relation = table_request(known.catalog, table, rows.slots)
        splits = tuple(source.store.split_relation(relation, source.lease, partitions))
        step = TableSumTask(source, objects, definitions, tuple(views), table, relation, splits)
        found.append(create_tasks(spark, len(splits)).mapInArrow(step, SCHEMA))
    return found


@dataclass(frozen=True, slots=True)
class TableSumTask:
    """In a task: sums what the rows of its key range add to the views."""

    source: TableSource
    objects: tuple[bytes, ...]
    definitions: DefinitionCompiler
    views: tuple[int, ...]
    table: int
    relation: ReadRequest
    splits: tuple[RelationSplit, ...]

    def __call__(self, batches: Batches) -> Batches:
        known = compile_catalog_views(self.objects, self.definitions)
        for number in task_numbers(batches):
            if number >= len(self.splits):
                continue
            if failpoints.armed:
                failpoints.hit("fill.task")
            adders, readers = prepare_adders(known, self.views)
            recorder = SumRecorder()
            try:
                for batch in self._scan_split(known, number):
                    readers[self.table].add_batch(batch, batch.num_rows, 1)
                for adder in adders:
                    adder.write_sums(recorder)
            except Error as error:
                raise TaskFailure(error) from None
            yield from encode_sums(recorder.sums)

    def _scan_split(self, known: CompiledViews, number: int) -> Iterator[pa.RecordBatch]:
        return self.source.scan(known.catalog, self.table, self.relation, self.splits[number])
