"""Plans over ranges by parameters: few rows are read in Python, more by DuckDB, with one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import belvedere
from belvedere.errors import InvalidInput, Unsupported
from belvedere.execution.adaptive_plan import MISSES_MAX, RETRY_RUNS, ROWS_MAX, AdaptivePlan
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.memory_limit import Memory, RowLimitExceeded
from belvedere.execution.run import Interrupt, Run
from belvedere.types import Row

ROWS = 60_000
INSERT = "INSERT INTO b SELECT id + ?, v FROM a WHERE id BETWEEN ? AND ?"
JOIN = (
    "SELECT x.v, count(*), sum(y.v), min(y.t) FROM a x JOIN a y ON x.id = y.id"
    " WHERE x.id BETWEEN $1 AND $2 AND y.id BETWEEN $1 AND $2 GROUP BY x.v"
)
EACH_WAY = {
    "group": "SELECT v, count(*), sum(id) FROM a WHERE id BETWEEN $1 AND $2 GROUP BY v",
    "index": "SELECT v, count(t), max(id) FROM a WHERE k BETWEEN $1 AND $2 GROUP BY v",
    "join": JOIN,
    "look-up": "SELECT x.id, y.t FROM a x JOIN a y ON y.id = x.v + 1 WHERE x.id BETWEEN $1 AND $2",
    "semi join": "SELECT x.id FROM a x WHERE x.id BETWEEN $1 AND $2 AND EXISTS"
    " (SELECT 1 FROM a y WHERE y.id BETWEEN $1 AND $2 AND y.k = x.k + 1)",
    "union": "SELECT v FROM a WHERE id BETWEEN $1 AND $2 UNION SELECT k FROM a WHERE id = $1",
    "sub-query": "SELECT x.id, (SELECT max(y.k) FROM a y WHERE y.id = x.v + 1) FROM a x"
    " WHERE x.id BETWEEN $1 AND $2 GROUP BY x.id, x.v",
    "quotient": "SELECT v, avg(k), sum(id) / 3.0 FROM a WHERE id BETWEEN $1 AND $2 GROUP BY v",
}


@pytest.fixture(scope="module")
def filled() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE a (id int PRIMARY KEY, v int, k int, t text)")
        opened.execute("CREATE INDEX ON a (k)")
        opened.execute(
            "INSERT INTO a SELECT g, g % 7, g, nullif(g % 5, 0)::text"
            f" FROM generate_series(1, {ROWS}) g"
        )
        yield opened


@pytest.fixture
def con(filled: belvedere.Connection) -> Iterator[belvedere.Connection]:
    filled.execute("DROP TABLE IF EXISTS b")  # and with it what is known of earlier runs
    filled.execute("CREATE TABLE b (id int PRIMARY KEY, v int)")
    yield filled
    filled.rollback()
    filled.execute("SET tier = auto")


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that DuckDB gets."""
    seen: list[str] = []
    fetch: Callable[..., Any] = DuckEngine.fetch

    def note_fetch(engine: DuckEngine, text: str, *rest: Any, **named: Any) -> Any:
        seen.append(text)
        return fetch(engine, text, *rest, **named)

    monkeypatch.setattr(DuckEngine, "fetch", note_fetch)
    return seen


def explain(con: belvedere.Connection, text: str, values: tuple[Any, ...]) -> str:
    return "\n".join(line for (line,) in con.execute(f"EXPLAIN {text}", values).fetchall())


@pytest.mark.parametrize("name", EACH_WAY)
@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, ROWS_MAX - 1, ROWS_MAX, ROWS_MAX + 1])
def test_all_ways_give_the_same_rows(con: belvedere.Connection, name: str, count: int) -> None:
    text, values = EACH_WAY[name], (11, 10 + count)
    assert "Python first" in explain(con, text, values)
    rows = sorted(con.execute(text, values).fetchall())
    for tier in ("direct", "duckdb"):
        con.execute(f"SET tier = {tier}")
        assert sorted(con.execute(text, values).fetchall()) == rows


@pytest.mark.parametrize(
    ("count", "statements"), [(10, 0), (ROWS_MAX - 1, 0), (ROWS_MAX, 0), (ROWS_MAX + 1, 1)]
)
def test_few_rows_to_insert_need_no_statement_of_duckdb(
    con: belvedere.Connection, fetches: list[str], count: int, statements: int
) -> None:
    assert con.execute(INSERT, (5, 101, 100 + count)).rowcount == count
    assert len(fetches) == statements
    found = con.execute("SELECT min(id), max(id), count(*) FROM b").fetchall()
    assert found == [(106, 105 + count, count)]


