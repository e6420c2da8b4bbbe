"""The part of an expression that fails, found by evaluating it again over the row it fails for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from belvedere.catalog.catalog import Catalog
from belvedere.errors import Error, InvalidInput
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.plan.expression_printer import print_expression
from belvedere.plan.fields import Fields
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.delta.sessionless_run import make_run_with_reader

SHOWN_MAX = 64


class FailingPartFinder:
    """Looks for what fails with this error, at the state that the reader shows."""

    def __init__(self, catalog: Catalog, reader: Reader, error: InvalidInput) -> None:
        self._error = error
        self._run = make_run_with_reader(reader)
        self._context = CompileContext(catalog, lambda node: compile_plan(catalog, node))

    def describe_failing_row(
        self, expressions: Sequence[e.Expression], fields: Fields, rows: Iterable[Row]
    ) -> str | None:
        """The first failing part with the rest of the row for which it fails; None: all hold."""
        plain = [one for one in expressions if can_evaluate_over_row(one)]
        values = [self._context.value_of(one)(self._run) for one in plain]
        for row in rows:
            for expression, value_of in zip(plain, values, strict=True):
                try:
                    value_of(row)
                except InvalidInput:
                    part = self.find_failing_part(expression, row)
                    if part is not None:
                        return describe_computation(part, row) + _format_values_of_other_columns(
                            part, fields, row
                        )
        return None

    def find_failing_part(self, expression: e.Expression, row: Row) -> e.Expression | None:
        """The expression if it fails, or the operand by which it does. Operands that may not be
        evaluated at all (CASE, AND) are not looked at."""
        result = self.evaluate_or_catch(expression, row)
        if not (isinstance(result, InvalidInput) and _is_same_error(result, self._error)):
            return None
        if isinstance(expression, e.Call | e.Cast):
            for operand in transform.operands(expression):
                part = self.find_failing_part(operand, row)
                if part is not None:
                    return part
        return expression

    def evaluate_or_catch(self, expression: e.Expression, row: Row) -> object:
        """The value, or the error."""
        try:
            return self._context.value_of(expression)(self._run)(row)
        except InvalidInput as error:
            return error


def describe_computation(expression: e.Expression, row: Row) -> str:
    columns: dict[str, str] = {}
    _collect_column_values(expression, row, columns)
    given = ", ".join(f"{name} = {value}" for name, value in columns.items())
    text = f"the view computes {print_expression(expression)}"
    return f"{text} with {given}" if given else text


def _format_values_of_other_columns(part: e.Expression, fields: Fields, row: Row) -> str:
    """The columns of the row that the part does not use: those of its group or key among them."""
    used = transform.columns_of(part)
    rest = [
        f"{field.name} = {show_value(row[at])}" for at, field in enumerate(fields) if at not in used
    ]
    return f", where {', '.join(rest)}" if rest else ""


def _collect_column_values(expression: e.Expression, row: Row, found: dict[str, str]) -> None:
    if isinstance(expression, e.Column):
        found[expression.name] = show_value(row[expression.index])
    for operand in transform.operands(expression):
        _collect_column_values(operand, row, found)


def show_value(value: object) -> str:
    text = "null" if value is None else str(value)
    if isinstance(value, Decimal):
        text = f"{value:f}"
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}.."


def can_evaluate_over_row(expression: e.Expression) -> bool:
    return not (transform.has_subplan(expression) or transform.has_outer_column(expression))


def _is_same_error(one: Error, other: Error) -> bool:
    return (one.message, one.sqlstate) == (other.message, other.sqlstate)
