"""Outer rows and CTEs a sub-query plan depends on: how long its result can be cached."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Function, Volatility
from belvedere.types import Kind, SqlType

SUBQUERIES = (e.ScalarSubquery, e.Exists, e.QuantifiedSubquery, e.ArraySubquery)
_NEVER_CONSTANT = (e.Column, e.OuterColumn, e.SequenceCall, *SUBQUERIES)
_OPAQUE = (Function, SqlType, str, int, float, bytes)


class Dependence(NamedTuple):
    """`nearest` is the depth of the nearest outer row used (None: none is); `ctes` whether it
    reads a CTE bound outside of it."""

    nearest: int | None
    ctes: bool


def dependence_of(plan: n.Node) -> Dependence:
    depths: list[int] = []
    read: set[int] = set()
    bound: set[int] = set()
    for item, level in walk_plan(plan, 0):
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
    for item, level in walk_plan(plan, 0):
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
    for item, _ in walk_plan(expression, 0):
        if isinstance(item, _NEVER_CONSTANT):
            return False
        if isinstance(item, e.Call | e.Cast) and item.function.volatility is Volatility.VOLATILE:
            return False
    return True


def walk_plan(item: Any, level: int) -> Iterator[tuple[Any, int]]:
    """Every node and expression below `item`, each before those below it, with its depth in nested
    queries."""
    stack = [(item, level)]
    while stack:
        item, level = stack.pop()
        if item is None or isinstance(item, _OPAQUE):
            continue
        if isinstance(item, tuple) and not hasattr(item, "_fields"):
            stack += [(part, level) for part in reversed(item)]
            continue
        yield item, level
        stack += [
            (value, level + 1 if _opens_query(item, name) else level)
            for name, value in reversed(_list_children(item))
        ]


def _opens_query(item: Any, name: str) -> bool:
    """Whether the child of this name sees the rows of `item` as outer rows."""
    return (isinstance(item, SUBQUERIES) and name == "plan") or (
        isinstance(item, n.Join) and item.lateral and name == "right"
    )


def _list_children(item: Any) -> list[tuple[str, Any]]:
    if isinstance(item, tuple):
        return list(zip(item._fields, item))  # type: ignore[attr-defined]
    if not dataclasses.is_dataclass(item):
        return []
    return [(field.name, getattr(item, field.name)) for field in dataclasses.fields(item)]
