"""Backfill job: the first fill of many views together, with one scan of each base table.

For views made WITH (backfill = 'later'). Their tables are read once, at one position. Views that
use single rows are summed in the tasks that read (`pipeline.walk`). For all others Spark persists
the tables, the rows of each definition are lowered to DataFrames over them, and Spark sums them
(`pipeline.sums`), or tasks do where Spark would not be exact. After one exchange by key each task
owns its keys and writes them as a sorted file, which the store ingests unchanged. Then every view
catches up from the log and becomes readable. Writers are not blocked meanwhile.

A job that dies leaves its unfinished views pending; run it again. Finished views are not repeated,
and a complete set of files is ingested as it is (`pipeline.fill_job`); only the work of a job that
died before its files were complete is repeated, at another position.
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
from belvedere.execution.spark.failures import FAILURES, meaning_of
from belvedere.execution.spark.frames import Frames
from belvedere.execution.spark.lower import Lowering
from belvedere.pipeline.bulk import Source
from belvedere.pipeline.changed import linear_view
from belvedere.pipeline.checkpoint import Checkpoint, checkpoint_at, remove_leftovers
from belvedere.pipeline.fill_files import FILES, SortedFiles, TotalsFile
from belvedere.pipeline.fill_job import Files, Job, begun, left_behind, record
from belvedere.pipeline.inputs import (
    Definitions,
    Tables,
    decoded_catalog,
    encoded_catalog,
)
from belvedere.pipeline.ready import Ready, ready
from belvedere.pipeline.states import state_of
from belvedere.pipeline.store import Lease, Store
from belvedere.pipeline.sums import Encoder, Totals
from belvedere.pipeline.verify import find_view
from belvedere.pipeline.walk import table_sums
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.views.build import filled_later
from belvedere.views.source import ENVIRONMENT


class Filled(NamedTuple):
    view: str
    rows: int
    files: int
    snapshot: int
    position: int


class Inputs(NamedTuple):
    """Everything that determines the files of a backfill, and their directory."""

    spark: SparkSession
    store: Store
    views: tuple[View, ...]
    lease: Lease
    objects: tuple[bytes, ...]
    definitions: Definitions
    partitions: int
    directory: Path
    copy: Checkpoint
    native: bool = True


def run(
    spark: SparkSession,
    store: Store,
    names: Sequence[str],
    definitions: Definitions,
    *,
    partitions: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Filled]:
    """Backfill these views; yields each one once it is readable. A view that is filled already is
    left unchanged, so that a job that died at its very end can be run again."""
    remove_leftovers(store)
    parts = partitions or spark.sparkContext.defaultParallelism
    views = _wanted(store, names)
    with left_behind(store) as jobs:
        known = {view.id: job for view in views for job in jobs if job.waits(store, view.id)}
        for view in views:
            if view.id in known:
                progress(f"{view.name}, made before")
                yield _finished(store, known[view.id], view)
    left = tuple(view for view in views if view.id not in known and filled_later(view))
    if left:
        yield from _filled(spark, store, left, definitions, parts, progress)


def _filled(
    spark: SparkSession,
    store: Store,
    views: tuple[View, ...],
    definitions: Definitions,
    parts: int,
    progress: Callable[[str], None],
) -> Iterator[Filled]:
    found = store.ask("fill_begin", views=[view.id for view in views])
    lease = Lease(found["lease"], found["position"])
    _passed("fill.begun")
    with begun(store) as directory:
        try:
            objects = encoded_catalog(store, lease)
            with checkpoint_at(store, directory / "copy") as copy:
                held = (objects, definitions, parts, directory, copy)
                files = _made(Inputs(spark, store, views, lease, *held), progress)
        finally:
            with contextlib.suppress(Unavailable):  # the owner may be why it failed
                store.release(lease)
        _passed("fill.made")
        job = record(store, directory, lease.position, _by_view(views, files))
        _passed("fill.recorded")
        for view in views:
            yield _finished(store, job, view)


def _by_view(views: Sequence[View], files: list[tuple[int, str, int]]) -> dict[int, Files]:
    found = {}
    for view in views:
        mine = [(name, rows) for id_, name, rows in files if id_ == view.id]
        found[view.id] = Files(tuple(name for name, _ in mine), sum(rows for _, rows in mine))
    return found


def _finished(store: Store, job: Job, view: View) -> Filled:
    files = job.files[view.id]
    reached = store.ask(
        "fill_finish",
        view=view.id,
        position=job.position,
        job=job.name,
        files=list(files.names),
    )
    _passed("fill.finished")
    return Filled(view.name, files.rows, len(files.names), job.position, int(reached))


def _passed(place: str) -> None:
    if failpoints.armed:
        failpoints.hit(place)


def _wanted(store: Store, names: Sequence[str]) -> tuple[View, ...]:
    lease = store.lease()
    try:
        catalog = decoded_catalog(encoded_catalog(store, lease))
    finally:
        store.release(lease)
    found = [find_view(catalog, name) for name in names]
    views = tuple({view.id: view for view in found}.values())
    if not views:
        raise InvalidInput("no view is named", sqlstate="22023")
    return views


def _made(inputs: Inputs, progress: Callable[[str], None]) -> list[tuple[int, str, int]]:
    """Write the files of all views: view, file, rows. Should a value be beyond Spark's own types,
    compute them again in Python."""
    progress("state of " + ", ".join(view.name for view in inputs.views))
    try:
        return _collected(inputs)
    except (InvalidInput, Unsupported):
        return _collected(inputs._replace(native=False))


def _collected(inputs: Inputs) -> list[tuple[int, str, int]]:
    frames = Frames(inputs.spark, ENVIRONMENT, digits=not inputs.native)
    catalog = decoded_catalog(inputs.objects)
    tables = Tables(frames, inputs.store, inputs.lease, catalog, inputs.partitions, inputs.copy)
    try:
        found = build(inputs, tables).collect()
    except FAILURES as error:
        raise meaning_of(error) from error
    finally:
        tables.unpersist()
    return [(row["view"], row["file"], row["rows"]) for row in found]


# -- the job ---------------------------------------------------------------------------------------


def build(inputs: Inputs, tables: Tables) -> DataFrame:
    """Columns view, file, rows: the sorted files that hold the state of all views."""
    known = ready(inputs.objects, inputs.definitions)
    single = walking(known, inputs.views) if inputs.native else []
    others = [view for view in inputs.views if view.id not in single]
    compiled = {view.id: known.compiled(view) for view in others}
    if len(others) > 1:
        tables.share(_slots(one.tree.plan for one in compiled.values()))
    lowering = Lowering(tables.frames, tables.leaf, inputs.native)
    files, states = [], _walked(inputs, single)
    for view in others:
        frame, group = lowering.rows(compiled[view.id].tree.plan), compiled[view.id].group
        made = state_of(lowering, frame, view.id, inputs.objects, group)
        if made.totals is not None:
            files.append(_by_spark(inputs, view, made.totals))
        if made.added is not None:
            states.append(made.added)
    if states:
        owned = reduce(DataFrame.union, states).repartition(inputs.partitions, f.col("key"))
        files.append(owned.mapInArrow(SortedFiles(str(inputs.directory)), FILES))
    return reduce(DataFrame.union, files)


def walking(known: Ready, views: Sequence[View]) -> list[int]:
    """The views to sum in the tasks that read their tables: those that use single rows, of tables
    that no other view needs as DataFrames. So every table is read once."""
    chosen = [view for view in views if linear_view(known, view) is not None]
    while True:
        shared = {table for view in views if view not in chosen for table in view.inputs}
        kept = [view for view in chosen if not shared & set(view.inputs)]
        if kept == chosen:
            return [view.id for view in kept]
        chosen = kept


def _walked(inputs: Inputs, views: Sequence[int]) -> list[DataFrame]:
    """The state of views that use single rows, summed in the tasks that read their tables."""
    return table_sums(
        inputs.spark,
        Source(inputs.store, inputs.lease, inputs.copy),
        inputs.objects,
        inputs.definitions,
        views,
        inputs.partitions,
    )


def _by_spark(inputs: Inputs, view: View, made: Totals) -> DataFrame:
    """The files of groups that Spark sums: one task has all of a group."""
    step = TotalsFile(str(inputs.directory), inputs.objects, Encoder.of(view.id, made))
    return made.frame.data.mapInArrow(step, FILES)


def _slots(plans: Iterator[n.Node]) -> dict[int, set[int]]:
    """The slots of each table that the plans need together."""
    wanted: dict[int, set[int]] = {}
    for plan in plans:
        for one in transform.walk(plan):
            if isinstance(one, n.Scan):
                wanted.setdefault(one.relation, set()).update(one.slots)
    return wanted
