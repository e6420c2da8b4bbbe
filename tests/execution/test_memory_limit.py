"""The limits of the direct tier: memory, and plans that turn out to be for many rows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.errors import Unavailable
from belvedere.execution import choose_tier
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.memory_limit import CHUNK_ROWS, Memory, RowLimitExceeded

MANY = 30_000
HOLDING = {
    "sort": f"SELECT n FROM generate_series(1, {MANY}) g(n) ORDER BY n % 7, n",
    "result": f"SELECT n FROM generate_series(1, {MANY}) g(n)",
    "hash join": f"SELECT count(*) FROM generate_series(1, {MANY}) a(n) JOIN"
    f" generate_series(1, {MANY}) g(m) ON n = m",
    "outer hash join": f"SELECT count(*) FROM generate_series(1, {MANY}) a(n) FULL JOIN"
    f" generate_series(1, {MANY}) g(m) ON n = m",
    "nested loop": f"SELECT count(*) FROM generate_series(1, 2) a(n) LEFT JOIN"
    f" generate_series(1, {MANY}) g(m) ON n > m",
    "group by": f"SELECT count(*) FROM (SELECT n FROM generate_series(1, {MANY}) g(n)"
    " GROUP BY n HAVING count(*) > 5) k",
    "grouping sets": f"SELECT count(*) FROM (SELECT n FROM generate_series(1, {MANY}) g(n)"
    " GROUP BY CUBE (n) HAVING count(*) < 0) k",
    "distinct": f"SELECT count(*) FROM (SELECT DISTINCT n FROM generate_series(1, {MANY}) g(n)) k",
    "distinct aggregate": f"SELECT count(DISTINCT n) FROM generate_series(1, {MANY}) g(n)",
    "window": f"SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY n) AS r"
    f" FROM generate_series(1, {MANY}) g(n)) k WHERE r < 0",
    "except": f"SELECT 1 EXCEPT SELECT n FROM generate_series(1, {MANY}) g(n)",
    "intersect": f"SELECT 1 INTERSECT SELECT n FROM generate_series(1, {MANY}) g(n)",
    "union": f"SELECT count(*) FROM (SELECT 1 UNION SELECT n FROM generate_series(1, {MANY}) g(n))"
    " k",
    "cte": f"WITH w AS MATERIALIZED (SELECT n FROM generate_series(1, {MANY}) g(n))"
    " SELECT count(*) FROM w",
    "recursive": f"WITH RECURSIVE w(n) AS (SELECT 1 UNION SELECT n + 1 FROM w WHERE n < {MANY})"
    " SELECT count(*) FROM w",
}


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True, memory_limit_mb=1) as opened:
        yield opened


@pytest.fixture
def roomy() -> Iterator[belvedere.Connection]:
    """One whose statements end by other limits than memory."""
    with belvedere.connect(":memory:", autocommit=True) as opened:
        yield opened


def sqlstate(con: belvedere.Connection, text: str) -> str | None:
    with pytest.raises(belvedere.OperationalError) as caught:
        con.execute(text)
    return caught.value.sqlstate


@pytest.mark.parametrize("name", HOLDING)
def test_a_statement_over_the_limit_fails_alone(con: belvedere.Connection, name: str) -> None:
    con.execute("SET tier = direct")
    assert sqlstate(con, HOLDING[name]) == "53200"
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_within_a_transaction_it_fails_like_any_statement(con: belvedere.Connection) -> None:
    con.execute("SET tier = direct")
    con.execute("CREATE TABLE t (id int)")
    con.execute("BEGIN")
    con.execute("INSERT INTO t VALUES (1)")
    con.execute("SAVEPOINT s")
    assert sqlstate(con, HOLDING["sort"]) == "53200"
    assert sqlstate_any(con, "SELECT 1") == "25P02"
    con.execute("ROLLBACK TO s")
    con.execute("COMMIT")
    assert con.execute("SELECT * FROM t").fetchall() == [(1,)]


def sqlstate_any(con: belvedere.Connection, text: str) -> str | None:
    with pytest.raises(belvedere.Error) as caught:
        con.execute(text)
    return caught.value.sqlstate


def test_rows_that_pass_are_not_held(con: belvedere.Connection) -> None:
    con.execute("SET tier = direct")
    text = f"SELECT sum(n) FROM generate_series(1, {3 * MANY}) g(n) WHERE n % 3 > 0"
    assert con.execute(text).fetchall()


def test_what_a_sub_query_held_is_given_back(con: belvedere.Connection) -> None:
    con.execute("SET tier = direct")
    text = (
        "SELECT sum((SELECT max(m) FROM (SELECT m FROM generate_series(1, 2000) k(m)"
        " WHERE m > n ORDER BY m % 5 OFFSET 1) j)) FROM generate_series(1, 40) g(n)"
    )
    assert con.execute(text).fetchall()


def test_free_to_choose_it_is_run_again_by_duckdb(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose_tier, "DIRECT_ROWS_MAX", 10**9)
    con.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    con.execute("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 8000) g(n)")
    text = "SELECT count(*) FROM (SELECT id, v FROM t ORDER BY v, id OFFSET 1) k"
    assert con.execute(text).fetchall() == [(7999,)]
    explained = con.execute(f"EXPLAIN ANALYZE {text}").fetchall()
    assert any("run again by DuckDB: statement needs more memory" in row[0] for row in explained)


def test_a_plan_for_few_rows_that_reads_many_is_run_again_by_duckdb(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose_tier, "DIRECT_ROWS_MAX", 10**9)
    monkeypatch.setattr(choose_tier, "CORRECT_ROWS", 100)
    con.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    con.execute("INSERT INTO t SELECT n, n % 3 FROM generate_series(1, 1000) g(n)")
    for text in ("SELECT v, count(*) FROM t GROUP BY v", "SELECT count(*) FROM t a, t b"):
        rows = sorted(con.execute(text).fetchall())
        assert sorted(con.execute(text).fetchall()) == rows
        explained = con.execute(f"EXPLAIN ANALYZE {text}").fetchall()
        assert any("run again by DuckDB: more than 100 rows" in row[0] for row in explained)
    con.execute("INSERT INTO t SELECT id + 2000, 1 FROM t")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(2000,)]


@pytest.mark.parametrize(
    "tail",
    [
        "SELECT a.id, b.v FROM t a JOIN t b ON a.g = b.g ORDER BY lower(b.v), a.id",
        "SELECT a.id, rank() OVER (ORDER BY b.v) AS r FROM t a JOIN t b ON a.g = b.g ORDER BY r",
    ],
    ids=["sort", "window"],
)
def test_rows_that_do_not_fit_are_counted_before_they_are_sorted(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch, tail: str
) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, g int, v text)")
    con.execute("INSERT INTO t SELECT n, n % 3, 'x' || n FROM generate_series(1, 3000) g(n)")
    con.execute("ANALYZE t")
    run: list[str] = []
    fetch = DuckEngine.fetch

    def record_and_fetch(engine: DuckEngine, text: str, *given: Any, **options: Any) -> Any:
        run.append(text)
        return fetch(engine, text, *given, **options)

    monkeypatch.setattr(DuckEngine, "fetch", record_and_fetch)
    assert sqlstate(con, tail) == "53200"
    assert len(run) == 1
    assert "ORDER BY" not in run[0]
    run.clear()
    few = tail.replace("a.g = b.g", "a.g = b.g AND a.id < 9")
    assert len(con.execute(few).fetchall()) == 8000
    assert len(run) == 1  # what is expected to fit is not counted


def test_explain_analyze_says_what_python_had_to_do_again(con: belvedere.Connection) -> None:
    con.execute("SET tier = duckdb")
    con.execute("CREATE TABLE t (id int PRIMARY KEY, v numeric(38, 0))")
    con.execute("INSERT INTO t VALUES (1, 9e37), (2, 9e37)")
    text = "SELECT sum(v) FROM t"
    assert str(con.execute(text).fetchall()[0][0]) == "180000000000000000000000000000000000000"
    explained = con.execute(f"EXPLAIN ANALYZE {text}").fetchall()
    assert any("run again in Python" in row[0] for row in explained)


@pytest.mark.parametrize("tier", ["direct", "duckdb"])
def test_a_timeout_stops_scans_joins_and_duckdb(roomy: belvedere.Connection, tier: str) -> None:
    roomy.execute(f"SET tier = {tier}")
    roomy.execute("SET statement_timeout = '50 ms'")
    endless = "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b, "
    endless += "generate_series(1, 3000) c WHERE a + b + c < 0"
    assert sqlstate(roomy, endless) == "57014"
    roomy.execute("SET statement_timeout = 0")
    assert roomy.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize("tier", ["direct", "duckdb"])
def test_a_cancel_stops_what_runs(roomy: belvedere.Connection, tier: str) -> None:
    roomy.execute(f"SET tier = {tier}")
    ended = threading.Event()

    def cancel() -> None:
        while not ended.wait(0.02):  # until it hit the statement
            roomy.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        endless = "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b, "
        endless += "generate_series(1, 3000) c WHERE a + b + c < 0"
        assert sqlstate(roomy, endless) == "57014"
    finally:
        ended.set()
        thread.join()
    roomy.execute("SELECT 1")


def test_counting() -> None:
    memory = Memory(limit_bytes=10**6)
    row = (1, "x" * 100)
    assert memory.hold_rows([row]) == [row]
    assert memory.used_bytes == 0  # one row is not worth counting
    assert memory.hold_rows([row] * 10) == [row] * 10
    assert memory.used_bytes > 10 * 100
    memory.reserve_rows(CHUNK_ROWS, row)
    inner = memory.for_subquery()
    assert inner.used_bytes == memory.used_bytes > CHUNK_ROWS * 100
    with pytest.raises(Unavailable):
        list(inner.count_held([row] * 100_000))
    assert memory.used_bytes < memory.limit_bytes
    few = memory.with_row_limit(5)
    few.for_subquery().count_read(3)
    with pytest.raises(RowLimitExceeded):
        few.count_read(3)


def test_a_scalar_sub_query_without_a_form_in_duckdb_is_a_constant_of_each_run() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("SET tier = duckdb")
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v numeric(8, 2))")
        con.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 6)")
        text = "SELECT id FROM t WHERE v > (SELECT avg(v) FROM t) ORDER BY id"
        explained = [row[0] for row in con.execute(f"EXPLAIN {text}").fetchall()]
        assert any(line.startswith("duckdb:") and "ORDER BY" in line for line in explained)
        assert con.execute(text).fetchall() == [(3,)]
        con.execute("INSERT INTO t VALUES (4, -100)")
        assert con.execute(text).fetchall() == [(1,), (2,), (3,)]
        con.execute("DELETE FROM t")
        assert con.execute(text).fetchall() == []
        failing = "SELECT id FROM t WHERE v > (SELECT avg(v) FROM t GROUP BY id)"
        con.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
        assert sqlstate_any(con, failing) == "21000"
        con.execute("DELETE FROM t")
        assert con.execute(failing).fetchall() == []


def test_a_limit_by_a_parameter_is_taken_for_a_small_one() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        con.execute("INSERT INTO t SELECT n, n FROM generate_series(1, 20000) g(n)")
        text = "SELECT * FROM t WHERE id >= ? ORDER BY id LIMIT ?"
        explained = [row[0] for row in con.execute(f"EXPLAIN {text}", (1, 5)).fetchall()]
        assert any(line.startswith("tier: direct") for line in explained)
        assert len(con.execute(text, (10, 15_000)).fetchall()) == 15_000


@pytest.mark.parametrize("tier", ["direct", "duckdb"])
def test_progress_is_told_and_may_stop_a_statement(con: belvedere.Connection, tier: str) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    con.execute("INSERT INTO t SELECT n FROM generate_series(1, 3000) g(n)")
    con.execute(f"SET tier = {tier}")
    con.session.interrupt.progress = lambda rows: con.cancel()
    assert sqlstate(con, "SELECT sum(id) FROM t") == "57014"
    told: list[int] = []
    con.session.interrupt.progress = told.append
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(3000,)]
    assert told
    assert told[-1] == 3000
    con.session.interrupt.progress = None
    assert con.execute("SELECT max(id) FROM t").fetchall() == [(3000,)]


def test_progress_is_told_while_duckdb_runs(roomy: belvedere.Connection) -> None:
    """It stops a statement that would run for hours, and reads nothing meanwhile."""
    roomy.execute("SET tier = duckdb")
    roomy.session.interrupt.progress = lambda rows: roomy.cancel()
    endless = "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b, "
    endless += "generate_series(1, 3000) c WHERE a + b + c < 0"
    assert sqlstate(roomy, endless) == "57014"
