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
from belvedere.execution.spark.dataframes import FrameBuilder
from belvedere.execution.spark.lower import SparkLowering
from belvedere.execution.spark.operators import ComputeTask
from belvedere.pipeline.aggregate.linear_views import LinearBranch, try_compile_linear_view
from belvedere.pipeline.aggregate.sum_methods import plan_state_additions
from belvedere.pipeline.jobs.verify import find_view_by_name
from belvedere.pipeline.maintain.explain import explain_delta_plan
from belvedere.pipeline.maintain.group_driver import SMALL_CHANGES
from belvedere.pipeline.store.client import PositionLease, Store
from belvedere.pipeline.store.compiled_views import CompiledViews, get_compiled_views
from belvedere.pipeline.store.tables import (
    DefinitionCompiler,
    TableFrames,
    decode_catalog,
    fetch_encoded_catalog,
)
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.expression_printer import print_expression
from belvedere.plan.printer import print_plan
from belvedere.types import BOOLEAN
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.delta.normalize import normalize_plan
from belvedere.views.delta.sessionless_run import ENVIRONMENT
from belvedere.views.registry.view_registry import hide_later_columns


class ExplainInputs(NamedTuple):
    spark: SparkSession
    store: Store
    lease: PositionLease
    objects: tuple[bytes, ...]
    definitions: DefinitionCompiler


def explain_jobs_of_views(
    spark: SparkSession, store: Store, names: Sequence[str], definitions: DefinitionCompiler
) -> Iterator[str]:
    """Lines of text about each view."""
    lease = store.take_position_lease()
    try:
        objects = fetch_encoded_catalog(store, lease)
        known = get_compiled_views(objects, definitions)
        inputs = ExplainInputs(spark, store, lease, objects, definitions)
        for view in [find_view_by_name(known.catalog, name) for name in names]:
            yield f"view {view.name}"
            yield from explain_jobs_of_view(inputs, known, view)
    finally:
        store.release_position_lease(lease)


def explain_jobs_of_view(inputs: ExplainInputs, known: CompiledViews, view: View) -> Iterator[str]:
    compiled = known.get_maintenance_plan(view)
    yield "backfill"
    yield from indent_lines(
        _explain_backfill_by_scan(known, view) or _explain_backfill_by_plan(inputs, view, compiled)
    )
    yield "maintain"
    yield from indent_lines(_explain_maintain(inputs, known, view))
    yield "verify"
    yield from indent_lines(_explain_verify(inputs, view))


def indent_lines(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


# -- sums in the tasks -----------------------------------------------------------------------------


def _explain_backfill_by_scan(known: CompiledViews, view: View) -> list[str]:
    """The scans of a view that uses single rows, with the evaluation of its expressions."""
    linear = try_compile_linear_view(known, view)
    if linear is None:
        return []
    lines = ["[python] added up where the tables are read, over whole Arrow columns"]
    for side in linear.branches:
        lines.append(f"  [store] Scan {known.catalog.table(side.relation).name}")
        lines += indent_lines(_explain_branch_expressions(known.catalog, side))
    return [*lines, "when no other view of the job needs these tables; else like verify"]


def _explain_branch_expressions(catalog: Catalog, side: LinearBranch) -> list[str]:
    wanted = [(one, BOOLEAN) for one in side.conditions]
    wanted += [(one, one.type) for one in side.columns if not isinstance(one, e.Column)]
    names = tuple(f"c{i}" for i in range(len(side.types)))
    lines = []
    for one, result in wanted:
        step = ComputeTask((one,), side.types, names, (), (result,), ENVIRONMENT)
        how = "over whole columns" if step.is_columnar() else "row by row"
        lines.append(f"  {print_expression(one)}: {how}")
    return lines


def _explain_maintain(inputs: ExplainInputs, known: CompiledViews, view: View) -> list[str]:
    small = f"up to {SMALL_CHANGES} changes: [python] the engine's operators, in one task"
    exchange = "[spark] one exchange by the view's key, so that one task owns it"
    if try_compile_linear_view(known, view) is None:
        lines = explain_delta_plan(inputs.spark, inputs.store, known, inputs.objects, view)
        return [small, "more changes:", *indent_lines([*lines, exchange])]
    way = "old and new rows added up with signs over whole Arrow columns, by ranges of positions"
    return [small, f"more changes: [python] {way}", f"  {exchange}"]


# -- lowered plans ---------------------------------------------------------------------------------


def _explain_backfill_by_plan(
    inputs: ExplainInputs, view: View, compiled: MaintenancePlan
) -> list[str]:
    lowering = _create_table_lowering(inputs)
    frame = lowering.lower_plan(compiled.tree.plan)
    lines = _format_lowered_plan(lowering)
    state = plan_state_additions(lowering, frame, view.id, inputs.objects, compiled.group)
    return [*lines, f"state: {state.how}"]


def _explain_verify(inputs: ExplainInputs, view: View) -> list[str]:
    catalog = decode_catalog(inputs.objects)
    plan = normalize_plan(
        inputs.definitions.bind(hide_later_columns(catalog, view), view.definition)
    )
    lowering = _create_table_lowering(inputs)
    lowering.lower_plan(plan)
    return [*_format_lowered_plan(lowering), "stored state: [python] to rows, by key range"]


def _create_table_lowering(inputs: ExplainInputs) -> SparkLowering:
    frames = FrameBuilder(inputs.spark, ENVIRONMENT)
    catalog = decode_catalog(inputs.objects)
    tables = TableFrames(frames, inputs.store, inputs.lease, catalog, 1)
    return SparkLowering(frames, tables.build_scan_frame)


def _format_lowered_plan(lowering: SparkLowering) -> list[str]:
    """The lowered plan as text, with a mark after each node."""
    report = lowering.report
    assert report.plan is not None, "it was lowered"

    def format_node_mark(node: n.Node) -> str:
        ways = report.notes_by_node.get(id(node))
        if ways is None:
            return ""
        where = ["store"] if isinstance(node, n.Scan) else ["spark"] if not ways else []
        return f"[{', '.join([*where, *(f'python: {way}' for way in ways)])}]"

    return print_plan(report.plan, note=format_node_mark).splitlines()
