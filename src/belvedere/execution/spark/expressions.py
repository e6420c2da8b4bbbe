"""Lowering of expressions to Spark SQL text, each with the type whose carrier it has.

An expression is native completely or not at all: Spark evaluates a Python function inside a CASE or
AND for every row, also for those that the condition excludes, where an error must not be raised. An
expression that is not native is computed by our own Python operators and becomes a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from belvedere.errors import Error
from belvedere.execution.direct.dependence import is_constant
from belvedere.execution.spark.forms import comparable, scalar_form
from belvedere.execution.spark.types import NotNative, Typed, carrier, constant
from belvedere.plan import expressions as e
from belvedere.plan.functions import Function
from belvedere.types import BOOLEAN, Kind, SqlType

Evaluate = Callable[[e.Expression], object]
"""The value of an expression that has no columns."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns an expression sees, and how constants are evaluated."""

    columns: Sequence[Typed]
    evaluate: Evaluate


def lower(scope: Scope, expression: e.Expression) -> Typed:
    """The expression in Spark SQL; NotNative, with the reason, when a part of it has no form."""
    if not isinstance(expression, e.Literal) and is_constant(expression):
        return _folded(scope, expression)
    match expression:
        case e.Literal():
            return constant(expression.value, expression.type)
        case e.Column():
            return scope.columns[expression.index]
        case e.Call():
            return _call(scope, expression.function, expression.arguments, expression.type)
        case e.Cast():
            return _call(scope, expression.function, (expression.operand,), expression.type)
        case e.And():
            return Typed(_joined(scope, expression.operands, " AND "), BOOLEAN)
        case e.Or():
            return Typed(_joined(scope, expression.operands, " OR "), BOOLEAN)
        case e.Not():
            return Typed(f"(NOT {lower(scope, expression.operand).text})", BOOLEAN)
        case e.Case():
            return _case(scope, expression)
        case e.Coalesce():
            values = [lower(scope, one) for one in expression.arguments]
            if len(values) == 1:
                return values[0]
            sql_type = one_type(values)
            return Typed(f"coalesce({', '.join(_cast_all(values, sql_type))})", sql_type)
        case _:
            return _test(scope, expression)


def _folded(scope: Scope, expression: e.Expression) -> Typed:
    """Evaluate a constant expression. One that fails is not native: its error is raised only for
    rows that evaluate it."""
    try:
        return constant(scope.evaluate(expression), expression.type)
    except Error as error:
        raise NotNative("a constant that fails") from error


def _call(
    scope: Scope, function: Function, arguments: tuple[e.Expression, ...], result: SqlType
) -> Typed:
    lowered = [lower(scope, argument) for argument in arguments]
    template, sql_type = scalar_form(function, tuple(one.type for one in lowered), result)
    return Typed(template.format(*(one.text for one in lowered)), sql_type)


def _joined(scope: Scope, operands: tuple[e.Expression, ...], word: str) -> str:
    return "(" + word.join(lower(scope, one).text for one in operands) + ")"


def _case(scope: Scope, expression: e.Case) -> Typed:
    conditions = [lower(scope, condition).text for condition, _ in expression.whens]
    results = [lower(scope, result) for _, result in expression.whens]
    values = [*results, lower(scope, expression.default)]
    sql_type = one_type(values)
    texts = _cast_all(values, sql_type)
    whens = " ".join(f"WHEN {c} THEN {text}" for c, text in zip(conditions, texts))
    return Typed(f"(CASE {whens} ELSE {texts[-1]} END)", sql_type)


def one_type(values: Sequence[Typed]) -> SqlType:
    """The common type of values that become one column. NUMERIC values keep their own scales in
    PostgreSQL, so a decimal can hold them only when the scales are the same."""
    known = [value.type for value in values if not value.null] or [values[0].type]
    if len({(one.kind, one.scale or 0, one.precision is None) for one in known}) > 1:
        raise NotNative("values of different types or scales meet")
    return max(known, key=lambda one: one.precision or 0)


def _cast_all(values: Sequence[Typed], sql_type: SqlType) -> list[str]:
    name = carrier(sql_type)
    return [
        value.text if carrier(value.type) == name else f"CAST({value.text} AS {name})"
        for value in values
    ]


def _test(scope: Scope, expression: e.Expression) -> Typed:
    match expression:
        case e.Test():
            operand = lower(scope, expression.operand).text
            word = "NULL" if expression.truth is e.Truth.UNKNOWN else expression.truth.upper()
            negated = "NOT " if expression.negated else ""
            return Typed(f"({operand} IS {negated}{word})", BOOLEAN)
        case e.IsDistinct():
            left, right = lower(scope, expression.left), lower(scope, expression.right)
            _require_comparable(left, right)
            text = f"({left.text} <=> {right.text})"
            return Typed(text if expression.negated else f"(NOT {text})", BOOLEAN)
        case e.InList():
            return _in_list(scope, expression)
        case _:
            raise NotNative(f"{type(expression).__name__} runs in Python")


def _in_list(scope: Scope, expression: e.InList) -> Typed:
    operand = lower(scope, expression.operand)
    items = [lower(scope, item) for item in expression.items]
    for item in items:
        _require_comparable(operand, item)
        if operand.type.kind is Kind.NUMERIC and item.type != operand.type and not item.null:
            raise NotNative("a list of NUMERIC values of several scales")
    listed = ", ".join(item.text for item in items)
    word = "NOT IN" if expression.negated else "IN"
    return Typed(f"({operand.text} {word} ({listed}))", BOOLEAN)


def _require_comparable(left: Typed, right: Typed) -> None:
    if left.null or right.null:
        return
    if not comparable(left.type, right.type):
        raise NotNative("equality of these types is not Spark's")
