"""Local views of hashed tables lie in the slots of the rows that they come from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from belvedere.catalog.model import View
from belvedere.codec import keyspace
from belvedere.database import SQL_COMPILERS, Database
from belvedere.kv.cell import CellScan
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.session.session import Session
from belvedere.txn.row_atomic.cells import placement
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.node import NodeSettings

PARTITIONS = 3
IMPATIENT = NodeSettings(grace_seconds=0.0, work_seconds_max=60.0)
COUNTED = "SELECT b, count(*) AS n, sum(v) AS s FROM t GROUP BY b"
FEW = "SELECT a, b FROM t WHERE v < 50"
SLOTS = [partition * 256 // PARTITIONS for partition in range(PARTITIONS)]


class Shop:
    def __init__(self) -> None:
        self.store = MemoryCells()
        self.db = Database.on_cells(CellStoreSetup(self.store, IMPATIENT), **SQL_COMPILERS)
        self.shared = self.db.open_shared_state()
        self.session = Session(self.shared)
        options = f"WITH (partitions = {PARTITIONS}, keys = 'hashed')"
        self.run(f"CREATE TABLE t (a INT PRIMARY KEY, b TEXT, v INT) {options}")

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        return list(self.session.execute(statement).rows)

    def create_view(self, name: str, query: str, options: str = "") -> None:
        self.run(f"CREATE MATERIALIZED VIEW {name} WITH (placement = 'local'{options}) AS {query}")

    def find_view(self, name: str) -> int:
        return self.db.catalog.require_relation(View, name).id

    def list_rows(self, relation: int) -> list[bytes]:
        families = (keyspace.ROWS, keyspace.SPREAD_ROWS)
        return [
            row
            for row, _ in self.store.scan(CellScan(b"", None))
            if row[0] in families and placement.relation_of(row) == relation
        ]

    def require_law(self, name: str, query: str) -> None:
        self.run(f"REFRESH MATERIALIZED VIEW {name}")
        assert sorted(self.run(f"SELECT * FROM {name}")) == sorted(self.run(query))
        assert self.run(f"VERIFY MATERIALIZED VIEW {name}")[0][-1] is True


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    made.run("INSERT INTO t SELECT i, 'b' || i % 4, i FROM generate_series(0, 99) i")
    yield made
    made.db.close()


def write_some(shop: Shop, seed: int) -> None:
    chosen = random.Random(seed)
    for _ in range(10):
        a = chosen.randrange(120)
        shop.run(f"INSERT INTO t VALUES ({a}, 'b{a % 5}', {a}) ON CONFLICT (a) DO UPDATE SET v = 7")
        shop.run(f"DELETE FROM t WHERE a = {chosen.randrange(120)}")


@pytest.mark.parametrize(
    "options", ["", ", maintenance = 'deferred', max_lag = '1 h'", ", backfill = 'resumable'"]
)
def test_entries_lie_where_their_rows_are(shop: Shop, options: str) -> None:
    shop.create_view("counted", COUNTED, options)
    shop.create_view("few", FEW, options)
    for seed in range(3):
        write_some(shop, seed)
        shop.require_law("counted", COUNTED)
        shop.require_law("few", FEW)
    rows = shop.list_rows(shop.find_view("few"))
    assert {tuple(row[:2]) for row in rows} == {(keyspace.SPREAD_ROWS, slot) for slot in SLOTS}
    with shop.db.begin() as reader:
        table = shop.db.get_compiled_table("t")
        for (a,) in shop.run("SELECT a FROM few"):
            home = placement.row_of(reader.catalog, table.key.encode((a,)))[:2]
            ending = table.key.encode((a,))[keyspace.ROW_PREFIX_BYTES :]
            assert any(row.startswith(home) and ending in row for row in rows)


def test_a_range_of_one_partition_asks_its_slot_only(shop: Shop) -> None:
    shop.create_view("counted", COUNTED)
    prefix = keyspace.row_prefix(shop.find_view("counted"))
    spread = placement.find_spread(shop.db.catalog, prefix)
    assert spread is not None
    one = prefix + bytes.fromhex("018000000000000001")
    assert spread.list_ranges(one, one + b"\xff") == [
        (bytes((0x11, SLOTS[1])) + one[1:], bytes((0x11, SLOTS[1])) + one[1:] + b"\xff")
    ]
    assert len(spread.list_ranges(prefix, keyspace.next_prefix(prefix))) == PARTITIONS


def test_local_indexes_kept_changes_and_vacuum(shop: Shop) -> None:
    shop.run("CREATE INDEX by_b ON t (b) WITH (placement = 'local')")
    shop.create_view("kept", COUNTED, ", keep_changes = 1000")
    begun = shop.db.position
    write_some(shop, 1)
    shop.db.engine.vacuum(shop.db.position)
    write_some(shop, 2)
    assert sorted(shop.run("SELECT a FROM t WHERE b = 'b1'")) == sorted(
        shop.run("SELECT a FROM t WHERE b || '' = 'b1'")
    )
    shop.require_law("kept", COUNTED)
    log, view = shop.db.log.additions, shop.find_view("kept")
    assert log is not None
    whole = keyspace.relation_range(view)
    assert list(log.read_additions(*whole, begun, shop.db.position))


def test_a_dropped_view_leaves_nothing(shop: Shop) -> None:
    shop.create_view("counted", COUNTED)
    view = shop.find_view("counted")
    assert shop.list_rows(view)
    shop.run("DROP MATERIALIZED VIEW counted")
    write_some(shop, 3)
    shop.db.trim(shop.db.position)
    assert shop.list_rows(view) == []


def test_an_ordered_table_keeps_its_views_by_key(shop: Shop) -> None:
    shop.run(f"CREATE TABLE o (a INT PRIMARY KEY, b TEXT) WITH (partitions = {PARTITIONS})")
    shop.create_view("by_b", "SELECT b, count(*) AS n FROM o GROUP BY b")
    shop.run("INSERT INTO o VALUES (1, 'x'), (2, 'y')")
    assert {row[0] for row in shop.list_rows(shop.find_view("by_b"))} == {keyspace.ROWS}
