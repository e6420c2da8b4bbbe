"""MIN and MAX of a table's groups, or of all its rows, from the ends of an index.

An index on (group columns, value) holds each group's values in order, so the smallest and the
largest are one seek each, however large the group. NULL values stand at the end of a group and are
skipped.

State: the view's rows, and one index for each value. Cost of a change: a seek for each extremum,
before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, Maintenance, ObjectState
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.views.delta.delta_tree import DeltaTree, LinearCore, Recompute
from belvedere.views.delta.linear_core import CoreBranch


class MinMaxCall(NamedTuple):
    """An aggregate call: the column of the table that it is over, and whether it is MAX."""

    slot: int
    largest: bool


class MinMaxQuery(NamedTuple):
    """A query of MIN and MAX by group over one table."""

    relation: int
    groups: tuple[int, ...]
    calls: tuple[MinMaxCall, ...]

    @property
    def required_index_columns(self) -> tuple[tuple[int, ...], ...]:
        """The columns of the indexes that it can be answered from."""
        return tuple(dict.fromkeys((*self.groups, call.slot) for call in self.calls))


def match_min_max_query(tree: Recompute) -> MinMaxQuery | None:
    """The tree as MIN and MAX by group over one table; None where it is anything else."""
    plan, branch = tree.plan, match_plain_table_branch(tree.inputs[0].tree)
    if not isinstance(plan, n.Aggregate) or plan.grouping_sets is not None:
        return None
    if branch is None:
        return None
    slots = partial(find_table_slot, branch)
    groups = [slots(group) for group in plan.groups]
    calls = [_match_min_max_call(call, slots) for call in plan.aggregates]
    if not calls or None in groups or None in calls:
        return None
    return MinMaxQuery(
        branch.leaves[0].relation,
        tuple(slot for slot in groups if slot is not None),
        tuple(call for call in calls if call is not None),
    )


def _match_min_max_call(
    call: e.AggregateCall, slot_of: Callable[[e.Expression], int | None]
) -> MinMaxCall | None:
    if call.function.name not in ("min", "max") or call.filter is not None or call.order_by:
        return None
    slot = slot_of(call.arguments[0])
    return None if slot is None else MinMaxCall(slot, call.function.name == "max")


def find_index_ordered_by(catalog: Catalog, relation: int, slots: tuple[int, ...]) -> Index | None:
    """A ready index whose entries are ordered by these columns, in this sequence."""
    for index in catalog.table_indexes(relation):
        plain = index.where is None and not index.unique
        ready = index.state is ObjectState.READY and index.maintenance is Maintenance.IMMEDIATE
        parts = [None if part.descending else part.slot for part in index.parts]
        if plain and ready and tuple(parts[: len(slots)]) == slots:
            return index
    return None


def match_plain_table_branch(tree: DeltaTree) -> CoreBranch | None:
    """The branch of a core that is a plain table: all its rows, some of its columns."""
    if not isinstance(tree, LinearCore) or len(tree.branches) != 1:
        return None
    (branch,) = tree.branches
    plain = len(branch.leaves) == 1 and branch.leaves[0].constant is None
    return branch if plain and not branch.conditions else None


def find_table_slot(branch: CoreBranch, expression: e.Expression) -> int | None:
    """The slot of the branch's table that an expression over the branch's columns is."""
    if not isinstance(expression, e.Column):
        return None
    column = branch.columns[expression.index]
    return branch.leaves[0].slots[column.index] if isinstance(column, e.Column) else None
