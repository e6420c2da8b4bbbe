"""Removes sorts that an access path makes needless: it gives rows in the order of its key.

A sort is removed when the access path already chosen has its order; if sub-queries are evaluated
over the rows, only below a limit. A full scan is changed to an index scan for the sake of order
only below a limit, where reading in order means reading little.
"""

from __future__ import annotations

from dataclasses import replace

from belvedere.catalog.model import Table
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import has_subplan, rebuild_inputs
from belvedere.sql.rules.access.access_paths import (
    KeyExpression,
    find_usable_indexes,
    index_key_columns,
    is_covering,
    map_to_table_row,
    primary_key_columns,
)
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import estimate_rows

LIMIT_SHARE = 0.2


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
    if isinstance(node.count, e.Literal) and isinstance(node.count.value, int):
        return float(node.count.value)
    return 100.0


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
            return order_scan(node, keys, limit, context)
        case _:
            return None


def _has_subqueries(expressions: tuple[e.Expression, ...]) -> bool:
    """Whether there are sub-queries, whose joins in DuckDB do not keep an order of rows."""
    return any(has_subplan(one) for one in expressions)


def order_scan(
    scan: n.Scan, keys: tuple[e.SortKey, ...], limit: float | None, context: OptimizerContext
) -> n.Scan | None:
    """The scan with its rows in this order, if a key gives it."""
    table = context.catalog.get(scan.relation)
    if not isinstance(table, Table):
        return None
    wanted = [
        replace(key, expression=map_to_table_row(key.expression, scan, table)) for key in keys
    ]
    access = scan.access
    if access != paths.FULL:
        columns = access_key_columns(access, table, context)
        reverse = None if columns is None else _find_direction(columns, len(access.parts), wanted)
        if reverse is None or not _has_single_values(access):
            return None
        return replace(scan, access=replace(access, ordered=True, reverse=reverse))
    reverse = _find_direction(primary_key_columns(table), 0, wanted)
    if reverse is not None:
        return replace(scan, access=replace(access, ordered=True, reverse=reverse))
    few = limit is not None and limit <= estimate_rows(scan, context) * LIMIT_SHARE
    for index in find_usable_indexes(scan, table, context):
        reverse = _find_direction(index_key_columns(table, index, context), 0, wanted)
        covering = is_covering(index, table, scan)
        # A partial index has little more than the rows that are needed.
        partial = limit is not None and index.where is not None
        if reverse is not None and (few or covering or partial):
            made = paths.Access(
                index.id, index.name, covering=covering, reverse=reverse, ordered=True
            )
            return replace(scan, access=made)
    return None


def access_key_columns(
    access: paths.Access, table: Table, context: OptimizerContext
) -> tuple[KeyExpression, ...] | None:
    """The columns of the key that an access follows."""
    if access.index is None:
        return primary_key_columns(table)
    for index in context.catalog.table_indexes(table.id):
        if index.id == access.index:
            return index_key_columns(table, index, context)
    return None


def _has_single_values(access: paths.Access) -> bool:
    return all(isinstance(part, paths.EqualityPart | paths.IsNullPart) for part in access.parts)


def _find_direction(
    columns: tuple[KeyExpression, ...], fixed: int, wanted: list[e.SortKey]
) -> bool | None:
    """False: the order of the key; True: its reverse; None: neither.

    The first `fixed` columns have one value each, so they order nothing and may be left out.
    """
    constant = [column.expression for column in columns[:fixed]]
    rest = list(columns[fixed:])
    found: bool | None = None
    for key in wanted:
        if key.expression in constant:
            continue
        if not rest or rest[0].expression != key.expression:
            return None
        column = rest.pop(0)
        reverse = column.descending != key.descending
        nulls_first = column.nulls_first != reverse
        if not column.not_null and nulls_first != key.nulls_first:
            return None
        if found is not None and found != reverse:
            return None
        found = reverse
    return bool(found)
