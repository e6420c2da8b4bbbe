"""Rows of a query as they are computed, in this process and over the socket."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import belvedere
from belvedere.interfaces.client.row_stream import FIRST_ROWS, ROWS_MAX
from belvedere.kv.batch import SCAN_BATCH_ROWS
from belvedere.session.query_stream import QueryStream
from belvedere.txn.transaction.transaction import Transaction

ROWS = 20_000


@pytest.fixture
def numbers(con: belvedere.Connection) -> belvedere.Connection:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, a text, r real)")
    con.execute(f"INSERT INTO t SELECT g, 'a' || g, 0.1 FROM generate_series(1, {ROWS}) AS g")
    return con


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each fetch computed, in the process that has the store open."""
    counts: list[int] = []
    plain = QueryStream.fetch_rows

    def count_rows(self: QueryStream, count: int) -> list[tuple[object, ...]]:
        rows = plain(self, count)
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(QueryStream, "fetch_rows", count_rows)
    return counts


def open_snapshots() -> int:
    """How many snapshots streams of this process keep."""
    gc.collect()
    streams = [one for one in gc.get_objects() if isinstance(one, QueryStream)]
    return sum(not one._transaction.ended for one in streams)


def test_the_first_row_is_there_before_the_last_is_computed(
    numbers: belvedere.Connection, fetched: list[int]
) -> None:
    stream = numbers.stream("SELECT id, a FROM t WHERE id > ?", (1,))
    assert next(stream) == (2, "a2")
    assert fetched == [FIRST_ROWS]
    assert sum(1 for _ in stream) == ROWS - 2
    assert max(fetched) <= ROWS_MAX
    assert open_snapshots() == 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, a FROM t",
        "SELECT upper(a) FROM t WHERE id % 2 = 0",
        "SELECT id FROM t LIMIT 15000",
        "SELECT a FROM t UNION ALL SELECT a FROM t",
    ],
)
def test_the_first_row_needs_one_batch_of_the_table(
    numbers: belvedere.Connection, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[int] = []
    monkeypatch.setattr(Transaction, "scan", _count_scanned(Transaction.scan, scanned))
    monkeypatch.setattr(
        Transaction, "scan_values", _count_scanned(Transaction.scan_values, scanned)
    )
    with numbers.stream(sql) as stream:
        next(stream)
        assert 0 < sum(scanned) <= SCAN_BATCH_ROWS < ROWS
        for _ in stream:
            pass
    assert sum(scanned) > 2 * SCAN_BATCH_ROWS


def _count_scanned(
    scan: Callable[..., Iterator[list[Any]]], scanned: list[int]
) -> Callable[..., Iterator[list[Any]]]:
    def count_batches(*arguments: Any, **options: Any) -> Iterator[list[Any]]:
        for batch in scan(*arguments, **options):
            scanned.append(len(batch))
            yield batch

    return count_batches


def test_a_stream_computes_no_more_than_is_fetched(numbers: belvedere.Connection) -> None:
    stream = numbers.stream("SELECT g FROM generate_series(1, 1000000000) AS g")
    assert [next(stream) for _ in range(100)][-1] == (100,)
    stream.close()
    assert list(stream) == []


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT a FROM t ORDER BY a DESC", ROWS),
        ("SELECT id % 7, count(*) FROM t GROUP BY 1", 7),
        ("SELECT x.id FROM t AS x JOIN t AS y ON x.a = y.a", ROWS),
        ("SELECT id FROM t UNION ALL SELECT -id FROM t", 2 * ROWS),
        ("SELECT id FROM t LIMIT 0", 0),
        ("SELECT table_name FROM information_schema.tables WHERE table_name = 't'", 1),
    ],
)
def test_every_query_can_be_streamed(numbers: belvedere.Connection, sql: str, count: int) -> None:
    rows = list(numbers.stream(sql))
    assert len(rows) == count
    assert sorted(rows) == sorted(numbers.execute(sql).fetchall())


def test_other_statements_run_meanwhile_and_do_not_show(numbers: belvedere.Connection) -> None:
    stream = numbers.stream("SELECT id FROM t")
    first = next(stream)
    numbers.execute("DELETE FROM t WHERE id > 10")
    assert numbers.execute("SELECT count(*) FROM t").fetchone() == (10,)
    assert len([first, *stream]) == ROWS


