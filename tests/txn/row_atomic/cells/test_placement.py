"""Hashed tables lie in slots of the store, and nobody above the cells notices."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from belvedere.codec import keyspace
from belvedere.database import Database
from belvedere.kv.cell import Cell, Cells, CellScan
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.session.session import Session
from belvedere.txn.contracts import Reader
from belvedere.txn.row_atomic import bulk_commit
from belvedere.txn.row_atomic.cells import placement
from belvedere.txn.row_atomic.cells.narrow_reader import fetch_pages
from belvedere.txn.row_atomic.node import NodeSettings
from belvedere.txn.scan_request import ScanRequest, narrow_scans
from belvedere.views.compile.partitioned_layout import PartitionFunction
from tests.kv.cells.packing import pack_rows
from tests.txn.row_atomic.nodes import open_node

PARTITIONS = 3
IMPATIENT = NodeSettings(grace_seconds=0.0, work_seconds_max=60.0)


class Shop:
    """Two tables with the same rows: `spread`, which is hashed, and `plain`."""

    def __init__(self) -> None:
        self.store = MemoryCells()
        self.db: Database = open_node(self.store, IMPATIENT)
        self.shared = self.db.open_shared_state()
        self.session = Session(self.shared)
        columns = "(a INT, b TEXT, v INT, PRIMARY KEY (a, b))"
        self.run(f"CREATE TABLE plain {columns}")
        options = f"WITH (partitions = {PARTITIONS}, keys = 'hashed')"
        self.run(f"CREATE TABLE spread {columns} {options}")

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        return list(self.session.execute(statement).rows)

    def run_on_both(self, statement: str) -> None:
        for table in ("plain", "spread"):
            self.run(statement.format(t=table))

    def prefix_of(self, table: str) -> bytes:
        return keyspace.row_prefix(self.db.get_compiled_table(table).table.id)

    def list_rows(self, table: str) -> list[bytes]:
        """The rows of the store that are this table's."""
        relation = int.from_bytes(self.prefix_of(table)[1:])
        families = (keyspace.ROWS, keyspace.SPREAD_ROWS)
        return [
            row
            for row, _ in self.store.scan(CellScan(b"", None))
            if row[0] in families and placement.relation_of(row) == relation
        ]


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    yield made
    made.db.close()


def fill(shop: Shop) -> None:
    shop.run_on_both(
        "INSERT INTO {t} SELECT i / 10, 'b' || i % 10, i FROM generate_series(0, 299) i"
    )
    shop.run_on_both("UPDATE {t} SET v = v + 1000 WHERE a % 7 = 3")
    shop.run_on_both("DELETE FROM {t} WHERE v % 5 = 2")


