"""The log rebuilds everything: forward from nothing, backward from the newest, and as of any
position."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from belvedere import failpoints
from belvedere.catalog.catalog import empty_catalog
from belvedere.catalog.definitions import IndexDefinition, KeyPartDefinition
from belvedere.codec import keyspace
from belvedere.codec.record import decode_record
from belvedere.config import Config
from belvedere.database import Database, restore_backup
from belvedere.errors import Corruption, InvalidInput
from belvedere.kv.memory import MemoryStore
from belvedere.kv.rocksdb import RocksStore
from belvedere.txn.batch_atomic.recovery import find_newest_state, open_memory
from belvedere.txn.batch_atomic.replay import replay_records, rewind
from tests.txn.conftest import open_engine
from tests.txn.histories import History, rows_by_table, scripts
from tests.txn.shop import (
    create_shop,
    delete,
    entries,
    key_space,
    pairs,
    put,
    scan,
    table,
    update,
)

SLOW = settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])


def told(script: list[Any]) -> tuple[History, MemoryStore]:
    """A script run on a new store in memory; the store is handed out too."""
    store = MemoryStore()
    database = Database(open_memory(store, bytes), Config())
    create_shop(database)
    history = History(database)
    history.run(script)
    return history, store


def whole(store: MemoryStore) -> dict[bytes, bytes]:
    return dict(pairs(store.scan(b"", None)))


# -- every position ---------------------------------------------------------------------------


@SLOW
@given(scripts)
def test_as_of_every_position_is_what_was_recorded_there(script: list[Any]) -> None:
    history, _ = told(script)
    for position, state in history.states.items():
        with history.database.open_past_reader(position) as past:
            assert past.position == position
            assert past.catalog.version == state.version
            assert rows_by_table(past) == state.rows


@SLOW
@given(scripts, st.integers(1, 6))
def test_replaying_the_log_gives_the_same_bytes(script: list[Any], cut: int) -> None:
    history, store = told(script)
    copy = MemoryStore()
    participants = history.database.participants_for
    end = len(history.records) * cut // 6
    replay_records(iter(history.records[:end]), copy, empty_catalog(), participants)
    replay_records(iter(history.records[end:]), copy, find_newest_state(copy).catalog, participants)
    assert _live(whole(copy), copy) == _live(whole(store), store)


@SLOW
@given(scripts, st.randoms(use_true_random=False))
def test_rewinding_to_any_position_gives_the_state_of_then(script: list[Any], random: Any) -> None:
    history, store = told(script)
    position = random.choice(sorted(history.states))
    copy = MemoryStore(whole(store).items())
    records = [decode_record(data) for data in history.records[position:]]
    catalog = history.database.catalog
    rewind(copy, records, position, catalog, history.database.participants_for)
    state = history.states[position]
    end = find_newest_state(copy)
    assert (end.position, end.catalog.version) == (position, state.version)
    then = MemoryStore(state.space.items())
    rows = {key: value for key, value in whole(copy).items() if key[0] == 0x10}
    assert _live(rows, copy) == _live(state.space, then)
    _go_on(Database(open_memory(copy, bytes), Config()))


def _live(space: dict[bytes, bytes], store: MemoryStore) -> dict[bytes, bytes]:
    """Without the rows of dropped objects, which are nobody's: they only wait to be removed."""
    catalog = find_newest_state(store).catalog
    dropped = {
        id_ for id_, item in catalog.objects.items() if getattr(item, "state", "") == "dropped"
    }
    return {
        key: value
        for key, value in space.items()
        if key[0] != 0x10 or int.from_bytes(key[1:5]) not in dropped
    }


def _go_on(database: Database) -> None:
    """A database that was rebuilt takes new history, and stays replayable."""
    history = History(database)
    history.run([[("insert", "product", 9, 9, "z")], ("create extra",)])
    assert [row[0] for row in history.states[database.position].rows.get("product", [])][-1:] in (
        [9],
        [],
    )


# -- by example -------------------------------------------------------------------------------


def test_a_unique_index_that_is_gone_does_not_hinder_a_rewind() -> None:
    """Values change hands after the index is dropped; its entries are stale, then made anew."""
    store = MemoryStore()
    database = Database(open_memory(store, bytes), Config())
    create_shop(database)
    wanted = IndexDefinition("product", (KeyPartDefinition("name"),), name="u", unique=True)
    database.change_schema(lambda edit: edit.create_index(wanted))
    put(database, "product", (1, "m"), (2, "k"))
    position = database.position
    database.run_transaction(
        lambda txn: [update(txn, "product", (id_, v)) for id_, v in ((2, "n"), (1, "k"))]
    )
    index = database.catalog.find_relation("u")
    assert index is not None
    database.change_schema(lambda edit: edit.drop_index(index.id))
    database.run_transaction(lambda txn: update(txn, "product", (1, "l")))
    records = list(database.log.read(position))
    rewind(store, records, position, database.catalog, database.participants_for)
    again = Database(open_memory(store, bytes), Config())
    with again.begin() as reader:
        assert entries(reader, "u") == [("k", 2), ("m", 1)]


