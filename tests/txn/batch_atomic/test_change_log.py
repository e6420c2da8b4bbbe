"""The change log: reading, waiting, consumers, pins, trimming."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from belvedere.catalog.model import Table
from belvedere.database import Database
from belvedere.errors import InvalidInput, Unavailable
from belvedere.kv.batch import BatchStore
from belvedere.txn.batch_atomic.change_log import BatchChangeLog
from tests.txn.conftest import open_engine
from tests.txn.shop import create_shop, delete, insert, key_space, put, scan, table, update


def fill(database: Database, count: int) -> None:
    for number in range(count):
        put(database, "product", (database.position * 1000 + number, "x"))


def positions(database: Database, after: int, through: int | None = None) -> list[int]:
    return [record.position for record in database.log.read(after, through)]


# -- reading ----------------------------------------------------------------------------------


def test_records_are_dense_and_hold_old_and_new_rows(shop: Database) -> None:
    start = shop.position
    put(shop, "product", (1, "a"), (2, "b"))

    def change(txn: object) -> None:
        update(txn, "product", (1, "c"))  # type: ignore[arg-type]
        delete(txn, "product", 2)  # type: ignore[arg-type]

    shop.run_transaction(change)
    first, second = shop.log.read(start)
    into = table(shop, "product")
    assert [first.position, second.position] == [start + 1, start + 2]
    assert second.previous_hash == first.hash
    changes = [
        (
            change.relation,
            change.old and into.decode(change.old),
            change.new and into.decode(change.new),
        )
        for record in (first, second)
        for change in record.changes()
    ]
    id_ = into.table.id
    assert changes == [
        (id_, None, (1, "a")),
        (id_, None, (2, "b")),
        (id_, (1, "a"), (1, "c")),
        (id_, (2, "b"), None),
    ]


def test_a_range_of_positions_is_read_as_records_and_as_arrow(shop: Database) -> None:
    start = shop.position
    fill(shop, 5)
    assert positions(shop, start) == list(range(start + 1, start + 6))
    assert positions(shop, start + 1, start + 3) == [start + 2, start + 3]
    assert positions(shop, start + 5) == []
    assert positions(shop, start, start + 99) == list(range(start + 1, start + 6))
    batches = list(shop.log.read_arrow(start, batch_rows=2))
    found = [position for batch in batches for position in batch.column("position").to_pylist()]
    assert found == list(range(start + 1, start + 6))


def test_a_tail_waits_for_what_comes_and_ends_when_nothing_does(shop: Database) -> None:
    start = shop.position
    fill(shop, 1)
    waited = threading.Event()
    seen: list[int] = []

    def follow() -> None:
        for record in shop.log.tail(start, timeout_s=20):
            seen.append(record.position)
            waited.set()
            if len(seen) == 4:
                return

    thread = threading.Thread(target=follow)
    thread.start()
    assert waited.wait(20)
    fill(shop, 3)
    thread.join(20)
    assert seen == [start + 1, start + 2, start + 3, start + 4]
    assert list(shop.log.tail(shop.position, timeout_s=0)) == []


# -- trimming ---------------------------------------------------------------------------------


def test_trimming_forgets_up_to_a_position_and_never_the_newest(shop: Database) -> None:
    fill(shop, 6)
    last = shop.position
    assert shop.log.first_position == 1
    assert shop.log.trim(3) == 3
    assert (shop.log.first_position, shop.log.last_position) == (4, last)
    assert shop.log.trim(2) == 3, "never back"
    assert positions(shop, 3) == list(range(4, last + 1))
    with pytest.raises(InvalidInput) as gone:
        list(shop.log.read(2))
    assert gone.value.facts == {"position_wanted": 3, "first": 4}
    assert shop.log.trim(last + 100) == last - 1
    assert positions(shop, last - 1) == [last]
    fill(shop, 1)
    assert shop.position == last + 1


def test_the_newest_position_survives_trimming_and_reopening(tmp_path: Path) -> None:
    with open_engine("rocksdb-full", tmp_path) as database:
        create_shop(database)
        fill(database, 3)
        last = database.position
        database.trim(last)
    with open_engine("rocksdb-full", tmp_path) as database:
        assert database.position == last
        fill(database, 1)
        assert database.position == last + 1


def test_a_read_that_trimming_overtakes_says_so(memory_shop: Database) -> None:
    """Between the check and the first record: nothing may be missing silently."""
    fill(memory_shop, 5)
    log = BatchChangeLog(_TrimmedOnScan(memory_shop), memory_shop.visibility, 100)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no longer in the log"):
        list(log.read(0))


class _TrimmedOnScan:
    """The store, but somebody trims the log just before the records are scanned."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._store: BatchStore = database.store
        self.scan = self._store.scan

    def scan_values(self, start: bytes, end: bytes, *, batch_rows: int) -> Iterator[list[bytes]]:
        self._database.log.trim(3)
        return self._store.scan_values(start, end, batch_rows=batch_rows)


