"""Merge joins, for two large inputs that are both scanned in the order of the join key.

A hash join holds its right side in memory; a merge join holds the rows of one key value, and gives
its first rows at once. It is taken where the order costs nothing: both sides are scans by the key
they would follow anyway. Executors that do not merge (DuckDB has its own way) need not keep to that
order.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import rebuild_inputs
from belvedere.sql.rules.access.order_by_key import order_by_scan
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import estimate_rows
from belvedere.types import Kind

ROWS_MIN = 2_000.0
"""A right side of fewer rows is hashed."""

KEYS_MAX = 3
_INTEGERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
_ORDERED = _INTEGERS | {
    Kind.TEXT,
    Kind.VARCHAR,
    Kind.DATE,
    Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ,
    Kind.UUID,
}
"""Types whose values Python orders as their keys are ordered."""


def merge_joins(plan: n.Node, context: OptimizerContext) -> n.Node:
    node = rebuild_inputs(plan, lambda one: merge_joins(one, context))
    if not isinstance(node, n.Join) or node.method is not n.JoinMethod.HASH or node.lateral:
        return node
    left, right = node.left, node.right
    if len(node.keys) > KEYS_MAX or not all(map(_is_ordered, node.keys)):
        return node
    if estimate_rows(right, context) < ROWS_MIN:
        return node
    for keys in permutations(node.keys):
        one = _order_side(left, [key.left for key in keys], context)
        other = _order_side(right, [key.right for key in keys], context)
        if one is not None and other is not None:
            return replace(node, left=one, right=other, keys=keys, method=n.JoinMethod.MERGE)
    return node


def _is_ordered(key: n.JoinKey) -> bool:
    one, other = key.left.type.kind, key.right.type.kind
    same = one is other or {one, other} <= _INTEGERS
    return same and one in _ORDERED and not key.null_safe


def _order_side(
    node: n.Node, columns: list[e.Expression], context: OptimizerContext
) -> n.Node | None:
    found = order_by_scan(node, tuple(e.SortKey(one) for one in columns), None, context)
    if found is None:
        return None
    before, after = _find_scan(node).access, _find_scan(found).access
    return found if before.index == after.index and not after.reverse else None


def _find_scan(node: n.Node) -> n.Scan:
    while isinstance(node, n.Project | n.Filter):
        node = node.input
    assert isinstance(node, n.Scan)
    return node
