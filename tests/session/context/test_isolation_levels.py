"""Isolation levels and locks as an application meets them, some of it beside PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import belvedere
from belvedere.interfaces.exceptions import Error
from tests.oracle.postgres import Postgres

TABLE = "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)"
ROWS = "INSERT INTO t VALUES (1, 10), (2, 20)"
Execute = Callable[..., Any]


@pytest.fixture
def three(tmp_path: Path) -> Iterator[list[belvedere.Connection]]:
    """Connections to one store, with autocommit."""
    path = str(tmp_path / "store")
    found = [belvedere.connect(path, autocommit=True, durability="off") for _ in range(3)]
    found[0].execute(TABLE)
    found[0].execute(ROWS)
    yield found
    for connection in found:
        connection.execute("ROLLBACK")
        connection.close()


def answer(con: belvedere.Connection | psycopg.Connection[Any], text: str) -> Any:
    """Rows, or an SQLSTATE."""
    try:
        cursor = con.execute(text)  # type: ignore[arg-type]
    except (belvedere.Error, psycopg.Error) as error:
        return error.sqlstate
    return [] if cursor.description is None else cursor.fetchall()


def in_thread(con: belvedere.Connection, text: str) -> tuple[threading.Thread, list[Any]]:
    """A statement that waits for a lock, in a thread of its own; it is known to wait."""
    told: list[Any] = []
    locks = con._session.host.locks
    before = sum(not lock.granted for lock in locks.list_locks())
    thread = threading.Thread(target=lambda: told.append(answer(con, text)))
    thread.start()
    while sum(not lock.granted for lock in locks.list_locks()) == before:
        assert thread.is_alive(), told
    return thread, told


READS = (
    "SELECT v FROM t WHERE id = 1",
    "SELECT id, v FROM t WHERE id > 0 ORDER BY id LIMIT 1",
    "SELECT max(v) FROM t WHERE id = 1",
)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(("level", "moves"), [("READ COMMITTED", True), ("REPEATABLE READ", False)])
@pytest.mark.parametrize("autocommit", [True, False])
def test_a_repeated_read_is_fresh_under_read_committed_only(
    three: list[belvedere.Connection], read: str, level: str, moves: bool, autocommit: bool
) -> None:
    one, two, _ = three
    for con in (one, two):
        con.execute(read).fetchall()  # the plan is cached
    one.autocommit = autocommit
    one.execute(f"BEGIN ISOLATION LEVEL {level}")
    first = one.execute(read).fetchall()
    two.execute("UPDATE t SET v = 11 WHERE id = 1")
    second = one.execute(read).fetchall()
    assert first[0][-1] == 10
    assert second[0][-1] == (11 if moves else 10)
    one.execute("COMMIT")


def test_a_table_made_meanwhile_is_seen_under_read_committed(
    three: list[belvedere.Connection],
) -> None:
    one, two, _ = three
    one.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    assert one.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(10,)]
    two.execute("CREATE TABLE later (id int PRIMARY KEY)")
    assert one.execute("SELECT * FROM later").fetchall() == []
    two.execute("ALTER TABLE t ADD COLUMN w int DEFAULT 7")
    assert one.execute("SELECT * FROM t WHERE id = 1").fetchall() == [(1, 10, 7)]
    one.execute("COMMIT")


def test_the_snapshot_is_that_of_the_first_statement(three: list[belvedere.Connection]) -> None:
    one, two, _ = three
    one.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    one.execute("SET LOCAL lock_timeout = '1s'")
    two.execute("UPDATE t SET v = 11 WHERE id = 1")
    assert one.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(11,)]
    two.execute("UPDATE t SET v = 12 WHERE id = 1")
    assert one.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(11,)]
    one.execute("COMMIT")


# -- SET transaction_isolation ---------------------------------------------------------------------


def skew(one: Any, two: Any, begin: list[str]) -> list[Any]:
    """Write skew: the answers of the two commits."""
    for con in (one, two):
        for statement in begin:
            con.execute(statement)
        con.execute("SELECT sum(v) FROM t").fetchall()
    one.execute("UPDATE t SET v = 0 WHERE id = 1")
    two.execute("UPDATE t SET v = 0 WHERE id = 2")
    return [answer(one, "COMMIT"), answer(two, "COMMIT")]


@pytest.mark.parametrize(
    "setting", ["transaction_isolation", "LOCAL transaction_isolation", "TRANSACTION_ISOLATION"]
)
def test_set_transaction_isolation_is_done(three: list[belvedere.Connection], setting: str) -> None:
    one, two, _ = three
    begin = ["BEGIN", f"SET {setting} = 'serializable'"]
    assert skew(one, two, begin) == [[], "40001"]
    one.execute("UPDATE t SET v = 5")
    assert skew(one, two, ["BEGIN", "SET transaction_isolation = 'repeatable read'"]) == [[], []]


SHOWS = (
    "SHOW transaction_isolation",
    "SET default_transaction_isolation = 'serializable'",
    "SHOW transaction_isolation",
    "BEGIN",
    "SHOW transaction_isolation",
    "SET transaction_isolation = 'read committed'",
    "SHOW transaction_isolation",
    "SELECT 1",
    "SET transaction_isolation = 'read committed'",
    "SET transaction_isolation = 'serializable'",
    "SHOW transaction_isolation",
    "ROLLBACK",
    "SHOW transaction_isolation",
    "SET transaction_isolation = 'read committed'",
    "SHOW transaction_isolation",
    "BEGIN ISOLATION LEVEL READ UNCOMMITTED",
    "SHOW transaction_isolation",
    "SAVEPOINT s",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "COMMIT",
    "BEGIN READ ONLY",
    "SHOW transaction_read_only",
    "COMMIT",
    "SHOW transaction_read_only",
    "BEGIN",
    "SET transaction_read_only = on",
    "INSERT INTO t VALUES (9, 9)",
    "ROLLBACK",
    "BEGIN",
    "SET transaction_isolation = 'snapshots'",
    "ROLLBACK",
    "SET default_transaction_read_only = on",
    "SHOW transaction_read_only",
    "INSERT INTO t VALUES (9, 9)",
    "SET default_transaction_read_only = off",
)


def test_transaction_settings_are_those_of_postgresql(
    three: list[belvedere.Connection], postgres: Postgres
) -> None:
    three[0].execute("SET default_transaction_isolation = 'read committed'")
    with postgres.connect(autocommit=True) as theirs:
        theirs.execute("DROP TABLE IF EXISTS t")
        theirs.execute(TABLE)
        for statement in SHOWS:
            assert answer(three[0], statement) == answer(theirs, statement), statement


# -- locks -----------------------------------------------------------------------------------------

LOCKING = (
    "UPDATE t SET v = v + 1 WHERE id = 1",
    "UPDATE t SET v = v + 1 WHERE id < 5",
    "DELETE FROM t WHERE id = 1",
    "INSERT INTO t VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET v = 0",
    "SELECT v FROM t WHERE id = 1 FOR UPDATE",
)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("statement", LOCKING)
def test_lock_timeout_ends_the_wait(
    three: list[belvedere.Connection], statement: str, inside: bool
) -> None:
    one, two, _ = three
    for _ in range(2):  # the second run is by the cached plan
        one.execute("BEGIN")
        one.execute("UPDATE t SET v = 11 WHERE id = 1")
        two.execute("SET lock_timeout = '1ms'")
        two.execute("BEGIN" if inside else "SELECT 1")
        with pytest.raises(belvedere.OperationalError) as caught:
            two.execute(statement)
        assert caught.value.sqlstate == "55P03"
        two.execute("ROLLBACK")
        one.execute("ROLLBACK")


def test_lock_timeout_of_a_transaction_ends_with_it(three: list[belvedere.Connection]) -> None:
    one, two, _ = three
    one.execute("BEGIN")
    one.execute("UPDATE t SET v = 11 WHERE id = 1")
    two.execute("BEGIN")
    two.execute("SET LOCAL lock_timeout = '1ms'")
    assert answer(two, "UPDATE t SET v = 12 WHERE id = 1") == "55P03"
    two.execute("ROLLBACK")
    thread, told = in_thread(two, "UPDATE t SET v = 12 WHERE id = 1")
    one.execute("COMMIT")
    thread.join()
    assert told == [[]]


def test_a_failed_transaction_gives_up_its_locks(three: list[belvedere.Connection]) -> None:
    one, two, three_ = three
    for failure in ("SELECT 1 / 0", "SELECT nothing FROM t", "INSERT INTO t VALUES (2, 2)"):
        one.execute("BEGIN")
        one.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        thread, told = in_thread(two, "UPDATE t SET v = v + 1 WHERE id = 1")
        assert len(answer(one, failure)) == 5
        thread.join()
        assert told == [[]]
        assert answer(one, "SELECT 1") == "25P02"
        assert answer(one, "COMMIT") == []
    assert three_.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(13,)]


def test_the_survivor_of_a_deadlock_goes_on(three: list[belvedere.Connection]) -> None:
    one, two, _ = three
    for con, key in ((one, 1), (two, 2)):
        con.execute("BEGIN")
        con.execute("UPDATE t SET v = v + 1 WHERE id = ?", (key,))
    thread, told = in_thread(one, "UPDATE t SET v = v + 1 WHERE id = 2")
    assert answer(two, "UPDATE t SET v = v + 1 WHERE id = 1") == "40P01"
    thread.join()
    assert told == [[]]
    one.execute("COMMIT")
    two.execute("ROLLBACK")
    assert one.execute("SELECT v FROM t ORDER BY id").fetchall() == [(11,), (21,)]


def test_a_failure_after_a_savepoint_gives_up_the_locks_since(
    three: list[belvedere.Connection],
) -> None:
    one, two, three_ = three
    one.execute("BEGIN")
    one.execute("UPDATE t SET v = 11 WHERE id = 1")
    one.execute("SAVEPOINT s")
    one.execute("UPDATE t SET v = 21 WHERE id = 2")
    assert answer(one, "SELECT 1 / 0") == "22012"
    two.execute("UPDATE t SET v = 22 WHERE id = 2")
    thread, told = in_thread(three_, "UPDATE t SET v = v + 1 WHERE id = 1")
    one.execute("ROLLBACK TO s")
    one.execute("COMMIT")
    thread.join()
    assert told == [[]]
    assert one.execute("SELECT v FROM t ORDER BY id").fetchall() == [(12,), (22,)]


# -- READ COMMITTED goes on with the newest row ----------------------------------------------------

FIRST = "UPDATE t SET v = v + 100 WHERE id = 1"
WAITING = (
    (FIRST, "UPDATE t SET v = v + 1 WHERE id = 1", [(1, 111), (2, 20)]),
    (FIRST, "UPDATE t SET v = v + 1 WHERE id = 1 AND v < 100", [(1, 110), (2, 20)]),
    (FIRST, "UPDATE t SET v = v + 1 WHERE v < 100 AND id < 5", [(1, 110), (2, 21)]),
    (FIRST, "DELETE FROM t WHERE id = 1 AND v = 10", [(1, 110), (2, 20)]),
    (FIRST, "DELETE FROM t WHERE id = 1", [(2, 20)]),
    ("DELETE FROM t WHERE id = 1", "UPDATE t SET v = v + 1 WHERE id = 1", [(2, 20)]),
    (
        FIRST,
        "INSERT INTO t VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v",
        [(1, 111), (2, 20)],
    ),
    (
        "INSERT INTO t VALUES (3, 3)",
        "INSERT INTO t VALUES (3, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v",
        [(1, 10), (2, 20), (3, 4)],
    ),
    (
        "INSERT INTO t VALUES (3, 3)",
        "INSERT INTO t VALUES (3, 1) ON CONFLICT DO NOTHING",
        [(1, 10), (2, 20), (3, 3)],
    ),
    ("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 1)", [(1, 1), (2, 20)]),
)


@pytest.mark.parametrize(("first", "waiting", "last"), WAITING)
@pytest.mark.parametrize("inside", [True, False])
def test_a_statement_that_waited_goes_on_with_the_newest_row(
    three: list[belvedere.Connection],
    first: str,
    waiting: str,
    last: list[tuple[int, int]],
    inside: bool,
) -> None:
    one, two, three_ = three
    for statement in (first, waiting):  # plans are cached
        three_.execute("BEGIN")
        answer(three_, statement)
        three_.execute("ROLLBACK")
    one.execute("BEGIN")
    one.execute(first)
    two.execute("SET default_transaction_isolation = 'read committed'")
    if inside:
        two.execute("BEGIN")
        two.execute("SELECT * FROM t WHERE id = 2")
    thread, told = in_thread(two, waiting)
    one.execute("COMMIT")
    thread.join()
    assert told == [[]]
    if inside:
        two.execute("COMMIT")
    assert three_.execute("SELECT * FROM t ORDER BY id").fetchall() == last


def test_for_update_shows_the_newest_row_under_read_committed(
    three: list[belvedere.Connection],
) -> None:
    one, two, _ = three
    for level, seen in (("READ COMMITTED", [(110,)]), ("REPEATABLE READ", "40001")):
        one.execute("UPDATE t SET v = 10 WHERE id = 1")
        two.execute(f"BEGIN ISOLATION LEVEL {level}")
        two.execute("SELECT * FROM t").fetchall()
        one.execute("BEGIN")
        one.execute(FIRST)
        thread, told = in_thread(two, "SELECT v FROM t WHERE id = 1 FOR UPDATE")
        one.execute("COMMIT")
        thread.join()
        assert told == [seen]
        two.execute("ROLLBACK")


def test_what_a_restarted_statement_no_longer_needs_is_not_locked(
    three: list[belvedere.Connection],
) -> None:
    one, two, three_ = three
    one.execute("BEGIN")
    one.execute(FIRST)
    two.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    thread, told = in_thread(two, "UPDATE t SET v = 0 WHERE v = 10 AND id < 5")
    one.execute("COMMIT")
    thread.join()
    assert told == [[]]
    three_.execute("SET lock_timeout = '1ms'")
    three_.execute("UPDATE t SET v = v + 1 WHERE id = 1")
    two.execute("COMMIT")
    assert one.execute("SELECT v FROM t ORDER BY id").fetchall() == [(111,), (20,)]


def test_a_restart_takes_back_only_its_own_statement(three: list[belvedere.Connection]) -> None:
    one, two, _ = three
    one.execute("BEGIN")
    one.execute(FIRST)
    two.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    two.execute("INSERT INTO t VALUES (7, 70)")
    two.execute("UPDATE t SET v = v + 1 WHERE id = 2")
    thread, told = in_thread(two, "UPDATE t SET v = v * 2 WHERE id < 9")
    one.execute("COMMIT")
    thread.join()
    assert told == [[]]
    two.execute("COMMIT")
    assert one.execute("SELECT * FROM t ORDER BY id").fetchall() == [(1, 220), (2, 42), (7, 140)]


# -- without autocommit ----------------------------------------------------------------------------


def test_set_local_and_lock_table_come_first_without_autocommit(
    three: list[belvedere.Connection],
) -> None:
    one, two, _ = three
    one.autocommit = False
    one.execute("SET LOCAL lock_timeout = '7s'")
    assert one.execute("SHOW lock_timeout").fetchall() == [("7s",)]
    one.commit()
    assert one.execute("SHOW lock_timeout").fetchall() == [("0",)]
    one.rollback()
    one.execute("LOCK TABLE t IN EXCLUSIVE MODE")
    two.execute("BEGIN")
    assert answer(two, "LOCK TABLE t NOWAIT") == "55P03"
    two.execute("ROLLBACK")
    one.commit()
    with pytest.raises(Error) as caught:
        two.execute("LOCK TABLE t")
    assert caught.value.sqlstate == "25P01"
