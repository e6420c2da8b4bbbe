"""UPDATE and DELETE of many rows in batches: what the general path does, and all or nothing."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.execution import bulk_insert, memory_limit, row_writes
from belvedere.execution.python.statements import bulk_writes
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.indexes import entries

ROWS = 3_000

TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, region int NOT NULL, amount numeric(12, 2), note text,"
    " twice bigint GENERATED ALWAYS AS (region * 2) STORED, CHECK (region < 1000))",
    "CREATE INDEX t_amount ON t (amount)",
    "CREATE INDEX t_region ON t (region, note)",
    "CREATE INDEX t_some ON t ((region % 3)) WHERE note IS NOT NULL",
    "CREATE MATERIALIZED VIEW v WITH (maintenance = 'immediate') AS"
    " SELECT region, count(*) AS n, sum(amount) AS total FROM t GROUP BY region",
)

STATEMENTS = (
    "UPDATE t SET amount = amount + 1",
    "UPDATE t SET amount = NULL, note = note || '!' WHERE id BETWEEN 100 AND 2900",
    "UPDATE t SET region = region + 1 WHERE id % 2 = 0",
    "UPDATE t SET region = region",
    "UPDATE t SET note = CASE WHEN id % 5 = 0 THEN NULL ELSE 'x' END WHERE region > 3",
    "UPDATE t SET amount = (SELECT max(id) FROM t) WHERE id > 10",
    "UPDATE t SET id = id + 5000 WHERE id > 10",
    "DELETE FROM t WHERE id >= 500 AND id < 2500",
    "DELETE FROM t WHERE region % 2 = 0",
    "DELETE FROM t",
)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_writes, "BATCH_ROWS", 700)
    monkeypatch.setattr(bulk_insert, "BATCH_ROWS", 700)
    monkeypatch.setattr(entries, "COLUMNS_ROWS_MIN", 100)


@contextmanager
def opened(**options: Any) -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:bulk", autocommit=True, **options) as con:
        yield con


def load(con: belvedere.Connection, rows: int = ROWS) -> None:
    for statement in TABLES:
        con.execute(statement)
    con.execute(
        "INSERT INTO t (id, region, amount, note) SELECT n, n % 7, n / 4.0,"
        f" CASE WHEN n % 4 > 0 THEN 'note ' || n END FROM generate_series(1, {rows}) AS s(n)"
    )


def all_rows(con: belvedere.Connection) -> list[Any]:
    return con.execute("SELECT * FROM t ORDER BY id").fetchall()


def held_locks(con: belvedere.Connection) -> int:
    [(count,)] = con.execute("SELECT count(*) FROM belvedere.locks").fetchall()
    return int(count)


def refused(action: Callable[[], object]) -> belvedere.Error:
    with pytest.raises(belvedere.Error) as caught:
        action()
    return caught.value


def run_all(con: belvedere.Connection) -> list[Any]:
    states: list[Any] = []
    for statement in STATEMENTS:
        done = con.execute(statement).rowcount
        index = con.execute("SELECT id FROM t WHERE amount > 0 ORDER BY amount, id").fetchall()
        view = con.execute("SELECT * FROM v ORDER BY 1").fetchall()
        states.append((statement, done, all_rows(con), index, view))
        query = "SELECT region, count(*), sum(amount) FROM t GROUP BY region ORDER BY 1"
        con.execute("SET rewrite = off")
        assert view == con.execute(query).fetchall()
    return states


def test_batches_store_what_the_general_path_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as con:
        load(con)
        by_batches = run_all(con)
    monkeypatch.setattr(bulk_writes, "compile_bulk_update", lambda *_: None)
    monkeypatch.setattr(bulk_writes, "compile_bulk_delete", lambda *_: None)
    monkeypatch.setattr(entries, "COLUMNS_ROWS_MIN", 10**9)
    with opened() as con:
        load(con)
        by_rows = run_all(con)
    assert by_batches == by_rows
    assert [state[1] for state in by_rows] != [0] * len(STATEMENTS)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET amount = amount + 1",
        "UPDATE t SET amount = amount + 1 WHERE id > 5",
        "UPDATE t SET amount = amount + 1 WHERE id % 10 > 0",
        "DELETE FROM t WHERE id > 5",
        "INSERT INTO t (id, region) SELECT id + 9000, region FROM t",
    ],
)
def test_rows_are_not_looked_up_locked_or_written_one_by_one(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    with opened() as con:
        load(con)
        for name in ("get", "write", "lock_root"):
            known = getattr(Transaction, name)

            def count_call(*arguments: Any, known: Any = known, name: str = name) -> Any:
                calls.append(name)
                return known(*arguments)

            monkeypatch.setattr(Transaction, name, count_call)
        assert con.execute(statement).rowcount > ROWS * 0.8
    assert len(calls) < 10, calls[:20]


def test_returning_gives_new_rows_of_an_update_and_old_ones_of_a_delete() -> None:
    with opened() as con:
        load(con)
        before = all_rows(con)
        changed = con.execute("UPDATE t SET region = 9 RETURNING id, region").fetchall()
        assert sorted(changed) == [(row[0], 9) for row in before]
        gone = con.execute("DELETE FROM t WHERE id <= 2000 RETURNING id, region").fetchall()
        assert sorted(gone) == [(row[0], 9) for row in before[:2000]]


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("UPDATE t SET region = id", "23514"),
        ("UPDATE t SET region = CASE WHEN id < 2000 THEN 1 END", "23502"),
        ("UPDATE t SET amount = 1 / (id - 2000)", "22012"),
        ("UPDATE t SET amount = 1e9 * id", "22003"),
    ],
)
def test_a_row_that_is_refused_changes_nothing(statement: str, sqlstate: str) -> None:
    with opened() as con:
        load(con)
        before = all_rows(con)
        assert refused(lambda: con.execute(statement)).sqlstate == sqlstate
        assert all_rows(con) == before
        assert held_locks(con) == 0


def test_unique_values_may_move_within_a_statement_and_collide_in_none() -> None:
    with opened() as con:
        load(con)
        con.execute("ALTER TABLE t ADD COLUMN code int")
        con.execute("UPDATE t SET code = id")
        con.execute("CREATE UNIQUE INDEX t_code ON t (code)")
        con.execute("UPDATE t SET code = code + 1")
        before = all_rows(con)
        assert refused(lambda: con.execute("UPDATE t SET code = code % 2999")).sqlstate == "23505"
        assert all_rows(con) == before


@pytest.mark.parametrize(
    "statement", ["UPDATE t SET region = 8", "DELETE FROM t", "INSERT INTO t SELECT * FROM u"]
)
def test_a_canceled_statement_changes_nothing_and_frees_its_locks(
    monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    with opened() as con:
        load(con)
        con.execute("CREATE TABLE u (id int PRIMARY KEY, region int, amount numeric, note text)")
        con.execute("INSERT INTO u SELECT id + 9000, region, amount, note FROM t")
        if statement.startswith("INSERT"):
            statement = "INSERT INTO t (id, region) SELECT id, region FROM u"
            monkeypatch.setattr(bulk_insert, "ROWS_MIN", 100)
        before, write_many = all_rows(con), Transaction.write_many

        def cancel_and_write(self: Transaction, *arguments: Any) -> None:
            write_many(self, *arguments)
            con.cancel()

        monkeypatch.setattr(Transaction, "write_many", cancel_and_write)
        for within in (False, True):
            if within:
                con.execute("BEGIN")
            assert refused(lambda: con.execute(statement)).sqlstate == "57014"
            if within:
                con.execute("ROLLBACK")
            assert all_rows(con) == before
            assert held_locks(con) == 0
        monkeypatch.setattr(Transaction, "write_many", write_many)
        assert con.execute(statement).rowcount == ROWS


def test_a_locked_row_is_waited_for_and_the_others_are_let_go() -> None:
    with opened() as con, opened() as other:
        load(con)
        before = all_rows(con)
        other.execute("BEGIN")
        other.execute("UPDATE t SET note = 'mine' WHERE id = 2000")
        con.execute("SET lock_timeout = 10")
        assert refused(lambda: con.execute("UPDATE t SET region = 8")).sqlstate == "55P03"
        assert held_locks(con) == 1
        other.execute("ROLLBACK")
        assert all_rows(con) == before
        assert con.execute("UPDATE t SET region = 8").rowcount == ROWS
        assert held_locks(con) == 0


def test_a_snapshot_does_not_see_what_comes_after_it() -> None:
    with opened() as con, opened() as other:
        load(con)
        before = all_rows(con)
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert all_rows(other) == before
        con.execute("UPDATE t SET region = 8")
        con.execute("DELETE FROM t WHERE id > 1000")
        assert all_rows(other) == before
        view = other.execute("SELECT sum(n) FROM v").fetchall()
        assert view == [(ROWS,)]
        error = refused(lambda: other.execute("UPDATE t SET region = 7"))
        assert error.sqlstate == "40001"
        other.execute("ROLLBACK")


def test_savepoints_and_own_rows_of_a_transaction() -> None:
    with opened() as con:
        load(con)
        before = all_rows(con)
        con.execute("BEGIN")
        con.execute("INSERT INTO t (id, region) VALUES (9001, 1), (9002, 2)")
        con.execute("DELETE FROM t WHERE id = 5")
        con.execute("SAVEPOINT s")
        assert con.execute("UPDATE t SET region = 8").rowcount == ROWS + 1
        assert con.execute("UPDATE t SET region = region + 1").rowcount == ROWS + 1
        assert con.execute("SELECT n FROM v").fetchall() == [(ROWS + 1,)]
        con.execute("ROLLBACK TO s")
        assert con.execute("SELECT sum(n) FROM v WHERE region < 7").fetchall() == [(ROWS + 1,)]
        assert con.execute("DELETE FROM t WHERE id > 9000").rowcount == 2
        con.execute("COMMIT")
        assert all_rows(con) == [row for row in before if row[0] != 5]


def test_children_are_locked_by_their_roots_and_follow_their_parents() -> None:
    with opened() as con:
        con.execute("CREATE TABLE p (id int PRIMARY KEY, n int)")
        con.execute(
            "CREATE TABLE c (id int PRIMARY KEY, n int,"
            " p int NOT NULL REFERENCES p ON DELETE CASCADE)"
        )
        con.execute("INSERT INTO p SELECT n, 0 FROM generate_series(1, 1500) AS s(n)")
        con.execute("INSERT INTO c SELECT n, 0, 1 + n % 1500 FROM generate_series(1, 3000) s(n)")
        con.execute("BEGIN")
        con.execute("UPDATE c SET n = 1, p = 7 WHERE id <= 1400")
        assert held_locks(con) == 1400
        con.execute("COMMIT")
        assert refused(lambda: con.execute("UPDATE c SET p = 0")).sqlstate == "23503"
        assert con.execute("DELETE FROM p WHERE id <> 7").rowcount == 1499
        assert con.execute("SELECT count(*), min(p), max(p) FROM c").fetchall() == [(1401, 7, 7)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET region = 8",
        "DELETE FROM t",
        "INSERT INTO t (id, region, note) SELECT id + 9000, region, note FROM t",
    ],
)
def test_a_change_too_large_for_memory_is_refused_with_its_size(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_limit, "CHANGES_BYTES_MAX", 0)
    with opened(memory_limit_mb=1) as con:
        load(con, 700)
        before = all_rows(con)
        con.execute("INSERT INTO t (id, region) SELECT n, 1 FROM generate_series(3001, 3700) s(n)")
        error = refused(lambda: con.execute(statement))
        assert error.sqlstate == "53200"
        assert "needed_mb=2" in str(error)
        con.execute("DELETE FROM t WHERE id > 3000")
        assert all_rows(con) == before
        assert held_locks(con) == 0


def test_a_changed_row_takes_no_more_memory_than_is_reserved_for_it(tmp_path: Path) -> None:
    rows, note = 20_000, "n" * 100
    with belvedere.connect(str(tmp_path / "s"), autocommit=True, durability="off") as con:
        con.execute("CREATE TABLE m (id int PRIMARY KEY, n bigint, note text)")
        con.execute(f"INSERT INTO m SELECT n, n, '{note}' FROM generate_series(1, {rows}) s(n)")
        con.execute("UPDATE m SET n = n + 1 WHERE id < 2000")
        tracemalloc.start()
        try:
            con.execute("UPDATE m SET n = n + 1")
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    stored = len(note) + 30
    bound = memory_limit.CHANGE_BYTES + memory_limit.ROW_COPIES * stored
    assert taken / rows < bound


def test_a_row_with_two_roots_is_checked_before_the_next_is_waited_for() -> None:
    """A bulk UPDATE of a foreign key locks the parents before and after; the first of its rows has
    changed since the snapshot, and another transaction holds the parent of the second."""
    with opened() as con, opened() as other:
        con.execute("CREATE TABLE p (id int PRIMARY KEY, v int)")
        con.execute("CREATE TABLE c (id int PRIMARY KEY, p int NOT NULL REFERENCES p, v int)")
        con.execute("INSERT INTO p VALUES (1, 0), (2, 0), (3, 0)")
        con.execute("INSERT INTO c VALUES (1, 1, 0), (2, 2, 0)")
        con.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert con.execute("SELECT count(*) FROM c").fetchall() == [(2,)]
        other.execute("UPDATE c SET v = 1 WHERE id = 1")
        other.execute("BEGIN")
        other.execute("UPDATE p SET v = 1 WHERE id = 2")
        con.execute("SET lock_timeout = '1ms'")
        with pytest.raises(belvedere.OperationalError) as failed:
            con.execute("UPDATE c SET p = 3 WHERE v < 5")
        assert failed.value.sqlstate == "40001"
