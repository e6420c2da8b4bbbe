"""The batch-atomic commit: sums that commute, refusals, failures, derived batches, visibility."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from belvedere import failpoints
from belvedere.codec import accumulator
from belvedere.codec.keyspace import row_prefix
from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import Error, InvalidInput, Retry, Unavailable
from belvedere.kv.memory import MemoryStore
from belvedere.txn.batch_atomic.recovery import open_memory
from belvedere.txn.contracts import SERIALIZABLE, KeyRange, LockRequest, Reader, RowChange, Writer
from belvedere.txn.history.derived_rows import DerivedRows
from tests.txn.shop import create_shop, delete, get, insert, key_space, put, scan, table, update

SUMS = row_prefix(90)
GROUP = SUMS + b"group"
TOTAL = SUMS + b"total"


class CountByName:
    """A participant as a view would be one: products counted by name, and in all."""

    checks = True

    def __init__(self, relation: int) -> None:
        self._relation = relation
        self.seen: list[tuple[RowChange, ...]] = []

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        return ()

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """Nothing to check."""

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        self.seen.append(tuple(changes))
        for change in changes:
            if change.relation == self._relation:
                for value, weight in ((change.old, -1), (change.new, 1)):
                    if value is not None:
                        writer.add(SUMS + value[-1:], b"name", (weight,))
                        writer.add(TOTAL, b"", (weight, 10 * weight))


class Summed(Database):
    """A database with that participant."""

    def participants_for(self, catalog: Any, relations: frozenset[int]) -> tuple[Any, ...]:
        found = super().participants_for(catalog, relations)
        item = catalog.find_relation("product")
        return found if item is None else (*found, CountByName(item.id))


@pytest.fixture
def summed() -> Iterable[Database]:
    with Summed(open_memory(MemoryStore(), lambda n: bytes(n)), Config()) as database:
        create_shop(database)
        yield database


def amounts(reader: Reader, key: bytes) -> tuple[int, ...] | None:
    state = reader.get(key)
    return None if state is None else accumulator.decode(state)[1]


# -- sums -------------------------------------------------------------------------------------


def test_sums_of_transactions_at_one_snapshot_add_up(summed: Database) -> None:
    put(summed, "product", (0, "a"))
    open_at_once = [summed.begin() for _ in range(4)]
    for number, txn in enumerate(open_at_once, 1):
        insert(txn, "product", (number, "a"))
    for txn in reversed(open_at_once):
        txn.commit()
    with summed.begin() as reader:
        assert amounts(reader, TOTAL) == (5, 50)
        assert amounts(reader, SUMS + b"a") == (5,)


def test_a_sum_without_rows_is_gone_and_comes_back(summed: Database) -> None:
    put(summed, "product", (1, "a"), (2, "b"))
    summed.run_transaction(lambda txn: update(txn, "product", (1, "b")))
    with summed.begin() as reader:
        assert amounts(reader, SUMS + b"a") is None
        assert amounts(reader, SUMS + b"b") == (2,)
        summed.run_transaction(lambda txn: [delete(txn, "product", id_) for id_ in (1, 2)])
        assert amounts(reader, SUMS + b"b") == (2,), "the snapshot keeps its sums"
    with summed.begin() as reader:
        assert reader.get(TOTAL) is None
    put(summed, "product", (3, "a"))
    with summed.begin() as reader:
        assert amounts(reader, TOTAL) == (1, 10)


def test_a_writer_adds_to_what_it_wrote_itself() -> None:
    store = MemoryStore([(b"k", accumulator.encode(b"p", (1, 5)))])
    writer = DerivedRows(store)  # type: ignore[arg-type]
    writer.add(b"k", b"other", (2, 1))
    writer.add(b"k", b"", (-1, 0))
    writer.add(b"n", b"new", (1, 1))
    writer.add(b"n", b"", (-1, -1))
    writer.put(b"x", b"1")
    writer.delete(b"x")
    writer.delete(b"y")
    writer.put(b"y", b"2")
    assert dict(writer.writes()) == {
        b"k": accumulator.encode(b"p", (2, 6)),
        b"n": None,
        b"x": None,
        b"y": b"2",
    }


# -- refusals and failures --------------------------------------------------------------------


def test_a_refused_commit_takes_no_position_and_leaves_nothing(shop: Database) -> None:
    before, position = key_space(shop), shop.position
    with shop.begin() as reader:
        for _ in range(3):
            with pytest.raises(InvalidInput):
                shop.run_transaction(lambda txn: insert(txn, "orders", (1, 404, None)))
        assert scan(reader, "orders") == []
    assert (key_space(shop), shop.position) == (before, position)
    assert len(shop.visibility.undo) == 0
    put(shop, "product", (1, "x"))
    assert shop.position == position + 1


def test_a_value_too_large_is_refused_and_the_store_goes_on(memory_shop: Database) -> None:
    with memory_shop.begin() as reader:
        with pytest.raises(InvalidInput) as refused:
            put(memory_shop, "product", (1, "x" * (65 * 1024 * 1024)))
        assert refused.value.sqlstate == "54000"
        assert get(reader, "product", 1) is None
        put(memory_shop, "product", (1, "small"))
        assert get(reader, "product", 1) is None
    assert not memory_shop.commits.has_failed


def test_after_a_failed_write_reads_go_on_and_writes_do_not(shop: Database) -> None:
    put(shop, "product", (1, "x"))
    failpoints.arm("commit.before_write", "raise")
    with pytest.raises(Unavailable) as failed:
        put(shop, "product", (2, "y"))
    failpoints.disarm_all()
    assert failed.value.sqlstate == "58030"
    assert shop.commits.has_failed
    with pytest.raises(Unavailable) as refused:
        put(shop, "product", (3, "z"))
    assert refused.value.sqlstate == "25006"
    with shop.begin() as reader:
        assert scan(reader, "product") == [(1, "x")]
    assert shop.locks.list_locks() == []


def test_a_closed_database_says_so(shop: Database) -> None:
    txn = shop.begin()
    insert(txn, "product", (1, "x"))
    shop.close()
    shop.close()
    with pytest.raises(Unavailable):
        txn.commit()
    with pytest.raises(Unavailable) as closed:
        shop.begin()
    assert closed.value.sqlstate == "08003"


def test_a_busy_section_is_not_waited_for_beyond_its_deadline() -> None:
    with Database.open(":memory:", Config(section_wait_ms_max=1)) as database:
        create_shop(database)

        def inside(_: object) -> None:
            caught: list[Error] = []

            def try_commit() -> None:
                try:
                    put(database, "product", (1, "x"))
                except Unavailable as error:
                    caught.append(error)

            thread = threading.Thread(target=try_commit)
            thread.start()
            thread.join()
            assert [error.sqlstate for error in caught] == ["55P03"]

        database.commits.run_exclusively(inside)
        put(database, "product", (1, "x"))


def test_housekeeping_that_fails_does_not_undo_the_commit_it_came_after(
    memory_shop: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Retry out of a commit that happened would be answered by making it again."""
    kept_house: list[int] = []

    def housekeeping() -> None:
        kept_house.append(memory_shop.position)
        if len(kept_house) == 1:
            raise Retry("lost a race of its own")

    monkeypatch.setattr("belvedere.txn.batch_atomic.commit.HOUSEKEEPING_EVERY", 1)
    monkeypatch.setattr(memory_shop.commits, "_housekeeping", housekeeping)
    before = memory_shop.position
    put(memory_shop, "product", (1, "once"))
    assert memory_shop.position == before + 1
    assert isinstance(memory_shop.commits.housekeeping_failure, Retry)
    assert memory_shop.housekeeping_failure is memory_shop.commits.housekeeping_failure
    put(memory_shop, "product", (2, "twice"))
    assert memory_shop.commits.housekeeping_failure is None
    assert kept_house == [before + 1, before + 2]


