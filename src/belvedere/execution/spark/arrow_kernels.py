"""Compilation of expressions to Arrow kernels, where these are exact: one call for a batch.

The Python form of an expression costs a task about half a microsecond for every row and operator.
What Arrow answers exactly as PostgreSQL does is computed for a complete batch at once: integers,
NUMERIC(p, s) up to 38 digits, text, dates and times, logic, CASE, COALESCE, IN.

A kernel sees all rows, also those that a CASE or AND would have excluded, and its errors are not
PostgreSQL's. So a kernel that fails (overflow, division by zero, a NaN to compare) raises
`KernelFailure` for this batch, and the Python form then gives, row by row, the value or the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from belvedere.errors import Error
from belvedere.execution.python.expressions.outer_references import is_constant
from belvedere.execution.spark.expressions import ConstantEvaluator, common_type
from belvedere.execution.spark.native_functions import (
    COMPARISONS,
    FLOATS,
    INTEGERS,
    LENGTHS,
    common_decimal,
    is_comparable,
    scalar_form,
)
from belvedere.execution.spark.types import (
    NotNative,
    SparkExpression,
    arrow_carrier,
    encode_constant,
    is_decimal,
)
from belvedere.plan import expressions as e
from belvedere.plan.functions.core.function import Function
from belvedere.types import BOOLEAN, DOUBLE, Kind, SqlType

Datum = Any
"""An Arrow array, or a scalar that stands for as many equal values."""

ColumnEvaluator = Callable[[Sequence[Datum]], Datum]


class KernelFailure(Exception):
    """A kernel failed: the Python form must evaluate this batch. Never leaves `execution.spark`."""


class KernelColumn(NamedTuple):
    """A compiled expression: its function over the input columns, and the type whose carrier the
    result has."""

    evaluate: ColumnEvaluator
    type: SqlType
    null: bool = False  # a NULL constant, which takes any type


ColumnFunction = Callable[[Sequence[pa.Array], int], pa.Array]
"""From input columns and their number of rows to the column of an expression."""


def compile_columnar(
    expression: e.Expression, types: Sequence[SqlType], evaluate: ConstantEvaluator, result: SqlType
) -> ColumnFunction:
    """Compile the expression over columns of these types to a column of the result's carrier.
    NotNative, with the reason, when a part of it has no kernel."""
    made = _KernelCompiler(types, evaluate).compile_expression(expression)
    wanted = arrow_carrier(result)
    if arrow_carrier(made.type) != wanted and not (is_decimal(made.type) and is_decimal(result)):
        raise NotNative("a value of another carrier")

    def evaluate_batch(columns: Sequence[pa.Array], count: int) -> pa.Array:
        try:
            found = _cast(made.evaluate(columns), wanted)
        except (pa.ArrowException, ValueError) as error:
            raise KernelFailure from error
        if isinstance(found, pa.Scalar):
            return pa.repeat(found, count)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    return evaluate_batch


class _KernelCompiler(NamedTuple):
    types: Sequence[SqlType]
    evaluate: ConstantEvaluator

    def compile_expression(self, expression: e.Expression) -> KernelColumn:
        if isinstance(expression, e.Column):
            return _compile_column(expression.index, self.types[expression.index])
        if is_constant(expression):
            return self.compile_constant(expression)
        match expression:
            case e.Call():
                return self.compile_call(expression.function, expression.arguments, expression.type)
            case e.Cast():
                return self.compile_call(
                    expression.function, (expression.operand,), expression.type
                )
            case e.And():
                return self.compile_logic(pc.and_kleene, expression.operands)
            case e.Or():
                return self.compile_logic(pc.or_kleene, expression.operands)
            case e.Not():
                return self.compile_logic(pc.invert, (expression.operand,))
            case e.Case():
                return self.compile_case(expression)
            case e.Coalesce():
                values, sql_type = self.compile_common_type(expression.arguments)
                return KernelColumn(
                    lambda columns: pc.coalesce(*_evaluate_all(values, columns)), sql_type
                )
            case _:
                return self.compile_test(expression)

    def compile_constant(self, expression: e.Expression) -> KernelColumn:
        try:
            if isinstance(expression, e.Literal):
                value: object = expression.value
            else:
                value = self.evaluate(expression)
            carried, sql_type = encode_constant(value, expression.type)
        except Error as error:  # raised only for rows that evaluate it
            raise NotNative("a constant that fails") from error
        scalar = pa.scalar(carried, arrow_carrier(sql_type))
        return KernelColumn(lambda _: scalar, sql_type, value is None)

    def compile_call(
        self, function: Function, arguments: tuple[e.Expression, ...], result: SqlType
    ) -> KernelColumn:
        given = [self.compile_expression(one) for one in arguments]
        types = tuple(one.type for one in given)
        _, sql_type = scalar_form(function, types, result)  # exact in Spark too, of this type
        kernel = _find_kernel(function.name, types, sql_type)
        if kernel is None:
            raise NotNative(f"{function.signature} has no kernel")
        inner = [one.evaluate for one in given]
        return KernelColumn(lambda columns: kernel(*[of(columns) for of in inner]), sql_type)

    def compile_logic(
        self, kernel: Callable[..., Datum], operands: tuple[e.Expression, ...]
    ) -> KernelColumn:
        inner = [self.compile_expression(one).evaluate for one in operands]
        if len(inner) == 1:
            return KernelColumn(lambda columns: kernel(inner[0](columns)), BOOLEAN)
        return KernelColumn(lambda columns: reduce(kernel, [of(columns) for of in inner]), BOOLEAN)

    def compile_common_type(
        self, expressions: Sequence[e.Expression]
    ) -> tuple[list[ColumnEvaluator], SqlType]:
        """Compile values that become one column, cast to its type; and that type."""
        given = [self.compile_expression(one) for one in expressions]
        sql_type = common_type([SparkExpression("", one.type, one.null) for one in given])
        wanted = arrow_carrier(sql_type)
        return [_with_cast(one.evaluate, wanted) for one in given], sql_type

    def compile_case(self, expression: e.Case) -> KernelColumn:
        conditions = [
            self.compile_expression(condition).evaluate for condition, _ in expression.whens
        ]
        results = [result for _, result in expression.whens]
        values, sql_type = self.compile_common_type([*results, expression.default])

        def choose_values(columns: Sequence[Datum]) -> Datum:
            *some, found = _evaluate_all(values, columns)
            for condition, value in zip(reversed(conditions), reversed(some)):
                found = pc.if_else(pc.fill_null(condition(columns), False), value, found)
            return found

        return KernelColumn(choose_values, sql_type)

    def compile_test(self, expression: e.Expression) -> KernelColumn:
        match expression:
            case e.Test():
                return self.compile_truth_test(expression)
            case e.IsDistinct():
                same = self.compile_equality(expression.left, expression.right)
                either = [
                    self.compile_expression(one).evaluate
                    for one in (expression.left, expression.right)
                ]
                return KernelColumn(
                    _compile_distinct(same, either, negated=expression.negated), BOOLEAN
                )
            case e.InList():
                equal = [
                    self.compile_equality(expression.operand, item) for item in expression.items
                ]

                def match_list(columns: Sequence[Datum]) -> Datum:
                    found = reduce(pc.or_kleene, _evaluate_all(equal, columns))
                    return pc.invert(found) if expression.negated else found

                return KernelColumn(match_list, BOOLEAN)
            case _:
                raise NotNative(f"{type(expression).__name__} runs in Python")

    def compile_truth_test(self, expression: e.Test) -> KernelColumn:
        operand, truth = self.compile_expression(expression.operand).evaluate, expression.truth

        def evaluate_truth(columns: Sequence[Datum]) -> Datum:
            value = operand(columns)
            if truth in (e.Truth.TRUE, e.Truth.FALSE):
                known = value if truth is e.Truth.TRUE else pc.invert(value)
                found = pc.fill_null(known, False)
            else:
                found = pc.is_null(value)
            return pc.invert(found) if expression.negated else found

        return KernelColumn(evaluate_truth, BOOLEAN)

    def compile_equality(self, left: e.Expression, right: e.Expression) -> ColumnEvaluator:
        one, other = self.compile_expression(left), self.compile_expression(right)
        if one.null or other.null:
            unknown = pa.scalar(None, pa.bool_())
            kept = one if other.null else other
            return lambda columns: pc.if_else(pc.is_valid(kept.evaluate(columns)), unknown, unknown)
        if not is_comparable(one.type, other.type):
            raise NotNative("equality of these types has no kernel")
        kernel = _comparison_kernel("=", (one.type, other.type))
        return lambda columns: kernel(one.evaluate(columns), other.evaluate(columns))


def _compile_column(index: int, sql_type: SqlType) -> KernelColumn:
    return KernelColumn(lambda columns: columns[index], sql_type)


def _evaluate_all(several: Sequence[ColumnEvaluator], columns: Sequence[Datum]) -> list[Datum]:
    return [of(columns) for of in several]


def _compile_distinct(
    same: ColumnEvaluator, either: Sequence[ColumnEvaluator], *, negated: bool
) -> ColumnEvaluator:
    def evaluate_distinct(columns: Sequence[Datum]) -> Datum:
        left, right = (pc.is_null(of(columns)) for of in either)
        found = pc.coalesce(same(columns), pc.and_(left, right))
        return found if negated else pc.invert(found)

    return evaluate_distinct


# -- kernels ---------------------------------------------------------------------------------------

Kernel = Callable[..., Datum]
_ORDER = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_ARITHMETIC = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_SIGN = {"-": pc.negate_checked, "+": lambda one: one, "abs": pc.abs_checked, "@": pc.abs_checked}


def _find_kernel(name: str, types: tuple[SqlType, ...], result: SqlType) -> Kernel | None:
    """The Arrow kernel of a function that `scalar_form` allows; None when Arrow has none."""
    if name == "cast":
        return _cast_kernel(types[0], result)
    if name in COMPARISONS:
        return _comparison_kernel(name, (types[0], types[1]))
    kinds = tuple(one.kind for one in types)
    wanted = arrow_carrier(result)
    if name == "||":
        return lambda one, other: pc.binary_join_element_wise(one, other, "")
    if name in LENGTHS:
        return lambda one: pc.utf8_length(one).cast(wanted)
    if not all(kind in INTEGERS or kind is Kind.NUMERIC for kind in kinds):
        return None
    if len(types) == 1:
        return _SIGN.get(name)
    if all(kind in INTEGERS for kind in kinds):
        return _integer_kernel(name, wanted)
    kernel = _ARITHMETIC.get(name)
    return None if kernel is None else lambda one, other: _cast(kernel(one, other), wanted)


def _integer_kernel(name: str, wanted: pa.DataType) -> Kernel | None:
    """The kernel over operands cast to the result's type, which overflows as in PostgreSQL."""
    kernel = _INTEGERS.get(name)
    if kernel is None:
        return None
    return lambda one, other: kernel(_cast(one, wanted), _cast(other, wanted))