def test_rows_that_a_join_makes_count(con: belvedere.Connection, fetches: list[str]) -> None:
    text = (
        "SELECT count(*) FROM a x JOIN a y ON x.v = y.v"
        " WHERE x.id BETWEEN $1 AND $2 AND y.id BETWEEN $1 AND $2"
    )
    assert con.execute(text, (1, 70)).fetchall() == [(700,)]
    assert not fetches  # 140 rows and 700 pairs
    assert con.execute(text, (1, 140)).fetchall() == [(2800,)]
    assert len(fetches) == 1


def test_keys_of_a_list_count(con: belvedere.Connection, fetches: list[str]) -> None:
    text = "SELECT DISTINCT u FROM (SELECT v FROM a WHERE id BETWEEN $1 AND $2 UNION ALL"
    text += " SELECT v FROM a WHERE id = ANY($3::int[])) o(u)"
    assert "Python first" in explain(con, text, (1, 2, [1, 2]))
    assert sorted(con.execute(text, (1, 2, [1, 5])).fetchall()) == [(1,), (2,), (5,)]
    assert not fetches
    assert len(con.execute(text, (1, 2, list(range(ROWS_MAX)))).fetchall()) == 7
    assert len(fetches) == 1


def test_what_is_long_again_and_again_is_tried_now_and_then(
    con: belvedere.Connection, fetches: list[str]
) -> None:
    text = f"{JOIN} ORDER BY 1"
    for _ in range(MISSES_MAX + RETRY_RUNS - 1):
        con.execute(text, (1, 4000)).fetchall()
    assert len(fetches) == MISSES_MAX + RETRY_RUNS - 1
    few = con.execute(text, (1, 7)).fetchall()  # the one that is tried
    assert len(few) == 7
    assert len(fetches) == MISSES_MAX + RETRY_RUNS - 1
    assert con.execute(text, (1, 7)).fetchall() == few
    assert len(fetches) == MISSES_MAX + RETRY_RUNS - 1  # Python is trusted again
    for _ in range(MISSES_MAX):
        con.execute(text, (1, 4000)).fetchall()
    before = len(fetches)
    con.execute(text, (1, 7)).fetchall()
    assert len(fetches) == before + 1


def test_a_transaction_sees_its_own_changes(con: belvedere.Connection) -> None:
    for high in (110, 100 + ROWS_MAX, 101 + ROWS_MAX, 3000):
        con.execute("BEGIN")
        con.execute("DELETE FROM a WHERE id = 105")
        con.execute("UPDATE a SET v = 1000 WHERE id = 106")
        con.execute("INSERT INTO a VALUES (-1, 1001, 0, 'new')")
        count = con.execute(INSERT, (0, 101, high)).rowcount
        assert count == high - 101
        assert con.execute(INSERT, (0, -5, 0)).rowcount == 1
        found = con.execute("SELECT id, v FROM b WHERE v >= 1000 OR id = 105 ORDER BY 1").fetchall()
        assert found == [(-1, 1001), (106, 1000)]
        con.execute("ROLLBACK")


@pytest.mark.parametrize("count", [10, ROWS_MAX, ROWS_MAX + 1])
def test_a_table_is_read_before_it_is_written(con: belvedere.Connection, count: int) -> None:
    con.execute(f"INSERT INTO b SELECT g, g FROM generate_series(1, {ROWS}) g")
    text = "INSERT INTO b SELECT id + $3, v + 1 FROM b WHERE id > $1 AND id <= $2 + $3"
    assert con.execute(text, (ROWS - count, ROWS, count)).rowcount == count
    found = con.execute(f"SELECT count(*), max(id), max(v) FROM b WHERE id > {ROWS}").fetchall()
    assert found == [(count, ROWS + count, ROWS + 1)]


def test_a_failing_insert_writes_nothing(con: belvedere.Connection) -> None:
    con.execute("INSERT INTO b VALUES (115, 0)")
    for high in (120, 102 + ROWS_MAX):
        with pytest.raises(belvedere.IntegrityError) as caught:
            con.execute(INSERT, (0, 101, high))
        assert caught.value.sqlstate == "23505"
        assert con.execute("SELECT count(*) FROM b").fetchall() == [(1,)]


