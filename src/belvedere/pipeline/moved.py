"""The state of a view at another position of the log than the one at which it is stored.

A view is stored at one position only. But its state is a sum, and what a range of the log adds to
it can be computed (`pipeline.deltas`). So, for a view at position 120:

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
from belvedere.execution.spark.operators import Failed
from belvedere.pipeline import deltas
from belvedere.pipeline.additions import SCHEMA, encoded, recorded
from belvedere.pipeline.checkpoint import Checkpoint
from belvedere.pipeline.inputs import Batches, Definitions, decoded_catalog, encoded_catalog
from belvedere.pipeline.store import Lease, Store


class Move(NamedTuple):
    """From the position of the stored state (`at`) to the requested one (`wanted`)."""

    at: int
    wanted: int

    @property
    def stretch(self) -> tuple[int, int]:
        return min(self), max(self)

    @property
    def is_back(self) -> bool:
        return self.wanted < self.at


def require_same(store: Store, lease: Lease, catalog: Catalog, view: View) -> None:
    """Refuse a position at which the view or its tables had another definition."""
    then = decoded_catalog(encoded_catalog(store, lease))
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


def stretch_of(
    spark: SparkSession,
    store: Store,
    view: int,
    objects: tuple[bytes, ...],
    definitions: Definitions,
    move: Move,
    tasks: int,
    *,
    columns: bool,
) -> deltas.Inputs:
    """The batch that computes what the log between the two positions adds to the view."""
    start, end = move.stretch
    return deltas.Inputs(
        spark, store, start, end, (view,), objects, definitions, tasks, columns=columns
    )


def needs_checkpoint(inputs: deltas.Inputs) -> bool:
    return deltas.needs_state(inputs, deltas.linear_views(inputs))


def moved(
    state: DataFrame,
    inputs: deltas.Inputs,
    move: Move,
    copy: Checkpoint | None,
    parts: int,
    rows: Callable[[Batches], Batches],
    schema: str,
) -> DataFrame:
    """The view's rows at the wanted position: `state` has the stored keys and values, and `rows`
    turns the values of a state into rows."""
    found = deltas.build(inputs._replace(checkpoint=copy), deltas.linear_views(inputs))
    if move.is_back:
        found = found.mapInArrow(taken_back, SCHEMA)
    both = state.union(found).repartition(parts, f.col("key"))
    return both.mapInArrow(Summed(rows), schema)


def taken_back(batches: Batches) -> Batches:
    """In a task: negate the amounts of additions."""
    for batch in batches:
        pairs = map(accumulator.decode, batch.column("value").to_pylist())
        values = [accumulator.encode(p, tuple([-one for one in some])) for p, some in pairs]
        arrays = [batch.column("key"), pa.array(values, pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, names=["key", "value"])


@dataclass(frozen=True, slots=True)
class Summed:
    """In the task that owns these keys: sums stored state and additions, and makes rows of them."""

    rows: Callable[[Batches], Batches]

    def __call__(self, batches: Batches) -> Batches:
        try:
            sums = recorded(batches).sums
            yield from self.rows(encoded(sums))
        except Error as error:
            raise Failed(error) from None
