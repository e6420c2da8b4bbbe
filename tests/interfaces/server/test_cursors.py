"""Server-side cursors of psycopg, and the time that an idle transaction may take."""

from __future__ import annotations

import select

import psycopg
import pytest

from tests.interfaces.server.conftest import Connect


def test_a_server_side_cursor_takes_parameters_and_scrolls(connect: Connect) -> None:
    con = connect()
    con.execute("create table t (id integer primary key, a text)")
    con.execute("insert into t select i, 'row ' || i from generate_series(1, 500) as g(i)")
    with con.transaction(), con.cursor("mine", scrollable=True) as cursor:
        cursor.itersize = 100
        cursor.execute("select id, a from t where id > %s order by id", (400,))
        assert [one.name for one in cursor.description or ()] == ["id", "a"]
        assert cursor.fetchone() == (401, "row 401")
        assert len(cursor.fetchmany(50)) == 50
        cursor.scroll(-1)
        assert cursor.fetchone() == (451, "row 451")
        assert len(cursor.fetchall()) == 49
    with pytest.raises(psycopg.errors.InvalidCursorName):
        con.execute("fetch from mine")


def test_a_server_side_cursor_gives_binary_values(connect: Connect) -> None:
    con = connect()
    with con.transaction(), con.cursor("mine", binary=True) as cursor:
        cursor.execute("select i, i::numeric / 4 from generate_series(1, 1000) as g(i)")
        assert sum(row[0] for row in cursor) == 500_500


def test_a_cursor_that_is_held_outlives_its_transaction(connect: Connect) -> None:
    con = connect()
    with con.cursor("mine", withhold=True) as cursor:
        cursor.execute("select i from generate_series(1, 10) as g(i)")
        con.execute("select 1")
        assert len(cursor.fetchall()) == 10


def test_an_idle_transaction_is_ended(connect: Connect) -> None:
    con = connect(options="-c idle_in_transaction_session_timeout=50")
    con.execute("begin")
    assert select.select([con.pgconn.socket], [], [], 60)[0]  # the server says why it ends it
    with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
        con.execute("select 1")


def test_a_session_without_a_transaction_may_be_idle(connect: Connect) -> None:
    con = connect(options="-c idle_in_transaction_session_timeout=1")
    assert not select.select([con.pgconn.socket], [], [], 0.05)[0]
    assert con.execute("select 1").fetchone() == (1,)
