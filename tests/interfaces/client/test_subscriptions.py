"""`con.subscribe` of a table: its changes from the log, in this process and over the socket."""

from __future__ import annotations

from collections import Counter

import pytest

import belvedere


@pytest.fixture
def table(con: belvedere.Connection) -> belvedere.Connection:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, a text)")
    con.execute("CREATE TABLE other (id int PRIMARY KEY)")
    return con


def test_changes_of_a_table_come_with_their_positions(table: belvedere.Connection) -> None:
    with table.subscribe("t", timeout_s=0) as changes:
        start = changes.position
        table.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        table.execute("INSERT INTO other VALUES (1)")
        table.execute("UPDATE t SET a = 'z' WHERE id = 1")
        table.execute("UPDATE t SET a = a WHERE id = 2")
        table.execute("DELETE FROM t WHERE id = 2")
        found = list(changes)
    assert sorted(found[:2]) == [(start + 1, (1, "x"), 1), (start + 1, (2, "y"), 1)]
    assert found[2:4] == [(start + 3, (1, "x"), -1), (start + 3, (1, "z"), 1)]
    assert found[4][1:] == ((2, "y"), -1)
    assert changes.position >= found[4].position


def test_a_subscriber_resumes_where_it_stopped(table: belvedere.Connection) -> None:
    with table.subscribe("public.t") as first:
        table.execute("INSERT INTO t VALUES (1, 'x')")
        assert len(first.poll()) == 1
        reached = first.position
    table.execute("INSERT INTO t VALUES (2, 'y')")
    with table.subscribe("t", reached) as second:
        assert [(row, weight) for _, row, weight in second.poll()] == [((2, "y"), 1)]
        assert second.poll() == []


def test_what_was_read_goes_on_without_a_gap(table: belvedere.Connection) -> None:
    table.execute("INSERT INTO t VALUES (1, 'x')")
    rows = Counter(table.execute("SELECT * FROM t").fetchall())
    start = table.token
    table.execute("INSERT INTO t VALUES (2, 'y')")
    table.execute("DELETE FROM t WHERE id = 1")
    with table.subscribe("t", start, timeout_s=0) as changes:
        for _, row, weight in changes:
            rows[row] += weight
    assert +rows == Counter(table.execute("SELECT * FROM t").fetchall())
    with pytest.raises(belvedere.Error) as refused:
        table.subscribe("t", "nonsense")
    assert refused.value.sqlstate == "22023"


def test_the_sum_of_all_changes_is_the_table(table: belvedere.Connection) -> None:
    table.execute("CREATE TABLE bag (a int, b int)")  # without a key
    table.execute("INSERT INTO bag SELECT g % 3, g FROM generate_series(1, 50) AS g")
    table.execute("UPDATE bag SET b = b / 2 WHERE a = 1")
    table.execute("ALTER TABLE bag ADD COLUMN c int DEFAULT 7")
    table.execute("DELETE FROM bag WHERE b % 5 = 0")
    table.execute("INSERT INTO bag VALUES (1, 1, 1), (1, 1, 1)")
    table.execute("ALTER TABLE bag DROP COLUMN a")
    rows: Counter[object] = Counter()
    with table.subscribe("bag", 0, timeout_s=0) as changes:
        for _, row, weight in changes:
            rows[row] += weight
    assert +rows == Counter(table.execute("SELECT * FROM bag").fetchall())


def test_positions_outside_of_the_log_are_refused(table: belvedere.Connection) -> None:
    with pytest.raises(belvedere.DataError, match="newest="):
        table.subscribe("t", 10**6)
    with pytest.raises(belvedere.DataError, match="not in the log"):
        table.subscribe("t", -1)


def test_a_trimmed_log_is_an_error_that_says_what_to_do() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY)")
        changes = con.subscribe("t", timeout_s=0)
        con.executemany("INSERT INTO t VALUES (?)", [(1,)])
        con.execute("INSERT INTO t VALUES (2)")
        con.session.host.trim(con.session.host.position - 1)  # type: ignore[union-attr]
        with pytest.raises(belvedere.DataError, match="read the table") as caught:
            next(changes)
    assert caught.value.sqlstate == "22023"


def test_a_dropped_table_ends_its_subscription(table: belvedere.Connection) -> None:
    with table.subscribe("t", timeout_s=0) as changes:
        table.execute("DROP TABLE t")
        with pytest.raises(belvedere.OperationalError, match="dropped"):
            next(changes)


def test_names_that_are_neither_are_refused(table: belvedere.Connection) -> None:
    with pytest.raises(belvedere.ProgrammingError):
        table.subscribe("nosuch")


def test_a_read_only_connection_may_subscribe_to_a_table(table: belvedere.Connection) -> None:
    with belvedere.connect(":memory:sub", autocommit=True) as writer:
        writer.execute("CREATE TABLE t (id int PRIMARY KEY)")
        with belvedere.connect(":memory:sub", read_only=True) as reader:
            with reader.subscribe("t") as changes:
                writer.execute("INSERT INTO t VALUES (1)")
                assert [row for _, row, _ in changes.poll()] == [(1,)]