def test_rows_of_a_hashed_table_lie_in_the_slot_of_their_partition(shop: Shop) -> None:
    fill(shop)
    rows = shop.list_rows("spread")
    assert {row[0] for row in rows} == {keyspace.SPREAD_ROWS}
    assert {row[1] for row in rows} == {0, 256 // 3, 2 * 256 // 3}
    assert {row[0] for row in shop.list_rows("plain")} == {keyspace.ROWS}
    sizes = [sum(row[1] == slot for row in rows) for slot in {row[1] for row in rows}]
    assert min(sizes) > len(rows) / PARTITIONS / 2


def test_the_partition_is_that_of_local_views(shop: Shop) -> None:
    table = shop.db.get_compiled_table("spread").table
    key = shop.db.get_compiled_table("spread").key
    number_of = PartitionFunction(key.columns, shop.prefix_of("spread"), PARTITIONS)
    for a in range(50):
        row = placement.row_of(shop.db.catalog, key.encode((a, "b")))
        assert row[1] == number_of(a, "b") * 256 // PARTITIONS
    assert table.hashed


def pairs_of(reader: Reader, prefix: bytes, start: bytes, end: bytes, **more: Any) -> list[Any]:
    """Keys without their relation, and values."""
    batches = reader.scan(prefix + start, prefix + end, **more)
    return [(key[5:], value) for batch in batches for key, value in batch]


def test_scans_of_both_tables_give_the_same_in_the_same_order(shop: Shop, seed: int) -> None:
    fill(shop)
    chance = random.Random(seed)
    keys = [row[placement.SLOT_BYTES + 4 :] for row in shop.list_rows("spread")] + [
        b"\x00",
        b"\xff",
    ]
    with shop.db.begin() as reader:
        for _ in range(150):
            start, end = sorted((chance.choice(keys), chance.choice(keys)))
            more = {
                "reverse": chance.random() < 0.5,
                "limit": chance.choice([None, 1, 2, 7, 60, 400]),
                "batch_rows": chance.choice([1, 3, 50, 1000]),
            }
            found = [
                pairs_of(reader, shop.prefix_of(table), start, end, **more)
                for table in ("plain", "spread")
            ]
            assert found[0] == found[1]
        assert found[0] is not None


def test_single_rows_and_older_snapshots_are_found(shop: Shop) -> None:
    fill(shop)
    with shop.db.begin() as before:
        shop.run_on_both("DELETE FROM {t} WHERE a > 3")
        shop.run_on_both("UPDATE {t} SET v = -v")
        for reader in (before, shop.db.begin()):
            rows = pairs_of(reader, shop.prefix_of("plain"), b"\x00", b"\xff")
            keys = [shop.prefix_of("spread") + key for key, _ in rows]
            assert [reader.get(key) for key in keys] == [value for _, value in rows]
            assert reader.multi_get(keys) == [value for _, value in rows]
    assert shop.run("SELECT * FROM spread WHERE a = 1 AND b = 'b3'") == [(1, "b3", -13)]
    query = "SELECT a, b, v FROM {} ORDER BY a DESC, b DESC LIMIT 7"
    assert shop.run(query.format("spread")) == shop.run(query.format("plain"))


def test_columns_come_in_the_order_of_keys_packed_or_not(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(shop)
    scan = MemoryCells.scan

    def columns(table: str) -> list[dict[str, Any]]:
        with shop.db.begin() as transaction:
            request = ScanRequest(shop.db.get_compiled_table(table).table.id, (0, 1, 2))
            narrowed = narrow_scans(transaction, request)
            assert narrowed is not None
            start, end = keyspace.relation_range(request.relation)
            return [row for batch in narrowed.scan_columns(start, end) for row in batch.to_pylist()]

    expected = columns("plain")
    assert len(expected) == 240
    assert columns("spread") == expected
    monkeypatch.setattr(MemoryCells, "scan", lambda self, wanted: pack_rows(scan(self, wanted)))
    assert columns("spread") == expected


class SpreadKeys:
    """Numbered rows in slots, and pages of them as a reader gets them."""

    def __init__(self, chance: random.Random, packed: bool) -> None:
        self.packed = packed
        self.held = [list[tuple[bytes, Cells]]() for _ in range(chance.randint(2, 5))]
        self.rows = list[tuple[bytes, Cells]]()
        for number in sorted(chance.sample(range(1000), chance.randint(0, 200))):
            # Some neighbours are in one slot, so that slots are used up at different keys.
            slot = (number // 40 if number < 700 else chance.randrange(100)) % len(self.held)
            cells = (Cell(b"v", 1, b"%d" % number),)
            key = number.to_bytes(4)
            self.held[slot].append((bytes((keyspace.SPREAD_ROWS, slot)) + key, cells))
            self.rows.append((b"\x10" + key, cells))

    def fetch(self, start: bytes, end: bytes, rows: int, reverse: bool) -> placement.Page:
        asked = placement.choose_page(rows, len(self.held))
        pages = []
        for slot in self.held:
            inside = [pair for pair in slot if start[1:] <= pair[0][2:] < end[1:]]
            page = (inside[::-1] if reverse else inside)[:asked]
            pages.append(pack_rows(page) if self.packed and page else page)
        return placement.merge_pages(pages, asked, rows, reverse=reverse)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_merged_pages_have_every_row_once(seed: int, packed: bool, reverse: bool) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        spread = SpreadKeys(chance, packed)
        size = chance.choice([1, 2, 10, 40, 300])
        fetched = fetch_pages(spread.fetch, b"\x10", b"\x10\xff", size, reverse=reverse)
        pages = [list(page) for page, _ in fetched]
        assert max(map(len, pages)) <= size
        assert [pair for page in pages for pair in page] == spread.rows[:: -1 if reverse else 1]


def test_more_partitions_than_slots_share_them() -> None:
    slots = tuple(partition * placement.SLOTS // 1000 for partition in range(1000))
    spread = placement.Spread(slots)
    ranges = spread.list_ranges(b"\x10\x00\x00\x00\x77", b"\x10\x00\x00\x00\x78")
    assert len(ranges) == placement.SLOTS == len({start[1] for start, _ in ranges})


def test_a_row_that_was_changed_since_the_first_snapshot_is_written_at_once(shop: Shop) -> None:
    fill(shop)
    shop.run("BEGIN ISOLATION LEVEL READ COMMITTED")
    shop.run("SELECT count(*) FROM spread")
    Session(shop.shared).execute("UPDATE spread SET v = 5 WHERE a = 1 AND b = 'b1'")
    shop.run("UPDATE spread SET v = v + 1 WHERE a = 1 AND b = 'b1'")
    shop.run("COMMIT")
    assert shop.run("SELECT v FROM spread WHERE a = 1 AND b = 'b1'") == [(6,)]


def test_a_dropped_hashed_table_leaves_nothing_in_its_slots(shop: Shop) -> None:
    fill(shop)
    relation = int.from_bytes(shop.prefix_of("spread")[1:])
    shop.run("DROP TABLE spread")
    shop.run("INSERT INTO plain VALUES (1000, 'x', 1)")
    shop.run("INSERT INTO plain VALUES (1001, 'x', 1)")
    shop.db.trim(shop.db.position)
    spread = CellScan(bytes((keyspace.SPREAD_ROWS,)), None)
    left = [row for row, _ in shop.store.scan(spread) if row[0] == keyspace.SPREAD_ROWS]
    assert [row for row in left if placement.relation_of(row) == relation] == []


def test_a_vacuum_reaches_the_slots(shop: Shop) -> None:
    fill(shop)
    before = len(shop.list_rows("spread"))
    shop.run_on_both("DELETE FROM {t}")
    shop.run("INSERT INTO plain VALUES (1000, 'x', 1)")
    shop.db.trim(shop.db.position)
    assert before > 200
    assert shop.list_rows("spread") == []


def test_a_bulk_load_holds_a_hashed_table(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_commit, "BULK_CHANGES_MIN", 20)
    fill(shop)
    row = placement.row_of(shop.db.catalog, shop.prefix_of("spread") + b"\x01")
    relation = shop.db.get_compiled_table("spread").table.id
    assert placement.relation_of(row) == relation
    query = "SELECT a, b, v FROM {} ORDER BY a, b"
    assert shop.run(query.format("spread")) == shop.run(query.format("plain"))
