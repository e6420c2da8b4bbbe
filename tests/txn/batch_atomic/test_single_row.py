"""Swaps: one row replaced in one step loses nothing to those who write it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from belvedere import failpoints
from belvedere.catalog.definitions import ColumnDefinition, TableDefinition
from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import InvalidInput, Retry, Unavailable
from belvedere.txn.batch_atomic.single_row import BatchSingleRowCommits
from belvedere.txn.contracts import RowChange
from belvedere.txn.transaction import table_rows
from belvedere.types import BIGINT
from tests.txn.deadline import until

COUNTERS = TableDefinition(
    "counters", (ColumnDefinition("id", BIGINT), ColumnDefinition("n", BIGINT)), ("id",)
)


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.disarm_all()


@pytest.fixture(params=[Durability.FULL, Durability.OFF], name="counters")
def counters_(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    with Database.open(tmp_path / "store", Config(durability=request.param)) as database:
        database.change_schema(lambda edit: edit.create_table(COUNTERS))
        with database.begin() as transaction:
            for number in (1, 2):
                table_rows.insert_row(
                    transaction, database.get_compiled_table("counters"), (number, 0)
                )
        yield database


def swaps_of(database: Database) -> BatchSingleRowCommits:
    assert database.single_row_commits is not None
    return database.single_row_commits


def key_of(table: CompiledTable, number: int) -> bytes:
    return table.key.encode_first(number)


def add(database: Database, number: int, amount: int = 1) -> int | None:
    table = database.get_compiled_table("counters")

    def change(stored: bytes) -> bytes:
        id_, n = table.decode(stored)
        return table.encode((id_, n + amount))

    return swaps_of(database).replace_row(key_of(table, number), database.catalog, change)


def read(database: Database) -> list[tuple[int, int]]:
    table = database.get_compiled_table("counters")
    with database.open_newest_reader() as reader:
        return [table.decode(v) for b in reader.scan(table.start, table.end) for _, v in b]  # type: ignore[misc]


def test_a_swap_is_a_commit_like_any_other(counters: Database) -> None:
    before = counters.position
    assert add(counters, 1, 5) == before + 1
    assert read(counters) == [(1, 5), (2, 0)]
    (record,) = counters.log.read(before)
    (change,) = record.changes()
    table = counters.get_compiled_table("counters")
    assert table.decode(change.old or b"") == (1, 0)
    assert table.decode(change.new or b"") == (1, 5)
    assert counters.outcome(record.transaction) == before + 1
    assert not counters.locks.list_locks()


def test_nothing_is_done_without_a_row_or_with_another_catalog(counters: Database) -> None:
    before, old = counters.position, counters.catalog
    assert add(counters, 3) is None
    counters.change_schema(
        lambda edit: edit.create_table(TableDefinition("other", COUNTERS.columns, ("id",)))
    )
    table = counters.get_compiled_table("counters")
    assert swaps_of(counters).replace_row(key_of(table, 1), old, lambda stored: stored) is None
    assert counters.position == before + 1
    assert not counters.locks.list_locks()


def test_a_key_is_inserted_once(counters: Database) -> None:
    """Several threads want the same keys; each key has one winner, who is told so."""
    table, won = counters.get_compiled_table("counters"), []

    def insert(owner: int) -> None:
        for number in range(100, 130):
            row = table.encode((number, owner))
            single_row_commits = swaps_of(counters)
            if (
                single_row_commits.insert_row(key_of(table, number), counters.catalog, row)
                is not None
            ):
                won.append((number, owner))

    threads = [threading.Thread(target=insert, args=(owner,)) for owner in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read(counters)[2:] == sorted(won)
    assert [number for number, _ in sorted(won)] == list(range(100, 130))
    assert not counters.locks.list_locks()


def test_an_insert_of_a_key_that_is_taken_does_nothing(counters: Database) -> None:
    table, before = counters.get_compiled_table("counters"), counters.position
    taken = swaps_of(counters).insert_row(key_of(table, 1), counters.catalog, table.encode((1, 9)))
    assert (taken, counters.position, read(counters)[0]) == (None, before, (1, 0))


def test_a_change_that_fails_leaves_nothing(counters: Database) -> None:
    before, table = counters.position, counters.get_compiled_table("counters")

    def fail(stored: bytes) -> bytes:
        raise InvalidInput("division by zero", sqlstate="22012")

    with pytest.raises(InvalidInput):
        swaps_of(counters).replace_row(key_of(table, 1), counters.catalog, fail)
    assert counters.position == before
    assert not counters.locks.list_locks()


def test_one_that_was_overtaken_writes_only_when_its_row_was_not_touched(
    counters: Database,
) -> None:
    """Others write without its lock: what was read is compared in the section."""
    table = counters.get_compiled_table("counters")
    key, commits = key_of(table, 1), swaps_of(counters)._commits
    seen, old = commits.newest_snapshot, counters.store.get(key)
    change = RowChange(key, old, table.encode((1, 7)), seen.batch)
    add(counters, 2)
    assert commits.commit_single_row(b"a" * 16, seen, change) == counters.position
    before = counters.position
    assert commits.commit_single_row(b"b" * 16, seen, change) is None
    assert (read(counters), counters.position) == ([(1, 7), (2, 1)], before)


def test_counters_lose_nothing(counters: Database) -> None:
    """Beside transactions on the same row."""
    table = counters.get_compiled_table("counters")

    def swap() -> None:
        for _ in range(40):
            assert add(counters, 1) is not None

    def transact() -> None:
        for _ in range(20):

            def run(transaction: object) -> None:
                value = transaction.get(key_of(table, 1))  # type: ignore[attr-defined]
                old = table.decode(value)
                table_rows.update_row(transaction, table, old, (1, old[1] + 1), value)  # type: ignore[arg-type]

            counters.run_transaction(run)

    threads = [threading.Thread(target=action) for action in (swap, swap, swap, transact)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read(counters)[0] == (1, 140)


def test_a_swap_waits_for_whoever_holds_its_row(counters: Database) -> None:
    table = counters.get_compiled_table("counters")
    transaction = counters.begin()
    value = transaction.get(key_of(table, 1))
    table_rows.update_row(transaction, table, (1, 0), (1, 100), value)
    done: list[int | None] = []
    thread = threading.Thread(target=lambda: done.append(add(counters, 1)))
    thread.start()
    until(lambda: any(not lock.granted for lock in counters.locks.list_locks()))
    assert not done
    transaction.commit()  # never a conflict: it holds the row
    thread.join(60)
    assert done == [counters.position]
    assert read(counters)[0] == (1, 101)


def test_snapshots_from_before_do_not_see_it(counters: Database) -> None:
    table = counters.get_compiled_table("counters")
    with counters.open_newest_reader() as reader:
        add(counters, 1)
        assert table.decode(reader.get(key_of(table, 1)) or b"") == (1, 0)
    assert read(counters)[0] == (1, 1)


def test_a_transaction_that_read_the_row_before_loses(counters: Database) -> None:
    table = counters.get_compiled_table("counters")
    transaction = counters.begin()
    value = transaction.get(key_of(table, 1))
    add(counters, 1)
    with pytest.raises(Retry):
        table_rows.update_row(transaction, table, (1, 0), (1, 100), value)
    transaction.rollback()
    assert read(counters)[0] == (1, 1)


def test_nobody_sees_a_swap_before_its_sync(tmp_path: Path) -> None:
    with Database.open(tmp_path / "synced") as database:
        database.change_schema(lambda edit: edit.create_table(COUNTERS))
        with database.begin() as transaction:
            table_rows.insert_row(transaction, database.get_compiled_table("counters"), (1, 0))
        seen: list[list[tuple[int, int]]] = []
        failpoints.arm("sync.before", "call", call=lambda: seen.append(read(database)))
        add(database, 1)
        failpoints.disarm_all()
        assert seen == [[(1, 0)]]
        assert read(database) == [(1, 1)]


def test_a_closed_database_takes_none(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "closed")
    database.change_schema(lambda edit: edit.create_table(COUNTERS))
    table, catalog = database.get_compiled_table("counters"), database.catalog
    database.close()
    with pytest.raises(Unavailable):
        swaps_of(database).replace_row(key_of(table, 1), catalog, lambda stored: stored)
