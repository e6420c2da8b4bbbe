"""Containment of auxiliary views: whether one stores all that another one would.

Expressions are compared over the columns of base tables, so that neither names nor which other
columns a view reads matter:

    groups    the same groups of the same rows, with at least the same aggregates
    rows      the same rows with at least the same columns, in an order that begins with the same
              keys; where the order itself is required (LIMIT), the same rows and the same keys

Rows are the same when they are of the same tables under the same conditions; where they are the
result of anything but selections and inner joins, when they have the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.views.compile.auxiliary_views import Auxiliary, AuxiliaryGroups, AuxiliaryRows
from belvedere.views.delta.delta_tree import DeltaTree, LinearCore
from belvedere.views.delta.linear_core import Expressions

_SLOTS_MAX = 1 << 20


class _CoreSignature(NamedTuple):
    """Rows of a single-branch core: its tables, conditions and columns, over base columns."""

    relations: tuple[int, ...]
    conditions: list[e.Expression]
    columns: list[e.Expression]


def contains_auxiliary(kept: Auxiliary, wanted: Auxiliary) -> bool:
    """Whether the stored auxiliary view `kept` has all that `wanted` needs."""
    if isinstance(kept, AuxiliaryRows) and isinstance(wanted, AuxiliaryRows):
        return locate_contained_columns(kept, wanted) is not None
    if isinstance(kept, AuxiliaryGroups) and isinstance(wanted, AuxiliaryGroups):
        return locate_contained_calls(kept, wanted) is not None
    return False


def locate_contained_columns(kept: AuxiliaryRows, wanted: AuxiliaryRows) -> tuple[int, ...] | None:
    """The positions of the wanted rows' columns in the stored rows; None: not contained."""
    width = len(wanted.tree.plan.fields)
    if kept.has_same_definition(wanted):
        return tuple(range(width))
    one, other = _compute_core_signature(kept.tree), _compute_core_signature(wanted.tree)
    if wanted.ordered or one is None or other is None or not _has_same_rows(one, other):
        return None
    keys = [_substitute_sort_key_columns(key, one.columns) for key in kept.keys]
    if [_substitute_sort_key_columns(key, other.columns) for key in wanted.keys] != keys[
        : len(wanted.keys)
    ]:
        return None
    return _find_all_positions(other.columns, one.columns)


def locate_contained_calls(
    kept: AuxiliaryGroups, wanted: AuxiliaryGroups
) -> tuple[int, ...] | None:
    """The positions of the wanted aggregates among the stored ones; None: not contained."""
    one, other = _express_over_common_columns(kept.tree, wanted.tree)
    if one is None or other is None:
        return None
    if [transform.substitute_columns(group, one) for group in kept.groups] != [
        transform.substitute_columns(g, other) for g in wanted.groups
    ]:
        return None
    found = [_substitute_call_columns(call, one) for call in kept.calls]
    return _find_all_positions(
        [_substitute_call_columns(call, other) for call in wanted.calls], found
    )


def _express_over_common_columns(
    kept: DeltaTree, wanted: DeltaTree
) -> tuple[Expressions | None, Expressions | None]:
    """The columns of two trees as expressions over common columns; None: their rows differ."""
    if kept.plan == wanted.plan:
        own = tuple(e.Column(i, f.type) for i, f in enumerate(kept.plan.fields))
        return own, own
    one, other = _compute_core_signature(kept), _compute_core_signature(wanted)
    if one is None or other is None or not _has_same_rows(one, other):
        return None, None
    return tuple(one.columns), tuple(other.columns)


def _compute_core_signature(tree: DeltaTree) -> _CoreSignature | None:
    if not isinstance(tree, LinearCore) or len(tree.branches) != 1:
        return None
    (branch,) = tree.branches
    if any(leaf.constant is not None for leaf in branch.leaves):
        return None
    base = tuple(
        e.Column(number * _SLOTS_MAX + slot, field.type)
        for number, leaf in enumerate(branch.leaves)
        for slot, field in zip(leaf.slots, leaf.fields, strict=True)
    )
    return _CoreSignature(
        tuple(leaf.relation for leaf in branch.leaves),
        [transform.substitute_columns(one, base) for one in branch.conditions],
        [transform.substitute_columns(one, base) for one in branch.columns],
    )


def _has_same_rows(one: _CoreSignature, other: _CoreSignature) -> bool:
    return (
        one.relations == other.relations
        and all(condition in other.conditions for condition in one.conditions)
        and all(condition in one.conditions for condition in other.conditions)
    )


def _substitute_sort_key_columns(key: e.SortKey, columns: list[e.Expression]) -> e.SortKey:
    return replace(key, expression=transform.substitute_columns(key.expression, columns))


def _substitute_call_columns(call: e.AggregateCall, columns: Expressions) -> e.AggregateCall:
    condition = None if call.filter is None else transform.substitute_columns(call.filter, columns)
    arguments = tuple(transform.substitute_columns(one, columns) for one in call.arguments)
    return replace(call, arguments=arguments, filter=condition)


def _find_all_positions(
    wanted: Sequence[object], found: Sequence[object]
) -> tuple[int, ...] | None:
    if any(one not in found for one in wanted):
        return None
    return tuple(found.index(one) for one in wanted)
