"""TPC-C: every system ends with the same rows, and a broken condition is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from belvedere.benchmarks.report.measurements import BenchmarkReport
from belvedere.benchmarks.tpcc import suite
from belvedere.benchmarks.tpcc.conditions import (
    CONDITIONS,
    create_condition_views,
    find_broken_conditions,
    read_condition_views,
)
from belvedere.benchmarks.tpcc.generate import TpccSize
from belvedere.benchmarks.tpcc.peers import BelvederePeer, TransactionPeer, load_tables
from belvedere.benchmarks.tpcc.transactions import WEIGHTS, Terminal, number_history

SIZE = TpccSize(warehouses=2, items=100, customers=20)
TABLES = "warehouse district item customer history stock orders new_order order_line".split()

# A change to each condition that breaks it.
BREAKS = {
    "warehouse_ytd": "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1",
    "next_order": "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 2",
    "new_orders_without_gaps": "DELETE FROM new_order WHERE no_d_id = 3 AND no_o_id = 17",
    "lines_of_a_district": "DELETE FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 2",
    "carrier_or_new_order": "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 1 AND o_id = 20",
    "lines_of_an_order": "UPDATE orders SET o_ol_cnt = 4 WHERE o_w_id = 1 AND o_id = 2",
    "delivery_dates": "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_o_id = 2",
    "warehouse_history": "UPDATE history SET h_amount = h_amount + 1 WHERE h_id = 3",
    "district_history": "UPDATE history SET h_d_id = 2 WHERE h_id = 3",
    "balance": "UPDATE customer SET c_balance = c_balance + 1 WHERE c_id = 5",
    "orders_delivered": "DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 20",
    "balance_and_payments": "UPDATE customer SET c_ytd_payment = 7 WHERE c_id = 6",
}


def load_peer(peer: TransactionPeer) -> Terminal:
    load_tables(peer, SIZE, seed=1)
    return Terminal(peer, SIZE, 7, number_history(SIZE))


def read_tables(peer: TransactionPeer) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(peer.fetch_rows(f"SELECT * FROM {name}", ()), key=repr) for name in TABLES}


def test_systems_end_with_the_same_rows() -> None:
    contents = {}
    with suite.open_peers(BenchmarkReport("tpcc", 1), "off") as peers:
        for name, peer in peers.items():
            terminal = load_peer(peer)
            for _ in range(120):
                terminal.run_next()
            assert set(terminal.done) == set(WEIGHTS)
            assert find_broken_conditions(peer) == []
            contents[name] = read_tables(peer)
    assert set(contents) == {"belvedere", "sqlite3", "PostgreSQL"}
    assert contents["belvedere"] == contents["sqlite3"] == contents["PostgreSQL"]


def test_unknown_item_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belvedere.benchmarks.tpcc.transactions.UNKNOWN_ITEM_SHARE", 1.0)
    peer = BelvederePeer(tmp_path / "shop", "off")
    terminal = load_peer(peer)
    before = read_tables(peer)
    terminal.run_named("new_order")
    assert read_tables(peer) == before
    peer.close()


@pytest.mark.parametrize("name", CONDITIONS)
def test_broken_condition_is_found(tmp_path: Path, name: str) -> None:
    peer = BelvederePeer(tmp_path / "shop", "off")
    load_peer(peer)
    assert find_broken_conditions(peer) == []
    peer.change_rows(BREAKS[name], ())
    assert any(found.startswith(f"{name}:") for found in find_broken_conditions(peer))
    peer.close()


def test_condition_views_are_maintained(tmp_path: Path) -> None:
    peer = BelvederePeer(tmp_path / "shop", "off")
    terminal = load_peer(peer)
    create_condition_views(peer)
    for _ in range(60):
        terminal.run_next()
    assert set(read_condition_views(peer).values()) == {0}
    for name in CONDITIONS:
        peer.change_rows(BREAKS[name], ())
        assert peer.fetch_rows(f"SELECT * FROM broken_{name}", ()), name
        peer.rollback()
    peer.close()


def test_all_parts_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "ROUNDS", 2)
    monkeypatch.setattr(suite, "ROUND_TRANSACTIONS", 60)
    report = suite.run(0.02, seed=1)
    names = [figure.name for figure in report.figures]
    assert {"durability off, to sqlite3", "four views, to sqlite3", "8 threads, to one"} <= set(
        names
    )
    assert all(figure.value > 0 for figure in report.figures)
