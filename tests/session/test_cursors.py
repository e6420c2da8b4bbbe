"""DECLARE, FETCH, MOVE, CLOSE: as in PostgreSQL, step by step."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import belvedere
from tests.oracle.postgres import Postgres

ROWS = "select v from generate_series(1, 7) as g(v)"
DIRECTIONS = (
    """
next|prior|first|last|absolute 3|absolute -2|absolute 0|absolute 99|absolute -99|relative 2
relative -2|relative 0|2|-2|all|forward|forward 3|forward all|forward 0|backward|backward 2
backward all|backward -1|0|100
""".strip()
    .replace("\n", "|")
    .split("|")
)


def run_steps(execute: Callable[[str], Any], steps: list[str]) -> list[Any]:
    """The rows, or the SQLSTATE, of each step."""
    found: list[Any] = []
    for step in steps:
        try:
            cursor = execute(step)
            found.append(cursor.fetchall() if cursor.description else cursor.rowcount)
        except (belvedere.Error, psycopg.Error) as error:
            found.append(error.sqlstate)
    return found


@pytest.mark.parametrize("number", range(30))
def test_a_cursor_moves_as_in_postgres(number: int, postgres: Postgres, seed: int) -> None:
    chance = random.Random(seed + number)
    steps = [
        f"{chance.choice(('fetch', 'fetch', 'move'))} {chance.choice(DIRECTIONS)} from c"
        for _ in range(25)
    ]
    steps = ["begin", f"declare c scroll cursor for {ROWS}", *steps, "close c", "commit"]
    with belvedere.connect(":memory:", autocommit=True) as here:
        with postgres.connect(autocommit=True) as there:
            ours, theirs = run_steps(here.execute, steps), run_steps(there.execute, steps)
    assert list(zip(steps, ours)) == list(zip(steps, theirs))


@pytest.mark.parametrize(
    "steps",
    [
        ["declare c cursor for select 1", "fetch c"],
        ["begin", "declare c cursor for select 1", "commit", "fetch c"],
        ["begin", "declare c cursor for select 1", "declare c cursor for select 2"],
        ["begin", "declare c no scroll cursor for select 1", "fetch c", "fetch prior from c"],
        ["fetch c", "close c", "move c"],
        ["begin", "declare c cursor with hold for select 1", "commit", "fetch c", "fetch c",
         "begin", "rollback", "close c", "fetch c"],
        ["begin", "declare c cursor with hold for select 1", "rollback", "fetch c"],
        ["declare c cursor with hold for select 1", "fetch all from c", "close all", "fetch c"],
        ["begin", "declare c cursor for select 1", "close all", "fetch c"],
        ["begin", "declare c cursor for select 1 / 0", "fetch c", "fetch c", "rollback"],
    ],
)  # fmt: skip
def test_cursors_live_and_end_as_in_postgres(steps: list[str], postgres: Postgres) -> None:
    with belvedere.connect(":memory:", autocommit=True) as here:
        with postgres.connect(autocommit=True, prepare_threshold=None) as there:
            assert run_steps(here.execute, steps) == run_steps(there.execute, steps)


def test_a_cursor_shows_what_declare_saw() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("create table t (id integer primary key)")
        con.execute("insert into t values (1), (2)")
        con.execute("begin")
        con.execute("declare c cursor with hold for select id from t order by id")
        con.execute("delete from t")
        assert con.execute("fetch c").fetchall() == [(1,)]
        con.execute("commit")
        assert con.execute("fetch all from c").fetchall() == [(2,)]
        assert con.execute("select count(*) from t").fetchone() == (0,)
        con.execute("close c")


def test_what_a_cursor_cannot_be_of_is_refused_by_name() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("create table t (id integer primary key)")
        for query in ("insert into t values (1) returning id", "select id from t for update"):
            with pytest.raises(belvedere.NotSupportedError, match="cursor"):
                con.execute(f"declare c cursor with hold for {query}")
