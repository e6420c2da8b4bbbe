"""Predicate push-down: every condition goes as near to the rows it filters as it can.

On the way equalities of the two sides of a join become its keys, an outer join whose missing rows a
condition would reject becomes an inner one, and conditions on a scan end in the scan.
"""

from __future__ import annotations

from dataclasses import replace

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Volatility
from belvedere.plan.transform import (
    columns_of,
    conjunction,
    conjuncts,
    has_subplan,
    map_outer_columns,
    rebuild_inputs,
    rebuild_operands,
    shift_columns,
    substitute_columns,
    with_subplan,
)
from belvedere.sql.bind.expressions.stored_expressions import find_volatility
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.factor_disjunctions import factor_disjunctions
from belvedere.sql.rules.fold_constants import fold_expression
from belvedere.types import Kind

Conditions = list[e.Expression]


def push_predicates(plan: n.Node, context: OptimizerContext) -> n.Node:
    return _push_down(plan, [])


def _push_down(node: n.Node, conditions: Conditions) -> n.Node:
    """The node with the conditions, which are over its row, applied as far down as possible."""
    match node:
        case n.Filter():
            return _push_down(
                node.input, factor_disjunctions(conjuncts(node.condition)) + conditions
            )
        case n.Scan() | n.State() | n.ForeignScan():
            return _push_to_scan(node, conditions)
        case n.Project():
            return _push_through_project(node, conditions)
        case n.Join():
            return _push_to_join(node, conditions)
        case n.Aggregate():
            return _push_through_aggregate(node, conditions)
        case n.Window():
            return _push_through_window(node, conditions)
        case n.Sort() | n.Lock():
            return replace(node, input=_push_down(node.input, conditions))
        case n.Distinct() if node.on is None:
            return replace(node, input=_push_down(node.input, conditions))
        case n.SetOperation():
            return _push_to_set_operation(node, conditions)
        case n.With():
            ctes = tuple([cte._replace(plan=_push_down(cte.plan, [])) for cte in node.ctes])
            return n.With(ctes, _push_down(node.body, conditions))
        case _:
            return add_filter(rebuild_inputs(node, lambda one: _push_down(one, [])), conditions)


def add_filter(node: n.Node, conditions: Conditions) -> n.Node:
    if not conditions:
        return node
    condition = conjunction(conditions)
    assert condition is not None
    return n.Filter(node, condition)


def _push_to_scan(node: n.Scan | n.State | n.ForeignScan, conditions: Conditions) -> n.Node:
    """Conditions with sub-queries stay above: an executor may run those otherwise."""
    inside = [one for one in conditions if not has_subplan(one) and not is_volatile(one)]
    above = [one for one in conditions if not any(one is x for x in inside)]
    if inside:
        whole = conjunction(conjuncts(node.filter) + inside)
        if isinstance(node, n.ForeignScan):
            node = replace(node, filter=whole)
        else:
            node = replace(node, filter=whole, residual=whole)
    return add_filter(node, above)


def is_volatile(expression: e.Expression) -> bool:
    return find_volatility(expression) is Volatility.VOLATILE


def _push_through_project(node: n.Project, conditions: Conditions) -> n.Node:
    below: Conditions = []
    above: Conditions = []
    for one in conditions:
        used = [node.expressions[i] for i in columns_of(one)]
        plain = all(not has_subplan(x) and not is_volatile(x) for x in used)
        if plain and (not has_subplan(one) or all(isinstance(x, e.Column) for x in used)):
            below.append(fold_expression(substitute_columns(one, node.expressions)))
        else:
            above.append(one)
    return add_filter(replace(node, input=_push_down(node.input, below)), above)


def _push_through_aggregate(node: n.Aggregate, conditions: Conditions) -> n.Node:
    """Conditions on the groups alone choose groups, so they may choose rows instead."""
    below: Conditions = []
    above: Conditions = []
    for one in conditions:
        used = columns_of(one)
        groups = bool(used) and max(used) < len(node.groups) and node.grouping_sets is None
        if groups and not has_subplan(one):
            below.append(substitute_columns(one, node.groups))
        else:
            above.append(one)
    return add_filter(replace(node, input=_push_down(node.input, below)), above)


def _push_through_window(node: n.Window, conditions: Conditions) -> n.Node:
    """Conditions on partition columns take whole partitions away."""
    partition = {one.index for one in node.partition if isinstance(one, e.Column)}
    below = [one for one in conditions if columns_of(one) and columns_of(one) <= partition]
    above = [one for one in conditions if not any(one is x for x in below)]
    return add_filter(replace(node, input=_push_down(node.input, below)), above)


def _push_to_set_operation(node: n.SetOperation, conditions: Conditions) -> n.Node:
    below = [one for one in conditions if not has_subplan(one) and not is_volatile(one)]
    above = [one for one in conditions if not any(one is x for x in below)]
    left, right = _push_down(node.left, list(below)), _push_down(node.right, list(below))
    return add_filter(replace(node, left=left, right=right), above)


# -- joins -----------------------------------------------------------------------------------------


