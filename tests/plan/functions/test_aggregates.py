"""Every aggregate gives PostgreSQL's answer: stepped in Python, and by its SQL or partial form."""

from __future__ import annotations

import math

import pytest

from belvedere.plan.functions import FunctionKind, exceeds_duckdb_digits
from belvedere.plan.functions.core.function import Function
from belvedere.types import Kind
from tests.oracle.postgres import Postgres, Value
from tests.plan.functions.aggregate_cases import (
    Aggregation,
    aggregations,
    bounded_types,
    python_aggregate,
    sql_aggregate,
)
from tests.plan.functions.cases import overloads
from tests.plan.functions.compare import UNSUPPORTED, Finding, _fitted, _text, excluded
from tests.plan.functions.engines import Duck

FUNCTIONS = overloads(FunctionKind.AGGREGATE)


def findings(postgres: Postgres, duck: Duck, function: Function) -> list[Finding]:
    cases = aggregations(function)
    assert cases, function.signature
    expected = postgres.evaluate([case.expression for case in cases])
    found: list[Finding] = []
    for case, value in zip(cases, expected):
        got = python_aggregate(case)
        if isinstance(got, str):
            if got not in UNSUPPORTED:
                found.append(Finding("python", function.signature, case.expression, value, got))
            continue
        if got != value and not excluded("python", function):
            found.append(Finding("python", function.signature, case.expression, value, got))
        elif not excluded("sql", function):
            found += _sql_findings(postgres, duck, case, value)
    return found


def _sql_findings(postgres: Postgres, duck: Duck, case: Aggregation, value: Value) -> list[Finding]:
    found: list[Finding] = []
    if case.function.direct is not None:
        return found
    if case.result.kind is Kind.DOUBLE and any(
        _extreme(value) for row in case.values() for value in row
    ):
        return found
    for types in bounded_types(case.stepped):
        rows = [_fitted(row, types) for row in case.values()]
        kept = [row for row in rows if row is not None]
        expected = value
        if types != case.stepped:
            texts = tuple(tuple(_text(t, v) for t, v in zip(types, row)) for row in kept)
            bounded = Aggregation(case.function, case.types, case.result, (), texts)
            [expected] = postgres.evaluate([bounded.expression])
        got = sql_aggregate(duck, case, types, kept)
        if got is not None and not _same(case, expected, got):
            found.append(Finding("sql", case.function.signature, case.expression, expected, got))
    return found


def _extreme(value: object) -> bool:
    """PostgreSQL's float averages also sum squares and fail when those overflow; see exclusions."""
    return isinstance(value, float) and 1e150 < abs(value) < math.inf


def _same(case: Aggregation, expected: Value, got: Value) -> bool:
    if got.sqlstate == "22003" and exceeds_duckdb_digits(got.text or ""):
        return True
    if expected.sqlstate is not None or got.sqlstate is not None:
        return expected.sqlstate == got.sqlstate
    if (
        case.result.kind in (Kind.DOUBLE, Kind.REAL)
        and expected.text is not None
        and got.text is not None
    ):
        # DuckDB may add floats in another order.
        left, right = float(expected.text), float(got.text)
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9) or (
            left != left and right != right
        )
    return expected.text == got.text


@pytest.mark.parametrize("name", sorted({function.name for function in FUNCTIONS}))
def test_aggregate_equals_postgres(postgres: Postgres, duck: Duck, name: str) -> None:
    found = [
        f
        for function in FUNCTIONS
        if function.name == name
        for f in findings(postgres, duck, function)
    ]
    assert not found, "\n".join(map(str, found[:5]))
