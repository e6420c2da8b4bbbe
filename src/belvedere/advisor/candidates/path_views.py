"""The views that Synergy's mechanism selects, as candidates: all attributes of the relations of a
path. The first is ordered by the key of its last relation; for each index that the paper adds for
reads there is one more, ordered by that."""

from __future__ import annotations

from belvedere.advisor.candidates.candidate import Candidate, CandidateKind
from belvedere.advisor.candidates.definition_text import ViewLeaves
from belvedere.advisor.candidates.view_shape import JoinShape
from belvedere.advisor.synergy.candidate_views import PathView
from belvedere.advisor.synergy.mechanism import SynergyStages
from belvedere.advisor.synergy.view_indexes import IndexPurpose
from belvedere.advisor.workload.join_block import Equality, LeafColumn


def list_path_candidates(stages: SynergyStages) -> list[Candidate]:
    found = []
    for view in stages.views:
        users = [one.query.name for one in stages.selections if view in one.views]
        last = len(view.relations) - 1
        key = stages.graph.catalog.table(view.relations[-1]).primary_key
        orders = [tuple(LeafColumn(last, slot) for slot in key)]
        for index in stages.indexes:
            if index.view == view and index.purpose is IndexPurpose.READ:
                leaf = view.relations.index(index.relation)
                orders.append(tuple(LeafColumn(leaf, slot) for slot in index.slots))
        for order in orders:
            shape = _make_shape(stages, view, order)
            found.append(shape.make_candidate(CandidateKind.PATH, users))
    return found


def _make_shape(stages: SynergyStages, view: PathView, order: tuple[LeafColumn, ...]) -> JoinShape:
    leaves = ViewLeaves(stages.graph.catalog, view.relations)
    equalities = tuple(
        Equality(LeafColumn(number, key), LeafColumn(number + 1, reference))
        for number, edge in enumerate(view.path)
        for key, reference in zip(edge.key, edge.foreign_key, strict=True)
    )
    every = [column for leaf in range(len(view.relations)) for column in leaves.list_columns(leaf)]
    return JoinShape(leaves, equalities, (), order, tuple(every))
