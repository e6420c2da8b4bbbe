"""The Python form and the SQL form in DuckDB, answering generated calls in PostgreSQL's print."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from belvedere.errors import Error, Unsupported
from belvedere.plan.functions import (
    Environment,
    FunctionKind,
    build_sql,
    duckdb_udfs,
    text_formatter,
)
from belvedere.plan.functions.core.duckdb_udf import (
    _arrow_type,
    _column_decoder,
    register_udfs,
)
from belvedere.plan.functions.core.sql_form import duckdb_type, sqlstate_of
from belvedere.types import TEXT, Interval, Kind, SqlType, array_of
from belvedere.values.datetimes import EPOCH_UTC
from tests.oracle.postgres import Value
from tests.plan.functions.cases import FULL, Call

ENVIRONMENT = Environment(EPOCH_UTC, EPOCH_UTC, lambda: EPOCH_UTC, random.Random(1))


def show(sql_type: SqlType, value: Any) -> str | None:
    """A value as PostgreSQL's cast to text prints it."""
    if value is None:
        return None
    if sql_type.kind is Kind.BOOLEAN:
        return "true" if value else "false"
    if sql_type.kind is Kind.CHAR:
        return str(value).rstrip(" ")
    return text_formatter(sql_type)(value)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the Python form gave; `unsupported` is the message when it said so by name."""

    value: Value
    unsupported: str | None = None
    crash: str | None = None


def python_answer(call: Call) -> Answer:
    """What the Python form gives. An exception that is none of ours is a finding, not an abort."""
    try:
        return Answer(_python_value(call))
    except Unsupported as error:
        return Answer(Value(None, None, error.sqlstate), error.message)
    except Error as error:
        return Answer(Value(None, None, error.sqlstate))
    except Exception as error:  # noqa: BLE001  any crash is a finding
        return Answer(Value(None, None), crash=repr(error)[:200])


def _python_value(call: Call) -> Value:
    function = call.function
    values = call.values()
    is_set = function.kind is FunctionKind.SET
    if function.strict and None in values:
        return Value("text[]" if is_set else str(call.result), None)
    form = function.specialize(call.types) if function.specialize else function.python
    assert callable(form)
    result = form(*([ENVIRONMENT] if function.environment else []), *values)
    if is_set:
        shown = [show(call.result, one) for one in result]
        return Value("text[]", show(array_of(TEXT), shown) if shown else None)
    return Value(str(call.result), show(call.result, result))


# A statement per refused row is slow; so many of each SQLSTATE are tried per overload.
ERRORS_RUN_ALONE = 60 if FULL else 12


class Duck:
    """A DuckDB connection in PostgreSQL mode, with the registered Python functions."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        for setting in (
            "integer_division = true",
            "default_null_order = 'nulls_last_on_asc_first_on_desc'",
            "ieee_floating_point_ops = false",
            "TimeZone = 'UTC'",
            "threads = 1",
        ):
            self.connection.execute(f"SET {setting}")
        register_udfs(self.connection, duckdb_udfs().values(), 2**26, lambda: None)

    def close(self) -> None:
        self.connection.close()

    def values(
        self,
        query: exp.Expression,
        types: Sequence[SqlType],
        rows: Sequence[Sequence[Any]],
        result: SqlType,
        expected: Sequence[Value],
    ) -> list[Value]:
        """One value per row; rows that PostgreSQL refuses are run alone."""
        answers: list[Value | None] = [None] * len(rows)
        good = [i for i, one in enumerate(expected) if one.sqlstate is None]
        self._run_many(query, types, rows, result, good, answers)
        alone: Counter[str] = Counter()
        for i, one in enumerate(expected):
            if one.sqlstate is None:
                continue
            alone[one.sqlstate] += 1
            if alone[one.sqlstate] <= ERRORS_RUN_ALONE:
                self._run_many(query, types, rows, result, [i], answers)
            else:
                answers[i] = one
        return [answer or Value(None, None, "missing") for answer in answers]

    def _run_many(
        self,
        query: exp.Expression,
        types: Sequence[SqlType],
        rows: Sequence[Sequence[Any]],
        result: SqlType,
        chosen: list[int],
        answers: list[Value | None],
    ) -> None:
        if not chosen:
            return
        try:
            found = self._run(query, types, [rows[i] for i in chosen], result)
        except duckdb.Error as error:
            if len(chosen) == 1:
                message = str(error)
                answers[chosen[0]] = Value(None, message[:300], sqlstate_of(message) or "?")
                return
            half = len(chosen) // 2
            self._run_many(query, types, rows, result, chosen[:half], answers)
            self._run_many(query, types, rows, result, chosen[half:], answers)
            return
        for i, value in zip(chosen, found):
            answers[i] = Value(str(result), show(result, value))

    def _run(
        self,
        query: exp.Expression,
        types: Sequence[SqlType],
        rows: Sequence[Sequence[Any]],
        result: SqlType,
    ) -> list[Any]:
        columns = [
            pa.array([_encode(t, row[i]) for row in rows], type=_column_type(t))
            for i, t in enumerate(types)
        ]
        columns.append(pa.array(range(len(rows)), type=pa.int64()))
        names = [f"c{i}" for i in range(len(types))] + ["position"]
        table = pa.table(columns, names=names)
        self.connection.register("arguments", table)
        cast = [f"CAST(c{i} AS {duckdb_type(t)}) AS c{i}" for i, t in enumerate(types)]
        text = query.sql("duckdb")
        if result.kind is Kind.UUID:
            text = f"CAST({text} AS VARCHAR)"
        inner = ", ".join([*cast, "position"])
        statement = f"SELECT {text} FROM (SELECT {inner} FROM arguments) ORDER BY position"
        column = self.connection.sql(statement).to_arrow_table().column(0)
        if result.kind is Kind.NUMERIC:
            return list(column.to_pylist())
        return _column_decoder(result)(column)


def _column_type(sql_type: SqlType) -> Any:
    if sql_type.kind is Kind.NUMERIC:
        return pa.decimal128(sql_type.precision or 38, sql_type.scale or 0)
    if sql_type.element is not None:
        return pa.list_(_column_type(sql_type.element))
    return _arrow_type(pa, sql_type)


def _encode(sql_type: SqlType, value: Any) -> Any:
    if value is None:
        return None
    if sql_type.kind is Kind.UUID:
        return str(value)
    if isinstance(value, Interval):
        return (value.months, value.days, value.microseconds * 1000)
    if isinstance(value, list) and sql_type.element is not None:
        return [_encode(sql_type.element, one) for one in value]
    return value


def sql_query(call: Call, types: Sequence[SqlType]) -> exp.Expression | None:
    """The SQL form of a call over columns c0, c1, ..., or None when it has none."""
    arguments: list[exp.Expression] = [sqlglot.column(f"c{i}") for i in range(len(types))]
    return build_sql(call.function, tuple(types), arguments)
