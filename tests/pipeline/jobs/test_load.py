"""Files into tables and back, and the commands that do it."""

from __future__ import annotations

import csv
import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from belvedere.errors import InvalidInput
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import ReadRequest, Store, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ITEMS = (
    "CREATE TABLE items (id bigint PRIMARY KEY, name text NOT NULL, price numeric(8, 2), at date)"
)
GOOD = "id,name,price,at\n1,one,1.50,2026-01-01\n2,two,,2026-01-02\n"
BAD = (
    "3,three,dear,2026-01-03\n1,again,1,2026-01-01\n5,,5.00,\n6,six,6,2026-01-06,more\n7,seven,7,\n"
)


@pytest.fixture
def store(shop: Path, connection: Connection) -> Store:
    connection.execute(ITEMS)
    return Store.from_url(str(shop))


def content(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT * FROM items ORDER BY id").fetchall()


def test_files_of_all_formats_are_loaded(
    spark: SparkSession, store: Store, connection: Connection, tmp_path: Path
) -> None:
    from belvedere.pipeline.jobs.load import LoadInputs, run_load

    (tmp_path / "a.csv").write_text(GOOD)
    done = run_load(LoadInputs(spark, (str(tmp_path / "a.csv"),), "csv"), store, "items")
    assert (done.rows, done.rejected) == (2, 0)
    (tmp_path / "b.json").write_text('{"id": 3, "name": "three", "price": 3.25}\n')
    run_load(LoadInputs(spark, (str(tmp_path / "b.json"),), "json"), store, "items")
    table = pa.table({"id": [4], "name": ["four"], "at": [datetime.date(2026, 1, 4)]})
    pyarrow.parquet.write_table(table, tmp_path / "c.parquet")
    run_load(LoadInputs(spark, (str(tmp_path / "c.parquet"),), "parquet"), store, "items")
    assert content(connection) == [
        (1, "one", Decimal("1.50"), datetime.date(2026, 1, 1)),
        (2, "two", None, datetime.date(2026, 1, 2)),
        (3, "three", Decimal("3.25"), None),
        (4, "four", None, datetime.date(2026, 1, 4)),
    ]


def test_bad_rows_stop_the_load_or_go_to_the_rejects_file(
    spark: SparkSession, store: Store, connection: Connection, tmp_path: Path
) -> None:
    from belvedere.pipeline.jobs.load import LoadInputs, run_load

    (tmp_path / "a.csv").write_text(GOOD + BAD)
    inputs = LoadInputs(spark, (str(tmp_path / "a.csv"),), "csv")
    with pytest.raises(InvalidInput) as refused:
        run_load(inputs, store, "items")
    assert refused.value.detail is not None
    assert "(3, three, dear, " in refused.value.detail
    assert content(connection) == []
    rejects = tmp_path / "rejects.csv"
    done = run_load(inputs, store, "items", on_error="reject", rejects=rejects)
    assert (done.rows, done.rejected) == (3, 4)
    assert [row[0] for row in content(connection)] == [1, 2, 7]
    with rejects.open(newline="") as lines:
        found = list(csv.DictReader(lines))
    assert [(row["id"], row["sqlstate"]) for row in found] == [
        ("3", "22P02"),
        ("1", "23505"),
        ("5", "23502"),
        ("6", "22P04"),
    ]
    assert all(row["reason"] for row in found)
    assert found[3]["_corrupt_record"] == "6,six,6,2026-01-06,more"
    (tmp_path / "e.csv").write_text("id,name\n1,again\n")
    run_load(
        LoadInputs(spark, (str(tmp_path / "e.csv"),), "csv"),
        store,
        "items",
        on_error="reject",
        rejects=rejects,
    )
    assert rejects.read_text().startswith("id,name,sqlstate,reason\n1,again,23505,")
    (tmp_path / "d.csv").write_text("id,nme\n1,x\n")
    with pytest.raises(InvalidInput, match="unknown=nme"):
        run_load(LoadInputs(spark, (str(tmp_path / "d.csv"),), "csv"), store, "items")
    with pytest.raises(InvalidInput, match="files cannot be read"):
        run_load(LoadInputs(spark, (str(tmp_path / "none.csv"),), "csv"), store, "items")


def test_what_is_exported_can_be_loaded_again(
    spark: SparkSession, store: Store, connection: Connection, tmp_path: Path
) -> None:
    from belvedere.pipeline.jobs import export
    from belvedere.pipeline.jobs.load import LoadInputs, run_load

    connection.execute(
        "INSERT INTO items VALUES (1, 'a', 1.25, '2026-01-01'), (2, 'b', NULL, NULL)"
    )
    before = content(connection)
    for form in ("parquet", "csv"):
        query = ReadRequest("query", "SELECT id, name, price, at FROM items WHERE id < 10")
        done = export.run_export(spark, store, query, tmp_path / form, form=form)
        assert (done.rows, done.position) == (2, store.position())
        connection.execute("DELETE FROM items")
        run_load(LoadInputs(spark, (str(tmp_path / form),), form), store, "items")
        assert content(connection) == before
    with pytest.raises(InvalidInput, match="directory exists already"):
        export.run_export(spark, store, query, tmp_path / "csv")


def test_texts_with_quotes_spaces_and_lines_come_back_as_they_were(
    spark: SparkSession, store: Store, connection: Connection, tmp_path: Path
) -> None:
    from belvedere.pipeline.jobs import export
    from belvedere.pipeline.jobs.load import LoadInputs, run_load

    names = ['say "hi", you', "back\\slash", "ends\\", "  spaced  ", "", "two\nlines", '"', "a,b"]
    for number, name in enumerate(names):
        connection.execute("INSERT INTO items VALUES (?, ?, 1, NULL)", (number, name))
    before = content(connection)
    done = export.run_export(
        spark, store, ReadRequest("table", "items"), tmp_path / "csv", form="csv"
    )
    assert done.rows == len(names)
    written = b"".join(file.read_bytes() for file in (tmp_path / "csv").glob("part-*"))
    assert b'"say ""hi"", you"' in written  # as COPY writes it
    connection.execute("DELETE FROM items")
    files = (str(tmp_path / "csv"),)
    run_load(LoadInputs(spark, files, "csv", {"multiLine": "true"}), store, "items")
    assert content(connection) == before
    connection.execute("DELETE FROM items WHERE name = E'two\\nlines'")
    connection.execute(f"COPY items TO '{tmp_path}/copied.csv' (FORMAT csv, HEADER true)")
    before = content(connection)
    connection.execute("DELETE FROM items")
    run_load(LoadInputs(spark, (str(tmp_path / "copied.csv"),), "csv"), store, "items")
    assert content(connection) == before


@pytest.mark.parametrize(
    ("files", "form", "expected"),
    [
        (["a.csv", "b.CSV.gz"], None, "csv"),
        (["a.jsonl"], None, "json"),
        (["a.xml"], "xml", "xml"),
    ],
)
def test_the_format_is_known_by_the_name(files: list[str], form: str | None, expected: str) -> None:
    from belvedere.pipeline.jobs.load import choose_file_format

    assert choose_file_format(files, form) == expected
    with pytest.raises(InvalidInput, match="not known by their names"):
        choose_file_format([*files, "other.parquet", "b.bin"], None)


def test_a_stream_adds_the_rejects_of_each_batch(tmp_path: Path) -> None:
    from belvedere.pipeline.datasource.rejects import write_rejects_to_csv

    columns = {"row": ['[1, "a"]'], "sqlstate": ["23505"], "reason": ["given twice"]}
    written = WriteResult(7, 0, pa.table(columns), (("23505", "given twice", 1),), repeated=False)
    for _ in range(2):
        write_rejects_to_csv(tmp_path / "x.csv", ["id", "name"], written, more=True)
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert lines == ["id,name,sqlstate,reason", *["1,a,23505,given twice"] * 2]
    write_rejects_to_csv(tmp_path / "x.csv", ["id", "name"], written)
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 2
