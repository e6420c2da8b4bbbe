"""Step 2: a linear order of the relations in which each stands after all it refers to."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from belvedere.advisor.synergy.schema_graph import SchemaEdge


def order_topologically(relations: Sequence[int], edges: Iterable[SchemaEdge]) -> tuple[int, ...]:
    """Of those that may come next, the one that was created first does."""
    place = {relation: i for i, relation in enumerate(relations)}
    kept = [edge for edge in edges if edge.parent in place and edge.child in place]
    waits = dict.fromkeys(relations, 0)
    for edge in kept:
        waits[edge.child] += 1
    ready = [place[relation] for relation in relations if not waits[relation]]
    heapq.heapify(ready)
    found: list[int] = []
    while ready:
        relation = relations[heapq.heappop(ready)]
        found.append(relation)
        for edge in kept:
            if edge.parent == relation:
                waits[edge.child] -= 1
                if not waits[edge.child]:
                    heapq.heappush(ready, place[edge.child])
    assert len(found) == len(relations), "the schema DAG has a circle"
    return tuple(found)
