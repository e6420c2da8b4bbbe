"""Expressions over Arrow columns answer as PostgreSQL, or leave rows to the Python form."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

import belvedere
from belvedere.catalog.catalog import empty_catalog
from belvedere.database import Database
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext
from belvedere.execution.spark import operators
from belvedere.execution.spark.arrow_kernels import (
    ColumnFunction,
    KernelFailure,
    compile_columnar,
)
from belvedere.execution.spark.native_functions import scalar_form
from belvedere.execution.spark.operators import ComputeTask, TaskFailure, run_without_store
from belvedere.execution.spark.types import NotNative, to_array, to_values
from belvedere.interfaces.dbapi import Connection
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.functions import FunctionKind
from belvedere.plan.functions.core.function import Function
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.types import BIGINT, Row, SqlType
from tests.execution.spark.test_native_functions import bounded
from tests.oracle.postgres import Postgres
from tests.oracle.postgres import postgres as postgres
from tests.plan.functions.cases import SEED, calls, literal, overloads, postgres_call
from tests.plan.functions.compare import _fitted, _readable, _text, excluded
from tests.plan.functions.engines import ENVIRONMENT, show

pytestmark = pytest.mark.slow

Rows = list[tuple[Any, ...]]


def never(_: e.Expression) -> object:
    raise AssertionError("there is no constant here")


def kernels() -> list[tuple[Function, tuple[SqlType, ...], SqlType, ColumnFunction, Rows]]:
    """Every scalar function that has a kernel, with argument rows over edge values."""
    found = []
    for function in overloads(FunctionKind.SCALAR):
        by_types: dict[Any, list[Any]] = defaultdict(list)
        for call in calls(function):
            by_types[call.types, call.result].append(call)
        for (declared, result), made in by_types.items():
            types = tuple(map(bounded, declared))
            columns = tuple(e.Column(i, one) for i, one in enumerate(types))
            try:
                _, form = scalar_form(function, types, result)
                whole = compile_columnar(e.Call(function, columns, result), types, never, form)
            except NotNative:
                continue
            if excluded("python", function):
                continue
            fitted = [_fitted(call.values(), types) for call in made if _readable(call)]
            rows = list(dict.fromkeys(tuple(row) for row in fitted if row is not None))
            if rows:
                found.append((function, types, form, whole, rows))
    return found


def over(whole: ColumnFunction, rows: Rows, types: tuple[SqlType, ...], form: SqlType) -> list[Any]:
    arrays = [to_array(list(some), one) for some, one in zip(zip(*rows), types)]
    return to_values(whole(arrays, len(rows)), form)


def test_every_kernel_answers_as_postgres_or_not_at_all(postgres: Postgres) -> None:
    differences, answered, left, names = [], 0, 0, set()
    for function, types, form, whole, rows in kernels():
        texts = [
            postgres_call(function, [literal(t, _text(t, v)) for t, v in zip(types, row)])
            for row in rows
        ]
        for row, expected in zip(rows, postgres.evaluate(texts)):
            try:
                (value,) = over(whole, [row], types, form)
            except KernelFailure:
                left += 1
                continue
            got = show(form, value)
            answered += 1
            names.add(function.name)
            if expected.sqlstate is not None or got != expected.text:
                differences.append((function.signature, row, expected, got))
    assert not differences, f"seed {SEED}: {differences[:10]}"
    assert answered > 1500, answered
    assert left > 50, "errors are left to the Python form"
    assert {"+", "-", "*", "/", "%", "=", "<", ">=", "||", "length", "cast", "abs"} <= names


def test_a_batch_answers_as_its_rows_do() -> None:
    """Many rows at once, NULLs among them, as one by one."""
    for function, types, form, whole, rows in kernels():
        good = []
        for row in rows:
            try:
                good.append((row, over(whole, [row], types, form)[0]))
            except KernelFailure:
                continue
        if good:
            together = over(whole, [row for row, _ in good], types, form)
            expected = [value for _, value in good]
            assert repr(together) == repr(expected), function.signature


# -- what is made of several, against the Python form ----------------------------------------------

TABLE = """
CREATE TABLE t (id bigint PRIMARY KEY, big bigint, small int, price numeric(12, 2), word text,
    flag boolean, d double precision, rate numeric(10, 4), day date, moment timestamp)
