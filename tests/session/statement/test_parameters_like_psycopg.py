"""The types of Python parameters decide what a statement means, as they do with psycopg."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import belvedere
from tests.oracle.postgres import Postgres
from tests.oracle.side_by_side import SideBySide

D = decimal.Decimal
NOON = datetime.datetime(2026, 1, 1, 12)
DAY = datetime.date(2026, 1, 1)


class Color(enum.Enum):
    RED = 1


class Size(enum.IntEnum):
    SMALL = 1


class Word(enum.StrEnum):
    ONE = "one"


TABLE = """CREATE TABLE t (id int PRIMARY KEY, small smallint, big bigint, n numeric(10,2), r real,
    f double precision, b boolean, s text, v varchar(5), d date, ts timestamp, tz timestamptz,
    i interval, u uuid, c time)"""
ROWS = f"""INSERT INTO t VALUES
    (1, 1, 1, 1.5, 0.1, 0.1, true, 'one', 'one', '2026-01-01', '2026-01-01', '2026-01-01',
     '1 day', '{uuid.UUID(int=1)}', '12:00'),
    (3, 3, 3, 3.25, 3.5, 3.5, false, '3', '3', '2026-01-02', '2026-01-01 12:00',
     '2026-01-01 12:00', '2 days', '{uuid.UUID(int=3)}', '13:00')"""

VALUES: list[Any] = [
    *(2, 40_000, 2**31, 2**70, -1, 2.0, 2.5, 0.1, float("nan"), float("inf"), D("1.5"), D(3)),
    *(True, "3", "one", "2026-01-01", "1 day", None, b"x", DAY, NOON),
    *(NOON.replace(tzinfo=datetime.UTC), datetime.timedelta(hours=36), datetime.time(12)),
    *(uuid.UUID(int=1), [1, 3], [1.5], ["one"], [], [DAY]),
    *(np.int64(3), np.int16(3), np.float64(2.5), np.float32(0.5), np.bool_(True), np.str_("one")),
    *(Color.RED, Size.SMALL, Word.ONE),
]

COLUMNS = "id small big n r f b s v d ts tz i u c".split()
STATEMENTS = [
    *(f"SELECT id FROM t WHERE {column} {sign} ?" for column in COLUMNS for sign in ("=", "<")),
    *(f"SELECT id {sign} ? FROM t" for sign in "+-*/%"),
    *("SELECT n / ? FROM t", "SELECT f * ? FROM t", "SELECT d - ? FROM t", "SELECT d + ? FROM t"),
    *("SELECT ts - ? FROM t", "SELECT tz + ? FROM t", "SELECT s || ? FROM t"),
    *("SELECT ?", "SELECT abs(?)", "SELECT sum(?)", "SELECT max(?)", "SELECT round(?)"),
    *("SELECT date_trunc('day', ?)", "SELECT extract(year FROM ?)", "SELECT length(?)"),
    *("SELECT ?::int", "SELECT ?::text", "SELECT ?::date", "SELECT ?::numeric(5,1)"),
    *("SELECT coalesce(?, 7)", "SELECT CASE WHEN id = 1 THEN ? ELSE id END FROM t"),
    *("SELECT id FROM t WHERE id = ANY (?)", "SELECT id FROM t WHERE d = ANY (?)"),
    *("SELECT * FROM unnest(?)", "SELECT id FROM t WHERE id IN (?, 1)"),
    *("SELECT id FROM t WHERE id BETWEEN ? AND 3", "SELECT id FROM t ORDER BY id LIMIT ?"),
    *(
        "SELECT id FROM t WHERE s LIKE ?",
        "SELECT nullif(?, 1)",
        "SELECT nullif(?, date '2024-01-01')",
    ),
]


@pytest.fixture(scope="module")
def both(postgres: Postgres) -> Iterator[SideBySide]:
    with belvedere.connect(":memory:", autocommit=True) as con:
        made = SideBySide(con, postgres)
        made.require_same(TABLE)
        made.require_same(ROWS)
        yield made


@pytest.mark.parametrize("statement", STATEMENTS)
def test_python_types_decide_as_with_psycopg(both: SideBySide, statement: str) -> None:
    """Every value twice, in both orders: the plans of other types are in the cache."""
    wrong = []
    for value in (*VALUES, *reversed(VALUES)):
        if _is_more_than_psycopg(statement, value):
            continue
        mine, theirs = both.answers(statement, (value,))
        if mine != theirs:
            wrong.append(f"{value!r}: {mine}, PostgreSQL {theirs}")
    assert not wrong, "\n".join(wrong)


def _is_more_than_psycopg(statement: str, value: Any) -> bool:
    """Integers of numpy have types by their values, not by their widths; and a list of text is an
    array of text where nothing else says what it is."""
    if isinstance(value, np.integer):
        return "sum(?)" in statement or "d + ?" in statement or "d - ?" in statement
    return "unnest" in statement and (isinstance(value, str | enum.Enum | list) or value is None)


def test_a_list_of_text_is_an_array_of_text_by_itself(both: SideBySide) -> None:
    found = both.con.execute("SELECT * FROM unnest(?)", (["b", None, "a"],)).fetchall()
    assert found == [("b",), (None,), ("a",)]
    with pytest.raises(belvedere.ProgrammingError) as caught:
        both.con.execute("SELECT * FROM unnest(?)", ([1, "a"],))
    assert caught.value.sqlstate == "42804"


@pytest.mark.parametrize(
    ("value", "sqlstate"),
    [
        (object(), "42804"),
        ({"a": 1}, "42804"),
        (np.datetime64("2026-01-01"), "42804"),
        (datetime.time(12, tzinfo=datetime.UTC), "0A000"),
        ([[1, 2], [3]], "0A000"),
    ],
)
def test_a_value_without_an_sql_type_is_refused(
    both: SideBySide, value: Any, sqlstate: str
) -> None:
    for statement in ("SELECT ?", "SELECT id FROM t WHERE id = ?", "SELECT id FROM t WHERE c = ?"):
        with pytest.raises(belvedere.Error) as caught:
            both.con.execute(statement, (value,))
        assert caught.value.sqlstate == sqlstate


WRITES = [
    *(f"UPDATE t SET {column} = ? WHERE id = 1" for column in COLUMNS[1:]),
    *(f"INSERT INTO t (id, {column}) VALUES (7, ?)" for column in ("n", "s", "tz")),
    "UPDATE t SET n = n + ? WHERE id = 3",
    "DELETE FROM t WHERE f > ?",
]


@pytest.mark.parametrize("statement", WRITES)
def test_assigned_parameters_are_cast_as_with_psycopg(both: SideBySide, statement: str) -> None:
    for value in VALUES:
        both.require_same("DELETE FROM t")
        both.require_same(ROWS)
        both.require_same(statement, (value,))
        both.require_same("SELECT * FROM t")


def test_a_repeated_statement_with_other_types_keeps_its_fast_path() -> None:
    """One plan for each combination of types is in the cache: nothing is parsed again."""
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE f (id int PRIMARY KEY, n numeric)")
        plans = con.session.shared.plans
        for id_, value in enumerate((1, 1.5, D("2.5"), "3", None)):
            con.execute("INSERT INTO f VALUES (?, ?)", (id_, value))
        known = len(plans)
        for id_, value in enumerate((1, 1.5, D("2.5"), "3", None), 100):
            con.execute("INSERT INTO f VALUES (?, ?)", (id_, value))
        assert len(plans) == known == 3
        found = con.execute("SELECT n FROM f WHERE id >= 100 ORDER BY id").fetchall()
        assert found == [(D(1),), (D("1.5"),), (D("2.5"),), (D(3),), (None,)]


def test_a_parameter_of_another_type_fails_its_transaction_when_the_statement_does() -> None:
    with belvedere.connect(":memory:") as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY)")
        con.execute("SELECT id FROM t WHERE id = ?", (1,))
        assert con.execute("SELECT id FROM t WHERE id = ?", (1.5,)).fetchall() == []
        with pytest.raises(belvedere.DataError):
            con.execute("SELECT id FROM t WHERE id = ?", ("x",))
        with pytest.raises(belvedere.Error) as caught:
            con.execute("SELECT 1")
        assert caught.value.sqlstate == "25P02"
