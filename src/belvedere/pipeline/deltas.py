"""The job behind one batch of maintenance: what a stretch of the log adds to views.

`build` gives keys of the views' state with what is added to each, every key once:

1. Views that take the rows of their tables one by one, and whose groups and amounts Spark knows
   exactly, are lowered to DataFrames over the changes (`pipeline.changed`).

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

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from belvedere import failpoints
from belvedere.catalog.model import CATALOG_RELATION, View
from belvedere.codec import accumulator, keyspace
from belvedere.errors import Error, Retry
from belvedere.execution.spark.frames import Frames
from belvedere.execution.spark.operators import Failed
from belvedere.pipeline.changed import SCHEMA, Changed, additions, slots_of, takes_single_rows
from belvedere.pipeline.checkpoint import Checkpoint
from belvedere.pipeline.inputs import Batches, Definitions, numbers, tasks
from belvedere.pipeline.ready import Ready, ready
from belvedere.pipeline.store import Store
from belvedere.txn.border import Reader, RowChange
from belvedere.txn.history.readers import NewestReader
from belvedere.views.source import ENVIRONMENT
from belvedere.views.window import state_before

Amounts = tuple[int, ...]
Sums = dict[bytes, tuple[bytes, Amounts]]
"""Payload and amounts by key."""


class Inputs(NamedTuple):
    """Everything that decides what a batch gives: the stretch (start, end], the views, the catalog
    at its end, and where state is read. `native`: Spark adds up where it can."""

    spark: SparkSession
    store: Store
    start: int
    end: int
    views: tuple[int, ...]
    objects: tuple[bytes, ...]
    definitions: Definitions
    tasks: int
    checkpoint: Checkpoint | None = None
    native: bool = True


class Lowered(NamedTuple):
    """What Spark does by itself, and the views that are left for our operators."""

    parts: tuple[DataFrame, ...]
    left: tuple[int, ...]
    changed: Changed | None


def lowered(inputs: Inputs) -> Lowered:
    """The views that can be, as DataFrames over the changes of their tables."""
    given = ready(inputs.objects, inputs.definitions)
    known = [(view, given.compiled(view)) for view in given.views(inputs.views)]
    chosen = [one for one in known if takes_single_rows(one[1].tree)]
    if not chosen or not inputs.native:
        return Lowered((), inputs.views, None)
    changed = Changed(
        Frames(inputs.spark, ENVIRONMENT),
        inputs.store,
        inputs.start,
        inputs.end,
        inputs.objects,
        given.catalog,
        inputs.tasks,
        slots_of([compiled.tree for _, compiled in chosen]),
    )
    if len(chosen) > 1:
        changed.persist()
    parts, refused = additions(changed, chosen)
    single = {view.id for view, _ in chosen} - {view.id for view in refused}
    left = tuple(id_ for id_ in inputs.views if id_ not in single)
    return Lowered(tuple(parts), left, changed)


def build(inputs: Inputs, made: Lowered) -> DataFrame:
    """Columns key and value: what is added to each key of the views' state."""
    parts = list(made.parts)
    if made.left:
        parts.append(_by_operators(inputs._replace(views=made.left)))
    return reduce(DataFrame.union, parts)


def _by_operators(inputs: Inputs) -> DataFrame:
    step = Deltas(
        inputs.store,
        inputs.start,
        inputs.end,
        inputs.views,
        inputs.objects,
        inputs.definitions,
        inputs.tasks,
        inputs.checkpoint,
    )
    parts = tasks(inputs.spark, inputs.tasks).mapInArrow(step, SCHEMA)
    if inputs.tasks == 1:
        return parts
    return parts.repartition(inputs.tasks, f.col("key")).mapInArrow(summed_in_task, SCHEMA)


def needs_state(objects: tuple[bytes, ...], views: tuple[int, ...], given: Definitions) -> bool:
    """Whether a batch of these views has to look at rows beside the changed ones."""
    known = ready(objects, given)
    return any(known.maintainer(one).reads_state for one in known.views(views))


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
            yield from _batches(found)

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


class Recorder:
    """A Writer that adds up what views add."""

    def __init__(self) -> None:
        self.sums: Sums = {}

    def put(self, key: bytes, value: bytes) -> None:
        raise AssertionError("a view only adds")

    def delete(self, key: bytes) -> None:
        raise AssertionError("a view only adds")

    def add(self, key: bytes, payload: bytes, amounts: Amounts) -> None:
        known = self.sums.get(key)
        if known is None:
            self.sums[key] = (payload, tuple(amounts))
        else:
            total = tuple([one + other for one, other in zip(known[1], amounts, strict=True)])
            self.sums[key] = (known[0], total)


def summed_in_task(batches: Batches) -> Batches:
    """In the task that owns these keys: all that is added to each."""
    recorder = Recorder()
    for batch in batches:
        for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist()):
            recorder.add(key, *accumulator.decode(value))
    if failpoints.armed:
        failpoints.hit("pipeline.sum")
    yield from _batches(recorder.sums)


def _batches(sums: Sums) -> Batches:
    kept = [
        (key, accumulator.encode(payload, amounts))
        for key, (payload, amounts) in sums.items()
        if any(amounts)
    ]
    if kept:
        keys, values = zip(*kept)
        arrays = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, names=["key", "value"])


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