def test_trimming_waits_for_the_slowest_consumer(shop: Database) -> None:
    fill(shop, 8)
    shop.log.advance_consumer("slow", 2)
    shop.log.advance_consumer("fast", 6)
    assert shop.log.trim(7) == 2
    shop.log.advance_consumer("slow", 5)
    assert shop.log.trim(7) == 5
    with pytest.raises(InvalidInput, match="cannot go back"):
        shop.log.advance_consumer("slow", 4)
    shop.log.remove_consumer("slow")
    assert shop.log.trim(7) == 6
    assert shop.log.lost_consumers == set()


def test_a_consumer_is_remembered_when_it_is_told_so(tmp_path: Path) -> None:
    with Database.open(tmp_path / "store") as database:
        database.log.advance_consumer("reader", 0)
        shutil.copytree(tmp_path / "store", tmp_path / "as a kill leaves it")
        database.log.remove_consumer("reader")
        shutil.copytree(tmp_path / "store", tmp_path / "forgotten")
    with Database.open(tmp_path / "as a kill leaves it") as database:
        assert database.log.consumers == {"reader": 0}
    with Database.open(tmp_path / "forgotten") as database:
        assert database.log.consumers == {}


def test_consumers_are_remembered(tmp_path: Path) -> None:
    with open_engine("rocksdb", tmp_path) as database:
        create_shop(database)
        fill(database, 5)
        database.log.advance_consumer("view", 3)
        database.log.advance_consumer("gone", 1)
        database.log.remove_consumer("gone")
    with open_engine("rocksdb", tmp_path) as database:
        assert database.log.consumers == {"view": 3}
        assert database.log.trim(5) == 3


def test_a_consumer_beyond_the_retention_cap_is_cut_off(tmp_path: Path) -> None:
    with open_engine("rocksdb", tmp_path, log_retention_records_max=4) as database:
        create_shop(database)
        fill(database, 10)
        last = database.position
        database.log.advance_consumer("slow", 1)
        database.log.advance_consumer("close", last - 4)
        assert database.log.trim(1) == 1
        assert database.log.lost_consumers == set(), "nothing it needs was asked for"
        assert database.log.trim(3) == 3, "no further than asked for"
        assert database.log.lost_consumers == {"slow"}
        assert database.log.trim(last) == last - 4
        assert database.log.lost_consumers == {"slow"}
    with open_engine("rocksdb", tmp_path, log_retention_records_max=4) as database:
        assert database.log.lost_consumers == {"slow"}, "also after a restart"
        database.log.remove_consumer("slow")
        assert database.log.lost_consumers == set()
    with open_engine("rocksdb", tmp_path, log_retention_records_max=4) as database:
        assert database.log.lost_consumers == set()


def test_a_pin_keeps_the_log_while_it_is_held(shop: Database) -> None:
    fill(shop, 6)
    pin = shop.log.pin(2)
    assert shop.log.trim(5) == 2
    second = shop.log.pin(4)
    shop.log.unpin(pin)
    assert shop.log.trim(5) == 4
    shop.log.unpin(second)
    with pytest.raises(InvalidInput):
        shop.log.pin(2)


# -- the past ---------------------------------------------------------------------------------


def test_the_past_reaches_back_as_far_as_the_log(shop: Database) -> None:
    put(shop, "product", (1, "a"))
    first = shop.position
    shop.run_transaction(lambda txn: update(txn, "product", (1, "b")))
    put(shop, "product", (2, "c"))
    with shop.open_past_reader(first) as past:
        shop.run_transaction(lambda txn: delete(txn, "product", 1))
        assert past.position == first
        assert scan(past, "product") == [(1, "a")]
        assert scan(past, "product", reverse=True, limit=1) == [(1, "a")]
        assert shop.log.trim(shop.position) == first, "a reader of the past holds the log"
    with shop.open_past_reader(shop.position) as newest:
        assert scan(newest, "product") == [(2, "c")]
    with (
        pytest.raises(InvalidInput, match="no longer in the log"),
        shop.open_past_reader(first - 1),
    ):
        pass
    assert shop.visibility.open_count == 0


