"""Aggregates: count, sum, avg, min, max, boolean and bit folds, spreads, string_agg, array_agg.

An SQL form marks the aggregate call itself with [[ ]], so that DISTINCT, FILTER, ORDER BY or OVER
can be put on it and not on the form around it. avg and the spreads over exact numbers end in a
NUMERIC division, which DuckDB cannot do exactly: they have a `partial` form instead, exact sums
from DuckDB and the last step in Python. Float aggregates may differ from PostgreSQL's in the last
digits, because DuckDB adds in another order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from belvedere.plan.functions.aggregate import accumulators as acc
from belvedere.plan.functions.core.function import (
    Accumulator,
    Function,
    PartialAggregate,
    Types,
    aggregate,
)
from belvedere.plan.functions.core.sql_form import DECIMAL_DIGITS_MAX
from belvedere.plan.functions.logic import comparison
from belvedere.plan.functions.numeric.decimals import digit_counts, when_bounded
from belvedere.plan.functions.numeric.floats import add as add_float8
from belvedere.types import SqlType, numeric_type
from belvedere.values import decimals, interval_math

_INTEGERS = ("int2", "int4", "int8")


def _sum_bounds(types: Types) -> SqlType | None:
    return numeric_type(DECIMAL_DIGITS_MAX, digit_counts(types[0])[1])


def _integer_bounds(types: Types) -> SqlType | None:
    return numeric_type(DECIMAL_DIGITS_MAX, 0)


def _sum_functions() -> list[Function]:
    bigint = acc.fold_accumulator(acc.add_integers, acc.finish_bigint)
    to_bigint = "CAST([[sum(_0)]] AS BIGINT)"
    return [
        aggregate("sum(int2) int8", bigint, to_bigint),
        aggregate("sum(int4) int8", bigint, to_bigint),
        aggregate(
            "sum(int8) numeric",
            acc.fold_accumulator(acc.add_integers, acc.finish_integer_numeric),
            "CAST([[sum(_0)]] AS DECIMAL(38,0))",
            bounds=_integer_bounds,
        ),
        aggregate(
            "sum(numeric) numeric",
            acc.fold_accumulator(decimals.add),
            when_bounded("[[sum(_0)]]", _sum_bounds),
            bounds=_sum_bounds,
        ),
        aggregate("sum(float4) float4", acc.fold_accumulator(acc.add_float4)),
        aggregate("sum(float8) float8", acc.fold_accumulator(add_float8), "[[sum(_0)]]"),
        aggregate("sum(interval) interval", acc.fold_accumulator(interval_math.add)),
    ]


def _average_functions() -> list[Function]:
    exact = PartialAggregate(("sum(_0)", "count(_0)"), acc.average_of)
    integer = Accumulator(acc.integer_pair, acc.integer_pair_step, acc.average_integer)
    floating = Accumulator(acc.float_moments, acc.float_moments_step, acc.float_average)
    return [
        *(aggregate(f"avg({name}) numeric", integer, partial=exact) for name in _INTEGERS),
        aggregate(
            "avg(numeric) numeric",
            Accumulator(acc.numeric_pair, acc.numeric_pair_step, acc.average_numeric),
            partial=exact,
        ),
        aggregate("avg(float4) float8", floating, "[[avg(CAST(_0 AS DOUBLE))]]"),
        aggregate("avg(float8) float8", floating, "[[avg(_0)]]"),
        aggregate(
            "avg(interval) interval",
            Accumulator(acc.interval_pair, acc.interval_pair_step, acc.average_interval),
        ),
    ]


def _spread_overloads(name: str, sample: bool, root: bool) -> list[Function]:
    def finish(count: int, total: Any, squares: Any) -> Decimal | None:
        if not count:
            return None
        return acc.compute_spread(count, Decimal(total), Decimal(squares), sample, root)

    integer = PartialAggregate(
        ("count(_0)", "sum(_0)", "sum(CAST(_0 AS HUGEINT) * CAST(_0 AS HUGEINT))"), finish
    )
    exact = PartialAggregate(("count(_0)", "sum(_0)", "sum(_0 * _0)"), finish)
    whole = Accumulator(
        acc.integer_moments, acc.integer_moments_step, acc.exact_spread(sample, root)
    )
    decimal = Accumulator(
        acc.numeric_moments, acc.numeric_moments_step, acc.exact_spread(sample, root)
    )
    floating = Accumulator(
        acc.float_moments, acc.float_moments_step, acc.float_spread(sample, root)
    )
    # DuckDB's population forms make 0 of a single NaN or infinity.
    sql = f"[[{'stddev' if root else 'var'}_samp(CAST(_0 AS DOUBLE))]]" if sample else None
    return [
        *(aggregate(f"{name}({width}) numeric", whole, partial=integer) for width in _INTEGERS),
        aggregate(f"{name}(numeric) numeric", decimal, partial=exact),
        aggregate(f"{name}(float4) float8", floating, sql),
        aggregate(f"{name}(float8) float8", floating, sql),
    ]


def _spread_functions() -> list[Function]:
    names = (
        ("variance", True, False),
        ("var_samp", True, False),
        ("var_pop", False, False),
        ("stddev", True, True),
        ("stddev_samp", True, True),
        ("stddev_pop", False, True),
    )
    return [
        function
        for name, sample, root in names
        for function in _spread_overloads(name, sample, root)
    ]


def _min_max_functions() -> list[Function]:
    """min and max by the type's own `<`, for the types PostgreSQL has them for."""
    less: dict[str, Callable[[Any, Any], bool]] = {}
    for function in comparison.FUNCTIONS:
        if function.name == "<" and function.arguments[0] == function.arguments[1]:
            assert callable(function.python)
            less[function.signature[2:].split(",")[0]] = function.python
    functions = []
    names = (
        "int2 int4 int8 float4 float8 numeric text bpchar bytea date time timestamp timestamptz "
        "interval anyarray oid"
    )
    for name in names.split():
        before = less[name]
        for which, form in (("min", before), ("max", lambda a, b, f=before: f(b, a))):
            plain = name not in ("bpchar", "interval", "anyarray", "numeric", "oid")
            sql: Any = f"[[{which}(_0)]]" if plain else None
            bounds = None
            if name == "numeric":
                bounds = lambda types: types[0]  # noqa: E731
                sql = when_bounded(f"[[{which}(_0)]]", bounds)
            signature = f"{which}({name}) {name}"
            accumulator = (
                acc.first_min_accumulator(form) if name == "bpchar" else acc.min_accumulator(form)
            )
            functions.append(aggregate(signature, accumulator, sql, bounds=bounds))
    return functions


