"""A value that has no place in its column: the error names column, type and value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import belvedere

TABLE = (
    "CREATE TABLE t (id int PRIMARY KEY, name varchar(3), other varchar(3), n smallint, m smallint,"
    " d numeric(4, 2), c char(2), r real)"
)
NAME = "value too long (column=name, type=character varying(3), text='abcd')"
OTHER = NAME.replace("name", "other")
COUNT = "value out of range (column=m, type=smallint, value=40000)"
PRICE = "numeric field overflow (column=d, precision=4, scale=2, value=100"
STATEMENTS: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "insert": ("INSERT INTO t (id, name) VALUES (2, 'abcd')", (), NAME),
    "insert, other column": ("INSERT INTO t (id, other) VALUES (2, 'abcd')", (), OTHER),
    "insert parameters": ("INSERT INTO t (id, name) VALUES (?, ?)", (2, "abcd"), NAME),
    "insert integer": ("INSERT INTO t (id, n, m) VALUES (?, ?, ?)", (2, 1, 40000), COUNT),
    "insert numeric": ("INSERT INTO t (id, d) VALUES (?, ?)", (2, 100), PRICE),
    "insert char": ("INSERT INTO t (id, c) VALUES (2, 'xyz')", (), "column=c, type=character(2)"),
    "insert real": (
        "INSERT INTO t (id, r) VALUES (2, 1e39)",
        (),
        "column=r, type=real, value=1e+39",
    ),
    "insert key": (
        "INSERT INTO t (id) VALUES (?)",
        (2**40,),
        "column=id, type=integer, value=1099511627776",
    ),
    "insert select": ("INSERT INTO t (id, name) SELECT id + 1, name || 'bcd' FROM t", (), NAME),
    "upsert": (
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = 'abcd'",
        (),
        NAME,
    ),
    "update": ("UPDATE t SET other = 'abcd' WHERE id = 1", (), OTHER),
    "update parameters": ("UPDATE t SET name = ? WHERE id = ?", ("abcd", 1), NAME),
    "update expression": ("UPDATE t SET m = n + 39999", (), COUNT),
    "update numeric": ("UPDATE t SET d = d * 100", (), PRICE),
    "add column": (
        "ALTER TABLE t ADD COLUMN z varchar(2) DEFAULT 'abc'",
        (),
        "column=z, type=character varying(2), text='abc'",
    ),
    "alter text": (
        "ALTER TABLE t ALTER COLUMN other TYPE varchar(1) USING 'abc'",
        (),
        "column=other, type=character varying(1)",
    ),
    "alter numeric": (
        "ALTER TABLE t ALTER COLUMN d TYPE numeric(2, 2)",
        (),
        "column=d, precision=2, scale=2, value=1.00",
    ),
}
RECORDS = {
    "text": ("3,abcd,a,1,1,1,x,1", NAME.replace(")", ", line=2)", 2).replace("(3, line=2)", "(3)")),
    "integer": ("3,a,a,1,40000,1,x,1", COUNT.replace(")", ", line=2)")),
    "numeric": ("3,a,a,1,1,100,x,1", PRICE + ", line=2)"),
    "real": ("3,a,a,1,1,1,x,1e39", "(column=r, type=real, value=1e+39, line=2)"),
}


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as one:
        one.execute(TABLE)
        one.execute("INSERT INTO t VALUES (1, 'a', 'a', 1, 1, 1, 'x', 1)")
        yield one


def refusal(con: belvedere.Connection, text: str, parameters: tuple[Any, ...]) -> str:
    with pytest.raises(belvedere.Error) as found:
        con.execute(text, parameters)
    return str(found.value)


@pytest.mark.parametrize("name", STATEMENTS)
def test_an_error_names_column_type_and_value(con: belvedere.Connection, name: str) -> None:
    text, parameters, expected = STATEMENTS[name]
    for _ in range(3):  # bound, cached, by the fast path
        assert expected in refusal(con, text, parameters)
    assert con.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_executemany_names_the_column(con: belvedere.Connection) -> None:
    with pytest.raises(belvedere.DataError) as found:
        con.cursor().executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(2, "a"), (3, "abcd")])
    assert NAME in str(found.value)


@pytest.mark.parametrize("name", RECORDS)
def test_copy_names_column_value_and_line(
    con: belvedere.Connection, name: str, tmp_path: Path
) -> None:
    record, expected = RECORDS[name]
    (tmp_path / "t.csv").write_text(f"2,a,a,1,1,1,x,1\n{record}\n")
    assert expected in refusal(con, f"COPY t FROM '{tmp_path}/t.csv' (FORMAT csv)", ())


def test_an_error_of_another_place_names_no_column(con: belvedere.Connection) -> None:
    assert "column" not in refusal(con, "UPDATE t SET n = 5 WHERE n = 40000::smallint", ())
    assert "column" not in refusal(con, "INSERT INTO t (id) SELECT 50000 * 50000", ())
