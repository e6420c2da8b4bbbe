"""The delta of window functions, as one plan: the definition over the tables after a
batch minus the definition over the tables before it, both over the touched partitions only.

    touched   the partitions of the rows that went or came
    before    the rows of a table without those that came, and with those that went

The stored state has no part in it: what is written is known without reading it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.plan.functions.registry import resolve
from belvedere.sql.rules.equality import make_comparison
from belvedere.types import BIGINT, INTEGER
from belvedere.views.delta.delta_plan import changes_leaf_id
from belvedere.views.delta.delta_tree import DeltaTree, LinearCore, Map, Recompute
from belvedere.views.delta.linear_core import CoreLeaf, build_branch_plan, build_leaf_scan
from belvedere.views.delta.tie_break import with_total_order

_LeafPlan = Callable[[CoreLeaf], n.Node]


class ChangedColumns(NamedTuple):
    """Columns of a changed table. The rows that went and came are given for these two leaves."""

    relation: int
    slots: tuple[int, ...]
    gone: int
    come: int


class DifferencePlan(NamedTuple):
    """`plan` gives rows of the definition, the weight last: 1 after the batch, -1 before it."""

    plan: n.Node
    tables: tuple[ChangedColumns, ...]


def find_partitioned_window(tree: DeltaTree) -> Recompute | None:
    """The window functions of a tree over a linear core, with nothing but selections and
    projections above; None where the tree is not like that. What an aggregate gives by group is
    far less than what it reads, so that comparing it with the stored state costs less."""
    while isinstance(tree, Map):
        tree = tree.input
    if not isinstance(tree, Recompute) or len(tree.inputs) != 1:
        return None
    below = tree.inputs[0].tree
    return tree if isinstance(tree.plan, n.Window) and isinstance(below, LinearCore) else None


def can_tell_touched_partitions(part: Recompute) -> bool:
    """Whether the partitions that changed rows touch are known from these rows alone."""
    (given,) = part.inputs
    assert isinstance(given.tree, LinearCore)
    return bool(given.keys) and all(len(branch.leaves) == 1 for branch in given.tree.branches)


def build_difference_plan(
    tree: DeltaTree, catalog: Catalog, changed: frozenset[int]
) -> DifferencePlan:
    """The difference that changes of these tables make, of a tree with a partitioned part."""
    return _DifferenceBuilder(tree, catalog, changed).build_plan()


def sum_weights_of_equal_rows(plan: n.Node) -> n.Node:
    """Rows whose weight is the last column, each once and in order, without those that are as often
    after as before."""
    *fields, last = plan.fields
    rows = tuple(e.Column(i, one.type, one.name) for i, one in enumerate(fields))
    weight = e.Column(len(fields), last.type, last.name)
    added = resolve("sum", [last.type])
    call = e.AggregateCall(added.function, (weight,), added.result_type)
    total = n.Aggregate(plan, rows, (call,), (*fields, Field("weight", BIGINT)))
    sums = e.Column(len(fields), BIGINT, "weight")
    differ = n.Filter(total, make_comparison("<>", sums, e.Literal(0, BIGINT)))
    return n.Sort(differ, tuple(e.SortKey(one) for one in rows))


class _DifferenceBuilder:
    def __init__(self, tree: DeltaTree, catalog: Catalog, changed: frozenset[int]) -> None:
        part = find_partitioned_window(tree)
        assert part is not None
        self._tree, self._part = tree, part
        self._catalog, self._changed = catalog, changed
        self._tables: dict[tuple[int, tuple[int, ...]], ChangedColumns] = {}

    def build_plan(self) -> DifferencePlan:
        sides = [
            _append_weight(
                with_total_order(self._build_definition_plan(self._tree, leaf_plan)), weight
            )
            for leaf_plan, weight in ((build_leaf_scan, 1), (self._build_leaf_before_batch, -1))
        ]
        return DifferencePlan(_union_all(*sides), tuple(self._tables.values()))

    def _build_definition_plan(self, tree: DeltaTree, leaf_plan: _LeafPlan) -> n.Node:
        if isinstance(tree, Map):
            return replace(tree.plan, input=self._build_definition_plan(tree.input, leaf_plan))
        (given,) = self._part.inputs
        rows = self._build_core_plan(leaf_plan)
        if can_tell_touched_partitions(self._part):
            keys = tuple(e.Column(i, one.type, f"key {i}") for i, one in enumerate(given.keys))
            pairs = zip(given.keys, keys, strict=True)
            joined = tuple(n.JoinKey(left, right, True) for left, right in pairs)
            rows = n.Join(n.JoinKind.SEMI, rows, self._build_touched_keys_plan(), joined)
        return self._part.rebuild((rows,))

    def _build_touched_keys_plan(self) -> n.Node:
        (given,) = self._part.inputs
        fields = tuple(Field(f"key {i}", one.type) for i, one in enumerate(given.keys))
        return _union_all(
            *[
                n.Project(self._build_core_plan(leaf_plan), given.keys, fields)
                for leaf_plan in (self._build_deleted_rows_leaf, self._build_inserted_rows_leaf)
            ]
        )

    def _build_core_plan(self, leaf_plan: _LeafPlan) -> n.Node:
        core = self._part.inputs[0].tree
        assert isinstance(core, LinearCore)
        return _union_all(
            *[
                build_branch_plan(branch, lambda _, leaf: leaf_plan(leaf))
                for branch in core.branches
            ]
        )

    def _build_deleted_rows_leaf(self, leaf: CoreLeaf) -> n.Node:
        return self._build_changed_rows_leaf(leaf, self._get_changed_columns(leaf).gone)

    def _build_inserted_rows_leaf(self, leaf: CoreLeaf) -> n.Node:
        return self._build_changed_rows_leaf(leaf, self._get_changed_columns(leaf).come)

    def _build_changed_rows_leaf(self, leaf: CoreLeaf, number: int) -> n.Node:
        if leaf.constant is not None or leaf.relation not in self._changed:
            return n.Values((), leaf.fields)
        return n.Changes(number, leaf.name, leaf.slots, leaf.fields)

    def _build_leaf_before_batch(self, leaf: CoreLeaf) -> n.Node:
        now = build_leaf_scan(leaf)
        if leaf.constant is not None or leaf.relation not in self._changed:
            return now
        come, gone = self._build_inserted_rows_leaf(leaf), self._build_deleted_rows_leaf(leaf)
        table = self._catalog.get(leaf.relation)
        assert isinstance(table, Table)
        if table.primary_key and set(table.primary_key) <= set(leaf.slots):
            places = [leaf.slots.index(slot) for slot in table.primary_key]
            columns = [e.Column(at, leaf.fields[at].type, leaf.fields[at].name) for at in places]
            kept: n.Node = n.Join(
                n.JoinKind.ANTI, now, come, tuple(n.JoinKey(one, one) for one in columns)
            )
        else:
            kept = n.SetOperation(n.SetKind.EXCEPT, True, now, come)
        return _union_all(kept, gone)

    def _get_changed_columns(self, leaf: CoreLeaf) -> ChangedColumns:
        key = leaf.relation, leaf.slots
        if leaf.relation not in self._changed or leaf.constant is not None:
            return ChangedColumns(*key, 0, 0)
        if key not in self._tables:
            first = 2 * len(self._tables)
            ids = changes_leaf_id(first), changes_leaf_id(first + 1)
            self._tables[key] = ChangedColumns(*key, *ids)
        return self._tables[key]


def _union_all(*parts: n.Node) -> n.Node:
    first, *others = parts
    for other in others:
        first = n.SetOperation(n.SetKind.UNION, True, first, other)
    return first


def _append_weight(plan: n.Node, weight: int) -> n.Node:
    rows = tuple(e.Column(i, one.type, one.name) for i, one in enumerate(plan.fields))
    fields = (*plan.fields, Field("weight", INTEGER))
    return n.Project(plan, (*rows, e.Literal(weight, INTEGER)), fields)
