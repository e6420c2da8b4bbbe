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
from belvedere.views.auxiliary import Auxiliary, KeptGroups, KeptRows
from belvedere.views.core import Expressions
from belvedere.views.tree import Core, Tree

_SLOTS_MAX = 1 << 20


class _Shape(NamedTuple):
    """Rows of a single-branch core: its tables, conditions and columns, over base columns."""

    relations: tuple[int, ...]
    conditions: list[e.Expression]
    columns: list[e.Expression]


def serves(kept: Auxiliary, wanted: Auxiliary) -> bool:
    """Whether the stored auxiliary view `kept` has all that `wanted` needs."""
    if isinstance(kept, KeptRows) and isinstance(wanted, KeptRows):
        return columns_at(kept, wanted) is not None
    if isinstance(kept, KeptGroups) and isinstance(wanted, KeptGroups):
        return calls_at(kept, wanted) is not None
    return False


def columns_at(kept: KeptRows, wanted: KeptRows) -> tuple[int, ...] | None:
    """The positions of the wanted rows' columns in the stored rows; None: not contained."""
    width = len(wanted.tree.plan.fields)
    if kept.same(wanted):
        return tuple(range(width))
    one, other = _shape(kept.tree), _shape(wanted.tree)
    if wanted.ordered or one is None or other is None or not _same_rows(one, other):
        return None
    keys = [_key(key, one.columns) for key in kept.keys]
    if [_key(key, other.columns) for key in wanted.keys] != keys[: len(wanted.keys)]:
        return None
    return _places(other.columns, one.columns)


def calls_at(kept: KeptGroups, wanted: KeptGroups) -> tuple[int, ...] | None:
    """The positions of the wanted aggregates among the stored ones; None: not contained."""
    one, other = _columns(kept.tree, wanted.tree)
    if one is None or other is None:
        return None
    if [_over(group, one) for group in kept.groups] != [_over(g, other) for g in wanted.groups]:
        return None
    found = [_call(call, one) for call in kept.calls]
    return _places([_call(call, other) for call in wanted.calls], found)


def _columns(kept: Tree, wanted: Tree) -> tuple[Expressions | None, Expressions | None]:
    """The columns of two trees as expressions over common columns; None: their rows differ."""
    if kept.plan == wanted.plan:
        own = tuple(e.Column(i, f.type) for i, f in enumerate(kept.plan.fields))
        return own, own
    one, other = _shape(kept), _shape(wanted)
    if one is None or other is None or not _same_rows(one, other):
        return None, None
    return tuple(one.columns), tuple(other.columns)


def _shape(tree: Tree) -> _Shape | None:
    if not isinstance(tree, Core) or len(tree.branches) != 1:
        return None
    (branch,) = tree.branches
    if any(leaf.constant is not None for leaf in branch.leaves):
        return None
    base = tuple(
        e.Column(number * _SLOTS_MAX + slot, field.type)
        for number, leaf in enumerate(branch.leaves)
        for slot, field in zip(leaf.slots, leaf.fields, strict=True)
    )
    return _Shape(
        tuple(leaf.relation for leaf in branch.leaves),
        [_over(one, base) for one in branch.conditions],
        [_over(one, base) for one in branch.columns],
    )


def _same_rows(one: _Shape, other: _Shape) -> bool:
    return (
        one.relations == other.relations
        and all(condition in other.conditions for condition in one.conditions)
        and all(condition in one.conditions for condition in other.conditions)
    )


def _over(expression: e.Expression, columns: Expressions | list[e.Expression]) -> e.Expression:
    return transform.map_columns(expression, lambda column: columns[column.index])


def _key(key: e.SortKey, columns: list[e.Expression]) -> e.SortKey:
    return replace(key, expression=_over(key.expression, columns))


def _call(call: e.AggregateCall, columns: Expressions) -> e.AggregateCall:
    condition = None if call.filter is None else _over(call.filter, columns)
    arguments = tuple(_over(one, columns) for one in call.arguments)
    return replace(call, arguments=arguments, filter=condition)


def _places(wanted: Sequence[object], found: Sequence[object]) -> tuple[int, ...] | None:
    if any(one not in found for one in wanted):
        return None
    return tuple(found.index(one) for one in wanted)
