"""Linear aggregates: the state that a view stores for COUNT, SUM, AVG, variance and standard
deviation, and how the value is read from it.

Each is a few integers that are added up with a sign, so deltas of any order and from any
transaction give the same state: counts of rows, integer sums, NUMERIC(p, s) sums in units of the
last digit, float sums in units of 2**-1074 (hence exact), and how many values are NaN or infinite.

    SUM(price)   price numeric(12,2)   row with 9.90 inserted   +1 value, +990, +0 NaN
                                       row with 1.00 deleted    -1 value, -100, -0 NaN
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from belvedere.codec.accumulator import fixed_to_float, float_to_fixed
from belvedere.errors import Unsupported
from belvedere.plan import expressions as e
from belvedere.plan.functions.aggregate.accumulators import (
    average_of,
    compute_spread,
    finish_bigint,
)
from belvedere.plan.functions.core.function import AVERAGE_OF_TOTAL, Accumulator, Function
from belvedere.plan.functions.core.sql_form import error_sql
from belvedere.types import BIGINT, Kind, SqlType, numeric_type
from belvedere.values.decimals import EXACT
from belvedere.values.numbers import float4

Amounts = tuple[int, ...]
AMOUNT_TYPE = BIGINT
_DUCKDB_SCALE_MAX = 18
"""A sum of 19 digits with more digits after the point than this has no room in DuckDB."""

INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
FLOATS = (Kind.REAL, Kind.DOUBLE)


@dataclass(frozen=True, slots=True)
class LinearAggregate:
    """The linear state of one aggregate call: `width` amounts; `to_amounts` gives those of one
    value; `final` computes the aggregate from the sums. `form` names those that have generated code
    of their own (`views.codegen.state_entry`)."""

    width: int
    to_amounts: Callable[[Any], Amounts]
    final: Function
    form: str = ""


@dataclass(frozen=True, slots=True)
class AggregateGrouping:
    """How rows are aggregated: the expressions of the group, the aggregate calls, and the linear
    state of each call (`linear_aggregates`)."""

    groups: tuple[e.Expression, ...]
    calls: tuple[e.AggregateCall, ...]
    linear_aggregates: tuple[LinearAggregate, ...]


def build_linear_aggregate(call: e.AggregateCall) -> LinearAggregate | None:
    """The linear state of this call; None when it is not linear."""
    if call.distinct or call.order_by:
        return None
    name = call.function.name
    if name == "count":
        return LinearAggregate(
            1,
            _value_to_count_amount,
            _make_final_function("count", 1, BIGINT, lambda rows: rows, "_0"),
            "count",
        )
    if name in VARIANCE_FUNCTIONS:
        return _build_linear_variance(call.arguments[0].type, call.type, *VARIANCE_FUNCTIONS[name])
    if name not in ("sum", "avg"):
        return None
    return _build_linear_sum(call.arguments[0], call.type, average=name == "avg")


def _build_linear_sum(
    summand: e.Expression, result: SqlType, *, average: bool
) -> LinearAggregate | None:
    argument = summand.type
    if argument.kind in INTEGERS:
        if average:
            final = _make_final_function("integers", 2, result, _compute_integer_average)
            final = replace(final, name=AVERAGE_OF_TOTAL)
        else:
            final = _make_final_function(
                "integers",
                2,
                result,
                _build_integer_sum_final(result),
                *_make_integer_sum_sql(result),
            )
        return LinearAggregate(2, _integer_to_amounts, final, "integers")
    scale = find_fixed_scale(summand)
    if scale is not None:
        unit = Decimal(1).scaleb(-scale, EXACT)
        return LinearAggregate(
            3,
            _build_numeric_to_amounts(scale),
            _make_final_function(
                "numerics",
                3,
                result,
                _build_numeric_final(unit, average),
                *(() if average or scale > _DUCKDB_SCALE_MAX else _make_numeric_sum_sql(scale)),
            ),
        )
    if argument.kind in FLOATS:
        floats = _build_float_final(average=average, narrow=result.kind is Kind.REAL)
        return LinearAggregate(
            5, _float_to_amounts, _make_final_function("floats", 5, result, floats)
        )
    return None


def find_fixed_scale(expression: e.Expression) -> int | None:
    """How many digits every value of a numeric expression has after the point; None when they may
    have different ones. Sums have the larger of two, products both together."""
    kind, scale = expression.type.kind, expression.type.scale
    if kind is not Kind.NUMERIC or scale is not None:
        return scale if kind is Kind.NUMERIC else None
    match expression:
        case e.Literal(value=Decimal() as value) if value.is_finite():
            return max(0, -int(value.as_tuple().exponent))
        case e.Cast() if expression.operand.type.kind in INTEGERS:
            return 0
        case e.Call() if expression.function.name in ("+", "-", "*"):
            scales = [find_fixed_scale(one) for one in expression.arguments]
            known = [one for one in scales if one is not None]
            if len(known) < len(scales):
                return None
            return sum(known) if expression.function.name == "*" else max(known)
        case _:
            return None


VARIANCE_FUNCTIONS = {
    "variance": (True, False),
    "var_samp": (True, False),
    "var_pop": (False, False),
    "stddev": (True, True),
    "stddev_samp": (True, True),
    "stddev_pop": (False, True),
}
"""Whether it is of a sample (or of the population), and whether the root is taken."""


def _build_linear_variance(
    argument: SqlType, result: SqlType, sample: bool, root: bool
) -> LinearAggregate | None:
    """Variance and standard deviation from exact moments; of floats they are not exact, and so not
    linear."""
    if argument.kind in INTEGERS:
        return LinearAggregate(
            4,
            _integer_to_moments,
            _make_final_function("moments", 4, result, _build_variance_final(0, sample, root)),
        )
    if argument.kind is Kind.NUMERIC and argument.scale is not None:
        final = _make_final_function(
            "moments", 4, result, _build_variance_final(argument.scale, sample, root)
        )
        return LinearAggregate(4, _build_numeric_to_moments(argument.scale), final)
    return None


def build_final_value_expression(
    function: Function, columns: tuple[e.Expression, ...], type_: SqlType
) -> e.Expression:
    """The aggregate's value as an expression over the columns that hold its amounts."""
    return e.Call(function, columns, type_)


