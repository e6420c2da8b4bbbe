"""COPY and large INSERTs: the same rows, constraints and errors as one row at a time."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import belvedere
from belvedere.execution import bulk_insert
from belvedere.txn.transaction import foreign_keys

ROWS = 2_000


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        yield opened


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belvedere.session.copy.parquet.BATCH_ROWS", 300)
    monkeypatch.setattr("belvedere.session.copy.copy.CHUNK_ROWS", 300)
    monkeypatch.setattr(foreign_keys, "BULK_PARENTS_MIN", 5)


def sqlstate(con: belvedere.Connection, text: str) -> str:
    with pytest.raises(belvedere.Error) as caught:
        con.execute(text)
    assert caught.value.sqlstate is not None
    return caught.value.sqlstate


def written(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def all_rows(con: belvedere.Connection, table: str = "t") -> list[Any]:
    return con.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


def test_columns_of_a_file_are_the_rows_that_inserts_would_make(
    con: belvedere.Connection, tmp_path: Path
) -> None:
    con.execute(
        "CREATE TABLE t (id int PRIMARY KEY, price numeric(10, 2), name varchar(12), code char(4),"
        " day date, at timestamp, zoned timestamptz, big bigint, real float8, yes boolean)"
    )
    numbers = range(ROWS)
    at = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    file = written(
        tmp_path / "f.parquet",
        id=pa.array(numbers, pa.int64()),
        price=pa.array(
            [None if n % 7 == 0 else Decimal(f"{n / 4:.2f}") for n in numbers], pa.decimal128(15, 2)
        ),
        name=pa.array([None if n % 5 == 0 else f"n {n}" for n in numbers]),
        code=pa.array([str(n % 99) for n in numbers]),
        day=pa.array([datetime.date(2000, 1, 1 + n % 28) for n in numbers]),
        at=pa.array([at.replace(tzinfo=None) for _ in numbers], pa.timestamp("us")),
        zoned=pa.array([at for _ in numbers], pa.timestamp("us", "UTC")),
        big=pa.array([n * 10**12 for n in numbers]),
        real=pa.array([float("nan") if n == 3 else n / 3 for n in numbers]),
        yes=pa.array([n % 2 == 0 for n in numbers]),
    )
    assert con.execute(f"COPY t FROM '{file}' (FORMAT parquet)").rowcount == ROWS
    found = all_rows(con)
    assert len(found) == ROWS
    assert found[8][:5] == (8, Decimal("2.00"), "n 8", "8   ", datetime.date(2000, 1, 9))
    assert found[8][5:7] == (at.replace(tzinfo=None), at)
    assert repr(found[3][8]) == "nan"
    con.execute("DELETE FROM t WHERE id = 8")
    con.execute(
        "INSERT INTO t VALUES (8, 2, 'n 8', '8', '2000-01-09', '2020-01-01', '2020-01-01Z',"
        " 8000000000000, 8::float8 / 3, true)"
    )
    assert repr(all_rows(con)[8]) == repr(found[8])


def test_the_columns_are_taken_as_columns(
    con: belvedere.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    file = written(tmp_path / "f", id=pa.array(range(ROWS)), v=pa.array(["x"] * ROWS))
    monkeypatch.setattr(bulk_insert.BulkLoader, "add_rows", None)
    assert con.execute(f"COPY t FROM '{file}' (FORMAT parquet)").rowcount == ROWS


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("numeric(4, 1)", pa.array(["1.25"]).cast(pa.decimal128(6, 2)), Decimal("1.3")),
        ("varchar(3)", pa.array(["abc   "]), "abc"),
        ("char(3)", pa.array(["a     "]), "a  "),
        ("text", pa.array([5]), "5"),
        ("numeric", pa.array(["7.50"]).cast(pa.decimal128(6, 2)), Decimal("7.50")),
        ("smallint", pa.array([5], pa.int64()), 5),
        ("real", pa.array([0.5]), 0.5),
    ],
)
def test_what_does_not_fit_as_a_column_goes_row_by_row(
    con: belvedere.Connection, tmp_path: Path, column: str, values: pa.Array, expected: Any
) -> None:
    con.execute(f"CREATE TABLE t (id int PRIMARY KEY, v {column})")
    file = written(tmp_path / "f", id=pa.array([1]), v=values)
    con.execute(f"COPY t FROM '{file}' (FORMAT parquet)")
    assert all_rows(con) == [(1, expected)]


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("varchar(3)", pa.array(["abcd"]), "22001"),
        ("smallint", pa.array([40_000]), "22003"),
        ("numeric(4, 2)", pa.array(["123.00"]).cast(pa.decimal128(6, 2)), "22003"),
        ("text NOT NULL", pa.array([None], pa.string()), "23502"),
        ("int CHECK (v > 5)", pa.array([5]), "23514"),
    ],
)
def test_errors_are_those_of_an_insert_and_nothing_stays(
    con: belvedere.Connection, tmp_path: Path, column: str, values: pa.Array, expected: str
) -> None:
    con.execute(f"CREATE TABLE t (id int PRIMARY KEY, v {column})")
    file = written(tmp_path / "f", id=pa.array([1]), v=values)
    assert sqlstate(con, f"COPY t FROM '{file}' (FORMAT parquet)") == expected
    assert all_rows(con) == []


def test_keys_that_are_taken(con: belvedere.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    con.execute("INSERT INTO t VALUES (1500)")
    clash = written(tmp_path / "clash", id=pa.array(range(1, ROWS)))
    assert sqlstate(con, f"COPY t FROM '{clash}' (FORMAT parquet)") == "23505"
    twice = written(tmp_path / "twice", id=pa.array([*range(5000, 6000), 5999]))
    assert sqlstate(con, f"COPY t FROM '{twice}' (FORMAT parquet)") == "23505"
    apart = written(tmp_path / "apart", id=pa.array([*range(7000, 8000), 7001]))
    assert sqlstate(con, f"COPY t FROM '{apart}' (FORMAT parquet)") == "23505"
    assert all_rows(con) == [(1500,)]
    fits = written(tmp_path / "fits", id=pa.array(range(1501, 1501 + ROWS)))
    con.execute(f"COPY t FROM '{fits}' (FORMAT parquet)")
    below = written(tmp_path / "below", id=pa.array(range(1000)))
    con.execute(f"COPY t FROM '{below}' (FORMAT parquet)")
    assert len(all_rows(con)) == ROWS + 1001


def test_keys_and_unique_values_of_the_same_transaction(
    con: belvedere.Connection, tmp_path: Path
) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, v int UNIQUE)")
    file = written(tmp_path / "f", id=pa.array(range(ROWS)), v=pa.array(range(ROWS)))
    con.execute("BEGIN")
    con.execute("INSERT INTO t VALUES (700, -1)")
    assert sqlstate(con, f"COPY t FROM '{file}' (FORMAT parquet)") == "23505"
    con.execute("ROLLBACK")
    same = written(tmp_path / "g", id=pa.array(range(ROWS)), v=pa.array([0, *range(ROWS - 1)]))
    assert sqlstate(con, f"COPY t FROM '{same}' (FORMAT parquet)") == "23505"
    con.execute(f"COPY t FROM '{file}' (FORMAT parquet)")
    assert con.execute("SELECT id FROM t WHERE v = 77").fetchall() == [(77,)]


def test_foreign_keys_hold(con: belvedere.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE parent (id int PRIMARY KEY, code text UNIQUE)")
    con.execute("INSERT INTO parent SELECT n, 'c' || n FROM generate_series(0, 99) g(n)")
    con.execute(
        "CREATE TABLE t (id int PRIMARY KEY, p int REFERENCES parent,"
        " code text REFERENCES parent (code))"
    )
    numbers = range(ROWS)

    def file(last: int | None, code: str) -> Path:
        return written(
            tmp_path / "f",
            id=pa.array(numbers),
            p=pa.array([*[n % 100 for n in numbers[:-1]], last], pa.int32()),
            code=pa.array([*[f"c{n % 100}" for n in numbers[:-1]], code]),
        )

    for last, code in ((100, "c1"), (1, "c100")):
        assert sqlstate(con, f"COPY t FROM '{file(last, code)}' (FORMAT parquet)") == "23503"
        assert all_rows(con) == []
    con.execute(f"COPY t FROM '{file(None, 'c5')}' (FORMAT parquet)")
    assert len(all_rows(con)) == ROWS
    assert sqlstate(con, "DELETE FROM parent WHERE id = 5") == "23503"


def test_rows_may_refer_to_rows_of_the_same_file(con: belvedere.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, boss int REFERENCES t)")
    file = written(
        tmp_path / "f", id=pa.array(range(ROWS)), boss=pa.array([*range(1, ROWS), None], pa.int32())
    )
    con.execute(f"COPY t FROM '{file}' (FORMAT parquet)")
    assert len(all_rows(con)) == ROWS


def test_columns_that_are_not_in_the_file_get_their_defaults(
    con: belvedere.Connection, tmp_path: Path
) -> None:
    con.execute(
        "CREATE TABLE t (id int PRIMARY KEY, a int DEFAULT 5, n serial, v text,"
        " twice int GENERATED ALWAYS AS (id * 2) STORED)"
    )
    file = written(tmp_path / "f", v=pa.array(["x", "y"]), id=pa.array([1, 2]))
    con.execute(f"COPY t (id, v) FROM '{file}' (FORMAT parquet)")
    assert all_rows(con) == [(1, 5, 1, "x", 2), (2, 5, 2, "y", 4)]
    text = tmp_path / "f.csv"
    text.write_text("3,z\n4,\n")
    con.execute(f"COPY t (id, v) FROM '{text}' (FORMAT csv)")
    assert all_rows(con)[2:] == [(3, 5, 3, "z", 6), (4, 5, 4, None, 8)]


def test_a_table_without_a_primary_key(con: belvedere.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (v int)")
    file = written(tmp_path / "f", v=pa.array([1] * ROWS))
    for _ in range(2):
        con.execute(f"COPY t FROM '{file}' (FORMAT parquet)")
    assert all_rows(con) == [(1,)] * (2 * ROWS)


def test_dropped_columns_stay_empty(con: belvedere.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, gone int, v text)")
    con.execute("ALTER TABLE t DROP COLUMN gone")
    con.execute("ALTER TABLE t ADD COLUMN w int DEFAULT 9")
    file = written(
        tmp_path / "f", id=pa.array(range(ROWS)), v=pa.array(["x"] * ROWS), w=pa.array([1] * ROWS)
    )
    con.execute(f"COPY t FROM '{file}' (FORMAT parquet)")
    assert {row[1:] for row in all_rows(con)} == {("x", 1)}


def test_csv_goes_the_same_way(con: belvedere.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, v numeric(5, 2), w varchar(3))")
    file = tmp_path / "f.csv"
    file.write_text("".join(f"{n},{n % 100}.5,abc  \n" for n in range(ROWS)))
    assert con.execute(f"COPY t FROM '{file}' (FORMAT csv)").rowcount == ROWS
    assert all_rows(con)[7] == (7, Decimal("7.50"), "abc")
    assert sqlstate(con, f"COPY t FROM '{file}' (FORMAT csv)") == "23505"


def test_a_large_insert_select(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)")
    text = f"INSERT INTO t SELECT n, n FROM generate_series(1, {ROWS}) g(n)"
    assert con.execute(text).rowcount == ROWS
    assert sqlstate(con, text) == "23505"
    con.execute(text.replace("n, n", "n + 10000, n") + " ON CONFLICT DO NOTHING")
    nulls = text.replace("n, n", "n + 50000, CASE WHEN n < 1900 THEN n END")
    assert sqlstate(con, nulls) == "23502"
    assert len(all_rows(con)) == 2 * ROWS


def test_a_copy_that_lost_a_race_runs_again(tmp_path: Path) -> None:
    """The other one commits a key of the file after the COPY has begun."""
    path = str(tmp_path / "store")
    with (
        belvedere.connect(path, durability="off", autocommit=True) as one,
        belvedere.connect(path, durability="off", autocommit=True) as other,
    ):
        one.execute("CREATE TABLE t (id int PRIMARY KEY)")
        file = written(tmp_path / "f", id=pa.array(range(ROWS)))
        one.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        one.execute("SELECT 1 FROM t").fetchall()
        other.execute("INSERT INTO t VALUES (77)")
        assert sqlstate(one, f"COPY t FROM '{file}' (FORMAT parquet)") == "40001"
        one.execute("ROLLBACK")
        assert sqlstate(one, f"COPY t FROM '{file}' (FORMAT parquet)") == "23505"


def test_a_copy_is_one_commit(con: belvedere.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    file = written(tmp_path / "f", id=pa.array(range(ROWS)))
    before = con.session.host.position
    con.execute(f"COPY t FROM '{file}' (FORMAT parquet)")
    assert con.session.host.position == before + 1


def test_a_file_that_is_no_parquet(con: belvedere.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    file = tmp_path / "f"
    file.write_text("no parquet")
    assert sqlstate(con, f"COPY t FROM '{file}' (FORMAT parquet)") == "22P04"