def _fold_functions() -> list[Function]:
    every = acc.fold_accumulator(lambda left, right: left and right)
    some = acc.fold_accumulator(lambda left, right: left or right)
    functions = [
        aggregate("bool_and(bool) bool", every, "[[bool_and(_0)]]"),
        aggregate("every(bool) bool", every, "[[bool_and(_0)]]"),
        aggregate("bool_or(bool) bool", some, "[[bool_or(_0)]]"),
    ]
    bits = (("bit_and", operator.and_), ("bit_or", operator.or_), ("bit_xor", operator.xor))
    for name, form in bits:
        for width in _INTEGERS:
            signature = f"{name}({width}) {width}"
            functions.append(aggregate(signature, acc.fold_accumulator(form), f"[[{name}(_0)]]"))
    return functions


_COUNT = Accumulator(acc.zero_count, acc.count_step, acc.keep_state)

FUNCTIONS: tuple[Function, ...] = (
    aggregate("count() int8", _COUNT, "[[count(*)]]"),
    aggregate("count(any) int8", _COUNT, "[[count(_0)]]"),
    *_sum_functions(),
    *_average_functions(),
    *_spread_functions(),
    *_min_max_functions(),
    *_fold_functions(),
    aggregate(
        "string_agg(text,text) text",
        Accumulator(acc.no_state, acc.join_step, acc.join_text),
        strict=False,
    ),
    aggregate(
        "string_agg(bytea,bytea) bytea",
        Accumulator(acc.no_state, acc.join_step, acc.join_bytes),
        strict=False,
    ),
    aggregate(
        "array_agg(anynonarray) anyarray",
        Accumulator(acc.empty_list, acc.append_step, acc.array_or_null),
        "[[array_agg(_0)]]",
        strict=False,
    ),
    aggregate(
        "array_agg(anyarray) anyarray",
        Accumulator(acc.no_state, acc.refuse_arrays_step, acc.keep_state),
        strict=False,
    ),
    aggregate(
        "any_value(anyelement) anyelement",
        Accumulator(acc.no_state, acc.first_value_step, acc.keep_state),
        "[[any_value(_0)]]",
    ),
)
