"""Locks: fair, shared or exclusive, with victims at once, deadlines and counters."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from belvedere.errors import Retry, Unavailable
from belvedere.txn.contracts import LockRequest
from belvedere.txn.transaction.locks import RowLockTable
from tests.txn.deadline import until

WAIT_MS = 20_000
A = LockRequest("root", b"a")
B = LockRequest("root", b"b")
SHARED_A = LockRequest("root", b"a", side=1)
SHARED_B = LockRequest("root", b"b", side=1)


class Workers:
    """Owners in threads of their own, driven step by step."""

    def __init__(self, table: RowLockTable) -> None:
        self.table = table
        self.pool = ThreadPoolExecutor(16)

    def acquire(self, owner: bytes, request: LockRequest) -> Future[bool]:
        """Ask for a lock; returns when it is held, refused or waited for."""
        future = self.pool.submit(self.table.acquire, owner, request)
        until(lambda: future.done() or (owner, request.is_shared) in self.waiting(request))
        return future

    def waiting(self, request: LockRequest) -> list[tuple[bytes, bool]]:
        return [
            (held.owner, held.shared)
            for held in self.table.list_locks()
            if (held.kind, held.key) == request[:2] and not held.granted
        ]

    def granted(self, request: LockRequest) -> list[bytes]:
        return [
            held.owner
            for held in self.table.list_locks()
            if (held.kind, held.key) == request[:2] and held.granted
        ]


def result(future: Future[Any]) -> Any:
    return future.result(timeout=WAIT_MS / 1000)


@pytest.fixture
def table() -> RowLockTable:
    return RowLockTable(WAIT_MS)


@pytest.fixture
def workers(table: RowLockTable) -> Any:
    made = Workers(table)
    yield made
    made.pool.shutdown(wait=True)
    assert table.list_locks() == [], "a test leaves no lock behind"


def test_an_exclusive_lock_makes_others_wait_in_order(workers: Workers) -> None:
    table = workers.table
    assert table.acquire(b"1", A) is False
    second, third = workers.acquire(b"2", A), workers.acquire(b"3", A)
    assert not second.done()
    table.release(b"1", [A])
    assert result(second) is True
    assert not third.done()
    table.release(b"2", [A])
    assert result(third) is True
    table.release(b"3", [A])


def test_shared_holders_stand_side_by_side(workers: Workers) -> None:
    table = workers.table
    assert table.acquire(b"1", SHARED_A) is False
    assert table.acquire(b"2", SHARED_A) is False
    writer = workers.acquire(b"3", A)
    table.release(b"1", [SHARED_A])
    assert not writer.done()
    table.release(b"2", [SHARED_A])
    assert result(writer) is True
    table.release(b"3", [A])


def test_a_stream_of_shared_holders_cannot_starve_an_exclusive_one(workers: Workers) -> None:
    table = workers.table
    table.acquire(b"1", SHARED_A)
    writer = workers.acquire(b"2", A)
    late = workers.acquire(b"3", SHARED_A)
    assert not late.done(), "it waits behind the writer although the holder would let it in"
    table.release(b"1", [SHARED_A])
    assert result(writer) is True
    assert not late.done()
    table.release(b"2", [A])
    assert result(late) is True
    table.release(b"3", [SHARED_A])


def test_several_shared_waiters_are_let_in_together(workers: Workers) -> None:
    table = workers.table
    table.acquire(b"1", A)
    readers = [workers.acquire(bytes([n]), SHARED_A) for n in range(10, 14)]
    writer = workers.acquire(b"w", A)
    table.release(b"1", [A])
    assert [result(reader) for reader in readers] == [True] * 4
    assert not writer.done()
    for n in range(10, 14):
        table.release(bytes([n]), [SHARED_A])
    assert result(writer) is True
    table.release(b"w", [A])


def test_the_one_that_closes_a_circle_is_the_victim_at_once(workers: Workers) -> None:
    table = workers.table
    table.acquire(b"1", A)
    table.acquire(b"2", B)
    waits = workers.acquire(b"1", B)
    with pytest.raises(Retry) as victim:
        table.acquire(b"2", A)
    assert victim.value.sqlstate == "40P01"
    assert victim.value.lost_to == 0
    assert table.deadlocks == 1
    assert not waits.done(), "nobody else is hurt"
    table.release(b"2", [B])
    assert result(waits) is True
    table.release(b"1", [A, B])


def test_circles_of_three_and_through_the_queue_are_found(workers: Workers) -> None:
    table, c = workers.table, LockRequest("table", b"c")
    for owner, request in ((b"1", A), (b"2", B), (b"3", c)):
        table.acquire(owner, request)
    first, second = workers.acquire(b"1", B), workers.acquire(b"2", c)
    with pytest.raises(Retry) as victim:
        table.acquire(b"3", A)
    assert victim.value.detail is not None
    assert victim.value.detail.count("->") == 3
    table.release(b"3", [c])
    assert result(second) is True
    table.release(b"2", [B, c])
    assert result(first) is True
    table.release(b"1", [A, B])


def test_waiting_behind_a_waiter_counts_as_waiting_for_it(workers: Workers) -> None:
    """3 waits for 2, which only waits itself; 2's other lock closes the circle."""
    table = workers.table
    table.acquire(b"1", SHARED_A)
    table.acquire(b"3", B)
    writer = workers.acquire(b"2", A)
    reader = workers.acquire(b"3", SHARED_A)
    assert not reader.done()
    with pytest.raises(Retry):
        table.acquire(b"1", B)
    table.release(b"1", [SHARED_A])
    assert result(writer) is True
    table.release(b"2", [A])
    assert result(reader) is True
    table.release(b"3", [B, SHARED_A])


