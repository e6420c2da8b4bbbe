"""pg8000, a driver in Python: DB-API and its own interface."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal

import pg8000.dbapi
import pg8000.native
import pytest

from tests.interfaces.server.clients.conftest import PASSWORD, USER


def test_dbapi_and_copy(port: int) -> None:
    connection = pg8000.dbapi.connect(
        USER, host="127.0.0.1", port=port, database="shop", password=PASSWORD
    )
    cursor = connection.cursor()
    cursor.execute(
        "CREATE TABLE t (id int PRIMARY KEY, name text, n numeric, d date, b bytea, ok boolean)"
    )
    row = [1, "a", Decimal("1.50"), datetime.date(2024, 1, 2), b"\0a", True]
    cursor.execute("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s)", row)
    cursor.executemany("INSERT INTO t (id) VALUES (%s)", [(2,), (3,)])
    connection.commit()
    cursor.execute("SELECT * FROM t WHERE id < %s", (2,))
    assert [list(one) for one in cursor.fetchall()] == [row]
    cursor.execute("COPY t (id, name) FROM STDIN (FORMAT csv)", stream=io.BytesIO(b"4,x\n5,y\n"))
    out = io.BytesIO()
    cursor.execute("COPY (SELECT id FROM t ORDER BY id) TO STDOUT", stream=out)
    assert out.getvalue() == b"1\n2\n3\n4\n5\n"
    with pytest.raises(pg8000.dbapi.DatabaseError) as told:
        cursor.execute("INSERT INTO t (id) VALUES (1)")
    assert told.value.args[0]["C"] == "23505"
    connection.rollback()
    connection.close()


def test_native_interface_and_notifications(port: int) -> None:
    with pg8000.native.Connection(
        USER, host="127.0.0.1", port=port, database="shop", password=PASSWORD
    ) as connection:
        assert connection.run("SELECT :a::int + 1, cast(:b AS text)", a=5, b="x") == [[6, "x"]]
        assert connection.prepare("SELECT cast(:v AS varchar)").run(v="p") == [["p"]]
        connection.run("LISTEN news")
        connection.run("NOTIFY news, 'hello'")
        assert [one[1:] for one in connection.notifications] == [("news", "hello")]
