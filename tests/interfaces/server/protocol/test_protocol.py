"""The server through psycopg: both protocols, both formats, pipelines, errors, cancel."""

from __future__ import annotations

import datetime
import decimal
import threading
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.interfaces.server.conftest import Connect

VALUES: tuple[Any, ...] = (
    1,
    2**40,
    1.5,
    decimal.Decimal("-12345.6700"),
    decimal.Decimal("0.00001"),
    decimal.Decimal("1E+9"),
    decimal.Decimal(0),
    "héé",
    b"\x00\xff",
    datetime.date(1, 1, 1),
    datetime.date(2024, 2, 29),
    datetime.time(1, 2, 3, 4),
    datetime.datetime(1999, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
    datetime.timedelta(days=3, seconds=-4),
    uuid.UUID(int=5),
    True,
    [1, 2, None],
    [],
)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("value", VALUES, ids=str)
def test_values_come_back_as_they_were_sent(connect: Connect, value: Any, *, binary: bool) -> None:
    cursor = connect().cursor(binary=binary)
    for placeholder in ("%t", "%b"):
        if value == [] and placeholder == "%b":
            continue  # it has no type
        found = cursor.execute(f"SELECT {placeholder}", (value,)).fetchone()
        assert found is not None
        assert found[0] == ("{}" if value == [] else value)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "12345678901234567890.10"])
def test_special_numerics_in_both_formats(connect: Connect, text: str, *, binary: bool) -> None:
    cursor = connect().cursor(binary=binary)
    (found,) = cursor.execute("SELECT %b", (decimal.Decimal(text),)).fetchone() or ()
    assert str(found) == text


def test_a_text_of_several_statements_is_one_transaction(connect: Connect) -> None:
    con = connect()
    cursor = psycopg.ClientCursor(con)
    cursor.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1); SELECT 7")
    assert cursor.nextset()
    assert cursor.nextset()
    assert cursor.fetchall() == [(7,)]
    with pytest.raises(psycopg.errors.UniqueViolation) as caught:
        cursor.execute("INSERT INTO t VALUES (2); INSERT INTO t VALUES (1)")
    assert caught.value.diag.constraint_name == "t_pkey"
    with pytest.raises(psycopg.errors.UniqueViolation):
        cursor.execute("INSERT INTO t VALUES (3); COMMIT; INSERT INTO t VALUES (1)")
    assert con.execute("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (3,)]


def test_the_position_of_an_error_is_that_in_the_whole_text(connect: Connect) -> None:
    text = "SELECT 1; SELECT missing"
    with pytest.raises(psycopg.errors.UndefinedColumn) as caught:
        psycopg.ClientCursor(connect()).execute(text)
    assert caught.value.diag.statement_position == str(text.index("missing") + 1)


def test_a_pipeline_before_one_sync_is_one_transaction(connect: Connect) -> None:
    con = connect()
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        insert_in_pipeline(con, 1, 1)
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
    insert_in_pipeline(con, 1, 2)
    assert con.execute("SELECT count(*) FROM t").fetchone() == (2,)


def insert_in_pipeline(con: psycopg.Connection[Any], *keys: int) -> None:
    with con.pipeline():
        for key in keys:
            con.execute("INSERT INTO t VALUES (%s)", (key,))


def test_a_failed_transaction_stays_failed_until_rollback(connect: Connect) -> None:
    con = connect(autocommit=False)
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with pytest.raises(psycopg.errors.DivisionByZero):
        con.execute("SELECT 1/0")
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        con.execute("SELECT 1")
    con.rollback()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_prepared_statement_follows_the_catalog(connect: Connect) -> None:
    con, other = connect(), connect()
    con.execute("CREATE TABLE t (id int PRIMARY KEY, a int)")
    con.execute("INSERT INTO t VALUES (1, 2)")
    for _ in range(2):
        assert con.execute("SELECT a FROM t WHERE id = %s", (1,), prepare=True).fetchall() == [(2,)]
    other.execute("CREATE INDEX ON t (a)")
    assert con.execute("SELECT a FROM t WHERE id = %s", (1,), prepare=True).fetchall() == [(2,)]
    other.execute("ALTER TABLE t ALTER COLUMN a TYPE text")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="result type"):
        con.execute("SELECT a FROM t WHERE id = %s", (1,), prepare=True)


def test_a_running_statement_can_be_cancelled(connect: Connect) -> None:
    con = connect()
    started = threading.Event()

    def cancel() -> None:
        started.wait()
        while not done.is_set():
            con.cancel_safe()
            done.wait(0.05)

    done = threading.Event()
    thread = threading.Thread(target=cancel)
    thread.start()
    started.set()
    try:
        with pytest.raises(psycopg.errors.QueryCanceled):
            con.execute("SELECT count(*) FROM generate_series(1, 1000000000)")
    finally:
        done.set()
        thread.join()
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_settings_can_be_given_in_the_connection_string(connect: Connect) -> None:
    con = connect(options="-c statement_timeout=5s --freshness=latest", application_name="tests")
    assert con.execute("SHOW statement_timeout").fetchone() == ("5s",)
    assert con.execute("SHOW freshness").fetchone() == ("latest",)
    assert con.info.parameter_status("application_name") == "tests"


def test_a_token_of_one_connection_is_a_freshness_of_another(connect: Connect) -> None:
    con, other = connect(), connect()
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    before = con.info.parameter_status("belvedere.token")
    con.execute("INSERT INTO t VALUES (1)")
    token = con.info.parameter_status("belvedere.token")
    assert token != before
    other.execute(f"SET freshness = '{token}'")
    assert other.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_others_than_the_owner_and_other_databases_are_refused(
    server: Path, connect: Connect
) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        connect(user="somebody", password="guessed")
    with pytest.raises(psycopg.OperationalError, match="database does not exist"):
        connect(dbname="other")
    assert connect(dbname="belvedere").execute("SELECT 1").fetchone() == (1,)
