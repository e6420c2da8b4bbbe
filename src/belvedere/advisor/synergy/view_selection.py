"""Views selection for a query: the edges that its joins mark, and the marked paths.

The join conditions of a query mark edges and relations of the rooted trees. Then paths are chosen,
one after the other, of which all relations and edges are marked, which start in a relation without
a marked edge to it and end in one without a marked edge from it. Each is a view for the query; its
relations, and the edges that leave them, are unmarked.

A relation that a block of the query has more than once marks nothing there: a row of a view could
stand for either occurrence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.advisor.synergy.candidate_views import PathView
from belvedere.advisor.synergy.overlapping_joins import list_block_joins, list_repeated_relations
from belvedere.advisor.synergy.rooted_trees import RootedTree
from belvedere.advisor.synergy.schema_graph import SchemaEdge, SchemaPath
from belvedere.advisor.workload.bound_workload import WorkloadQuery
from belvedere.advisor.workload.join_block import JoinBlock


@dataclass(frozen=True, slots=True)
class BlockSelection:
    """What one block of a query marks, and the views selected for it."""

    block: JoinBlock
    marked: tuple[SchemaEdge, ...]
    views: tuple[PathView, ...]
    repeated: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QuerySelection:
    query: WorkloadQuery
    blocks: tuple[BlockSelection, ...]

    @property
    def views(self) -> tuple[PathView, ...]:
        return tuple(dict.fromkeys(view for block in self.blocks for view in block.views))


def select_views(
    trees: Sequence[RootedTree], queries: Sequence[WorkloadQuery]
) -> list[QuerySelection]:
    """The views of each query that joins; their union is the final view set."""
    return [
        QuerySelection(
            query,
            tuple(
                _select_block_views(trees, block) for block in query.blocks if len(block.leaves) > 1
            ),
        )
        for query in queries
        if any(len(block.leaves) > 1 for block in query.blocks)
    ]


def _select_block_views(trees: Sequence[RootedTree], block: JoinBlock) -> BlockSelection:
    repeated = list_repeated_relations(block)
    marked: list[SchemaEdge] = []
    views: list[PathView] = []
    for tree in trees:
        joins = list_block_joins(tree.edges, block)
        edges = [e for e, _, _ in joins if not {e.parent, e.child} & set(repeated)]
        marked += edges
        views += [PathView(tree.root, path) for path in choose_marked_paths(tree, edges)]
    return BlockSelection(block, tuple(marked), tuple(views), repeated)


def choose_marked_paths(tree: RootedTree, edges: Sequence[SchemaEdge]) -> list[SchemaPath]:
    """The paths that the two rules choose, until none is left."""
    left = [edge for edge in tree.edges if edge in edges]
    unmarked = set[int]()
    found: list[SchemaPath] = []
    while True:
        path = _choose_path(tree, left, unmarked)
        if path is None:
            return found
        found.append(path)
        used = {path[0].parent, *(edge.child for edge in path)}
        unmarked |= used
        left = [edge for edge in left if edge.parent not in used]


def _choose_path(
    tree: RootedTree, left: Sequence[SchemaEdge], unmarked: set[int]
) -> SchemaPath | None:
    usable = [e for e in left if e.parent not in unmarked and e.child not in unmarked]
    reached = {edge.child for edge in usable}
    for relation in tree.relations:
        if relation in reached:
            continue
        path: list[SchemaEdge] = []
        while step := next((edge for edge in usable if edge.parent == relation), None):
            path.append(step)
            relation = step.child
        if path:
            return tuple(path)
    return None
