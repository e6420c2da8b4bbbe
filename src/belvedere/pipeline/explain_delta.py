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
from belvedere.execution.spark.frames import Frames
from belvedere.execution.spark.types import NotNative
from belvedere.pipeline.delta_frames import DeltaFrames, no_tables
from belvedere.pipeline.logged import Changes
from belvedere.pipeline.ready import Ready
from belvedere.pipeline.states import state_of
from belvedere.pipeline.store import Store
from belvedere.plan import nodes as n
from belvedere.plan.printer import print_plan
from belvedere.views.core import name_of
from belvedere.views.source import ENVIRONMENT
from belvedere.views.tree import Apply, Core, Map, Recompute, Tree, Union, children, inputs_of

LOOKED_UP = "[spark: one exchange by the key; store: partners, in the tasks]"
REDONE = "[spark: keys, one exchange by them; python: rows from the store, done again in the tasks]"
APPLIED = "[spark: one exchange by the key; python: matching rows from the store, in the tasks]"


def explained_delta(
    spark: SparkSession, store: Store, known: Ready, objects: tuple[bytes, ...], view: View
) -> list[str]:
    """Lines of text about the delta plan of a view. Nothing is run."""
    compiled = known.compiled(view)
    frames = Frames(spark, ENVIRONMENT)
    made = DeltaFrames(
        frames,
        no_tables,
        changes=Changes(frames, store, known.catalog, 0, 0, 1),
        catalog=known.catalog,
        view=view.id,
        changed=frozenset(inputs_of(compiled.tree)),
    )
    try:
        frame = made.delta(compiled.tree)
    except NotNative as found:
        return [f"[python] the engine's operators on net changes by key: {found.reason}"]
    if frame is None:
        return ["its rows never change"]
    state = state_of(made, frame, view.id, objects, compiled.group, weighted=True)
    return [*_tree(made, compiled.tree), f"state: {state.how}"]


def _tree(made: DeltaFrames, tree: Tree) -> list[str]:
    below = [line for one in children(tree) for line in _tree(made, one)]
    match tree:
        case Core():
            return list(_terms(made, tree))
        case Union():
            head = "Union all  [spark]"
        case Map():
            first, *_ = print_plan(tree.plan, note=lambda node: _mark(made, node)).splitlines()
            head = first
        case Recompute():
            head = f"{name_of(tree.plan)} by touched keys  {REDONE}"
        case Apply():
            head = f"{name_of(tree.plan)} of changed rows  {APPLIED}"
        case _:
            head = name_of(tree.plan)
    return [head, *(f"  {line}" for line in below)]


def _terms(made: DeltaFrames, tree: Core) -> Iterator[str]:
    for relation, term in made.terms.get(id(tree), ()):
        yield f"when {made.catalog.table(relation).name} changes"
        text = print_plan(term.plan, note=lambda node: _mark(made, node))
        yield from (f"  {line}" for line in text.splitlines())


def _mark(made: DeltaFrames, node: n.Node) -> str:
    ways = made.report.ways.get(id(node), [])
    ours = [f"[python: {way}]" for way in ways]
    match node:
        case n.Changes() | n.Scan():
            return "[store]"
        case n.Join(lookup=n.Lookup()):
            return " ".join([LOOKED_UP, *ours])
        case _:
            return " ".join(ours) or "[spark]"