def test_two_that_want_to_upgrade_are_a_deadlock(workers: Workers) -> None:
    table = workers.table
    table.acquire(b"1", SHARED_A)
    table.acquire(b"2", SHARED_A)
    upgrade = workers.acquire(b"1", A)
    with pytest.raises(Retry):
        table.acquire(b"2", A)
    table.release(b"2", [SHARED_A])
    assert result(upgrade) is True
    assert workers.granted(A) == [b"1", b"1"]
    table.release(b"1", [SHARED_A, A])


def test_an_owner_may_hold_both_forms_and_gives_back_both(workers: Workers) -> None:
    table = workers.table
    table.acquire(b"1", SHARED_A)
    assert table.acquire(b"1", A) is False
    other = workers.acquire(b"2", A)
    table.release(b"1", [SHARED_A, A])
    assert result(other) is True
    assert table.acquire(b"2", SHARED_A) is False
    table.release(b"2", [A, SHARED_A])


def test_a_wait_ends_at_its_deadline_and_the_queue_goes_on(workers: Workers) -> None:
    table = workers.table
    table.acquire(b"1", SHARED_A)
    with pytest.raises(Unavailable) as late:
        table.acquire(b"2", A, wait_ms=0)
    assert late.value.sqlstate == "55P03"
    assert late.value.facts == {"kind": "root", "wait_ms": 0}
    assert late.value.detail == f"held by {b'1'.hex()}"
    impatient = workers.pool.submit(table.acquire, b"2", A, 50)
    until(lambda: workers.waiting(A) == [(b"2", False)])
    behind = workers.acquire(b"3", SHARED_A)
    with pytest.raises(Unavailable):
        result(impatient)
    assert result(behind) is True, "who waited only behind the one that gave up goes on"
    table.release(b"1", [SHARED_A])
    table.release(b"3", [SHARED_A])


def test_a_request_that_must_not_wait_never_enters_the_queue(
    table: RowLockTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it were there, a shared request of another thread would wait behind it."""
    queued: list[object] = []
    monkeypatch.setattr(RowLockTable, "_enqueue_request", lambda *given: queued.append(given))
    table.acquire(b"1", SHARED_A)
    for request in (A, LockRequest("root", b"a")):
        with pytest.raises(Unavailable) as refused:
            table.acquire(b"2", request, wait_ms=0)
        assert refused.value.sqlstate == "55P03"
    assert not queued
    assert table.acquire(b"3", SHARED_A) is False
    table.release(b"1", [SHARED_A])
    table.release(b"3", [SHARED_A])
    assert table.list_locks() == []


def test_a_victim_leaves_the_queue_to_those_behind_it(workers: Workers) -> None:
    table = workers.table
    table.acquire(b"1", SHARED_A)
    table.acquire(b"2", B)
    blocked = workers.acquire(b"1", B)
    with pytest.raises(Retry):
        table.acquire(b"2", A)
    assert table.acquire(b"3", SHARED_A) is False
    table.release(b"2", [B])
    assert result(blocked) is True
    table.release(b"1", [SHARED_A, B])
    table.release(b"3", [SHARED_A])


def test_an_interrupted_wait_leaves_nothing_behind(
    table: RowLockTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in a client that waits for a lock."""

    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    table.acquire(b"1", A)
    monkeypatch.setattr("belvedere.txn.transaction.locks.threading.Event", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.acquire(b"2", A)
    assert [held.owner for held in table.list_locks()] == [b"1"]
    table.release(b"1", [A])
    assert table.acquire(b"3", A) is False


def test_an_interrupt_just_after_the_grant_gives_the_lock_back(
    table: RowLockTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            table.release(b"1", [A])
            raise KeyboardInterrupt

    table.acquire(b"1", A)
    monkeypatch.setattr("belvedere.txn.transaction.locks.threading.Event", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.acquire(b"2", A)
    assert table.list_locks() == []


def test_every_kind_is_counted_and_shown(workers: Workers) -> None:
    table = workers.table
    table.acquire(b"1", A)
    table.acquire(b"1", LockRequest("table", b"t", side=1))
    waits = workers.acquire(b"2", SHARED_A)
    assert sorted(table.list_locks()) == [
        ("root", b"a", b"1", False, True),
        ("root", b"a", b"2", True, False),
        ("table", b"t", b"1", True, True),
    ]
    table.release(b"1", [A, LockRequest("table", b"t", side=1)])
    result(waits)
    assert table.acquired_counts == {"root": 2, "table": 1}
    assert table.waited == {"root": 1}
    with pytest.raises(Unavailable):
        table.acquire(b"3", A, wait_ms=0)
    assert table.acquired_counts == {"root": 2, "table": 1}, "what was refused was not acquired"
    assert table.waited == {"root": 1}, "who must not wait never waits"
    table.release(b"2", [SHARED_A])


def test_a_release_of_many_threads_never_loses_a_wake(table: RowLockTable) -> None:
    """Eight threads pass two locks around in one order; each gets every one of its turns."""
    inside, turns = [], []

    def take(owner: int) -> None:
        for _ in range(50):
            name = bytes([owner])
            table.acquire(name, A)
            table.acquire(name, B)
            inside.append(owner)
            assert len(inside) == 1
            inside.remove(owner)
            turns.append(owner)
            table.release(name, [A, B])

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(take, owner) for owner in range(8)]:
            result(future)
    assert len(turns) == 400
    assert table.list_locks() == []