# -- rows that are not logged -----------------------------------------------------------------


def test_a_derived_batch_moves_no_position_and_hides_from_older_snapshots(shop: Database) -> None:
    key, position = row_prefix(91) + b"k", shop.position
    with shop.begin() as before:
        shop.commits.derive(lambda reader: [(key, b"one")])
        assert before.get(key) is None
        with shop.begin() as between:
            assert between.get(key) == b"one"
            shop.commits.derive(lambda reader: [(key, reader.get(key) + b"!")])  # type: ignore[operator]
            assert between.get(key) == b"one"
    assert shop.position == position
    with shop.begin() as after:
        assert after.get(key) == b"one!"


def test_older_snapshots_see_what_a_derived_batch_clears(directory_shop: Database) -> None:
    shop = directory_shop
    start, end = row_prefix(91), row_prefix(92)
    rows = {start + key: b"one" for key in (b"a", b"b", b"c")}
    shop.commits.derive(lambda reader: list(rows.items()))

    def read_rows(txn: Any) -> dict[bytes, bytes]:
        return {key: value for batch in txn.scan(start, end) for key, value in batch}

    with shop.begin() as before:
        shop.commits.derive(
            lambda reader: [(start + b"b", b"two"), (start + b"d", b"two")],
            cleared=[KeyRange(start, end)],
        )
        assert read_rows(before) == rows
        assert [before.get(start + key) for key in (b"a", b"b", b"d")] == [b"one", b"one", None]
        with shop.begin() as after:
            assert read_rows(after) == {start + b"b": b"two", start + b"d": b"two"}
            shop.commits.derive(lambda reader: [], cleared=[KeyRange(start, end)])
            shop.commits.derive(lambda reader: [(end, b"x")], cleared=[KeyRange(start, end)])
            assert read_rows(after) == {start + b"b": b"two", start + b"d": b"two"}
        assert read_rows(before) == rows
    with shop.begin() as now:
        assert read_rows(now) == {}


