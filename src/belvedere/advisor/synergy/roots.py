"""Roots where nobody names them: the relations whose trees let most joins be materialized.

The paper leaves this open. A relation that refers to none is a root in any case: it has no other
root to belong to, and each of them adds only paths. Further ones are tried one at a time, among the
relations that the workload joins, and kept when the joins which the trees contain weigh more with
the relation as a root than without it. Of two equal sets the smaller one wins, so that a
transaction under one root stays under one root.
"""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.advisor.synergy.overlapping_joins import EdgeWeight
from belvedere.advisor.synergy.rooted_graphs import assign_relations_to_roots
from belvedere.advisor.synergy.rooted_trees import transform_to_trees
from belvedere.advisor.synergy.schema_graph import SchemaGraph


def choose_roots(dag: SchemaGraph, order: Sequence[int], weight: EdgeWeight) -> tuple[int, ...]:
    children = {edge.child for edge in dag.edges}
    joined = {end for edge in dag.edges if weight(edge) for end in (edge.parent, edge.child)}
    roots = [r for r in order if r not in children and dag.list_outgoing(r)]
    best = weigh_trees(dag, order, roots, weight)
    improved = True
    while improved:
        improved = False
        for relation in order:
            if relation in roots or relation not in joined:
                continue
            wanted = [r for r in order if r in roots or r == relation]
            found = weigh_trees(dag, order, wanted, weight)
            if found > best:
                roots, best, improved = wanted, found, True
    return tuple(roots)


def weigh_trees(
    dag: SchemaGraph, order: Sequence[int], roots: Sequence[int], weight: EdgeWeight
) -> float:
    """The weight of all joins that lie in the trees of these roots."""
    trees = transform_to_trees(assign_relations_to_roots(dag, order, roots, weight), weight)
    return sum(weight(edge) for tree in trees for edge in tree.edges)