def test_a_stream_shows_the_changes_of_its_transaction_and_outlives_it(
    numbers: belvedere.Connection,
) -> None:
    numbers.execute("BEGIN")
    numbers.execute("INSERT INTO t VALUES (0, 'mine')")
    numbers.execute("DELETE FROM t WHERE id = 2")
    stream = numbers.stream("SELECT id FROM t")
    assert [next(stream), next(stream)] == [(0,), (1,)]
    numbers.execute("INSERT INTO t VALUES (2, 'again')")
    numbers.rollback()
    assert len([*stream]) == ROWS - 2
    assert numbers.execute("SELECT count(*) FROM t WHERE id = 0").fetchone() == (0,)


def test_a_stream_without_autocommit_begins_a_transaction(numbers: belvedere.Connection) -> None:
    numbers.autocommit = False
    stream = numbers.stream("SELECT id FROM t")
    assert next(stream) == (1,)
    with pytest.raises(belvedere.ProgrammingError, match="inside a transaction"):
        numbers.autocommit = True
    numbers.commit()
    stream.close()


def test_rows_have_the_shape_that_the_connection_asks_for(numbers: belvedere.Connection) -> None:
    numbers.row_factory = belvedere.dict_row
    with numbers.stream("SELECT id, r FROM t WHERE id = :id", {"id": 3}) as stream:
        assert list(stream) == [{"id": 3, "r": 0.1}]
        assert [column[0] for column in stream.description] == ["id", "r"]


def test_views_are_streamed_as_fresh_as_asked(numbers: belvedere.Connection) -> None:
    numbers.execute(
        "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', max_lag = '1 hour') AS "
        "SELECT id FROM t WHERE id <= 3"
    )
    numbers.execute("INSERT INTO t VALUES (-1, 'new')")
    assert sorted(numbers.stream("SELECT * FROM v", freshness="latest")) == [
        (-1,),
        (1,),
        (2,),
        (3,),
    ]
    assert sorted(numbers.stream("SELECT * FROM v", freshness="any")) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("DELETE FROM t RETURNING id", "0A000"),
        ("SELECT nextval('s')", "0A000"),
        ("CREATE TABLE u (a int)", "0A000"),
        ("SELECT 1; SELECT 2", "42601"),
        ("SELECT nosuch FROM t", "42703"),
    ],
)
def test_what_is_no_query_is_refused(
    numbers: belvedere.Connection, sql: str, sqlstate: str
) -> None:
    numbers.execute("CREATE SEQUENCE s")
    with pytest.raises(belvedere.DatabaseError) as caught:
        numbers.stream(sql)
    assert caught.value.sqlstate == sqlstate
    assert numbers.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)


def test_an_error_in_a_row_ends_the_stream(numbers: belvedere.Connection) -> None:
    stream = numbers.stream("SELECT 1 / (id - 100) FROM t")
    with pytest.raises(belvedere.DataError, match="division by zero"):
        list(stream)
    assert list(stream) == []
    assert open_snapshots() == 0
    assert numbers.execute("SELECT 1").fetchone() == (1,)


def test_an_abandoned_stream_lets_its_snapshot_go(numbers: belvedere.Connection) -> None:
    next(numbers.stream("SELECT id FROM t"))
    gc.collect()
    with numbers.stream("SELECT id FROM t") as second:
        next(second)
        assert open_snapshots() == 1
    assert open_snapshots() == 0


def test_a_stream_ends_with_its_connection(numbers: belvedere.Connection) -> None:
    stream = numbers.stream("SELECT id FROM t")
    assert next(stream) == (1,)
    numbers.close()
    with pytest.raises(belvedere.InterfaceError, match="closed"):
        list(stream)


def test_cancel_stops_a_stream(numbers: belvedere.Connection) -> None:
    sql = "SELECT g FROM generate_series(1, 1000000000) AS g WHERE g < 0"
    stream = numbers.stream(sql)
    stopping = threading.Event()

    def cancel_until_stopped() -> None:
        while not stopping.wait(0.01):
            numbers.cancel()

    thread = threading.Thread(target=cancel_until_stopped)
    thread.start()
    try:
        with pytest.raises(belvedere.OperationalError) as caught:
            list(stream)
    finally:
        stopping.set()
        thread.join()
    assert caught.value.sqlstate == "57014"
