"""Constant folding: an expression that depends on no row and no statement is computed once, here.

A constant that cannot be computed (1 / 0) is left where it is, so that it can still vanish: as a
column that no node reads, or in a part that a constant condition of CASE, AND, OR or COALESCE
removes. Those that remain after unused columns are pruned fail the statement, whether or not any
row would evaluate them: `fail_constants`, a second walk that most statements do not need.
PostgreSQL does so.
"""

from __future__ import annotations

from typing import Any

from belvedere.errors import Error
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Function, Volatility
from belvedere.plan.functions.registry import resolve
from belvedere.plan.transform import (
    rebuild_expressions,
    rebuild_inputs,
    rebuild_operands,
    rewrite_expressions,
    with_subplan,
)
from belvedere.sql.rules.context import OptimizerContext
from belvedere.types import BOOLEAN, Kind, SqlType

TRUE = e.Literal(True, BOOLEAN)
FALSE = e.Literal(False, BOOLEAN)


def fold_constants(plan: n.Node, context: OptimizerContext) -> n.Node:
    folder = _ConstantFolder(strict=False)
    folded = folder.fold_plan(plan)
    context.failing_constants |= folder.failures > 0
    return folded


def fail_constants(plan: n.Node, context: OptimizerContext) -> n.Node:
    """The plan as it is, or the error of a constant in it."""
    if context.failing_constants:
        _ConstantFolder(strict=True).fold_plan(plan)
    return plan


def fold_nulls(plan: n.Node, context: OptimizerContext) -> n.Node:
    """The plan with calls that are NULL for every row (`x / 0 = NULL`) replaced by NULL. It keeps
    all operators and the tables they read: for definitions, which name their tables."""
    return rewrite_expressions(plan, e.Call, _fold_null_call)


def _fold_null_call(call: e.Call) -> e.Expression:
    if call.function.strict and any(map(_is_null, call.arguments)):
        return e.Literal(None, call.type)
    return call


def fold_expression(expression: e.Expression) -> e.Expression:
    """The expression with every constant part of it computed."""
    return _ConstantFolder(strict=False).fold_expression(expression)


class _ConstantFolder:
    """`strict`: a constant that cannot be computed is an error, else it is counted."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.failures = 0

    def fold_plan(self, plan: n.Node) -> n.Node:
        node = rebuild_inputs(plan, self.fold_plan)
        node = rebuild_expressions(node, self.fold_expression)
        if not isinstance(node, n.Filter) or not isinstance(node.condition, e.Literal):
            return node
        return node.input if node.condition.value is True else n.Values((), node.fields)

    def fold_exists_plan(self, plan: n.Node) -> n.Node:
        """Of EXISTS: whether there are rows, not what is in them."""
        match plan:
            case n.Project() | n.Sort():
                return self.fold_exists_plan(plan.input)
            case n.Limit(count=e.Literal() | e.Cast(), offset=None) if self.is_positive_count(
                plan.count
            ):
                return self.fold_exists_plan(plan.input)
            case _:
                return self.fold_plan(plan)

    def is_positive_count(self, count: e.Expression | None) -> bool:
        found = None if count is None else self.fold_expression(count)
        return isinstance(found, e.Literal) and found.value is not None and found.value > 0

    def fold_expression(self, expression: e.Expression) -> e.Expression:
        match expression:
            case e.Literal() | e.Column() | e.Parameter() | e.OuterColumn():
                return expression
            case e.And():
                return self.fold_logic(expression, FALSE, TRUE)
            case e.Or():
                return self.fold_logic(expression, TRUE, FALSE)
            case e.Case():
                return self.fold_case(expression)
            case e.Coalesce():
                return self.fold_coalesce(expression)
            case e.Exists():
                return with_subplan(expression, self.fold_exists_plan)
        before = self.failures
        folded = with_subplan(rebuild_operands(expression, self.fold_expression), self.fold_plan)
        match folded:
            case e.Call():
                return folded if self.failures > before else self.fold_call(folded)
            case e.Cast(operand=e.Literal(value=value)):
                return self.compute_constant(folded.function, [value], folded)
            case e.Not(operand=e.Literal(value=value)):
                return e.Literal(None if value is None else not value, BOOLEAN)
            case e.Test(operand=e.Literal(value=value)):
                return _fold_test(folded, value)
            case _:
                return folded

    def fold_call(self, call: e.Call) -> e.Expression:
        if call.function.strict and any(_is_null(one) for one in call.arguments):
            return e.Literal(None, call.type)
        values = [one.value for one in call.arguments if isinstance(one, e.Literal)]
        if len(values) == len(call.arguments):
            return self.compute_constant(call.function, values, call)
        return _narrow_comparison(call) if call.function.name in _COMPARISONS else call

    def compute_constant(
        self, function: Function, values: list[Any], original: e.Call | e.Cast
    ) -> e.Expression:
        if function.volatility is not Volatility.IMMUTABLE or function.environment:
            return original
        if function.strict and any(value is None for value in values):
            return e.Literal(None, original.type)
        if not callable(function.python):
            return original
        try:
            return e.Literal(function.python(*values), original.type)
        except Error:
            if self.strict:
                raise
            self.failures += 1
            return original

    def fold_logic(
        self, expression: e.And | e.Or, decides: e.Literal, neutral: e.Literal
    ) -> e.Expression:
        kept: list[e.Expression] = []
        before = self.failures
        for operand in expression.operands:
            one = self.fold_expression(operand)
            if one == decides and self.failures == before:
                return decides
            if one == neutral:
                continue
            inner = one.operands if isinstance(one, type(expression)) else (one,)
            kept += [x for x in inner if len(kept) > _FEW or x not in kept]
        if not kept:
            return neutral
        return kept[0] if len(kept) == 1 else type(expression)(tuple(kept))

    def fold_case(self, case: e.Case) -> e.Expression:
        kept: list[tuple[e.Expression, e.Expression]] = []
        for when, then in case.whens:
            condition = self.fold_expression(when)
            if isinstance(condition, e.Literal):
                if condition.value is not True:
                    continue
                result = self.fold_expression(then)
                return e.Case(tuple(kept), result, case.type) if kept else result
            kept.append((condition, self.fold_expression(then)))
        default = self.fold_expression(case.default)
        return e.Case(tuple(kept), default, case.type) if kept else default

    def fold_coalesce(self, expression: e.Coalesce) -> e.Expression:
        kept: list[e.Expression] = []
        for argument in expression.arguments:
            one = self.fold_expression(argument)
            if _is_null(one):
                continue
            kept.append(one)
            if isinstance(one, e.Literal):
                break
        if not kept:
            return e.Literal(None, expression.type)
        if len(kept) == 1 and kept[0].type == expression.type:
            return kept[0]
        return e.Coalesce(tuple(kept), expression.type)


_FEW = 32  # beyond this many, the search for repeated conditions costs more than it saves


def _is_null(expression: e.Expression) -> bool:
    return isinstance(expression, e.Literal) and expression.value is None


_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_BITS = {Kind.SMALLINT: 15, Kind.INTEGER: 31, Kind.BIGINT: 63}


def _narrow_comparison(call: e.Call) -> e.Expression:
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
    return e.Call(found.function, pair, call.type)


def _fold_test(test: e.Test, value: Any) -> e.Expression:
    wanted = {e.Truth.TRUE: True, e.Truth.FALSE: False}.get(test.truth)
    found = value is wanted
    return e.Literal(found is not test.negated, BOOLEAN)
