"""Constant folding: what depends on no row and no statement is computed once, here.

A computation that fails fails the statement, whether or not a row would get there, as in
PostgreSQL. What a constant condition of CASE, AND, OR or COALESCE cuts off is not computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.function import Function, Volatility
from belvedere.plan.functions.registry import resolve
from belvedere.plan.transform import rebuild, rebuild_expressions, rebuild_inputs, with_subplan
from belvedere.sql.bind.coerce import concrete
from belvedere.sql.rules.context import Context
from belvedere.types import BOOLEAN, Kind, SqlType

TRUE = e.Literal(True, BOOLEAN)
FALSE = e.Literal(False, BOOLEAN)
UNKNOWN_TRUTH = e.Literal(None, BOOLEAN)


def fold_constants(plan: n.Node, context: Context) -> n.Node:
    return _fold_plan(plan)


def _fold_plan(plan: n.Node) -> n.Node:
    node = rebuild_inputs(plan, _fold_plan)
    node = rebuild_expressions(node, fold)
    if not isinstance(node, n.Filter) or not isinstance(node.condition, e.Literal):
        return node
    return node.input if node.condition.value is True else n.Values((), node.fields)


def fold(expression: e.Expression) -> e.Expression:
    """The expression with every constant part of it computed."""
    match expression:
        case e.Literal() | e.Column() | e.Parameter() | e.OuterColumn():
            return expression
    match expression:
        case e.And():
            return _logic(expression, FALSE, TRUE)
        case e.Or():
            return _logic(expression, TRUE, FALSE)
        case e.Case():
            return _case(expression)
        case e.Coalesce():
            return _coalesce(expression)
        case e.Exists():
            return with_subplan(rebuild(expression, fold), _fold_rows)
    folded = with_subplan(rebuild(expression, fold), _fold_plan)
    match folded:
        case e.Call():
            return _call(folded)
        case e.Cast():
            return _cast(folded)
        case e.Not(operand=e.Literal(value=value)):
            return e.Literal(None if value is None else not value, BOOLEAN)
        case e.Test(operand=e.Literal(value=value)):
            return _test(folded, value)
        case _:
            return folded


def _fold_rows(plan: n.Node) -> n.Node:
    """Of EXISTS: whether there are rows, not what is in them."""
    if isinstance(plan, n.Project):
        return replace(plan, input=_fold_rows(plan.input))
    return _fold_plan(plan)


def _call(call: e.Call) -> e.Expression:
    if not all(isinstance(one, e.Literal) for one in call.arguments):
        if call.function.strict and any(_is_null(one) for one in call.arguments):
            return e.Literal(None, call.type)
        return _narrowed(call) if call.function.name in _COMPARISONS else call
    values = [one.value for one in call.arguments if isinstance(one, e.Literal)]
    return _computed(call.function, values, call)


def _is_null(expression: e.Expression) -> bool:
    return isinstance(expression, e.Literal) and expression.value is None


_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_BITS = {Kind.SMALLINT: 15, Kind.INTEGER: 31, Kind.BIGINT: 63}


def _narrowed(call: e.Call) -> e.Expression:
    """`column::bigint = 5` as `column = 5`, so that a key on the column is of use."""
    left, right = call.arguments
    if isinstance(right, e.Cast) and isinstance(left, e.Literal):
        operand, literal = right.operand, left
    elif isinstance(left, e.Cast) and isinstance(right, e.Literal):
        operand, literal = left.operand, right
    else:
        return call
    bits = _BITS.get(operand.type.kind)
    wide = literal.type.kind in _BITS and isinstance(literal.value, int)
    if bits is None or not wide or not -(2**bits) <= literal.value < 2**bits:
        return call
    narrow = e.Literal(literal.value, SqlType(operand.type.kind))
    pair = (operand, narrow) if literal is right else (narrow, operand)
    found = resolve(call.function.name, [one.type for one in pair])
    return e.Call(concrete(found), pair, call.type)


def _cast(cast: e.Cast) -> e.Expression:
    if not isinstance(cast.operand, e.Literal):
        return cast
    return _computed(cast.function, [cast.operand.value], cast)


def _computed(function: Function, values: list[Any], original: e.Call | e.Cast) -> e.Expression:
    if function.volatility is not Volatility.IMMUTABLE or function.environment:
        return original
    if function.strict and any(value is None for value in values):
        return e.Literal(None, original.type)
    if not callable(function.python):
        return original
    return e.Literal(function.python(*values), original.type)


_FEW = 32  # beyond this many, looking for repeated conditions costs more than it saves


def _logic(expression: e.And | e.Or, decides: e.Literal, neutral: e.Literal) -> e.Expression:
    kept: list[e.Expression] = []
    for one in map(fold, expression.operands):
        if one == decides:
            return decides
        if one == neutral:
            continue
        inner = one.operands if isinstance(one, type(expression)) else (one,)
        kept += [x for x in inner if len(kept) > _FEW or x not in kept]
    if not kept:
        return neutral
    if len(kept) == 1:
        return kept[0]
    if len(kept) == len(expression.operands) and all(
        a is b for a, b in zip(kept, expression.operands)
    ):
        return expression
    return type(expression)(tuple(kept))


def _test(test: e.Test, value: Any) -> e.Expression:
    wanted = {e.Truth.TRUE: True, e.Truth.FALSE: False}.get(test.truth)
    found = value is wanted
    return e.Literal(found is not test.negated, BOOLEAN)


def _case(case: e.Case) -> e.Expression:
    kept: list[tuple[e.Expression, e.Expression]] = []
    for condition, result in case.whens:
        condition = fold(condition)
        if isinstance(condition, e.Literal):
            if condition.value is not True:
                continue
            return e.Case(tuple(kept), fold(result), case.type) if kept else fold(result)
        kept.append((condition, fold(result)))
    default = fold(case.default)
    return e.Case(tuple(kept), default, case.type) if kept else default


def _coalesce(expression: e.Coalesce) -> e.Expression:
    kept: list[e.Expression] = []
    for one in map(fold, expression.arguments):
        if _is_null(one):
            continue
        kept.append(one)
        if isinstance(one, e.Literal):
            break
    if not kept:
        return e.Literal(None, expression.type)
    if len(kept) == 1:
        return kept[0] if kept[0].type == expression.type else expression
    return e.Coalesce(tuple(kept), expression.type)
