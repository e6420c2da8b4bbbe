"""The cost of an optimized plan, to compare plans of one statement.

The unit is that of access paths: one row read by its key. Rows of a range cost a tenth, as do the
simple steps of other operators. A limit asks only for the rows it needs: operators that stream ask
their inputs for no more than that, those that need all rows ask for all.
"""

from __future__ import annotations

import math
from dataclasses import replace

from belvedere.catalog.model import View
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import (
    conjunction,
    conjuncts,
    inputs,
    operands,
    outer_references,
    own_expressions,
    subplan,
)
from belvedere.sql.rules.access.access_paths import GET, NEXT, SEEK
from belvedere.sql.rules.access.like_patterns import prefix_range
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import LIMIT_ROWS, estimate_rows, estimate_table_rows
from belvedere.sql.rules.joins.choose_joins import HASH_BUILD, HASH_PROBE

STEP = 0.03  # a row that passes a filter or a projection
GROUP = 0.2  # a row that is added to its group
COMPARE = 0.02  # one comparison of a sort
LEAST_READ = SEEK + NEXT  # of one row of a range
STATE_NEXT = 0.15  # one more row of a view that is read from end to end: always row by row,
STATE_COLUMN = 0.03  # and this for each column
ROW_COLUMN = 0.025  # a column of a row of a range, which is never read by columns
DUCKDB_STATEMENT = 400.0
DUCKDB_ROW = 0.005  # a row that passes an operator of DuckDB
COLUMN_NEXT = 0.005  # a row of a table, of which there are columnar copies
STATE_TO_COLUMNS = 0.6  # a row of a view, of which there are none, made columns of


def estimate_cost(plan: n.Node, context: OptimizerContext, wanted: float = math.inf) -> float:
    """The cost of the first `wanted` rows of an optimized plan."""
    rows = estimate_rows(plan, context)
    share = min(1.0, wanted / max(rows, 1.0))
    match plan:
        case n.Scan() | n.State():
            cost = _estimate_scan(plan, rows, share, context)
        case n.Limit():
            cost = estimate_cost(plan.input, context, min(wanted, _count_limit(plan)))
        case n.Project() | n.Filter() | n.Lock():
            below = estimate_rows(plan.input, context)
            cost = estimate_cost(plan.input, context, below * share) + below * share * STEP
        case n.Sort() | n.TopN() | n.Aggregate() | n.Distinct() | n.Window():
            cost = _estimate_blocking(plan, context)
        case n.Join():
            cost = _estimate_join(plan, rows, share, context)
        case _:
            cost = sum(estimate_cost(one, context) for one in inputs(plan)) + rows * STEP
    return cost + _estimate_subplans(plan, rows * share, context)


def estimate_statement_cost(plan: n.Node, context: OptimizerContext) -> float:
    """The cost of a statement in the cheaper of the two tiers that may run it."""
    direct = estimate_cost(plan, context)
    if direct <= DUCKDB_STATEMENT:
        return direct
    return min(direct, DUCKDB_STATEMENT + _estimate_in_duckdb(plan, context))


def _estimate_in_duckdb(plan: n.Node, context: OptimizerContext) -> float:
    """What a plan costs in DuckDB: tables are read from columnar copies, views row by row."""
    cost = estimate_rows(plan, context) * DUCKDB_ROW
    if isinstance(plan, n.Scan | n.State):
        if isinstance(context.catalog.get(plan.relation), View):
            made = estimate_rows(plan, context) * STATE_TO_COLUMNS
            return estimate_cost(plan, context) + made
        copied = estimate_table_rows(plan.relation, context) * COLUMN_NEXT
        return cost + min(estimate_cost(plan, context), copied)
    if isinstance(plan, n.Limit) and isinstance(plan.input, n.Scan):
        return cost + estimate_cost(plan, context)
    below = [*inputs(plan)]
    for one in own_expressions(plan):
        below += _list_subplans(one)
    return cost + sum(_estimate_in_duckdb(one, context) for one in below)


