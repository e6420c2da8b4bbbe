"""Step 3: each relation that is no root is assigned to one root at most, by a path from it.

In topological order, so that every relation has a chance with each root that reaches it: the paths
from all roots are sorted by weight, and the first one is taken that has no second root on it and no
relation which belongs to another root. All its edges go into the graph of its root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from belvedere.advisor.synergy.overlapping_joins import EdgeWeight, weigh_path
from belvedere.advisor.synergy.schema_graph import SchemaEdge, SchemaGraph, SchemaPath

Outgoing = Callable[[int], Sequence[SchemaEdge]]
"""The edges that leave a relation."""

PATHS_MAX = 2_000
"""Paths examined between two relations; a graph with more has its later ones ignored."""


@dataclass(slots=True)
class RootedGraph:
    root: int
    relations: list[int] = field(default_factory=list)
    edges: list[SchemaEdge] = field(default_factory=list)

    def add_path(self, path: SchemaPath) -> None:
        for edge in path:
            if edge not in self.edges:
                self.edges.append(edge)
            if edge.child not in self.relations:
                self.relations.append(edge.child)


def assign_relations_to_roots(
    dag: SchemaGraph, order: Sequence[int], roots: Sequence[int], weight: EdgeWeight
) -> list[RootedGraph]:
    graphs = {root: RootedGraph(root, [root]) for root in roots}
    root_of = {root: root for root in roots}
    for relation in order:
        if relation in graphs:
            continue
        paths = [
            (root, path) for root in roots for path in list_paths(dag.list_outgoing, root, relation)
        ]
        # A stable sort: of paths of equal weight that of the root named first is taken.
        for root, path in sorted(paths, key=lambda pair: -weigh_path(pair[1], weight)):
            if all(root_of.get(edge.child, root) == root for edge in path):
                graphs[root].add_path(path)
                root_of.update((edge.child, root) for edge in path)
                break
    return list(graphs.values())


def list_paths(outgoing: Outgoing, start: int, end: int) -> list[SchemaPath]:
    """The paths of an acyclic graph between two relations."""
    found: list[SchemaPath] = []
    for path in _walk_paths(outgoing, start, end, ()):
        found.append(path)
        if len(found) == PATHS_MAX:
            break
    return found


def _walk_paths(
    outgoing: Outgoing, start: int, end: int, before: SchemaPath
) -> Iterator[SchemaPath]:
    for edge in outgoing(start):
        if edge.child == end:
            yield (*before, edge)
        else:
            yield from _walk_paths(outgoing, edge.child, end, (*before, edge))
