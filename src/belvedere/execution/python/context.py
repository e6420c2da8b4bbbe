"""The context in which operators are compiled, and the row functions they consist of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.execution.python.expressions.comparison import key_form
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.execution.run import Rows, Run
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.types import Row

BindRun = Callable[[Run], Callable[..., Any]]
"""Returns, for a run, a function of rows."""


@dataclass(frozen=True, slots=True)
class CompileContext:
    """`plan` compiles an input or a sub-query. `fuses`: operators may merge with their inputs.
    `counts_rows`: EXPLAIN ANALYZE counts the rows of every node."""

    catalog: Catalog
    plan: Callable[[n.Node], Rows]
    fuses: bool = True
    counts_rows: bool = False

    def value_of(self, expression: e.Expression) -> BindRun:
        source = GeneratedFunction()
        return source.build_row_function(
            ExpressionWriter(source, self.plan).write_value(expression)
        )

    def truth_of(self, expression: e.Expression) -> BindRun:
        source = GeneratedFunction()
        return source.build_row_function(
            ExpressionWriter(source, self.plan).write_truth(expression)
        )

    def tuple_of(self, expressions: Sequence[e.Expression]) -> BindRun:
        source = GeneratedFunction()
        writer = ExpressionWriter(source, self.plan)
        return source.build_row_function(tuple_source(map(writer.write_value, expressions)))

    def key_of(self, expressions: Sequence[e.Expression]) -> BindRun:
        """Row to a hashable tuple, equal where SQL says equal (NULLs equal each other)."""
        source = GeneratedFunction()
        writer = ExpressionWriter(source, self.plan)
        return source.build_row_function(tuple_source(key_text(writer, one) for one in expressions))

    def pair_truth(self, expression: e.Expression, left_width: int) -> BindRun:
        """The condition of a join as a function of (left, right)."""
        source = GeneratedFunction()
        writer = pair_writer(source, self.plan, left_width)
        return source.build_row_function(writer.write_truth(expression), "left, right")


def pair_writer(
    source: GeneratedFunction, plan: Callable[[n.Node], Rows], left_width: int
) -> ExpressionWriter:
    def pair_column(index: int) -> str:
        return f"left[{index}]" if index < left_width else f"right[{index - left_width}]"

    return ExpressionWriter(source, plan, pair_column, "(left + right)")


def key_text(writer: ExpressionWriter, expression: e.Expression) -> str:
    """Text of the expression's key: see `comparison`."""
    text = writer.write_value(expression)
    form = key_form(expression.type)
    if form is None:
        return text
    held = writer.source.new_temporary()
    name = writer.source.add_constant(form, "k")
    return f"(None if ({held} := {text}) is None else {name}({held}))"


def row_keys(fields: n.Fields) -> Callable[[Row], Row]:
    """Rows to hashable keys; the row itself where every column is its own key."""
    forms = [key_form(field.type) for field in fields]
    if not any(forms):
        return _row_itself

    def row_key(row: Row) -> Row:
        return tuple([v if form is None or v is None else form(v) for v, form in zip(row, forms)])

    return row_key


def _row_itself(row: Row) -> Row:
    return row
