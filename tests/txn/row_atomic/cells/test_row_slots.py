"""Locks and outcomes lie in many regions; their order, and what is taken first, is not theirs."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

import pytest

from belvedere.txn.row_atomic import locks
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.hbase_setup import build_table_layout
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.locks import AttemptLocks, RowLock
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import NodeSettings
from tests.txn.row_atomic.steps import Bench

REGIONS = 8
LANES = NodeSettings().lanes


def region_of(row: bytes) -> int:
    return bisect_right(build_table_layout(NodeSettings(), REGIONS).system_splits, row)


@pytest.mark.parametrize("regions", [1, 3, 4, 16, 40, 256])
def test_splits_are_in_order_and_none_is_twice(regions: int) -> None:
    made = build_table_layout(NodeSettings(), regions)
    for splits in (made.rows_splits, made.system_splits):
        assert list(splits) == sorted(set(splits))


def test_neighbouring_locks_and_growing_transaction_ids_lie_in_all_regions() -> None:
    numbers = [number.to_bytes(8) for number in range(4000)]
    for rows in (
        [layout.lock_row("root", number) for number in numbers],
        [layout.lock_row("unusual", number) for number in numbers],
        [layout.outcome_row(number + b"12345678") for number in numbers],
    ):
        found = Counter(map(region_of, rows))
        assert len(found) == REGIONS
        assert max(found.values()) < 1.5 * len(numbers) / REGIONS


def test_log_rows_lie_in_all_regions() -> None:
    assert len({region_of(layout.log_row(p, LANES)) for p in range(1, 100)}) == REGIONS


def test_what_every_commit_asks_for_shares_no_region() -> None:
    rows = (layout.COUNTER_ROW, layout.POSITION_ROW, layout.CATALOG_ROW, layout.FLOOR_ROW)
    lock, log = layout.lock_row("root", b""), layout.log_row(1, LANES)
    assert len({region_of(row) for row in (*rows, lock, log)}) == 6


def test_a_lock_row_tells_its_kind_and_key() -> None:
    for kind in (*layout.LOCK_KINDS, "unusual"):
        assert layout.split_lock_row(layout.lock_row(kind, b"\x00\x7fkey")) == (
            kind,
            b"\x00\x7fkey",
        )


def test_locks_are_taken_and_listed_in_the_order_of_kind_and_key() -> None:
    bench = Bench()
    node = bench.node(1)
    named = [("claim", b"p"), ("root", b"b"), ("unusual", b"a"), ("root", b"a"), ("guard", b"c")]
    rows = [layout.lock_row(kind, key) for kind, key in named]
    assert min(rows) != min(rows, key=layout.lock_order), "else this shows nothing"
    held = AttemptLocks(node.start_attempt(), 0)
    wanted = [RowLock(row) for row in rows]
    bench.run(locks.take_locks(node, held, wanted, advance.finish_attempt))
    assert layout.split_lock_row(held.primary) == ("root", b"a")
    listed = [layout.split_lock_row(row) for row, _ in bench.run(sweep.held_locks())]
    assert listed == [
        ("root", b"a"),
        ("root", b"b"),
        ("claim", b"p"),
        ("guard", b"c"),
        ("unusual", b"a"),
    ]
