"""Generated inputs of every aggregate, and the three ways to compute each one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from belvedere.errors import Error, Unsupported
from belvedere.plan.functions import Accumulator, build_sql
from belvedere.plan.functions.core.duckdb_udf import _column_decoder
from belvedere.plan.functions.core.function import Function, type_name
from belvedere.plan.functions.core.sql_form import (
    duckdb_type,
    sqlstate_of,
    substitute_arguments,
)
from belvedere.plan.functions.logic.comparison import element_key
from belvedere.types import Kind, SqlType, numeric_type
from tests.oracle.postgres import Value
from tests.plan.functions.cases import FULL, SEED, concrete, literal, parser_for
from tests.plan.functions.corpus import VALUES
from tests.plan.functions.engines import Duck, _column_type, _encode, show

ROUNDS = 60 if FULL else 10
FRACTIONS = {
    "float8": ["0", "0.25", "0.5", "1", "0.333", "1.5"],
    "float8[]": ["{0,0.5,1}", "{0.25}", "{}"],
}

Rows = list[tuple[str | None, ...]]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate over some rows of argument texts."""

    function: Function
    types: tuple[SqlType, ...]
    result: SqlType
    direct: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]

    @property
    def stepped(self) -> tuple[SqlType, ...]:
        return self.types[self.function.direct or 0 :]

    @property
    def expression(self) -> str:
        name = self.function.name
        columns = [f"c{i}" for i in range(len(self.stepped))]
        if self.function.direct is not None:
            direct = ", ".join(literal(t, d) for t, d in zip(self.types, self.direct))
            call = f'pg_catalog."{name}"({direct}) WITHIN GROUP (ORDER BY {", ".join(columns)})'
        elif not columns:
            call = f"{name}(*)"
        else:
            call = f'pg_catalog."{name}"({", ".join(columns)} ORDER BY position)'
        rows = self.rows or (tuple(None for _ in self.stepped),)
        values = ", ".join(
            f"({', '.join([str(i), *(literal(t, v) for t, v in zip(self.stepped, row))])})"
            for i, row in enumerate(rows)
        )
        where = "" if self.rows else " WHERE false"
        names = ", ".join(["position", *columns])
        return f"(SELECT {call} FROM (VALUES {values}) t({names}){where})"

    def values(self) -> list[tuple[Any, ...]]:
        return [
            tuple(None if v is None else parser_for(t)(v) for t, v in zip(self.stepped, row))
            for row in self.rows
        ]


def aggregations(function: Function) -> list[Aggregation]:
    generator = random.Random(f"{SEED} {function.signature}")
    found: list[Aggregation] = []
    for types, result in concrete(function):
        direct_types = types[: function.direct or 0]
        stepped = types[function.direct or 0 :]
        for round_number in range(ROUNDS):
            direct = tuple(generator.choice(FRACTIONS[type_name(t)]) for t in direct_types)
            rows = _rows(generator, stepped, round_number)
            if function.direct is not None:
                rows = _without_ties(stepped, rows)
            found.append(Aggregation(function, types, result, direct, rows))
    return found


def _without_ties(
    types: Sequence[SqlType], rows: tuple[tuple[str | None, ...], ...]
) -> tuple[tuple[str | None, ...], ...]:
    """Equal values in one spelling only: which of 0.1 and 0.10 comes first is nobody's promise."""
    seen: dict[Any, tuple[str | None, ...]] = {}
    parse = parser_for(types[0])
    return tuple(
        row if row[0] is None else seen.setdefault(element_key(parse(row[0])), row) for row in rows
    )


