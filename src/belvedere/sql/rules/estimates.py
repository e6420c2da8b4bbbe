"""Estimated row counts of plan nodes: they guide choices, correctness never depends on them."""

from __future__ import annotations

import datetime
import math
from datetime import date
from decimal import Decimal
from typing import Any

from belvedere.catalog.model import Table, View
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.row_repeat import find_repeat_column
from belvedere.plan.transform import columns_of, conjuncts
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.statistics import DEFAULT_ROWS
from belvedere.types import Kind, SqlType

EQUAL = 0.01
RANGE = 0.3
LIKE = 0.1
PREFIX = 0.02
OTHER = 0.33
SEMI = 0.5
GROUPS = 0.1
NULLS = 0.05
CHARACTERS = SqlType(Kind.CHAR)
LEAST = 0.0001
MINIMUM = 1.0
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
LIMIT_ROWS = 100.0
"""Of a limit by a parameter."""


def estimate_rows(node: n.Node, context: OptimizerContext) -> float:
    """The estimate, at least 1 so that products stay useful; an empty Values is 0."""
    match node:
        case n.Scan() | n.State():
            total = estimate_table_rows(node.relation, context)
            return max(MINIMUM, total * estimate_selectivity(node.filter, node, context))
        case n.Values():
            return float(len(node.rows))
        case n.Filter():
            inner = estimate_rows(node.input, context)
            return max(MINIMUM, inner * estimate_selectivity(node.condition, node.input, context))
        case n.Join():
            known = context.join_rows.get(id(node))
            if known is None:
                known = context.join_rows[id(node)] = (node, _estimate_join(node, context))
            return known[1]
        case n.Aggregate():
            return _estimate_groups(node, context)
        case n.Limit() | n.TopN():
            inner = estimate_rows(node.input, context)
            count = node.count.operand if isinstance(node.count, e.Cast) else node.count
            if isinstance(count, e.Literal) and isinstance(count.value, int):
                return min(inner, float(max(count.value, 0)))
            return min(inner, LIMIT_ROWS) if isinstance(count, e.Parameter) else inner
        case n.Distinct():
            return max(MINIMUM, estimate_rows(node.input, context) * 0.5)
        case _:
            return _estimate_other(node, context)


def _estimate_other(node: n.Node, context: OptimizerContext) -> float:
    match node:
        case n.SetOperation():
            left, right = estimate_rows(node.left, context), estimate_rows(node.right, context)
            return left + right if node.kind is n.SetKind.UNION else left
        case n.RecursiveUnion():
            return estimate_rows(node.base, context) * 10
        case n.With():
            return estimate_rows(node.body, context)
        case n.TableFunction():
            return _estimate_series(node)
        case n.VirtualScan() | n.ForeignScan() | n.CteScan() | n.Changes():
            return 100.0
        case n.Project() | n.Window() | n.Sort() | n.Lock() | n.Insert() | n.Update() | n.Delete():
            return estimate_rows(node.input, context)
        case _:
            return DEFAULT_ROWS


def _estimate_series(node: n.TableFunction) -> float:
    call = node.calls[0]
    bounds = [one.value for one in call.arguments if isinstance(one, e.Literal)]
    if call.function.name == "generate_series" and len(bounds) == len(call.arguments) >= 2:
        if isinstance(bounds[0], int) and isinstance(bounds[1], int):
            return float(max(0, bounds[1] - bounds[0] + 1))
    return 10.0


def estimate_table_rows(relation: int, context: OptimizerContext) -> float:
    found = context.statistics.row_count(relation)
    return DEFAULT_ROWS if found is None else max(MINIMUM, found)


def _estimate_join(node: n.Join, context: OptimizerContext) -> float:
    left, right = estimate_rows(node.left, context), estimate_rows(node.right, context)
    if node.lateral:
        rows = left if repeats_stored_rows(node, context) else left * right
    else:
        rows = left * right * _estimate_keys_match(node, context)
    for one in conjuncts(node.residual):
        rows *= _estimate_pair_condition(one, node, context)
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


