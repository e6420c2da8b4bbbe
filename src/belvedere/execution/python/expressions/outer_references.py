"""Outer rows and CTEs a sub-query plan depends on: how long its result can be cached."""

from __future__ import annotations

from typing import NamedTuple

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Volatility
from belvedere.plan.plan_items import SUBQUERIES, walk_items_with_depth, walk_plan_items
from belvedere.types import Kind

_NEVER_CONSTANT = (e.Column, e.OuterColumn, e.SequenceCall, *SUBQUERIES)


class Dependence(NamedTuple):
    """`nearest` is the depth of the nearest outer row used (None: none is); `ctes` whether it
    reads a CTE bound outside of it."""

    nearest: int | None
    ctes: bool


def dependence_of(plan: n.Node) -> Dependence:
    depths: list[int] = []
    read: set[int] = set()
    bound: set[int] = set()
    for item, level in walk_items_with_depth(plan):
        match item:
            case e.OuterColumn() if item.depth > level:
                depths.append(item.depth - level)
            case n.CteScan():
                read.add(item.cte)
            case n.RecursiveUnion():
                bound.add(item.cte)
            case n.Cte():
                bound.add(item.number)
            case _:
                pass
    return Dependence(min(depths, default=None), not read <= bound)


_ONE_FORM = frozenset(
    {Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.TEXT, Kind.DATE, Kind.UUID}
)
"""Types whose equal values have one representation, unlike 1.0 and 1.00."""


def nearest_columns(plan: n.Node) -> tuple[int, ...] | None:
    """The columns of the nearest outer row that decide the result; None when it depends on more, or
    when equal values of them may differ in representation."""
    columns: set[int] = set()
    for item, level in walk_items_with_depth(plan):
        match item:
            case e.OuterColumn() if item.depth == level + 1:
                if item.type.kind not in _ONE_FORM:
                    return None
                columns.add(item.index)
            case n.CteScan():
                return None
            case _:
                function = getattr(item, "function", None)
                if function is not None and function.volatility is Volatility.VOLATILE:
                    return None
    return tuple(sorted(columns))


def is_constant(expression: e.Expression) -> bool:
    """Whether the value is the same for all rows, at all times and for any data."""
    for item in walk_plan_items(expression):
        if isinstance(item, _NEVER_CONSTANT):
            return False
        if isinstance(item, e.Call | e.Cast) and item.function.volatility is Volatility.VOLATILE:
            return False
    return True
