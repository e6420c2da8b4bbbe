"""The items of a plan: its nodes and the expressions in them, in one walk.

`transform.walk_plan` gives the nodes alone; these walks also give what the nodes are made of, for
those who look for a function, a parameter or a sub-query wherever it stands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Function
from belvedere.types import SqlType

SUBQUERIES = (e.ScalarSubquery, e.Exists, e.QuantifiedSubquery, e.ArraySubquery)
_OPAQUE = (Function, SqlType, str, int, float, bytes)


def walk_plan_items(plan: Any) -> Iterator[Any]:
    """Every node and expression of a node, an expression or a tuple of them."""
    return (item for item, _ in walk_items_with_depth(plan))


def walk_items_with_depth(plan: Any) -> Iterator[tuple[Any, int]]:
    """The same, each before those below it, with its depth in nested queries."""
    stack: list[tuple[Any, int]] = [(plan, 0)]
    while stack:
        item, level = stack.pop()
        if item is None or isinstance(item, _OPAQUE):
            continue
        if isinstance(item, tuple) and not hasattr(item, "_fields"):
            stack += [(part, level) for part in reversed(item)]
            continue
        yield item, level
        kind: type = type(item)
        inner = _name_subplan(item)
        stack += [
            (getattr(item, name), level + (name == inner))
            for name in reversed(_list_field_names(kind))
        ]


def _name_subplan(item: Any) -> str | None:
    """The field with a plan that sees the rows of `item` as outer rows."""
    if isinstance(item, SUBQUERIES):
        return "plan"
    return "right" if isinstance(item, n.Join) and item.lateral else None


@cache
def _list_field_names(kind: type) -> tuple[str, ...]:
    if issubclass(kind, tuple):
        return kind._fields  # type: ignore[attr-defined, no-any-return]
    if not dataclasses.is_dataclass(kind):
        return ()
    return tuple(field.name for field in dataclasses.fields(kind))
