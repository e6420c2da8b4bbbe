"""executemany and long VALUES lists: what they store and refuse is what one row after another
would, and neither plans nor runs a statement for each row."""

from __future__ import annotations

import collections
import random
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.execution import memory_limit
from belvedere.session.context.transactions import TransactionState
from belvedere.session.statement import many_rows, values_lists
from belvedere.txn.transaction.transaction import Transaction

ROWS = 60
SCHEMA = [
    "CREATE TABLE parents (id int PRIMARY KEY)",
    "INSERT INTO parents SELECT i FROM generate_series(0, 9) AS i",
    "CREATE TABLE t (id int PRIMARY KEY, s smallint NOT NULL, b bigint, n numeric(10,2), c text,"
    " v varchar(5), d date, p int REFERENCES parents, u int UNIQUE)",
    "CREATE INDEX t_b ON t (b)",
    "CREATE MATERIALIZED VIEW sums WITH (maintenance = 'immediate') AS"
    " SELECT s, count(*) AS rows, sum(b) AS total FROM t GROUP BY s",
]
INSERT = "INSERT INTO t (id, s, b, n, c, v, d, p, u) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        for text in SCHEMA:
            opened.execute(text)
        yield opened


def make_row(i: int) -> tuple[Any, ...]:
    price, day = Decimal(f"{i}.25"), "2024-02-03"
    return (i, i % 7, i * 10**9, price, f"it's {i} é", f"v{i}", day, i % 10, i)


def read_all(con: belvedere.Connection) -> list[list[Any]]:
    assert con.execute("VERIFY MATERIALIZED VIEW sums").fetchone()
    tables = ("t ORDER BY id", "sums ORDER BY s", "t WHERE b < 50000000000 ORDER BY b")
    return [con.execute(f"SELECT * FROM {table}").fetchall() for table in tables]


def write_literals(rows: list[tuple[Any, ...]]) -> str:
    def write(value: Any) -> str:
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return "NULL" if value is None else str(value)

    return "INSERT INTO t VALUES " + ", ".join(f"({', '.join(map(write, row))})" for row in rows)


def write_marks(rows: list[tuple[Any, ...]]) -> tuple[str, list[Any]]:
    """An INSERT of a list of parameters, and their values."""
    marks = ", ".join([INSERT[INSERT.index("(?") :]] * len(rows))
    return INSERT[: INSERT.index("(?")] + marks, [value for row in rows for value in row]


