"""Statements run by PostgreSQL and by Belvedere in each tier: the same rows, or the same
SQLSTATE."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import belvedere
from tests.oracle.postgres import Postgres

STATEMENTS = [
    " ".join(line for line in block.splitlines() if not line.startswith("--"))
    for block in (Path(__file__).parent / "statements.sql").read_text().split("\n\n")
]


def answer(con: belvedere.Connection, statement: str) -> Any:
    try:
        cursor = con.execute(statement)
    except belvedere.Error as error:
        return error.sqlstate
    return [] if cursor.description is None else cursor.fetchall()


def comparable(found: Any, statement: str) -> Any:
    if isinstance(found, str):
        return found
    rows = [repr(tuple(row)) for row in found]
    return rows if "ORDER BY" in statement.rsplit(")", 1)[-1] else Counter(rows)


@pytest.mark.parametrize("tier", ["direct", "duckdb", "auto"])
def test_statements_mean_what_postgresql_says(postgres: Postgres, tier: str) -> None:
    postgres.run("DROP SCHEMA public CASCADE")
    postgres.run("CREATE SCHEMA public")
    wrong = []
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute(f"SET tier = {tier}")
        for statement in filter(str.strip, STATEMENTS):
            outcome = postgres.run(statement)
            expected = comparable(outcome.sqlstate or outcome.rows, statement)
            found = comparable(answer(con, statement), statement)
            if found != expected:
                wrong.append(f"{statement}\n    postgres  {expected}\n    belvedere {found}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(STATEMENTS)} differ", *wrong])
