"""Additions of a view's rows to its state, by the fastest method that is exact.

1. Spark's own aggregates (`pipeline.aggregate.spark_sums`): every group once, with its amounts.
2. Arrow columns in the tasks (`pipeline.aggregate.arrow_sums`): what each task adds to each key.
3. Row by row in the tasks: where each row must be evaluated separately.

The additions of tasks (2 and 3) must be exchanged by key and summed once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from belvedere.catalog.relation_codecs import compiled_view
from belvedere.errors import Error
from belvedere.execution.spark.dataframes import TypedFrame
from belvedere.execution.spark.lower import SparkLowering
from belvedere.execution.spark.operators import TaskFailure
from belvedere.execution.spark.types import NotNative, to_values
from belvedere.pipeline.aggregate.additions import SCHEMA, SumRecorder, encode_nonzero_sums
from belvedere.pipeline.aggregate.arrow_sums import plan_arrow_sums
from belvedere.pipeline.aggregate.spark_sums import (
    GroupTotals,
    TotalsEncoder,
    build_spark_group_totals,
)
from belvedere.pipeline.store.tables import Batches, decode_catalog
from belvedere.types import Row, SqlType
from belvedere.views.codegen.row_entries import (
    compile_row_entry_function,
    rows_to_weighted_entries,
)
from belvedere.views.delta.linear_aggregates import AggregateGrouping


class StateAdditions(NamedTuple):
    """`build_spark_group_totals` where Spark's aggregates sum, else `added`: columns key and value.
    `how` says which, and why, for EXPLAIN."""

    view: int
    totals: GroupTotals | None
    added: DataFrame | None
    how: str


def plan_state_additions(
    lowering: SparkLowering,
    frame: TypedFrame,
    view: int,
    objects: tuple[bytes, ...],
    group: AggregateGrouping | None,
    *,
    weighted: bool = False,
) -> StateAdditions:
    """Plan the additions of a frame of rows to a view's state. `weighted`: the last column of the
    rows is their weight, 1 or -1."""
    try:
        made = build_spark_group_totals(lowering, frame, group, weighted=weighted)
        return StateAdditions(view, made, None, "[spark] added up by Spark's aggregates")
    except NotNative as found:
        reason = found.reason
    try:
        whole, step = plan_arrow_sums(lowering, frame, view, objects, group, weighted=weighted)
        how = f"[python] added up over whole Arrow columns: {reason}"
        return StateAdditions(view, None, whole.data.mapInArrow(step, SCHEMA), how)
    except NotNative as found:
        rows = RowSumTask(view, objects, group, frame.types, frame.names, weighted)
        how = f"[python] added up row by row: {reason}; {found.reason}"
        return StateAdditions(view, None, frame.data.mapInArrow(rows, SCHEMA), how)


@dataclass(frozen=True, slots=True)
class RowSumTask:
    """In a task: sums what rows of a view's tree add to its state, row by row."""

    view: int
    objects: tuple[bytes, ...]
    group: Any
    types: tuple[SqlType, ...]
    names: tuple[str, ...]
    weighted: bool = False

    def __call__(self, batches: Batches) -> Batches:
        catalog = decode_catalog(self.objects)
        stored = compiled_view(catalog, self.view)
        entry_of = compile_row_entry_function(catalog, self.group)
        sums: dict[Row, list[int]] = {}
        try:
            for batch in batches:
                for group, amounts, weight in rows_to_weighted_entries(
                    entry_of, self._decode_weighted_rows(batch)
                ):
                    known = sums.get(group)
                    if known is None:
                        known = sums[group] = [0] * len(amounts)
                    for at, amount in enumerate(amounts):
                        known[at] += amount * weight
        except Error as error:
            raise TaskFailure(error) from None
        recorder = SumRecorder()  # groups that are one key and look different meet here
        for group, total in sums.items():
            recorder.add(stored.key.encode(group), stored.payload.encode(group), tuple(total))
        yield from encode_nonzero_sums(recorder.sums)

    def _decode_weighted_rows(self, batch: pa.RecordBatch) -> Iterator[tuple[Row, int]]:
        columns = [to_values(batch.column(name), one) for name, one in zip(self.names, self.types)]
        weights = columns.pop() if self.weighted else [1] * batch.num_rows
        rows = zip(*columns) if columns else iter([()] * batch.num_rows)
        return zip(rows, weights)


@dataclass(frozen=True, slots=True)
class TotalsEncodeTask:
    """In the task that owns these groups: encodes Spark's totals as keys and values of state."""

    objects: tuple[bytes, ...]
    encoder: TotalsEncoder

    def __call__(self, batches: Batches) -> Batches:
        catalog = decode_catalog(self.objects)
        for batch in batches:
            try:
                keys, values = self.encoder.encode_state_entries(catalog, batch)
            except Error as error:
                raise TaskFailure(error) from None
            arrays = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, names=["key", "value"])
