"""Hashed tables on a real HBase: spread over regions that are there from the beginning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import belvedere
from belvedere.kv.cell import CellScan, ReplyLost
from belvedere.kv.hbase.requests import GatewayCall
from belvedere.txn.row_atomic.cells import data_cells, placement
from tests.hbase.test_scans import store_of

ROWS = 3000
OID_OFFSET = 16384
REGIONS = 3


@pytest.fixture
def con(url: str) -> Iterator[belvedere.Connection]:
    with belvedere.connect(f"{url}?regions={REGIONS}", autocommit=True) as opened:
        opened.execute(
            "CREATE TABLE visit (id BIGINT PRIMARY KEY, page TEXT, seconds INT)"
            f" WITH (partitions = {REGIONS}, keys = 'hashed')"
        )
        opened.execute(
            "CREATE MATERIALIZED VIEW pages AS"
            " SELECT page, count(*) AS n, sum(seconds) AS s FROM visit GROUP BY page"
        )
        opened.execute(
            "INSERT INTO visit SELECT i, 'page ' || i % 20, i % 60 FROM generate_series(1, ?) i",
            (ROWS,),
        )
        yield opened


def list_spread_regions(con: belvedere.Connection) -> list[tuple[bytes, bytes]]:
    found = con.execute(
        "SELECT start_key, end_key FROM belvedere.regions"
        " WHERE table_name LIKE '%:rows' AND start_key >= '11' ORDER BY start_key"
    ).fetchall()
    return [(bytes.fromhex(start), bytes.fromhex(end)) for start, end in found]


def test_each_region_has_its_part_of_the_rows(con: belvedere.Connection) -> None:
    regions = list_spread_regions(con)
    assert [start for start, _ in regions] == [b"\x11", b"\x11\x55", b"\x11\xaa"]
    store = store_of(con)
    sizes = [len(store.scan(CellScan(low, high or b"\x12"))) for low, high in regions]
    assert sum(sizes) == ROWS
    assert min(sizes) > ROWS / REGIONS * 0.8


def test_entries_of_a_local_view_are_in_the_regions_of_their_rows(
    con: belvedere.Connection,
) -> None:
    con.execute(
        "CREATE MATERIALIZED VIEW near WITH (placement = 'local') AS SELECT id, page FROM visit"
    )
    con.execute("INSERT INTO visit VALUES (9001, 'new', 1), (9002, 'new', 2), (9003, 'new', 3)")
    con.execute("DELETE FROM visit WHERE id BETWEEN 100 AND 199")
    ids = {
        name: int(oid) - OID_OFFSET
        for name, oid in con.execute(
            "SELECT relname, oid FROM pg_class WHERE relname IN ('visit', 'near')"
        ).fetchall()
    }
    store, together = store_of(con), 0
    for low, high in list_spread_regions(con):
        found: dict[int, set[bytes]] = {ids["visit"]: set(), ids["near"]: set()}
        for row, cells in store.scan(CellScan(low, high or b"\x12", all_versions=True)):
            relation = placement.relation_of(row)
            if relation == ids["visit"]:
                exists = data_cells.read_row(row, cells) is not None
                key = row[placement.SLOT_BYTES + 4 :]
            else:
                total = data_cells.total_sum(row, cells)
                exists = total is not None and total.amounts[0] != 0
                key = row[placement.SLOT_BYTES + 4 + 9 :][:9]  # behind the partition
            if exists:
                found[relation].add(key)
        assert found[ids["visit"]] == found[ids["near"]]
        together += len(found[ids["near"]])
    assert together == ROWS + 3 - 100
    assert con.execute("VERIFY MATERIALIZED VIEW near").fetchall()[0][-1] is True


def test_a_scan_asks_all_regions_side_by_side_and_keeps_the_order(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, seen = store_of(con).exchange, list[int]()
    perform_calls = exchange.perform_calls

    def count_calls(calls):  # type: ignore[no-untyped-def]
        seen.extend([len(calls)] * any(call.name == "getScannerResults" for call in calls))
        return perform_calls(calls)

    monkeypatch.setattr(exchange, "perform_calls", count_calls)
    ids = [id_ for (id_,) in con.execute("SELECT id FROM visit ORDER BY id").fetchall()]
    assert ids == list(range(1, ROWS + 1))
    assert seen
    assert set(seen) == {REGIONS}
    seen.clear()
    last = con.execute("SELECT id FROM visit WHERE id < 500 ORDER BY id DESC LIMIT 3").fetchall()
    assert last == [(499,), (498,), (497,)]


def test_a_filter_that_takes_servers_too_long_is_tried_once_and_applied_here(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tried = store_of(con), list[str]()
    exchange = store.exchange
    perform_calls, perform_call = exchange.perform_calls, exchange.perform_call

    def is_filtered(call: GatewayCall) -> bool:
        return bool(getattr(call.arguments.get("tscan"), "filterString", None))

    def lose_filtered(calls: Sequence[GatewayCall]) -> list[Any]:
        if any(map(is_filtered, calls)):
            tried.append("together")
            raise ReplyLost("no usable answer of the gateway")
        return perform_calls(calls)

    def note_filtered(call: GatewayCall, seconds_max: float | None = None) -> Any:
        tried.extend(["alone"] * is_filtered(call))
        return perform_call(call, seconds_max)

    monkeypatch.setattr(exchange, "perform_calls", lose_filtered)
    monkeypatch.setattr(exchange, "perform_call", note_filtered)
    found = con.execute("SELECT id FROM visit WHERE seconds = 59").fetchall()
    assert sorted(found) == [(id_,) for id_ in range(59, ROWS + 1, 60)]
    assert tried == ["together"]
    assert store.scans_filtered_here == REGIONS


def test_everything_else_is_as_with_other_tables(con: belvedere.Connection, url: str) -> None:
    con.execute("UPDATE visit SET seconds = seconds + 1 WHERE id <= 10")
    con.execute("DELETE FROM visit WHERE id > 2990")
    con.execute("CREATE INDEX by_page ON visit (page)")
    assert con.execute("SELECT page FROM visit WHERE id = 7").fetchall() == [("page 7",)]
    assert con.execute("SELECT sum(n) FROM pages").fetchall() == [(2990,)]
    found = con.execute("SELECT count(*) FROM visit WHERE page = 'page 3' AND id > 1500").fetchall()
    assert found == [(len([i for i in range(1501, 2991) if i % 20 == 3]),)]
    assert con.execute("VERIFY MATERIALIZED VIEW pages").fetchall()[0][-1] is True
    with belvedere.connect(url) as other:
        assert other.execute("SELECT max(id), min(id) FROM visit").fetchall() == [(2990, 1)]
    with pytest.raises(belvedere.DataError, match="another number of regions"):
        belvedere.connect(f"{url}?regions=7")
