"""Views that several queries share: queries which join the same tables in the same way get one view
with all the columns that any of them reads, once in the order of each of them."""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.advisor.candidates.candidate import Candidate, CandidateKind
from belvedere.advisor.candidates.query_views import find_block_needs, list_join_shapes
from belvedere.advisor.candidates.view_shape import JoinShape
from belvedere.advisor.workload.bound_workload import WorkloadQuery
from belvedere.catalog.catalog import Catalog

ORDERS_MAX = 8
"""Orders tried for one join."""


def list_shared_views(catalog: Catalog, queries: Sequence[WorkloadQuery]) -> list[Candidate]:
    groups: dict[tuple[object, ...], list[tuple[str, JoinShape]]] = {}
    for query in queries:
        for block in query.blocks:
            needs = find_block_needs(catalog, block)
            if needs is None or len(block.leaves) < 2:
                continue
            for shape, kind in list_join_shapes(block, needs):
                if kind is CandidateKind.JOIN:
                    groups.setdefault(shape.core, []).append((query.name, shape))
    found = []
    for shapes in groups.values():
        names = {name for name, _ in shapes}
        if len(names) > 1:
            found += _merge_shapes(shapes, names)
    return found


def _merge_shapes(shapes: list[tuple[str, JoinShape]], names: set[str]) -> list[Candidate]:
    every = tuple(dict.fromkeys(column for _, shape in shapes for column in shape.columns))
    first = shapes[0][1]
    orders = dict.fromkeys((shape.key, shape.order) for _, shape in shapes)
    return [
        JoinShape(first.leaves, first.equalities, first.filters, key, every, order).make_candidate(
            CandidateKind.SHARED, names
        )
        for key, order in list(orders)[:ORDERS_MAX]
    ]
