"""The job behind one batch of maintenance: what a stretch of the log adds to views.

`build` gives keys of the views' state with what is added to each, every key once:

1. Views that take the rows of their tables one by one: each task takes a range of positions, and
   adds up its changes in Arrow columns (`pipeline.changed`).

The others are done by the one maintenance function (`views.maintain`), in tasks:

2. Views that need no other rows: each task takes a range of positions.
3. Views that look at other rows (joins, recomputed groups): each task takes the net changes of some
   keys, and looks at the state just before *its* changes. Task i sees the changes of the tasks
   before it done and those of the later ones not done, so that the sum over all tasks is the
   difference between the states at the ends of the stretch, whatever the view is made of:

       V(S_k) - V(S_0)  =  sum over i of  V(S_i) - V(S_i-1)

   State is read from a checkpoint of the store, undone back to where it must be.
4. One exchange by the view's key, after which one task owns each key and adds up.

Nothing is kept in Spark between batches: the state is the views themselves.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from belvedere import failpoints
from belvedere.catalog.model import CATALOG_RELATION, View
from belvedere.codec import keyspace
from belvedere.errors import Error, Retry
from belvedere.execution.spark.operators import Failed
from belvedere.pipeline.additions import SCHEMA, Recorder, Sums, encoded, summed_in_task
from belvedere.pipeline.changed import ChangedSums, linear_view
from belvedere.pipeline.checkpoint import Checkpoint
from belvedere.pipeline.inputs import Batches, Definitions, numbers, tasks
from belvedere.pipeline.ready import Ready, ready
from belvedere.pipeline.store import Store
from belvedere.txn.border import Reader, RowChange
from belvedere.txn.history.readers import NewestReader
from belvedere.views.window import state_before


class Inputs(NamedTuple):
    """Everything that decides what a batch gives: the stretch (start, end], the views, the catalog
    at its end, and where state is read. `columns`: views are added up in columns that can be."""

    spark: SparkSession
    store: Store
    start: int
    end: int
    views: tuple[int, ...]
    objects: tuple[bytes, ...]
    definitions: Definitions
    tasks: int
    checkpoint: Checkpoint | None = None
    columns: bool = False


def linear_views(inputs: Inputs) -> frozenset[int]:
    """The views of a batch that are added up in columns; none of a small one."""
    if not inputs.columns:
        return frozenset()
    known = ready(inputs.objects, inputs.definitions)
    views = known.views(inputs.views)
    return frozenset(view.id for view in views if linear_view(known, view) is not None)


def build(inputs: Inputs, linear: frozenset[int] = frozenset()) -> DataFrame:
    """Columns key and value: what is added to each key of the views' state."""
    started, parts = tasks(inputs.spark, inputs.tasks), []
    if linear:
        sums = ChangedSums(
            inputs.store,
            inputs.objects,
            inputs.definitions,
            inputs.start,
            inputs.end,
            inputs.tasks,
            tuple(linear),
        )
        parts.append(started.mapInArrow(sums, SCHEMA))
    left = tuple(id_ for id_ in inputs.views if id_ not in linear)
    if left:
        step = Deltas(
            inputs.store,
            inputs.start,
            inputs.end,
            left,
            inputs.objects,
            inputs.definitions,
            inputs.tasks,
            inputs.checkpoint,
        )
        parts.append(started.mapInArrow(step, SCHEMA))
    made = reduce(DataFrame.union, parts)
    if inputs.tasks == 1:
        return made
    return made.repartition(inputs.tasks, f.col("key")).mapInArrow(summed_in_task, SCHEMA)


def needs_state(inputs: Inputs, linear: frozenset[int] = frozenset()) -> bool:
    """Whether a batch has to look at rows beside the changed ones."""
    known = ready(inputs.objects, inputs.definitions)
    return any(
        known.maintainer(view).reads_state
        for view in known.views(inputs.views)
        if view.id not in linear
    )


# -- in a task -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deltas:
    """In a task: what its share of the stretch adds."""

    store: Store
    start: int
    end: int
    views: tuple[int, ...]
    objects: tuple[bytes, ...]
    definitions: Definitions
    count: int
    checkpoint: Checkpoint | None

    def __call__(self, batches: Batches) -> Batches:
        for number in numbers(batches):
            if failpoints.armed:
                failpoints.hit("pipeline.task")
            try:
                found = self._share(number)
            except Error as error:
                raise Failed(error) from None
            yield from encoded(found)

    def _share(self, number: int) -> Sums:
        known = ready(self.objects, self.definitions)
        views = known.views(self.views)
        recorder = Recorder()
        if self.checkpoint is None:
            size = self.end - self.start
            low = self.start + size * number // self.count
            high = self.start + size * (number + 1) // self.count
            changes = _net(_logged(self.store, low, high), _inputs(views))
            _run(known, views, changes, known.nothing, recorder)
        else:
            with ExitStack() as stack:
                self._with_state(number, known, views, recorder, stack)
        return recorder.sums

    def _with_state(
        self,
        number: int,
        known: Ready,
        views: Sequence[View],
        recorder: Recorder,
        stack: ExitStack,
    ) -> None:
        assert self.checkpoint is not None
        at = self.checkpoint.position
        # All that auxiliary views stand on goes back, not only what these views are made of.
        relations = _inputs(known.catalog.views)
        logged = _logged(self.store, self.start, self.end)
        chunks: list[list[RowChange]] = [[] for _ in range(self.count)]
        for change in _net(logged, relations):
            chunks[zlib.crc32(change.key) % self.count].append(change)
        if not chunks[number]:
            return
        opened = stack.enter_context(self.checkpoint.opened())
        newest: Reader = NewestReader(opened, at, known.catalog)
        later = list(_logged(self.store, self.end, at))
        if any(relation == CATALOG_RELATION for relation, *_ in later):
            raise Retry("the catalog changed while a batch was made")
        undone = _net(later, relations)
        at_end = state_before(newest, undone, known.indexes) if undone else newest
        mine_and_later = [change for chunk in chunks[number:] for change in chunk]
        before = state_before(at_end, mine_and_later, known.indexes)
        _run(known, views, chunks[number], before, recorder)


def _run(
    known: Ready,
    views: Sequence[View],
    changes: Sequence[RowChange],
    before: Reader,
    recorder: Recorder,
) -> None:
    for view in views:
        inputs = frozenset(view.inputs)
        mine = [change for change in changes if change.relation in inputs]
        if mine:
            known.maintainer(view).writes(mine, before, recorder)


# -- the log ---------------------------------------------------------------------------------------

Logged = tuple[int, bytes, bytes | None, bytes | None]
"""Relation, key inside it, old and new row."""


def _logged(store: Store, after: int, through: int) -> Iterator[Logged]:
    if after >= through:
        return
    for batch in store.changes(None, after, through):
        columns = (batch.column(name).to_pylist() for name in ("relation", "key", "old", "new"))
        yield from zip(*columns)


def _net(logged: Iterator[Logged] | Sequence[Logged], relations: frozenset[int]) -> list[RowChange]:
    """The net change of every row of these relations."""
    prefixes = {relation: keyspace.row_prefix(relation) for relation in relations}
    first: dict[bytes, bytes | None] = {}
    last: dict[bytes, bytes | None] = {}
    for relation, key, old, new in logged:
        prefix = prefixes.get(relation)
        if prefix is not None:
            whole = prefix + key
            first.setdefault(whole, old)
            last[whole] = new
    return [RowChange(key, old, last[key]) for key, old in first.items() if old != last[key]]


def _inputs(views: Sequence[View]) -> frozenset[int]:
    return frozenset(relation for view in views for relation in view.inputs)