@pytest.mark.parametrize("high", [120, 3000])
def test_a_value_that_fails_is_told_as_ever(con: belvedere.Connection, high: int) -> None:
    text = "INSERT INTO b SELECT id, 7 / (id - 115) FROM a WHERE id BETWEEN ? AND ?"
    with pytest.raises(belvedere.DataError) as caught:
        con.execute(text, (101, high))
    assert caught.value.sqlstate == "22012"
    assert con.execute("SELECT count(*) FROM b").fetchall() == [(0,)]
    guarded = "SELECT x.id FROM a x JOIN a y ON x.id = y.id WHERE x.id BETWEEN $1 AND $2"
    guarded += " AND y.id BETWEEN $1 AND $2 AND CASE WHEN x.id = 115 THEN false"
    guarded += " ELSE 7 / (x.id - 115) = 7 END"
    assert con.execute(guarded, (101, high)).fetchall() == [(116,)]


@pytest.mark.parametrize("error", [InvalidInput, Unsupported, RowLimitExceeded])
def test_what_fails_in_the_attempt_is_for_the_other_plan_to_say(error: type[Exception]) -> None:
    def fail(run: Run) -> Iterator[Row]:
        assert not run.memory.may_spill
        run.cache[1] = "half"
        raise error("in the attempt") if error is not RowLimitExceeded else error

    def answer(run: Run) -> Iterator[Row]:
        assert run.memory.may_spill
        assert not run.cache
        return iter([(1,)])

    nothing: Any = None
    run = Run(nothing, (), nothing, nothing, Interrupt())
    plan = AdaptivePlan(fail, answer)
    assert list(plan(run)) == [(1,)]
    assert plan.notes[0].startswith("run again by DuckDB: ")


def test_a_cancel_in_the_attempt_ends_the_statement(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.execute(INSERT, (0, 1, 10))
    count_read = Memory.count_read

    def cancel_and_count(memory: Memory, count: int) -> None:
        con.cancel()
        count_read(memory, count)

    monkeypatch.setattr(Memory, "count_read", cancel_and_count)
    with pytest.raises(belvedere.OperationalError) as caught:
        con.execute(INSERT, (0, 101, 4000))
    monkeypatch.undo()
    assert caught.value.sqlstate == "57014"
    assert con.execute("SELECT count(*) FROM b").fetchall() == [(10,)]
    assert con.execute(INSERT, (0, 101, 120)).rowcount == 20


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO b SELECT id, (random() * 0)::int FROM a WHERE id BETWEEN $1 AND $2",
        "INSERT INTO b SELECT nextval('s'), v FROM a WHERE id BETWEEN $1 AND $2",
        "INSERT INTO b SELECT id, v FROM a WHERE v BETWEEN $1 AND $2",
        "INSERT INTO b SELECT a.id, a.v FROM a, a z WHERE a.id BETWEEN $1 AND $2"
        " AND z.id BETWEEN $1 AND $2 AND a.k < z.v",
        "INSERT INTO b SELECT id, v FROM a WHERE id < 10000 AND v <> $1 AND v < $2",
        "INSERT INTO b SELECT id, v FROM a WHERE id BETWEEN $1 AND $2"
        " RETURNING (SELECT count(*) FROM a)",
    ],
    ids=["volatile", "sequence", "no range", "all pairs", "known range", "sub-query around it"],
)
def test_other_plans_are_left_alone(con: belvedere.Connection, text: str) -> None:
    con.execute("CREATE SEQUENCE IF NOT EXISTS s")
    told = explain(con, text, (1, 10))
    assert "tier: duckdb" in told
    assert "Python first" not in told
    for tier in ("direct", "duckdb"):
        con.execute(f"SET tier = {tier}")
        assert "Python first" not in explain(con, INSERT, (0, 1, 10))


def test_explain_analyze_says_who_ran_it(con: belvedere.Connection) -> None:
    for text, few, many in ((JOIN, (1, 7), (1, 4000)), (INSERT, (0, 1, 7), (0, 8, 4000))):
        told = explain(con, f"ANALYZE {text}", few)
        assert f"run in Python: at most {ROWS_MAX} rows were read" in told
        assert "(actual rows=7 loops=1" in told
        told = explain(con, f"ANALYZE {text}", many)
        assert f"run again by DuckDB: more than {ROWS_MAX} rows were read" in told
        top = next(line for line in told.splitlines() if "Project" in line or "Aggregate" in line)
        assert "loops=1 " in top
