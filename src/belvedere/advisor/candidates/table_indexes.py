"""Indexes of tables, where an index is all that a query lacks: of columns that it sets equal to a
value and that no index begins with, followed by those it sorts by."""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.advisor.candidates.candidate import Candidate, CandidateKind
from belvedere.advisor.candidates.query_views import find_block_needs
from belvedere.advisor.workload.bound_workload import WorkloadQuery
from belvedere.advisor.workload.join_block import LeafColumn
from belvedere.catalog.catalog import Catalog


def list_table_indexes(catalog: Catalog, queries: Sequence[WorkloadQuery]) -> list[Candidate]:
    found: dict[tuple[object, ...], Candidate] = {}
    for query in queries:
        for block in query.blocks:
            needs = find_block_needs(catalog, block)
            if needs is None:
                continue
            for leaf in range(len(block.leaves)):
                fixed = [c for c in (*needs.fixed, *needs.bounded) if c.leaf == leaf]
                then = [c for c in needs.sorted if c.leaf == leaf and len(block.leaves) == 1]
                wanted = list(dict.fromkeys((*fixed[:2], *then[:2])))
                candidate = _make_index(catalog, needs.leaves.relations[leaf], wanted, query.name)
                if candidate is not None:
                    found.setdefault(candidate.identity, candidate)
    return list(found.values())


def _make_index(
    catalog: Catalog, relation: int, wanted: list[LeafColumn], query: str
) -> Candidate | None:
    slots = tuple(column.slot for column in wanted)
    if not slots or _has_index(catalog, relation, slots):
        return None
    table = catalog.table(relation)
    names = tuple(table.columns[slot].name for slot in slots)
    return Candidate(
        f"{table.name}_{'_'.join(names)}_advised",
        CandidateKind.INDEX,
        frozenset((relation,)),
        table=table.name,
        columns=names,
        queries=frozenset((query,)),
    )


def _has_index(catalog: Catalog, relation: int, slots: tuple[int, ...]) -> bool:
    table = catalog.table(relation)
    if table.primary_key[: len(slots)] == slots:
        return True
    for index in catalog.table_indexes(relation):
        parts = tuple(part.slot for part in index.parts)
        if parts[: len(slots)] == slots and index.where is None:
            return True
    return False