def test_the_past_has_the_tables_of_its_time(shop: Database) -> None:
    put(shop, "staff", (1, None))
    before = shop.position
    id_ = table(shop, "staff").table.id
    shop.change_schema(lambda edit: edit.drop_table(id_))
    with shop.open_past_reader(before) as past:
        assert scan(past, "staff") == [(1, None)]
    with shop.open_past_reader(0) as nothing:
        assert nothing.catalog.tables == ()
    with shop.open_past_reader(before + 1) as gone:
        assert gone.catalog.find_relation("staff") is None


def test_indexes_have_no_past(shop: Database) -> None:
    put(shop, "customer", (1, "a", "b"))
    index = shop.catalog.find_relation("customer_city_idx")
    assert index is not None
    start = b"\x10" + index.id.to_bytes(4)
    uses: list[Callable[[Database], object]] = [
        lambda past: past.get(start),
        lambda past: past.scan(start, start + b"\xff"),
        lambda past: past.scan_values(start, start + b"\xff"),
        lambda past: past.multi_get([start]),
    ]
    with shop.open_past_reader(shop.position) as past:
        for use in uses:
            with pytest.raises(Exception, match="index or view as of a past position"):
                use(past)  # type: ignore[arg-type]


# -- what was dropped -------------------------------------------------------------------------


def rows_of(database: Database, id_: int) -> int:
    return sum(int.from_bytes(key[1:5]) == id_ for key in key_space(database))


def test_rows_of_a_dropped_table_go_when_the_log_has_forgotten_it(shop: Database) -> None:
    put(shop, "staff", (1, None), (2, 1))
    staff = table(shop, "staff")
    ids = [staff.table.id, *(index.id for index in shop.catalog.table_indexes(staff.table.id))]
    before = shop.position
    shop.change_schema(lambda edit: edit.drop_table(staff.table.id))
    fill(shop, 3)
    assert rows_of(shop, ids[0]) == 2
    shop.trim(before)
    with shop.open_past_reader(before) as past:
        assert scan(past, "staff") == [(1, None), (2, 1)], "the log still reaches before the drop"
    shop.trim(before + 1)
    assert [rows_of(shop, id_) for id_ in ids] == [0, 0]
    assert all(shop.catalog.get(id_) is None for id_ in ids)


def test_rows_of_a_dropped_table_stay_while_a_snapshot_has_it(shop: Database) -> None:
    put(shop, "staff", (1, None))
    id_ = table(shop, "staff").table.id
    with shop.begin() as reader:
        shop.change_schema(lambda edit: edit.drop_table(id_))
        fill(shop, 3)
        shop.trim(shop.position)
        assert scan(reader, "staff") == [(1, None)]
        assert isinstance(shop.catalog.get(id_), Table)
    shop.trim(shop.position)
    assert shop.catalog.get(id_) is None
    assert rows_of(shop, id_) == 0


# -- outcomes ---------------------------------------------------------------------------------


def test_the_outcome_of_every_transaction_can_be_asked_for(shop: Database) -> None:
    txn = shop.begin()
    insert(txn, "product", (1, "x"))
    committed = txn.commit()
    lost = shop.begin()
    insert(lost, "product", (2, "x"))
    lost.rollback()
    assert shop.outcome(txn.id) == committed.position
    assert shop.outcome(lost.id) is None
    with pytest.raises(InvalidInput):
        shop.outcome(b"short")


def test_outcomes_survive_a_restart_until_the_log_is_trimmed(tmp_path: Path) -> None:
    with open_engine("rocksdb-full", tmp_path) as database:
        create_shop(database)
        txn = database.begin()
        insert(txn, "product", (1, "x"))
        position = txn.commit().position
        never = database.begin()
        never_id = never.id
        never.rollback()
        fill(database, 3)
    with open_engine("rocksdb-full", tmp_path) as database:
        assert database.outcome(txn.id) == position
        assert database.outcome(never_id) is None
        database.trim(position)
        with pytest.raises(Unavailable) as unknown:
            database.outcome(txn.id)
        assert unknown.value.sqlstate == "08007"


def test_old_outcomes_are_found_in_the_log_when_memory_forgot_them(tmp_path: Path) -> None:
    with open_engine("memory", tmp_path, outcomes_kept=2) as database:
        create_shop(database)
        ids = {}
        for number in range(6):
            txn = database.begin()
            insert(txn, "product", (number, "x"))
            ids[txn.id] = txn.commit().position
        assert {id_: database.outcome(id_) for id_ in ids} == ids
