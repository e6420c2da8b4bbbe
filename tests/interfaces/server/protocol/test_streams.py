"""Results that are sent while they are computed are those that are computed first."""

from __future__ import annotations

import getpass
import math
import struct
from pathlib import Path
from typing import Any

import psycopg
import pytest

from belvedere.interfaces.server.listener import Listener
from belvedere.session import query_stream
from tests.interfaces.server.conftest import Connect
from tests.interfaces.server.protocol.test_fuzz import message, open_socket
from tests.interfaces.server.protocol.test_prepared_rounds import (
    DESCRIBE,
    SYNC,
    RawClient,
    bind,
)

ROWS = 25_000
QUERIES = {
    "columns": "SELECT * FROM t",
    "a range": "SELECT s, a FROM t WHERE a >= 20000 AND a < 24000",
    "values without a place in Arrow": "SELECT n, d FROM t",
    "computed": "SELECT a + 1, upper(s) FROM t",
    "limited": "SELECT a FROM t LIMIT 21000 OFFSET 100",
    "two tables": "SELECT a FROM t UNION ALL SELECT b FROM u",
    "none": "SELECT a FROM t LIMIT 10 OFFSET 30000",
}
OTHERS = {
    "sorted": "SELECT a FROM t ORDER BY s",
    "filtered": "SELECT a FROM t WHERE s LIKE '%7'",
    "of a sub-query": "SELECT a, (SELECT max(b) FROM u) FROM t",
    "drawn": "SELECT nextval('q') FROM u",
}


