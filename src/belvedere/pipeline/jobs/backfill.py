"""Backfill job: backfills many views together, with one scan of each base table.

For views created WITH (backfill = 'later'). Their tables are read once, at one position. Views that
use single rows are summed in the tasks that read (`pipeline.aggregate.table_scan`). For all others
Spark persists the tables, the rows of each definition are lowered to DataFrames over them, and
Spark sums them (`pipeline.aggregate.spark_sums`), or tasks do where Spark would not be exact. After
one exchange by key each task owns its keys and writes them as a sorted file, which the store
ingests unchanged. Then every view catches up from the log and becomes readable. Writers are not
blocked meanwhile.

A job that dies leaves its unfinished views pending; run it again. Finished views are not repeated,
and a complete set of files is ingested as it is (`pipeline.backfill_files.job_directory`); only the
work of a job that died before its files were complete is repeated, at another position.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from belvedere import failpoints
from belvedere.catalog.model import View
from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.execution.spark.dataframes import FrameBuilder
from belvedere.execution.spark.failures import FAILURES, translate_failure
from belvedere.execution.spark.lower import SparkLowering
from belvedere.pipeline.aggregate.linear_views import try_compile_linear_view
from belvedere.pipeline.aggregate.spark_sums import GroupTotals, TotalsEncoder
from belvedere.pipeline.aggregate.sum_methods import plan_state_additions
from belvedere.pipeline.aggregate.table_scan import build_table_sum_frames
from belvedere.pipeline.backfill_files.job_directory import (
    BackfillJob,
    ViewFiles,
    hold_backfill_job_directory,
    lock_dead_backfill_jobs,
    record_backfill_files,
)
from belvedere.pipeline.backfill_files.sorted_files import (
    FILES,
    CellTarget,
    FileTarget,
    StateTarget,
    SummedStateTask,
    TotalsStateTask,
)
from belvedere.pipeline.jobs.verify import find_view_by_name
from belvedere.pipeline.store.checkpoint import (
    Checkpoint,
    hold_checkpoint_in_directory,
    remove_checkpoints_of_ended_jobs,
)
from belvedere.pipeline.store.checkpoint_scan import TableSource
from belvedere.pipeline.store.client import PositionLease, Store
from belvedere.pipeline.store.compiled_views import CompiledViews, get_compiled_views
from belvedere.pipeline.store.tables import (
    DefinitionCompiler,
    TableFrames,
    decode_catalog,
    fetch_encoded_catalog,
)
from belvedere.pipeline.store.verb_hosts import NodeHost
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.views.delta.sessionless_run import ENVIRONMENT
from belvedere.views.state.build_state import waits_for_backfill_command


class BackfillResult(NamedTuple):
    view: str
    rows: int
    files: int
    snapshot: int
    position: int


class BackfillInputs(NamedTuple):
    """Everything that determines the state of a backfill, and where it is written."""

    spark: SparkSession
    store: Store
    views: tuple[View, ...]
    lease: PositionLease
    objects: tuple[bytes, ...]
    definitions: DefinitionCompiler
    partitions: int
    target: StateTarget
    copy: Checkpoint | None
    native: bool = True


def run_backfill(
    spark: SparkSession,
    store: Store,
    names: Sequence[str],
    definitions: DefinitionCompiler,
    *,
    partitions: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[BackfillResult]:
    """Backfill these views; yields each one once it is readable. A view that is backfilled already
    is left unchanged, so that a job that died at its very end can be run again."""
    parts = partitions or spark.sparkContext.defaultParallelism
    views = _require_named_views(store, names)
    if isinstance(store.host, NodeHost):
        waiting = tuple(view for view in views if waits_for_backfill_command(view))
        if waiting:
            yield from _backfill_as_cells(spark, store, waiting, definitions, parts, progress)
        return
    remove_checkpoints_of_ended_jobs(store)
    with lock_dead_backfill_jobs(store) as jobs:
        known = {
            view.id: job for view in views for job in jobs if job.must_ingest_view(store, view.id)
        }
        for view in views:
            if view.id in known:
                progress(f"{view.name}, made before")
                yield _ingest_and_finish_view(store, known[view.id], view)
    left = tuple(
        view for view in views if view.id not in known and waits_for_backfill_command(view)
    )
    if left:
        yield from _backfill_from_base_tables(spark, store, left, definitions, parts, progress)


def _backfill_from_base_tables(
    spark: SparkSession,
    store: Store,
    views: tuple[View, ...],
    definitions: DefinitionCompiler,
    parts: int,
    progress: Callable[[str], None],
) -> Iterator[BackfillResult]:
    found = store.call_owner_verb("fill_begin", views=[view.id for view in views])
    lease = PositionLease(found["lease"], found["position"])
    _hit_failpoint("fill.begun")
    with hold_backfill_job_directory(store) as directory:
        try:
            objects = fetch_encoded_catalog(store, lease)
            with hold_checkpoint_in_directory(store, directory / "copy") as copy:
                held = (objects, definitions, parts, FileTarget(str(directory)), copy)
                files = _write_state(BackfillInputs(spark, store, views, lease, *held), progress)
        finally:
            with contextlib.suppress(Unavailable):  # the owner may be why it failed
                store.release_position_lease(lease)
        _hit_failpoint("fill.made")
        job = record_backfill_files(
            store, directory, lease.position, _group_files_by_view(views, files)
        )
        _hit_failpoint("fill.recorded")
        for view in views:
            yield _ingest_and_finish_view(store, job, view)


def _backfill_as_cells(
    spark: SparkSession,
    store: Store,
    views: tuple[View, ...],
    definitions: DefinitionCompiler,
    parts: int,
    progress: Callable[[str], None],
) -> Iterator[BackfillResult]:
    """The same on HBase, where tasks write state itself, as of the position of the scan, and every
    commit after it is in the state already. A job that died begins again."""
    found = store.call_owner_verb("fill_begin", views=[view.id for view in views])
    lease = PositionLease(found["lease"], found["position"])
    _hit_failpoint("fill.begun")
    try:
        objects = fetch_encoded_catalog(store, lease)
        held = (objects, definitions, parts, CellTarget(store, lease.position), None)
        files = _write_state(BackfillInputs(spark, store, views, lease, *held), progress)
    finally:
        store.release_position_lease(lease)
    _hit_failpoint("fill.made")
    job = BackfillJob(Path(), lease.position, _group_files_by_view(views, files), ("", ""))
    for view in views:
        yield _ingest_and_finish_view(store, job, view)


def _group_files_by_view(
    views: Sequence[View], files: list[tuple[int, str, int]]
) -> dict[int, ViewFiles]:
    found = {}
    for view in views:
        mine = [(name, rows) for id_, name, rows in files if id_ == view.id]
        names = tuple(name for name, _ in mine if name)
        found[view.id] = ViewFiles(names, sum(rows for _, rows in mine))
    return found


def _ingest_and_finish_view(store: Store, job: BackfillJob, view: View) -> BackfillResult:
    files = job.files[view.id]
    reached = store.call_owner_verb(
        "fill_finish",
        view=view.id,
        position=job.position,
        job=job.name,
        files=list(files.names),
    )
    _hit_failpoint("fill.finished")
    return BackfillResult(view.name, files.rows, len(files.names), job.position, int(reached))


def _hit_failpoint(place: str) -> None:
    if failpoints.armed:
        failpoints.hit(place)


def _require_named_views(store: Store, names: Sequence[str]) -> tuple[View, ...]:
    lease = store.take_position_lease()
    try:
        catalog = decode_catalog(fetch_encoded_catalog(store, lease))
    finally:
        store.release_position_lease(lease)
    found = [find_view_by_name(catalog, name) for name in names]
    views = tuple({view.id: view for view in found}.values())
    if not views:
        raise InvalidInput("no view is named", sqlstate="22023")
    return views


def _write_state(
    inputs: BackfillInputs, progress: Callable[[str], None]
) -> list[tuple[int, str, int]]:
    """Write the files of all views: view, file, rows. Should a value be beyond Spark's own types,
    compute them again in Python."""
    progress("state of " + ", ".join(view.name for view in inputs.views))
    try:
        return _run_state_file_job(inputs)
    except (InvalidInput, Unsupported):
        return _run_state_file_job(inputs._replace(native=False))


def _run_state_file_job(inputs: BackfillInputs) -> list[tuple[int, str, int]]:
    frames = FrameBuilder(inputs.spark, ENVIRONMENT, digits=not inputs.native)
    catalog = decode_catalog(inputs.objects)
    tables = TableFrames(
        frames, inputs.store, inputs.lease, catalog, inputs.partitions, inputs.copy
    )
    try:
        found = build_state_files_frame(inputs, tables).collect()
    except FAILURES as error:
        raise translate_failure(error) from error
    finally:
        tables.unpersist_table_frames()
    return [(row["view"], row["file"], row["rows"]) for row in found]


# -- the job ---------------------------------------------------------------------------------------


def build_state_files_frame(inputs: BackfillInputs, tables: TableFrames) -> DataFrame:
    """Columns view, file, rows: the sorted files that hold the state of all views."""
    known = get_compiled_views(inputs.objects, inputs.definitions)
    single = choose_views_summed_in_scan(known, inputs.views) if inputs.native else []
    others = [view for view in inputs.views if view.id not in single]
    compiled = {view.id: known.get_maintenance_plan(view) for view in others}
    if len(others) > 1:
        tables.persist_table_frames(
            _collect_slots_by_table(one.tree.plan for one in compiled.values())
        )
    lowering = SparkLowering(tables.frames, tables.build_scan_frame, inputs.native)
    files, states = [], _build_scan_summed_frames(inputs, single)
    for view in others:
        frame, group = lowering.lower_plan(compiled[view.id].tree.plan), compiled[view.id].group
        made = plan_state_additions(lowering, frame, view.id, inputs.objects, group)
        if made.totals is not None:
            files.append(_build_totals_files_frame(inputs, view, made.totals))
        if made.added is not None:
            states.append(made.added)
    if states:
        owned = reduce(DataFrame.union, states).repartition(inputs.partitions, f.col("key"))
        files.append(owned.mapInArrow(SummedStateTask(inputs.target), FILES))
    return reduce(DataFrame.union, files)


def choose_views_summed_in_scan(known: CompiledViews, views: Sequence[View]) -> list[int]:
    """The views to sum in the tasks that read their tables: those that use single rows, of tables
    that no other view needs as DataFrames. So every table is read once."""
    chosen = [view for view in views if try_compile_linear_view(known, view) is not None]
    while True:
        shared = {table for view in views if view not in chosen for table in view.inputs}
        kept = [view for view in chosen if not shared & set(view.inputs)]
        if kept == chosen:
            return [view.id for view in kept]
        chosen = kept


def _build_scan_summed_frames(inputs: BackfillInputs, views: Sequence[int]) -> list[DataFrame]:
    """The state of views that use single rows, summed in the tasks that read their tables."""
    return build_table_sum_frames(
        inputs.spark,
        TableSource(inputs.store, inputs.lease, inputs.copy),
        inputs.objects,
        inputs.definitions,
        views,
        inputs.partitions,
    )


def _build_totals_files_frame(inputs: BackfillInputs, view: View, made: GroupTotals) -> DataFrame:
    """The files of groups that Spark sums: one task has all of a group."""
    encoder = TotalsEncoder.from_totals(view.id, made)
    step = TotalsStateTask(inputs.target, inputs.objects, encoder)
    return made.frame.data.mapInArrow(step, FILES)


def _collect_slots_by_table(plans: Iterator[n.Node]) -> dict[int, set[int]]:
    """The slots of each table that the plans need together."""
    wanted: dict[int, set[int]] = {}
    for plan in plans:
        for one in transform.walk_plan(plan):
            if isinstance(one, n.Scan):
                wanted.setdefault(one.relation, set()).update(one.slots)
    return wanted
