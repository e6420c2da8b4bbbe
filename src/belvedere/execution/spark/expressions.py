"""Lowering of expressions to Spark SQL text, each with the type whose carrier it has.

An expression is native completely or not at all: Spark evaluates a Python function inside a CASE or
AND for every row, also for those that the condition excludes, where an error must not be raised. An
expression that is not native is computed by our own Python operators and becomes a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from belvedere.errors import Error
from belvedere.execution.python.expressions.outer_references import is_constant
from belvedere.execution.spark.native_functions import is_comparable, scalar_form
from belvedere.execution.spark.types import (
    NotNative,
    SparkExpression,
    lower_constant,
    spark_carrier,
)
from belvedere.plan import expressions as e
from belvedere.plan.functions import Function
from belvedere.types import BOOLEAN, Kind, SqlType

ConstantEvaluator = Callable[[e.Expression], object]
"""The value of an expression that has no columns."""


@dataclass(frozen=True, slots=True)
class SparkScope:
    """The columns an expression sees, and how constants are evaluated."""

    columns: Sequence[SparkExpression]
    evaluate: ConstantEvaluator


def lower_expression(scope: SparkScope, expression: e.Expression) -> SparkExpression:
    """The expression in Spark SQL; NotNative, with the reason, when a part of it has no form."""
    if not isinstance(expression, e.Literal) and is_constant(expression):
        return _fold_constant(scope, expression)
    match expression:
        case e.Literal():
            return lower_constant(expression.value, expression.type)
        case e.Column():
            return scope.columns[expression.index]
        case e.Call():
            return _lower_call(scope, expression.function, expression.arguments, expression.type)
        case e.Cast():
            return _lower_call(scope, expression.function, (expression.operand,), expression.type)
        case e.And():
            return SparkExpression(_lower_logic(scope, expression.operands, " AND "), BOOLEAN)
        case e.Or():
            return SparkExpression(_lower_logic(scope, expression.operands, " OR "), BOOLEAN)
        case e.Not():
            return SparkExpression(
                f"(NOT {lower_expression(scope, expression.operand).text})", BOOLEAN
            )
        case e.Case():
            return _lower_case(scope, expression)
        case e.Coalesce():
            values = [lower_expression(scope, one) for one in expression.arguments]
            if len(values) == 1:
                return values[0]
            sql_type = common_type(values)
            return SparkExpression(f"coalesce({', '.join(_cast_all(values, sql_type))})", sql_type)
        case _:
            return _lower_test(scope, expression)


def _fold_constant(scope: SparkScope, expression: e.Expression) -> SparkExpression:
    """Evaluate a constant expression. One that fails is not native: its error is raised only for
    rows that evaluate it."""
    try:
        return lower_constant(scope.evaluate(expression), expression.type)
    except Error as error:
        raise NotNative("a constant that fails") from error


def _lower_call(
    scope: SparkScope, function: Function, arguments: tuple[e.Expression, ...], result: SqlType
) -> SparkExpression:
    lowered = [lower_expression(scope, argument) for argument in arguments]
    template, sql_type = scalar_form(function, tuple(one.type for one in lowered), result)
    return SparkExpression(template.format(*(one.text for one in lowered)), sql_type)


def _lower_logic(scope: SparkScope, operands: tuple[e.Expression, ...], word: str) -> str:
    return "(" + word.join(lower_expression(scope, one).text for one in operands) + ")"


def _lower_case(scope: SparkScope, expression: e.Case) -> SparkExpression:
    conditions = [lower_expression(scope, condition).text for condition, _ in expression.whens]
    results = [lower_expression(scope, result) for _, result in expression.whens]
    values = [*results, lower_expression(scope, expression.default)]
    sql_type = common_type(values)
    texts = _cast_all(values, sql_type)
    whens = " ".join(f"WHEN {c} THEN {text}" for c, text in zip(conditions, texts))
    return SparkExpression(f"(CASE {whens} ELSE {texts[-1]} END)", sql_type)


def common_type(values: Sequence[SparkExpression]) -> SqlType:
    """The common type of values that become one column. NUMERIC values keep their own scales in
    PostgreSQL, so a decimal can hold them only when the scales are the same."""
    known = [value.type for value in values if not value.null] or [values[0].type]
    if len({(one.kind, one.scale or 0, one.precision is None) for one in known}) > 1:
        raise NotNative("values of different types or scales meet")
    return max(known, key=lambda one: one.precision or 0)


def _cast_all(values: Sequence[SparkExpression], sql_type: SqlType) -> list[str]:
    name = spark_carrier(sql_type)
    return [
        value.text if spark_carrier(value.type) == name else f"CAST({value.text} AS {name})"
        for value in values
    ]


def _lower_test(scope: SparkScope, expression: e.Expression) -> SparkExpression:
    match expression:
        case e.Test():
            operand = lower_expression(scope, expression.operand).text
            word = "NULL" if expression.truth is e.Truth.UNKNOWN else expression.truth.upper()
            negated = "NOT " if expression.negated else ""
            return SparkExpression(f"({operand} IS {negated}{word})", BOOLEAN)
        case e.IsDistinct():
            left, right = (
                lower_expression(scope, expression.left),
                lower_expression(scope, expression.right),
            )
            _require_comparable(left, right)
            text = f"({left.text} <=> {right.text})"
            return SparkExpression(text if expression.negated else f"(NOT {text})", BOOLEAN)
        case e.InList():
            return _lower_in_list(scope, expression)
        case _:
            raise NotNative(f"{type(expression).__name__} runs in Python")


def _lower_in_list(scope: SparkScope, expression: e.InList) -> SparkExpression:
    operand = lower_expression(scope, expression.operand)
    items = [lower_expression(scope, item) for item in expression.items]
    for item in items:
        _require_comparable(operand, item)
        if operand.type.kind is Kind.NUMERIC and item.type != operand.type and not item.null:
            raise NotNative("a list of NUMERIC values of several scales")
    listed = ", ".join(item.text for item in items)
    word = "NOT IN" if expression.negated else "IN"
    return SparkExpression(f"({operand.text} {word} ({listed}))", BOOLEAN)


def _require_comparable(left: SparkExpression, right: SparkExpression) -> None:
    if left.null or right.null:
        return
    if not is_comparable(left.type, right.type):
        raise NotNative("equality of these types is not Spark's")
