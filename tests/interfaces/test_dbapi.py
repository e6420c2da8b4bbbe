"""The door beyond the compliance suite: types, Arrow, errors, threads, sharing a store."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import subprocess
import sys
import threading
import uuid
import zoneinfo
from pathlib import Path

import pytest

import belvedere

D = decimal.Decimal


def test_values_come_as_psycopg_gives_them(con: belvedere.Connection) -> None:
    row = con.execute(
        "SELECT true, 1::smallint, 2, 3::bigint, 1.50, 1.5::float8, 'x'::text, "
        "'\\x01ff'::bytea, date '2024-02-29', time '01:02:03', timestamp '2024-01-01 02:03:04', "
        "timestamptz '2024-01-01 02:00:00+02', interval '1 month 2 days 3 seconds', "
        "'00000000-0000-0000-0000-000000000001'::uuid, ARRAY[1, NULL], NULL"
    ).fetchone()
    assert row == (
        True,
        1,
        2,
        3,
        D("1.50"),
        1.5,
        "x",
        b"\x01\xff",
        datetime.date(2024, 2, 29),
        datetime.time(1, 2, 3),
        datetime.datetime(2024, 1, 1, 2, 3, 4),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        datetime.timedelta(days=32, seconds=3),
        uuid.UUID(int=1),
        [1, None],
        None,
    )


def test_values_go_in_and_come_back(con: belvedere.Connection) -> None:
    con.execute(
        "CREATE TABLE t (id int PRIMARY KEY, b bytea, n numeric, f float8, d date, "
        "s timestamptz, i interval, u uuid, t time)"
    )
    row = (
        1,
        b"\x00\xff",
        D("12345678901234567890.123"),
        -0.1,
        datetime.date(1, 1, 1),
        datetime.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=datetime.UTC),
        datetime.timedelta(days=3, microseconds=5),
        uuid.UUID(int=77),
        datetime.time(23, 59, 59, 999999),
    )
    con.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    assert con.execute("SELECT * FROM t").fetchone() == row


def test_description_and_rowcount(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, name varchar(9), v numeric(8,2))")
    cursor = con.execute("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    assert (cursor.description, cursor.rowcount) == (None, 2)
    cursor = con.execute("SELECT id, name AS n, v FROM t")
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == ["id", "n", "v"]
    assert [column[1] == belvedere.NUMBER for column in cursor.description] == [True, False, True]
    assert cursor.description[1][1] == belvedere.STRING
    assert cursor.description[2][4:6] == (8, 2)
    assert cursor.rowcount == 2
    assert con.execute("UPDATE t SET v = 0 WHERE id > 5").rowcount == 0


def test_fetching_in_pieces(con: belvedere.Connection) -> None:
    cursor = con.execute("SELECT * FROM generate_series(1, 5)")
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany(2) == [(2,), (3,)]
    assert list(cursor) == [(4,), (5,)]
    assert (cursor.fetchone(), cursor.fetchall(), cursor.fetchmany(3)) == (None, [], [])


@pytest.mark.parametrize("tier", ["direct", "duckdb"])
def test_arrow_has_the_same_rows(con: belvedere.Connection, tier: str) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, v numeric(8,2), n numeric, s text)")
    con.execute("INSERT INTO t VALUES (1, 1.5, 0.125, 'a'), (2, NULL, 7, NULL)")
    con.execute(f"SET tier = {tier}")
    for text in ("SELECT id, v, s FROM t WHERE id > 0 ORDER BY id", "SELECT * FROM t ORDER BY id"):
        table = con.execute(text).fetch_arrow()
        rows = con.execute(text).fetchall()
        assert [tuple(row.values()) for row in table.to_pylist()] == rows
    frame = con.execute("SELECT id, s FROM t ORDER BY id").fetch_df()
    assert list(frame["id"]) == [1, 2]


@pytest.mark.parametrize(
    ("text", "kind", "sqlstate"),
    [
        ("SELECT 1 / 0", belvedere.DataError, "22012"),
        ("INSERT INTO t VALUES (1)", belvedere.IntegrityError, "23505"),
        ("SELECT * FRM t", belvedere.ProgrammingError, "42601"),
        ("CHECKPOINT", belvedere.NotSupportedError, "0A000"),
    ],
)
def test_errors_by_class(
    con: belvedere.Connection, text: str, kind: type[belvedere.Error], sqlstate: str
) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    con.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(kind) as caught:
        con.execute(text)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize("given", ["abc", {"a": 1}, 7])
def test_parameters_must_be_a_sequence(con: belvedere.Connection, given: object) -> None:
    with pytest.raises(belvedere.ProgrammingError):
        con.execute("SELECT ?", given)  # type: ignore[arg-type]


def test_executemany_is_all_or_nothing(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    assert con.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)]).rowcount == 2
    with pytest.raises(belvedere.IntegrityError):
        con.executemany("INSERT INTO t VALUES (?)", [(3,), (1,)])
    assert con.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_with_commits_or_rolls_back(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    with belvedere.connect(path) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with contextlib.suppress(KeyError), belvedere.connect(path) as con:
        con.execute("INSERT INTO t VALUES (1)")
        raise KeyError
    with belvedere.connect(path) as con:
        assert con.execute("SELECT * FROM t").fetchall() == []


def test_connections_of_a_process_share_a_store(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    one = belvedere.connect(path)
    two = belvedere.connect(f"{tmp_path}/./store")
    one.execute("CREATE TABLE t (id int PRIMARY KEY)")
    one.commit()
    one.close()
    assert two.execute("SELECT * FROM t").fetchall() == []
    with pytest.raises(belvedere.ProgrammingError):
        belvedere.connect(path, durability="off")
    two.close()


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(belvedere.Error):
        belvedere.connect(str(tmp_path / "nosuch"), create=False)
    with pytest.raises(belvedere.OperationalError, match="no gateway answers"):
        belvedere.connect("hbase://localhost:1/x?timeout_ms=200")
    with pytest.raises(belvedere.NotSupportedError):
        belvedere.connect("hbase://localhost:1/x", durability="off")
    with pytest.raises(belvedere.DataError):
        belvedere.connect("hbase://localhost:1/x?timeout_ms=600000")
    with pytest.raises(belvedere.Error):
        belvedere.connect(":memory:", durability="maybe")


def test_threads_may_share_a_connection(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    failures: list[BaseException] = []

    def insert(start: int) -> None:
        try:
            for number in range(start, start + 50):
                con.execute("INSERT INTO t VALUES (?)", (number,))
        except belvedere.Error as error:
            failures.append(error)

    workers = [threading.Thread(target=insert, args=(i * 100,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    assert con.execute("SELECT count(*) FROM t").fetchone() == (200,)


def test_closed_things_say_so(con: belvedere.Connection) -> None:
    cursor = con.cursor()
    cursor.close()
    with pytest.raises(belvedere.InterfaceError):
        cursor.execute("SELECT 1")
    other = belvedere.connect(":memory:")
    other.close()
    with pytest.raises(belvedere.InterfaceError):
        other.execute("SELECT 1")
    with pytest.raises(belvedere.InterfaceError):
        other.commit()


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, belvedere; print(*[m for m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"duckdb", "pyarrow", "sqlglot", "numpy", "rocksdict", "typer", "prompt_toolkit"}
    assert not heavy & set(found)


def test_a_point_read_loads_neither_duckdb_nor_the_parser_of_its_dialect() -> None:
    code = (
        "import sys, belvedere; c = belvedere.connect(':memory:'); "
        "c.execute('create table t (id int primary key)'); c.execute('select * from t'); "
        "print(*[m for m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"duckdb", "sqlglot", "typer", "prompt_toolkit"} & set(found)


def test_arrays_hold_what_their_elements_are_alone() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE spans (id int PRIMARY KEY, i interval, at timestamptz)")
        con.execute("INSERT INTO spans VALUES (1, '1 mon 2 days', '2024-01-01 12:00+00')")
        con.execute("SET TIME ZONE 'America/New_York'")
        day = datetime.timedelta(days=32)
        at = datetime.datetime(2024, 1, 1, 7, tzinfo=zoneinfo.ZoneInfo("America/New_York"))
        for statement in (
            "SELECT ARRAY[i, NULL], ARRAY[at] FROM spans WHERE id = 1",
            "SELECT array_agg(i) || NULL::interval, array_agg(at) FROM spans",
        ):
            for _ in range(2):  # planned, then cached
                ((spans, instants),) = con.execute(statement).fetchall()
                assert spans == [day, None]
                assert instants == [at]
                assert instants[0].utcoffset() == at.utcoffset()
