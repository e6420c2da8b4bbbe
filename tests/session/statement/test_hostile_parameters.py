"""No parameter of any Python type ends in anything but rows or an error of the database."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import belvedere

D = decimal.Decimal


class Colour(enum.Enum):
    RED = 1


def zone(hours: int) -> datetime.timezone:
    return datetime.timezone(datetime.timedelta(hours=hours))


HOSTILE: tuple[Any, ...] = (
    *(float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, -0.0),
    *(2**31, 2**63, -(2**63) - 1, 10**400, 10**200_000, -(10**200_000)),
    *(D("NaN"), D("sNaN"), D("-Infinity"), D("1e400"), D("1E+1000000"), D("1E-20000"), D("-0E+7")),
    *(datetime.timedelta.max, datetime.timedelta.min, datetime.timedelta(microseconds=-1)),
    *(datetime.date.min, datetime.datetime(9999, 12, 31, 23, 59), datetime.time.max),
    datetime.time(1, tzinfo=datetime.UTC),
    datetime.datetime.min.replace(tzinfo=zone(14)),
    datetime.datetime.max.replace(tzinfo=zone(-14)),
    *("", "abc", "1", "\0", "\ud800", b"", b"\xff", bytearray(b"x"), memoryview(b"abcd")[::2]),
    *(True, None, Colour.RED, uuid.UUID(int=0), object(), object, 1j, lambda: 1, ..., range(3)),
    *([], [1, "a"], [None], [[1]], [[], []], (1, 2), {1}, {"a": 1}, [2**63], [object()], ["\0"]),
    *(np.uint64(2**63), np.float32(0.1), np.float16("nan"), np.bool_(True), np.str_("x")),
    *(np.datetime64("2020-01-01"), np.datetime64("NaT"), np.timedelta64(1, "D"), np.array([1])),
    *(np.longdouble(1), np.complex128(1), np.bytes_(b"x"), np.void(b"x")),
    *(pd.NaT, pd.NA, pd.Timestamp("2020-01-01"), pd.Timedelta("1D"), pd.Series([1])),
)
TYPES = (
    *("smallint", "int", "bigint", "numeric", "numeric(5, 2)", "real", "double precision"),
    *("text", "varchar(3)", "char(3)", "json", "bytea", "uuid", "boolean"),
    *("date", "time", "timestamp", "timestamptz", "interval"),
)
STATEMENTS = (
    *(f"SELECT ?::{one}" for one in (*TYPES, "int[]", "text[]", "numeric[]", "timestamptz[]")),
    *("SELECT ?", "SELECT ? + 1", "SELECT 1 / ?", "SELECT ? || 'a'", "SELECT 'a' LIKE ?"),
    *("SELECT id FROM t WHERE id = ?", "SELECT id FROM t WHERE id > ? LIMIT 3"),
    *("SELECT id FROM t LIMIT ?", "SELECT id FROM t OFFSET ?", "SELECT id FROM t ORDER BY ?"),
    *("SELECT sum(?)", "SELECT 1 WHERE ?", "SELECT unnest(?)", "SELECT 1 = ANY(?)", "VALUES (?)"),
    *("SELECT now() - ?", "SELECT date_trunc('day', ?)", "SELECT id FROM t WHERE id IN (?, 3)"),
    *("SELECT greatest(?, ?)", "SELECT abs(?)", "SELECT to_char(?, '999')", "SELECT ? IS NULL"),
    *("SELECT json_build_object('a', ?)", "SELECT count(*) FROM t WHERE v BETWEEN ? AND ?"),
    *(
        f"INSERT INTO k (id, c{i}) VALUES (1, ?)"
        f" ON CONFLICT (id) DO UPDATE SET c{i} = excluded.c{i}"
        for i in range(len(TYPES))
    ),
    *(f"UPDATE k SET c{i} = ? WHERE id = 1" for i in range(len(TYPES))),
)


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        opened.execute("INSERT INTO t VALUES (1, 'a'), (5, 'b')")
        columns = ", ".join(f"c{i} {one}" for i, one in enumerate(TYPES))
        opened.execute(f"CREATE TABLE k (id int PRIMARY KEY, {columns})")
        yield opened


@pytest.mark.parametrize("statement", STATEMENTS)
def test_hostile_parameters_give_rows_or_errors_of_the_database(
    con: belvedere.Connection, statement: str
) -> None:
    for value in HOSTILE:
        sqlstate = run_statement(con, statement, (value,) * statement.count("?"))
        assert sqlstate[:2] not in ("XX", "HY"), (statement, type(value))


def run_statement(con: belvedere.Connection, statement: str, parameters: tuple[Any, ...]) -> str:
    try:
        cursor = con.execute(statement, parameters)
        if cursor.description is not None:
            cursor.fetchall()
    except belvedere.Error as error:
        return error.sqlstate
    return ""


@pytest.mark.parametrize("freshness", [5, 1.5, b"any", ["any"], datetime.timedelta(1)])
def test_freshness_that_is_no_text_is_refused(con: belvedere.Connection, freshness: Any) -> None:
    with pytest.raises(belvedere.ProgrammingError, match="freshness must be text"):
        con.execute("SELECT 1", freshness=freshness)


@pytest.mark.parametrize("text", [None, 5, b"SELECT 1", ["SELECT 1"]])
def test_a_statement_that_is_no_text_is_refused(con: belvedere.Connection, text: Any) -> None:
    with pytest.raises(belvedere.ProgrammingError, match="a statement must be text"):
        con.execute(text)


def test_a_decimal_parameter_is_a_numeric_like_any_other(con: belvedere.Connection) -> None:
    given = (D("1E+3"), D("-0.00"), D("0E+9"))
    rows = con.execute("SELECT ?::numeric, ?::numeric, ?::numeric", given).fetchall()
    assert str(rows) == str([(D("1000"), D("0.00"), D("0"))])
    with pytest.raises(belvedere.DataError) as caught:
        con.execute("SELECT ?::numeric", (D("1E+131072"),))
    assert caught.value.sqlstate == "22003"


@pytest.mark.parametrize("text", ["", "abc", "{", "NaN", '{"a": 1} x', "a\0"])
def test_text_that_is_no_json_is_refused_wherever_it_comes_in(text: str) -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE j (id int PRIMARY KEY, v json)")
        con.execute("INSERT INTO j VALUES (?, ?)", (9, '{"a": [1e2]}'))
        ways: tuple[Callable[[], object], ...] = (
            lambda: con.execute("INSERT INTO j VALUES (1, ?)", (text,)),
            lambda: con.execute("INSERT INTO j VALUES (:id, :v)", {"id": 1, "v": text}),
            lambda: con.execute("INSERT INTO j SELECT 1, ?", (text,)),
            lambda: con.execute("INSERT INTO j VALUES (1, ?), (2, '[]')", (text,)),
            lambda: con.executemany("INSERT INTO j VALUES (?, ?)", [(1, "[]"), (2, text)]),
            lambda: con.execute("UPDATE j SET v = ? WHERE id = 9", (text,)),
            lambda: con.execute("UPDATE j SET v = ? WHERE id > 0", (text,)),
            lambda: con.execute("SELECT ?::json", (text,)),
            lambda: con.execute("SELECT ?::json[]", ([text],)),
            lambda: con.insert("j", {"id": [1, 2], "v": ["[]", text]}),
        )
        for way in ways:
            with pytest.raises(belvedere.DataError) as caught:
                way()
            assert caught.value.sqlstate in ("22P02", "22021")
        assert con.execute("SELECT * FROM j").fetchall() == [(9, '{"a": [1e2]}')]


def rows_that_break() -> Iterator[tuple[int, str]]:
    yield 1, "a"
    yield 2, "b"
    raise RuntimeError("no more")


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    "rows", ["broken", [(1, "a"), 5], [(1, "a"), (1, "b")], [(1, "a"), (2,)], [(1, "a"), (3j, "")]]
)
def test_executemany_is_all_or_none(autocommit: bool, inside: bool, rows: Any) -> None:
    with belvedere.connect(":memory:", autocommit=autocommit) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        con.commit()
        if inside:
            con.execute("BEGIN")
            con.execute("INSERT INTO t VALUES (100, 'before')")
        with pytest.raises((belvedere.Error, RuntimeError)):
            con.executemany(
                "INSERT INTO t VALUES (?, ?)", rows_that_break() if rows == "broken" else rows
            )
        con.commit()
        assert con.execute("SELECT count(*) FROM t WHERE id < 100").fetchall() == [(0,)]
        con.rollback()
        con.executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (2, "b")])
        con.commit()
        assert con.execute("SELECT count(*) FROM t WHERE id < 100").fetchall() == [(2,)]
