"""The cost estimate of a view: reads and writes for one changed row of each table.

Counted from the delta plan, not measured: `gets` are reads of one key, `ranges` reads of the rows
with one key or of the first rows in an order, `scans` full table scans; `writes` are entries of the
view, of its auxiliary views and of the indexes that would be created for it. Every entry written is
also read once, except for rows that contain the key of the one row they are made of: they are
written unread. Look-ups of several rows count as one range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from belvedere.catalog.catalog import Catalog
from belvedere.codec import keyspace
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.types import Kind, SqlType
from belvedere.views.codegen.lookup_chain import TreeLookupChains
from belvedere.views.compile.auxiliary_views import (
    define_aggregate_auxiliaries,
    define_limit_auxiliary,
    define_set_operation_auxiliaries,
)
from belvedere.views.compile.compile_view import MaintenancePlan, find_untracked_dependency
from belvedere.views.delta.delta_plan import (
    DeltaTerm,
    build_delta_terms,
)
from belvedere.views.delta.delta_tree import (
    Apply,
    DeltaTree,
    FullRecompute,
    LinearCore,
    Map,
    Recompute,
    Union,
    child_trees,
    collect_relations,
    walk_tree,
)
from belvedere.views.delta.leaf_lookups import IndexRequirement
from belvedere.views.delta.min_max import match_min_max_query

BACKFILL_ROWS_PER_SECOND = 200_000
"""The expected speed of a backfill."""

_WIDTHS = {
    Kind.BOOLEAN: 1,
    Kind.SMALLINT: 2,
    Kind.INTEGER: 4,
    Kind.REAL: 4,
    Kind.DATE: 4,
    Kind.NUMERIC: 12,
    Kind.UUID: 16,
    Kind.INTERVAL: 16,
    Kind.BIGINT: 8,
    Kind.DOUBLE: 8,
    Kind.TIME: 8,
    Kind.TIMESTAMP: 8,
    Kind.TIMESTAMPTZ: 8,
}
_TEXT_WIDTH = 20
_ENTRY_BYTES = 20
"""Prefix of the key, tags, head of the state."""


@dataclass(frozen=True, slots=True)
class ChangeCost:
    gets: int = 0
    ranges: int = 0
    scans: int = 0
    writes: int = 0

    def __add__(self, other: ChangeCost) -> ChangeCost:
        return ChangeCost(
            self.gets + other.gets,
            self.ranges + other.ranges,
            self.scans + other.scans,
            self.writes + other.writes,
        )

    def multiply_reads(self, count: int) -> ChangeCost:
        return ChangeCost(self.gets * count, self.ranges * count, self.scans * count, self.writes)

    def __str__(self) -> str:
        parts = [
            format_count_with_noun(self.gets, "key read") if self.gets else "",
            format_count_with_noun(self.ranges, "range") if self.ranges else "",
            format_count_with_noun(self.scans, "full scan") if self.scans else "",
            format_count_with_noun(self.writes, "entry", "entries") + " written"
            if self.writes
            else "",
        ]
        return ", ".join(filter(None, parts)) or "nothing"


def format_count_with_noun(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def estimate_change_cost_by_table(
    catalog: Catalog, compiled: MaintenancePlan, requirements: tuple[IndexRequirement, ...]
) -> dict[int, ChangeCost]:
    """The cost of one new row of each table, for the view, its auxiliary views and its indexes."""
    found: dict[int, ChangeCost] = {}
    for relation in collect_relations(compiled.tree):
        price = estimate_own_state_cost(catalog, compiled, relation)
        for kept in compiled.required_auxiliaries:
            if relation in collect_relations(kept.tree):
                price += estimate_tree_read_cost(catalog, kept.tree, relation) + ChangeCost(
                    gets=1, writes=1
                )
        made = len(
            [requirement for requirement in requirements if requirement.relation == relation]
        )
        found[relation] = price + ChangeCost(writes=made)
    return found


def estimate_own_state_cost(
    catalog: Catalog, compiled: MaintenancePlan, relation: int, *, comes: bool = True
) -> ChangeCost:
    """The cost of one row for the view's own state: an inserted row, or an updated or deleted one,
    for which no term is pruned."""
    tree = compiled.tree
    if comes and isinstance(tree, LinearCore) and _are_all_inserts_pruned(catalog, tree, relation):
        return ChangeCost()
    price = estimate_tree_read_cost(catalog, tree, relation, comes=comes)
    written = 2 if _change_replaces_view_row(compiled.tree) else 1
    read = 0 if _can_write_without_read(catalog, compiled, relation) else written
    return price + ChangeCost(gets=read, writes=written)


def _can_write_without_read(catalog: Catalog, compiled: MaintenancePlan, relation: int) -> bool:
    """Whether a changed row makes rows of the view that no other row makes."""
    legs = TreeLookupChains(catalog, compiled.tree, compiled.group).chains_by_table.get(
        keyspace.row_prefix(relation), ()
    )
    return len(legs) == 1 and legs[0].one_to_one


def _change_replaces_view_row(tree: DeltaTree) -> bool:
    """Whether a change usually replaces a row of the view by another."""
    return isinstance(tree, Recompute) or (
        isinstance(tree, Map) and _change_replaces_view_row(tree.input)
    )


def estimate_tree_read_cost(
    catalog: Catalog, tree: DeltaTree, relation: int, *, comes: bool = True
) -> ChangeCost:
    match tree:
        case LinearCore():
            return _estimate_linear_core_reads(catalog, tree, relation, comes=comes)
        case Apply():
            return _estimate_apply_reads(catalog, tree, relation)
        case FullRecompute():
            return ChangeCost(scans=1 + len(tree.relations))
        case Map() | Union() | Recompute():
            own = (
                _estimate_key_recompute_reads(tree).multiply_reads(2)
                if isinstance(tree, Recompute)
                else ChangeCost()
            )
            below = [
                estimate_tree_read_cost(catalog, one, relation, comes=comes)
                for one in child_trees(tree)
            ]
            return sum(below, own)


def _list_terms_of_one_table(catalog: Catalog, tree: LinearCore, relation: int) -> list[DeltaTerm]:
    """The terms of a change of this table only."""
    return [
        term
        for term in build_delta_terms(tree.branches, tree.plan.fields, catalog, leaves_max=1)
        if tree.branches[term.branch].leaves[term.changed[0]].relation == relation
    ]


def _are_all_inserts_pruned(catalog: Catalog, tree: LinearCore, relation: int) -> bool:
    return all(
        term.can_prune_inserts(term.changed[0])
        for term in _list_terms_of_one_table(catalog, tree, relation)
    )


def _estimate_linear_core_reads(
    catalog: Catalog, tree: LinearCore, relation: int, *, comes: bool
) -> ChangeCost:
    price = ChangeCost()
    for term in _list_terms_of_one_table(catalog, tree, relation):
        if comes and term.can_prune_inserts(term.changed[0]):
            continue
        price += ChangeCost(scans=term.scans)
        for node in transform.walk_plan(term.plan):
            if isinstance(node, n.Join) and node.lookup is not None:
                whole = node.lookup.access.full_key
                price += ChangeCost(gets=int(whole), ranges=int(not whole))
    return price


def _estimate_apply_reads(catalog: Catalog, tree: Apply, relation: int) -> ChangeCost:
    price = ChangeCost()
    if relation in collect_relations(tree.left):
        price += estimate_tree_read_cost(catalog, tree.left, relation)
        price += ChangeCost(ranges=len([right for right in tree.rights if right.is_read]))
    for right in tree.rights:
        if relation in collect_relations(right.tree):
            price += estimate_tree_read_cost(catalog, right.tree, relation)
            keyed = bool(right.left_keys)
            price += ChangeCost(ranges=3 if keyed else 0, scans=0 if keyed else 1)
    return price


def _estimate_key_recompute_reads(tree: Recompute) -> ChangeCost:
    """What the operator reads to recompute one touched key, once."""
    if isinstance(tree.plan, n.SetOperation):
        return (
            ChangeCost(gets=2)
            if len(define_set_operation_auxiliaries(tree)) == 2
            else ChangeCost(ranges=2)
        )
    extrema = match_min_max_query(tree)
    if extrema is not None:
        return ChangeCost(ranges=len(extrema.calls))
    parts = define_aggregate_auxiliaries(tree)
    if parts is not None:
        ends = len([number for _, number in parts.calls if number is None])
        others = len([one for one, k in parts.calls if k is not None and one != parts.presence])
        return ChangeCost(gets=1 + others, ranges=ends)
    if define_limit_auxiliary(tree) is not None or tree.inputs[0].keys:
        return ChangeCost(ranges=1)
    return ChangeCost(scans=1)


# -- storage and time ------------------------------------------------------------------------------


def describe_incrementality(tree: DeltaTree) -> str:
    """Whether the view is incremental, and how."""
    if isinstance(tree, FullRecompute):
        part = find_untracked_dependency(tree.plan)
        more = "" if part is None else f" and REFRESH, because it depends on {part}"
        return f"not incremental: computed again as a whole at every change{more}"
    worst = max((_rank_recompute_extent(one) for one in walk_tree(tree)), default=0)
    return (
        "incremental",
        "incremental, by touched groups or partitions",
        "incremental, but an operator without a partition is done again over all its rows",
    )[worst]


def _rank_recompute_extent(tree: DeltaTree) -> int:
    if not isinstance(tree, Recompute):
        return 0
    price = _estimate_key_recompute_reads(tree)
    assembled = (
        define_aggregate_auxiliaries(tree)
        or match_min_max_query(tree)
        or define_limit_auxiliary(tree)
    )
    counted = isinstance(tree.plan, n.SetOperation) and price.gets
    return 2 if price.scans else int(not assembled and not counted)


def estimate_entries_and_bytes(
    compiled: MaintenancePlan, rows_of: Callable[[n.Node], float]
) -> tuple[int, int]:
    """About how many entries the view has, and their bytes."""
    plan = compiled.tree.plan
    if compiled.group is not None:
        group = compiled.group
        plan = n.Aggregate(plan, group.groups, (), compiled.stored)
    entries = max(1, round(rows_of(plan)))
    row = sum(_estimate_type_bytes(field.type) for field in compiled.stored)
    return entries, entries * (2 * row + 8 * compiled.amounts + _ENTRY_BYTES)


def _estimate_type_bytes(type_: SqlType) -> int:
    return _WIDTHS.get(type_.kind, _TEXT_WIDTH)