"""
EXPRESSIONS = (
    "flag AND big > 3",
    "flag OR big / small > 3",
    "NOT (flag AND word = 'a')",
    "big <> 0 AND small / big > 1",
    "CASE WHEN small <> 0 THEN big % small WHEN flag THEN 1 ELSE 0 END",
    "CASE WHEN flag THEN price END > 1",
    "CASE word WHEN 'a' THEN 1 WHEN 'ab' THEN 2 ELSE 3 END",
    "coalesce(big, small, 9)",
    "coalesce(word, 'none') || word",
    "small IN (0, 2, NULL)",
    "word NOT IN ('a', 'b')",
    "big IN (0, 7)",
    "big IS DISTINCT FROM small",
    "word IS NOT DISTINCT FROM 'a'",
    "word IS NOT DISTINCT FROM NULL",
    "flag IS TRUE",
    "flag IS NOT TRUE",
    "flag IS NOT FALSE",
    "(big > small) IS UNKNOWN",
    "price IS NOT NULL",
    "price > 1.255",
    "price * rate > 10",
    "price + rate <= small",
    "price - 0.5 = rate",
    "abs(small) + length(word)",
    "-big",
    "big + 1",
    "small::bigint * 3",
    "price < big",
    "d > 1",
    "d <> d",
    "day < date '2026-01-02'",
    "moment >= timestamp '2026-01-01 10:00:00'",
    "day::timestamp <= moment",
    "small & 3 | 1",
)
VALUES: dict[str, tuple[Any, ...]] = {
    "big": (None, 0, 1, -1, 7, 2**63 - 1, -(2**63)),
    "small": (None, 0, 2, -3, 2**31 - 1, -(2**31)),
    "price": (None, "0", "1.25", "1.26", "-9999999999.99"),
    "word": (None, "", "a", "ab", "b", "\u00fc"),
    "flag": (None, True, False),
    "d": (None, 0.0, -0.0, 1.5, float("inf"), float("nan")),
    "rate": (None, "0.75", "8.0001", "-999999.9999"),
    "day": (None, "2026-01-01", "2026-01-02", "9999-12-31"),
    "moment": (None, "2026-01-01 10:00:00", "2026-01-02 00:00:00", "0001-01-01"),
}


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with belvedere.connect(":memory:", autocommit=True) as made:
        made.execute(TABLE)
        yield made


def random_rows(connection: Connection, count: int) -> Iterator[Row]:
    """Stored rows: values of the right types."""
    rng = random.Random(f"columnar {SEED}")
    connection.execute("DELETE FROM t")
    for id_ in range(count):
        row = [id_, *(rng.choice(some) for some in VALUES.values())]
        connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(row))})", row)
    return iter(connection.execute("SELECT * FROM t").fetchall())


def bound(connection: Connection, text: str) -> tuple[e.Expression, tuple[SqlType, ...]]:
    host = connection.session.host
    assert isinstance(host, Database)
    plan = bind_simplified_definition(host.catalog, f"SELECT {text} AS x FROM t")
    project = next(one for one in transform.walk_plan(plan) if isinstance(one, n.Project))
    scan = next(one for one in transform.walk_plan(plan) if isinstance(one, n.Scan))
    return project.expressions[0], tuple(one.type for one in scan.fields)


def computed(
    expression: e.Expression, types: tuple[SqlType, ...], rows: list[Row], slots: Sequence[int]
) -> list[str]:
    """Values, or the error, of each row by itself; and at last of all rows without an error."""
    names = tuple(f"c{i}" for i in range(len(types)))
    step = ComputeTask((expression,), types, names, ("made",), (expression.type,), ENVIRONMENT)

    def values(some: list[Row]) -> list[Any]:
        arrays = [to_array([row[at] for row in some], one) for at, one in zip(slots, types)]
        (batch,) = step(iter([pa.RecordBatch.from_arrays(arrays, names=list(names))]))
        return to_values(batch.column("made"), expression.type)

    found, good = [], []
    for row in rows:
        try:
            found += map(repr, values([row]))
            good.append(row)
        except TaskFailure as failed:
            found.append(str(failed))
    return found + list(map(repr, values(good)))


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_of_several_parts_answer_as_the_python_form(
    connection: Connection, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = list(random_rows(connection, 60))
    expression, types = bound(connection, text)
    slots = slots_of(connection, text)
    whole = compile_columnar(expression, types, folded, expression.type)
    assert whole is not None
    by_columns = computed(expression, types, rows, slots)

    def none(*_: object) -> ColumnFunction:
        raise NotNative("on purpose")

    monkeypatch.setattr(operators, "compile_columnar", none)
    assert by_columns == computed(expression, types, rows, slots), f"seed {SEED}"


def slots_of(connection: Connection, text: str) -> tuple[int, ...]:
    host = connection.session.host
    assert isinstance(host, Database)
    plan = bind_simplified_definition(host.catalog, f"SELECT {text} AS x FROM t")
    return next(one for one in transform.walk_plan(plan) if isinstance(one, n.Scan)).slots


def folded(expression: e.Expression) -> object:
    catalog = empty_catalog()
    context = CompileContext(catalog, lambda node: compile_plan(catalog, node))
    return context.value_of(expression)(run_without_store(ENVIRONMENT))(())


def test_a_kernel_that_fails_leaves_only_its_batch_to_the_python_form(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    expression, types = bound(connection, "CASE WHEN big > 0 THEN 7 / big ELSE 0 END")
    looked: list[int] = []
    by_rows = operators._sparse_rows

    def counted(batch: pa.RecordBatch, *rest: Any) -> Iterator[Row]:
        looked.append(batch.num_rows)
        return by_rows(batch, *rest)

    monkeypatch.setattr(operators, "_sparse_rows", counted)
    step = ComputeTask((expression,), types, ("c0",), ("made",), (BIGINT,), ENVIRONMENT)
    given = [pa.RecordBatch.from_arrays([pa.array(some)], names=["c0"]) for some in ([1, 2], [0])]
    found = [batch.column("made").to_pylist() for batch in step(iter(given))]
    assert found == [[7, 3], [0]]
    assert looked == [1]