def test_what_was_forgotten_for_good_is_forgotten_by_a_replay_too() -> None:
    store = MemoryStore()
    database = Database(open_memory(store, bytes), Config())
    create_shop(database)
    put(database, "staff", (1, None), (2, 1))
    records = [data for batch in database.log.read_bytes(0) for data in batch]
    database.change_schema(lambda edit: edit.drop_table(table(database, "staff").table.id))
    put(database, "product", (1, "x"))
    put(database, "product", (2, "x"))
    records += [data for batch in database.log.read_bytes(len(records)) for data in batch]
    database.trim(database.position)
    records += [data for batch in database.log.read_bytes(len(records)) for data in batch]
    copy = MemoryStore()
    replay_records(iter(records), copy, empty_catalog(), database.participants_for)
    rows = {key: value for key, value in whole(copy).items() if key[0] == 0x10}
    assert rows == key_space(database)


def test_a_hole_in_the_log_is_noticed(memory_shop: Database) -> None:
    put(memory_shop, "product", (1, "x"))
    put(memory_shop, "product", (2, "x"))
    records = [data for batch in memory_shop.log.read_bytes(0) for data in batch]
    with pytest.raises(Corruption, match="hole"):
        replay_records(
            [records[0], records[2]], MemoryStore(), empty_catalog(), memory_shop.participants_for
        )


# -- backup and restore -----------------------------------------------------------------------


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(scripts, st.randoms(use_true_random=False))
def test_a_restore_to_any_position_is_the_state_of_then(
    tmp_path_factory: pytest.TempPathFactory, script: list[Any], random: Any
) -> None:
    directory = tmp_path_factory.mktemp("backup")
    with open_engine("rocksdb", directory) as database:
        create_shop(database)
        history = History(database)
        history.run(script)
        assert database.back_up(directory / "backup") == database.position
        put_after = database.position
    for number in range(2):
        position = random.choice(sorted(history.states)) if number else None
        target = directory / f"restored{number}"
        expected = position or put_after
        assert restore_backup(directory / "backup", target / "store", position) == expected
        with open_engine("rocksdb", target) as restored, restored.begin() as reader:
            assert restored.position == expected
            assert rows_by_table(reader) == history.states[expected].rows


def test_a_backup_is_taken_while_the_store_is_in_use(
    directory_shop: Database, tmp_path: Path
) -> None:
    put(directory_shop, "product", (1, "x"))
    with directory_shop.begin() as reader:
        position = directory_shop.back_up(tmp_path / "backup")
        put(directory_shop, "product", (2, "later"))
        assert scan(reader, "product") == [(1, "x")]
    restore_backup(tmp_path / "backup", tmp_path / "r" / "store")
    with open_engine("rocksdb-full", tmp_path / "r") as restored, restored.begin() as reader:
        assert restored.position == position
        assert restored.incarnation > directory_shop.incarnation
        assert scan(reader, "product") == [(1, "x")]
        restored.run_transaction(lambda txn: delete(txn, "product", 1))


def test_what_is_no_backup_or_not_reached_is_refused(
    directory_shop: Database, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="not a backup"):
        restore_backup(tmp_path / "store", tmp_path / "r")
    put(directory_shop, "product", (1, "x"))
    put(directory_shop, "product", (2, "x"))
    last = directory_shop.position
    directory_shop.trim(last - 2)
    directory_shop.back_up(tmp_path / "backup")
    with pytest.raises(InvalidInput, match="destination exists"):
        directory_shop.back_up(tmp_path / "backup")
    with pytest.raises(InvalidInput, match="a backup cannot be opened"):
        Database.open(tmp_path / "backup")
    for wanted in (last + 1, last - 2, -1):
        with pytest.raises(InvalidInput, match=f"first={last - 1}, last={last}"):
            restore_backup(tmp_path / "backup", tmp_path / "r", wanted)
        assert not (tmp_path / "r").exists()
    assert restore_backup(tmp_path / "backup", tmp_path / "r", last - 1) == last - 1


@pytest.mark.parametrize("lost", [0, 1])
def test_a_backup_that_lost_a_record_is_refused(
    directory_shop: Database, tmp_path: Path, lost: int
) -> None:
    for number in range(3):
        put(directory_shop, "product", (number, "x"))
    last = directory_shop.position
    directory_shop.back_up(tmp_path / "backup")
    store = RocksStore.open(tmp_path / "backup" / "data", create=False)
    store.write([(keyspace.log_key(last - lost), None)], sync=True)
    store.close()
    with pytest.raises(Corruption, match="the backup is damaged"):
        restore_backup(tmp_path / "backup", tmp_path / "r", last - 2)
    assert not (tmp_path / "r").exists()


def test_a_store_in_memory_cannot_be_backed_up(memory_shop: Database, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="in memory"):
        memory_shop.back_up(tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_a_backup_that_fails_leaves_nothing_in_the_way(
    directory_shop: Database, tmp_path: Path
) -> None:
    failpoints.arm("checkpoint.after", "raise")
    with pytest.raises(Exception, match="injected"):
        directory_shop.back_up(tmp_path / "backup")
    failpoints.disarm_all()
    directory_shop.back_up(tmp_path / "backup")
