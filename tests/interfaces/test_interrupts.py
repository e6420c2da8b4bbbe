"""Ctrl-C while the engine works: kept until the statement has stopped, then raised by the door."""

from __future__ import annotations

import gc
import io
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any
from unittest.mock import patch

import pytest

import belvedere
from belvedere import interrupts
from belvedere.interfaces.client.connection import Connection
from belvedere.interfaces.shell.render import OutputFormat
from belvedere.interfaces.shell.shell import Shell
from belvedere.session.session import Session
from belvedere.views.registry.created_objects import StoppableReader
from belvedere.views.state.build_state import list_unfinished_builds
from tests.txn.deadline import until

ENDLESS = "SELECT sum((a.v % 7) * (b.v % 5)) FROM t AS a, t AS b WHERE a.v + b.v <> 17"
"""Minutes of DuckDB, without an overflow that would end it."""


class SoftTimeLimit(Exception):
    """What a task queue raises from a handler of its own."""


@pytest.fixture
def con() -> Iterator[Connection]:
    with belvedere.connect(":memory:", autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        connection.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 60000) AS g")
        yield connection


def session_of(con: Connection) -> Session:
    assert isinstance(con.session, Session)
    return con.session


def send_when(condition: Callable[[], bool], number: int = signal.SIGINT) -> threading.Thread:
    """Send this process a signal as soon as the condition holds."""

    def wait_and_send() -> None:
        until(condition)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=wait_and_send)
    thread.start()
    return thread


def is_duckdb_running(con: Connection) -> Callable[[], bool]:
    return lambda: bool(session_of(con).interrupt._hooks)


def test_an_interrupt_stops_what_duckdb_runs(con: Connection) -> None:
    sender = send_when(is_duckdb_running(con))
    with pytest.raises(KeyboardInterrupt):
        con.execute(ENDLESS)
    sender.join()
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(60000,)]


def test_the_shell_survives_an_interrupt_of_duckdb(con: Connection) -> None:
    out, errors = io.StringIO(), io.StringIO()
    shell = Shell(con, OutputFormat.CSV, out, errors)
    sender = send_when(is_duckdb_running(con))
    assert not shell.run_statement(ENDLESS)
    sender.join()
    assert errors.getvalue() == "canceled\n"
    assert shell.run_statement("SELECT 7")


def test_an_interrupted_transaction_has_failed(con: Connection) -> None:
    con.execute("BEGIN")
    con.execute("INSERT INTO t VALUES (-1, 1)")
    sender = send_when(is_duckdb_running(con))
    with pytest.raises(KeyboardInterrupt):
        con.execute(ENDLESS)
    sender.join()
    with pytest.raises(belvedere.ProgrammingError) as refused:
        con.execute("SELECT 1")
    assert refused.value.sqlstate == "25P02"
    con.rollback()
    assert con.execute("SELECT count(*) FROM t WHERE id < 0").fetchall() == [(0,)]


def test_an_interrupt_ends_the_wait_for_a_lock(con: Connection) -> None:
    session = session_of(con)
    other = Session(session.shared)
    other.execute("BEGIN")
    other.execute("UPDATE t SET v = 0 WHERE id = 1")
    sender = send_when(lambda: any(not lock.granted for lock in session.host.locks.list_locks()))
    with pytest.raises(KeyboardInterrupt):
        con.execute("UPDATE t SET v = 1 WHERE id = 1")
    sender.join()
    other.execute("ROLLBACK")
    con.execute("UPDATE t SET v = 1 WHERE id = 1")


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_canceling_ends_the_wait_for_a_lock(con: Connection, how: str) -> None:
    session = session_of(con)
    other = Session(session.shared)
    other.execute("BEGIN")
    other.execute("UPDATE t SET v = 0 WHERE id < 3")
    if how == "timeout":
        con.execute("SET statement_timeout = '300ms'")
    else:

        def cancel_when_waiting() -> None:
            until(lambda: any(not lock.granted for lock in session.host.locks.list_locks()))
            con.cancel()

        threading.Thread(target=cancel_when_waiting).start()
    with pytest.raises(belvedere.OperationalError) as canceled:
        con.execute("UPDATE t SET v = 1 WHERE id < 3")
    assert canceled.value.sqlstate == "57014"
    other.execute("ROLLBACK")
    con.execute("SET statement_timeout = 0")
    con.execute("UPDATE t SET v = 1 WHERE id < 3")


def test_an_interrupt_that_was_caught_keeps_nothing(con: Connection) -> None:
    """It must not hold what the frames hold where it came: a scan keeps its store open."""

    class Scan:
        pass

    check, held = interrupts.check_statement, []

    def interrupt_and_check() -> None:
        scan = Scan()
        held.append(weakref.ref(scan))
        os.kill(os.getpid(), signal.SIGINT)
        check()

    for statement in ("BEGIN", "INSERT INTO t VALUES (0, 0)", "CREATE INDEX made ON t (v)"):
        con.execute(statement)
    gc.disable()
    try:
        with patch.object(interrupts, "check_statement", interrupt_and_check):
            try:
                con.execute("COMMIT")
            except KeyboardInterrupt:
                pass
        assert len(held) == 1
        assert held[0]() is None
    finally:
        gc.enable()


def test_what_a_handler_of_the_program_raises_is_kept_too(con: Connection) -> None:
    def limit(number: int, frame: FrameType | None) -> None:
        raise SoftTimeLimit

    before = signal.signal(signal.SIGUSR1, limit)
    try:
        with belvedere.connect(":memory:"):  # wraps what is installed by now
            pass
        sender = send_when(is_duckdb_running(con), signal.SIGUSR1)
        with pytest.raises(SoftTimeLimit):
            con.execute(ENDLESS)
        sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    con.execute("INSERT INTO t VALUES (-1, 1)")


