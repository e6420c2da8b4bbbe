"""Candidate views: the paths of the rooted trees.

A view of a path has the attributes of all its relations, and the key of the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from belvedere.advisor.synergy.rooted_trees import RootedTree
from belvedere.advisor.synergy.schema_graph import SchemaGraph, SchemaPath


@dataclass(frozen=True, slots=True)
class PathView:
    """A view that joins relations along a path of a rooted tree."""

    root: int
    path: SchemaPath

    @property
    def relations(self) -> tuple[int, ...]:
        return (self.path[0].parent, *(edge.child for edge in self.path))

    def describe_path(self, graph: SchemaGraph) -> str:
        """Such as `Customer-Orders`."""
        return "-".join(graph.name_relation(relation) for relation in self.relations)


def list_candidate_views(trees: Sequence[RootedTree]) -> list[PathView]:
    """Every path of every tree, the shorter ones of a start first."""
    return [
        PathView(tree.root, path)
        for tree in trees
        for start in tree.relations
        for path in sorted(_walk_down(tree, start), key=len)
    ]


def _walk_down(tree: RootedTree, start: int) -> Iterator[SchemaPath]:
    for edge in tree.list_outgoing(start):
        yield (edge,)
        for rest in _walk_down(tree, edge.child):
            yield (edge, *rest)
