"""The engines that answer records: Belvedere in one tier, and PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import psycopg

import belvedere
from belvedere.plan.functions import text_formatter
from belvedere.types import Kind, SqlType
from belvedere.values.datetimes import in_zone
from tests.oracle.postgres import Postgres, column_type
from tests.slt.records import Answer

TIERS = ("direct", "duckdb", "auto")


class Engine(Protocol):
    def run(self, sql: str) -> Answer: ...


class Belvedere:
    """An empty database in memory, with the tier forced."""

    def __init__(self, tier: str = "auto") -> None:
        self.connection = belvedere.connect(":memory:", autocommit=True)
        self.connection.execute(f"SET tier = {tier}")

    def run(self, sql: str) -> Answer:
        try:
            result = self.connection.execute(sql).result
            result.convert_arrow_to_rows()
        except belvedere.Error as error:
            return Answer(sqlstate=error.sqlstate, message=str(error))
        # An exception that is none of the promised ones is a finding, not an end of the run.
        except Exception as error:  # noqa: BLE001
            return Answer(sqlstate="crash", message=repr(error)[:500])
        if result.fields is None:
            return Answer()
        forms = [_text_form(field.type) for field in result.fields]
        types = tuple(type_name(field.type) for field in result.fields)
        with in_zone(self.connection._session.settings.zone):
            rows = tuple(
                tuple(None if value is None else form(value) for form, value in zip(forms, row))
                for row in result.rows
            )
        return Answer(rows, types)

    def close(self) -> None:
        self.connection.close()


def type_name(sql_type: SqlType) -> str:
    """PostgreSQL's name of a type, without its modifiers."""
    if sql_type.element is not None:
        return f"{type_name(sql_type.element)}[]"
    return sql_type.kind.value


def _text_form(sql_type: SqlType) -> Callable[[Any], str]:
    """How PostgreSQL sends a value of this type as text."""
    if sql_type.kind is Kind.BOOLEAN:
        return lambda value: "t" if value else "f"
    return text_formatter(sql_type)


class PostgresEngine:
    """An empty schema of a running PostgreSQL, on a connection of its own."""

    def __init__(self, postgres: Postgres) -> None:
        self.connection = postgres.connect(autocommit=True)
        self.connection.execute("SET client_min_messages = error")
        self.schema = f"slt_{id(self)}"
        self.connection.execute(f"CREATE SCHEMA {self.schema}")
        self.connection.execute(f"SET search_path = {self.schema}")

    def run(self, sql: str) -> Answer:
        try:
            cursor = self.connection.execute(sql.encode())
        except psycopg.Error as error:
            return Answer(sqlstate=error.sqlstate or "crash", message=str(error))
        result = cursor.pgresult
        if cursor.description is None or result is None:
            return Answer()
        return Answer(
            tuple(
                tuple(_decoded(result.get_value(row, column)) for column in range(result.nfields))
                for row in range(result.ntuples)
            ),
            tuple(column_type(self.connection, column.type_code) for column in cursor.description),
        )

    def close(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self.connection.execute("ROLLBACK")
        self.connection.execute(f"DROP SCHEMA {self.schema} CASCADE")
        self.connection.close()


def _decoded(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


@contextlib.contextmanager
def opened(name: str, postgres: Postgres | None = None) -> Iterator[Engine]:
    """The engine of this name: a tier, or `postgres`."""
    engine: Belvedere | PostgresEngine
    if name == "postgres":
        assert postgres is not None
        engine = PostgresEngine(postgres)
    else:
        engine = Belvedere(name)
    try:
        yield engine
    finally:
        engine.close()
