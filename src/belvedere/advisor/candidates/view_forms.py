"""Other forms of a candidate, which cost writes less and readers more.

co-located   a join of tables of which one is updated: one entry for each changed row, whatever it
             joins with, joined on read
local        groups of a partitioned table that is written: the entries of a group are spread over
             the partitions as the rows are, and added up on read
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from belvedere.advisor.candidates.candidate import Candidate, CandidateKind
from belvedere.advisor.workload.bound_workload import WorkloadWrite
from belvedere.catalog.catalog import Catalog

COLOCATED = (("join", "colocated"),)
LOCAL = (("placement", "local"),)
_JOINS = frozenset((CandidateKind.PATH, CandidateKind.JOIN, CandidateKind.SHARED))
_HASH_LENGTH = 5
_NAME_LENGTH_MAX = 60


def list_view_forms(
    catalog: Catalog, candidates: Iterable[Candidate], writes: Iterable[WorkloadWrite]
) -> list[Candidate]:
    """A form for each candidate that it may suit; whether it can be built, the compiler says."""
    listed = list(writes)
    updated = {write.relation for write in listed if write.verb == "update"}
    written = {write.relation for write in listed}
    found = []
    for one in candidates:
        if one.kind in _JOINS and len(one.relations) > 1 and one.relations & updated:
            found.append(_make_form(one, COLOCATED, "colocated"))
        elif one.kind is CandidateKind.AGGREGATE and len(one.relations) == 1:
            (relation,) = one.relations
            if relation in written and catalog.table(relation).partitions > 1:
                found.append(_make_form(one, LOCAL, "local"))
    return found


def _make_form(candidate: Candidate, options: tuple[tuple[str, str], ...], word: str) -> Candidate:
    stem, hashed = candidate.name[:-_HASH_LENGTH], candidate.name[-_HASH_LENGTH:]
    room = _NAME_LENGTH_MAX - _HASH_LENGTH - len(word) - 1
    return replace(candidate, name=f"{stem[:room]}_{word}{hashed}", options=options)
