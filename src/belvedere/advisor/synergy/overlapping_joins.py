"""The weight of an edge or path: how many joins of the workload overlap with it.

A join of a query overlaps with an edge when it sets the foreign key equal to the key. Joins of a
relation that the block has more than once do not count: no view is selected for them. Another
weight can take the place of this one: every stage is given an `EdgeWeight`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from belvedere.advisor.synergy.schema_graph import SchemaEdge, SchemaGraph, SchemaPath
from belvedere.advisor.workload.bound_workload import WorkloadQuery
from belvedere.advisor.workload.join_block import JoinBlock

EdgeWeight = Callable[[SchemaEdge], float]


def count_overlapping_joins(
    graph: SchemaGraph, queries: Sequence[WorkloadQuery], *, by_calls: bool = False
) -> EdgeWeight:
    """The weight that the paper uses: the number of overlapping joins in the workload. `by_calls`:
    each join as often as its query runs."""
    counts = dict.fromkeys(graph.edges, 0.0)
    for query in queries:
        for block in query.blocks:
            repeated = list_repeated_relations(block)
            for edge, _, _ in list_block_joins(graph.edges, block):
                if not {edge.parent, edge.child} & set(repeated):
                    counts[edge] += query.statement.calls if by_calls else 1
    return lambda edge: counts.get(edge, 0.0)


def list_repeated_relations(block: JoinBlock) -> tuple[int, ...]:
    """The relations that the block has more than once."""
    counts = Counter(leaf.relation for leaf in block.leaves if leaf.relation is not None)
    return tuple(relation for relation, count in counts.items() if count > 1)


def weigh_path(path: SchemaPath, weight: EdgeWeight) -> float:
    return sum(map(weight, path))


def list_block_joins(
    edges: Sequence[SchemaEdge], block: JoinBlock
) -> list[tuple[SchemaEdge, int, int]]:
    """The edges that the block's conditions join along, with the leaves of parent and child."""
    equal = {pair for left, right in block.equalities for pair in ((left, right), (right, left))}
    found = []
    for edge in edges:
        pairs = list(zip(edge.key, edge.foreign_key, strict=True))
        for i, parent in enumerate(block.leaves):
            if parent.relation != edge.parent:
                continue
            for j, child in enumerate(block.leaves):
                if child.relation == edge.child and all(
                    ((i, key), (j, reference)) in equal for key, reference in pairs
                ):
                    found.append((edge, i, j))
    return found
