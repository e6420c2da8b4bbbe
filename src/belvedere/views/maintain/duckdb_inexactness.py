"""What DuckDB would compute differently, so that batches of it stay in Python."""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field, Fields
from belvedere.plan.functions.core.function import Function, Volatility
from belvedere.plan.plan_items import walk_plan_items
from belvedere.plan.representation import lacks_canonical_key
from belvedere.types import Kind
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.delta.linear_aggregates import FLOATS, INTEGERS, VARIANCE_FUNCTIONS

_EXACT_OF_FLOATS = frozenset(("+", "-", "*", "/", "abs"))
"""Functions of floats that give the same result in every engine."""

_OF_ANY = frozenset(("count", "min", "max", "row_number", "rank", "dense_rank", "lag", "lead"))
_AGGREGATES = _OF_ANY | {"sum", "avg", "bool_and", "bool_or", "every", *VARIANCE_FUNCTIONS}
_WINDOWS = _OF_ANY | {"sum", "avg", "ntile", "bool_and", "bool_or", "every"}
"""Functions whose result does not depend on the order of equal rows, or for which a tie-break
exists."""

_EXACT_CASTS = frozenset((*FLOATS, *INTEGERS))
"""Casts among these are exact, or rounded in one way."""

_NUMERIC_AMOUNTS = 3
"""Amounts of a NUMERIC sum: values, units, NaN."""


def find_refusal_reason(compiled: MaintenancePlan) -> str | None:
    plan, group = compiled.tree.plan, compiled.group
    found = list(walk_plan_items(plan))
    if group is not None:
        if not all(keep.form or keep.width == _NUMERIC_AMOUNTS for keep in group.linear_aggregates):
            return "sums of floats and of squares are exact in Python only"
        found += [item for one in (group.groups, group.calls) for item in walk_plan_items(one)]
    shown = _collect_final_operator_ids(plan) if group is None else set()
    chosen = (
        field
        for item in found
        if id(item) not in shown
        for field in _list_arbitrarily_chosen_fields(item)
    )
    if any(map(_lacks_canonical_value, chosen)):
        return "which of equal values is shown is decided in Python only"
    return next(filter(None, map(_find_inexact_reason, found)), None)


def _collect_final_operator_ids(plan: n.Node) -> set[int]:
    """The ids of the view's final operator and its aggregate calls. Which of several equal values
    they choose is visible only in the view itself, where equal rows are one."""
    while isinstance(plan, n.Project | n.Filter | n.Sort):
        plan = plan.input
    calls = plan.aggregates if isinstance(plan, n.Aggregate) else ()
    return {id(plan), *map(id, calls)}


def _find_inexact_reason(item: object) -> str | None:
    """Why DuckDB might compute this part of a plan differently, in its last digit."""
    function = getattr(item, "function", None)
    if not isinstance(function, Function):
        return None
    if function.volatility is not Volatility.IMMUTABLE:
        return f"{function.name} depends on more than the rows"
    match item:
        case e.Cast():
            kinds = {item.operand.type.kind, item.type.kind}
            exact = kinds <= _EXACT_CASTS or not kinds & set(FLOATS)
        case e.AggregateCall() | e.WindowCall():
            known = _AGGREGATES if isinstance(item, e.AggregateCall) else _WINDOWS
            if function.name not in known:
                return f"{function.name} depends on the order of equal rows"
            exact = function.name in _OF_ANY or not _has_float_argument(item.arguments)
        case e.Call():
            given = _has_float_argument(item.arguments)
            exact = item.type.kind is Kind.BOOLEAN or function.name in _EXACT_OF_FLOATS
            exact = exact or not (given or item.type.kind in FLOATS)
        case _:
            exact = True
    return None if exact else f"{function.name} of floats is exact in Python only"


def _list_arbitrarily_chosen_fields(item: object) -> Fields:
    """Columns for which an operator chooses one of several equal values."""
    match item:
        case n.Aggregate():
            return item.fields[: len(item.groups)]
        case n.SetOperation(kind=n.SetKind.UNION, all=True):
            return ()
        case n.SetOperation() | n.Distinct() | n.Limit() | n.TopN():
            return item.fields
        case e.AggregateCall() if item.function.name in ("min", "max"):
            return (Field(item.function.name, item.type),)
        case _:
            return ()


def _lacks_canonical_value(field: Field) -> bool:
    """Characters of one length are padded to it, so that equal ones have one representation."""
    return lacks_canonical_key(field) and not (field.type.kind is Kind.CHAR and field.type.length)


def _has_float_argument(arguments: Sequence[e.Expression]) -> bool:
    return any(one.type.kind in FLOATS for one in arguments)
