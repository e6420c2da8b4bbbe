"""Transactions of one node that go through the log together."""

from __future__ import annotations

import threading

import pytest

from belvedere.errors import Error, Retry
from belvedere.kv.cell import Get, Increment
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.txn.row_atomic import commit, locks, read_rows
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.group_commit import GroupCommit, GroupMember, complete_group
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.locks import AttemptLocks
from belvedere.txn.row_atomic.log import advance, log_rows
from belvedere.txn.row_atomic.node import Node
from tests.txn.row_atomic.steps import Bench, key, latest, root, work


class Counting(MemoryCells):
    def __init__(self) -> None:
        super().__init__()
        self.increments: list[int] = []

    def increment(self, increment: Increment) -> int:
        self.increments.append(increment.by)
        return super().increment(increment)


def prepared(bench: Bench, node: Node, *names: str) -> list[GroupMember]:
    members = []
    for name in names:
        held = AttemptLocks(node.start_attempt(), 0)
        record = bench.run(commit.prepare_commit(node, held, work(name, 0, name)))
        members.append(GroupMember(held, record))
    return members


def values(bench: Bench, *names: str) -> list[bool]:
    at = latest(bench, bench.node(9))
    return [
        row is not None for row in bench.run(read_rows.get_rows([key(name) for name in names], at))
    ]


def test_a_group_takes_its_positions_with_one_increment_and_as_many_trips_as_one() -> None:
    bench, store = Bench(), Counting()
    bench.store = store
    node = bench.node(1)
    members = prepared(bench, node, "x", "y", "z")
    bench.run(complete_group(node, members))
    assert store.increments == [3]
    assert bench.round_trips == 5, "increment, stamps, log rows, cells, marks and releases"
    assert [(m.position, m.committed, m.error) for m in members] == [
        (1, True, None),
        (2, True, None),
        (3, True, None),
    ]
    assert values(bench, "x", "y", "z") == [True] * 3
    assert bench.run(sweep.held_locks()) == []


def test_a_member_that_was_broken_fails_and_the_others_commit() -> None:
    bench = Bench()
    node = bench.node(1)
    members = prepared(bench, node, "x", "y")
    bench.run(locks.remove_holder(root("x"), members[0].held.attempt))
    bench.run(complete_group(node, members))
    assert isinstance(members[0].error, Retry)
    assert members[1].committed
    assert values(bench, "x", "y") == [False, True]


def test_a_member_that_was_closed_goes_on_alone_at_a_new_position() -> None:
    bench = Bench()
    node = bench.node(1)
    members = prepared(bench, node, "x", "y")
    bench.run(log_rows.close_position(bench.node(2), 1))
    bench.run(complete_group(node, members))
    assert [m.position for m in members] == [3, 2]
    assert all(m.committed for m in members)
    assert values(bench, "x", "y") == [True, True]
    assert bench.store.get(Get(layout.COUNTER_ROW))[0].value == (3).to_bytes(8)


def test_threads_that_come_while_a_group_is_under_way_form_the_next() -> None:
    bench, store = Bench(), Counting()
    bench.store = store
    node = bench.node(1)
    members = prepared(bench, node, *"abcdef")
    first_is_in, go = threading.Event(), threading.Event()

    def run(step: object) -> object:
        if not first_is_in.is_set():
            first_is_in.set()
            go.wait(30)
        return bench.run(step)  # type: ignore[arg-type]

    group = GroupCommit(run, node)
    found: list[int | Error] = []

    def complete(member: GroupMember) -> None:
        found.append(group.complete_commit(member.held, member.record))

    threads = [threading.Thread(target=complete, args=(member,)) for member in members]
    threads[0].start()
    first_is_in.wait(30)
    for thread in threads[1:]:
        thread.start()
    while len(group._waiting) < 5:
        pass
    go.set()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1, 2, 3, 4, 5, 6]  # type: ignore[type-var]
    assert store.increments == [1, 5]


def test_a_leader_that_is_interrupted_leaves_the_next_one_free_to_lead() -> None:
    bench = Bench()
    node = bench.node(1)
    first, second = prepared(bench, node, "x", "y")
    interrupt = [True]

    def run(step: object) -> object:
        if interrupt[-1]:
            raise KeyboardInterrupt
        return bench.run(step)  # type: ignore[arg-type]

    group = GroupCommit(run, node)
    with pytest.raises(KeyboardInterrupt):
        group.complete_commit(first.held, first.record)
    interrupt.append(False)
    assert group.complete_commit(second.held, second.record) == 1


def test_a_commit_is_answered_when_it_is_in_the_log_and_settled_afterwards() -> None:
    bench = Bench()
    node = bench.node(1)
    first, second = prepared(bench, node, "x", "y")
    go = threading.Event()

    def run(step: object) -> object:
        return bench.run(step)  # type: ignore[arg-type]

    def run_settling(step: object) -> object:
        go.wait(30)
        return run(step)

    group = GroupCommit(run, node, run_settling)
    for number, member in enumerate((first, second), start=1):
        assert group.complete_commit(member.held, member.record) == number
        assert member.held.attempt in node.live, "its locks are not released yet"
    assert bench.run(advance.read_positions())[0].applied == 0
    go.set()
    group.wait_settled(2)
    assert bench.run(advance.read_positions())[0].applied == 2
    assert not node.live
    group.close()
    assert node.moved[0].applied == 2, "known without asking the store"
