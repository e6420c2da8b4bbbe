"""Step 1: the schema graph as a directed acyclic graph with one edge at most between two relations.

Of several edges between two relations the one with the largest weight stays; of equal ones the
first that was declared.
"""

from __future__ import annotations

from belvedere.advisor.synergy.overlapping_joins import EdgeWeight
from belvedere.advisor.synergy.schema_graph import SchemaEdge, SchemaGraph


def transform_to_dag(graph: SchemaGraph, weight: EdgeWeight) -> SchemaGraph:
    best: dict[tuple[int, int], SchemaEdge] = {}
    for edge in graph.edges:
        known = best.get((edge.parent, edge.child))
        if known is None or weight(edge) > weight(known):
            best[edge.parent, edge.child] = edge
    kept = set(best.values())
    return graph.with_edges(edge for edge in graph.edges if edge in kept)