def _modulo(one: Datum, other: Datum) -> Datum:
    """The remainder with the sign of the dividend, as the quotient is truncated."""
    quotient = pc.divide_checked(one, other)
    return pc.subtract_checked(one, pc.multiply_checked(quotient, other))


_INTEGERS = {
    **_ARITHMETIC,
    "/": pc.divide_checked,
    "%": _modulo,
    "mod": _modulo,
    "&": pc.bit_wise_and,
    "|": pc.bit_wise_or,
}


def _comparison_kernel(name: str, types: tuple[SqlType, SqlType]) -> Kernel:
    kernel: Kernel = _ORDER[name]
    left, right = types
    if left.kind in FLOATS:
        wide = arrow_carrier(DOUBLE)
        return lambda one, other: kernel(
            _refuse_nan(_cast(one, wide)), _refuse_nan(_cast(other, wide))
        )
    if left.kind is Kind.NUMERIC:
        both = common_decimal(left, right)
        assert both is not None, "they are comparable"
        wanted = arrow_carrier(both)
        return lambda one, other: kernel(_cast(one, wanted), _cast(other, wanted))
    if left.kind in INTEGERS and left.kind is not right.kind:
        return lambda one, other: kernel(_cast(one, pa.int64()), _cast(other, pa.int64()))
    return kernel


def _refuse_nan(value: Datum) -> Datum:
    """Refuse NaN: in PostgreSQL it is equal to itself and larger than all else, in Arrow not."""
    unlike = pc.is_nan(value)
    if (unlike if isinstance(unlike, pa.Scalar) else pc.any(unlike)).as_py():
        raise KernelFailure
    return value


def _cast_kernel(source: SqlType, target: SqlType) -> Kernel | None:
    if source.kind in (*FLOATS, Kind.TIMESTAMP) or target.kind in FLOATS:
        return None
    wanted = arrow_carrier(target)
    if source.kind is Kind.NUMERIC and (source.scale or 0) > (target.scale or 0):
        return None  # it rounds
    return lambda one: _cast(one, wanted)


def _with_cast(of: ColumnEvaluator, wanted: pa.DataType) -> ColumnEvaluator:
    return lambda columns: _cast(of(columns), wanted)


def _cast(value: Datum, wanted: pa.DataType) -> Datum:
    return value if value.type == wanted else value.cast(wanted)
