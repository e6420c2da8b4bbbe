"""The state of a view at another position of the log than the one at which it is stored.

A view is stored at one position only. But its state is a sum, and what a range of the log adds to
it can be computed (`pipeline.maintain.batch`). So, for a view at position 120:

    state at  90  =  stored state  -  what (90, 120] added
    state at 150  =  stored state  +  what (120, 150] will add

A stored state that is wrong at 120 is wrong in the same rows at 90. The log must reach back to the
earlier position, and the definitions of view and tables must be the same throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.codec import accumulator
from belvedere.errors import Error, InvalidInput
from belvedere.execution.spark.operators import TaskFailure
from belvedere.pipeline.aggregate.additions import (
    SCHEMA,
    encode_nonzero_sums,
    sum_encoded_additions,
)
from belvedere.pipeline.maintain import batch as deltas
from belvedere.pipeline.store.client import PositionLease, Store
from belvedere.pipeline.store.store_copy import StoreCopy
from belvedere.pipeline.store.tables import (
    Batches,
    DefinitionCompiler,
    decode_catalog,
    fetch_encoded_catalog,
)


class StateMove(NamedTuple):
    """From the position of the stored state (`at`) to the requested one (`wanted`)."""

    at: int
    wanted: int

    @property
    def log_range(self) -> tuple[int, int]:
        return min(self), max(self)

    @property
    def is_to_earlier_position(self) -> bool:
        return self.wanted < self.at


def require_same_definition(
    store: Store, lease: PositionLease, catalog: Catalog, view: View
) -> None:
    """Refuse a position at which the view or its tables had another definition."""
    then = decode_catalog(fetch_encoded_catalog(store, lease))
    for id_ in (view.id, *view.inputs):
        item, known = then.get(id_), catalog.get(id_)
        if item is None or known is None or item.version != known.version:
            raise InvalidInput(
                "the view was another at this position",
                sqlstate="22023",
                view=view.name,
                position=lease.position,
                hint="name a position after the view was filled and its tables were altered",
            )


def create_range_batch_inputs(
    spark: SparkSession,
    store: Store,
    view: int,
    objects: tuple[bytes, ...],
    definitions: DefinitionCompiler,
    move: StateMove,
    tasks: int,
    *,
    columns: bool,
) -> deltas.BatchInputs:
    """The batch that computes what the log between the two positions adds to the view."""
    start, end = move.log_range
    return deltas.BatchInputs(
        spark, store, start, end, (view,), objects, definitions, tasks, columns=columns
    )


def needs_checkpoint_for_batch(inputs: deltas.BatchInputs) -> bool:
    return deltas.needs_unchanged_rows(inputs, deltas.choose_views_summed_in_columns(inputs))


def build_rows_frame_at_position(
    state: DataFrame,
    inputs: deltas.BatchInputs,
    move: StateMove,
    copy: StoreCopy | None,
    parts: int,
    rows: Callable[[Batches], Batches],
    schema: str,
) -> DataFrame:
    """The view's rows at the wanted position: `state` has the stored keys and values, and `rows`
    turns the values of a state into rows."""
    found = deltas.build_additions_frame(
        inputs._replace(checkpoint=copy), deltas.choose_views_summed_in_columns(inputs)
    )
    if move.is_to_earlier_position:
        found = found.mapInArrow(negate_additions_in_task, SCHEMA)
    both = state.union(found).repartition(parts, f.col("key"))
    return both.mapInArrow(StateSumTask(rows), schema)


def negate_additions_in_task(batches: Batches) -> Batches:
    """In a task: negate the amounts of additions."""
    for batch in batches:
        pairs = map(accumulator.decode, batch.column("value").to_pylist())
        values = [accumulator.encode(p, tuple([-one for one in some])) for p, some in pairs]
        arrays = [batch.column("key"), pa.array(values, pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, names=["key", "value"])


@dataclass(frozen=True, slots=True)
class StateSumTask:
    """In the task that owns these keys: sums stored state and additions, and makes rows of them."""

    rows: Callable[[Batches], Batches]

    def __call__(self, batches: Batches) -> Batches:
        try:
            sums = sum_encoded_additions(batches).sums
            yield from self.rows(encode_nonzero_sums(sums))
        except Error as error:
            raise TaskFailure(error) from None
