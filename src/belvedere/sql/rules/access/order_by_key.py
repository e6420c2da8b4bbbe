"""Removes sorts that an access path makes needless: it gives rows in the order of its key.

A sort is removed when the access path already chosen has its order; if sub-queries are evaluated
over the rows, only below a limit. Below a limit the access path is chosen again, because reading in
order means reading little there (`ordered_access`).
"""

from __future__ import annotations

from dataclasses import replace

from belvedere.catalog.model import Table, View
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import has_subplan, rebuild_inputs
from belvedere.sql.rules.access.access_paths import (
    find_usable_indexes,
    index_order_columns,
    is_covering,
    map_to_table_row,
    primary_key_columns,
)
from belvedere.sql.rules.access.ordered_access import (
    access_key_columns,
    find_direction,
    has_single_values,
    order_scan_for_limit,
    order_state_scan,
)
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import LIMIT_ROWS


def order_by_key(plan: n.Node, context: OptimizerContext) -> n.Node:
    return _remove_sorts(plan, None, context)


def _remove_sorts(node: n.Node, limit: float | None, context: OptimizerContext) -> n.Node:
    match node:
        case n.Limit():
            inner = _remove_sorts(node.input, _estimate_limit(node), context)
            if node.with_ties and not isinstance(inner, n.Sort):
                return node  # what a tie is must stay visible
            return replace(node, input=inner)
        case n.Project(input=n.Sort() as sort) if limit is None and _has_subqueries(
            node.expressions
        ):
            return replace(
                node, input=replace(sort, input=_remove_sorts(sort.input, None, context))
            )
        case n.Project():
            return replace(node, input=_remove_sorts(node.input, limit, context))
        case n.Sort():
            inner = _remove_sorts(node.input, None, context)
            ordered = order_by_scan(inner, node.keys, limit, context)
            return replace(node, input=inner) if ordered is None else ordered
        case _:
            return rebuild_inputs(node, lambda one: _remove_sorts(one, None, context))


def _estimate_limit(node: n.Limit) -> float:
    """How many rows a limit reads, those that its offset skips among them."""
    limit = LIMIT_ROWS
    if isinstance(node.count, e.Literal) and isinstance(node.count.value, int):
        limit = float(node.count.value)
    if isinstance(node.offset, e.Literal) and isinstance(node.offset.value, int):
        limit += node.offset.value
    return limit


def order_by_scan(
    node: n.Node, keys: tuple[e.SortKey, ...], limit: float | None, context: OptimizerContext
) -> n.Node | None:
    """The node with rows in this order, when a scan below can give it."""
    match node:
        case n.Project() if limit is None and _has_subqueries(node.expressions):
            return None
        case n.Project():
            inner_keys = []
            for key in keys:
                if not isinstance(key.expression, e.Column):
                    return None
                inner_keys.append(replace(key, expression=node.expressions[key.expression.index]))
            inner = order_by_scan(node.input, tuple(inner_keys), limit, context)
            return None if inner is None else replace(node, input=inner)
        case n.Filter() if limit is None and _has_subqueries((node.condition,)):
            return None
        case n.Filter():
            inner = order_by_scan(node.input, keys, limit, context)
            return None if inner is None else replace(node, input=inner)
        case n.Scan():
            if limit is not None:
                return order_scan_for_limit(node, keys, limit, context)
            return order_scan(node, keys, context)
        case _:
            return None


def _has_subqueries(expressions: tuple[e.Expression, ...]) -> bool:
    """Whether there are sub-queries, whose joins in DuckDB do not keep an order of rows."""
    return any(has_subplan(one) for one in expressions)


def order_scan(
    scan: n.Scan,
    keys: tuple[e.SortKey, ...],
    context: OptimizerContext,
    *,
    few_rows: bool = False,
) -> n.Scan | None:
    """The scan with its rows in this order, if the key that it follows gives it. A full scan is
    changed to one of an index that has all columns, or of any when few rows are read."""
    table = context.catalog.get(scan.relation)
    if isinstance(table, View):
        return order_state_scan(scan, table, keys)
    if not isinstance(table, Table):
        return None
    wanted = [
        replace(key, expression=map_to_table_row(key.expression, scan, table)) for key in keys
    ]
    access = scan.access
    if access != paths.FULL:
        columns = access_key_columns(access, table, context)
        reverse = None if columns is None else find_direction(columns, access, wanted)
        if reverse is None or not has_single_values(access):
            return None
        return replace(scan, access=replace(access, ordered=True, reverse=reverse))
    reverse = find_direction(primary_key_columns(table), access, wanted)
    if reverse is not None:
        return replace(scan, access=replace(access, ordered=True, reverse=reverse))
    for index in find_usable_indexes(scan, table, context):
        covering = is_covering(index, table, scan)
        made = paths.Access(index.id, index.name, covering=covering)
        reverse = find_direction(index_order_columns(table, index, context), made, wanted)
        if reverse is not None and (few_rows or covering):
            return replace(scan, access=replace(made, ordered=True, reverse=reverse))
    return None
