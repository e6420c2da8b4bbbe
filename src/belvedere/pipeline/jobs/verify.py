"""Verify job: recompute views in Spark and compare them, row for row, with the stored state.

`build_comparison_frame` gives, for every distinct row of the view, how often the definition
produces it and how often the stored state has it. The definition is lowered to DataFrames over the
base tables at the position of the stored state; the stored state is read by key range and turned
into rows in the tasks. The recomputation uses none of the code that maintains views.

At another position than its own, a view is compared by its stored state minus, or plus, what the
log between the two positions adds (`pipeline.maintain.state_at_position`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.errors import InvalidInput, Unsupported
from belvedere.execution.spark.dataframes import FrameBuilder, TypedFrame
from belvedere.execution.spark.failures import FAILURES, translate_failure
from belvedere.execution.spark.lower import SparkLowering
from belvedere.pipeline.aggregate.additions import SCHEMA
from belvedere.pipeline.jobs.verify_rows import (
    ROWS,
    RowTextTask,
    StateReadTask,
    StateToRowTextTask,
    StoredRowTextTask,
    is_row_wise_plan,
)
from belvedere.pipeline.maintain import batch
from belvedere.pipeline.maintain.state_at_position import (
    StateMove,
    build_rows_frame_at_position,
    create_range_batch_inputs,
    needs_checkpoint_for_batch,
    require_same_definition,
)
from belvedere.pipeline.store.client import PositionLease, Store
from belvedere.pipeline.store.compiled_views import get_compiled_views
from belvedere.pipeline.store.store_copy import (
    StoreCopy,
    hold_store_copy,
    remove_copies_of_ended_jobs,
)
from belvedere.pipeline.store.tables import (
    DefinitionCompiler,
    TableFrames,
    create_task_number_frame,
    decode_catalog,
    fetch_encoded_catalog,
)
from belvedere.plan import nodes as n
from belvedere.views.delta.normalize import normalize_plan
from belvedere.views.delta.sessionless_run import ENVIRONMENT
from belvedere.views.registry.view_registry import hide_later_columns

SAMPLES = 10


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Result of one view. `samples` are some of the rows that differ: the row, expected, found."""

    view: str
    position: int
    rows: int
    missing: int
    unexpected: int
    samples: tuple[tuple[str, int, int], ...] = ()
    in_python: tuple[str, ...] = ()

    @property
    def is_correct(self) -> bool:
        return not self.missing and not self.unexpected


class VerifyInputs(NamedTuple):
    """Everything that determines the verification of one view."""

    spark: SparkSession
    store: Store
    view: View
    stored: PositionLease
    tables: PositionLease
    objects: tuple[bytes, ...]
    definitions: DefinitionCompiler
    partitions: int
    move: StateMove
    native: bool = True


