"""Explain job: how backfill, maintain and verify of a view would run, operator by operator.

    view by_region
    backfill
      Project region, total  [spark]
        Join inner customer = id  [spark]
          Scan orders (customer, total)  [store]
          Scan customers (id, region)  [store]
      state: [spark] added up by Spark's aggregates
    maintain
      ..

`[spark]` is Spark's own operator, with all its expressions in Spark SQL. `[python: ..]` says which
part is ours, over Arrow batches inside the tasks, and why. A node without a mark runs in the task
of the node above it. Nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyspark.sql import SparkSession

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.execution.spark.frames import Frames
from belvedere.execution.spark.lower import Lowering
from belvedere.execution.spark.operators import Computed
from belvedere.pipeline.changed import Side, linear_view
from belvedere.pipeline.explain_delta import explained_delta
from belvedere.pipeline.inputs import Definitions, Tables, decoded_catalog, encoded_catalog
from belvedere.pipeline.maintainer import SMALL_CHANGES
from belvedere.pipeline.ready import Ready, ready
from belvedere.pipeline.states import state_of
from belvedere.pipeline.store import Lease, Store
from belvedere.pipeline.verify import find_view
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.expression_printer import print_expression
from belvedere.plan.printer import print_plan
from belvedere.types import BOOLEAN
from belvedere.views.compile import Compiled
from belvedere.views.keep import pinned
from belvedere.views.normal import normalise
from belvedere.views.source import ENVIRONMENT


class Inputs(NamedTuple):
    spark: SparkSession
    store: Store
    lease: Lease
    objects: tuple[bytes, ...]
    definitions: Definitions


def run(
    spark: SparkSession, store: Store, names: Sequence[str], definitions: Definitions
) -> Iterator[str]:
    """Lines of text about each view."""
    lease = store.lease()
    try:
        objects = encoded_catalog(store, lease)
        known = ready(objects, definitions)
        inputs = Inputs(spark, store, lease, objects, definitions)
        for view in [find_view(known.catalog, name) for name in names]:
            yield f"view {view.name}"
            yield from explained(inputs, known, view)
    finally:
        store.release(lease)


def explained(inputs: Inputs, known: Ready, view: View) -> Iterator[str]:
    compiled = known.compiled(view)
    yield "backfill"
    yield from indented(_walked(known, view) or _lowered_fill(inputs, view, compiled))
    yield "maintain"
    yield from indented(_maintained(inputs, known, view))
    yield "verify"
    yield from indented(_verified(inputs, view))


def indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


# -- sums in the tasks -----------------------------------------------------------------------------


def _walked(known: Ready, view: View) -> list[str]:
    """The scans of a view that uses single rows, with the evaluation of its expressions."""
    linear = linear_view(known, view)
    if linear is None:
        return []
    lines = ["[python] added up where the tables are read, over whole Arrow columns"]
    for side in linear.sides:
        lines.append(f"  [store] Scan {known.catalog.table(side.relation).name}")
        lines += indented(_side(known.catalog, side))
    return [*lines, "when no other view of the job needs these tables; else like verify"]


def _side(catalog: Catalog, side: Side) -> list[str]:
    wanted = [(one, BOOLEAN) for one in side.conditions]
    wanted += [(one, one.type) for one in side.columns if not isinstance(one, e.Column)]
    names = tuple(f"c{i}" for i in range(len(side.types)))
    lines = []
    for one, result in wanted:
        step = Computed((one,), side.types, names, (), (result,), ENVIRONMENT)
        how = "over whole columns" if step.is_columnar() else "row by row"
        lines.append(f"  {print_expression(one)}: {how}")
    return lines


def _maintained(inputs: Inputs, known: Ready, view: View) -> list[str]:
    small = f"up to {SMALL_CHANGES} changes: [python] the engine's operators, in one task"
    exchange = "[spark] one exchange by the view's key, so that one task owns it"
    if linear_view(known, view) is None:
        lines = explained_delta(inputs.spark, inputs.store, known, inputs.objects, view)
        return [small, "more changes:", *indented([*lines, exchange])]
    way = "old and new rows added up with signs over whole Arrow columns, by ranges of positions"
    return [small, f"more changes: [python] {way}", f"  {exchange}"]


# -- lowered plans ---------------------------------------------------------------------------------


def _lowered_fill(inputs: Inputs, view: View, compiled: Compiled) -> list[str]:
    lowering = _lowering(inputs)
    frame = lowering.rows(compiled.tree.plan)
    lines = _tree(lowering)
    state = state_of(lowering, frame, view.id, inputs.objects, compiled.group)
    return [*lines, f"state: {state.how}"]


def _verified(inputs: Inputs, view: View) -> list[str]:
    catalog = decoded_catalog(inputs.objects)
    plan = normalise(inputs.definitions.bind(pinned(catalog, view), view.definition))
    lowering = _lowering(inputs)
    lowering.rows(plan)
    return [*_tree(lowering), "stored state: [python] to rows, by key range"]


def _lowering(inputs: Inputs) -> Lowering:
    frames = Frames(inputs.spark, ENVIRONMENT)
    catalog = decoded_catalog(inputs.objects)
    tables = Tables(frames, inputs.store, inputs.lease, catalog, 1)
    return Lowering(frames, tables.leaf)


def _tree(lowering: Lowering) -> list[str]:
    """The lowered plan as text, with a mark after each node."""
    report = lowering.report
    assert report.plan is not None, "it was lowered"

    def mark(node: n.Node) -> str:
        ways = report.ways.get(id(node))
        if ways is None:
            return ""
        where = ["store"] if isinstance(node, n.Scan) else ["spark"] if not ways else []
        return f"[{', '.join([*where, *(f'python: {way}' for way in ways)])}]"

    return print_plan(report.plan, note=mark).splitlines()