def _make_final_function(
    what: str,
    width: int,
    result: SqlType,
    python: Callable[..., Any],
    sql: str | None = None,
    bounds: SqlType | None = None,
) -> Function:
    """`sql` is the value of amounts of eight bytes in DuckDB, which gets no others."""
    return Function(
        f"value of {what}",
        (BIGINT,) * width,
        result,
        python,
        sql,
        strict=False,
        bounds=None if bounds is None else lambda _: bounds,
    )


def _make_integer_sum_sql(result: SqlType) -> tuple[str, SqlType | None]:
    if result.kind is not Kind.NUMERIC:
        return "CASE WHEN _0 <> 0 THEN _1 END", None
    return "CASE WHEN _0 <> 0 THEN CAST(_1 AS DECIMAL(19, 0)) END", numeric_type(19, 0)


def _make_numeric_sum_sql(scale: int) -> tuple[str, SqlType]:
    digits = f"0.{1:0{scale}}" if scale else "1"
    unit = f"CAST('{digits}' AS DECIMAL({max(scale, 1)}, {scale}))"
    total = f"CAST(CAST(_1 AS DECIMAL(19, 0)) * {unit} AS DECIMAL({19 + scale}, {scale}))"
    nan = error_sql("0A000", "NaN has no form here")
    text = f"CASE WHEN _0 = 0 THEN NULL WHEN _2 <> 0 THEN {nan} ELSE {total} END"
    return text, numeric_type(19 + scale, scale)