def _estimate_pair_condition(
    condition: e.Expression, node: n.Join, context: OptimizerContext
) -> float:
    """The share of all pairs of rows for which a condition over both is true."""
    if not isinstance(condition, e.Or):
        return OTHER
    width, share = len(node.left.fields), 0.0
    for one in condition.operands:
        match one:
            case e.Call(function, (e.Column() as left, e.Column() as right), _):
                if function.name != "=" or (left.index < width) is (right.index < width):
                    return OTHER
                share += 1.0 / max(
                    *(_count_side_values(x, node, context) for x in (left, right)), MINIMUM
                )
            case _:
                return OTHER
    return min(share, 1.0)


def _count_side_values(column: e.Column, node: n.Join, context: OptimizerContext) -> float:
    """How many different values a column of either side of a join has."""
    width = len(node.left.fields)
    if column.index < width:
        return estimate_distinct(column, node.left, context)
    moved = e.Column(column.index - width, column.type, column.name)
    return estimate_distinct(moved, node.right, context)


def repeats_stored_rows(node: n.Join, context: OptimizerContext) -> bool:
    """Whether the join gives the rows of a view's state as often as they are there: mostly once."""
    column = find_repeat_column(node)
    scan = node.left.input if isinstance(node.left, n.Limit) else node.left
    if column is None or not isinstance(scan, n.Scan):
        return False
    view = context.catalog.get(scan.relation)
    return isinstance(view, View) and scan.slots[column] >= len(view.stored)


def _estimate_keys_match(node: n.Join, context: OptimizerContext) -> float:
    """The share of all pairs of rows that the keys of a join keep. Keys that are the whole primary
    key of a table find one of its rows, however much its columns depend on each other."""
    shares = [_estimate_key_match(key, node, context) for key in node.keys]
    if len(shares) > 1:
        for side in (
            [find_origin(key.left, node.left) for key in node.keys],
            [find_origin(key.right, node.right) for key in node.keys],
        ):
            for relation in {one[0] for one in side if one is not None}:
                _keep_primary_key_match(relation, side, shares, context)
    return math.prod(shares)


def _keep_primary_key_match(
    relation: int,
    side: list[tuple[int, int] | None],
    shares: list[float],
    context: OptimizerContext,
) -> None:
    """Raise the shares of keys that are the primary key of a table to one row of it."""
    table = context.catalog.get(relation)
    if not isinstance(table, Table) or len(table.primary_key) < 2:
        return
    slots = {one: at for at, one in enumerate(side)}
    places = [slots.get((relation, slot)) for slot in table.primary_key]
    found = [place for place in places if place is not None]
    if len(found) < len(places):
        return
    least = 1.0 / estimate_table_rows(relation, context)
    together = math.prod(shares[place] for place in found)
    if 0.0 < together < least:
        shares[found[0]] *= least / together


def _estimate_key_match(key: n.JoinKey, node: n.Join, context: OptimizerContext) -> float:
    """The share of all pairs of rows that one key of a join keeps."""
    left, right = (
        estimate_distinct(key.left, node.left, context),
        estimate_distinct(key.right, node.right, context),
    )
    here, there = find_origin(key.left, node.left), find_origin(key.right, node.right)
    if here is not None and there is not None:
        mine, theirs = (
            context.statistics.column_summary(*here),
            context.statistics.column_summary(*there),
        )
        # A side with fewer rows than values has lost some of them, so it is not spread as stored.
        whole = (
            estimate_rows(node.left, context) >= left
            and estimate_rows(node.right, context) >= right
        )
        if mine is not None and theirs is not None and mine.common and theirs.common and whole:
            return mine.join_share(theirs)
    return 1.0 / max(left, right, MINIMUM)


def _estimate_groups(node: n.Aggregate, context: OptimizerContext) -> float:
    inner = estimate_rows(node.input, context)
    if not node.groups:
        return MINIMUM
    groups = 1.0
    for one in node.groups:
        groups *= estimate_distinct(one, node.input, context)
    sets = 1 if node.grouping_sets is None else len(node.grouping_sets)
    return max(MINIMUM, min(inner, groups) * sets)


