"""Reads min and max of a key column from the first or last row of a key, instead of all rows.

    SELECT max(at) FROM events WHERE shop = 7          with an index on (shop, at)

becomes the one value of `SELECT at FROM events WHERE shop = 7 AND at IS NOT NULL ORDER BY at DESC
LIMIT 1`, each aggregate by itself. Only where the key leaves no condition to check: else the rows
before the first that passes might be all of them.
"""

from __future__ import annotations

from dataclasses import replace

from belvedere.catalog.model import Table
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import lift_plan, rebuild_inputs
from belvedere.sql.rules.access.access_paths import map_to_table_row
from belvedere.sql.rules.access.order_by_key import order_scan
from belvedere.sql.rules.access.ordered_access import access_key_columns
from belvedere.sql.rules.context import OptimizerContext
from belvedere.types import BIGINT, Kind, SqlType

ONE = e.Literal(1, BIGINT)


def seek_min_max(plan: n.Node, context: OptimizerContext) -> n.Node:
    node = rebuild_inputs(plan, lambda one: seek_min_max(one, context))
    if not isinstance(node, n.Aggregate) or node.groups or node.groupings:
        return node
    if node.grouping_sets is not None or not isinstance(node.input, n.Scan):
        return node
    values = [_make_seek(call, node.input, context) for call in node.aggregates]
    found = tuple(value for value in values if value is not None)
    if not found or len(found) < len(values):
        return node
    return n.Project(n.Values(((),), ()), found, node.fields)


def _make_seek(
    call: e.AggregateCall, scan: n.Scan, context: OptimizerContext
) -> e.Expression | None:
    if call.function.name not in ("min", "max") or call.filter is not None:
        return None
    (argument,) = call.arguments
    if not isinstance(argument, e.Column) or not _has_one_representation(argument.type):
        return None
    descending = call.function.name == "max"
    for nulls_first in (descending, not descending):
        key = e.SortKey(argument, descending, nulls_first)
        ends = _order_scan_by_key(scan, key, context)
        if ends is not None:
            one = n.Project(n.Limit(ends, ONE), (argument,), (scan.fields[argument.index],))
            return e.ScalarSubquery(lift_plan(one, 1), call.type)
    return None


def _order_scan_by_key(scan: n.Scan, key: e.SortKey, context: OptimizerContext) -> n.Scan | None:
    """The scan in the order of the key, without NULLs, when that is a matter of its access."""
    table = context.catalog.get(scan.relation)
    if scan.residual is not None or not isinstance(table, Table):
        return None
    if scan.access == paths.FULL and scan.filter is not None:
        return None
    ordered = order_scan(scan, (key,), context, few_rows=True)
    if ordered is None:
        return None
    access = ordered.access
    columns = access_key_columns(access, table, context)
    place = len(access.parts)
    if columns is None or place >= len(columns):
        return None
    column = columns[place]
    if column.expression != map_to_table_row(key.expression, scan, table):
        return None  # the key has one value of it, and orders by another
    if column.not_null:
        return ordered
    return replace(ordered, access=replace(access, range=access.range or paths.Range()))


def _has_one_representation(sql_type: SqlType) -> bool:
    """Whether equal values have one representation: else the result depends on the row taken."""
    if sql_type.kind is Kind.NUMERIC:
        return sql_type.precision is not None
    return sql_type.kind is not Kind.INTERVAL