def _count_limit(node: n.Limit) -> float:
    parts = [one for one in (node.count, node.offset) if one is not None]
    known = [one.value for one in parts if isinstance(one, e.Literal)]
    if node.count is None or (isinstance(node.count, e.Literal) and node.count.value is None):
        return math.inf
    if len(known) < len(parts):
        return LIMIT_ROWS
    return float(sum(value or 0 for value in known))


def _estimate_scan(
    node: n.Scan | n.State, rows: float, share: float, context: OptimizerContext
) -> float:
    access = node.access
    if access.kind is paths.AccessKind.KEY:
        return GET
    if access.kind is paths.AccessKind.KEYS:
        return GET * max(rows, 1.0)
    if access.kind is paths.AccessKind.FULL and access.index is None:
        read = estimate_table_rows(node.relation, context)
        return SEEK + read * share * _estimate_full_scan_row(node, context)
    each = NEXT + ROW_COLUMN * len(node.slots)
    if access.index is not None and not access.covering:
        each += GET
    return SEEK + _estimate_read_rows(node, rows, context) * share * each


def _estimate_read_rows(node: n.Scan | n.State, rows: float, context: OptimizerContext) -> float:
    """The rows that a range has: also those that the residual condition drops."""
    dropped = [one for one in conjuncts(node.residual) if not _sets_range(one, node.access)]
    if not dropped:
        return rows
    kept = [one for one in conjuncts(node.filter) if one not in dropped]
    return estimate_rows(replace(node, filter=conjunction(kept), residual=None), context)


def _sets_range(condition: e.Expression, access: paths.Access) -> bool:
    """Whether the range was made from the condition, which it does not imply: LIKE."""
    found = prefix_range(condition)
    return found is not None and found[1] == access.range


def _estimate_full_scan_row(node: n.Scan | n.State, context: OptimizerContext) -> float:
    if isinstance(context.catalog.get(node.relation), View):
        return STATE_NEXT + STATE_COLUMN * len(node.slots)
    return NEXT


def _estimate_blocking(
    node: n.Sort | n.TopN | n.Aggregate | n.Distinct | n.Window, context: OptimizerContext
) -> float:
    below = estimate_rows(node.input, context)
    each = GROUP
    if isinstance(node, n.Sort | n.Window):
        each = NEXT + COMPARE * math.log2(below + 2)
    elif isinstance(node, n.TopN):
        each = NEXT
    return estimate_cost(node.input, context) + below * each


def _estimate_join(node: n.Join, rows: float, share: float, context: OptimizerContext) -> float:
    left = estimate_rows(node.left, context)
    if node.lookup is not None:
        each = GET if node.lookup.access.full_key else SEEK + NEXT * rows / max(left, 1.0)
        if node.lookup.access.index is not None and not node.lookup.access.covering:
            each += GET * rows / max(left, 1.0)
        return estimate_cost(node.left, context, left * share) + left * share * each
    if node.lateral:
        right = STEP if isinstance(node.right, n.TableFunction) else 0.0
        right = right or estimate_cost(node.right, context)
        return estimate_cost(node.left, context, left * share) + left * share * right
    right = estimate_rows(node.right, context)
    cost = estimate_cost(node.left, context) + estimate_cost(node.right, context)
    if not node.keys:
        return cost + left * right * STEP
    return cost + left * HASH_PROBE + right * HASH_BUILD + rows * STEP


def _estimate_subplans(node: n.Node, rows: float, context: OptimizerContext) -> float:
    """The plans inside the node's expressions: those that read the row run for every row."""
    found = [plan for one in own_expressions(node) for plan in _list_subplans(one)]
    return sum(
        (max(rows, 1.0) if outer_references(plan) else 1.0) * estimate_cost(plan, context)
        for plan in found
    )


def _list_subplans(expression: e.Expression) -> list[n.Node]:
    plan = subplan(expression)
    found = [] if plan is None else [plan]
    return found + [inner for one in operands(expression) for inner in _list_subplans(one)]
