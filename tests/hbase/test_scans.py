"""Scans on a real HBase: region servers filter, prune columns and limit; bytes are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import belvedere
from belvedere.database import Database
from belvedere.kv.cell import CellScan, ReplyLost
from belvedere.kv.hbase.requests import GatewayCall
from belvedere.kv.hbase.store import HBaseCells
from belvedere.kv.packed_rows import PackedRows
from belvedere.session.session import Session
from belvedere.txn.row_atomic.engine import RowAtomicEngine

ROWS = 3000


@pytest.fixture
def con(url: str) -> Iterator[belvedere.Connection]:
    with belvedere.connect(url, autocommit=True) as opened:
        opened.execute(
            "CREATE TABLE item (id BIGINT PRIMARY KEY, kind INTEGER, name TEXT, note TEXT)"
        )
        for start in range(0, ROWS, 1000):
            opened.execute(
                "INSERT INTO item SELECT i, i % 100 - 50, 'it''s ' || i % 7, rpad('', 100, 'x')"
                " FROM generate_series(?, ?) i",
                (start, start + 999),
            )
        yield opened


def store_of(con: belvedere.Connection) -> HBaseCells:
    assert isinstance(con.session, Session)
    database = con.session.host
    assert isinstance(database, Database)
    assert isinstance(database.engine, RowAtomicEngine)
    store = database.engine._opened.store
    assert isinstance(store, HBaseCells)
    return store


def received(con: belvedere.Connection, statement: str, *values: Any) -> tuple[list[Any], int]:
    """The rows of a statement, and the bytes that came for it."""
    pool = store_of(con).exchange.pool
    con.execute(statement, values).fetchall()
    before = pool.count_bytes()[1]
    rows = con.execute(statement, values).fetchall()
    return rows, pool.count_bytes()[1] - before


def test_region_servers_filter_prune_and_limit(con: belvedere.Connection) -> None:
    whole_rows, whole = received(con, "SELECT * FROM item")
    assert len(whole_rows) == ROWS
    rows, few = received(con, "SELECT * FROM item WHERE kind < ? AND name = 'it''s 3'", -45)
    assert sorted(rows) == sorted(r for r in whole_rows if r[1] < -45 and r[2] == "it's 3")
    assert few * 20 < whole
    rows, some = received(con, "SELECT * FROM item WHERE kind IN (-50, 49) OR id >= 2990")
    assert sorted(rows) == sorted(r for r in whole_rows if r[1] in (-50, 49) or r[0] >= 2990)
    assert some * 10 < whole
    rows, narrow = received(con, "SELECT kind FROM item")
    assert sorted(rows) == sorted((row[1],) for row in whole_rows)
    assert narrow * 5 < whole * 3
    rows, limited = received(con, "SELECT * FROM item WHERE kind = 7 LIMIT 2")
    assert [row[1] for row in rows] == [7, 7]
    assert limited * 50 < whole


def test_what_region_servers_cannot_compare_is_compared_here(con: belvedere.Connection) -> None:
    rows = con.execute("SELECT id FROM item WHERE length(name) = 6 AND kind * 2 = 98").fetchall()
    assert sorted(rows) == [(number,) for number in range(99, ROWS, 100)]
    con.execute("ALTER TABLE item ADD COLUMN later INTEGER DEFAULT 4")
    con.execute("UPDATE item SET later = 5 WHERE id = 17")
    [(count,)] = con.execute("SELECT count(*) FROM item WHERE later = 4").fetchall()
    assert count == ROWS - 1
    con.execute("UPDATE item SET kind = NULL WHERE id < 10")
    [(count,)] = con.execute("SELECT count(*) FROM item WHERE kind < -40").fetchall()
    assert count == 10 * ROWS // 100 - 10


def test_a_filter_that_takes_a_server_too_long_is_applied_here(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = store_of(con).exchange
    perform = exchange.perform_call

    def lose_filtered(call: GatewayCall, seconds_max: float | None = None) -> Any:
        if getattr(call.arguments.get("tscan"), "filterString", None):
            raise ReplyLost("no usable answer of the gateway")
        return perform(call, seconds_max)

    monkeypatch.setattr(exchange, "perform_call", lose_filtered)
    rows = con.execute("SELECT id FROM item WHERE kind = 49").fetchall()
    assert sorted(rows) == [(number,) for number in range(99, ROWS, 100)]
    assert store_of(con).scans_filtered_here > 0
    rows = con.execute("SELECT id FROM item WHERE kind = 49 ORDER BY id DESC LIMIT 3").fetchall()
    assert rows == [(2999,), (2899,), (2799,)]


def test_pages_come_packed_and_are_the_same_rows(con: belvedere.Connection) -> None:
    con.execute("UPDATE item SET note = NULL, name = '' WHERE id % 3 = 0")
    con.execute("DELETE FROM item WHERE id % 7 = 0")
    store = store_of(con)
    [(relation,)] = con.execute("SELECT id FROM belvedere.tables WHERE name = 'item'").fetchall()
    start, end = (b"\x10" + (relation + more).to_bytes(4) for more in (0, 1))
    for columns in (None, (b"\x00",), (b"\x00", b"c3")):
        scan = CellScan(start, end, columns, limit=1000)
        packed = store.scan(replace(scan, packed=True))
        assert isinstance(packed, PackedRows)
        assert tuple(packed) == store.scan(scan)
    past_the_end = replace(scan, start=end[:-1] + b"\xfe", end=end[:-1] + b"\xff", packed=True)
    assert len(store.scan(past_the_end)) == 0
    found = con.execute("SELECT id, kind, name, note FROM item").fetch_arrow()
    assert sorted(found.column(0).to_pylist()) == [n for n in range(ROWS) if n % 7]
    assert sum(found.column(3).is_null().to_pylist()) == len(
        [n for n in range(ROWS) if n % 7 and n % 3 == 0]
    )
