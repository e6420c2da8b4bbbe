"""Group commit: one sync for many, no acknowledgement without one, and the end after a failure."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from belvedere import failpoints
from belvedere.catalog.definitions import ColumnDefinition, TableDefinition
from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import Unavailable
from belvedere.kv.doubles.faults import FaultTiming, FaultyStore
from belvedere.txn.batch_atomic.recovery import open_directory
from belvedere.txn.transaction import table_rows
from belvedere.types import BIGINT
from tests.txn.deadline import until

NUMBERS = TableDefinition("numbers", (ColumnDefinition("n", BIGINT),), ("n",))


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.disarm_all()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Database.open(tmp_path / "store") as database:
        database.change_schema(lambda edit: edit.create_table(NUMBERS))
    return tmp_path / "store"


def faulty(path: Path) -> tuple[Database, FaultyStore]:
    opened = open_directory(path, Config(), random.Random(1).randbytes)
    store = FaultyStore(opened.store)
    opened.store = store
    return Database(opened, Config()), store


def insert(database: Database, number: int) -> int:
    with database.begin() as transaction:
        table_rows.insert_row(transaction, database.get_compiled_table("numbers"), (number,))
        return transaction.commit().position


def insert_interrupted(database: Database, number: int) -> None:
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            insert(database, number)
    finally:
        signal.signal(signal.SIGINT, usual)


def joined(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "nobody leads, or nobody woke it"


def read(database: Database) -> list[int]:
    table = database.get_compiled_table("numbers")
    with database.open_newest_reader() as reader:
        return [table.decode(v)[0] for b in reader.scan(table.start, table.end) for _, v in b]


def test_commits_that_wrote_during_a_sync_share_the_next_one(path: Path) -> None:
    """The first sync is held until seven others have written: one more is enough for them all."""
    database = Database.open(path)
    written, syncs = threading.Semaphore(0), []

    def at_sync() -> None:
        syncs.append(database.commits.newest_snapshot.position)
        if len(syncs) == 1:
            for _ in range(8):
                assert written.acquire(timeout=60)

    failpoints.arm("sync.before", "call", call=at_sync)
    failpoints.arm("commit.after_write", "call", call=written.release)
    threads = [threading.Thread(target=insert, args=(database, n)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failpoints.disarm_all()
    assert len(syncs) == 2
    assert read(database) == list(range(8))
    database.close()


def test_a_leader_waits_for_those_who_took_part_last_time(path: Path) -> None:
    database = Database.open(path)
    group = database.commits._group  # type: ignore[attr-defined]
    group._expected, group._sync_s = 3, 240.0  # as if the last sync had served three, slowly
    before = group.groups
    threads = [threading.Thread(target=insert, args=(database, n)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert group.groups == before + 1
    assert read(database) == [0, 1, 2]
    insert(database, 3)  # alone, and soon done: nobody waits as long again
    assert group._sync_s < 1
    database.close()


def test_who_is_expected_and_does_not_come_is_not_waited_for_long(path: Path) -> None:
    """The first to wait leads when its time is up, and fewer are expected from then on."""
    database = Database.open(path)
    group = database.commits._group  # type: ignore[attr-defined]
    group._expected, group._sync_s = 9, 0.001
    threads = [threading.Thread(target=insert, args=(database, n)) for n in range(2)]
    for thread in threads:
        thread.start()
    joined(threads)
    assert group._expected < 3
    assert read(database) == [0, 1]
    database.close()


def test_nobody_sees_a_commit_before_its_sync(path: Path) -> None:
    database, seen = Database.open(path), []
    failpoints.arm("sync.before", "call", call=lambda: seen.append(read(database)))
    insert(database, 1)
    failpoints.disarm_all()
    assert seen == [[]]
    assert read(database) == [1]
    database.close()


@pytest.mark.parametrize("when", [FaultTiming.BEFORE, FaultTiming.AFTER])
def test_failed_sync_ends_writing_but_not_reading(path: Path, when: FaultTiming) -> None:
    database, store = faulty(path)
    insert(database, 1)
    store.add_fault("sync", when)
    transaction = database.begin()
    table_rows.insert_row(transaction, database.get_compiled_table("numbers"), (2,))
    with pytest.raises(Unavailable) as unknown:
        transaction.commit()
    assert unknown.value.sqlstate == "08007"
    with pytest.raises(Unavailable) as outcome:
        database.outcome(transaction.id)
    assert outcome.value.sqlstate == "08007"
    for number in (2, 3):
        with pytest.raises(Unavailable) as refused:
            database.run_transaction(
                lambda txn, n=number: table_rows.insert_row(
                    txn, database.get_compiled_table("numbers"), (n,)
                )
            )
        assert refused.value.sqlstate == "25006"
    assert read(database) == [1]
    waiter = threading.Thread(
        target=database.visibility.wait_past, args=(database.position, None), daemon=True
    )
    waiter.start()
    waiter.join(60)
    assert not waiter.is_alive(), "waits for what will never be published"
    database.close()
    with Database.open(path) as database:
        position = database.outcome(transaction.id)
        assert read(database) == ([1] if position is None else [1, 2])
        insert(database, 9)


@pytest.mark.parametrize("when", [FaultTiming.BEFORE, FaultTiming.AFTER])
def test_failed_write_is_unknown_only_when_it_may_be_there(path: Path, when: FaultTiming) -> None:
    database, store = faulty(path)
    store.add_fault("write", when)
    with pytest.raises(Unavailable) as failed:
        insert(database, 1)
    assert failed.value.sqlstate == ("58030" if when is FaultTiming.BEFORE else "08007")
    assert read(database) == []
    database.close()
    with Database.open(path) as database:
        assert read(database) == ([] if when is FaultTiming.BEFORE else [1])


def test_interrupted_write_ends_writing(path: Path) -> None:
    database = Database.open(path)

    def interrupt() -> None:
        raise KeyboardInterrupt

    failpoints.arm("commit.after_write", "call", call=interrupt, at=1)
    with pytest.raises(KeyboardInterrupt):
        insert(database, 1)
    failpoints.disarm_all()
    with pytest.raises(Unavailable, match="read-only"):
        insert(database, 2)
    assert read(database) == []
    database.close()
    with Database.open(path) as database:
        assert read(database) == [1]
        assert database.log.last_position == 2


def test_one_who_stops_waiting_does_not_hold_up_the_others(path: Path) -> None:
    """Ctrl-C in a commit that waits for a sync, while it is the next to lead one."""
    database, others = Database.open(path), []
    waiters = database.commits._group._waiters  # type: ignore[attr-defined]
    main = threading.get_ident()

    def hold() -> None:
        until(lambda: len(waiters) == 1)
        others.append(threading.Thread(target=insert, args=(database, 3)))
        others[-1].start()
        until(lambda: len(waiters) == 2)
        signal.pthread_kill(main, signal.SIGINT)
        until(lambda: len(waiters) == 1)

    failpoints.arm("sync.before", "call", call=hold, at=1)
    others.append(threading.Thread(target=insert, args=(database, 1)))
    others[0].start()
    until(lambda: database.position + 1 == database.commits.newest_snapshot.position)
    insert_interrupted(database, 2)
    joined(others)
    failpoints.disarm_all()
    assert read(database) == [1, 2, 3]
    database.close()


@pytest.mark.parametrize("when", ["before it is woken", "as it is to wake the next"])
def test_one_who_stops_waiting_does_not_break_the_chain(path: Path, when: str) -> None:
    """One sync serves this thread and then another one. This one is interrupted."""
    database, others = Database.open(path), []
    group = database.commits._group  # type: ignore[attr-defined]
    main, wake_next = threading.get_ident(), group._wake_next
    interrupted = threading.Event()

    def start(number: int) -> None:
        others.append(threading.Thread(target=insert, args=(database, number)))
        others[-1].start()

    def wake_or_interrupt() -> None:
        if threading.get_ident() == main and not interrupted.is_set():
            interrupted.set()
            if when == "as it is to wake the next":
                raise KeyboardInterrupt
        elif when == "before it is woken" and len(group._served) == 2:
            signal.pthread_kill(main, signal.SIGINT)
            assert interrupted.wait(60)
        wake_next()

    def hold() -> None:
        start(2)  # who leads those who write now
        until(lambda: len(group._waiters) == 2)  # and this thread
        start(4)
        until(lambda: len(group._waiters) == 3)
        group._wake_next = wake_or_interrupt

    failpoints.arm("sync.before", "call", call=hold, at=1)
    start(1)
    until(lambda: len(group._waiters) == 1)
    insert_interrupted(database, 3)
    joined(others)
    failpoints.disarm_all()
    assert read(database) == [1, 2, 3, 4]
    database.close()


def test_what_an_interrupted_client_wrote_is_shown_to_whoever_asks_for_it(path: Path) -> None:
    """Ctrl-C in the one sync there is: nobody waits for that commit any more."""
    database = Database.open(path)

    def interrupt() -> None:
        raise KeyboardInterrupt

    failpoints.arm("sync.after", "call", call=interrupt, at=1)
    with pytest.raises(KeyboardInterrupt):
        insert(database, 1)
    failpoints.disarm_all()
    written = database.commits.newest_snapshot.position
    assert database.position < written
    with database.begin(at_least=written, wait_s=5) as transaction:
        assert transaction.position == written
    assert read(database) == [1]
    database.close()


def test_close_waits_for_the_commits_under_way(path: Path) -> None:
    """The sync of a commit is held; closing meanwhile neither loses nor tears it."""
    database = Database.open(path)
    acknowledged: list[int] = []
    closer = threading.Thread(target=database.close)

    def hold() -> None:
        closer.start()
        closer.join(0.5)  # as far as it gets: not past this sync

    failpoints.arm("sync.before", "call", call=hold, at=1)
    writer = threading.Thread(target=lambda: acknowledged.append(insert(database, 1)))
    writer.start()
    writer.join()
    closer.join()
    failpoints.disarm_all()
    assert acknowledged == [2]
    with Database.open(path) as database:
        assert read(database) == [1]