def _push_to_join(node: n.Join, conditions: Conditions) -> n.Node:
    width = len(node.left.fields)
    node = _strengthen_join(node, conditions, width)
    on = factor_disjunctions(conjuncts(node.residual))
    above: Conditions = []
    to_left: Conditions = []
    to_right: Conditions = []
    inner = node.kind is n.JoinKind.INNER
    if inner:
        on += [one for one in conditions if not is_volatile(one)]
        above = [one for one in conditions if is_volatile(one)]
    else:
        for one in conditions:
            side = _find_side(one, width)
            if side == "left" and node.kind not in (n.JoinKind.RIGHT, n.JoinKind.FULL):
                to_left.append(one)
            elif side == "right" and node.kind is n.JoinKind.RIGHT:
                to_right.append(shift_columns(one, -width))
            else:
                above.append(one)
    keys, rest = list(node.keys), []
    for one in on:
        side = _find_side(one, width)
        key = match_join_key(one, width)
        if side == "left" and node.kind in (n.JoinKind.INNER, n.JoinKind.SEMI, n.JoinKind.RIGHT):
            to_left.append(one)
        elif side == "right" and node.kind not in (n.JoinKind.RIGHT, n.JoinKind.FULL):
            to_right.append(shift_columns(one, -width))
        elif key is not None and not node.lateral:
            keys.append(key)
        else:
            rest.append(one)
    if node.lateral:
        to_right = [_deepen_outer(one) for one in to_right]
    made = replace(
        node,
        left=_push_down(node.left, to_left),
        right=_push_down(node.right, to_right),
        keys=tuple(keys),
        residual=conjunction(rest),
    )
    return add_filter(made, above)


def _deepen_outer(condition: e.Expression) -> e.Expression:
    """A condition moved to the right of a lateral join: outer rows are one level further."""

    def deepen_expression(one: e.Expression) -> e.Expression:
        if isinstance(one, e.OuterColumn):
            return replace(one, depth=one.depth + 1)

        def deepen_reference(reference: e.OuterColumn, at: int) -> e.Expression:
            if reference.depth <= at:
                return reference
            return replace(reference, depth=reference.depth + 1)

        return with_subplan(
            rebuild_operands(one, deepen_expression),
            lambda plan: map_outer_columns(plan, deepen_reference),
        )

    return deepen_expression(condition)


def _find_side(condition: e.Expression, width: int) -> str:
    """Which side's columns the condition reads; 'none' when it reads neither."""
    used = columns_of(condition)
    if not used:
        return "none"
    if max(used) < width:
        return "left"
    return "right" if min(used) >= width else "both"


def match_join_key(condition: e.Expression, width: int) -> n.JoinKey | None:
    """`left = right` of the same type: a key that can be hashed."""
    null_safe = isinstance(condition, e.IsDistinct) and condition.negated
    if isinstance(condition, e.IsDistinct) and null_safe:
        pair = (condition.left, condition.right)
    elif isinstance(condition, e.Call) and condition.function.name == "=":
        pair = (condition.arguments[0], condition.arguments[1])
    else:
        return None
    if has_subplan(condition) or not _is_hashable(pair[0], pair[1]):
        return None
    sides = (_find_side(pair[0], width), _find_side(pair[1], width))
    if sides == ("left", "right"):
        return n.JoinKey(pair[0], shift_columns(pair[1], -width), null_safe)
    if sides == ("right", "left"):
        return n.JoinKey(pair[1], shift_columns(pair[0], -width), null_safe)
    return None


_INTEGERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR})


def _is_hashable(left: e.Expression, right: e.Expression) -> bool:
    """Whether equal values of both types are one value in Python, so that hashing finds them."""
    kinds = {left.type.kind, right.type.kind}
    return len(kinds) == 1 or kinds <= _INTEGERS or kinds <= _TEXTS


# -- outer joins whose missing rows are rejected ---------------------------------------------------


def _strengthen_join(node: n.Join, conditions: Conditions, width: int) -> n.Join:
    total = len(node.fields)
    left, right = range(width), range(width, total)
    kind = node.kind
    if kind in (n.JoinKind.LEFT, n.JoinKind.FULL):
        if any(rejects_nulls(one, right) for one in conditions):
            kind = n.JoinKind.INNER if kind is n.JoinKind.LEFT else n.JoinKind.RIGHT
    if kind in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        if any(rejects_nulls(one, left) for one in conditions):
            kind = n.JoinKind.INNER if kind is n.JoinKind.RIGHT else n.JoinKind.LEFT
    return node if kind is node.kind else replace(node, kind=kind)


def rejects_nulls(condition: e.Expression, columns: range) -> bool:
    """Whether the condition cannot be true when all these columns are NULL."""
    match condition:
        case e.And():
            return any(rejects_nulls(one, columns) for one in condition.operands)
        case e.Or():
            return all(rejects_nulls(one, columns) for one in condition.operands)
        case e.Test(truth=e.Truth.NULL, negated=True):
            return _is_null_with(condition.operand, columns)
        case e.Call() | e.InList() | e.Column():
            return _is_null_with(condition, columns)
        case _:
            return False


def _is_null_with(expression: e.Expression, columns: range) -> bool:
    """Whether the value is NULL whenever all these columns are."""
    match expression:
        case e.Column():
            return expression.index in columns
        case e.Call():
            strict = expression.function.strict
            return strict and any(_is_null_with(one, columns) for one in expression.arguments)
        case e.Cast():
            return expression.function.strict and _is_null_with(expression.operand, columns)
        case e.InList():
            return _is_null_with(expression.operand, columns)
        case _:
            return False
