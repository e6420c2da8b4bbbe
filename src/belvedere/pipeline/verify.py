"""Verify job: recompute views in Spark and compare them, row for row, with the stored state.

`build` gives, for every distinct row of the view, how often the definition produces it and how
often the stored state has it. The definition is lowered to DataFrames over the base tables at the
position of the stored state; the stored state is read by key range and turned into rows in the
tasks. The recomputation uses none of the code that maintains views.

At another position than its own, a view is compared by its stored state minus, or plus, what the
log between the two positions adds (`pipeline.moved`).
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
from belvedere.execution.spark.failures import FAILURES, meaning_of
from belvedere.execution.spark.frames import Frame, Frames
from belvedere.execution.spark.lower import Lowering
from belvedere.pipeline import deltas
from belvedere.pipeline.additions import SCHEMA
from belvedere.pipeline.checkpoint import Checkpoint, checkpoint, remove_leftovers
from belvedere.pipeline.inputs import (
    Definitions,
    Tables,
    decoded_catalog,
    encoded_catalog,
    tasks,
)
from belvedere.pipeline.moved import Move, moved, needs_checkpoint, require_same, stretch_of
from belvedere.pipeline.ready import ready
from belvedere.pipeline.store import Lease, Store
from belvedere.pipeline.verify_rows import (
    ROWS,
    ReadRows,
    RowsOf,
    StoredState,
    Texts,
    row_by_row,
)
from belvedere.plan import nodes as n
from belvedere.views.keep import pinned
from belvedere.views.normal import normalise
from belvedere.views.source import ENVIRONMENT

SAMPLES = 10


@dataclass(frozen=True, slots=True)
class Verified:
    """Result of one view. `samples` are some of the rows that differ: the row, expected, found."""

    view: str
    position: int
    rows: int
    missing: int
    unexpected: int
    samples: tuple[tuple[str, int, int], ...] = ()
    in_python: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.missing and not self.unexpected


class Inputs(NamedTuple):
    """Everything that determines the verification of one view."""

    spark: SparkSession
    store: Store
    view: View
    stored: Lease
    tables: Lease
    objects: tuple[bytes, ...]
    definitions: Definitions
    partitions: int
    move: Move
    native: bool = True


def run(
    spark: SparkSession,
    store: Store,
    names: Sequence[str],
    definitions: Definitions,
    *,
    position: int | None = None,
    partitions: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Verified]:
    """Verify views by name, one after the other."""
    remove_leftovers(store)
    parts = partitions or spark.sparkContext.defaultParallelism
    stored = store.lease()
    try:
        objects = encoded_catalog(store, stored)
        catalog = decoded_catalog(objects)
        views = [find_view(catalog, name) for name in names]
        for view in views:
            progress(view.name)
            at = int(store.ask("mark", view=view.id, **stored.arguments()))
            wanted = at if position is None else position
            tables = stored if wanted == stored.position else store.lease(wanted)
            try:
                if wanted != at:
                    require_same(store, tables, catalog, view)
                yield _verified(
                    Inputs(
                        spark,
                        store,
                        view,
                        stored,
                        tables,
                        objects,
                        definitions,
                        parts,
                        Move(at, wanted),
                    )
                )
            finally:
                if tables is not stored:
                    store.release(tables)
    finally:
        store.release(stored)


def find_view(catalog: Catalog, name: str) -> View:
    schema, _, short = name.rpartition(".")
    return catalog.expect(View, short, schema or "public")


def _verified(inputs: Inputs) -> Verified:
    """Verify a view. Should Spark's own types not hold a value, verify again without them: only
    PostgreSQL's semantics decide what is an error."""
    try:
        return _compared(inputs)
    except (InvalidInput, Unsupported):
        return _compared(inputs._replace(native=False))


def _compared(inputs: Inputs) -> Verified:
    notes: list[str] = []
    with _copied(inputs) as copy:
        try:
            rows = build(inputs, notes, copy).persist()
            try:
                return _summed(inputs.view.name, inputs.move.wanted, rows, tuple(notes))
            finally:
                rows.unpersist()
        except FAILURES as error:
            raise meaning_of(error) from error


