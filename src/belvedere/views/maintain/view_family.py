"""Views over the same rows and groups, with aggregates of their own: a batch of all of them is
added up by one statement, and the keys of their groups are encoded once.

    a  SELECT g, sum(v) FROM t GROUP BY g
    b  SELECT g, count(*), sum(w) FROM t GROUP BY g      g, count(*), sum(v), count(v), sum(w), ..

What each view gets of it is what it would compute by itself. An expression that fails does so for
the whole family, whose changes are then taken in one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import CompiledView
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.kv.batch import Write
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.plan.fields import Fields
from belvedere.txn.contracts import Reader
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.delta.delta_tree import LinearCore
from belvedere.views.delta.linear_aggregates import AggregateGrouping, LinearAggregate
from belvedere.views.delta.linear_core import (
    CoreBranch,
    CoreLeaf,
    build_branch_plan,
    build_leaf_scan,
)
from belvedere.views.maintain.duckdb_batch import DuckdbBatchEvaluator

if TYPE_CHECKING:
    from belvedere.views.maintain.logged_columns import LoggedColumns


class FamilyMember(NamedTuple):
    """A view of a family: what is compiled of it, and the codecs of its state."""

    plan: MaintenancePlan
    stored: CompiledView


class ViewFamily:
    """Computes the batches of its members together."""

    def __init__(self, catalog: Catalog, members: Sequence[FamilyMember]) -> None:
        merged = _merge_plans([member.plan for member in members])
        self._evaluator = DuckdbBatchEvaluator(catalog, merged.plan)
        self._members = tuple(zip(members, merged.amounts, strict=True))

    def iterate_column_writes(
        self, engine: DuckEngine, logged: LoggedColumns, reader: Reader
    ) -> Iterator[list[Write] | str]:
        """The state rows of each member after the changes of a log range, by columns; or once why
        they cannot be computed so. `reader` shows the state before them."""
        from belvedere.views.maintain import column_additions as adding  # heavy

        found = self._evaluator.compute_delta_columns(engine, logged, reader)
        if isinstance(found, str):
            yield found
            return
        if not found.num_rows:
            yield from ([] for _ in self._members)
            return
        (first, _), *_ = self._members
        added = self._evaluator.try_encode_column_additions(first.stored, found)
        for member, places in self._members:
            writes = None
            if added is not None:
                mine = adding.select_amounts_of_view(added, member.stored, places)
                writes = adding.try_build_summed_writes(reader, member.stored, mine)
            yield "a value has no form by columns" if writes is None else writes


def find_family_key(member: FamilyMember) -> object | None:
    """What the members of a family have in common; None for a view that is in none."""
    group, tree = member.plan.group, member.plan.tree
    if group is None or not isinstance(tree, LinearCore) or len(tree.branches) != 1:
        return None
    (branch,) = tree.branches
    if any(leaf.constant is not None for leaf in branch.leaves):
        return None
    slots = _map_to_stored_slots(branch)
    expressions = [*branch.conditions, None, *_inline_columns(group.groups, branch)]
    renamed = [None if one is None else _rename_columns(one, slots) for one in expressions]
    relations, key = tuple(leaf.relation for leaf in branch.leaves), member.stored.key
    # Texts, since 1.0 and 1.00 are equal and a group shows which of them it is.
    return relations, repr(renamed), repr((key.columns, key.long and key.long.cut))


class _MergedPlan(NamedTuple):
    """`amounts` are the places of each member's amounts among those of the plan."""

    plan: MaintenancePlan
    amounts: list[tuple[int, ...]]


