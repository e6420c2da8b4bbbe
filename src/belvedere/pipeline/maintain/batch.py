"""The Spark job of one maintenance batch: what a range of the log adds to the state of views.

`build_additions_frame` gives the keys of the views' state with the amounts added to each, every key
once. Each view is computed in one of three ways:

1. *In columns.* Views that use the rows of their tables one by one: each task takes a range of
   positions, and sums its changes in Arrow columns (`pipeline.aggregate.linear_views`).
2. *Lowered.* Views that need other rows (joins, recomputed groups): the delta plan as DataFrames
   (`pipeline.maintain.delta_dataframes`); the tasks that own a join or group key after an exchange
   read the store's state; then the rows are summed (`pipeline.aggregate.sum_methods`).
3. *By the engine.* Small batches, and views that the other two cannot compute: the one maintenance
   function (`views.maintain.maintainer`), in tasks. Views that need no other rows: each task takes
   a range of positions. Others: each task takes the net changes of some keys, and reads the state
   just before *its* changes. Task i sees the changes of the tasks before it applied and those of
   the later ones not applied, so that the sum over all tasks is the difference between the states
   at the ends of the range, whatever operators the view has:

       V(S_k) - V(S_0)  =  sum over i of  V(S_i) - V(S_i-1)

State is read from a checkpoint of the store, with later changes undone. The additions of tasks pass
one exchange by the view's key, after which one task owns each key and sums. Spark keeps nothing
between batches: the state is the views themselves.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from belvedere import failpoints
from belvedere.catalog.model import CATALOG_RELATION, View
from belvedere.errors import Error, Retry
from belvedere.execution.spark.dataframes import FrameBuilder
from belvedere.execution.spark.operators import TaskFailure
from belvedere.execution.spark.types import NotNative
from belvedere.pipeline.aggregate.additions import (
    SCHEMA,
    SumRecorder,
    Sums,
    encode_nonzero_sums,
    sum_additions_in_task,
)
from belvedere.pipeline.aggregate.linear_views import LinearDeltaTask, try_compile_linear_view
from belvedere.pipeline.aggregate.spark_sums import TotalsEncoder
from belvedere.pipeline.aggregate.sum_methods import (
    StateAdditions,
    TotalsEncodeTask,
    plan_state_additions,
)
from belvedere.pipeline.maintain.delta_dataframes import (
    DeltaLowering,
    collect_slots_of_changed_rows,
    refuse_table_scan,
)
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.compiled_views import CompiledViews, get_compiled_views
from belvedere.pipeline.store.log_changes import (
    ChangeFrames,
    compute_net_changes,
    compute_task_log_range,
    read_log_changes,
)
from belvedere.pipeline.store.log_range_state import LogRangeState
from belvedere.pipeline.store.store_copy import StoreCopy
from belvedere.pipeline.store.tables import (
    Batches,
    DefinitionCompiler,
    create_task_number_frame,
    iterate_task_numbers,
)
from belvedere.txn.contracts import Reader, RowChange
from belvedere.views.delta.sessionless_run import ENVIRONMENT
from belvedere.views.maintain.log_window import build_reader_before_changes


class BatchInputs(NamedTuple):
    """Everything that determines the result of a batch: the log range (start, end], the views, the
    catalog at its end, and the checkpoint that state is read from. `columns`: use ways 1 and 2
    where a view allows them."""

    spark: SparkSession
    store: Store
    start: int
    end: int
    views: tuple[int, ...]
    objects: tuple[bytes, ...]
    definitions: DefinitionCompiler
    tasks: int
    checkpoint: StoreCopy | None = None
    columns: bool = False


def choose_views_summed_in_columns(inputs: BatchInputs) -> frozenset[int]:
    """The views of a batch that are summed in Arrow columns; none in a small batch."""
    if not inputs.columns:
        return frozenset()
    known = get_compiled_views(inputs.objects, inputs.definitions)
    views = known.require_views_by_id(inputs.views)
    return frozenset(view.id for view in views if try_compile_linear_view(known, view) is not None)


def needs_unchanged_rows(inputs: BatchInputs, linear: frozenset[int] = frozenset()) -> bool:
    """Whether a batch has to read rows other than the changed ones."""
    known = get_compiled_views(inputs.objects, inputs.definitions)
    return any(
        known.get_view_maintainer(view).reads_unchanged_rows
        for view in known.require_views_by_id(inputs.views)
        if view.id not in linear
    )


def build_additions_frame(
    inputs: BatchInputs, linear: frozenset[int] = frozenset(), changes: ChangeFrames | None = None
) -> DataFrame:
    """Columns key and value: what is added to each key of the views' state. `changes` persists
    frames that several views read, until its `unpersist` is called."""
    started, added, whole = create_task_number_frame(inputs.spark, inputs.tasks), [], []
    others = tuple(id_ for id_ in inputs.views if id_ not in linear)
    if linear:
        held = (inputs.store, inputs.objects, inputs.definitions, inputs.start, inputs.end)
        sums = LinearDeltaTask(*held, inputs.tasks, tuple(linear))
        added.append(started.mapInArrow(sums, SCHEMA))
    if others and inputs.columns:
        states, others = lower_delta_plans(inputs, others, changes or create_change_frames(inputs))
        added += [one.added for one in states if one.added is not None]
        whole += [
            _build_encoded_totals_frame(inputs, one) for one in states if one.totals is not None
        ]
    if others:
        views = (others, inputs.objects, inputs.definitions)
        log_range = (inputs.store, inputs.start, inputs.end)
        step = EngineDeltaTask(*log_range, *views, inputs.tasks, inputs.checkpoint)
        added.append(started.mapInArrow(step, SCHEMA))
    if added and (inputs.tasks > 1 or inputs.columns):
        exchanged = reduce(DataFrame.union, added).repartition(inputs.tasks, f.col("key"))
        added = [exchanged.mapInArrow(sum_additions_in_task, SCHEMA)]
    parts = [*added, *whole] or [inputs.spark.createDataFrame([], SCHEMA)]
    return reduce(DataFrame.union, parts)


# -- lowered ---------------------------------------------------------------------------------------


def create_change_frames(inputs: BatchInputs, *, share: bool = False) -> ChangeFrames:
    """The frames of changed rows for all views of a batch."""
    catalog = get_compiled_views(inputs.objects, inputs.definitions).catalog
    frames = FrameBuilder(inputs.spark, ENVIRONMENT)
    return ChangeFrames(
        frames, inputs.store, catalog, inputs.start, inputs.end, inputs.tasks, share=share
    )


def lower_delta_plans(
    inputs: BatchInputs, views: tuple[int, ...], changes: ChangeFrames
) -> tuple[list[StateAdditions], tuple[int, ...]]:
    """Lower the delta plans of these views: their additions, and the views that cannot be
    lowered."""
    known = get_compiled_views(inputs.objects, inputs.definitions)
    changed = frozenset(
        inputs.store.call_owner_verb("changed", after=inputs.start, through=inputs.end)
    )
    held = (inputs.store, inputs.start, inputs.end, changed, inputs.objects, inputs.definitions)
    looked = None if inputs.checkpoint is None else LogRangeState(*held, inputs.checkpoint)
    trees = [known.get_maintenance_plan(view).tree for view in known.require_views_by_id(views)]
    changes.requested_slots = collect_slots_of_changed_rows(trees, known.catalog, changed)
    found, left = [], []
    for view in known.require_views_by_id(views):
        compiled = known.get_maintenance_plan(view)
        made = DeltaLowering(
            changes.frames,
            refuse_table_scan,
            changes=changes,
            catalog=known.catalog,
            view=view.id,
            changed=changed,
            tasks=inputs.tasks,
            range_state=looked,
        )
        try:
            frame = made.lower_delta_tree(compiled.tree)
        except NotNative:
            left.append(view.id)
            continue
        if frame is not None:
            group = compiled.group
            found.append(
                plan_state_additions(made, frame, view.id, inputs.objects, group, weighted=True)
            )
    return found, tuple(left)


def _build_encoded_totals_frame(inputs: BatchInputs, state: StateAdditions) -> DataFrame:
    """Encode Spark's totals as stored state: one task has all of a group, so each key occurs
    once."""
    assert state.totals is not None
    encoder = TotalsEncoder.from_totals(state.view, state.totals)
    return state.totals.frame.data.mapInArrow(TotalsEncodeTask(inputs.objects, encoder), SCHEMA)


# -- in a task -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EngineDeltaTask:
    """In a task: computes what its share of the log range adds, by the engine's maintenance."""

    store: Store
    start: int
    end: int
    views: tuple[int, ...]
    objects: tuple[bytes, ...]
    definitions: DefinitionCompiler
    count: int
    checkpoint: StoreCopy | None

    def __call__(self, batches: Batches) -> Batches:
        for number in iterate_task_numbers(batches):
            if failpoints.armed:
                failpoints.hit("pipeline.task")
            try:
                found = self._compute_task_sums(number)
            except Error as error:
                raise TaskFailure(error) from None
            yield from encode_nonzero_sums(found)

    def _compute_task_sums(self, number: int) -> Sums:
        known = get_compiled_views(self.objects, self.definitions)
        views = known.require_views_by_id(self.views)
        recorder = SumRecorder()
        if self.checkpoint is None:
            low, high = compute_task_log_range(self.start, self.end, number, self.count)
            changes = compute_net_changes(
                read_log_changes(self.store, low, high), _collect_input_relations(views)
            )
            _sum_view_deltas(known, views, changes, known.changes_only_reader, recorder)
        else:
            with ExitStack() as stack:
                self._add_deltas_from_checkpoint(number, known, views, recorder, stack)
        return recorder.sums

    def _add_deltas_from_checkpoint(
        self,
        number: int,
        known: CompiledViews,
        views: Sequence[View],
        recorder: SumRecorder,
        stack: ExitStack,
    ) -> None:
        assert self.checkpoint is not None
        at = self.checkpoint.position
        # Undo changes of all inputs of auxiliary views too, not only of the inputs of these views.
        relations = _collect_input_relations(known.catalog.views)
        log_range = read_log_changes(self.store, self.start, self.end)
        chunks: list[list[RowChange]] = [[] for _ in range(self.count)]
        for change in compute_net_changes(log_range, relations):
            chunks[zlib.crc32(change.key) % self.count].append(change)
        if not chunks[number]:
            return
        newest = stack.enter_context(self.checkpoint.open_reader(known.catalog))
        later = list(read_log_changes(self.store, self.end, at))
        if any(relation == CATALOG_RELATION for relation, *_ in later):
            raise Retry("the catalog changed while a batch was made")
        undone = compute_net_changes(later, relations)
        at_end = build_reader_before_changes(newest, undone, known.indexes) if undone else newest
        mine_and_later = [change for chunk in chunks[number:] for change in chunk]
        before = build_reader_before_changes(at_end, mine_and_later, known.indexes)
        _sum_view_deltas(known, views, chunks[number], before, recorder)


def _sum_view_deltas(
    known: CompiledViews,
    views: Sequence[View],
    changes: Sequence[RowChange],
    before: Reader,
    recorder: SumRecorder,
) -> None:
    for view in views:
        inputs = frozenset(view.inputs)
        mine = [change for change in changes if change.relation in inputs]
        if mine:
            known.get_view_maintainer(view).writes(mine, before, recorder)


def _collect_input_relations(views: Sequence[View]) -> frozenset[int]:
    return frozenset(relation for view in views for relation in view.inputs)
