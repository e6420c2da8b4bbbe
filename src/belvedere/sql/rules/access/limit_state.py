"""A limit over a view reads only the first rows of the view's state, where its key has the order.

The rows of a view are stored rows, each repeated as often as it is there. So the first k stored
rows that are there at all, in the order of the key, have the first k rows of the view among them: a
limit is put on the scan, and the sort above it stays, over few rows.
"""

from __future__ import annotations

from dataclasses import replace

from belvedere.catalog.model import View
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.row_repeat import find_repeat_column
from belvedere.plan.transform import conjunction, conjuncts, rebuild_inputs
from belvedere.sql.rules.access.ordered_access import order_state_scan
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.equality import make_comparison
from belvedere.sql.rules.estimates import repeats_stored_rows
from belvedere.types import BIGINT


def limit_state(plan: n.Node, context: OptimizerContext) -> n.Node:
    node = rebuild_inputs(plan, lambda one: limit_state(one, context))
    if not isinstance(node, n.TopN) or node.with_ties:
        return node
    count = _find_count(node)
    if count is None:
        return node
    below = _limit_below(node.input, node.keys, count, context)
    return node if below is None else replace(node, input=below)


def _find_count(node: n.TopN) -> e.Expression | None:
    """How many rows the limit needs at most, those that it skips included."""
    if node.offset is None:
        return node.count
    match node.count, node.offset:
        case e.Literal(value=int() as count), e.Literal(value=int() as offset):
            return e.Literal(count + offset, BIGINT)
    return None


def _limit_below(
    node: n.Node, keys: tuple[e.SortKey, ...], count: e.Expression, context: OptimizerContext
) -> n.Node | None:
    match node:
        case n.Project():
            inner = [_move_key(key, node.expressions) for key in keys]
            known = tuple([key for key in inner if key is not None])
            if len(known) < len(keys):
                return None
            below = _limit_below(node.input, known, count, context)
            return None if below is None else replace(node, input=below)
        case n.Join(left=n.Scan() as scan) if repeats_stored_rows(node, context):
            below = _limit_below(_keep_present_rows(node, scan), keys, count, context)
            return None if below is None else replace(node, left=below)
        case n.Scan():
            view = context.catalog.get(node.relation)
            if not isinstance(view, View) or node.access.index is not None:
                return None
            ordered = order_state_scan(node, view, keys)
            return None if ordered is None else n.Limit(ordered, count)
        case _:
            return None


def _keep_present_rows(join: n.Join, scan: n.Scan) -> n.Scan:
    """The scan without rows that are there no times: state may have them for a while."""
    column = find_repeat_column(join)
    assert column is not None
    present = make_comparison("<>", e.Column(column, BIGINT, "rows"), e.Literal(0, BIGINT))
    return replace(
        scan,
        filter=conjunction([*conjuncts(scan.filter), present]),
        residual=conjunction([*conjuncts(scan.residual), present]),
    )


def _move_key(key: e.SortKey, expressions: tuple[e.Expression, ...]) -> e.SortKey | None:
    if not isinstance(key.expression, e.Column):
        return None
    return replace(key, expression=expressions[key.expression.index])
