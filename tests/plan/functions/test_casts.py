"""Casts with type modifiers, in each context, give what PostgreSQL gives."""

from __future__ import annotations

import itertools

import pytest
import sqlglot

from belvedere.errors import Error, InvalidInput
from belvedere.plan.functions import CastContext, build_sql, cast_function, is_relabelling
from belvedere.plan.functions.core.function import Function, type_by_name
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    JSON,
    NUMERIC,
    TEXT,
    UNKNOWN,
    UUID,
    VARCHAR,
    SqlType,
    array_of,
    char_type,
    numeric_type,
    varchar_type,
)
from tests.oracle.postgres import Postgres, Value
from tests.plan.functions.cases import literal, parser_for
from tests.plan.functions.compare import _same_sql
from tests.plan.functions.engines import Duck, show

MODIFIED = [
    varchar_type(3), varchar_type(1), char_type(3), char_type(6),
    numeric_type(5, 2), numeric_type(3), numeric_type(10, 4), numeric_type(2, 2),
]  # fmt: skip
TEXTS = [
    "",
    "a",
    "abc",
    "abcd",
    "abc   ",
    "  x",
    "é😀z!",
    "12.345",
    "-0.005",
    "999.995",
    "1e2",
    "NaN",
]
SOURCES = {
    "text": TEXTS,
    "varchar": TEXTS,
    "bpchar": ["a", "abcd", "12.3"],
    "int4": ["0", "7", "-12345", "2147483647"],
    "numeric": ["0", "0.005", "-0.005", "12.345", "99999.99999", "999.995", "NaN", "Infinity"],
    "float8": ["0.005", "2.675", "1e10", "-0.1", "NaN", "Infinity"],
    "bool": ["true", "false"],
    "date": ["2024-02-29"],
    "interval": ["1 mon"],
}
CASES = [
    (source, text, target)
    for source, texts in SOURCES.items()
    for text in texts
    for target in MODIFIED
]


def _type(name: str) -> SqlType:
    found = type_by_name(name)
    assert isinstance(found, SqlType)
    return char_type(5) if name == "bpchar" else found


def _applied(function: Function, target: SqlType, value: object) -> Value:
    assert callable(function.python)
    try:
        return Value(None, show(target, function.python(value)))
    except Error as error:
        return Value(None, None, error.sqlstate)


def _cast(source: str, text: str, target: SqlType, context: CastContext) -> Value:
    given = _type(source)
    try:
        function = cast_function(given, target, context)
    except Error as error:
        return Value(None, None, error.sqlstate)
    return _applied(function, target, parser_for(given)(text))


def test_explicit_casts_cut_or_round_as_in_postgres(postgres: Postgres) -> None:
    expressions = [f"({literal(_type(s), text)})::{target}" for s, text, target in CASES]
    wrong = []
    for (source, text, target), value in zip(CASES, postgres.evaluate(expressions)):
        got = _cast(source, text, target, CastContext.EXPLICIT)
        if (got.sqlstate, got.text) != (value.sqlstate, value.text):
            wrong.append((source, text, str(target), got, value))
    assert not wrong, wrong[:5]


def test_assignments_refuse_what_postgres_refuses(postgres: Postgres) -> None:
    wrong = []
    for i, target in enumerate(MODIFIED):
        postgres.run(f"CREATE TEMP TABLE assigned_{i} (v {target})")
        for source, text, wanted in CASES:
            if wanted is not target:
                continue
            value = literal(_type(source), text)
            outcome = postgres.run(f"INSERT INTO assigned_{i} VALUES ({value}) RETURNING v::text")
            expected = outcome.rows[0][0] if outcome.rows else None
            got = _cast(source, text, target, CastContext.ASSIGNMENT)
            if (got.sqlstate, got.text) != (outcome.sqlstate, expected):
                wrong.append((source, text, str(target), got, outcome))
        postgres.run(f"DROP TABLE assigned_{i}")
    assert not wrong, wrong[:5]


def test_modified_casts_in_duckdb(postgres: Postgres, duck: Duck) -> None:
    wrong = []
    bounds = {"numeric": numeric_type(15, 6)}
    for source, target in itertools.product(SOURCES, MODIFIED):
        given = bounds.get(source, _type(source))
        for context in (CastContext.EXPLICIT, CastContext.ASSIGNMENT):
            try:
                function = cast_function(given, target, context)
            except InvalidInput:
                continue
            query = build_sql(function, (given,), [sqlglot.column("c0")])
            if query is None:
                continue
            texts = [
                t for t in SOURCES[source] if t not in ("NaN", "Infinity") or source != "numeric"
            ]
            rows = [[_fit(given, parser_for(given)(text))] for text in texts]
            expected = [_applied(function, target, row[0]) for row in rows]
            answers = duck.values(query, (given,), rows, target, expected)
            wrong += [
                (str(given), str(target), context, text, got, want)
                for text, got, want in zip(texts, answers, expected)
                if not _same_sql(want, got)
            ]
    assert not wrong, wrong[:5]


def _fit(given: SqlType, value: object) -> object:
    if given.precision is None:
        return value
    form = cast_function(NUMERIC, given).python
    assert callable(form)
    return form(value)


@pytest.mark.parametrize(
    ("source", "target", "context", "sqlstate"),
    [
        (JSON, INTEGER, CastContext.EXPLICIT, "42846"),
        (UUID, BIGINT, CastContext.EXPLICIT, "42846"),
        (TEXT, INTEGER, CastContext.ASSIGNMENT, "42804"),
        (NUMERIC, INTEGER, CastContext.IMPLICIT, "42804"),
        (BOOLEAN, INTEGER, CastContext.ASSIGNMENT, "42804"),
        (array_of(UUID), array_of(INTEGER), CastContext.EXPLICIT, "42846"),
    ],
)
def test_missing_casts_are_refused(
    source: SqlType, target: SqlType, context: CastContext, sqlstate: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        cast_function(source, target, context)
    assert raised.value.sqlstate == sqlstate


def test_arrays_are_cast_by_element() -> None:
    form = cast_function(array_of(TEXT), array_of(INTEGER)).python
    assert callable(form)
    assert form(["1", None, " 3 "]) == [1, None, 3]
    with pytest.raises(InvalidInput) as raised:
        form(["x"])
    assert raised.value.sqlstate == "22P02"


def test_untyped_literals_are_read_in_any_context() -> None:
    form = cast_function(UNKNOWN, numeric_type(4, 1), CastContext.IMPLICIT).python
    assert callable(form)
    assert str(form("12.35")) == "12.4"
    array = cast_function(UNKNOWN, array_of(DOUBLE), CastContext.IMPLICIT).python
    assert callable(array)
    assert array("{1,NULL,2.5}") == [1.0, None, 2.5]


def test_only_casts_that_change_nothing_may_be_left_out() -> None:
    assert is_relabelling(VARCHAR, TEXT)
    assert is_relabelling(varchar_type(3), TEXT)
    assert is_relabelling(INTEGER, INTEGER)
    assert not is_relabelling(TEXT, varchar_type(3))
    assert not is_relabelling(char_type(3), TEXT)
