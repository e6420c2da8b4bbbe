"""The forms in Spark SQL, over edge values: each answers as PostgreSQL, or fails as it does."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from belvedere.errors import Error
from belvedere.execution.spark.dataframes import FrameBuilder
from belvedere.execution.spark.failures import translate_failure
from belvedere.execution.spark.native_functions import _find_aggregate_form, _find_scalar_form
from belvedere.execution.spark.types import lower_constant, to_values
from belvedere.plan.functions import FunctionKind
from belvedere.plan.functions.core.function import Function
from belvedere.types import Kind, SqlType, numeric_type
from tests.oracle.postgres import Postgres, Value
from tests.oracle.postgres import postgres as postgres
from tests.plan.functions.aggregate_cases import aggregations
from tests.plan.functions.cases import (
    SEED,
    calls,
    literal,
    overloads,
    parser_for,
    postgres_call,
)
from tests.plan.functions.compare import _fitted, _readable, _text, excluded
from tests.plan.functions.engines import ENVIRONMENT, show

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

BOUNDS = numeric_type(15, 4)


@dataclass(frozen=True, slots=True)
class Case:
    """One native form over argument rows, with what PostgreSQL says of each."""

    function: Function
    template: str
    result: SqlType
    rows: tuple[tuple[Any, ...], ...]
    expected: tuple[Value, ...]


def bounded(sql_type: SqlType) -> SqlType:
    return BOUNDS if sql_type.kind is Kind.NUMERIC else sql_type


@pytest.fixture(scope="module")
def cases(postgres: Postgres) -> dict[tuple[SqlType, ...], list[Case]]:
    """Every scalar form, by the types of its arguments."""
    found: dict[tuple[SqlType, ...], list[Case]] = defaultdict(list)
    for function in overloads(FunctionKind.SCALAR):
        by_types: dict[Any, list[Any]] = defaultdict(list)
        for call in calls(function):
            by_types[call.types, call.result].append(call)
        for (declared, result), made in by_types.items():
            types = tuple(map(bounded, declared))
            form = _find_scalar_form(function.name, types, result)
            if form is None or excluded("python", function):
                continue
            fitted = [_fitted(call.values(), types) for call in made if _readable(call)]
            rows = [tuple(row) for row in fitted if row is not None]
            texts = [
                postgres_call(function, [literal(t, _text(t, v)) for t, v in zip(types, row)])
                for row in rows
            ]
            expected = postgres.evaluate(texts)
            if rows:
                found[types].append(Case(function, *form, tuple(rows), tuple(expected)))
    return found


Cases = dict[tuple[SqlType, ...], list[Case]]


def test_scalar_forms_answer_as_postgres(spark: SparkSession, cases: Cases) -> None:
    differences, tried = [], 0
    for types, several in cases.items():
        frames = FrameBuilder(spark, ENVIRONMENT)
        rows = sorted({row for case in several for row in case.rows}, key=repr)
        frame = frames.local_frame([(*row, i) for i, row in enumerate(rows)], (*types, _BIGINT))
        columns = [one.text for one in frame.columns]
        places = {row: i for i, row in enumerate(rows)}
        texts = []
        for case in several:
            good = [places[row] for row, v in zip(case.rows, case.expected) if v.sqlstate is None]
            listed = ", ".join(map(str, good)) or "-1"
            text = case.template.format(*columns)
            texts.append(f"CASE WHEN {columns[-1]} IN ({listed}) THEN {text} END AS `{len(texts)}`")
        table = frame.data.selectExpr(*texts, f"{columns[-1]} AS place").orderBy("place").toArrow()
        for number, case in enumerate(several):
            values = to_values(table.column(number).combine_chunks(), case.result)
            for row, expected in zip(case.rows, case.expected):
                if expected.sqlstate is not None:
                    continue
                tried += 1
                got = show(case.result, values[places[row]])
                if got != expected.text:
                    differences.append((case.function.signature, row, expected.text, got))
    assert tried > 2000
    assert not differences, f"seed {SEED}: {differences[:10]}"


def test_the_forms_are_those_of_the_page(cases: Cases) -> None:
    """Every function that docs/views_on_spark.md says to be Spark's own has a form."""
    named = {case.function.name for several in cases.values() for case in several}
    assert named >= {
        *("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "mod", "&", "|", "#", "~"),
        *("abs", "round", "floor", "ceil", "cast", "greatest", "least", "nullif", "||", "length"),
        *("replace", "starts_with", "strpos", "position", "reverse", "md5", "octet_length"),
        *("bit_length", "btrim", "ltrim", "rtrim"),
    }


def test_scalar_forms_fail_where_postgres_fails(spark: SparkSession, cases: Cases) -> None:
    from pyspark.errors import PySparkException

    known: set[tuple[str, str | None]] = set()
    for types, several in cases.items():
        for case in several:
            bad = [
                (row, value.sqlstate)
                for row, value in zip(case.rows, case.expected)
                if value.sqlstate is not None
            ]
            for row, sqlstate in bad[:1]:
                if (case.function.name, sqlstate) in known:
                    continue
                known.add((case.function.name, sqlstate))
                texts = [lower_constant(value, one).text for value, one in zip(row, types)]
                with pytest.raises(PySparkException) as failed:
                    spark.sql(f"SELECT {case.template.format(*texts)}").collect()
                assert translate_failure(failed.value).sqlstate == sqlstate, (
                    case.function.signature,
                    row,
                )
    assert len(known) > 7


@dataclass(frozen=True, slots=True)
class Fold:
    """One native aggregate over some rows."""

    function: Function
    template: str
    result: SqlType
    rows: tuple[tuple[Any, ...], ...]


def folds() -> dict[SqlType, list[Fold]]:
    """Every aggregate form of one argument, by its type."""
    found: dict[SqlType, list[Fold]] = defaultdict(list)
    for function in overloads(FunctionKind.AGGREGATE):
        for one in aggregations(function)[:6]:
            types = tuple(map(bounded, one.types))
            form = _find_aggregate_form(function.name, types, one.result)
            if form is None or len(types) != 1:
                continue
            try:
                rows = [_values(row, types) for row in one.rows]
            except Error:
                continue
            kept = tuple(tuple(row) for row in rows if row is not None)
            if kept:
                found[types[0]].append(Fold(function, *form, kept))
    return found


def test_aggregate_forms_answer_as_postgres(spark: SparkSession, postgres: Postgres) -> None:
    differences, tried = [], 0
    for sql_type, several in folds().items():
        rows = [(*row, n) for n, fold in enumerate(several) for row in fold.rows]
        frame = FrameBuilder(spark, ENVIRONMENT).local_frame(rows, (sql_type, _BIGINT))
        argument, group = (one.text for one in frame.columns)
        forms = {fold.template: fold.result for fold in several}
        texts = [f.expr(text.format(argument)).alias(f"`{text}`") for text in forms]
        table = frame.data.groupBy(f.expr(group).alias("n")).agg(*texts).toArrow()
        place = {n: i for i, n in enumerate(table.column("n").to_pylist())}
        columns = {
            text: to_values(table.column(1 + i).combine_chunks(), result)
            for i, (text, result) in enumerate(forms.items())
        }
        wanted = postgres.evaluate([_in_postgres(fold, sql_type) for fold in several])
        for n, (fold, expected) in enumerate(zip(several, wanted)):
            tried += 1
            got = show(fold.result, columns[fold.template][place[n]])
            if got != expected.text:
                differences.append((fold.function.signature, fold.rows, expected.text, got))
    assert tried > 100
    assert not differences, f"seed {SEED}: {differences[:10]}"


def _in_postgres(fold: Fold, sql_type: SqlType) -> str:
    listed = ", ".join(f"({literal(sql_type, _text(sql_type, v))})" for (v,) in fold.rows)
    return f"(SELECT {fold.function.name}(v) FROM (VALUES {listed}) q(v))"


_BIGINT = SqlType(Kind.BIGINT)


def _values(texts: tuple[str | None, ...], types: tuple[SqlType, ...]) -> list[Any] | None:
    values = [None if t is None else parser_for(one)(t) for t, one in zip(texts, types)]  # type: ignore[operator]
    if any(isinstance(v, Decimal) and not v.is_finite() for v in values):
        return None
    return _fitted(values, types)
