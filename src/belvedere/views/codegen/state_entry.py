"""Generated code of the state entry of one row: its group, and the amounts that it adds.

SELECT customer, count(*), sum(total) ... GROUP BY customer
(r0[0],), (1, 1, (0 if (t1 := r0[1]) is None else 1), (t1 or 0))
"""

from __future__ import annotations

from collections.abc import Collection

from belvedere.execution.python.expressions.expression_source import ExpressionWriter as Texts
from belvedere.execution.python.expressions.expression_source import python_form
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.plan.functions.numeric.integers import PYTHON_OPERATORS
from belvedere.views.delta.linear_aggregates import AggregateGrouping, LinearAggregate
from belvedere.views.delta.linear_core import Expressions

ONE_TEXT = "1"  # the amount that every row adds, whatever its values


def generate_entry_text(
    source: GeneratedFunction,
    texts: Texts,
    group: AggregateGrouping | None,
    columns: Expressions | None,
) -> str:
    """Text of (stored columns, amounts)."""
    stored, amounts = generate_group_and_amount_texts(source, texts, group, columns)
    return f"{stored}, {tuple_source(amounts)}"


def generate_group_and_amount_texts(
    source: GeneratedFunction,
    texts: Texts,
    group: AggregateGrouping | None,
    columns: Expressions | None,
    certain: Collection[int] = (),
) -> tuple[str, list[str]]:
    """Text of the stored columns, and of the amounts; a starred text is several of them. The
    group's expressions are over `columns`, which are given over the row that `texts` knows; None:
    they are over that row itself. Columns of that row that are `certain` are never NULL."""
    if group is None:
        assert columns is not None
        return tuple_source([texts.write_value(one) for one in columns]), [ONE_TEXT]

    def to_known_row(expression: e.Expression) -> e.Expression:
        return expression if columns is None else transform.substitute_columns(expression, columns)

    amounts = [ONE_TEXT]
    for call, keep in zip(group.calls, group.linear_aggregates, strict=True):
        argument = to_known_row(call.arguments[0]) if call.arguments else None
        value = "True" if argument is None else texts.write_value(argument)
        condition = None if call.filter is None else texts.write_truth(to_known_row(call.filter))
        whole = argument is None or _is_never_null(argument, certain)
        amounts += _generate_amount_texts(source, keep, value, condition, whole)
    groups = [texts.write_value(to_known_row(one)) for one in group.groups]
    return tuple_source(groups), amounts


def _is_never_null(expression: e.Expression, certain: Collection[int]) -> bool:
    """Whether it is never NULL: such columns, constants, and integer sums of these."""
    match expression:
        case e.Column():
            return expression.index in certain
        case e.Literal():
            return expression.value is not None
        case e.Call():
            types = tuple([argument.type for argument in expression.arguments])
            if python_form(expression.function, types) not in PYTHON_OPERATORS:
                return False
            return all(_is_never_null(argument, certain) for argument in expression.arguments)
        case _:
            return False


def _generate_amount_texts(
    source: GeneratedFunction, keep: LinearAggregate, value: str, condition: str | None, whole: bool
) -> list[str]:
    if condition is not None:
        given = f"{source.add_constant(keep.to_amounts, 'amounts')}({value})"
        nothing = source.add_constant(keep.to_amounts(None), "nothing")
        return [f"*({given} if {condition} else {nothing})"]
    if keep.form == "count" and whole:
        return [ONE_TEXT]
    if keep.form == "integers" and whole:
        return [ONE_TEXT, f"({value} or 0)"]
    held = source.new_temporary()  # Python warns of a comparison of a constant with None
    if keep.form == "count":
        return [f"(0 if ({held} := {value}) is None else 1)"]
    if keep.form == "integers":
        return [f"(0 if ({held} := {value}) is None else 1)", f"({held} or 0)"]
    return [f"*{source.add_constant(keep.to_amounts, 'amounts')}({value})"]
