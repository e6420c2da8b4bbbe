"""What a stretch of the log adds to views that take the rows of their tables one by one, by Spark.

Such a view is linear in every change by itself, so nothing has to be looked up and nothing has to
come together before it is added up. The changes are read as Arrow columns: each old row with weight
-1, each new row with weight 1; the view's conditions and columns are lowered over them like those
of any query, and Spark adds up with signs (`pipeline.sums`). One exchange, by the view's groups.

    UPDATE orders SET total = 7 WHERE id = 3        customer 5, total 4 -> 7

    customer  total  weight                 customer  rows  values  units
           5   4.00      -1        ->              5     0       0    300
           5   7.00       1

A row that came and went within the stretch is evaluated all the same. Should that fail, the batch
is made again by our own operators, which look at net changes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_table
from belvedere.codec.arrow import rows_to_arrow
from belvedere.errors import Error
from belvedere.execution.spark.frames import Frame, Frames, schema_of
from belvedere.execution.spark.lower import Lowering
from belvedere.execution.spark.operators import Failed
from belvedere.execution.spark.types import NotNative, arrow_carrier
from belvedere.pipeline.inputs import Batches, carried_batch, decoded_catalog, numbers, tasks
from belvedere.pipeline.store import Store
from belvedere.pipeline.sums import Encoder, totals
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.types import BIGINT, SqlType
from belvedere.views.compile import Compiled
from belvedere.views.tree import Core, Tree

SCHEMA = "key binary, value binary"
Slots = dict[int, tuple[int, ...]]
"""The slots that are read of each table."""


def takes_single_rows(tree: Tree) -> bool:
    """Whether each row of each table makes its rows of the tree by itself."""
    return isinstance(tree, Core) and all(
        len(branch.leaves) == 1
        and not any(map(transform.has_subplan, (*branch.conditions, *branch.columns)))
        for branch in tree.branches
    )


def slots_of(trees: Sequence[Tree]) -> Slots:
    """What these trees, which take single rows, read of each table."""
    wanted: dict[int, set[int]] = {}
    for tree in trees:
        assert isinstance(tree, Core)
        for branch in tree.branches:
            (leaf,) = branch.leaves
            if leaf.constant is None:
                wanted.setdefault(leaf.relation, set()).update(leaf.slots)
    return {relation: tuple(sorted(slots)) for relation, slots in wanted.items()}


@dataclass(slots=True)
class Changed:
    """The changed rows of tables in a stretch of the log, as Frames. What several views read is
    kept by Spark for as long as the batch lasts."""

    frames: Frames
    store: Store
    start: int
    end: int
    objects: tuple[bytes, ...]
    catalog: Catalog
    tasks: int
    slots: Slots
    kept: dict[int, Frame] = field(default_factory=dict)

    def rows(self, relation: int, slots: Sequence[int]) -> Frame:
        """The slots of each changed row, and its weight."""
        frame = self.kept.get(relation)
        if frame is None:
            frame = self.kept[relation] = self._read(relation)
        columns = [frame.columns[self.slots[relation].index(slot)] for slot in slots]
        return self.frames.selected(frame.data, [*columns, frame.columns[-1]])

    def persist(self) -> None:
        for relation in self.slots:
            self.kept[relation] = self._read(relation)
            self.kept[relation].data.persist()

    def unpersist(self) -> None:
        for frame in self.kept.values():
            frame.data.unpersist()

    def _read(self, relation: int) -> Frame:
        slots = self.slots[relation]
        columns = self.catalog.table(relation).columns
        types = (*(columns[slot].type for slot in slots), BIGINT)
        names = self.frames.names(len(types))
        parts = _stretches(self.start, self.end, self.tasks)
        step = ReadChanges(self.store, self.objects, parts, relation, slots, types, names)
        data = tasks(self.frames.spark, len(parts)).mapInArrow(step, schema_of(names, types))
        return Frame(data, names, types)


def additions(
    changed: Changed, views: Sequence[tuple[View, Compiled]]
) -> tuple[list[DataFrame], list[View]]:
    """Columns key and value: what the stretch adds to each key of these views; and the views for
    which Spark cannot add up."""
    lowering = Lowering(changed.frames, _no_scans)
    parts, left = [], []
    for view, compiled in views:
        try:
            rows = _rows(lowering, changed, compiled.tree)
            made = totals(lowering, rows, compiled.group, weighted=True)
            step = Encoded(changed.objects, Encoder.of(view.id, made))
            parts.append(made.frame.data.mapInArrow(step, SCHEMA))
        except NotNative:
            left.append(view)
    return parts, left


def _rows(lowering: Lowering, changed: Changed, tree: Tree) -> Frame:
    """The tree's rows that came and went; the last column is their weight."""
    assert isinstance(tree, Core)
    found: Frame | None = None
    for branch in tree.branches:
        (leaf,) = branch.leaves
        if leaf.constant is not None:
            continue
        frame = changed.rows(leaf.relation, leaf.slots)
        for condition in branch.conditions:
            frame = lowering.filtered(frame, condition)
        weight = e.Column(len(leaf.slots), BIGINT, "weight")
        made, columns = lowering.columns(frame, (*branch.columns, weight))
        part = lowering.frames.selected(made.data, columns)
        if found is None:
            found = part
        else:
            left, right = lowering.aligned(found, part)
            found = Frame(left.data.union(right.data), left.names, left.types)
    if found is None:
        raise NotNative("a view of constants")
    return found


