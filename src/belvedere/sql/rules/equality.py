"""Builds comparisons between two typed expressions."""

from __future__ import annotations

from belvedere.plan import expressions as e
from belvedere.plan.functions.registry import resolve
from belvedere.sql.bind.expressions.coerce import specialize_function
from belvedere.types import BOOLEAN


def make_equality(left: e.Expression, right: e.Expression, null_safe: bool = False) -> e.Expression:
    """`left = right`; with `null_safe`, `left IS NOT DISTINCT FROM right`."""
    function = specialize_function(resolve("=", (left.type, right.type)))
    if null_safe:
        return e.IsDistinct(left, right, function, negated=True)
    return e.Call(function, (left, right), BOOLEAN)


def make_comparison(sign: str, left: e.Expression, right: e.Expression) -> e.Expression:
    """`left sign right`."""
    function = specialize_function(resolve(sign, (left.type, right.type)))
    return e.Call(function, (left, right), BOOLEAN)
