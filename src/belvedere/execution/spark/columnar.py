"""Compilation of expressions to Arrow kernels, where these are exact: one call for a batch.

The Python form of an expression costs a task about half a microsecond for every row and operator.
What Arrow answers exactly as PostgreSQL does is computed for a complete batch at once: integers,
NUMERIC(p, s) up to 38 digits, text, dates and times, logic, CASE, COALESCE, IN.

A kernel sees all rows, also those that a CASE or AND would have excluded, and its errors are not
PostgreSQL's. So a kernel that fails (overflow, division by zero, a NaN to compare) raises `Unfit`
for this batch, and the Python form then gives, row by row, the value or the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from belvedere.errors import Error
from belvedere.execution.direct.dependence import is_constant
from belvedere.execution.spark.expressions import Evaluate, one_type
from belvedere.execution.spark.forms import (
    COMPARISONS,
    FLOATS,
    INTEGERS,
    LENGTHS,
    common_decimal,
    comparable,
    scalar_form,
)
from belvedere.execution.spark.types import (
    NotNative,
    Typed,
    arrow_carrier,
    carried_constant,
    is_decimal,
)
from belvedere.plan import expressions as e
from belvedere.plan.functions.function import Function
from belvedere.types import BOOLEAN, DOUBLE, Kind, SqlType

Datum = Any
"""An Arrow array, or a scalar that stands for as many equal values."""

Evaluated = Callable[[Sequence[Datum]], Datum]


class Unfit(Exception):
    """A kernel failed: the Python form must evaluate this batch. Never leaves `execution.spark`."""


class Made(NamedTuple):
    """A compiled expression: its function over the input columns, and the type whose carrier the
    result has."""

    of: Evaluated
    type: SqlType
    null: bool = False  # a NULL constant, which takes any type


Whole = Callable[[Sequence[pa.Array], int], pa.Array]
"""From input columns and their number of rows to the column of an expression."""


def columnar(
    expression: e.Expression, types: Sequence[SqlType], evaluate: Evaluate, result: SqlType
) -> Whole:
    """Compile the expression over columns of these types to a column of the result's carrier.
    NotNative, with the reason, when a part of it has no kernel."""
    made = _Columns(types, evaluate).made(expression)
    wanted = arrow_carrier(result)
    if arrow_carrier(made.type) != wanted and not (is_decimal(made.type) and is_decimal(result)):
        raise NotNative("a value of another carrier")

    def whole(columns: Sequence[pa.Array], count: int) -> pa.Array:
        try:
            found = _cast(made.of(columns), wanted)
        except (pa.ArrowException, ValueError) as error:
            raise Unfit from error
        if isinstance(found, pa.Scalar):
            return pa.repeat(found, count)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    return whole


class _Columns(NamedTuple):
    types: Sequence[SqlType]
    evaluate: Evaluate

    def made(self, expression: e.Expression) -> Made:
        if isinstance(expression, e.Column):
            return _column(expression.index, self.types[expression.index])
        if is_constant(expression):
            return self.constant(expression)
        match expression:
            case e.Call():
                return self.call(expression.function, expression.arguments, expression.type)
            case e.Cast():
                return self.call(expression.function, (expression.operand,), expression.type)
            case e.And():
                return self.logic(pc.and_kleene, expression.operands)
            case e.Or():
                return self.logic(pc.or_kleene, expression.operands)
            case e.Not():
                return self.logic(pc.invert, (expression.operand,))
            case e.Case():
                return self.case(expression)
            case e.Coalesce():
                values, sql_type = self.meeting(expression.arguments)
                return Made(lambda columns: pc.coalesce(*_all(values, columns)), sql_type)
            case _:
                return self.test(expression)

    def constant(self, expression: e.Expression) -> Made:
        try:
            if isinstance(expression, e.Literal):
                value: object = expression.value
            else:
                value = self.evaluate(expression)
            carried, sql_type = carried_constant(value, expression.type)
        except Error as error:  # raised only for rows that evaluate it
            raise NotNative("a constant that fails") from error
        scalar = pa.scalar(carried, arrow_carrier(sql_type))
        return Made(lambda _: scalar, sql_type, value is None)

    def call(
        self, function: Function, arguments: tuple[e.Expression, ...], result: SqlType
    ) -> Made:
        given = [self.made(one) for one in arguments]
        types = tuple(one.type for one in given)
        _, sql_type = scalar_form(function, types, result)  # exact in Spark too, of this type
        kernel = _kernel(function.name, types, sql_type)
        if kernel is None:
            raise NotNative(f"{function.signature} has no kernel")
        inner = [one.of for one in given]
        return Made(lambda columns: kernel(*[of(columns) for of in inner]), sql_type)

    def logic(self, kernel: Callable[..., Datum], operands: tuple[e.Expression, ...]) -> Made:
        inner = [self.made(one).of for one in operands]
        if len(inner) == 1:
            return Made(lambda columns: kernel(inner[0](columns)), BOOLEAN)
        return Made(lambda columns: reduce(kernel, [of(columns) for of in inner]), BOOLEAN)

    def meeting(self, expressions: Sequence[e.Expression]) -> tuple[list[Evaluated], SqlType]:
        """Compile values that become one column, cast to its type; and that type."""
        given = [self.made(one) for one in expressions]
        sql_type = one_type([Typed("", one.type, one.null) for one in given])
        wanted = arrow_carrier(sql_type)
        return [_casting(one.of, wanted) for one in given], sql_type

    def case(self, expression: e.Case) -> Made:
        conditions = [self.made(condition).of for condition, _ in expression.whens]
        results = [result for _, result in expression.whens]
        values, sql_type = self.meeting([*results, expression.default])

        def chosen(columns: Sequence[Datum]) -> Datum:
            *some, found = _all(values, columns)
            for condition, value in zip(reversed(conditions), reversed(some)):
                found = pc.if_else(pc.fill_null(condition(columns), False), value, found)
            return found

        return Made(chosen, sql_type)

    def test(self, expression: e.Expression) -> Made:
        match expression:
            case e.Test():
                return self.truth(expression)
            case e.IsDistinct():
                same = self.equality(expression.left, expression.right)
                either = [self.made(one).of for one in (expression.left, expression.right)]
                return Made(_distinct(same, either, negated=expression.negated), BOOLEAN)
            case e.InList():
                equal = [self.equality(expression.operand, item) for item in expression.items]

                def listed(columns: Sequence[Datum]) -> Datum:
                    found = reduce(pc.or_kleene, _all(equal, columns))
                    return pc.invert(found) if expression.negated else found

                return Made(listed, BOOLEAN)
            case _:
                raise NotNative(f"{type(expression).__name__} runs in Python")

    def truth(self, expression: e.Test) -> Made:
        operand, truth = self.made(expression.operand).of, expression.truth

        def tested(columns: Sequence[Datum]) -> Datum:
            value = operand(columns)
            if truth in (e.Truth.TRUE, e.Truth.FALSE):
                known = value if truth is e.Truth.TRUE else pc.invert(value)
                found = pc.fill_null(known, False)
            else:
                found = pc.is_null(value)
            return pc.invert(found) if expression.negated else found

        return Made(tested, BOOLEAN)

    def equality(self, left: e.Expression, right: e.Expression) -> Evaluated:
        one, other = self.made(left), self.made(right)
        if one.null or other.null:
            unknown = pa.scalar(None, pa.bool_())
            kept = one if other.null else other
            return lambda columns: pc.if_else(pc.is_valid(kept.of(columns)), unknown, unknown)
        if not comparable(one.type, other.type):
            raise NotNative("equality of these types has no kernel")
        kernel = _comparison("=", (one.type, other.type))
        return lambda columns: kernel(one.of(columns), other.of(columns))


def _column(index: int, sql_type: SqlType) -> Made:
    return Made(lambda columns: columns[index], sql_type)


def _all(several: Sequence[Evaluated], columns: Sequence[Datum]) -> list[Datum]:
    return [of(columns) for of in several]


def _distinct(same: Evaluated, either: Sequence[Evaluated], *, negated: bool) -> Evaluated:
    def distinct(columns: Sequence[Datum]) -> Datum:
        left, right = (pc.is_null(of(columns)) for of in either)
        found = pc.coalesce(same(columns), pc.and_(left, right))
        return found if negated else pc.invert(found)

    return distinct


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


def _kernel(name: str, types: tuple[SqlType, ...], result: SqlType) -> Kernel | None:
    """The Arrow kernel of a function that `scalar_form` allows; None when Arrow has none."""
    if name == "cast":
        return _cast_kernel(types[0], result)
    if name in COMPARISONS:
        return _comparison(name, (types[0], types[1]))
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
        return _integers(name, wanted)
    kernel = _ARITHMETIC.get(name)
    return None if kernel is None else lambda one, other: _cast(kernel(one, other), wanted)


def _integers(name: str, wanted: pa.DataType) -> Kernel | None:
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


def _comparison(name: str, types: tuple[SqlType, SqlType]) -> Kernel:
    kernel: Kernel = _ORDER[name]
    left, right = types
    if left.kind in FLOATS:
        wide = arrow_carrier(DOUBLE)
        return lambda one, other: kernel(_number(_cast(one, wide)), _number(_cast(other, wide)))
    if left.kind is Kind.NUMERIC:
        both = common_decimal(left, right)
        assert both is not None, "they are comparable"
        wanted = arrow_carrier(both)
        return lambda one, other: kernel(_cast(one, wanted), _cast(other, wanted))
    if left.kind in INTEGERS and left.kind is not right.kind:
        return lambda one, other: kernel(_cast(one, pa.int64()), _cast(other, pa.int64()))
    return kernel


def _number(value: Datum) -> Datum:
    """Refuse NaN: in PostgreSQL it is equal to itself and larger than all else, in Arrow not."""
    unlike = pc.is_nan(value)
    if (unlike if isinstance(unlike, pa.Scalar) else pc.any(unlike)).as_py():
        raise Unfit
    return value


def _cast_kernel(source: SqlType, target: SqlType) -> Kernel | None:
    if source.kind in (*FLOATS, Kind.TIMESTAMP) or target.kind in FLOATS:
        return None
    wanted = arrow_carrier(target)
    if source.kind is Kind.NUMERIC and (source.scale or 0) > (target.scale or 0):
        return None  # it rounds
    return lambda one: _cast(one, wanted)


def _casting(of: Evaluated, wanted: pa.DataType) -> Evaluated:
    return lambda columns: _cast(of(columns), wanted)


def _cast(value: Datum, wanted: pa.DataType) -> Datum:
    return value if value.type == wanted else value.cast(wanted)
