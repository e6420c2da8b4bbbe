"""COPY through the server: rows in and out, errors in the middle, statements around it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.interfaces.server.conftest import Connect

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
