"""Step 4: each rooted graph becomes a rooted tree, with one path from the root to each relation.

In reverse topological order, so that the paths stay along which most joins of the workload can be
materialized: of the paths from the root to the last relation the heaviest goes into the tree, and
the relations on it are done. A path that would give a relation of the tree a second parent is no
choice; one that follows the tree as far as it goes always exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from belvedere.advisor.synergy.overlapping_joins import EdgeWeight, weigh_path
from belvedere.advisor.synergy.rooted_graphs import RootedGraph, list_paths
from belvedere.advisor.synergy.schema_graph import SchemaEdge, SchemaPath
from belvedere.advisor.synergy.topological_order import order_topologically


@dataclass(slots=True)
class RootedTree:
    """`parent_edges` has the one edge by which each relation but the root is reached."""

    root: int
    parent_edges: dict[int, SchemaEdge] = field(default_factory=dict)

    @property
    def relations(self) -> list[int]:
        return [self.root, *self.parent_edges]

    @property
    def edges(self) -> list[SchemaEdge]:
        return list(self.parent_edges.values())

    def list_outgoing(self, relation: int) -> list[SchemaEdge]:
        return [edge for edge in self.parent_edges.values() if edge.parent == relation]

    def allows_path(self, path: SchemaPath) -> bool:
        return all(self.parent_edges.get(edge.child, edge) == edge for edge in path)


def transform_to_trees(graphs: list[RootedGraph], weight: EdgeWeight) -> list[RootedTree]:
    return [_transform_to_tree(graph, weight) for graph in graphs]


def _transform_to_tree(graph: RootedGraph, weight: EdgeWeight) -> RootedTree:
    def list_outgoing(relation: int) -> list[SchemaEdge]:
        return [edge for edge in graph.edges if edge.parent == relation]

    tree = RootedTree(graph.root)
    waiting = [r for r in order_topologically(graph.relations, graph.edges) if r != graph.root]
    while waiting:
        paths = list_paths(list_outgoing, graph.root, waiting[-1])
        allowed = [path for path in paths if tree.allows_path(path)]
        path = max(allowed, key=lambda one: weigh_path(one, weight))
        for edge in path:
            tree.parent_edges.setdefault(edge.child, edge)
        waiting = [relation for relation in waiting if relation not in tree.parent_edges]
    return tree