def insert_one_by_one(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    with belvedere.connect(":memory:", autocommit=True) as other:
        for text in SCHEMA:
            other.execute(text)
        for row in rows:
            other.execute(INSERT, row)
        return read_all(other)


def count_batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is inserted at once."""
    sizes: list[int] = []
    real = many_rows._record_rows

    def record(entry: Any, calls: int, rows: int, started: float) -> None:
        sizes.append(rows)
        real(entry, calls, rows, started)

    monkeypatch.setattr(many_rows, "_record_rows", record)
    return sizes


@pytest.mark.parametrize("order", ["ascending", "shuffled", "around"])
def test_executemany_stores_what_single_inserts_do(
    con: belvedere.Connection, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_row(i) for i in range(ROWS)]
    if order == "shuffled":
        random.Random(3).shuffle(rows)
    elif order == "around":  # before, between and after rows that are there
        rows = rows[1::2] + rows[::2]
    sizes = count_batches(monkeypatch)
    assert con.executemany(INSERT, iter(rows)).rowcount == ROWS
    assert sizes == [ROWS - 1]
    assert read_all(con) == insert_one_by_one(rows)


def test_rows_of_other_types_go_one_by_one(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_row(i) for i in range(ROWS)]
    rows[5] = (*rows[5][:2], True, *rows[5][3:6], None, None, None)
    rows[7] = (*rows[7][:3], None, None, None, None, None, None)
    sizes = count_batches(monkeypatch)
    with pytest.raises(belvedere.Error) as caught:
        con.executemany(INSERT, rows)
    assert caught.value.sqlstate == "42804"
    assert sizes == []
    rows[5] = (*rows[5][:2], 2**62, *rows[5][3:])
    con.executemany(INSERT, rows)
    assert read_all(con) == insert_one_by_one(rows)


REFUSED = {
    "23505": (0, 3),  # an earlier row has this key
    "23502": (1, None),
    "23503": (7, 77),
    "22001": (5, "too long"),
    "22003": (1, 40_000),
    "22008": (6, "2024-13-01"),
}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("sqlstate", REFUSED)
def test_a_refused_row_is_reported_as_by_single_inserts(
    con: belvedere.Connection, sqlstate: str, inside: bool
) -> None:
    column, value = REFUSED[sqlstate]
    bad = [*make_row(30)]
    bad[column] = value
    rows = [make_row(i) for i in range(ROWS)]
    if inside:
        con.execute("BEGIN")
    for row in rows[:30]:
        con.execute(INSERT, row)
    if inside:
        con.execute("SAVEPOINT before")
    with pytest.raises(belvedere.Error) as single:
        con.execute(INSERT, bad)
    if inside:
        con.execute("ROLLBACK TO before")
    before = con.execute("SELECT * FROM t").fetchall()
    given = [*rows[31:45], tuple(bad), *rows[45:]]
    with pytest.raises(belvedere.Error) as many:
        con.executemany(INSERT, given)
    assert many.value.sqlstate == single.value.sqlstate == sqlstate
    assert str(many.value) == str(single.value)
    if inside:
        con.execute("ROLLBACK TO before")
    assert con.execute("SELECT * FROM t").fetchall() == before
    for text, values in ((write_literals(given), []), write_marks(given)):
        with pytest.raises(belvedere.Error) as listed:
            con.execute(text, values)
        assert listed.value.sqlstate == sqlstate
        if inside:
            con.execute("ROLLBACK TO before")
        assert con.execute("SELECT * FROM t").fetchall() == before


def test_a_key_twice_in_one_list_is_refused(con: belvedere.Connection) -> None:
    given = [*[make_row(i) for i in range(ROWS)], (*make_row(7)[:8], None)]
    for run in (
        lambda: con.executemany(INSERT, given),
        lambda: con.execute(write_literals(given)),
        lambda: con.execute(*write_marks(given)),
    ):
        with pytest.raises(belvedere.Error) as caught:
            run()
        assert caught.value.sqlstate == "23505"
    assert con.execute("SELECT * FROM t").fetchall() == []


def test_executemany_sees_and_hides_own_rows_of_the_transaction(con: belvedere.Connection) -> None:
    con.execute("BEGIN")
    con.execute(INSERT, make_row(40))
    con.execute("DELETE FROM t WHERE id = 40")
    con.executemany(INSERT, [make_row(i) for i in range(ROWS)])
    con.execute("DELETE FROM t WHERE id = 20")
    con.executemany(INSERT, [make_row(20)])
    con.execute("COMMIT")
    assert read_all(con) == insert_one_by_one([make_row(i) for i in range(ROWS)])


def test_a_key_that_another_transaction_holds_is_waited_for(tmp_path: Path) -> None:
    con = belvedere.connect(str(tmp_path / "store"), autocommit=True)
    for text in SCHEMA:
        con.execute(text)
    other = belvedere.connect(str(tmp_path / "store"), autocommit=True)
    other.execute("BEGIN")
    other.execute(INSERT, make_row(37))
    failed: list[str | None] = []

    def insert() -> None:
        try:
            con.executemany(INSERT, [make_row(i) for i in range(ROWS)])
        except belvedere.Error as error:
            failed.append(error.sqlstate)

    thread = threading.Thread(target=insert)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    other.execute("ROLLBACK")
    thread.join(30)
    assert failed == []
    assert len(con.execute("SELECT 1 FROM t").fetchall()) == ROWS
    other.close()
    con.close()


def test_a_values_list_stores_what_single_inserts_do(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_row(i) for i in range(ROWS)]
    rows[3] = rows[3][:2] + (None,) * 6 + (-3,)
    sizes = count_batches(monkeypatch)
    assert con.execute(write_literals(rows)).rowcount == ROWS
    assert sizes == [ROWS]
    assert read_all(con) == insert_one_by_one(rows)


def test_a_list_of_parameters_stores_what_single_inserts_do(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_row(i) for i in range(ROWS)]
    rows[3] = rows[3][:2] + (None,) * 6 + (-3,)
    rows[4] = (*rows[4][:2], "77", *rows[4][3:])
    sizes = count_batches(monkeypatch)
    for part in (rows[:30], rows[30:]):
        text, values = write_marks(part)
        assert con.execute(text + " ; ", values).rowcount == 30
        monkeypatch.setattr("belvedere.session.statement.bind.parse_statements", None)
    monkeypatch.undo()
    assert sizes == [30, 30]
    assert read_all(con) == insert_one_by_one(rows)


def test_a_list_of_parameters_of_other_types_is_bound(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.execute("CREATE TABLE plain (id int PRIMARY KEY, n numeric)")
    text = "INSERT INTO plain VALUES " + ",".join(["(?, ?)"] * ROWS)
    sizes = count_batches(monkeypatch)
    values = [part for i in range(ROWS) for part in (i, 1.5 if i else Decimal("1.5"))]
    assert con.execute(text, values).rowcount == ROWS
    assert sizes == []
    assert con.execute("SELECT sum(n) FROM plain").fetchall() == [(Decimal("1.5") * ROWS,)]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (?, ?), (?, ?) RETURNING id",
        "INSERT INTO t VALUES (?, ?), (?, ?) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (?, ?), (?, ?); SELECT 1",
        "INSERT INTO t VALUES (?, ?), (?, 1)",
        "INSERT INTO t VALUES (?, ?), (?, ? + 1)",
        "INSERT INTO t VALUES (?, ?), -- (?, ?)",
        "INSERT INTO t VALUES ($1, $2), ($1, $2)",
        "INSERT INTO t SELECT ?, ? WHERE (?, ?) = (?, ?)",
        "WITH x AS (SELECT ?) INSERT INTO t VALUES (?, ?), (?, ?)",
        "SELECT * FROM t WHERE (id, s) IN (VALUES (?, ?), (?, ?))",
        "INSERT INTO t VALUES (?, ?)",
        "INSERT INTO t VALUES (?, ?), (?, ?), (?, ?)",
    ],
)
def test_other_statements_are_no_lists_of_parameters(text: str) -> None:
    assert values_lists._find_single_row_text(text, 4) is None


def test_a_list_of_parameters_is_cut_to_its_first_row() -> None:
    found = values_lists._find_single_row_text("insert into x (a, b) VALUES (?,?) , (?,?) ;", 4)
    assert found == "insert into x (a, b) VALUES (?,?)"


def test_a_long_list_is_not_bound(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.execute(write_literals([make_row(i) for i in range(ROWS)]))
    monkeypatch.setattr("belvedere.session.statement.bind.parse_statements", None)
    con.execute(write_literals([make_row(i) for i in range(ROWS, 2 * ROWS)]))
    monkeypatch.undo()
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(2 * ROWS,)]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t SELECT 1, 2 WHERE (1, 2) = (3, 4)",
        "INSERT INTO t VALUES (1, 2), (3, 4) RETURNING id",
        "INSERT INTO t VALUES (1, 2), (3, 4) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (1, 2), (3, 4); SELECT 1",
        "INSERT INTO t VALUES (1, 2), (3, 4) -- (5, 6)",
        "INSERT INTO t VALUES (1, 2), /* (7, 8), */ (3, 4)",
        "INSERT INTO t VALUES (1, 2), ('a', 4)",
        "INSERT INTO t VALUES (1, 2), (3)",
        "INSERT INTO t VALUES (1, 2), (abs(3), 4)",
        "WITH x AS (SELECT 1) INSERT INTO t VALUES (1, 2), (3, 4)",
    ],
)
def test_other_statements_are_no_values_lists(text: str) -> None:
    split = values_lists.split_literals(text)
    assert split is not None
    assert values_lists.split_values(split) is None


def test_a_values_list_is_cut_into_its_rows() -> None:
    text = "insert into \"odd\" (a, b) values (1, ');('), (-2, NULL) ,(30000000000, 'it''s');"
    split = values_lists.split_literals(text)
    assert split is not None
    found = values_lists.split_values(split)
    assert found is not None
    assert found.head == 'insert into "odd" (a, b) values '
    assert len(found.shapes) == 3
    assert found.literals == ["1", "');('", "2", "30000000000", "'it''s'"]


def test_a_serializable_transaction_reads_only_the_keys_it_inserts(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges: list[Any] = []
    real = Transaction.commit

    def commit(self: Transaction) -> Any:
        ranges.extend(self._ranges)
        return real(self)

    monkeypatch.setattr(Transaction, "commit", commit)
    con.execute("CREATE TABLE plain (id int PRIMARY KEY, v int)")
    con.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    con.executemany("INSERT INTO plain VALUES (?, ?)", [(i, i) for i in range(ROWS)])
    con.execute("COMMIT")
    assert ranges == []


@pytest.mark.parametrize("text", [INSERT, INSERT + " ON CONFLICT DO NOTHING"])
def test_a_transaction_that_grows_too_large_is_refused_with_its_size(
    con: belvedere.Connection, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_limit, "CHANGES_BYTES_MAX", 2**16)
    monkeypatch.setattr(TransactionState, "MEASURED_WRITES_MIN", 10)
    monkeypatch.setattr(con._session.shared, "memory_limit_bytes", 2**16)
    con.execute("BEGIN")
    rows = map(make_row, range(ROWS))
    with pytest.raises(belvedere.Error, match="transaction is too large") as caught:
        collections.deque((con.execute(text, row) for row in rows), maxlen=0)
    assert caught.value.sqlstate == "53200"
    assert "size_mb=1" in str(caught.value)
    con.execute("ROLLBACK")
    with pytest.raises(belvedere.Error) as caught:
        con.executemany(text, [make_row(i) for i in range(2_000)])
    assert caught.value.sqlstate == "53200"
    assert con.execute("SELECT * FROM t").fetchall() == []
    con.executemany(text, [make_row(i) for i in range(20)])
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(20,)]