def _no_scans(scan: n.Scan) -> Frame:
    raise AssertionError("the changes of a view have no other leaves")


def _stretches(start: int, end: int, count: int) -> tuple[tuple[int, int], ...]:
    edges = [start + (end - start) * part // count for part in range(count + 1)]
    return tuple((low, high) for low, high in pairwise(edges) if low < high)


# -- in a task -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadChanges:
    """In a task: the changed rows of one table in its part of the stretch, old and new."""

    store: Store
    objects: tuple[bytes, ...]
    parts: tuple[tuple[int, int], ...]
    relation: int
    slots: tuple[int, ...]
    types: tuple[SqlType, ...]
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        layout = compiled_table(decoded_catalog(self.objects), self.relation).layout
        for number in numbers(batches):
            if failpoints.armed:
                failpoints.hit("pipeline.task")
            try:
                for batch in self._logged(number):
                    for name, weight in (("old", -1), ("new", 1)):
                        rows = batch.column(name).drop_null().to_pylist()
                        if rows:
                            made = rows_to_arrow(layout, rows, self.slots, self.names[:-1])
                            yield self._weighted(made, weight, len(rows))
            except Error as error:
                raise Failed(error) from None

    def _logged(self, number: int) -> Iterator[pa.RecordBatch]:
        if number < len(self.parts):
            for batch in self.store.changes(None, *self.parts[number]):
                yield batch.filter(pc.equal(batch.column("relation"), self.relation))

    def _weighted(self, batch: pa.RecordBatch, weight: int, count: int) -> pa.RecordBatch:
        columns = (
            [] if not self.slots else carried_batch(batch, self.types, self.names[:-1]).columns
        )
        weights = pa.array(np.full(count, weight, np.int64), arrow_carrier(BIGINT))
        return pa.RecordBatch.from_arrays([*columns, weights], names=list(self.names))


@dataclass(frozen=True, slots=True)
class Encoded:
    """In the task that owns these groups: what is added to each key."""

    objects: tuple[bytes, ...]
    encoder: Encoder

    def __call__(self, batches: Batches) -> Batches:
        catalog = decoded_catalog(self.objects)
        if failpoints.armed:
            failpoints.hit("pipeline.sum")
        for batch in batches:
            try:
                keys, values = self.encoder.entries(catalog, batch)
            except Error as error:
                raise Failed(error) from None
            arrays = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, names=["key", "value"])
            if failpoints.armed and failpoints.planted("view_delta_twice"):
                yield pa.RecordBatch.from_arrays(arrays, names=["key", "value"])
