"""Projections that only pass columns on are dropped or merged with their neighbours."""

from __future__ import annotations

from dataclasses import replace

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import columns_of, has_subplan, rewrite_nodes, substitute_columns
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.push_predicates import is_volatile


def simplify_projects(plan: n.Node, context: OptimizerContext) -> n.Node:
    return rewrite_nodes(plan, n.Project, _simplify_project)


def _simplify_project(node: n.Project) -> n.Node:
    inner = node.input
    if isinstance(inner, n.Project) and _can_merge(node, inner):
        expressions = tuple(
            [substitute_columns(one, inner.expressions) for one in node.expressions]
        )
        node = replace(node, input=inner.input, expressions=expressions)
    return node.input if _is_identity(node) else node


def _can_merge(outer: n.Project, inner: n.Project) -> bool:
    """Nothing costly may be computed twice, nothing volatile moved."""
    uses: dict[int, int] = {}
    for one in outer.expressions:
        for index in columns_of(one):
            uses[index] = uses.get(index, 0) + 1
        if has_subplan(one) and not all(isinstance(x, e.Column) for x in inner.expressions):
            return False
    for index, expression in enumerate(inner.expressions):
        plain = isinstance(expression, e.Column | e.Literal | e.Parameter | e.OuterColumn)
        if plain:
            continue
        if uses.get(index, 0) > 1 or has_subplan(expression) or is_volatile(expression):
            return False
    return True


def _is_identity(node: n.Project) -> bool:
    if node.fields != node.input.fields:
        return False
    return all(
        isinstance(one, e.Column) and one.index == i for i, one in enumerate(node.expressions)
    )
