"""Pages by key: the fast path gives what the general path gives, at one position."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from belvedere import failpoints
from belvedere.interfaces.dbapi import Connection, connect
from belvedere.interfaces.exceptions import DataError
from belvedere.session.statement import cached_plans
from belvedere.session.statement.compiled_statement import CompiledStatement

ROWS = 2000


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.disarm_all()


@pytest.fixture
def con() -> Iterator[Connection]:
    made = connect(":memory:")
    made.autocommit = True
    made.execute("CREATE TABLE one (id int PRIMARY KEY, note text)")
    made.execute("CREATE TABLE two (a text, b int, c text, PRIMARY KEY (a, b))")
    made.execute(f"INSERT INTO one SELECT 2 * i, 'n' || i FROM generate_series(1, {ROWS}) g(i)")
    made.execute("INSERT INTO two SELECT 'ab', i, 'c' || i FROM generate_series(1, 50) g(i)")
    made.execute("INSERT INTO two SELECT 'b', i, NULL FROM generate_series(1, 50) g(i)")
    yield made
    made.close()


PAGES = {
    "forwards": ("SELECT * FROM one WHERE id >= ? ORDER BY id LIMIT ?", 777),
    "after": ("SELECT note, id FROM one WHERE id > ? ORDER BY id LIMIT ?", 778),
    "backwards": ("SELECT id FROM one WHERE id < ? ORDER BY id DESC LIMIT ?", 3000),
    "newest": ("SELECT id, note FROM one WHERE id > ? ORDER BY id DESC LIMIT ?", 100),
    "prefix": ("SELECT b, c FROM two WHERE a = ? ORDER BY b DESC LIMIT ?", "ab"),
    "prefix backwards": ("SELECT b FROM two WHERE a = ? ORDER BY b LIMIT ?", "b"),
    "inside a prefix": ("SELECT * FROM two WHERE a = ? AND b < 20 ORDER BY b DESC LIMIT ?", "b"),
    "without an order": ("SELECT id FROM one WHERE id > ? LIMIT ?", 5),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_usual_way_gives(con: Connection, name: str) -> None:
    sql, start = PAGES[name]
    con.execute(sql, (start, 1))
    for limit in (0, 1, 2, 49, 50, 51, 500, 1024, 1025, 5000, None):
        found = con.execute(sql, (start, limit)).fetchall()
        con.execute("SET tier = 'duckdb'")
        assert found == con.execute(sql, (start, limit)).fetchall(), limit
        con.execute("SET tier = 'auto'")
    assert con.execute(sql, (None, 10)).fetchall() == []
    with pytest.raises(DataError) as refused:
        con.execute(sql, (start, -1))
    assert refused.value.sqlstate == "2201W"


@pytest.mark.parametrize("name", ["forwards", "backwards"])
def test_a_page_has_the_changes_of_its_own_transaction(con: Connection, name: str) -> None:
    sql, start = PAGES[name]
    con.execute(sql, (start, 1))
    con.execute("BEGIN")
    con.execute("DELETE FROM one WHERE id % 3 = 0 AND id < 1500")
    con.execute("INSERT INTO one VALUES (779, 'mine'), (781, 'mine'), (2999, 'mine')")
    con.execute("UPDATE one SET note = 'changed' WHERE id IN (784, 2996)")
    for limit in (1, 3, 10, 400):
        found = con.execute(sql, (start, limit)).fetchall()
        con.execute("SET tier = 'duckdb'")
        assert found == con.execute(sql, (start, limit)).fetchall(), limit
        con.execute("SET tier = 'auto'")
    con.execute("ROLLBACK")


def test_nobody_sees_in_a_page_what_is_not_durable_yet(tmp_path: Path) -> None:
    sql = "SELECT id, n FROM t WHERE id >= ? ORDER BY id LIMIT ?"
    path = str(tmp_path / "store")
    with connect(path, autocommit=True) as one, connect(path, autocommit=True) as two:
        one.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
        one.execute("INSERT INTO t VALUES (1, 0), (2, 0), (4, 0)")
        two.execute(sql, (1, 10))
        seen = []
        page = lambda: seen.append(two.execute(sql, (1, 10)).fetchall())  # noqa: E731
        for change in (
            "UPDATE t SET n = 1 WHERE id = 1",
            "INSERT INTO t VALUES (3, 0)",
            "DELETE FROM t WHERE id = 2",
        ):
            failpoints.arm("sync.before", "call", call=page)
            one.execute(change)
            failpoints.disarm_all()
            page()
    assert seen == [
        [(1, 0), (2, 0), (4, 0)],
        [(1, 1), (2, 0), (4, 0)],
        [(1, 1), (2, 0), (4, 0)],
        [(1, 1), (2, 0), (3, 0), (4, 0)],
        [(1, 1), (2, 0), (3, 0), (4, 0)],
        [(1, 1), (3, 0), (4, 0)],
    ]


@pytest.mark.parametrize("durability", ["off", "full"])
def test_a_page_is_of_one_moment(tmp_path: Path, durability: str) -> None:
    """Amounts move between the rows of a page, from its ends to its ends, and rows come and go."""
    path, rows = str(tmp_path / "store"), 60
    sql = "SELECT id, n FROM t WHERE id >= ? ORDER BY id LIMIT ?"
    done = threading.Event()
    failures: list[BaseException] = []

    def write(seed: int) -> None:
        rng = random.Random(seed)
        try:
            with connect(path, autocommit=True, durability=durability) as con:
                for _ in range(60):
                    low, high = rng.randrange(5), rows - 1 - rng.randrange(5)
                    con.execute("BEGIN")
                    con.execute("UPDATE t SET n = n - 1 WHERE id = ?", (low,))
                    con.execute("UPDATE t SET n = n + 1 WHERE id = ?", (high,))
                    con.execute("COMMIT")
        except BaseException as error:
            failures.append(error)
            raise
        finally:
            done.set()

    with connect(path, autocommit=True, durability=durability) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
        con.execute(f"INSERT INTO t SELECT i, 100 FROM generate_series(0, {rows - 1}) g(i)")
        con.execute(sql, (0, rows))
        writer = threading.Thread(target=write, args=(7,))
        writer.start()
        pages = 0
        while not done.is_set() or not pages:
            found = con.execute(sql, (0, rows)).fetchall()
            assert sum(n for _, n in found) == 100 * rows
            pages += 1
        writer.join()
    assert not failures


@pytest.mark.parametrize("order", ["ORDER BY id", "ORDER BY id DESC", ""])
def test_a_page_of_a_whole_table_is_what_the_usual_way_gives(con: Connection, order: str) -> None:
    sql = f"SELECT id, note FROM one {order} LIMIT ?"
    entry = compile_plan_of(con, sql)
    one_scan_is_consistent = con._session.host.single_row_commits is not None
    assert (entry.fast_read is not None) == one_scan_is_consistent
    con.execute("BEGIN")
    for changes in (
        "SELECT 1",
        "DELETE FROM one WHERE id % 3 = 0",
        "INSERT INTO one VALUES (1, 'x')",
    ):
        con.execute(changes)
        for limit in (0, 1, 7, 1024, 1025):
            found = con.execute(sql, (limit,)).fetchall()
            con.execute("SET tier = 'duckdb'")
            expected = con.execute(sql.replace("LIMIT ?", "")).fetchall()[:limit]
            con.execute("SET tier = 'auto'")
            assert found == expected if order else set(found) <= set(con.execute(_ALL).fetchall())
            assert len(found) == min(limit, len(con.execute(_ALL).fetchall()))
    con.execute("ROLLBACK")


_ALL = "SELECT id, note FROM one"


def compile_plan_of(con: Connection, sql: str) -> CompiledStatement:
    con.execute(sql, (1,))
    found = cached_plans.find_plan(con._session, sql, ())
    assert found is not None
    return found
