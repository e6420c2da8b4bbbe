"""Verify: recompute views in Spark and compare them, row for row, with what is stored.

`build` gives, for every different row of the view, how often the definition gives it and how often
the stored state has it. The definition is lowered to DataFrames over the base tables at the very
position the stored state is at; the stored state is read by key range and turned into rows in the
tasks. Nothing that maintains views takes part in the recomputation.

At another position than its own, a view is compared by its stored state less, or plus, what the log
has in between (`pipeline.moved`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_view
from belvedere.errors import Error, InvalidInput, Unsupported
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.context import row_keys
from belvedere.execution.direct.dependence import walk
from belvedere.execution.spark.failures import FAILURES, meaning_of
from belvedere.execution.spark.frames import Frame, Frames, leaf_number
from belvedere.execution.spark.lower import Lowering
from belvedere.execution.spark.operators import Failed, bare_run
from belvedere.execution.spark.types import to_values
from belvedere.pipeline import deltas
from belvedere.pipeline.additions import SCHEMA
from belvedere.pipeline.checkpoint import Checkpoint, checkpoint
from belvedere.pipeline.inputs import (
    Batches,
    Definitions,
    Tables,
    decoded_catalog,
    encoded_catalog,
    numbers,
    tasks,
)
from belvedere.pipeline.moved import Move, moved, needs_checkpoint, require_same, stretch_of
from belvedere.pipeline.ready import ready
from belvedere.pipeline.store import Lease, Store
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field, Fields
from belvedere.plan.functions.function import Environment
from belvedere.types import Row, SqlType
from belvedere.views.keep import pinned
from belvedere.views.normal import normalise
from belvedere.views.source import ENVIRONMENT

SAMPLES = 10
_ROWS = "row string"


@dataclass(frozen=True, slots=True)
class Verified:
    """`samples` are some of the rows that differ: the row, expected, found."""

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
    """Everything that decides what a verification of one view sees."""

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
    """Once more without Spark's own types, should they not hold a value: only PostgreSQL's meaning
    decides what is an error."""
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
    """A copy of the store, where what lies between two positions takes other rows to know."""
    at, wanted = inputs.move
    if at == wanted or not needs_checkpoint(_between(inputs)):
        yield None
        return
    with checkpoint(inputs.store, "verify") as copy:
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
    """Columns row, expected, found: every different row with how often it is in either."""
    catalog = decoded_catalog(inputs.objects)
    expected, lowering = recomputed(inputs, catalog)
    if notes is not None:
        notes += lowering.report.python
    known = ready(inputs.objects, inputs.definitions)
    plan = known.compiled(inputs.view).reading(inputs.view.id)
    found = _stored(inputs, plan, copy)
    fields = plan.fields
    texts = expected.data.mapInArrow(Texts(expected.types, expected.names, fields), _ROWS)
    both = texts.select("row", f.lit(1).alias("n")).union(found.select("row", f.lit(-1).alias("n")))
    return both.groupBy("row").agg(
        f.sum(f.when(f.col("n") > 0, 1).otherwise(0)).alias("expected"),
        f.sum(f.when(f.col("n") < 0, 1).otherwise(0)).alias("found"),
    )


def recomputed(inputs: Inputs, catalog: Catalog) -> tuple[Frame, Lowering]:
    """The view's rows from its definition."""
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
        return tasks(inputs.spark, len(parts)).mapInArrow(ReadRows(read, rows), _ROWS)
    state = tasks(inputs.spark, len(parts)).mapInArrow(read, SCHEMA)
    count = inputs.partitions if row_by_row(plan) else 1
    return moved(state, _between(inputs), inputs.move, copy, count, rows, _ROWS)


def row_by_row(plan: n.Node) -> bool:
    """Whether every stored row gives its rows of the view by itself."""
    for item, _ in walk(plan, 0):
        if isinstance(item, n.Limit | n.SetOperation | n.Aggregate):
            return False
        if isinstance(item, n.Join) and not item.lateral:
            return False  # rows side by side
    return True


@dataclass(frozen=True, slots=True)
class StoredState:
    """In a task: keys and values of a part of a view's stored state."""

    store: Store
    lease: Lease
    view: int
    parts: tuple[tuple[tuple[bytes, bytes], ...], ...]

    def __call__(self, batches: Batches) -> Batches:
        for number in numbers(batches):
            for start, end in self.parts[number] if number < len(self.parts) else ():
                arguments = {"view": self.view, **self.lease.arguments()}
                yield from self.store.fetch("state", start=start, end=end, **arguments)


@dataclass(frozen=True, slots=True)
class RowsOf:
    """In a task: the view's rows from stored values, all at once, as text."""

    view: int
    objects: tuple[bytes, ...]
    plan: n.Node
    environment: Environment = field(default=ENVIRONMENT)

    def __call__(self, batches: Batches) -> Batches:
        catalog = decoded_catalog(self.objects)
        stored = compiled_view(catalog, self.view)
        decode = stored.layout.projector(_state_slots(self.plan))
        given = n.Changes(leaf_number(0), "state", (), _state(self.plan).fields)
        rows_of = compile_plan(catalog, _over(self.plan, given))
        text = texts_of(self.plan.fields)
        run_ = bare_run(self.environment)
        values = (value for batch in batches for value in batch.column("value").to_pylist())
        run_.deltas = {leaf_number(0): [decode(value) for value in values]}
        yield _text_batch([text(row) for row in rows_of(run_)])


@dataclass(frozen=True, slots=True)
class ReadRows:
    """In a task: the view's rows from a part of its stored state."""

    read: StoredState
    rows: RowsOf

    def __call__(self, batches: Batches) -> Batches:
        try:
            yield from self.rows(self.read(batches))
        except Error as error:
            raise Failed(error) from None


def _state(plan: n.Node) -> n.Scan:
    return next(one for one in transform.walk(plan) if isinstance(one, n.Scan))


def _state_slots(plan: n.Node) -> tuple[int, ...]:
    return _state(plan).slots


def _over(plan: n.Node, leaf: n.Node) -> n.Node:
    if isinstance(plan, n.Scan):
        return leaf
    return transform.rebuild_inputs(plan, lambda one: _over(one, leaf))


# -- rows as text ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Texts:
    """In a task: carried rows as text that is the same where the rows are equal."""

    types: tuple[SqlType, ...]
    names: tuple[str, ...]
    fields: Fields

    def __call__(self, batches: Batches) -> Batches:
        text = texts_of(self.fields)
        for batch in batches:
            columns = [
                to_values(batch.column(name), one) for name, one in zip(self.names, self.types)
            ]
            rows: Iterator[Row] = zip(*columns) if columns else iter([()] * batch.num_rows)
            yield _text_batch([text(row) for row in rows])


def texts_of(fields: Fields) -> Callable[[Row], str]:
    key = row_keys(tuple(Field(one.name, one.type) for one in fields))
    return lambda row: ", ".join(map(_text, key(row)))


def _text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value)
        case Decimal():
            return f"{value.normalize():f}" if value.is_finite() and value else str(value + 0)
        case float():
            return repr(value + 0.0)
        case _:
            return repr(value)


def _text_batch(rows: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(rows, pa.utf8())], names=["row"])
