"""Arguments of another type are refused by exceptions of the database, at every door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import belvedere
from belvedere.interfaces.client.connection import Connection

HOSTILE = (5, None, "x", b"x", [1], {"a": 1}, object(), 1.5, (), "", "\0", "\ud800", -1, 2**70, int)


def copy_in(con: Connection, write: Callable[[Any], None]) -> None:
    with con.cursor().copy("COPY t FROM STDIN") as copy:
        write(copy)


def fetch(con: Connection, size: Any) -> None:
    con.execute("SELECT a FROM t").fetchmany(size)


def fetch_by_arraysize(con: Connection, size: Any) -> None:
    cursor = con.execute("SELECT a FROM t")
    cursor.arraysize = size
    cursor.fetchmany()


DOORS: dict[str, Callable[[Connection, Any], Any]] = {
    "execute": lambda con, value: con.execute(value),
    "execute with parameters": lambda con, value: con.execute("SELECT ?", value),
    "executemany": lambda con, value: con.executemany("INSERT INTO t VALUES (?, ?)", [value]),
    "stream": lambda con, value: list(con.stream(value)),
    "stream with parameters": lambda con, value: list(con.stream("SELECT ?", value)),
    "insert into": lambda con, value: con.insert(value, {"a": [9]}),
    "insert data": lambda con, value: con.insert("t", value),
    "insert values": lambda con, value: con.insert("t", {"a": [value]}),
    "subscribe": lambda con, value: list(con.subscribe(value, timeout_s=0)),
    "subscribe from": lambda con, value: list(con.subscribe("t", value, timeout_s=0)),
    "subscribe until": lambda con, value: con.subscribe("t", timeout_s=value),
    "copy": lambda con, value: con.cursor().copy(value).__enter__(),
    "copy data": lambda con, value: copy_in(con, lambda copy: copy.write(value)),
    "copy row": lambda con, value: copy_in(con, lambda copy: copy.write_row(value)),
    "fetchmany": fetch,
    "fetchmany by arraysize": fetch_by_arraysize,
    "class_row": lambda con, value: con.cursor(row_factory=belvedere.class_row(value)),
    "freshness": lambda con, value: con.execute("SELECT a FROM t", freshness=value),
}


@pytest.fixture
def con() -> Iterator[Connection]:
    with belvedere.connect(":memory:", autocommit=True) as one:
        one.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
        one.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        yield one


@pytest.mark.parametrize("door", DOORS)
def test_hostile_arguments_raise_errors_of_the_database(con: Connection, door: str) -> None:
    refused = []
    for value in HOSTILE:
        try:
            DOORS[door](con, value)
        except belvedere.Error as error:
            refused.append(error.sqlstate)
    assert refused
    assert "HY000" not in refused
    assert con.execute("SELECT count(*) > 0 FROM t").fetchone() == (True,)


def test_fewer_rows_than_none_are_refused(con: Connection) -> None:
    cursor = con.execute("SELECT a FROM t ORDER BY a")
    with pytest.raises(belvedere.ProgrammingError, match="must be an integer of 0 or more"):
        cursor.fetchmany(-1)
    assert cursor.fetchmany(0) == []
    assert cursor.fetchmany(2) == [(1,), (2,)]
    assert cursor.fetchmany(2**62) == [(3,)]


def test_texts_of_errors_have_what_the_reader_needs(con: Connection) -> None:
    with pytest.raises(belvedere.ProgrammingError, match=r"must be text\nhint: use"):
        con.execute("SELECT 1", freshness=5)  # type: ignore[arg-type]
    with pytest.raises(belvedere.ProgrammingError, match=r"Arrow can read\ndetail: "):
        con.insert("t", {"a": [1, 2], "b": ["x"]})
    with pytest.raises(belvedere.ProgrammingError, match="table or materialized view does not"):
        con.subscribe("nothing")
    con.execute("ALTER TABLE t ADD COLUMN n numeric(3, 1)")
    with pytest.raises(belvedere.DataError) as caught:
        con.insert("t", {"a": [9], "n": [1234.5]})
    assert "line" not in str(caught.value)
    with pytest.raises(belvedere.ProgrammingError) as twice:
        con.execute("SELECT %s", (1,))
    assert str(twice.value).count("hint:") == 1
