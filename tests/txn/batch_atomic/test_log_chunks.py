"""Log records that are larger than a value may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from belvedere.catalog.catalog import empty_catalog
from belvedere.codec import keyspace
from belvedere.config import Config, Durability
from belvedere.database import Database, restore_backup
from belvedere.errors import Corruption, InvalidInput
from belvedere.kv.batch import BatchStore
from belvedere.kv.memory import MemoryStore
from belvedere.txn.batch_atomic import log_chunks
from belvedere.txn.batch_atomic.replay import replay_records
from tests.txn.shop import create_shop, put, scan

SMALL = 300


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_chunks, "CHUNK_BYTES", SMALL)


def put_products(db: Database, first: int, count: int) -> None:
    """All of them in one transaction."""
    put(db, "product", *[(n, f"name {n}") for n in range(first, first + count)])


def piece_count(store: BatchStore) -> int:
    everything = keyspace.piece_range(0, keyspace.POSITION_MAX - 1)
    return sum(len(found) for found in store.scan(*everything))


def test_a_large_record_is_one_position_and_reads_whole() -> None:
    with Database.open(":memory:") as db:
        create_shop(db)
        before = db.position
        put_products(db, 0, 100)
        assert db.position == before + 1
        assert piece_count(db.store) > 5
        (record,) = db.log.read(before)
        assert record.change_count == 100
        assert len(list(record.changes())) == 100
        (found,) = db.log.read_arrow(before)
        assert found.num_rows == 100
        with db.open_past_reader(before) as past:
            assert scan(past, "product") == []


def test_a_reopened_store_has_it_whole(tmp_path: Path) -> None:
    with Database.open(tmp_path / "db", Config(durability=Durability.FULL)) as db:
        create_shop(db)
        put_products(db, 0, 100)
        position = db.position
    with Database.open(tmp_path / "db") as db:
        assert db.position == position
        assert [record.position for record in db.log.read(position - 1)] == [position]
        put_products(db, 100, 1)


def test_a_restore_replays_it(tmp_path: Path) -> None:
    with Database.open(tmp_path / "db") as db:
        create_shop(db)
        put_products(db, 0, 100)
        reached = db.position
        put_products(db, 100, 100)
        db.back_up(tmp_path / "backup")
    restore_backup(tmp_path / "backup", tmp_path / "restored", reached)
    with Database.open(tmp_path / "restored") as db:
        with db.open_newest_reader() as reader:
            assert len(scan(reader, "product")) == 100
        assert {record.position for record in db.log.read(reached - 1)} == {reached}


def test_replayed_records_lie_in_pieces_again() -> None:
    with Database.open(":memory:") as db:
        create_shop(db)
        put_products(db, 0, 100)
        records = [data for chunk in db.log.read_bytes(0) for data in chunk]
        copy = MemoryStore()
        replay_records(records, copy, empty_catalog(), db.participants_for)
        assert piece_count(copy) == piece_count(db.store) > 5
        last = copy.get(keyspace.log_key(db.position))
        assert last is not None
        assert log_chunks.assemble_record(copy, last) == records[-1]


def test_trimming_forgets_the_pieces_too() -> None:
    with Database.open(":memory:") as db:
        create_shop(db)
        put_products(db, 0, 100)
        trimmed = db.position
        put_products(db, 100, 1)
        left = piece_count(db.store)
        assert db.trim(trimmed) == trimmed
        assert left
        assert piece_count(db.store) == 0


def test_a_lost_piece_is_noticed() -> None:
    with Database.open(":memory:") as db:
        create_shop(db)
        put_products(db, 0, 100)
        db.store.write([(keyspace.piece_key(db.position, 2), None)])
        with pytest.raises(Corruption):
            list(db.log.read(db.position - 1))


def test_a_record_trimmed_while_it_is_read_is_no_damage() -> None:
    store = MemoryStore()
    record = bytes(8) + (1000).to_bytes(4, "little") + (7).to_bytes(8, "little") + bytes(980)
    store.write(log_chunks.split_record(7, record))
    first = store.get(keyspace.log_key(7))
    assert first is not None
    assert log_chunks.assemble_record(store, first) == record
    log_chunks.delete_log_range(store, 0, 7)
    with pytest.raises(InvalidInput) as caught:
        log_chunks.assemble_record(store, first)
    assert caught.value.sqlstate == "22023"
