"""Writes of a few rows take a fast path, in transactions too, and do what the general one does."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import belvedere
from belvedere.execution.python.statements.few_rows_writes import ROWS_MAX
from belvedere.session.session import Session

WRITES = (
    "UPDATE t SET c = c + b, s = s || '!' WHERE a = ?",
    "UPDATE t SET c = CASE WHEN b > 4 THEN NULL ELSE a END WHERE a = ? AND b BETWEEN 2 AND 7",
    "UPDATE t SET c = 1 WHERE a = ? AND s = 's1'",
    "UPDATE t SET s = 'x' WHERE a >= ?",
    "DELETE FROM t WHERE a = ? AND b > 3",
    "DELETE FROM t WHERE a = ? AND s IS NULL",
    "DELETE FROM parent WHERE id >= ? AND id < 6",
)


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (a int, b int, c int, s text, PRIMARY KEY (a, b))")
        opened.execute("CREATE INDEX ON t (c)")
        opened.execute("CREATE TABLE parent (id int PRIMARY KEY)")
        opened.execute(
            "CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent ON DELETE CASCADE)"
        )
        opened.execute("CREATE MATERIALIZED VIEW m AS SELECT s, count(*), sum(c) FROM t GROUP BY s")
        rows = [(i // 10, i % 10, i % 7 or None, f"s{i % 3}") for i in range(200)]
        rows += [(99, i, 5, None) for i in range(ROWS_MAX + 1)]
        opened.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        opened.execute("INSERT INTO parent SELECT i FROM generate_series(1, 9) g(i)")
        opened.execute("INSERT INTO child SELECT i, i % 9 + 1 FROM generate_series(1, 30) g(i)")
        opened.execute("ANALYZE")
        yield opened


def read_tables(con: belvedere.Connection) -> list[object]:
    texts = [f"SELECT * FROM {name}" for name in ("t", "parent", "child", "m")]
    return [sorted(con.execute(text).fetchall(), key=repr) for text in texts]


@pytest.mark.parametrize("earlier", [False, True], ids=["first", "after own writes"])
@pytest.mark.parametrize("value", [3, 99, 1000, None])
@pytest.mark.parametrize("write", WRITES)
def test_writes_are_those_of_the_general_path(
    con: belvedere.Connection, write: str, value: int | None, *, earlier: bool
) -> None:
    done = []
    con.execute("BEGIN")
    con.execute(write, (1000,))  # compiled; then from the cache
    con.execute("ROLLBACK")
    for text in (f"{write} RETURNING 1", write):
        con.execute("BEGIN")
        if earlier:
            con.execute("UPDATE t SET c = c + 1, s = 's1' WHERE a = 3 AND b < 4")
            con.execute("DELETE FROM t WHERE a = 3 AND b = 5")
            con.execute("INSERT INTO t VALUES (3, 50, 3, 'more')")
        count = con.execute(text, (value,)).rowcount
        done.append((count, read_tables(con)))
        con.execute("ROLLBACK")
    assert done[0] == done[1]


@pytest.mark.parametrize("write", WRITES)
def test_a_write_of_few_rows_has_a_fast_path(con: belvedere.Connection, write: str) -> None:
    con.execute(write, (1000,))
    session = con.session
    assert isinstance(session, Session)
    assert session.shared.plans.get(write).fast_write is not None


def test_a_violation_leaves_the_transaction_failed(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE single (id int PRIMARY KEY, n int UNIQUE, p int REFERENCES parent)")
    con.execute("INSERT INTO single VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)")
    for write, sqlstate in (
        ("UPDATE single SET n = 7 WHERE id >= ?", "23505"),
        ("UPDATE single SET n = 2 WHERE id = ?", "23505"),
        ("UPDATE single SET p = 77 WHERE id = ?", "23503"),
        ("UPDATE single SET n = n / (id - 2) WHERE id >= ?", "22012"),
    ):
        con.execute(write, (1000,))
        con.execute("BEGIN")
        con.execute("UPDATE single SET n = 9 WHERE id = ?", (3,))
        with pytest.raises(belvedere.DatabaseError) as refused:
            con.execute(write, (1,))
        assert refused.value.sqlstate == sqlstate
        with pytest.raises(belvedere.DatabaseError) as aborted:
            con.execute("SELECT 1")
        assert aborted.value.sqlstate == "25P02"
        con.execute("ROLLBACK")
    assert con.execute("SELECT n FROM single ORDER BY id").fetchall() == [(1,), (2,), (3,)]


def test_a_row_that_another_has_locked_is_waited_for(
    tmp_path: object,
) -> None:
    """The write is taken back, waits in general, and then sees what the other committed."""
    write = "UPDATE t SET c = c + ? WHERE a = ? AND b >= 8"
    with belvedere.connect(f"{tmp_path}/shop", autocommit=True) as one:
        one.execute("CREATE TABLE t (a int, b int, c int, PRIMARY KEY (a, b))")
        one.execute("INSERT INTO t VALUES (1, 8, 10), (1, 9, 10)")
        one.execute(write, (0, 1))
        with (
            belvedere.connect(f"{tmp_path}/shop", autocommit=True) as two,
            ThreadPoolExecutor() as pool,
        ):
            one.execute("BEGIN")
            one.execute("UPDATE t SET c = 100 WHERE a = 1 AND b = 9")
            two.execute("BEGIN")
            waiting = pool.submit(two.execute, write, (1, 1))
            locks = one.session.host.locks
            while not [lock for lock in locks.list_locks() if not lock.granted]:
                pass
            one.execute("COMMIT")
            assert waiting.result(60).rowcount == 2
            two.execute("COMMIT")
        assert one.execute("SELECT c FROM t ORDER BY b").fetchall() == [(11,), (101,)]


def test_a_lock_timeout_is_that_of_the_session(tmp_path: object) -> None:
    with (
        belvedere.connect(f"{tmp_path}/shop", autocommit=True) as one,
        belvedere.connect(f"{tmp_path}/shop", autocommit=True) as two,
    ):
        one.execute("CREATE TABLE t (id int PRIMARY KEY, c int)")
        one.execute("INSERT INTO t VALUES (1, 1), (2, 1)")
        one.execute("BEGIN")
        one.execute("UPDATE t SET c = 2 WHERE id = ?", (1,))
        two.execute("SET lock_timeout = 5")
        for _ in range(2):
            two.execute("BEGIN")
            two.execute("UPDATE t SET c = 3 WHERE id = ?", (2,))
            with pytest.raises(belvedere.OperationalError) as refused:
                two.execute("UPDATE t SET c = 2 WHERE id = ?", (1,))
            assert refused.value.sqlstate == "55P03"
            two.execute("ROLLBACK")
        one.execute("ROLLBACK")
        two.execute("UPDATE t SET c = 2 WHERE id = ?", (1,))


def test_the_plan_of_a_long_list_of_values_is_kept(con: belvedere.Connection) -> None:
    """It is that of one of its rows, and made from no row counts that could be out of date."""
    row = "INSERT INTO parent VALUES (?)"
    insert = f"{row}{', (?)' * 499}"
    plans = con.session.shared.plans
    con.execute(insert, tuple(range(1000, 1500)))
    kept = plans.get(row)
    for start in (2000, 3000):
        con.execute(insert, tuple(range(start, start + 500)))
        con.execute("UPDATE t SET c = 1 WHERE a = 1")
    assert kept is not None
    assert plans.get(row) is kept
    assert plans.get(insert) is None
    assert not kept.has_stale_estimates(10**9)
    con.execute("SELECT count(*) FROM t WHERE s = 's1'")
    assert plans.get("SELECT count(*) FROM t WHERE s = 's1'").estimated
