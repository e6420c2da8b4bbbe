"""Inlines CTEs that are read once, and removes those that are never read, unless they write."""

from __future__ import annotations

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Volatility
from belvedere.plan.transform import (
    lift_plan,
    own_expressions,
    rebuild_expressions,
    rebuild_inputs,
    rebuild_operands,
    walk_plan,
    with_subplan,
)
from belvedere.sql.bind.expressions.stored_expressions import find_volatility
from belvedere.sql.rules.context import OptimizerContext

_WRITES = (n.Insert, n.Update, n.Delete)


def inline_ctes(plan: n.Node, context: OptimizerContext) -> n.Node:
    node = rebuild_inputs(plan, lambda one: inline_ctes(one, context))
    if not isinstance(node, n.With):
        return node
    kept: list[n.Cte] = []
    remaining = list(node.ctes)
    body = node.body
    while remaining:
        cte = remaining.pop(0)
        reads = sum(_count_reads(one.plan, cte.number) for one in remaining) + _count_reads(
            body, cte.number
        )
        if _has_writes(cte.plan):
            kept.append(cte)
        elif reads == 0:
            continue
        elif reads == 1 and not cte.materialized and not _is_volatile(cte.plan):
            remaining = [one._replace(plan=_inline_cte(one.plan, cte)) for one in remaining]
            body = _inline_cte(body, cte)
        else:
            kept.append(cte)
    return n.With(tuple(kept), body) if kept else body


def _count_reads(plan: n.Node, number: int) -> int:
    return sum(isinstance(one, n.CteScan) and one.cte == number for one in walk_plan(plan))


def _has_writes(plan: n.Node) -> bool:
    return any(isinstance(one, _WRITES) for one in walk_plan(plan))


def _is_volatile(plan: n.Node) -> bool:
    return any(
        find_volatility(one) is Volatility.VOLATILE
        for node in walk_plan(plan)
        for one in own_expressions(node)
    )


def _inline_cte(plan: n.Node, cte: n.Cte) -> n.Node:
    """The plan with the CTE's own plan in place of its scan, moved to the level it stands on."""

    def on_expression(one: e.Expression, level: int) -> e.Expression:
        new = rebuild_operands(one, lambda inner: on_expression(inner, level))
        return with_subplan(new, lambda inner: on_plan(inner, level + 1))

    def on_plan(node: n.Node, level: int) -> n.Node:
        if isinstance(node, n.CteScan) and node.cte == cte.number:
            return _rename_fields(lift_plan(cte.plan, level) if level else cte.plan, node.fields)
        new = rebuild_expressions(node, lambda one: on_expression(one, level))
        if isinstance(new, n.Join) and new.lateral:
            left, right = on_plan(new.left, level), on_plan(new.right, level + 1)
            return (
                new if left is new.left and right is new.right else _replace_sides(new, left, right)
            )
        return rebuild_inputs(new, lambda one: on_plan(one, level))

    return on_plan(plan, 0)


def _replace_sides(join: n.Join, left: n.Node, right: n.Node) -> n.Node:
    return n.Join(join.kind, left, right, join.keys, join.residual, join.lateral)


def _rename_fields(plan: n.Node, fields: n.Fields) -> n.Node:
    if plan.fields == fields:
        return plan
    columns = tuple(e.Column(i, f.type, f.name) for i, f in enumerate(plan.fields))
    return n.Project(plan, columns, fields)