# -- columns ---------------------------------------------------------------------------------------


def find_origin(expression: e.Expression, node: n.Node) -> tuple[int, int] | None:
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


def estimate_distinct(expression: e.Expression, node: n.Node, context: OptimizerContext) -> float:
    """How many different values the expression has over the node's rows."""
    rows = estimate_rows(node, context)
    found = find_origin(expression, node)
    if found is None:
        years = _count_years(expression, node, context)
        return max(MINIMUM, rows * GROUPS) if years is None else min(rows, years)
    return min(rows, estimate_column_distinct(found[0], found[1], context))


def _count_years(expression: e.Expression, node: n.Node, context: OptimizerContext) -> float | None:
    """How many years the values of a column are of; None for what is no year of a column."""
    match expression:
        case e.Call(function, (e.Literal("year"), e.Column() as column), _):
            found = find_origin(column, node)
            if function.name != "extract" or found is None:
                return None
            summary = context.statistics.column_summary(*found)
        case _:
            return None
    seen = [] if summary is None else [*summary.bounds, *summary.common]
    years = [one.year for one in seen if isinstance(one, date)]
    return float(max(years) - min(years) + 1) if years else None


def estimate_column_distinct(relation: int, slot: int, context: OptimizerContext) -> float:
    total = estimate_table_rows(relation, context)
    table = context.catalog.get(relation)
    if isinstance(table, Table):
        if table.primary_key == (slot,):
            return total
        for index in context.catalog.table_indexes(relation):
            plain = index.unique and index.where is None and len(index.parts) == 1
            if plain and index.parts[0].slot == slot:
                return total
    known = context.statistics.distinct_count(relation, slot)
    if known is not None:
        return max(MINIMUM, min(known, total))
    return max(MINIMUM, total * GROUPS)


# -- conditions ------------------------------------------------------------------------------------


def estimate_selectivity(
    condition: e.Expression | None, node: n.Node, context: OptimizerContext
) -> float:
    """The share of the node's rows (before any filter of its own) for which it is true. Two bounds
    of one column are a range, not two conditions that each keep a part."""
    found = 1.0
    bounds: dict[int, tuple[float, float]] = {}
    for one in conjuncts(condition):
        known = _find_known_bound(one, node, context)
        if known is None:
            found *= _estimate_condition(one, node, context)
        else:
            column, is_low, share = known
            low, high = bounds.get(column, (1.0, 1.0))
            bounds[column] = (min(low, share), high) if is_low else (low, min(high, share))
    for column, (low, high) in bounds.items():
        both = low + high - (1.0 - _count_nulls(column, node, context))
        found *= min(low, high) if 1.0 in (low, high) else max(LEAST, both)
    return found


def _find_known_bound(
    condition: e.Expression, node: n.Node, context: OptimizerContext
) -> tuple[int, bool, float] | None:
    """The column that a condition bounds, whether from below, and the share of rows that it keeps;
    None where statistics do not tell."""
    match condition:
        case e.Call(function, (e.Column() as column, e.Literal() as bound), _):
            name = function.name
        case e.Call(function, (e.Literal() as bound, e.Column() as column), _):
            name = MIRRORED.get(function.name, "")
        case _:
            return None
    if name not in MIRRORED:
        return None
    share = _find_range_share(column, bound, name, node, context)
    return None if share is None else (column.index, name in (">", ">="), share)


def _count_nulls(column: int, node: n.Node, context: OptimizerContext) -> float:
    """The known share of rows in which a column is NULL."""
    found = find_origin(e.Column(column, node.fields[column].type), node)
    summary = None if found is None else context.statistics.column_summary(*found)
    return 0.0 if summary is None else summary.nulls