def _rows(
    generator: random.Random, types: Sequence[SqlType], round_number: int
) -> tuple[tuple[str | None, ...], ...]:
    size = (0, 1, 2)[round_number] if round_number < 3 else generator.randint(1, 12)
    nulls = 0.15 if round_number % 3 else 0.0
    tame = round_number % 2  # values that do not overflow or poison the rest
    rows: Rows = []
    for _ in range(size):
        row: list[str | None] = []
        for one in types:
            values = VALUES[type_name(one)]
            if tame:
                values = [
                    v
                    for v in values
                    if len(v) < 12 and not v.strip("-").startswith(("N", "I", "9", "2147", "178"))
                ] or values
                values = [v for v in values if "e3" not in v]
            row.append(None if generator.random() < nulls else generator.choice(values))
        rows.append(tuple(row))
    return tuple(rows)


def python_aggregate(case: Aggregation) -> Value | str:
    function = case.function
    accumulator = function.specialize(case.types) if function.specialize else function.python
    assert isinstance(accumulator, Accumulator)
    try:
        rows = case.values()
        if function.direct is not None:
            rows = sorted(
                (row for row in rows if None not in row), key=lambda row: element_key(row[0])
            )
        state = accumulator.initial()
        for row in rows:
            if not (function.strict and None in row):
                state = accumulator.step(state, *row)
        direct = [parser_for(t)(d) for t, d in zip(case.types, case.direct)]
        return Value(str(case.result), show(case.result, accumulator.finish(state, *direct)))
    except Unsupported as error:
        return error.message
    except Error as error:
        return Value(None, None, error.sqlstate)


def bounded_types(types: Sequence[SqlType]) -> list[tuple[SqlType, ...]]:
    if all(one.kind is not Kind.NUMERIC for one in types):
        return [tuple(types)]
    return [
        tuple(numeric_type(*bounds) if one.kind is Kind.NUMERIC else one for one in types)
        for bounds in ((12, 2), (15, 0), (38, 4))
    ]


def sql_aggregate(
    duck: Duck, case: Aggregation, types: Sequence[SqlType], rows: Sequence[Sequence[Any]]
) -> Value | None:
    """The SQL form, or the partial form finished in Python; None when there is neither."""
    columns: list[exp.Expression] = [sqlglot.column(f"c{i}") for i in range(len(types))]
    whole = build_sql(case.function, tuple(types), columns)
    partial = case.function.partial
    if whole is None and (partial is None or any(duckdb_type(one) is None for one in types)):
        return None
    try:
        if whole is not None:
            found = _run(duck, [whole], types, rows)[0]
            return Value(str(case.result), show(case.result, _decoded(case.result, found)))
        assert partial is not None
        parts = _run(
            duck, [substitute_arguments(part, columns) for part in partial.columns], types, rows
        )
        value = partial.finish(*[part.to_pylist()[0] for part in parts])
        return Value(str(case.result), show(case.result, value))
    except Error as error:
        return Value(None, None, error.sqlstate)
    except duckdb.Error as error:
        return Value(None, str(error)[:200], sqlstate_of(str(error)) or "?")


def _decoded(sql_type: SqlType, column: Any) -> Any:
    if sql_type.kind is Kind.NUMERIC:
        return column.to_pylist()[0]
    return _column_decoder(sql_type)(column)[0]


def _run(
    duck: Duck,
    calls: Sequence[exp.Expression],
    types: Sequence[SqlType],
    rows: Sequence[Sequence[Any]],
) -> list[Any]:
    columns = [
        pa.array([_encode(t, row[i]) for row in rows], type=_column_type(t))
        for i, t in enumerate(types)
    ]
    table = pa.table(
        [*columns, pa.array(range(len(rows)), type=pa.int64())],
        names=[*(f"c{i}" for i in range(len(types))), "position"],
    )
    duck.connection.register("arguments", table)
    casts = ", ".join(
        [*(f"CAST(c{i} AS {duckdb_type(t)}) AS c{i}" for i, t in enumerate(types)), "position"]
    )
    text = ", ".join(f"{call.sql('duckdb')} AS r{i}" for i, call in enumerate(calls))
    result = duck.connection.sql(
        f"SELECT {text} FROM (SELECT {casts} FROM arguments ORDER BY position)"
    ).to_arrow_table()
    return [result.column(i) for i in range(len(calls))]
