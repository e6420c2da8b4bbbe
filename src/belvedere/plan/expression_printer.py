"""A printer of expressions as SQL-like text, for EXPLAIN and golden tests."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from belvedere.plan import expressions as e
from belvedere.types import TEXT, Interval, Kind
from belvedere.values.quoting import quote_literal

if TYPE_CHECKING:
    from belvedere.plan.nodes import Node


def print_expression(expression: e.Expression, *, exact: bool = False) -> str:
    return ExpressionPrinter(exact).expression(expression)


class ExpressionPrinter:
    """`exact` adds row positions and depths to column names."""

    def __init__(self, exact: bool) -> None:
        self.exact = exact

    def sort_keys(self, keys: Iterable[e.SortKey]) -> str:
        return ", ".join(map(self.sort_key, keys))

    def sort_key(self, key: e.SortKey) -> str:
        text = self.expression(key.expression) + (" desc" if key.descending else "")
        if key.nulls_first != key.descending:
            text += " nulls first" if key.nulls_first else " nulls last"
        return text

    def expression_list(self, expressions: Iterable[e.Expression]) -> str:
        return ", ".join(map(self.expression, expressions))

    def subplan_label(self, plan: Node, word: str) -> str:
        """The label of a sub-query in the text; the plan printer prints its plan below."""
        return f"<{word}>"

    def operand(self, expression: e.Expression) -> str:
        text = self.expression(expression)
        return f"({text})" if _needs_parentheses(expression) else text

    def expression(self, expression: e.Expression) -> str:
        match expression:
            case e.Literal():
                return print_value(expression.value, expression.type.kind)
            case e.Parameter():
                return f"${expression.index}"
            case e.Column():
                return f"{expression.name}#{expression.index}" if self.exact else expression.name
            case e.OuterColumn():
                place = f"#{expression.index}^{expression.depth}" if self.exact else ""
                return f"outer.{expression.name}{place}"
            case e.Call():
                return self.scalar_call(expression)
            case e.Cast():
                return f"{self.operand(expression.operand)}::{expression.type}"
            case e.And():
                return " and ".join(map(self.operand, expression.operands))
            case e.Or():
                return " or ".join(map(self.operand, expression.operands))
            case e.Not():
                return f"not {self.operand(expression.operand)}"
            case _:
                return self.special_form(expression)

    def special_form(self, expression: e.Expression) -> str:
        match expression:
            case e.Test():
                word = "is not" if expression.negated else "is"
                return f"{self.operand(expression.operand)} {word} {expression.truth.value}"
            case e.IsDistinct():
                word = "is not distinct from" if expression.negated else "is distinct from"
                return f"{self.operand(expression.left)} {word} {self.operand(expression.right)}"
            case e.InList():
                word = "not in" if expression.negated else "in"
                items = self.expression_list(expression.items)
                return f"{self.operand(expression.operand)} {word} ({items})"
            case e.Quantified():
                left = f"{self.operand(expression.operand)} {expression.operator.name}"
                return f"{left} {expression.quantifier} ({self.expression(expression.array)})"
            case e.Case():
                whens = " ".join(
                    f"when {self.expression(c)} then {self.expression(r)}"
                    for c, r in expression.whens
                )
                return f"case {whens} else {self.expression(expression.default)} end"
            case e.Coalesce():
                return f"coalesce({self.expression_list(expression.arguments)})"
            case e.Array():
                return f"array[{self.expression_list(expression.items)}]"
            case e.SequenceCall():
                arguments = self.expression_list(
                    [_text_literal(expression.name), *expression.arguments]
                )
                return f"{expression.verb}({arguments})"
            case _:
                return self.subquery(expression)

    def subquery(self, expression: e.Expression) -> str:
        match expression:
            case e.ScalarSubquery():
                return self.subplan_label(expression.plan, "scalar")
            case e.Exists():
                word = "not exists " if expression.negated else "exists "
                return word + self.subplan_label(expression.plan, "subquery")
            case e.QuantifiedSubquery():
                left = self.expression_list(expression.operands)
                left = f"({left})" if len(expression.operands) > 1 else left
                place = self.subplan_label(expression.plan, "subquery")
                return f"{left} {expression.operators[0].name} {expression.quantifier} {place}"
            case e.ArraySubquery():
                return "array" + self.subplan_label(expression.plan, "subquery")
            case _:
                raise AssertionError(expression)

    def scalar_call(self, call: e.Call) -> str:
        name = call.function.name
        if name[:1].isalpha() or name[:1] == "_":
            return f"{name}({self.expression_list(call.arguments)})"
        if len(call.arguments) == 1:
            return f"{name}{self.operand(call.arguments[0])}"
        return f" {name} ".join(map(self.operand, call.arguments))


def print_value(value: Any, kind: Kind) -> str:
    """A literal as SQL text."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float() | decimal.Decimal():
            return str(value)
        case str():
            return quote_literal(value)
        case bytes():
            return f"'\\x{value.hex()}'"
        case Interval():
            return f"interval '{value.months} mons {value.days} days {value.microseconds} us'"
        case list():
            element = ", ".join(print_value(item, kind) for item in value)
            return "{" + element + "}"
        case datetime.datetime():
            return f"'{value.isoformat(sep=' ')}'"
        case _:
            return f"'{value}'"


def _text_literal(value: str) -> e.Literal:
    return e.Literal(value, TEXT)


def _needs_parentheses(expression: e.Expression) -> bool:
    match expression:
        case e.Call():
            name = expression.function.name
            return len(expression.arguments) == 2 and not (name[:1].isalpha() or name[:1] == "_")
        case e.And() | e.Or() | e.Not() | e.Test() | e.InList() | e.IsDistinct() | e.Quantified():
            return True
        case e.QuantifiedSubquery() | e.Exists():
            return True
        case _:
            return False