@lru_cache(maxsize=64)
def to_exact_sum_function(function: Function, argument: SqlType | None) -> Function:
    """SUM and AVG of floats as a view computes them: from the exact total, independent of the order
    of rows. Other functions are returned unchanged."""
    if function.name not in ("sum", "avg") or argument is None or argument.kind not in FLOATS:
        return function
    narrow = function.name == "sum" and argument.kind is Kind.REAL
    finish = _build_float_final(average=function.name == "avg", narrow=narrow)
    accumulator = Accumulator(
        lambda: [0, 0, 0, 0, 0], _add_exact_float, lambda state: finish(*state)
    )
    return replace(function, python=accumulator)


def _add_exact_float(state: list[int], value: float) -> list[int]:
    for at, amount in enumerate(_float_to_amounts(value)):
        state[at] += amount
    return state


# -- amounts of one value --------------------------------------------------------------------------


def _value_to_count_amount(value: Any) -> Amounts:
    return (0,) if value is None else (1,)


def _integer_to_amounts(value: int | None) -> Amounts:
    return (0, 0) if value is None else (1, value)


def _build_numeric_to_amounts(scale: int) -> Callable[[Decimal | None], Amounts]:
    def numeric_to_amounts(value: Decimal | None) -> Amounts:
        if value is None:
            return (0, 0, 0)
        if value.is_nan():
            return (1, 0, 1)
        if value.is_infinite():
            raise Unsupported("infinity in a sum that a view keeps")
        return (1, int(value.scaleb(scale, EXACT)), 0)

    return numeric_to_amounts


def _integer_to_moments(value: int | None) -> Amounts:
    return (0, 0, 0, 0) if value is None else (1, value, value * value, 0)


def _build_numeric_to_moments(scale: int) -> Callable[[Decimal | None], Amounts]:
    units = _build_numeric_to_amounts(scale)

    def numeric_to_moments(value: Decimal | None) -> Amounts:
        values, total, nans = units(value)
        return (values, total, total * total, nans)

    return numeric_to_moments


def _float_to_amounts(value: float | None) -> Amounts:
    if value is None:
        return (0, 0, 0, 0, 0)
    if math.isnan(value):
        return (1, 0, 1, 0, 0)
    if math.isinf(value):
        return (1, 0, 0, 1, 0) if value > 0 else (1, 0, 0, 0, 1)
    return (1, float_to_fixed(value), 0, 0, 0)


# -- values of sums --------------------------------------------------------------------------------


def _build_integer_sum_final(result: SqlType) -> Callable[[int, int], Any]:
    if result.kind is Kind.NUMERIC:
        return lambda values, total: Decimal(total) if values else None
    return lambda values, total: finish_bigint(total) if values else None


def _compute_integer_average(values: int, total: int) -> Decimal | None:
    return average_of(Decimal(total), values) if values else None


def _build_numeric_final(unit: Decimal, average: bool) -> Callable[[int, int, int], Decimal | None]:
    def compute_sum_or_average(values: int, units: int, nans: int) -> Decimal | None:
        if not values:
            return None
        if nans:
            return Decimal("NaN")
        total = Decimal(units).scaleb(unit.adjusted(), EXACT)
        return average_of(total, values) if average else total

    return compute_sum_or_average


def _build_variance_final(
    scale: int, sample: bool, root: bool
) -> Callable[[int, int, int, int], Decimal | None]:
    def compute_variance(values: int, total: int, squares: int, nans: int) -> Decimal | None:
        if nans:
            return compute_spread(values, Decimal("NaN"), Decimal("NaN"), sample, root)
        sums = Decimal(total).scaleb(-scale, EXACT), Decimal(squares).scaleb(-2 * scale, EXACT)
        return compute_spread(values, *sums, sample, root)

    return compute_variance


def _build_float_final(
    *, average: bool, narrow: bool
) -> Callable[[int, int, int, int, int], float | None]:
    def compute_sum_or_average(
        values: int, fixed: int, nans: int, ups: int, downs: int
    ) -> float | None:
        if not values:
            return None
        if nans or (ups and downs):
            return math.nan
        if ups or downs:
            return math.inf if ups else -math.inf
        total = fixed_to_float(fixed)
        if average:
            return total / values
        return float4(total) if narrow else total

    return compute_sum_or_average
