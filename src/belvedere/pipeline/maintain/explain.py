"""EXPLAIN of the delta plan of a view on Spark: how each operator of a large batch would run.

when items changes
  Project name, price  [spark]
    Join inner lookup kinds key id = kind  [spark: one exchange by the key; store: partners]
      Filter price > 2  [spark]
        Changes items (kind, price)  [store]
      Scan kinds (id, name)  [store]
state: [spark] added up by Spark's aggregates
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from belvedere.catalog.model import View
from belvedere.execution.spark.dataframes import FrameBuilder
from belvedere.execution.spark.types import NotNative
from belvedere.pipeline.aggregate.sum_methods import plan_state_additions
from belvedere.pipeline.maintain.delta_dataframes import DeltaLowering, refuse_table_scan
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.compiled_views import CompiledViews
from belvedere.pipeline.store.log_changes import ChangeFrames
from belvedere.plan import nodes as n
from belvedere.plan.printer import print_plan
from belvedere.views.delta.delta_tree import (
    Apply,
    DeltaTree,
    LinearCore,
    Map,
    Recompute,
    Union,
    child_trees,
    collect_relations,
)
from belvedere.views.delta.linear_core import describe_node
from belvedere.views.delta.sessionless_run import ENVIRONMENT

LOOKED_UP = "[spark: one exchange by the key; store: partners, in the tasks]"
RECOMPUTED = (
    "[spark: keys, one exchange by them; python: rows from the store, done again in the tasks]"
)
APPLIED = "[spark: one exchange by the key; python: matching rows from the store, in the tasks]"


def explain_delta_plan(
    spark: SparkSession, store: Store, known: CompiledViews, objects: tuple[bytes, ...], view: View
) -> list[str]:
    """Lines of text about the delta plan of a view. Nothing is run."""
    compiled = known.get_maintenance_plan(view)
    frames = FrameBuilder(spark, ENVIRONMENT)
    made = DeltaLowering(
        frames,
        refuse_table_scan,
        changes=ChangeFrames(frames, store, known.catalog, 0, 0, 1),
        catalog=known.catalog,
        view=view.id,
        changed=frozenset(collect_relations(compiled.tree)),
    )
    try:
        frame = made.lower_delta_tree(compiled.tree)
    except NotNative as found:
        return [f"[python] the engine's operators on net changes by key: {found.reason}"]
    if frame is None:
        return ["its rows never change"]
    state = plan_state_additions(made, frame, view.id, objects, compiled.group, weighted=True)
    return [*_explain_delta_tree(made, compiled.tree), f"state: {state.how}"]


def _explain_delta_tree(made: DeltaLowering, tree: DeltaTree) -> list[str]:
    below = [line for one in child_trees(tree) for line in _explain_delta_tree(made, one)]
    match tree:
        case LinearCore():
            return list(_explain_linear_core_terms(made, tree))
        case Union():
            head = "Union all  [spark]"
        case Map():
            first, *_ = print_plan(
                tree.plan, note=lambda node: _format_node_mark(made, node)
            ).splitlines()
            head = first
        case Recompute():
            head = f"{describe_node(tree.plan)} by touched keys  {RECOMPUTED}"
        case Apply():
            head = f"{describe_node(tree.plan)} of changed rows  {APPLIED}"
        case _:
            head = describe_node(tree.plan)
    return [head, *(f"  {line}" for line in below)]


def _explain_linear_core_terms(made: DeltaLowering, tree: LinearCore) -> Iterator[str]:
    for relation, term in made.terms.get(id(tree), ()):
        yield f"when {made.catalog.table(relation).name} changes"
        text = print_plan(term.plan, note=lambda node: _format_node_mark(made, node))
        yield from (f"  {line}" for line in text.splitlines())


def _format_node_mark(made: DeltaLowering, node: n.Node) -> str:
    ways = made.report.notes_by_node.get(id(node), [])
    ours = [f"[python: {way}]" for way in ways]
    match node:
        case n.Changes() | n.Scan():
            return "[store]"
        case n.Join(lookup=n.Lookup()):
            return " ".join([LOOKED_UP, *ours])
        case _:
            return " ".join(ours) or "[spark]"
