"""pg_stat_activity and pg_locks show what the clients of a server do."""

from __future__ import annotations

import getpass
from typing import Any

import psycopg
import pytest

from tests.interfaces.server.conftest import Connect

STATES = "SELECT state, query, application_name, usename FROM pg_stat_activity WHERE pid = %s"


@pytest.fixture
def worker(connect: Connect) -> psycopg.Connection[Any]:
    worker = connect(application_name="worker", autocommit=False)
    worker.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
    worker.execute("INSERT INTO t SELECT i, 0 FROM generate_series(1, 9) i")
    worker.commit()
    return worker


def find_pid(con: psycopg.Connection[Any]) -> int:
    return con.info.backend_pid


def test_states_of_a_session(worker: psycopg.Connection[Any], connect: Connect) -> None:
    watcher, user = connect(), getpass.getuser()
    watch = lambda: watcher.execute(STATES, [find_pid(worker)]).fetchone()  # noqa: E731
    text = "SELECT count(*) FROM t WHERE n < 100 GROUP BY n % 3"
    worker.execute(text)
    assert watch() == ("idle in transaction", text, "worker", user)
    with pytest.raises(psycopg.errors.DivisionByZero):
        worker.execute("SELECT 1 / n FROM t")
    assert watch() == ("idle in transaction (aborted)", "SELECT 1 / n FROM t", "worker", user)
    worker.rollback()
    assert watch()[0] == "idle"  # type: ignore[index]
    own = watcher.execute(
        "SELECT state, query_start >= backend_start, backend_type, client_addr FROM"
        " pg_stat_activity WHERE pid = pg_backend_pid()"
    )
    assert own.fetchone() == ("active", True, "client backend", None)
    worker.close()
    watcher.execute("SELECT 1")
    left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'worker'"
    while watcher.execute(left).fetchone() != (0,):
        pass


def test_statements_of_others_need_a_right(
    worker: psycopg.Connection[Any], connect: Connect
) -> None:
    watcher = connect()
    watcher.execute("CREATE ROLE ann")
    watcher.execute("SET ROLE ann")
    watcher.execute("SET SESSION AUTHORIZATION ann")
    hidden = watcher.execute(STATES, [find_pid(worker)]).fetchone()
    assert hidden is not None
    assert hidden[:3] == (None, "<insufficient privilege>", None)
    watcher.execute("RESET SESSION AUTHORIZATION")
    watcher.execute("GRANT pg_monitor TO ann")
    watcher.execute("SET SESSION AUTHORIZATION ann")
    assert watcher.execute(STATES, [find_pid(worker)]).fetchone()[2] == "worker"  # type: ignore[index]


def test_locks_name_their_session_and_table(
    worker: psycopg.Connection[Any], connect: Connect
) -> None:
    watcher = connect()
    question = (
        "SELECT relation::regclass::text, locktype, mode, granted FROM pg_locks"
        " WHERE pid = %s ORDER BY 2"
    )
    assert watcher.execute(question, [find_pid(worker)]).fetchall() == []
    worker.execute("UPDATE t SET n = n + 1 WHERE id = 1")
    found = watcher.execute(question, [find_pid(worker)]).fetchall()
    assert ("t", "tuple", "ExclusiveLock", True) in found
    worker.rollback()
    assert watcher.execute(question, [find_pid(worker)]).fetchall() == []


def test_counts_by_table_and_database(worker: psycopg.Connection[Any], connect: Connect) -> None:
    watcher = connect()
    watcher.execute("ANALYZE")
    rows = "SELECT n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE relname = 't'"
    assert watcher.execute(rows).fetchone() == (9, None)
    commits = "SELECT numbackends, xact_commit FROM pg_stat_database"
    before = watcher.execute(commits).fetchone()
    watcher.execute("INSERT INTO t VALUES (100, 1)")
    after = watcher.execute(commits).fetchone()
    assert before is not None
    assert after == (before[0], before[1] + 1)
    assert before[0] >= 2
