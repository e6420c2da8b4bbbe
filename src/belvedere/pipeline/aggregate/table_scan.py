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
from belvedere.pipeline.aggregate.additions import SCHEMA, SumRecorder, encode_nonzero_sums
from belvedere.pipeline.aggregate.linear_views import make_adders_and_feeds
from belvedere.pipeline.store.checkpoint_scan import TableSource
from belvedere.pipeline.store.client import ReadRequest, RelationSplit
from belvedere.pipeline.store.compiled_views import CompiledViews, get_compiled_views
from belvedere.pipeline.store.tables import (
    Batches,
    DefinitionCompiler,
    build_table_read_request,
    create_task_number_frame,
    iterate_task_numbers,
)


def build_table_sum_frames(
    spark: SparkSession,
    source: TableSource,
    objects: tuple[bytes, ...],
    definitions: DefinitionCompiler,
    views: Sequence[int],
    partitions: int,
) -> list[DataFrame]:
    """Columns key and value, for each table: what its rows add to these views."""
    known = get_compiled_views(objects, definitions)
    found = []
    for table, rows in make_adders_and_feeds(known, views)[1].items():
        relation = build_table_read_request(known.catalog, table, rows.slots)
        splits = tuple(source.store.plan_relation_splits(relation, source.lease, partitions))
        step = TableSumTask(source, objects, definitions, tuple(views), table, relation, splits)
        found.append(create_task_number_frame(spark, len(splits)).mapInArrow(step, SCHEMA))
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
        known = get_compiled_views(self.objects, self.definitions)
        for number in iterate_task_numbers(batches):
            if number >= len(self.splits):
                continue
            if failpoints.armed:
                failpoints.hit("fill.task")
            adders, readers = make_adders_and_feeds(known, self.views)
            recorder = SumRecorder()
            try:
                for batch in self._scan_task_split(known, number):
                    readers[self.table].feed_arrow_batch(batch, batch.num_rows, 1)
                for adder in adders:
                    adder.record_group_sums(recorder)
            except Error as error:
                raise TaskFailure(error) from None
            yield from encode_nonzero_sums(recorder.sums)

    def _scan_task_split(self, known: CompiledViews, number: int) -> Iterator[pa.RecordBatch]:
        return self.source.scan_table_split(
            known.catalog, self.table, self.relation, self.splits[number]
        )
