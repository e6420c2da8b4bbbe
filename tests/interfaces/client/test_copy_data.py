"""COPY from and to a program, and tables of Arrow, pandas and polars in and out."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import belvedere

VALUES: list[tuple[Any, ...]] = [
    (1, "plain", Decimal("1.50"), True, datetime.date(2024, 2, 29), 0.1, b"\x00\\"),
    (2, "tab\t, line\nand \\ back\r", None, False, None, float("inf"), b""),
    (3, "", Decimal("-0.01"), None, datetime.date(1, 1, 1), -1e300, None),
    (4, "\\N", None, None, None, None, None),
]


@pytest.fixture
def table(con: belvedere.Connection) -> belvedere.Connection:
    con.execute(
        "CREATE TABLE t (id int PRIMARY KEY, a text DEFAULT 'none', n numeric(10, 2), b boolean,"
        " d date, f double precision, y bytea)"
    )
    return con


def read_all(con: belvedere.Connection) -> list[tuple[Any, ...]]:
    return con.execute("SELECT * FROM t ORDER BY id").fetchall()


# -- COPY ------------------------------------------------------------------------------------------


def test_rows_are_copied_in_as_values(table: belvedere.Connection) -> None:
    cursor = table.cursor()
    with cursor.copy("COPY t FROM STDIN") as copy:
        for row in VALUES:
            copy.write_row(row)
    assert cursor.rowcount == 4
    assert read_all(table) == VALUES


def test_data_is_copied_in_as_text_or_bytes_in_any_parts(table: belvedere.Connection) -> None:
    data = 'id,a\n1,é\n2,"x\n,y"\n'.encode()
    with table.cursor().copy("COPY t (id, a) FROM STDIN (FORMAT csv, HEADER)") as copy:
        for at in range(len(data)):
            copy.write(data[at : at + 1])
        copy.write("3,z\n")
    assert [row[:2] for row in read_all(table)] == [(1, "é"), (2, "x\n,y"), (3, "z")]


def test_rows_are_copied_out(table: belvedere.Connection) -> None:
    table.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", VALUES)
    cursor = table.cursor()
    with cursor.copy("COPY t (id, a, b) TO STDOUT") as copy:
        assert list(copy.rows()) == [
            ("1", "plain", "t"),
            ("2", "tab\t, line\nand \\ back\r", "f"),
            ("3", "", None),
            ("4", "\\N", None),
        ]
    assert cursor.rowcount == 4
    with cursor.copy("COPY (SELECT id, a FROM t WHERE id = 1) TO STDOUT (FORMAT csv)") as copy:
        assert b"".join(copy) == b"1,plain\n"


def test_copying_out_and_in_is_lossless_and_larger_than_a_part(table: belvedere.Connection) -> None:
    table.execute("INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 30000) AS g")
    before = read_all(table)
    with table.cursor().copy("COPY t TO STDOUT") as out:
        data = list(out)
    assert len(data) > 1
    table.execute("DELETE FROM t")
    with table.cursor().copy("COPY t FROM STDIN;") as copy:
        for part in data:
            copy.write(part)
    assert read_all(table) == before


def test_nothing_is_loaded_when_the_block_fails(table: belvedere.Connection) -> None:
    copy = table.cursor().copy("COPY t (id) FROM STDIN").__enter__()
    copy.write("1\n")
    copy.__exit__(KeyError, KeyError(), None)
    with pytest.raises(belvedere.DataError) as caught:
        with table.cursor().copy("COPY t (id) FROM STDIN") as copy:
            copy.write("1\nx\n")
    assert caught.value.facts["line"] == 2
    assert read_all(table) == []


def test_nothing_written_is_no_row(table: belvedere.Connection) -> None:
    cursor = table.cursor()
    with cursor.copy("COPY t FROM STDIN"):
        pass
    assert cursor.rowcount == 0


def test_copy_is_part_of_the_transaction(table: belvedere.Connection) -> None:
    table.execute("BEGIN")
    with table.cursor().copy("COPY t (id) FROM STDIN") as copy:
        copy.write_row((5,))
    assert len(read_all(table)) == 1
    table.rollback()
    assert read_all(table) == []


@pytest.mark.parametrize("sql", ["SELECT 1", "COPY t FROM '/tmp/x'", "COPY", "SELECT 'from stdin'"])
def test_other_statements_are_refused(table: belvedere.Connection, sql: str) -> None:
    with pytest.raises(belvedere.ProgrammingError, match="FROM STDIN or COPY"):
        table.cursor().copy(sql)


def test_directions_and_options_are_checked(table: belvedere.Connection) -> None:
    with table.cursor().copy("COPY t TO STDOUT (FORMAT csv)") as copy:
        with pytest.raises(belvedere.InterfaceError):
            copy.write("x")
        with pytest.raises(belvedere.ProgrammingError, match="without options"):
            list(copy.rows())
    with table.cursor().copy("COPY t FROM STDIN") as copy:
        with pytest.raises(belvedere.InterfaceError):
            copy.read()
    with pytest.raises(belvedere.InterfaceError, match="outside"):
        copy.write("1")


def test_execute_says_how_to_copy(table: belvedere.Connection) -> None:
    with pytest.raises(belvedere.NotSupportedError, match=r"cursor\.copy"):
        table.execute("COPY t FROM STDIN")


# -- Arrow, pandas, polars -------------------------------------------------------------------------

COLUMNS = {"id": [1, 2], "a": ["x", None], "d": [datetime.date(2024, 1, 1), None]}


@pytest.mark.parametrize(
    "data",
    [
        pa.table(COLUMNS),
        pa.record_batch(COLUMNS),
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        COLUMNS,
    ],
    ids=["table", "batch", "pandas", "polars", "dict"],
)
def test_tables_of_a_program_are_inserted(table: belvedere.Connection, data: Any) -> None:
    assert table.insert("t", data) == 2
    rows = table.execute("SELECT id, a, d, n FROM t ORDER BY id").fetchall()
    assert rows == [(1, "x", datetime.date(2024, 1, 1), None), (2, None, None, None)]


def test_a_reader_of_arrow_is_inserted_and_defaults_fill_the_rest(
    table: belvedere.Connection,
) -> None:
    reader = pa.table({"id": range(50_000)}).to_reader(1000)
    assert table.insert("public.t", reader) == 50_000
    assert table.execute("SELECT count(*), min(a) FROM t").fetchone() == (50_000, "none")


@pytest.mark.parametrize(
    ("data", "sqlstate"),
    [
        ({"id": [1, 1]}, "23505"),
        ({"id": [None]}, "23502"),
        ({"id": [1], "nosuch": [2]}, "42703"),
        ({"id": ["x"]}, "22P02"),
        ({"id": [2**40]}, "22003"),
        ({}, "42601"),
        ("text", "22000"),
        ({"id": [1], "a": [1, 2]}, "22000"),
    ],
)
def test_data_that_does_not_fit_is_refused_whole(
    table: belvedere.Connection, data: Any, sqlstate: str
) -> None:
    with pytest.raises(belvedere.DatabaseError) as caught:
        table.insert("t", data)
    assert caught.value.sqlstate == sqlstate
    assert read_all(table) == []


def test_results_come_as_arrow_pandas_and_polars(table: belvedere.Connection) -> None:
    table.insert("t", pa.table(COLUMNS))
    query = "SELECT id, a FROM t ORDER BY id"
    assert table.execute(query).fetch_arrow().to_pydict() == {"id": [1, 2], "a": ["x", None]}
    assert table.execute(query).fetch_df()["id"].tolist() == [1, 2]
    assert table.execute(query).fetch_polars()["a"].to_list() == ["x", None]