@contextmanager
def _copied(inputs: Inputs) -> Iterator[Checkpoint | None]:
    """A checkpoint, where the delta between the two positions depends on rows that did not
    change; else None."""
    at, wanted = inputs.move
    if at == wanted or not needs_checkpoint(_between(inputs)):
        yield None
        return
    with checkpoint(inputs.store) as copy:
        yield copy


def _between(inputs: Inputs) -> deltas.Inputs:
    return stretch_of(
        inputs.spark,
        inputs.store,
        inputs.view.id,
        inputs.objects,
        inputs.definitions,
        inputs.move,
        inputs.partitions,
        columns=inputs.native,
    )


def _summed(name: str, at: int, rows: DataFrame, notes: tuple[str, ...]) -> Verified:
    more = f.col("expected") - f.col("found")
    (total,) = rows.agg(
        f.coalesce(f.sum("found"), f.lit(0)).alias("found"),
        f.coalesce(f.sum(f.greatest(more, f.lit(0))), f.lit(0)).alias("missing"),
        f.coalesce(f.sum(f.greatest(-more, f.lit(0))), f.lit(0)).alias("unexpected"),
    ).collect()
    made = Verified(name, at, total["found"], total["missing"], total["unexpected"], (), notes)
    if made.ok:
        return made
    different = rows.where(more != 0).limit(SAMPLES).collect()
    return replace(made, samples=tuple((r["row"], r["expected"], r["found"]) for r in different))


# -- the job ---------------------------------------------------------------------------------------


def build(
    inputs: Inputs, notes: list[str] | None = None, copy: Checkpoint | None = None
) -> DataFrame:
    """Columns row, expected, found: every distinct row with how often each side has it."""
    catalog = decoded_catalog(inputs.objects)
    expected, lowering = recomputed(inputs, catalog)
    if notes is not None:
        notes += lowering.report.python
    known = ready(inputs.objects, inputs.definitions)
    plan = known.compiled(inputs.view).reading(inputs.view.id)
    found = _stored(inputs, plan, copy)
    fields = plan.fields
    texts = expected.data.mapInArrow(Texts(expected.types, expected.names, fields), ROWS)
    both = texts.select("row", f.lit(1).alias("n")).union(found.select("row", f.lit(-1).alias("n")))
    return both.groupBy("row").agg(
        f.sum(f.when(f.col("n") > 0, 1).otherwise(0)).alias("expected"),
        f.sum(f.when(f.col("n") < 0, 1).otherwise(0)).alias("found"),
    )


def recomputed(inputs: Inputs, catalog: Catalog) -> tuple[Frame, Lowering]:
    """Compute the view's rows from its definition and the base tables."""
    frames = Frames(inputs.spark, ENVIRONMENT, digits=not inputs.native)
    tables = Tables(frames, inputs.store, inputs.tables, catalog, inputs.partitions)
    lowering = Lowering(frames, tables.leaf, inputs.native)
    return lowering.rows(normalise(_definition(inputs, catalog))), lowering


def _definition(inputs: Inputs, catalog: Catalog) -> n.Node:
    view = inputs.view
    return inputs.definitions.bind(pinned(catalog, view), view.definition)


def _stored(inputs: Inputs, plan: n.Node, copy: Checkpoint | None) -> DataFrame:
    arguments = {"view": inputs.view.id, **inputs.stored.arguments()}
    found = inputs.store.ask("state_splits", count=inputs.partitions, **arguments)
    ranges = tuple((low, high) for low, high in found)
    parts = tuple((one,) for one in ranges) if row_by_row(plan) else (ranges,)
    read = StoredState(inputs.store, inputs.stored, inputs.view.id, parts)
    rows = RowsOf(inputs.view.id, inputs.objects, plan)
    if inputs.move.at == inputs.move.wanted:
        return tasks(inputs.spark, len(parts)).mapInArrow(ReadRows(read, rows), ROWS)
    state = tasks(inputs.spark, len(parts)).mapInArrow(read, SCHEMA)
    count = inputs.partitions if row_by_row(plan) else 1
    return moved(state, _between(inputs), inputs.move, copy, count, rows, ROWS)
