"""Pushes limits below projections, and makes a limit of a sort one TopN node that keeps n rows."""

from __future__ import annotations

from dataclasses import replace

from belvedere.plan import nodes as n
from belvedere.plan.transform import rebuild_inputs
from belvedere.sql.rules.context import OptimizerContext


def top_n(plan: n.Node, context: OptimizerContext) -> n.Node:
    node = rebuild_inputs(plan, lambda one: top_n(one, context))
    if not isinstance(node, n.Limit):
        return node
    inner = node.input
    if isinstance(inner, n.Project):
        return replace(inner, input=top_n(replace(node, input=inner.input), context))
    if isinstance(inner, n.Sort) and node.count is not None:
        return n.TopN(inner.input, inner.keys, node.count, node.offset, node.with_ties)
    return node
