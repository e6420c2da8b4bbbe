"""Transactions of many rows: one lock and a hold on their tables, all or nothing, whoever dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from belvedere.config import Config
from belvedere.database import SQL_COMPILERS, Database
from belvedere.errors import Error, Retry
from belvedere.kv.cell import CellScan
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.session.session import Session
from belvedere.txn.row_atomic import bulk_commit, commit, load_holds
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.log import record_parts
from belvedere.txn.row_atomic.node import NodeSettings
from tests.txn.row_atomic.nodes import commits

ROWS = 20
SETTINGS = NodeSettings(lease_seconds=10.0, grace_seconds=5.0, lock_wait_seconds_max=60.0)
SCHEMA = (
    "CREATE TABLE t (id int PRIMARY KEY, a int)",
    "CREATE INDEX by_a ON t (a)",
    "CREATE TABLE child (id int PRIMARY KEY, t int REFERENCES t)",
    "CREATE TABLE other (id int PRIMARY KEY)",
    "CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n, sum(a) AS s FROM t",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
)
LOAD = f"INSERT INTO t SELECT i + 100, 1 FROM generate_series(1, {ROWS}) AS g(i)"


class Stopped(BaseException):
    """A process that does not go on: it is dead, or would have to wait."""


class WatchedStore:
    """A store that calls a function before every operation."""

    def __init__(self, store: MemoryCells, watch: Callable[[], None]) -> None:
        self._store = store
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def call(*arguments: Any) -> Any:
            self._watch()
            return method(*arguments)

        return call


class Process:
    """A database on the store, in virtual time."""

    def __init__(self, store: Any, clock: list[float], waits: bool = True) -> None:
        def sleep(seconds: float) -> None:
            if not waits:
                raise Stopped
            self.slept += 1
            clock[0] += seconds

        self.slept = 0
        setup = CellStoreSetup(store, SETTINGS, lambda: clock[0], sleep, sends_heartbeats=False)
        self.db = Database.on_cells(setup, Config(statement_retries_max=0), **SQL_COMPILERS)
        self.session = Session(self.db.open_shared_state())
        self.session.execute("SET freshness = 'latest'")

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.session.execute(statement).rows or ()]

    def try_statement(self, statement: str) -> bool:
        """Whether it has been committed; not when it failed or would have to wait."""
        try:
            self.run(statement)
        except (Error, Stopped):
            return False
        return True


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_commit, "BULK_CHANGES_MIN", 20)
    monkeypatch.setattr(commit, "ROWS_IN_ONE_TRIP", 16)
    monkeypatch.setattr(record_parts, "WRITES_IN_PART", 16)
    monkeypatch.setattr(record_parts, "WRITES_IN_ROW_MAX", 16)


@pytest.fixture(scope="module")
def filled() -> MemoryCells:
    store = MemoryCells()
    process = Process(store, [0.0])
    for statement in SCHEMA:
        process.run(statement)
    process.db.close()
    return store


def copy_store(store: MemoryCells) -> MemoryCells:
    copied = MemoryCells()
    copied._rows, copied._order = dict(store._rows), list(store._order)
    return copied


def stop_at(number: int) -> Callable[[], None]:
    """Die at this operation, and at every later one."""
    count = [0]

    def watch() -> None:
        count[0] += 1
        if count[0] >= number:
            raise Stopped

    return watch


def check_all_or_nothing(process: Process) -> int:
    count = process.run("SELECT count(*) FROM t")[0][0]
    assert count in (3, 3 + ROWS)
    loaded = count - 3
    assert process.run("SELECT n, s FROM totals") == [(count, 6 + loaded)]
    assert process.run("SELECT count(*) FROM t WHERE a = 1") == [(1 + loaded,)]
    return int(count)


def end_what_is_left(process: Process, clock: list[float]) -> None:
    for _ in range(3):
        commits(process.db).sweep_locks()
        clock[0] += SETTINGS.lease_seconds + 1
        commits(process.db).send_heartbeat()
    assert commits(process.db).run_step(sweep.held_locks()) == []
    assert commits(process.db).run_step(load_holds.read_holds())[0].holds == ()


def count_operations(filled: MemoryCells, statement: str) -> int:
    count = [0]

    def watch() -> None:
        count[0] += 1

    process = Process(WatchedStore(copy_store(filled), watch), [0.0])
    count[0] = 0
    process.run(statement)
    return count[0]


def test_a_load_takes_steps_by_its_parts_and_not_by_its_rows(filled: MemoryCells) -> None:
    one = count_operations(filled, "INSERT INTO t VALUES (1000, 1)")
    many = count_operations(filled, LOAD)
    assert many < one + 60, "a lock for each row would take some hundreds more"


def test_a_loader_killed_at_any_operation_leaves_all_or_nothing(filled: MemoryCells) -> None:
    outcomes = set()
    for number in range(1, 200):
        store, clock = copy_store(filled), [0.0]
        watch = [lambda: None]
        loader = Process(WatchedStore(store, lambda watch=watch: watch[0]()), clock)  # type: ignore[misc]
        watch[0] = stop_at(number)
        finished = loader.try_statement(LOAD)
        other = Process(store, clock)
        end_what_is_left(other, clock)
        found = check_all_or_nothing(other)
        if found == 3:
            assert store.scan(CellScan(layout.CHUNKS, layout.OUTCOMES)) == ()
        outcomes.add(found)
        other.run("INSERT INTO t VALUES (1000, 0)")
        if finished:
            break
    assert outcomes == {3, 3 + ROWS}


def kill_with_hold(store: MemoryCells, clock: list[float]) -> None:
    """A loader that dies as soon as it holds its tables."""
    watch = [lambda: None]
    loader = Process(WatchedStore(store, lambda: watch[0]()), clock)
    node = commits(loader.db)

    def stop_when_held() -> None:
        before, watch[0] = watch[0], lambda: None
        held = node.run_step(load_holds.read_holds())[0].holds
        watch[0] = before
        if held:
            watch[0] = stop_at(1)
            raise Stopped

    watch[0] = stop_when_held
    assert not loader.try_statement(LOAD)


@pytest.mark.parametrize(
    ("statement", "waits"),
    [
        ("INSERT INTO t VALUES (1000, 1)", True),
        ("UPDATE t SET a = 5 WHERE id = 1", True),
        ("INSERT INTO child VALUES (1, 1)", True),
        (LOAD, True),
        ("INSERT INTO other VALUES (1)", False),
        ("CREATE TABLE more (id int PRIMARY KEY)", True),
    ],
)
def test_who_writes_to_held_tables_waits_for_the_loader_or_its_end(
    filled: MemoryCells, statement: str, waits: bool
) -> None:
    store, clock = copy_store(filled), [0.0]
    kill_with_hold(store, clock)
    process = Process(store, clock)
    before = clock[0]
    process.run(statement)
    assert (clock[0] - before >= SETTINGS.lease_seconds) == waits
    end_what_is_left(process, clock)


def run_preempted(filled: MemoryCells, first: str, second: str, number: int) -> tuple[bool, bool]:
    """Run one statement, and all of another one before the given operation of it; one that would
    have to wait for the other gives up. Which of them were committed."""
    store, clock = copy_store(filled), [0.0]
    count, committed = [-(10**6)], [False]

    def watch() -> None:
        count[0] += 1
        if count[0] == number:
            committed[0] = preempting.try_statement(second)

    preempting = Process(store, clock, waits=False)
    process = Process(WatchedStore(store, watch), clock)
    count[0] = 0
    mine = process.try_statement(first)
    count[0] = -(10**6)
    observer = Process(store, clock)
    end_what_is_left(observer, clock)
    rows = observer.run("SELECT count(*), sum(a) FROM t")
    assert rows == observer.run("SELECT n, s FROM totals")
    assert rows[0][0] == 3 + ROWS * (mine if first == LOAD else committed[0]) + (
        committed[0] if first == LOAD else mine
    )
    return mine, committed[0]


SAME_KEY = "INSERT INTO t VALUES (101, 7)"


@pytest.mark.parametrize(("first", "second"), [(LOAD, SAME_KEY), (SAME_KEY, LOAD)])
def test_of_a_load_and_an_insert_of_one_key_one_is_committed(
    filled: MemoryCells, first: str, second: str
) -> None:
    seen = set()
    for number in range(1, count_operations(filled, first) + 1):
        seen.add(run_preempted(filled, first, second, number))
    assert (True, True) not in seen
    assert {(True, False), (False, True)} <= seen


OTHER_KEY = "INSERT INTO t VALUES (1000, 7)"


def test_a_load_and_an_insert_of_another_key_lose_nothing(filled: MemoryCells) -> None:
    seen = set()
    for number in range(1, count_operations(filled, LOAD) + 1, 4):
        seen.add(run_preempted(filled, LOAD, OTHER_KEY, number))
    assert (True, True) in seen


def test_a_load_over_rows_that_others_have_changed_is_run_again(filled: MemoryCells) -> None:
    store, clock = copy_store(filled), [0.0]
    first, second = Process(store, clock), Process(store, clock)
    first.run(LOAD)
    second.session.execute("BEGIN")
    assert second.run("UPDATE t SET a = a + 1") == []
    first.run("DELETE FROM t WHERE id = 110")
    with pytest.raises(Retry):
        second.session.execute("COMMIT")
    assert first.run("SELECT n, s FROM totals") == [(ROWS + 2, 6 + ROWS - 1)]
