"""Backfill job: the first fill of many views together, with one scan of each base table.

For views made WITH (backfill = 'later'). Their tables are read once, at one position. Views that
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
from belvedere.pipeline.aggregate.linear_views import compile_linear_view
from belvedere.pipeline.aggregate.spark_sums import GroupTotals, TotalsEncoder
from belvedere.pipeline.aggregate.state import plan_additions
from belvedere.pipeline.aggregate.table_scan import sum_tables
from belvedere.pipeline.backfill_files.job_directory import (
    BackfillJob,
    ViewFiles,
    leftover_jobs,
    new_job_directory,
    record_job,
)
from belvedere.pipeline.backfill_files.sorted_files import (
    FILES,
    SortedFileTask,
    TotalsFileTask,
)
from belvedere.pipeline.jobs.verify import find_view
from belvedere.pipeline.store.checkpoint import Checkpoint, checkpoint_at, remove_leftovers
from belvedere.pipeline.store.checkpoint_scan import TableSource
from belvedere.pipeline.store.client import PositionLease, Store
from belvedere.pipeline.store.compiled_views import CompiledViews, compile_catalog_views
from belvedere.pipeline.store.tables import (
    DefinitionCompiler,
    TableFrames,
    decode_catalog,
    fetch_catalog,
)
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.views.delta.detached_run import ENVIRONMENT
from belvedere.views.state.build_state import is_backfilled_later


class BackfillResult(NamedTuple):
    view: str
    rows: int
    files: int
    snapshot: int
    position: int


class BackfillInputs(NamedTuple):
    """Everything that determines the files of a backfill, and their directory."""

    spark: SparkSession
    store: Store
    views: tuple[View, ...]
    lease: PositionLease
    objects: tuple[bytes, ...]
    definitions: DefinitionCompiler
    partitions: int
    directory: Path
    copy: Checkpoint
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
    """Backfill these views; yields each one once it is readable. A view that is filled already is
    left unchanged, so that a job that died at its very end can be run again."""
    remove_leftovers(store)
    parts = partitions or spark.sparkContext.defaultParallelism
    views = _find_views(store, names)
    with leftover_jobs(store) as jobs:
        known = {view.id: job for view in views for job in jobs if job.is_pending(store, view.id)}
        for view in views:
            if view.id in known:
                progress(f"{view.name}, made before")
                yield _finish_view(store, known[view.id], view)
    left = tuple(view for view in views if view.id not in known and is_backfilled_later(view))
    if left:
        yield from _backfill_views(spark, store, left, definitions, parts, progress)


def _backfill_views(
    spark: SparkSession,
    store: Store,
    views: tuple[View, ...],
    definitions: DefinitionCompiler,
    parts: int,
    progress: Callable[[str], None],
) -> Iterator[BackfillResult]:
    found = store.ask_owner("fill_begin", views=[view.id for view in views])
    lease = PositionLease(found["lease"], found["position"])
    _hit_failpoint("fill.begun")
    with new_job_directory(store) as directory:
        try:
            objects = fetch_catalog(store, lease)
            with checkpoint_at(store, directory / "copy") as copy:
                held = (objects, definitions, parts, directory, copy)
                files = _write_files(BackfillInputs(spark, store, views, lease, *held), progress)
        finally:
            with contextlib.suppress(Unavailable):  # the owner may be why it failed
                store.release_lease(lease)
        _hit_failpoint("fill.made")
        job = record_job(store, directory, lease.position, _files_by_view(views, files))
        _hit_failpoint("fill.recorded")
        for view in views:
            yield _finish_view(store, job, view)


def _files_by_view(
    views: Sequence[View], files: list[tuple[int, str, int]]
) -> dict[int, ViewFiles]:
    found = {}
    for view in views:
        mine = [(name, rows) for id_, name, rows in files if id_ == view.id]
        found[view.id] = ViewFiles(tuple(name for name, _ in mine), sum(rows for _, rows in mine))
    return found


def _finish_view(store: Store, job: BackfillJob, view: View) -> BackfillResult:
    files = job.files[view.id]
    reached = store.ask_owner(
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


def _find_views(store: Store, names: Sequence[str]) -> tuple[View, ...]:
    lease = store.take_lease()
    try:
        catalog = decode_catalog(fetch_catalog(store, lease))
    finally:
        store.release_lease(lease)
    found = [find_view(catalog, name) for name in names]
    views = tuple({view.id: view for view in found}.values())
    if not views:
        raise InvalidInput("no view is named", sqlstate="22023")
    return views


def _write_files(
    inputs: BackfillInputs, progress: Callable[[str], None]
) -> list[tuple[int, str, int]]:
    """Write the files of all views: view, file, rows. Should a value be beyond Spark's own types,
    compute them again in Python."""
    progress("state of " + ", ".join(view.name for view in inputs.views))
    try:
        return _collect_files(inputs)
    except (InvalidInput, Unsupported):
        return _collect_files(inputs._replace(native=False))


def _collect_files(inputs: BackfillInputs) -> list[tuple[int, str, int]]:
    frames = FrameBuilder(inputs.spark, ENVIRONMENT, digits=not inputs.native)
    catalog = decode_catalog(inputs.objects)
    tables = TableFrames(
        frames, inputs.store, inputs.lease, catalog, inputs.partitions, inputs.copy
    )
    try:
        found = build_files(inputs, tables).collect()
    except FAILURES as error:
        raise translate_failure(error) from error
    finally:
        tables.unpersist()
    return [(row["view"], row["file"], row["rows"]) for row in found]


# -- the job ---------------------------------------------------------------------------------------


def build_files(inputs: BackfillInputs, tables: TableFrames) -> DataFrame:
    """Columns view, file, rows: the sorted files that hold the state of all views."""
    known = compile_catalog_views(inputs.objects, inputs.definitions)
    single = choose_scanned_views(known, inputs.views) if inputs.native else []
    others = [view for view in inputs.views if view.id not in single]
    compiled = {view.id: known.compile_view(view) for view in others}
    if len(others) > 1:
        tables.share_tables(_slots_by_table(one.tree.plan for one in compiled.values()))
    lowering = SparkLowering(tables.frames, tables.read_scan, inputs.native)
    files, states = [], _sum_scanned_tables(inputs, single)
    for view in others:
        frame, group = lowering.lower_plan(compiled[view.id].tree.plan), compiled[view.id].group
        made = plan_additions(lowering, frame, view.id, inputs.objects, group)
        if made.totals is not None:
            files.append(_files_of_totals(inputs, view, made.totals))
        if made.added is not None:
            states.append(made.added)
    if states:
        owned = reduce(DataFrame.union, states).repartition(inputs.partitions, f.col("key"))
        files.append(owned.mapInArrow(SortedFileTask(str(inputs.directory)), FILES))
    return reduce(DataFrame.union, files)


def choose_scanned_views(known: CompiledViews, views: Sequence[View]) -> list[int]:
    """The views to sum in the tasks that read their tables: those that use single rows, of tables
    that no other view needs as DataFrames. So every table is read once."""
    chosen = [view for view in views if compile_linear_view(known, view) is not None]
    while True:
        shared = {table for view in views if view not in chosen for table in view.inputs}
        kept = [view for view in chosen if not shared & set(view.inputs)]
        if kept == chosen:
            return [view.id for view in kept]
        chosen = kept


def _sum_scanned_tables(inputs: BackfillInputs, views: Sequence[int]) -> list[DataFrame]:
    """The state of views that use single rows, summed in the tasks that read their tables."""
    return sum_tables(
        inputs.spark,
        TableSource(inputs.store, inputs.lease, inputs.copy),
        inputs.objects,
        inputs.definitions,
        views,
        inputs.partitions,
    )


def _files_of_totals(inputs: BackfillInputs, view: View, made: GroupTotals) -> DataFrame:
    """The files of groups that Spark sums: one task has all of a group."""
    step = TotalsFileTask(
        str(inputs.directory), inputs.objects, TotalsEncoder.from_totals(view.id, made)
    )
    return made.frame.data.mapInArrow(step, FILES)


def _slots_by_table(plans: Iterator[n.Node]) -> dict[int, set[int]]:
    """The slots of each table that the plans need together."""
    wanted: dict[int, set[int]] = {}
    for plan in plans:
        for one in transform.walk_plan(plan):
            if isinstance(one, n.Scan):
                wanted.setdefault(one.relation, set()).update(one.slots)
    return wanted