def _estimate_condition(condition: e.Expression, node: n.Node, context: OptimizerContext) -> float:
    match condition:
        case e.Or():
            missing = 1.0
            for one in condition.operands:
                missing *= 1.0 - min(1.0, estimate_selectivity(one, node, context))
            return 1.0 - missing
        case e.InList():
            share = min(
                1.0,
                sum(
                    _estimate_equal(condition.operand, one, node, context)
                    for one in condition.items
                ),
            )
            return 1.0 - share if condition.negated else share
        case e.Quantified():
            return min(1.0, 10 * _estimate_equal(condition.operand, None, node, context))
        case e.Call():
            return _estimate_comparison(condition, node, context)
        case e.Test(truth=e.Truth.NULL):
            nulls = _estimate_nulls(condition.operand, node, context)
            return 1.0 - nulls if condition.negated else nulls
        case e.Not():
            return max(0.0, 1.0 - _estimate_condition(condition.operand, node, context))
        case _:
            return OTHER


def _estimate_comparison(call: e.Call, node: n.Node, context: OptimizerContext) -> float:
    name = call.function.name
    if len(call.arguments) != 2:
        return OTHER
    left, right = call.arguments
    if isinstance(right, e.Column) and not isinstance(left, e.Column):
        left, right = right, left
        name = MIRRORED.get(name, name)
    if name == "=":
        return _estimate_equal(left, right, node, context)
    if name == "<>":
        return 1.0 - _estimate_equal(left, right, node, context)
    if name in MIRRORED:
        share = _find_range_share(left, right, name, node, context)
        return RANGE if share is None else share
    if name == "~~" and _may_be_prefix(right):
        return PREFIX
    return LIKE if "~" in name else OTHER


def _may_be_prefix(pattern: e.Expression) -> bool:
    """Whether a pattern has a beginning, as most do that a program fills in."""
    if isinstance(pattern, e.Literal):
        return str(pattern.value)[:1] not in "%_"
    return not columns_of(pattern)


def _estimate_equal(
    operand: e.Expression, value: e.Expression | None, node: n.Node, context: OptimizerContext
) -> float:
    width = 0
    if isinstance(operand, e.Cast) and operand.type == CHARACTERS:  # compared without blanks
        width, operand = operand.operand.type.length or 0, operand.operand
    found = find_origin(operand, node)
    if found is None:
        return EQUAL
    if isinstance(value, e.Literal) and not _is_key(*found, context):
        summary = context.statistics.column_summary(*found)
        if summary is not None:
            wanted = value.value.ljust(width) if isinstance(value.value, str) else value.value
            return max(summary.equal_share(wanted), LEAST)
    return 1.0 / estimate_column_distinct(found[0], found[1], context)


def _is_key(relation: int, slot: int, context: OptimizerContext) -> bool:
    """Whether the column is the primary key by itself, which is estimated without a sample."""
    table = context.catalog.get(relation)
    return isinstance(table, Table) and table.primary_key == (slot,)


def _estimate_nulls(operand: e.Expression, node: n.Node, context: OptimizerContext) -> float:
    found = find_origin(operand, node)
    summary = None if found is None else context.statistics.column_summary(*found)
    return NULLS if summary is None else min(1.0 - LEAST, max(LEAST, summary.nulls))


def _find_range_share(
    operand: e.Expression, bound: e.Expression, name: str, node: n.Node, context: OptimizerContext
) -> float | None:
    """The share of rows on one side of a bound; None: not known."""
    found = find_origin(operand, node)
    if found is None or not isinstance(bound, e.Literal):
        return None
    summary = None if _is_key(*found, context) else context.statistics.column_summary(*found)
    if summary is not None and bound.value is not None:
        below = summary.share_below(bound.value, inclusive=name in ("<=", ">"))
        if below is not None:
            share = below if name in ("<", "<=") else 1.0 - summary.nulls - below
            return min(1.0, max(LEAST, share))
    extent = context.statistics.value_range(*found)
    if extent is None:
        return None
    low, high, value = (_to_number(one) for one in (*extent, bound.value))
    if low is None or high is None or value is None or high <= low:
        return None
    below = min(1.0, max(0.0, (value - low) / (high - low)))
    return max(LEAST, below if name in ("<", "<=") else 1.0 - below)


def _to_number(value: Any) -> float | None:
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