def verify_views(
    spark: SparkSession,
    store: Store,
    names: Sequence[str],
    definitions: DefinitionCompiler,
    *,
    position: int | None = None,
    partitions: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[VerifyResult]:
    """Verify views by name, one after the other."""
    remove_copies_of_ended_jobs(store)
    parts = partitions or spark.sparkContext.defaultParallelism
    stored = store.take_position_lease()
    try:
        objects = fetch_encoded_catalog(store, stored)
        catalog = decode_catalog(objects)
        views = [find_view_by_name(catalog, name) for name in names]
        for view in views:
            progress(view.name)
            at = int(store.call_owner_verb("mark", view=view.id, **stored.to_verb_arguments()))
            wanted = at if position is None else position
            tables = stored if wanted == stored.position else store.take_position_lease(wanted)
            try:
                if wanted != at:
                    require_same_definition(store, tables, catalog, view)
                yield _verify_view_with_fallback(
                    VerifyInputs(
                        spark,
                        store,
                        view,
                        stored,
                        tables,
                        objects,
                        definitions,
                        parts,
                        StateMove(at, wanted),
                    )
                )
            finally:
                if tables is not stored:
                    store.release_position_lease(tables)
    finally:
        store.release_position_lease(stored)


def find_view_by_name(catalog: Catalog, name: str) -> View:
    schema, _, short = name.rpartition(".")
    return catalog.require_relation(View, short, schema or "public")


def _verify_view_with_fallback(inputs: VerifyInputs) -> VerifyResult:
    """Verify a view. Should Spark's own types not hold a value, verify again without them: only
    PostgreSQL's semantics decide what is an error."""
    try:
        return _compare_stored_and_recomputed(inputs)
    except (InvalidInput, Unsupported):
        return _compare_stored_and_recomputed(inputs._replace(native=False))


def _compare_stored_and_recomputed(inputs: VerifyInputs) -> VerifyResult:
    notes: list[str] = []
    with _hold_checkpoint_if_needed(inputs) as copy:
        try:
            rows = build_comparison_frame(inputs, notes, copy).persist()
            try:
                return _count_and_sample_differences(
                    inputs.view.name, inputs.move.wanted, rows, tuple(notes)
                )
            finally:
                rows.unpersist()
        except FAILURES as error:
            raise translate_failure(error) from error


@contextmanager
def _hold_checkpoint_if_needed(inputs: VerifyInputs) -> Iterator[StoreCopy | None]:
    """A checkpoint, where the delta between the two positions depends on rows that did not
    change; else None."""
    at, wanted = inputs.move
    if at == wanted or not needs_checkpoint_for_batch(_build_range_batch_inputs(inputs)):
        yield None
        return
    with hold_store_copy(inputs.store) as copy:
        yield copy


def _build_range_batch_inputs(inputs: VerifyInputs) -> batch.BatchInputs:
    return create_range_batch_inputs(
        inputs.spark,
        inputs.store,
        inputs.view.id,
        inputs.objects,
        inputs.definitions,
        inputs.move,
        inputs.partitions,
        columns=inputs.native,
    )


def _count_and_sample_differences(
    name: str, at: int, rows: DataFrame, notes: tuple[str, ...]
) -> VerifyResult:
    more = f.col("expected") - f.col("found")
    (total,) = rows.agg(
        f.coalesce(f.sum("found"), f.lit(0)).alias("found"),
        f.coalesce(f.sum(f.greatest(more, f.lit(0))), f.lit(0)).alias("missing"),
        f.coalesce(f.sum(f.greatest(-more, f.lit(0))), f.lit(0)).alias("unexpected"),
    ).collect()
    made = VerifyResult(name, at, total["found"], total["missing"], total["unexpected"], (), notes)
    if made.is_correct:
        return made
    different = rows.where(more != 0).limit(SAMPLES).collect()
    return replace(made, samples=tuple((r["row"], r["expected"], r["found"]) for r in different))


# -- the job ---------------------------------------------------------------------------------------


def build_comparison_frame(
    inputs: VerifyInputs, notes: list[str] | None = None, copy: StoreCopy | None = None
) -> DataFrame:
    """Columns row, expected, found: every distinct row with how often each side has it."""
    catalog = decode_catalog(inputs.objects)
    expected, lowering = build_recomputed_view_frame(inputs, catalog)
    if notes is not None:
        notes += lowering.report.python_notes
    known = get_compiled_views(inputs.objects, inputs.definitions)
    plan = known.get_maintenance_plan(inputs.view).build_verification_plan(inputs.view.id)
    found = _build_stored_rows_frame(inputs, plan, copy)
    fields = plan.fields
    texts = expected.data.mapInArrow(RowTextTask(expected.types, expected.names, fields), ROWS)
    both = texts.select("row", f.lit(1).alias("n")).union(found.select("row", f.lit(-1).alias("n")))
    return both.groupBy("row").agg(
        f.sum(f.when(f.col("n") > 0, 1).otherwise(0)).alias("expected"),
        f.sum(f.when(f.col("n") < 0, 1).otherwise(0)).alias("found"),
    )


def build_recomputed_view_frame(
    inputs: VerifyInputs, catalog: Catalog
) -> tuple[TypedFrame, SparkLowering]:
    """Compute the view's rows from its definition and the base tables."""
    frames = FrameBuilder(inputs.spark, ENVIRONMENT, digits=not inputs.native)
    tables = TableFrames(frames, inputs.store, inputs.tables, catalog, inputs.partitions)
    lowering = SparkLowering(frames, tables.build_scan_frame, inputs.native)
    return lowering.lower_plan(normalize_plan(_bind_view_definition(inputs, catalog))), lowering


def _bind_view_definition(inputs: VerifyInputs, catalog: Catalog) -> n.Node:
    view = inputs.view
    return inputs.definitions.bind(hide_later_columns(catalog, view), view.definition)


def _build_stored_rows_frame(
    inputs: VerifyInputs, plan: n.Node, copy: StoreCopy | None
) -> DataFrame:
    arguments = {"view": inputs.view.id, **inputs.stored.to_verb_arguments()}
    found = inputs.store.call_owner_verb("state_splits", count=inputs.partitions, **arguments)
    ranges = tuple((low, high) for low, high in found)
    parts = tuple((one,) for one in ranges) if is_row_wise_plan(plan) else (ranges,)
    read = StateReadTask(inputs.store, inputs.stored, inputs.view.id, parts)
    rows = StateToRowTextTask(inputs.view.id, inputs.objects, plan)
    if inputs.move.at == inputs.move.wanted:
        return create_task_number_frame(inputs.spark, len(parts)).mapInArrow(
            StoredRowTextTask(read, rows), ROWS
        )
    state = create_task_number_frame(inputs.spark, len(parts)).mapInArrow(read, SCHEMA)
    count = inputs.partitions if is_row_wise_plan(plan) else 1
    return build_rows_frame_at_position(
        state, _build_range_batch_inputs(inputs), inputs.move, copy, count, rows, ROWS
    )