def test_an_interrupt_outside_of_the_engine_goes_off_at_once(con: Connection) -> None:
    con.execute("SELECT 1")
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert interrupts.pending is None


def test_an_interrupt_that_no_door_looks_for_goes_off_later(con: Connection) -> None:
    host = session_of(con).host
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 (it goes off in the second line)
        host.change_schema(lambda edit: signal.raise_signal(signal.SIGINT))
        until(lambda: False)
    assert interrupts.pending is None
    con.execute("INSERT INTO t VALUES (-1, 1)")


def test_handlers_that_others_install_are_wrapped_again(con: Connection) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a notebook does for every cell
    sender = send_when(is_duckdb_running(con))
    with pytest.raises(KeyboardInterrupt):
        con.execute(ENDLESS)
    sender.join()
    con.execute("INSERT INTO t VALUES (-1, 1)")


DDL = {
    "create index": "CREATE INDEX made ON t (v)",
    "create unique index": "CREATE UNIQUE INDEX made ON t (v, id)",
    "create view": "CREATE MATERIALIZED VIEW made AS SELECT v % 7, sum(v) AS s FROM t GROUP BY 1",
    "create indexed view": "CREATE INDEX made ON t (v) WITH (maintenance = 'deferred')",
    "replace view": "CREATE OR REPLACE MATERIALIZED VIEW n AS SELECT count(*) AS n, sum(v) FROM t",
    "foreign key": "ALTER TABLE u ADD FOREIGN KEY (v) REFERENCES t",
    "check": "ALTER TABLE t ADD CHECK (v > 0)",
    "not null": "ALTER TABLE t ALTER COLUMN v SET NOT NULL",
    "type": "ALTER TABLE u ALTER COLUMN v TYPE text",
    "generated column": "ALTER TABLE u ADD COLUMN w int GENERATED ALWAYS AS (v + 1) STORED",
    "identity column": "ALTER TABLE u ADD COLUMN w int GENERATED ALWAYS AS IDENTITY",
    "primary key": "ALTER TABLE u DROP CONSTRAINT u_pkey",
    "truncate": "TRUNCATE u",
    "create table as": "CREATE TABLE made AS SELECT * FROM t",
    "refresh": "REFRESH MATERIALIZED VIEW later",
    "verify": "VERIFY MATERIALIZED VIEW n",
}


@pytest.mark.parametrize("what", DDL)
def test_ddl_obeys_cancel_and_statement_timeout(con: Connection, what: str) -> None:
    con.execute("CREATE TABLE u (id int PRIMARY KEY, v int)")
    con.execute("INSERT INTO u SELECT * FROM t WHERE id < 5000")
    con.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")
    con.execute(
        "CREATE MATERIALIZED VIEW later WITH (maintenance = 'deferred', refresh_every = '1 day') AS"
        " SELECT v % 100 AS k, count(*) AS n FROM t GROUP BY 1"
    )
    con.execute("UPDATE t SET v = v + 1")
    catalog = session_of(con).host.catalog
    con.execute("SET statement_timeout = '1ms'")
    with pytest.raises(belvedere.OperationalError) as canceled:
        con.execute(DDL[what])
    assert canceled.value.sqlstate == "57014"
    assert canceled.value.detail == "statement timeout"
    con.execute("SET statement_timeout = 0")
    after = session_of(con).host.catalog
    assert [item.name for item in after.tables] == [item.name for item in catalog.tables]
    assert [item.name for item in after.views] == [item.name for item in catalog.views]
    assert not list_unfinished_builds(after)
    con.execute(DDL[what])


@pytest.mark.parametrize(
    "what", ["create index", "create unique index", "create view", "of a view"]
)
def test_what_a_commit_fills_obeys_cancel_and_statement_timeout(con: Connection, what: str) -> None:
    text = "CREATE INDEX made ON n (k)" if what == "of a view" else DDL[what]
    con.execute("CREATE MATERIALIZED VIEW n AS SELECT v AS k, count(*) AS n FROM t GROUP BY v")
    for statement in ("BEGIN", "INSERT INTO t VALUES (-1, 1)", text):
        con.execute(statement)
    con.execute("SET statement_timeout = '1ms'")
    with pytest.raises(belvedere.OperationalError) as canceled:
        con.execute("COMMIT")
    assert canceled.value.detail == "statement timeout"
    con.execute("SET statement_timeout = 0")
    assert con.execute("SELECT count(*) FROM t WHERE id < 0").fetchone() == (0,)
    assert [view.name for view in session_of(con).host.catalog.views] == ["n"]
    for statement in ("BEGIN", "INSERT INTO t VALUES (-1, 1)", text):
        con.execute(statement)
    scan = StoppableReader.scan

    def interrupt_and_scan(*arguments: Any, **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return scan(*arguments, **options)

    with (
        patch.object(StoppableReader, "scan", interrupt_and_scan),
        pytest.raises(KeyboardInterrupt),
    ):
        con.execute("COMMIT")
    assert con.execute("SELECT count(*) FROM t WHERE id < 0").fetchone() == (0,)
    for statement in ("BEGIN", "INSERT INTO t VALUES (-1, 1)", text, "COMMIT"):
        con.execute(statement)
    assert con.execute("VERIFY MATERIALIZED VIEW n").fetchall()[0][-1] is True
