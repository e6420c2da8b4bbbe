"""SQL forms: arguments in place, evaluated once, errors carried by SQLSTATE."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from belvedere.plan.functions import (
    build_sql,
    duckdb_type,
    duckdb_udfs,
    exceeds_duckdb_digits,
    resolve,
    sqlstate_of,
)
from belvedere.plan.functions.core.sql_form import substitute_arguments
from belvedere.types import BIGINT, DOUBLE, INTEGER, NUMERIC, TEXT, SqlType, array_of, numeric_type
from tests.plan.functions.engines import Duck


def _sql(name: str, types: tuple[SqlType, ...], *arguments: str) -> exp.Expression:
    parsed = [sqlglot.parse_one(argument, dialect="duckdb") for argument in arguments]
    built = build_sql(resolve(name, types).function, types, parsed)
    assert built is not None
    return built


def _value(duck: Duck, tree: exp.Expression) -> object:
    return duck.connection.execute(f"SELECT {tree.sql('duckdb')}").fetchone()[0]


def test_argument_keeps_its_precedence(duck: Duck) -> None:
    tree = _sql("*", (INTEGER, INTEGER), "1 + 2", "3 + 4")
    assert _value(duck, tree) == 21


def test_argument_that_is_used_often_is_evaluated_once(duck: Duck) -> None:
    inner = _sql("*", (DOUBLE, DOUBLE), "2.0::DOUBLE", "3.0::DOUBLE")
    for _ in range(12):
        inner = _sql_tree("+", inner)
    text = inner.sql("duckdb")
    assert len(text) < 12_000  # written out it would have doubled with every step
    assert _value(duck, inner) == 6.0 + 12.0


def _sql_tree(name: str, left: exp.Expression) -> exp.Expression:
    types = (DOUBLE, DOUBLE)
    built = build_sql(
        resolve(name, types).function,
        types,
        [left, sqlglot.parse_one("1.0::DOUBLE", dialect="duckdb")],
    )
    assert built is not None
    return built


def test_bound_argument_still_raises_and_still_is_null(duck: Duck) -> None:
    overflow = _sql("+", (DOUBLE, DOUBLE), "1e308::DOUBLE + 0", "1e308::DOUBLE + 0")
    with pytest.raises(duckdb.Error) as raised:
        _value(duck, overflow)
    assert sqlstate_of(str(raised.value)) == "22003"
    assert _value(duck, _sql("+", (DOUBLE, DOUBLE), "NULL::DOUBLE + 0", "1.0::DOUBLE + 0")) is None


def test_decoration_goes_on_the_aggregate_itself() -> None:
    function = resolve("sum", (INTEGER,)).function

    def filtered(call: exp.Expression) -> exp.Expression:
        return exp.Filter(this=call, expression=exp.Where(this=sqlglot.parse_one("x > 1")))

    tree = build_sql(function, (INTEGER,), [sqlglot.column("x")], filtered)
    assert tree is not None
    assert tree.sql("duckdb") == "CAST((SUM(x) FILTER(WHERE x > 1)) AS BIGINT)"


def test_unbounded_numerics_have_no_sql_form() -> None:
    types = (NUMERIC, NUMERIC)
    columns = [sqlglot.column("a"), sqlglot.column("b")]
    assert build_sql(resolve("+", types).function, types, columns) is None
    bounded = (numeric_type(10, 2), numeric_type(10, 2))
    assert build_sql(resolve("+", types).function, bounded, columns) is not None
    assert build_sql(resolve("/", types).function, bounded, columns) is None


def test_numeric_bounds_follow_the_operation() -> None:
    price, rate = numeric_type(15, 2), numeric_type(16, 2)
    product = resolve("*", (NUMERIC, NUMERIC)).function
    assert product.bounds is not None
    assert product.bounds((price, rate)) == numeric_type(31, 4)
    assert product.bounds((numeric_type(31, 4), rate)) == numeric_type(38, 6)
    total = resolve("+", (NUMERIC, NUMERIC)).function
    assert total.bounds is not None
    assert total.bounds((price, numeric_type(10, 4))) == numeric_type(18, 4)
    assert total.bounds((numeric_type(38, 0), numeric_type(38, 38))) is None


def test_overflow_of_38_digits_is_told_from_overflow_of_the_type(duck: Duck) -> None:
    types = (numeric_type(38, 2), numeric_type(38, 2))
    function = resolve("*", (NUMERIC, NUMERIC)).function
    big = sqlglot.parse_one("99999999999999999999999.99::DECIMAL(38,2)", dialect="duckdb")
    tree = build_sql(function, types, [big, big.copy()])
    assert tree is not None
    with pytest.raises(duckdb.Error) as raised:
        _value(duck, tree)
    assert exceeds_duckdb_digits(str(raised.value))
    with pytest.raises(duckdb.Error) as raised:
        _value(duck, _sql("+", (BIGINT, BIGINT), "9223372036854775807::BIGINT", "1::BIGINT"))
    assert not exceeds_duckdb_digits(str(raised.value))
    assert sqlstate_of(str(raised.value)) == "22003"


def test_types_that_duckdb_cannot_hold_are_none() -> None:
    assert duckdb_type(NUMERIC) is None
    assert duckdb_type(numeric_type(39, 2)) is None
    assert duckdb_type(numeric_type(5, -2)) is None
    assert duckdb_type(array_of(NUMERIC)) is None
    assert duckdb_type(array_of(TEXT)) == "VARCHAR[]"


def test_every_python_form_named_in_sql_is_listed() -> None:
    tree = substitute_arguments(
        "belvedere_lpad_text_int4_text(_0, _1, _2)", [sqlglot.column(c) for c in "abc"]
    )
    names = {node.name.lower() for node in tree.find_all(exp.Anonymous)}
    assert names <= set(duckdb_udfs())


def test_unknown_exception_has_no_sqlstate() -> None:
    assert sqlstate_of("Binder Error: no such column") is None
