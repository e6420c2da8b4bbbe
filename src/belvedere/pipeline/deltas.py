"""The job behind one batch of maintenance: what a stretch of the log adds to views.

`build` gives keys of the views' state with what is added to each, every key once. The work is that
of the one maintenance function (`views.maintain`), done in tasks:

1. Views that need no other rows: each task takes a range of positions.
2. Views that look at other rows (joins, recomputed groups): each task takes the net changes of some
   keys, and looks at the state just before *its* changes. Task i sees the changes of the tasks
   before it done and those of the later ones not done, so that the sum over all tasks is the
   difference between the states at the ends of the stretch, whatever the view is made of:

       V(S_k) - V(S_0)  =  sum over i of  V(S_i) - V(S_i-1)

   State is read from a checkpoint of the store, undone back to where it must be.
3. One exchange by the view's key, after which one task owns each key and adds up.

Nothing is kept in Spark between batches: the state is the views themselves.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CATALOG_RELATION, View
from belvedere.codec import accumulator, keyspace
from belvedere.errors import Corruption, Error, Retry
from belvedere.execution.spark.operators import Failed
from belvedere.pipeline.checkpoint import Checkpoint
from belvedere.pipeline.inputs import Batches, Definitions, decoded_catalog, numbers, tasks
from belvedere.pipeline.store import Store
from belvedere.txn.border import Participant, Reader, RowChange
from belvedere.txn.history.readers import NewestReader
from belvedere.views.keep import Keeper
from belvedere.views.maintain import Maintainer
from belvedere.views.rekey import index_participants
from belvedere.views.window import state_before

SCHEMA = "key binary, value binary"
Amounts = tuple[int, ...]
Sums = dict[bytes, tuple[bytes, Amounts]]
"""Payload and amounts by key."""


class Inputs(NamedTuple):
    """Everything that decides what a batch gives: the stretch (start, end], the views, the catalog
    at its end, and where state is read."""

    spark: SparkSession
    store: Store
    start: int
    end: int
    views: tuple[int, ...]
    objects: tuple[bytes, ...]
    definitions: Definitions
    tasks: int
    checkpoint: Checkpoint | None = None


def build(inputs: Inputs) -> DataFrame:
    """Columns key and value: what is added to each key of the views' state."""
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
    ready = _ready(objects, given)
    return any(ready.maintainer(one).reads_state for one in ready.views(views))


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
        ready = _ready(self.objects, self.definitions)
        views = ready.views(self.views)
        recorder = Recorder()
        if self.checkpoint is None:
            size = self.end - self.start
            low = self.start + size * number // self.count
            high = self.start + size * (number + 1) // self.count
            changes = _net(_logged(self.store, low, high), _inputs(views))
            _run(ready, views, changes, ready.nothing, recorder)
        else:
            with ExitStack() as stack:
                self._with_state(number, ready, views, recorder, stack)
        return recorder.sums

    def _with_state(
        self,
        number: int,
        ready: _Ready,
        views: Sequence[View],
        recorder: Recorder,
        stack: ExitStack,
    ) -> None:
        assert self.checkpoint is not None
        at = self.checkpoint.position
        # All that auxiliary views stand on goes back, not only what these views are made of.
        relations = _inputs(ready.catalog.views)
        logged = _logged(self.store, self.start, self.end)
        chunks: list[list[RowChange]] = [[] for _ in range(self.count)]
        for change in _net(logged, relations):
            chunks[zlib.crc32(change.key) % self.count].append(change)
        if not chunks[number]:
            return
        opened = stack.enter_context(self.checkpoint.opened())
        newest: Reader = NewestReader(opened, at, ready.catalog)
        later = list(_logged(self.store, self.end, at))
        if any(relation == CATALOG_RELATION for relation, *_ in later):
            raise Retry("the catalog changed while a batch was made")
        undone = _net(later, relations)
        at_end = state_before(newest, undone, ready.indexes) if undone else newest
        mine_and_later = [change for chunk in chunks[number:] for change in chunk]
        before = state_before(at_end, mine_and_later, ready.indexes)
        _run(ready, views, chunks[number], before, recorder)


def _run(
    ready: _Ready,
    views: Sequence[View],
    changes: Sequence[RowChange],
    before: Reader,
    recorder: Recorder,
) -> None:
    for view in views:
        inputs = frozenset(view.inputs)
        mine = [change for change in changes if change.relation in inputs]
        if mine:
            ready.maintainer(view).writes(mine, before, recorder)


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


# -- views, compiled once a process ----------------------------------------------------------------


class _Ready:
    """The views of a catalog, ready to be maintained. Kept by a Python worker between tasks."""

    def __init__(self, catalog: Catalog, definitions: Definitions) -> None:
        self.catalog = catalog
        self._definitions = definitions
        self._keeper = Keeper(definitions.bind, self._plain_indexes)
        self.indexes = self._keeper.indexes
        self.nothing: Reader = _NoRows(catalog)

    def _plain_indexes(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        return index_participants(catalog, relations, self._definitions.compile_expression)

    def views(self, ids: Sequence[int]) -> list[View]:
        found = [self.catalog.get(id_) for id_ in ids]
        if not all(isinstance(one, View) for one in found):
            raise Corruption("a view is not in the catalog of its batch", ids=list(ids))
        return [one for one in found if isinstance(one, View)]

    def maintainer(self, view: View) -> Maintainer:
        return self._keeper.maintainer(self.catalog, view)


@lru_cache(maxsize=4)
def _ready(objects: tuple[bytes, ...], definitions: Definitions) -> _Ready:
    return _Ready(decoded_catalog(objects), definitions)


class _NoRows:
    """For views that look at nothing but their changes: a look anywhere is a fault of ours."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.position = 0

    def get(self, key: bytes) -> bytes | None:
        raise AssertionError("a view that needs no state looked at a row")

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        raise AssertionError("a view that needs no state looked at rows")

    def scan(self, start: bytes, end: bytes, **_: object) -> Iterator[list[tuple[bytes, bytes]]]:
        raise AssertionError("a view that needs no state looked at a range")

    def scan_values(self, start: bytes, end: bytes, **_: object) -> Iterator[list[bytes]]:
        raise AssertionError("a view that needs no state looked at a range")
