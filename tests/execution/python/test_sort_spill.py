"""Sorts beyond the memory limit: spilled by Python, also where DuckDB cannot."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.errors import Unavailable
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.memory_limit import CHUNK_ROWS, Memory
from belvedere.execution.python.operators import sort, spill
from belvedere.execution.python.operators.sort import SortPass, sort_rows
from belvedere.execution.run import Interrupt, Run
from belvedere.types import Row

MANY = 30_000
SORTED_ROWS = 9_216
INNER = f"SELECT n, n % 7 AS m FROM generate_series(1, {MANY}) g(n) ORDER BY n % 7 DESC, n OFFSET 1"
WITHIN = f"SELECT count(*), sum(n), max(m) FROM ({INNER}) k"
"""Holds nothing but the sort."""


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True, memory_limit_mb=1) as opened:
        yield opened


def small_run(limit_bytes: int) -> Run:
    memory = Memory(limit_bytes)
    return Run(None, (), None, None, Interrupt(), memory)  # type: ignore[arg-type]


def key_of(slot: int) -> Any:
    return lambda row: (row[slot] is None, row[slot])


PASSES = {
    "ascending": [SortPass(key_of(0), False)],
    "descending": [SortPass(key_of(0), True)],
    "mixed": [SortPass(key_of(1), False), SortPass(key_of(0), True)],
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("runs_max", [2, 32])
def test_spilled_rows_come_in_the_same_order(
    name: str, runs_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "RUNS_MAX", runs_max)
    seed = 3
    print("seed", seed)
    chosen = random.Random(seed)
    rows: list[Row] = [
        (chosen.choice([None, *range(50)]), chosen.choice("abcdefgh"), number)
        for number in range(SORTED_ROWS + 5)
    ]
    run = small_run(450_000)
    spilled = list(sort._sort_or_spill(iter(rows), PASSES[name], run))
    assert run.memory.used_bytes == 0  # it was too much to be held
    expected = list(rows)
    sort_rows(expected, PASSES[name])
    assert spilled == expected


def test_a_row_that_does_not_fit_at_all_is_refused() -> None:
    rows: list[Row] = [("x" * 1000,)] * (3 * CHUNK_ROWS)
    with pytest.raises(Unavailable) as caught:
        sort._sort_or_spill(iter(rows), PASSES["ascending"], small_run(1000 * CHUNK_ROWS))
    assert caught.value.sqlstate == "53200"


def test_no_room_on_disk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    rows: list[Row] = [(number, "", 0) for number in range(SORTED_ROWS)]
    with pytest.raises(Unavailable) as caught:
        sort._sort_or_spill(iter(rows), PASSES["ascending"], small_run(450_000))
    assert caught.value.sqlstate == "53100"


def test_a_statement_sorts_more_than_it_may_hold(con: belvedere.Connection) -> None:
    con.execute("SET tier = direct")
    assert con.execute(WITHIN).fetchall() == [(MANY - 1, MANY * (MANY + 1) // 2 - 6, 6)]
    with pytest.raises(belvedere.OperationalError) as caught:
        con.execute(INNER)  # the result does not fit either
    assert caught.value.sqlstate == "53200"


def test_what_duckdb_has_no_memory_to_sort_is_sorted_by_python(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    for first in (1, 4501):
        con.execute(
            "INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(?::int, ?::int) g(n)",
            (first, first + 4499),
        )
    con.execute("SET tier = duckdb")
    fetch = DuckEngine.fetch

    def short_of_memory(self: Any, text: str, *arguments: Any, **options: Any) -> Any:
        if "ORDER BY" in text:
            raise Unavailable("statement needs more memory than it may use", sqlstate="53200")
        return fetch(self, text, *arguments, **options)

    monkeypatch.setattr(DuckEngine, "fetch", short_of_memory)
    text = "SELECT count(*), min(id) FROM (SELECT id, v FROM t ORDER BY v, id OFFSET 8000) k"
    assert con.execute(text).fetchall() == [(1000, 8001)]
    lines = [row[0] for row in con.execute(f"EXPLAIN ANALYZE {text}").fetchall()]
    assert any("run again with sorts in Python: statement needs" in line for line in lines)


def test_other_shortages_of_memory_are_told(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short_of_memory(*_: Any, **__: Any) -> Any:
        raise Unavailable("statement needs more memory than it may use", sqlstate="53200")

    monkeypatch.setattr(DuckEngine, "fetch", short_of_memory)
    con.execute("SET tier = duckdb")
    with pytest.raises(belvedere.OperationalError) as caught:
        con.execute("SELECT count(*) FROM (SELECT DISTINCT n FROM generate_series(1, 9) g(n)) k")
    assert caught.value.sqlstate == "53200"
