"""Estimated row counts of plan nodes: they guide choices, correctness never depends on them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from belvedere.catalog.model import Table
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import conjuncts
from belvedere.sql.rules.context import Context
from belvedere.sql.rules.statistics import DEFAULT_ROWS

EQUAL = 0.01
RANGE = 0.3
LIKE = 0.1
PREFIX = 0.02
OTHER = 0.33
SEMI = 0.5
GROUPS = 0.1
NULLS = 0.05
LEAST = 0.0001
MINIMUM = 1.0


def rows_of(node: n.Node, context: Context) -> float:
    """The estimate, at least 1 so that products stay useful; an empty Values is 0."""
    match node:
        case n.Scan() | n.State():
            total = table_rows(node.relation, context)
            return max(MINIMUM, total * selectivity(node.filter, node, context))
        case n.Values():
            return float(len(node.rows))
        case n.Filter():
            inner = rows_of(node.input, context)
            return max(MINIMUM, inner * selectivity(node.condition, node.input, context))
        case n.Join():
            known = context.join_rows.get(id(node))
            if known is None:
                known = context.join_rows[id(node)] = (node, _join(node, context))
            return known[1]
        case n.Aggregate():
            return _groups(node, context)
        case n.Limit() | n.TopN():
            inner = rows_of(node.input, context)
            count = node.count
            if isinstance(count, e.Literal) and isinstance(count.value, int):
                return min(inner, float(max(count.value, 0)))
            return inner
        case n.Distinct():
            return max(MINIMUM, rows_of(node.input, context) * 0.5)
        case _:
            return _others(node, context)


def _others(node: n.Node, context: Context) -> float:
    match node:
        case n.SetOperation():
            left, right = rows_of(node.left, context), rows_of(node.right, context)
            return left + right if node.kind is n.SetKind.UNION else left
        case n.RecursiveUnion():
            return rows_of(node.base, context) * 10
        case n.With():
            return rows_of(node.body, context)
        case n.TableFunction():
            return _series(node)
        case n.VirtualScan() | n.CteScan() | n.Changes():
            return 100.0
        case n.Project() | n.Window() | n.Sort() | n.Lock() | n.Insert() | n.Update() | n.Delete():
            return rows_of(node.input, context)
        case _:
            return DEFAULT_ROWS


def _series(node: n.TableFunction) -> float:
    call = node.calls[0]
    bounds = [one.value for one in call.arguments if isinstance(one, e.Literal)]
    if call.function.name == "generate_series" and len(bounds) == len(call.arguments) >= 2:
        if isinstance(bounds[0], int) and isinstance(bounds[1], int):
            return float(max(0, bounds[1] - bounds[0] + 1))
    return 10.0


def table_rows(relation: int, context: Context) -> float:
    found = context.statistics.rows(relation)
    return DEFAULT_ROWS if found is None else max(MINIMUM, found)


def _join(node: n.Join, context: Context) -> float:
    left, right = rows_of(node.left, context), rows_of(node.right, context)
    if node.lateral:
        rows = left * right
    else:
        rows = left * right
        for key in node.keys:
            rows *= _match(key, node, context)
    for _ in conjuncts(node.residual):
        rows *= OTHER
    match node.kind:
        case n.JoinKind.SEMI | n.JoinKind.ANTI:
            return max(MINIMUM, min(left, left * SEMI))
        case n.JoinKind.LEFT:
            return max(left, rows)
        case n.JoinKind.RIGHT:
            return max(right, rows)
        case n.JoinKind.FULL:
            return max(left + right, rows)
        case _:
            return max(MINIMUM, rows)


def _match(key: n.JoinKey, node: n.Join, context: Context) -> float:
    """The share of all pairs of rows that one key of a join keeps."""
    left, right = (
        distinct_of(key.left, node.left, context),
        distinct_of(key.right, node.right, context),
    )
    here, there = origin(key.left, node.left), origin(key.right, node.right)
    if here is not None and there is not None:
        mine, theirs = context.statistics.summary(*here), context.statistics.summary(*there)
        # A side with fewer rows than values has lost some of them, so it is not spread as stored.
        whole = rows_of(node.left, context) >= left and rows_of(node.right, context) >= right
        if mine is not None and theirs is not None and mine.common and theirs.common and whole:
            return mine.matches(theirs)
    return 1.0 / max(left, right, MINIMUM)


def _groups(node: n.Aggregate, context: Context) -> float:
    inner = rows_of(node.input, context)
    if not node.groups:
        return MINIMUM
    groups = 1.0
    for one in node.groups:
        groups *= distinct_of(one, node.input, context)
    sets = 1 if node.grouping_sets is None else len(node.grouping_sets)
    return max(MINIMUM, min(inner, groups) * sets)


# -- columns ---------------------------------------------------------------------------------------


def origin(expression: e.Expression, node: n.Node) -> tuple[int, int] | None:
    """(relation, slot) that a column comes from unchanged, seen through filters and joins."""
    if not isinstance(expression, e.Column):
        return None
    index = expression.index
    while True:
        match node:
            case n.Scan() | n.State():
                return node.relation, node.slots[index]
            case n.Filter() | n.Sort() | n.Limit() | n.TopN() | n.Distinct() | n.Lock():
                node = node.input
            case n.Project():
                inner = node.expressions[index]
                if not isinstance(inner, e.Column):
                    return None
                index, node = inner.index, node.input
            case n.Join():
                width = len(node.left.fields)
                side = index < width
                index, node = (index, node.left) if side else (index - width, node.right)
            case n.Window():
                if index >= len(node.input.fields):
                    return None
                node = node.input
            case n.Aggregate():
                if index >= len(node.groups):
                    return None
                group = node.groups[index]
                if not isinstance(group, e.Column):
                    return None
                index, node = group.index, node.input
            case _:
                return None


def distinct_of(expression: e.Expression, node: n.Node, context: Context) -> float:
    """How many different values the expression has over the node's rows."""
    rows = rows_of(node, context)
    found = origin(expression, node)
    if found is None:
        return max(MINIMUM, rows * GROUPS)
    return min(rows, column_distinct(found[0], found[1], context))


