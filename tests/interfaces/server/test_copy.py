"""COPY through the server: rows in and out, errors in the middle, statements around it."""

from __future__ import annotations

import getpass
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.interfaces.server.conftest import Connect
from tests.interfaces.server.protocol.test_fuzz import message, open_socket
from tests.interfaces.server.protocol.test_prepared_rounds import RawClient

ROWS = [(1, "a\tb"), (2, None), (3, "line\nbreak"), (4, "ü")]


@pytest.fixture
def con(connect: Connect) -> psycopg.Connection[Any]:
    opened = connect()
    opened.execute("CREATE TABLE t (id int PRIMARY KEY, s text)")
    return opened


def copy_rows(con: psycopg.Connection[Any], rows: list[tuple[Any, ...]]) -> None:
    with con.cursor().copy("COPY t FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def test_rows_come_back_as_they_were_copied(con: psycopg.Connection[Any]) -> None:
    copy_rows(con, ROWS)
    assert con.execute("SELECT * FROM t ORDER BY id").fetchall() == ROWS
    with con.cursor().copy("COPY (SELECT * FROM t ORDER BY id) TO STDOUT") as copy:
        copy.set_types(["int4", "text"])
        assert list(copy.rows()) == ROWS
    with con.cursor().copy("COPY t TO STDOUT (FORMAT csv, HEADER)") as copy:
        data = b"".join(copy)
    assert data.startswith(b"id,s\n")
    assert data.count(b"\n") == 6


def test_no_rows_are_copied_too(con: psycopg.Connection[Any]) -> None:
    copy_rows(con, [])
    with con.cursor().copy("COPY t TO STDOUT") as copy:
        assert list(copy) == []


def test_many_rows_are_copied(con: psycopg.Connection[Any]) -> None:
    with con.cursor().copy("COPY t FROM STDIN") as copy:
        for start in range(0, 100_000, 1_000):
            text = "".join(
                f"{i}\tsome text that is not short\n" for i in range(start, start + 1000)
            )
            copy.write(text)
    assert con.execute("SELECT count(*), max(id) FROM t").fetchone() == (100_000, 99_999)
    with con.cursor().copy("COPY t TO STDOUT") as copy:
        assert sum(1 for _ in copy) == 100_000


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"1\tx\n1\ty\n", psycopg.errors.UniqueViolation),
        (b"1\tx\nword\ty\n", psycopg.errors.InvalidTextRepresentation),
        (b"1\n", psycopg.errors.BadCopyFileFormat),
        (b"1\t\xff\xfe\n", psycopg.errors.CharacterNotInRepertoire),
    ],
)
def test_bad_data_is_one_error_and_no_row(
    con: psycopg.Connection[Any], data: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error), con.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write(data)
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
    copy_rows(con, ROWS)


def fail_in_copy(con: psycopg.Connection[Any]) -> None:
    with con.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write(b"1\tx\n")
        raise ZeroDivisionError


def test_a_client_that_gives_up_copies_nothing(con: psycopg.Connection[Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_in_copy(con)
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_copy_of_a_statement_that_is_wrong_asks_for_no_data(
    con: psycopg.Connection[Any],
) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable), con.cursor().copy("COPY u FROM STDIN"):
        raise AssertionError("data was asked for")
    assert con.execute("SELECT 1").fetchone() == (1,)


@pytest.fixture
def raw(con: psycopg.Connection[Any], server: Path) -> Iterator[RawClient]:
    client = RawClient(server, getpass.getuser())
    client.connection.sendall(message(b"Q", b"COPY t FROM STDIN\0"))
    assert client.receive_message()[:1] == b"G"
    yield client
    client.connection.close()


def test_rows_are_stored_while_more_are_sent(con: psycopg.Connection[Any], raw: RawClient) -> None:
    """A mistake is told before the data ends."""
    raw.connection.sendall(message(b"d", b"1\tx\nword\ty\n" + b"2\tz\n" * 500_000))
    answer = raw.receive_answer()
    assert b"C22P02" in answer[0]
    raw.connection.sendall(message(b"d", b"3\tz\n") + message(b"c", b""))
    assert len(raw.ask(message(b"Q", b"SELECT * FROM t\0"))) == 3


def test_a_copy_that_waits_for_its_data_can_be_canceled(
    con: psycopg.Connection[Any], raw: RawClient, server: Path
) -> None:
    raw.connection.sendall(message(b"d", b"1\tx\n"))
    (key,) = [one[5:] for one in raw.greeting if one[:1] == b"K"]
    with open_socket(server) as other:
        other.sendall(struct.pack("!II", 16, 80877102) + key)
        assert other.recv(1) == b""
    raw.connection.sendall(message(b"d", b"2\tx\n") + message(b"c", b""))
    assert b"C57014" in raw.receive_answer()[0]
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_client_that_vanishes_in_a_copy_leaves_nothing(
    con: psycopg.Connection[Any], raw: RawClient
) -> None:
    raw.connection.sendall(message(b"d", b"".join(b"%d\tx\n" % n for n in range(300_000))))
    raw.connection.close()
    con.execute("DROP TABLE t")  # waits for nobody
    assert con.execute("SELECT count(*) FROM pg_class WHERE relname = 't'").fetchone() == (0,)


@pytest.mark.parametrize("options", ["", "(FORMAT csv)", "(FORMAT binary)"])
def test_rows_are_sent_while_more_are_computed(con: psycopg.Connection[Any], options: str) -> None:
    got: list[Any] = []
    query = "SELECT 1 / (90000 - n) FROM generate_series(1, 100000) n"
    with (
        pytest.raises(psycopg.errors.DivisionByZero),
        con.cursor().copy(f"COPY ({query}) TO STDOUT {options}") as copy,
    ):
        got.extend(iter(copy.read, b""))
    assert len(got) == 89_999
    assert con.execute("SELECT 1").fetchone() == (1,)
    copy_rows(con, ROWS)


def test_data_after_the_end_mark_is_not_read(con: psycopg.Connection[Any]) -> None:
    with con.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write(b"1\tx\n\\.\n")
        for _ in range(100):
            copy.write(b"no row\n" * 10_000)
    assert con.execute("SELECT * FROM t").fetchall() == [(1, "x")]


def test_changed_rows_are_copied_when_they_are_changed(con: psycopg.Connection[Any]) -> None:
    with con.cursor().copy(
        "COPY (INSERT INTO t VALUES (1, 'x') RETURNING s, id) TO STDOUT"
    ) as copy:
        assert list(copy.rows()) == [("x", "1")]
    assert con.execute("SELECT * FROM t").fetchall() == [(1, "x")]
