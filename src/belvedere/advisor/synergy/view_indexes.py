"""Additional view indexes: for reads whose filter the view is not ordered by, and for maintenance.

For reads, the paper's rule: when a conjunctive query that uses the view filters on attributes of
the view by none of which the view or one of its indexes is indexed, an index on a filter attribute
is added.

For maintenance: an update of a relation that is not the last of the view finds the view's rows by
the key of that relation. The paper leaves the details out. Belvedere finds those rows through the
foreign keys of the base tables, so these indexes are named for comparison and never created.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.advisor.synergy.candidate_views import PathView
from belvedere.advisor.synergy.schema_graph import SchemaGraph
from belvedere.advisor.synergy.view_selection import BlockSelection, QuerySelection
from belvedere.advisor.workload.bound_workload import WorkloadWrite


class IndexPurpose(enum.StrEnum):
    READ = "read"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True)
class ViewIndex:
    """An index of a view on columns of one of its relations, and the statement it is for."""

    view: PathView
    relation: int
    slots: tuple[int, ...]
    purpose: IndexPurpose
    statement: str

    def describe_columns(self, graph: SchemaGraph) -> str:
        table = graph.catalog.table(self.relation)
        return ", ".join(table.columns[slot].name for slot in self.slots)


def add_read_indexes(graph: SchemaGraph, selections: Sequence[QuerySelection]) -> list[ViewIndex]:
    found: list[ViewIndex] = []
    for selection in selections:
        for block in selection.blocks:
            for view in block.views:
                index = _find_read_index(graph, selection.query.name, block, view, found)
                if index is not None:
                    found.append(index)
    return found


def _find_read_index(
    graph: SchemaGraph,
    statement: str,
    selection: BlockSelection,
    view: PathView,
    known: Sequence[ViewIndex],
) -> ViewIndex | None:
    block = selection.block
    filters = []
    for condition in block.other_conditions:
        column = block.find_fixed_column(condition)
        if column is not None:
            relation = block.leaves[column.leaf].relation
            if relation is not None and relation in view.relations:
                filters.append((relation, column.slot))
    last = view.relations[-1]
    indexed = {(last, graph.catalog.table(last).primary_key[0])}
    indexed |= {(index.relation, index.slots[0]) for index in known if index.view == view}
    if not filters or indexed.intersection(filters):
        return None
    relation, slot = filters[0]
    return ViewIndex(view, relation, (slot,), IndexPurpose.READ, statement)


def add_maintenance_indexes(
    graph: SchemaGraph, views: Sequence[PathView], writes: Sequence[WorkloadWrite]
) -> list[ViewIndex]:
    found: dict[tuple[PathView, int], ViewIndex] = {}
    for write in writes:
        for view in views:
            if write.verb == "update" and write.relation in view.relations[:-1]:
                key = graph.catalog.table(write.relation).primary_key
                index = ViewIndex(view, write.relation, key, IndexPurpose.MAINTENANCE, write.name)
                found.setdefault((view, write.relation), index)
    return list(found.values())
