"""The stored state of a view as it was, or will be, at another position of the log.

A view is stored at one position only. But its state only ever adds up, and what a stretch of the
log adds is known (`pipeline.deltas`). So, for a view that is at position 120:

    state at  90  =  stored state  -  what (90, 120] added
    state at 150  =  stored state  +  what (120, 150] will add

A stored state that is wrong at 120 is wrong in the same rows at 90. The log has to reach back so
far, and view and tables have to be the same definitions all along.
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
    """From where the stored state is to where it is wanted."""

    at: int
    wanted: int

    @property
    def stretch(self) -> tuple[int, int]:
        return min(self), max(self)

    @property
    def is_back(self) -> bool:
        return self.wanted < self.at


def require_same(store: Store, lease: Lease, catalog: Catalog, view: View) -> None:
    """Refuse a position at which the view was not what it is."""
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
    """What the stretch between the two positions adds to the view."""
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
    """The rows, as `rows` makes them of the values of a state, of the state at the wanted
    position. `state` has the stored keys and values."""
    found = deltas.build(inputs._replace(checkpoint=copy), deltas.linear_views(inputs))
    if move.is_back:
        found = found.mapInArrow(taken_back, SCHEMA)
    both = state.union(found).repartition(parts, f.col("key"))
    return both.mapInArrow(Summed(rows), schema)


def taken_back(batches: Batches) -> Batches:
    """In a task: the same, with the other sign."""
    for batch in batches:
        pairs = map(accumulator.decode, batch.column("value").to_pylist())
        values = [accumulator.encode(p, tuple([-one for one in some])) for p, some in pairs]
        arrays = [batch.column("key"), pa.array(values, pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, names=["key", "value"])


@dataclass(frozen=True, slots=True)
class Summed:
    """In the task that owns these keys: what is stored and what is added, added up."""

    rows: Callable[[Batches], Batches]

    def __call__(self, batches: Batches) -> Batches:
        try:
            sums = recorded(batches).sums
            yield from self.rows(encoded(sums))
        except Error as error:
            raise Failed(error) from None