def column_distinct(relation: int, slot: int, context: Context) -> float:
    total = table_rows(relation, context)
    table = context.catalog.get(relation)
    if isinstance(table, Table):
        if table.primary_key == (slot,):
            return total
        for index in context.catalog.indexes_of(relation):
            plain = index.unique and index.where is None and len(index.parts) == 1
            if plain and index.parts[0].slot == slot:
                return total
    known = context.statistics.distinct(relation, slot)
    if known is not None:
        return max(MINIMUM, min(known, total))
    return max(MINIMUM, total * GROUPS)


# -- conditions ------------------------------------------------------------------------------------


def selectivity(condition: e.Expression | None, node: n.Node, context: Context) -> float:
    """The share of the node's rows (before any filter of its own) for which it is true."""
    found = 1.0
    for one in conjuncts(condition):
        found *= _share(one, node, context)
    return found


def _share(condition: e.Expression, node: n.Node, context: Context) -> float:
    match condition:
        case e.Or():
            missing = 1.0
            for one in condition.operands:
                missing *= 1.0 - min(1.0, selectivity(one, node, context))
            return 1.0 - missing
        case e.InList():
            share = min(
                1.0, sum(_equal(condition.operand, one, node, context) for one in condition.items)
            )
            return 1.0 - share if condition.negated else share
        case e.Quantified():
            return min(1.0, 10 * _equal(condition.operand, None, node, context))
        case e.Call():
            return _comparison(condition, node, context)
        case e.Test(truth=e.Truth.NULL):
            nulls = _nulls(condition.operand, node, context)
            return 1.0 - nulls if condition.negated else nulls
        case e.Not():
            return max(0.0, 1.0 - _share(condition.operand, node, context))
        case _:
            return OTHER


def _comparison(call: e.Call, node: n.Node, context: Context) -> float:
    name = call.function.name
    if len(call.arguments) != 2:
        return OTHER
    left, right = call.arguments
    if isinstance(right, e.Column) and not isinstance(left, e.Column):
        left, right = right, left
        name = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(name, name)
    if name == "=":
        return _equal(left, right, node, context)
    if name == "<>":
        return 1.0 - _equal(left, right, node, context)
    if name in ("<", "<=", ">", ">="):
        return _range(left, right, name, node, context)
    if name == "~~" and isinstance(right, e.Literal) and str(right.value)[:1] not in "%_":
        return PREFIX
    return LIKE if "~" in name else OTHER


def _equal(
    operand: e.Expression, value: e.Expression | None, node: n.Node, context: Context
) -> float:
    found = origin(operand, node)
    if found is None:
        return EQUAL
    if isinstance(value, e.Literal) and not _is_key(*found, context):
        summary = context.statistics.summary(*found)
        if summary is not None:
            return max(summary.equal(value.value), LEAST)
    return 1.0 / column_distinct(found[0], found[1], context)


def _is_key(relation: int, slot: int, context: Context) -> bool:
    """Whether the column is the primary key by itself, which is estimated without a sample."""
    table = context.catalog.get(relation)
    return isinstance(table, Table) and table.primary_key == (slot,)


def _nulls(operand: e.Expression, node: n.Node, context: Context) -> float:
    found = origin(operand, node)
    summary = None if found is None else context.statistics.summary(*found)
    return NULLS if summary is None else min(1.0 - LEAST, max(LEAST, summary.nulls))


def _range(
    operand: e.Expression, bound: e.Expression, name: str, node: n.Node, context: Context
) -> float:
    found = origin(operand, node)
    if found is None or not isinstance(bound, e.Literal):
        return RANGE
    summary = None if _is_key(*found, context) else context.statistics.summary(*found)
    if summary is not None and bound.value is not None:
        below = summary.below(bound.value, inclusive=name in ("<=", ">"))
        if below is not None:
            share = below if name in ("<", "<=") else 1.0 - summary.nulls - below
            return min(1.0, max(LEAST, share))
    extent = context.statistics.extent(*found)
    if extent is None:
        return RANGE
    low, high, value = (_number(one) for one in (*extent, bound.value))
    if low is None or high is None or value is None or high <= low:
        return RANGE
    below = min(1.0, max(0.0, (value - low) / (high - low)))
    return max(LEAST, below if name in ("<", "<=") else 1.0 - below)


def _number(value: Any) -> float | None:
    match value:
        case bool():
            return None
        case int() | float() | Decimal():
            found = float(value)
            return found if found == found else None
        case datetime.datetime():
            return value.timestamp()
        case datetime.date():
            return float(value.toordinal())
        case _:
            return None
