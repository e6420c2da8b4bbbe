"""A store whose rows somebody else altered: the statement that meets it names the row, and
overwrites nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from belvedere.database import Database
from belvedere.errors import Corruption
from belvedere.kv.cell import Get, Mutate, Put
from belvedere.txn.row_atomic import commit, read_rows
from belvedere.txn.row_atomic.cells import data_cells, layout
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.transaction.transaction import Transaction
from tests.txn.row_atomic.nodes import open_node
from tests.txn.row_atomic.steps import Bench, key, latest, root, work
from tests.txn.shop import put, scan, table, update


def alter(bench: Bench, row: bytes, column: bytes, value: bytes, timestamp: int = 1) -> None:
    bench.store.mutate(Mutate(row, (Put(column, timestamp, value),)))


def refused(bench: Bench, row: bytes, act: Callable[[], Any]) -> None:
    before = dict(bench.store.copy_rows())
    with pytest.raises(Corruption) as caught:
        act()
    assert caught.value.facts["row"] == row.hex()
    after = bench.store.copy_rows()
    assert after.get(row) == before.get(row), "the altered row was overwritten"


def write(bench: Bench) -> Any:
    return bench.run(commit.commit_transaction(bench.node(1), work("t", 0, "x")))


def write_without_advance(bench: Bench) -> None:
    """As a writer leaves it that died before it moved `applied`: others have to read its record."""
    write(bench)
    alter(bench, layout.POSITION_ROW, layout.POSITIONS, layout.encode(layout.Positions()))


@pytest.mark.parametrize("value", [b"garbage", b"\x93\x01\x02\x03", b"\xc0"])
def test_a_lock_value_of_unknown_form(value: bytes) -> None:
    bench = Bench()
    alter(bench, root("x"), layout.HOLDERS, value)
    refused(bench, root("x"), lambda: write(bench))
    assert bench.store.get(Get(layout.COUNTER_ROW)) == ()
    refused(bench, root("x"), lambda: bench.run(sweep.sweep_locks(bench.node(2))))


@pytest.mark.parametrize("cut", [0, 5, 20])
def test_a_log_row_with_a_bad_checksum(cut: int) -> None:
    bench = Bench()
    write_without_advance(bench)
    row = layout.log_row(1, bench.settings.lanes)
    stored = next(c.value for c in bench.store.get(Get(row)) if c.column == layout.RECORD)
    bad = stored[:cut] + bytes((stored[cut] ^ 1,)) + stored[cut + 1 :]
    alter(bench, row, layout.RECORD, bad)
    refused(bench, row, lambda: latest(bench, bench.node(2)))
    alter(bench, row, layout.RECORD, stored[:7])
    refused(bench, row, lambda: latest(bench, bench.node(2)))


def test_a_log_row_that_belongs_to_somebody_else() -> None:
    bench = Bench()
    write_without_advance(bench)
    row = layout.log_row(1, bench.settings.lanes)
    alter(bench, row, layout.OWNER, (99).to_bytes(8))
    refused(bench, row, lambda: latest(bench, bench.node(2)))


def test_cells_newer_than_the_counter() -> None:
    bench = Bench()
    write(bench)
    at = latest(bench, bench.node(1))
    alter(bench, key("x"), data_cells.MARKER, b"+" + (900).to_bytes(8), timestamp=900)
    later = work("later", 1000, "x")
    refused(bench, key("x"), lambda: bench.run(commit.commit_transaction(bench.node(1), later)))
    assert bench.run(sweep.held_locks()) == []
    assert bench.run(read_rows.get_row(key("x"), at)) is not None, (
        "readers of the past are not disturbed"
    )


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        (layout.POSITION_ROW, layout.POSITIONS, b"\xff"),
        (layout.POSITION_ROW, layout.DELAY, b"soon"),
        (layout.FLOOR_ROW, layout.FLOORS, b"none"),
        (layout.CATALOG_ROW, layout.VERSION, b"7"),
    ],
)
def test_altered_system_rows(row: bytes, column: bytes, value: bytes) -> None:
    bench = Bench()
    write(bench)
    alter(bench, row, column, value)

    def everything() -> None:
        at = latest(bench, bench.node(2))
        bench.run(commit.commit_transaction(bench.node(2), work("u", at, "x")))

    refused(bench, row, everything)


def test_more_applied_than_handed_out() -> None:
    bench = Bench()
    write(bench)
    alter(bench, layout.POSITION_ROW, layout.POSITIONS, layout.encode(layout.Positions(9, 9)))
    refused(bench, layout.POSITION_ROW, lambda: latest(bench, bench.node(2)))


def test_a_marker_of_unknown_form() -> None:
    bench = Bench()
    write(bench)
    at = latest(bench, bench.node(1))
    alter(bench, key("x"), data_cells.MARKER, b"?", timestamp=1)
    refused(bench, key("x"), lambda: bench.run(read_rows.get_row(key("x"), at)))
    refused(
        bench,
        key("x"),
        lambda: bench.run(commit.commit_transaction(bench.node(1), work("u", at, "x"))),
    )


def test_a_heartbeat_of_unknown_form_is_named() -> None:
    bench = Bench()
    step, sent = commit.commit_transaction(bench.node(1), work("t", 0, "x")), None
    operation = step.send(sent)
    while not getattr(operation, "row", b"").startswith(layout.LOCKS):
        operation = step.send(0.0)
    bench.run(iter_one(operation))
    row = layout.heartbeat_row(1)
    alter(bench, row, layout.BEAT, b"dead")
    refused(
        bench, row, lambda: bench.run(commit.commit_transaction(bench.node(2), work("u", 0, "x")))
    )


def iter_one(operation: Any) -> Any:
    yield operation


def test_nothing_is_altered_by_reading() -> None:
    bench = Bench()
    write(bench)
    latest(bench, bench.node(1))
    before = dict(bench.store.copy_rows())
    bench.run(advance.snapshot_position(bench.node(2)))
    bench.run(read_rows.get_row(key("x"), 1))
    assert bench.store.copy_rows() == before


# -- a database that meets it ----------------------------------------------------------------------


def damaged(node: Database, row: bytes, act: Callable[[], Any]) -> None:
    store = node.engine._opened.store  # type: ignore[attr-defined]
    before = dict(store.copy_rows())
    with pytest.raises(Corruption) as caught:
        act()
    assert caught.value.sqlstate == "XX001"
    assert caught.value.facts["row"] == row.hex()
    assert store.copy_rows().get(row) == before.get(row), "the altered row was overwritten"


def altered(node: Database, row: bytes, column: bytes, value: bytes, at: int = 1) -> None:
    store = node.engine._opened.store  # type: ignore[attr-defined]
    store.mutate(Mutate(row, (Put(column, at, value),)))


def test_a_statement_that_meets_a_lock_of_unknown_form_names_it(shop: Database) -> None:
    put(shop, "product", (1, "a"))
    row = layout.lock_row("root", table(shop, "product").key.encode((1,)))
    altered(shop, row, layout.HOLDERS, b"garbage")
    damaged(shop, row, lambda: shop.run_transaction(lambda txn: update(txn, "product", (1, "b"))))
    put(shop, "product", (2, "b"))
    with shop.begin() as reader:
        assert scan(reader, "product") == [(1, "a"), (2, "b")], "nothing else is hurt"


def test_a_statement_that_meets_a_bad_log_row_names_it(shop: Database) -> None:
    at = put(shop, "product", (1, "a")).position
    row = layout.log_row(at, 16)
    altered(shop, row, layout.RECORD, b"cut short")
    damaged(shop, row, lambda: list(shop.log.read(at - 1)))
    before = layout.encode(layout.Positions(at - 1, at - 1, at - 1))
    altered(shop, layout.POSITION_ROW, layout.POSITIONS, before)
    damaged(shop, row, lambda: open_node(shop.engine._opened.store).position)  # type: ignore[attr-defined]


def test_a_statement_that_meets_a_cell_newer_than_the_counter_names_it(shop: Database) -> None:
    at = put(shop, "product", (1, "a")).position
    key = table(shop, "product").key.encode((1,))
    altered(shop, key, data_cells.MARKER, b"+" + at.to_bytes(8), at + 1000)
    with shop.begin() as reader:
        assert scan(reader, "product") == [(1, "a")]
    damaged(shop, key, lambda: shop.run_transaction(lambda txn: update_unseen(txn, key)))


def update_unseen(txn: Transaction, key: bytes) -> None:
    """A write that has seen even the cell from the future: only the counter can tell."""
    txn.snapshot = txn.snapshot._replace(batch=2**40)
    update(txn, "product", (1, "b"))
