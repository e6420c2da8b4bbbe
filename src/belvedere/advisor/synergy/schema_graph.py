"""The schema graph: relations, and an edge from each referenced relation to the one that refers.

An edge (PK, FK) goes from the relation with the primary key to the relation with the foreign key.
Between two relations there may be several, one for each foreign key. Circular references have no
place in a rooted tree: an edge of a relation to itself is left out, and so is the last edge that
would close a longer circle, in the order of the tables.

A schema without foreign keys gets its edges from the workload: a join that covers the primary key
of one side is an edge from that side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from belvedere.advisor.workload.bound_workload import WorkloadQuery
from belvedere.advisor.workload.join_block import JoinBlock
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table


@dataclass(frozen=True, slots=True)
class SchemaEdge:
    """`key` are slots of the parent's key, `foreign_key` the child's slots that refer to them."""

    parent: int
    child: int
    key: tuple[int, ...]
    foreign_key: tuple[int, ...]


SchemaPath = tuple[SchemaEdge, ...]
"""Edges that follow one another."""


@dataclass(frozen=True, slots=True)
class SchemaGraph:
    """`left_out` are edges that close a circle; `from_workload`: no foreign key is declared."""

    catalog: Catalog
    relations: tuple[int, ...]
    edges: tuple[SchemaEdge, ...]
    left_out: tuple[SchemaEdge, ...] = ()
    from_workload: bool = False
    _outgoing: dict[int, list[SchemaEdge]] = field(default_factory=dict, repr=False)

    def name_relation(self, relation: int) -> str:
        return self.catalog.table(relation).name

    def describe_edge(self, edge: SchemaEdge) -> str:
        """Such as `(AID, EHome_AID)`: the primary key, then the foreign key."""
        parent, child = self.catalog.table(edge.parent), self.catalog.table(edge.child)
        key = [parent.columns[slot].name for slot in edge.key]
        foreign_key = [child.columns[slot].name for slot in edge.foreign_key]
        return f"({', '.join([*key, *foreign_key])})"

    def list_outgoing(self, relation: int) -> list[SchemaEdge]:
        if not self._outgoing:
            for edge in self.edges:
                self._outgoing.setdefault(edge.parent, []).append(edge)
        return self._outgoing.get(relation, [])

    def with_edges(self, edges: Iterable[SchemaEdge]) -> SchemaGraph:
        return SchemaGraph(
            self.catalog, self.relations, tuple(edges), self.left_out, self.from_workload
        )


def build_schema_graph(catalog: Catalog, queries: Sequence[WorkloadQuery] = ()) -> SchemaGraph:
    tables = [table for table in catalog.tables if not _is_hidden(table)]
    wanted = [
        SchemaEdge(key.parent, table.id, key.parent_columns, key.columns)
        for table in tables
        for key in table.foreign_keys
    ]
    from_workload = not wanted
    if from_workload:
        wanted = _list_workload_edges(catalog, queries)
    kept: list[SchemaEdge] = []
    left_out: list[SchemaEdge] = []
    for edge in wanted:
        circular = edge.parent == edge.child or _is_reachable(kept, edge.child, edge.parent)
        (left_out if circular else kept).append(edge)
    relations = tuple(table.id for table in tables)
    return SchemaGraph(catalog, relations, tuple(kept), tuple(left_out), from_workload)


def _is_hidden(table: Table) -> bool:
    return table.name.startswith("belvedere_")


def _is_reachable(edges: Sequence[SchemaEdge], start: int, end: int) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        at = waiting.pop()
        if at == end:
            return True
        for edge in edges:
            if edge.parent == at and edge.child not in seen:
                seen.add(edge.child)
                waiting.append(edge.child)
    return False


def _list_workload_edges(catalog: Catalog, queries: Sequence[WorkloadQuery]) -> list[SchemaEdge]:
    """The joins of the workload that cover a primary key, as edges from its relation."""
    found = dict[SchemaEdge, None]()
    for query in queries:
        for block in query.blocks:
            found.update(dict.fromkeys(_list_block_edges(catalog, block)))
    return list(found)


def _list_block_edges(catalog: Catalog, block: JoinBlock) -> Iterable[SchemaEdge]:
    pairs: dict[tuple[int, int], dict[int, int]] = {}
    for left, right in block.equalities:
        for one, other in ((left, right), (right, left)):
            pairs.setdefault((one.leaf, other.leaf), {})[one.slot] = other.slot
    for (parent_leaf, child_leaf), slots in pairs.items():
        parent, child = block.leaves[parent_leaf].relation, block.leaves[child_leaf].relation
        if parent is None or child is None or not isinstance(catalog.get(parent), Table):
            continue
        key = catalog.table(parent).primary_key
        if isinstance(catalog.get(child), Table) and set(key) <= slots.keys():
            yield SchemaEdge(parent, child, key, tuple(slots[slot] for slot in key))
