"""Plans whose orders are made total, so that equal rows always give the same result."""

from __future__ import annotations

from dataclasses import replace

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.representation import total_order_keys


def make_order_total(node: n.Node) -> n.Node:
    """Make every order of the plan total, so that the same rows always give the same result."""

    def rewrite_expression(one: e.Expression) -> e.Expression:
        return transform.with_subplan(
            transform.rebuild_operands(one, rewrite_expression), make_order_total
        )

    node = transform.rebuild_inputs(
        transform.rebuild_expressions(node, rewrite_expression), make_order_total
    )
    match node:
        case n.Aggregate() | n.Window() if not isinstance(node.input, n.Sort):
            return replace(node, input=_sort_totally(node.input))
        case n.TopN(with_ties=False):
            return replace(node, keys=node.keys + total_order_keys(node.fields))
        case n.Limit(with_ties=False) | n.Distinct(on=tuple()):
            below = node.input
            if isinstance(below, n.Sort):
                keys = below.keys + total_order_keys(below.fields)
                return replace(node, input=n.Sort(below.input, keys))
            return replace(node, input=_sort_totally(below))
        case _:
            return node


def _sort_totally(node: n.Node) -> n.Sort:
    """Sort by all columns: of equal rows with different representations, always the same one
    is chosen."""
    return n.Sort(node, total_order_keys(node.fields))
