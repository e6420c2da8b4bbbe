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

from belvedere.plan.functions import accumulators as acc
from belvedere.plan.functions import comparison
from belvedere.plan.functions.floats import add as add_float8
from belvedere.plan.functions.function import Accumulator, Function, Partial, Types, aggregate
from belvedere.plan.functions.numerics import parts, when_bounded
from belvedere.plan.functions.sqlform import DECIMAL_DIGITS_MAX
from belvedere.plan.values import decimals, interval_math
from belvedere.types import SqlType, numeric

_INTEGERS = ("int2", "int4", "int8")


def _sum_bounds(types: Types) -> SqlType | None:
    return numeric(DECIMAL_DIGITS_MAX, parts(types[0])[1])


def _whole_bounds(types: Types) -> SqlType | None:
    return numeric(DECIMAL_DIGITS_MAX, 0)


def _sums() -> list[Function]:
    bigint = acc.folding(acc.plus, acc.finish_bigint)
    to_bigint = "CAST([[sum(_0)]] AS BIGINT)"
    return [
        aggregate("sum(int2) int8", bigint, to_bigint),
        aggregate("sum(int4) int8", bigint, to_bigint),
        aggregate(
            "sum(int8) numeric",
            acc.folding(acc.plus, acc.finish_integer_numeric),
            "CAST([[sum(_0)]] AS DECIMAL(38,0))",
            bounds=_whole_bounds,
        ),
        aggregate(
            "sum(numeric) numeric",
            acc.folding(decimals.add),
            when_bounded("[[sum(_0)]]", _sum_bounds),
            bounds=_sum_bounds,
        ),
        aggregate("sum(float4) float4", acc.folding(acc.add_float4)),
        aggregate("sum(float8) float8", acc.folding(add_float8), "[[sum(_0)]]"),
        aggregate("sum(interval) interval", acc.folding(interval_math.add)),
    ]


def _averages() -> list[Function]:
    exact = Partial(("sum(_0)", "count(_0)"), acc.average_of)
    integer = Accumulator(acc.pair, acc.pair_step, acc.average_integer)
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


def _spread(name: str, sample: bool, root: bool) -> list[Function]:
    def finish(count: int, total: Any, squares: Any) -> Decimal | None:
        if not count:
            return None
        return acc.spread_of(count, Decimal(total), Decimal(squares), sample, root)

    integer = Partial(
        ("count(_0)", "sum(_0)", "sum(CAST(_0 AS HUGEINT) * CAST(_0 AS HUGEINT))"), finish
    )
    exact = Partial(("count(_0)", "sum(_0)", "sum(_0 * _0)"), finish)
    whole = Accumulator(acc.moments, acc.moments_step, acc.spread(sample, root))
    decimal = Accumulator(acc.numeric_moments, acc.numeric_moments_step, acc.spread(sample, root))
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


def _spreads() -> list[Function]:
    names = (
        ("variance", True, False),
        ("var_samp", True, False),
        ("var_pop", False, False),
        ("stddev", True, True),
        ("stddev_samp", True, True),
        ("stddev_pop", False, True),
    )
    return [function for name, sample, root in names for function in _spread(name, sample, root)]


def _extremes() -> list[Function]:
    """min and max by the type's own `<`, for the types PostgreSQL has them for."""
    less: dict[str, Callable[[Any, Any], bool]] = {}
    for function in comparison.FUNCTIONS:
        if function.name == "<" and function.arguments[0] == function.arguments[1]:
            assert callable(function.python)
            less[function.signature[2:].split(",")[0]] = function.python
    functions = []
    names = (
        "int2 int4 int8 float4 float8 numeric text bpchar bytea date time timestamp timestamptz "
        "interval anyarray"
    )
    for name in names.split():
        before = less[name]
        for which, form in (("min", before), ("max", lambda a, b, f=before: f(b, a))):
            plain = name not in ("bpchar", "interval", "anyarray", "numeric")
            sql: Any = f"[[{which}(_0)]]" if plain else None
            bounds = None
            if name == "numeric":
                bounds = lambda types: types[0]  # noqa: E731
                sql = when_bounded(f"[[{which}(_0)]]", bounds)
            signature = f"{which}({name}) {name}"
            accumulator = acc.lesser_first(form) if name == "bpchar" else acc.lesser(form)
            functions.append(aggregate(signature, accumulator, sql, bounds=bounds))
    return functions


def _folds() -> list[Function]:
    every = acc.folding(lambda left, right: left and right)
    some = acc.folding(lambda left, right: left or right)
    functions = [
        aggregate("bool_and(bool) bool", every, "[[bool_and(_0)]]"),
        aggregate("every(bool) bool", every, "[[bool_and(_0)]]"),
        aggregate("bool_or(bool) bool", some, "[[bool_or(_0)]]"),
    ]
    bits = (("bit_and", operator.and_), ("bit_or", operator.or_), ("bit_xor", operator.xor))
    for name, form in bits:
        for width in _INTEGERS:
            signature = f"{name}({width}) {width}"
            functions.append(aggregate(signature, acc.folding(form), f"[[{name}(_0)]]"))
    return functions


_COUNT = Accumulator(acc.zero, acc.count_step, acc.same)

FUNCTIONS: tuple[Function, ...] = (
    aggregate("count() int8", _COUNT, "[[count(*)]]"),
    aggregate("count(any) int8", _COUNT, "[[count(_0)]]"),
    *_sums(),
    *_averages(),
    *_spreads(),
    *_extremes(),
    *_folds(),
    aggregate(
        "string_agg(text,text) text",
        Accumulator(acc.nothing, acc.join_step, acc.join_text),
        strict=False,
    ),
    aggregate(
        "string_agg(bytea,bytea) bytea",
        Accumulator(acc.nothing, acc.join_step, acc.join_bytes),
        strict=False,
    ),
    aggregate(
        "array_agg(anynonarray) anyarray",
        Accumulator(acc.gather, acc.gather_step, acc.array_or_null),
        "[[array_agg(_0)]]",
        strict=False,
    ),
    aggregate(
        "array_agg(anyarray) anyarray",
        Accumulator(acc.nothing, acc.refuse_step, acc.same),
        strict=False,
    ),
    aggregate(
        "any_value(anyelement) anyelement",
        Accumulator(acc.nothing, acc.keep_step, acc.same),
        "[[any_value(_0)]]",
    ),
)