@pytest.fixture
def con(connect: Connect) -> psycopg.Connection[Any]:
    con = connect()
    con.execute("CREATE TABLE t (a int PRIMARY KEY, s text, n numeric, d date)")
    con.execute(
        "INSERT INTO t SELECT n, CASE WHEN n % 3 > 0 THEN 'text ' || n END, n / 7.0,"
        f" date '2024-01-01' + n FROM generate_series(0, {ROWS - 1}) n"
    )
    con.execute("UPDATE t SET n = 'NaN' WHERE a = 22000")
    con.execute("CREATE TABLE u (b int PRIMARY KEY)")
    con.execute("INSERT INTO u SELECT n FROM generate_series(1, 10) n")
    con.execute("CREATE SEQUENCE q")
    con.execute("ANALYZE")
    return con


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every result that may be a stream is one; the names of the functions that opened it."""
    opened: list[str] = []
    begin = query_stream._open_result_stream

    def count_stream(*given: Any) -> Any:
        opened.append("stream")
        return begin(*given)

    monkeypatch.setattr(query_stream, "_open_result_stream", count_stream)
    monkeypatch.setattr(query_stream, "STREAM_WORK", -1)
    return opened


def fetch_all(con: psycopg.Connection[Any], text: str, *, binary: bool) -> list[Any]:
    return con.execute(text, binary=binary, prepare=binary).fetchall()


def test_rows_are_the_same(
    con: psycopg.Connection[Any], streamed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in QUERIES.values():
        for binary in (False, True):
            before = len(streamed)
            found = fetch_all(con, text, binary=binary)
            assert len(streamed) > before, text
            with monkeypatch.context() as patch:
                patch.setattr(query_stream, "STREAM_WORK", math.inf)
                assert repr(found) == repr(fetch_all(con, text, binary=binary)), text


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_computed_first(
    con: psycopg.Connection[Any], streamed: list[str], name: str
) -> None:
    assert con.execute(OTHERS[name]).fetchall()
    assert not streamed


def test_a_transaction_reads_its_own_changes(
    con: psycopg.Connection[Any], streamed: list[str]
) -> None:
    with con.transaction():
        con.execute("DELETE FROM t WHERE a >= 10")
        con.execute("INSERT INTO t VALUES (-1, 'new')")
        assert len(con.execute("SELECT * FROM t").fetchall()) == 11
        assert streamed
        with con.transaction(force_rollback=True):
            con.execute("DELETE FROM t")
            assert con.execute("SELECT * FROM t").fetchall() == []


def test_an_error_comes_after_the_rows_before_it(
    con: psycopg.Connection[Any], streamed: list[str], server: Path
) -> None:
    client = RawClient(server, getpass.getuser())
    answer = client.ask(message(b"Q", b"SELECT 1 / (24000 - a) FROM t\0"))
    kinds = [one[:1] for one in answer]
    assert kinds[0] == b"T"
    assert 20_000 <= kinds.count(b"D") <= 24_000
    assert kinds[-2:] == [b"E", b"Z"]
    assert b"C22012" in answer[-2]
    assert len(client.ask(message(b"Q", b"SELECT * FROM u\0"))) == 13
    client.connection.close()


def execute(limit: int) -> bytes:
    return message(b"E", b"c\0" + struct.pack("!I", limit))


def count_rows(answer: list[bytes]) -> tuple[int, bytes]:
    """How many rows there are, and the message after the last."""
    kinds = [one[:1] for one in answer]
    rows = kinds.count(b"D")
    (end,) = [one for one in answer if one[:1] in (b"C", b"s")]
    return rows, end


@pytest.mark.parametrize("name", ["columns", "computed"])
def test_a_portal_goes_on_where_it_was(
    con: psycopg.Connection[Any], streamed: list[str], server: Path, listener: Listener, name: str
) -> None:
    client = RawClient(server, getpass.getuser())
    client.prepare("s", QUERIES[name], ())
    client.ask(message(b"Q", b"BEGIN\0"))
    assert client.ask(bind("s", (), portal="c") + message(b"D", b"Pc\0") + SYNC)
    assert count_rows(client.ask(execute(7) + SYNC)) == (7, message(b"s", b""))
    con.execute("DELETE FROM t")
    con.execute("INSERT INTO t VALUES (1, 'other')")
    assert count_rows(client.ask(execute(3_000) + SYNC)) == (3_000, message(b"s", b""))
    rows, end = count_rows(client.ask(execute(0) + SYNC))
    assert (rows, end[:1]) == (ROWS - 3_007, b"C")
    assert count_rows(client.ask(execute(0) + SYNC))[0] == 0
    client.ask(message(b"Q", b"ROLLBACK\0"))
    assert not list_streams(listener)
    client.connection.close()


def list_streams(listener: Listener) -> list[Any]:
    sessions = [one.session for one in listener._clients.values() if one.session is not None]
    return [stream for session in sessions for stream in session.streams]


@pytest.mark.parametrize("end", [message(b"C", b"Pc\0") + SYNC, message(b"Q", b"ROLLBACK\0")])
def test_a_portal_that_is_closed_lets_go_of_its_snapshot(
    con: psycopg.Connection[Any],
    streamed: list[str],
    server: Path,
    listener: Listener,
    end: bytes,
) -> None:
    client = RawClient(server, getpass.getuser())
    client.prepare("s", "SELECT * FROM t", ())
    client.ask(message(b"Q", b"BEGIN\0"))
    client.ask(bind("s", (), portal="c") + execute(7) + SYNC)
    assert len(list_streams(listener)) == 1
    client.ask(end)
    assert not list_streams(listener)
    client.connection.close()


def test_a_stream_can_be_canceled(
    con: psycopg.Connection[Any], streamed: list[str], server: Path
) -> None:
    """The client reads nothing at first, so the server cannot have sent everything."""
    con.execute(f"UPDATE t SET s = '{'x' * 1000}'")
    client = RawClient(server, getpass.getuser())
    client.connection.sendall(message(b"Q", b"SELECT * FROM t\0"))
    assert client.receive_message()[:1] == b"T"
    (key,) = [one[5:] for one in client.greeting if one[:1] == b"K"]
    with open_socket(server) as other:
        other.sendall(struct.pack("!II", 16, 80877102) + key)
        assert other.recv(1) == b""
    answer = client.receive_answer()
    assert b"C57014" in answer[-2]
    assert len(client.ask(message(b"Q", b"SELECT * FROM u\0"))) == 13
    client.connection.close()


def test_a_described_portal_is_streamed_in_its_formats(
    con: psycopg.Connection[Any], streamed: list[str], server: Path
) -> None:
    client = RawClient(server, getpass.getuser())
    client.prepare("s", "SELECT a FROM t WHERE a < 20001", ())
    answer = client.ask(bind("s", (), results=(1,)) + DESCRIBE + message(b"E", bytes(5)) + SYNC)
    rows = [one for one in answer if one[:1] == b"D"]
    assert rows[-1][-4:] == struct.pack("!I", 20_000)
    assert len(streamed) == 1
    client.connection.close()