def test_a_derived_row_that_was_read_must_not_change_when_serializable(shop: Database) -> None:
    key = row_prefix(91) + b"k"
    txn = shop.begin(SERIALIZABLE)
    assert txn.get(key) is None
    insert(txn, "product", (1, "x"))
    shop.commits.derive(lambda reader: [(key, b"moved")])
    with pytest.raises(Error, match="could not serialize"):
        txn.commit()


# -- what is durable before it is seen --------------------------------------------------------


@pytest.fixture
def durable(tmp_path: Path) -> Iterable[Database]:
    with Database.open(tmp_path / "s", Config(durability=Durability.FULL)) as database:
        create_shop(database)
        yield database


def during_sync(database: Database, look: Callable[[], None]) -> list[BaseException]:
    """Commit a row; run `look` after its batch is written and before it is synced."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            look()
        except BaseException as error:
            failures.append(error)
            raise

    failpoints.arm("sync.before", "call", at=1, call=run)
    put(database, "product", (1, "mine"))
    failpoints.disarm_all()
    return failures


def test_nobody_sees_what_is_not_durable(durable: Database) -> None:
    position = durable.position

    def look() -> None:
        assert durable.commits.newest_snapshot.position == position + 1
        assert durable.position == position
        with durable.begin() as reader:
            assert get(reader, "product", 1) is None
            assert scan(reader, "product") == []
        assert [record.position for record in durable.log.read(position)] == []
        durable.token_to_position(durable.position_to_token(durable.position))

    assert during_sync(durable, look) == []
    assert durable.position == position + 1


def test_a_row_that_is_written_but_not_durable_is_a_conflict_already(durable: Database) -> None:
    def look() -> None:
        late = durable.begin()
        into = table(late, "product")
        key = into.key.encode((1,))
        assert late.get(key) is None
        with pytest.raises(Error) as lost:
            late.write(key, None, into.encode((1, "late")))
        assert lost.value.lost_to == durable.position + 1  # type: ignore[attr-defined]
        late.rollback()

    assert during_sync(durable, look) == []


def test_an_outcome_that_is_not_durable_is_unknown(durable: Database) -> None:
    ids: list[bytes] = []

    def look() -> None:
        with pytest.raises(Unavailable) as unknown:
            durable.outcome(ids[0])
        assert unknown.value.sqlstate == "08007"

    txn = durable.begin()
    ids.append(txn.id)
    insert(txn, "product", (1, "x"))
    failpoints.arm("sync.before", "call", at=1, call=look)
    position = txn.commit().position
    failpoints.disarm_all()
    assert durable.outcome(txn.id) == position


def test_a_beginning_waits_for_a_position_and_gives_up_in_time(durable: Database) -> None:
    with pytest.raises(Unavailable) as late:
        durable.begin(at_least=durable.position + 1, wait_s=0)
    assert late.value.sqlstate == "57014"
    wanted = durable.position + 1
    seen: list[int] = []
    thread = threading.Thread(
        target=lambda: seen.append(durable.begin(at_least=wanted, wait_s=20).position)
    )
    thread.start()
    put(durable, "product", (1, "x"))
    thread.join(20)
    assert seen == [wanted]
