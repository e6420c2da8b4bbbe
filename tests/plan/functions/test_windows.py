"""Every window function gives PostgreSQL's answer over random partitions and frames."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from belvedere.errors import InvalidInput
from belvedere.plan.functions import Function, FunctionKind, WindowPartition, build_sql
from belvedere.plan.functions.core.function import type_name
from belvedere.plan.functions.core.sql_form import duckdb_type, sqlstate_of
from belvedere.types import SqlType
from tests.oracle.postgres import Postgres, Value
from tests.plan.functions.cases import FULL, SEED, concrete, literal, overloads, parser_for
from tests.plan.functions.corpus import VALUES
from tests.plan.functions.engines import Duck, _column_type, _encode, show

FRAMES = {
    "": "peers",
    " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING": "near",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING": "all",
    " ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING": "after",
}
ROUNDS = 20 if FULL else 4
NUMBERS = {
    "ntile": ["1", "3", "4", "0"],
    "nth_value": ["1", "2", "5", "0"],
    "lag": ["1", "0", "-1", "3"],
    "lead": ["1", "0", "2", "-2"],
}


def _frame(kind: str, i: int, peers: list[int]) -> range:
    count = len(peers)
    if kind == "peers":
        return range(max(j for j in range(count) if peers[j] == peers[i]) + 1)
    if kind == "near":
        return range(max(i - 1, 0), min(i + 2, count))
    if kind == "all":
        return range(count)
    return range(min(i + 2, count), min(i + 4, count))


def _arguments(
    generator: random.Random, function: Function, types: tuple[SqlType, ...], count: int
) -> list[tuple[str | None, ...]]:
    # The count of ntile and nth_value and the offset of lag and lead is the same in every row.
    fixed = generator.choice(NUMBERS.get(function.name, ["1"]))
    rows: list[tuple[str | None, ...]] = []
    for _ in range(count):
        row: list[str | None] = []
        for position, one in enumerate(types):
            if position == (0 if function.name == "ntile" else 1):
                row.append(fixed)
            else:
                row.append(
                    None if generator.random() < 0.2 else generator.choice(VALUES[type_name(one)])
                )
        rows.append(tuple(row))
    return rows


def _python(
    function: Function,
    result: SqlType,
    types: tuple[SqlType, ...],
    rows: list[tuple[str | None, ...]],
    peers: list[int],
    frame: str,
) -> Value:
    values = [
        tuple(None if v is None else parser_for(t)(v) for t, v in zip(types, row)) for row in rows
    ]
    partition = WindowPartition(values, peers, [_frame(frame, i, peers) for i in range(len(rows))])
    assert callable(function.python)
    try:
        found = function.python(partition)
    except InvalidInput as error:
        return Value(None, None, error.sqlstate)
    return Value("text[]", str([show(result, value) for value in found]))


def _rows(types: tuple[SqlType, ...], rows: list[tuple[str | None, ...]], peers: list[int]) -> str:
    return ", ".join(
        f"({', '.join([str(i), str(peers[i]), *(literal(t, v) for t, v in zip(types, row))])})"
        for i, row in enumerate(rows)
    )


def _sql(
    duck: Duck,
    function: Function,
    result: SqlType,
    types: tuple[SqlType, ...],
    rows: list[tuple[str | None, ...]],
    peers: list[int],
    frame: str,
) -> Value | None:
    def over(call: exp.Expression) -> exp.Expression:
        return sqlglot.parse_one(f"{call.sql('duckdb')} OVER (ORDER BY k{frame})", dialect="duckdb")

    query = build_sql(function, types, [sqlglot.column(f"c{i}") for i in range(len(types))], over)
    if query is None:
        return None
    columns = [
        pa.array(
            [None if row[i] is None else _encode(t, parser_for(t)(row[i])) for row in rows],
            type=_column_type(t),
        )
        for i, t in enumerate(types)
    ]
    names = [*(f"c{i}" for i in range(len(types))), "k", "position"]
    table = pa.table([*columns, pa.array(peers), pa.array(range(len(rows)))], names=names)
    duck.connection.register("arguments", table)
    inner = ", ".join(
        [*(f"CAST(c{i} AS {duckdb_type(t)}) AS c{i}" for i, t in enumerate(types)), "k", "position"]
    )
    try:
        statement = (
            f"SELECT {query.sql('duckdb')} FROM (SELECT {inner} FROM arguments) ORDER BY position"
        )
        found = duck.connection.sql(statement).to_arrow_table().column(0).to_pylist()
    except Exception as error:  # noqa: BLE001  judged by its SQLSTATE
        return Value(None, str(error)[:200], sqlstate_of(str(error)) or "?")
    return Value("text[]", str([show(result, value) for value in found]))


@pytest.mark.parametrize("function", overloads(FunctionKind.WINDOW), ids=lambda f: f.signature)
@pytest.mark.parametrize("frame", FRAMES)
def test_window_function_equals_postgres(
    postgres: Postgres, duck: Duck, function: Function, frame: str
) -> None:
    generator = random.Random(f"{SEED} {function.signature} {frame}")
    ranking = function.name in (
        "row_number",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "ntile",
    )
    for types, result in concrete(function):
        if any(type_name(one) in ("numeric", "interval") for one in types):
            continue  # nothing in these forms depends on the type of the values
        for _ in range(ROUNDS):
            peers = [0, 0, 1, 2, 2, 2, 3][: generator.randint(1, 7)]
            if not ranking:
                peers = list(range(len(peers)))  # a total order, so that the answer is one
            elif function.name in ("row_number", "ntile"):
                peers = list(range(len(peers)))
            rows = _arguments(generator, function, types, len(peers))
            columns = ", ".join(f"c{i}" for i in range(len(types)))
            names = ", ".join(["position", "k", *(f"c{i}" for i in range(len(types)))])
            expression = (
                "(SELECT array_agg(w::text ORDER BY position) FROM (SELECT position, "
                f"{function.name}({columns}) OVER (ORDER BY k{frame}) w "
                f"FROM (VALUES {_rows(types, rows, peers)}) t({names})) s)"
            )
            [expected] = postgres.evaluate([expression])
            wanted = (
                expected
                if expected.sqlstate
                else Value("text[]", str(_elements(postgres, expression)))
            )
            assert _python(function, result, types, rows, peers, FRAMES[frame]) == wanted, (
                expression
            )
            got = _sql(duck, function, result, types, rows, peers, frame)
            if got is not None and not (wanted.sqlstate and got.sqlstate):
                assert got.text == wanted.text, expression


def _elements(postgres: Postgres, expression: str) -> list[str | None]:
    return list(postgres.run(f"SELECT {expression}").rows[0][0])