def _merge_plans(plans: Sequence[MaintenancePlan]) -> _MergedPlan:
    """One plan with the aggregates of all, each once, over leaves with the columns of all."""
    branches = [_get_only_branch(plan) for plan in plans]
    leaves = _merge_leaves(branches)
    slots = {
        slot: leaf.offset + at
        for number, leaf in enumerate(leaves)
        for at, slot in enumerate((number, stored) for stored in leaf.slots)
    }
    places: dict[str, tuple[int, ...]] = {}
    calls: list[e.AggregateCall] = []
    kept: list[LinearAggregate] = []
    amounts = []
    width = 1  # the first one counts the rows
    for plan, branch in zip(plans, branches, strict=True):
        assert plan.group is not None
        moved = {old: slots[slot] for old, slot in _map_to_stored_slots(branch).items()}
        mine = [0]
        for call, keep in zip(plan.group.calls, plan.group.linear_aggregates, strict=True):
            same = _move_call(call, branch, moved)
            text = repr(same)
            if text not in places:
                places[text] = tuple(range(width, width + keep.width))
                calls.append(same)
                kept.append(keep)
                width += keep.width
            mine += places[text]
        amounts.append(tuple(mine))
    first, group = branches[0], plans[0].group
    assert group is not None
    moved = {old: slots[slot] for old, slot in _map_to_stored_slots(first).items()}
    columns = tuple(
        e.Column(leaf.offset + at, field.type, field.name)
        for leaf in leaves
        for at, field in enumerate(leaf.fields)
    )
    whole = CoreBranch(leaves, transform.renumber_all(first.conditions, moved), columns)
    core = LinearCore((whole,), build_branch_plan(whole, lambda _, leaf: build_leaf_scan(leaf)))
    groups = transform.renumber_all(_inline_columns(group.groups, first), moved)
    merged = AggregateGrouping(groups, tuple(calls), tuple(kept))
    return _MergedPlan(replace(plans[0], tree=core, group=merged, amounts=width), amounts)


def _get_only_branch(plan: MaintenancePlan) -> CoreBranch:
    assert isinstance(plan.tree, LinearCore)
    (branch,) = plan.tree.branches
    return branch


def _merge_leaves(branches: Sequence[CoreBranch]) -> tuple[CoreLeaf, ...]:
    """The leaves of all branches, each with every column that one of them reads."""
    found: list[CoreLeaf] = []
    offset = 0
    for leaves in zip(*[branch.leaves for branch in branches], strict=True):
        fields = {slot: field for leaf in leaves for slot, field in zip(leaf.slots, leaf.fields)}
        stored = tuple(sorted(fields))
        given: Fields = tuple(fields[slot] for slot in stored)
        found.append(replace(leaves[0], slots=stored, fields=given, offset=offset))
        offset += len(stored)
    return tuple(found)


def _map_to_stored_slots(branch: CoreBranch) -> dict[int, tuple[int, int]]:
    """The leaf's number and the slot of its table for every column of the branch's row."""
    return {
        leaf.offset + at: (number, slot)
        for number, leaf in enumerate(branch.leaves)
        for at, slot in enumerate(leaf.slots)
    }


def _rename_columns(expression: e.Expression, slots: Mapping[int, tuple[int, int]]) -> e.Expression:
    """The expression over stored slots: the same text whatever else a view reads."""

    def rename_column(column: e.Column) -> e.Expression:
        leaf, slot = slots[column.index]
        return e.Column(slot, column.type, str(leaf))

    return transform.map_columns(expression, rename_column)


def _inline_columns(
    expressions: Sequence[e.Expression], branch: CoreBranch
) -> tuple[e.Expression, ...]:
    """Expressions over the branch's columns as ones over its row."""
    return tuple(transform.substitute_columns(one, branch.columns) for one in expressions)


def _move_call(
    call: e.AggregateCall, branch: CoreBranch, places: Mapping[int, int]
) -> e.AggregateCall:
    condition = None if call.filter is None else _inline_columns((call.filter,), branch)[0]
    return replace(
        call,
        arguments=transform.renumber_all(_inline_columns(call.arguments, branch), places),
        filter=None if condition is None else transform.renumber_columns(condition, places),
    )
