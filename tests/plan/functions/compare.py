"""Holds generated calls against PostgreSQL: the Python form, and the SQL form in DuckDB."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

from belvedere.errors import Error
from belvedere.plan.functions import FunctionKind, exceeds_duckdb_digits, text_formatter
from belvedere.plan.functions.core.function import Function
from belvedere.types import Kind, SqlType, numeric_type
from tests.oracle.postgres import Postgres, Value
from tests.plan.functions.cases import Call, calls, literal, postgres_call
from tests.plan.functions.corpus import NUMERIC_BOUNDS
from tests.plan.functions.engines import Answer, Duck, python_answer, sql_query

EXCLUSIONS = tomllib.loads((Path(__file__).parent / "exclusions.toml").read_text())
UNSUPPORTED = {entry["message"] for entry in EXCLUSIONS["unsupported"]}
DIFFERENT = {(entry["engine"], entry["signature"]) for entry in EXCLUSIONS.get("different", ())}
_WIDE = Context(prec=500)


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference."""

    engine: str
    signature: str
    expression: str
    expected: Value
    got: Value | str

    def __str__(self) -> str:
        call = f"{self.engine} {self.signature}: {self.expression[:300]}"
        return f"{call}\n    expected {self.expected}\n    got {self.got}"


def excluded(engine: str, function: Function) -> bool:
    return (engine, function.signature) in DIFFERENT or ("both", function.signature) in DIFFERENT


def compare(postgres: Postgres, duck: Duck, functions: Iterable[Function]) -> list[Finding]:
    """Every difference over the generated calls of the functions."""
    findings: list[Finding] = []
    made = [call for function in functions for call in calls(function)]
    expected = postgres.evaluate([call.expression for call in made])
    groups: dict[tuple[Any, ...], list[tuple[Call, Value]]] = defaultdict(list)
    for call, value in zip(made, expected):
        answer = python_answer(call)
        if answer.unsupported in UNSUPPORTED:
            continue
        if not _same(value, answer, call.function.environment) and not excluded(
            "python", call.function
        ):
            shown = answer.value if answer.crash is None else answer.crash
            findings.append(
                Finding("python", call.function.signature, call.expression, value, shown)
            )
        groups[id(call.function), call.types, call.result].append((call, value))
    for items in groups.values():
        if items[0][0].function.kind is FunctionKind.SCALAR:
            findings += _compare_sql(postgres, duck, items)
    return findings


def _same(expected: Value, answer: Answer, environment: bool) -> bool:
    if answer.crash is not None:
        return False
    got = answer.value
    if environment:
        # The clock and the dice are not PostgreSQL's; their forms have tests of their own.
        return expected.type == got.type
    if expected.sqlstate is not None or got.sqlstate is not None:
        return expected.sqlstate == got.sqlstate
    return expected.type == got.type and expected.text == got.text


def _compare_sql(
    postgres: Postgres, duck: Duck, items: Sequence[tuple[Call, Value]]
) -> list[Finding]:
    call = items[0][0]
    if excluded("sql", call.function):
        return []
    if all(one.kind is not Kind.NUMERIC for one in call.types):
        return _compare_rows(
            duck,
            call,
            call.types,
            [(c.values(), v, c.expression) for c, v in items if _readable(c)],
        )
    findings = []
    for precision, scale in NUMERIC_BOUNDS:
        bound = numeric_type(precision, scale)
        types = tuple(bound if one.kind is Kind.NUMERIC else one for one in call.types)
        if sql_query(call, types) is None:
            continue
        rows = [
            row
            for c, _ in items
            if _readable(c) and (row := _fitted(c.values(), types)) is not None
        ]
        expressions = [
            postgres_call(call.function, [literal(t, _text(t, v)) for t, v in zip(types, row)])
            for row in rows
        ]
        expected = postgres.evaluate(expressions)
        findings += _compare_rows(duck, call, types, list(zip(rows, expected, expressions)))
    return findings


def _readable(call: Call) -> bool:
    try:
        call.values()
    except Error:
        return False
    return True


def _text(sql_type: SqlType, value: Any) -> str | None:
    return None if value is None else text_formatter(sql_type)(value)


def _fitted(values: Sequence[Any], types: Sequence[SqlType]) -> list[Any] | None:
    """The values at the scale of their bounds, or None when one does not fit exactly."""
    fitted: list[Any] = []
    for value, one in zip(values, types):
        if one.kind is Kind.NUMERIC and value is not None:
            scale = one.scale or 0
            if not value.is_finite() or value.adjusted() >= (one.precision or 0) - scale:
                return None
            at_scale = value.quantize(Decimal((0, (1,), -scale)), context=_WIDE)
            if at_scale != value:
                return None
            value = at_scale
        fitted.append(value)
    return fitted


def _compare_rows(
    duck: Duck,
    call: Call,
    types: Sequence[SqlType],
    rows: Sequence[tuple[Sequence[Any], Value, str]],
) -> list[Finding]:
    query = sql_query(call, types)
    if query is None or not rows:
        return []
    expected = [value for _, value, _ in rows]
    answers = duck.values(query, types, [values for values, _, _ in rows], call.result, expected)
    return [
        Finding(
            "sql", call.function.signature, f"{expression}  as  {query.sql('duckdb')}", value, got
        )
        for (_, value, expression), got in zip(rows, answers)
        if not _same_sql(value, got)
    ]


def _same_sql(expected: Value, got: Value) -> bool:
    if got.sqlstate == "0A000" and any(message in (got.text or "") for message in UNSUPPORTED):
        return True
    if got.sqlstate == "22003" and exceeds_duckdb_digits(got.text or ""):
        return True
    if expected.sqlstate is not None or got.sqlstate is not None:
        return expected.sqlstate == got.sqlstate
    return expected.text == got.text
