"""The commit step by step: what it costs, what it refuses, what it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from belvedere.errors import InvalidInput, Retry, Unavailable
from belvedere.kv.cell import (
    Acknowledge,
    BeginWork,
    CheckAndMutate,
    Get,
    Mutate,
    Now,
    Pause,
    Put,
    ReplyLost,
    Step,
    execute_operation,
    is_mutation,
)
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.txn.row_atomic import catalog_barrier, commit, locks, read_rows
from belvedere.txn.row_atomic import node as nodes
from belvedere.txn.row_atomic.cells import data_cells, layout
from belvedere.txn.row_atomic.commit import RowExpectation
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.housekeeping.vacuum import vacuum_and_trim
from belvedere.txn.row_atomic.locks import AttemptLocks, RowLock
from belvedere.txn.row_atomic.log import advance, log_rows
from belvedere.txn.row_atomic.node import Node
from tests.txn.row_atomic.steps import TABLE, Bench, change_version, key, latest, root, work


def count_steps(store: MemoryCells, step: Step[Any]) -> tuple[int, int]:
    """Sequential round trips before and after the acknowledgement."""
    counts, part, sent = [0, 0], 0, None
    while True:
        try:
            operation = step.send(sent)
        except StopIteration:
            return counts[0], counts[1]
        sent = None
        if isinstance(operation, Acknowledge):
            part = 1
        elif isinstance(operation, Now):
            sent = 0.0
        elif not isinstance(operation, BeginWork | Pause):
            counts[part] += 1
            sent = execute_operation(store, operation)


@pytest.mark.parametrize("rows", [1, 10])
def test_a_one_lock_transaction_takes_five_steps_and_two_after(rows: int) -> None:
    bench = Bench()
    names = [f"x{n}" for n in range(rows)]
    writes = tuple(data_cells.put_row(key(name), {b"c": b"v"}) for name in names)
    one_lock = work("t", 0, locks=(RowLock(root("x")),), writes=writes)
    before, after = count_steps(bench.store, commit.commit_transaction(bench.node(1), one_lock))
    print(f"{rows} rows under one lock: {before} steps before the acknowledgement, {after} after")
    assert (before, after) == (5, 2)


def test_all_locks_but_the_primary_are_taken_in_one_step() -> None:
    bench = Bench()
    names = [f"x{n}" for n in range(10)]
    ten_locks = commit.commit_transaction(bench.node(1), work("t", 0, *names))
    assert count_steps(bench.store, ten_locks) == (6, 2)
    assert bench.run(sweep.held_locks()) == []


def test_a_lock_that_is_held_is_waited_for_with_only_lower_ones_in_hand() -> None:
    bench, (one, other) = Bench(lease_seconds=100.0), (Node(1), Node(2))
    guard = RowLock(layout.lock_row("guard", b"p"), 1)
    first, second = (AttemptLocks(node.start_attempt(), 0) for node in (one, other))
    bench.run(locks.take_locks(one, first, (RowLock(root("c")), guard), advance.finish_attempt))
    waited: list[set[bytes]] = []

    def sleep(seconds: float) -> None:
        waited.append({row for row, _ in Bench.run(bench, sweep.held_locks())})
        Bench.run(bench, locks.release_locks(one, first))

    bench._sleep = sleep  # type: ignore[method-assign]
    wanted = (*(RowLock(root(name)) for name in "abcde"), guard)
    bench.run(locks.take_locks(other, second, wanted, advance.finish_attempt))
    assert waited == [{*(root(name) for name in "abc"), guard.row}]
    assert second.values.keys() == {lock.row for lock in wanted}
    held = bench.run(sweep.held_locks())
    assert len(held) == 6, "what was given back can be taken again"
    assert {holder.attempt for _, holder in held} == {second.attempt}


def test_a_commit_is_seen_whole_and_frees_its_locks() -> None:
    bench = Bench()
    node = bench.node(1)
    position = bench.run(commit.commit_transaction(node, work("t", 0, "x", "y")))
    assert latest(bench, bench.node(2)) == position == 1
    found = bench.run(read_rows.get_rows([key("x"), key("y")], 1))
    assert [row.columns for row in found] == [{b"c": b"v"}] * 2
    assert bench.run(read_rows.get_rows([key("x")], 0)) == [None]
    assert bench.run(sweep.held_locks()) == []
    assert bench.run(commit.read_outcome(node, b"t")) == 1
    assert bench.run(commit.read_outcome(node, b"other")) is None


def test_a_row_changed_since_the_snapshot_is_a_conflict_also_when_deleted_or_set_null() -> None:
    bench = Bench()
    node = bench.node(1)
    bench.run(commit.commit_transaction(node, work("a", 0, "x")))
    for n, write in enumerate(
        (data_cells.delete_row(key("x")), data_cells.put_row(key("x"), {b"c": None}))
    ):
        at = latest(bench, node)
        position = bench.run(
            commit.commit_transaction(node, work(f"b{n}", at, "x", writes=(write,)))
        )
        with pytest.raises(Retry) as lost:
            bench.run(commit.commit_transaction(node, work(f"c{n}", at, "x")))
        assert lost.value.lost_to == position
        assert bench.run(sweep.held_locks()) == []


def test_columns_of_an_earlier_life_of_a_key_do_not_come_back() -> None:
    bench = Bench()
    node = bench.node(1)
    full = data_cells.put_row(key("x"), {b"c": b"1", b"d": b"2"})
    bench.run(commit.commit_transaction(node, work("a", 0, "x", writes=(full,))))
    gone = (data_cells.delete_row(key("x")),)
    bench.run(commit.commit_transaction(node, work("b", latest(bench, node), "x", writes=gone)))
    bench.run(commit.commit_transaction(node, work("c", latest(bench, node), "x")))
    at = latest(bench, node)
    assert bench.run(read_rows.get_row(key("x"), at)).columns == {b"c": b"v"}
    assert bench.run(read_rows.get_row(key("x"), at - 1)) is None
    assert bench.run(read_rows.get_row(key("x"), at - 2)).columns == {b"c": b"1", b"d": b"2"}
    only_c = (data_cells.put_row(key("x"), {b"d": b"3"}),)
    bench.run(commit.commit_transaction(node, work("d", at, "x", writes=only_c)))
    assert bench.run(read_rows.get_row(key("x"), latest(bench, node))).columns == {
        b"c": b"v",
        b"d": b"3",
    }


def test_expectations_are_checked_once_the_locks_are_held() -> None:
    bench = Bench()
    node = bench.node(1)
    parent = RowExpectation(key("p"), True, InvalidInput("no parent"))
    with pytest.raises(InvalidInput, match="no parent"):
        bench.run(commit.commit_transaction(node, work("a", 0, "x", expects=(parent,))))
    assert bench.run(sweep.held_locks()) == []
    bench.run(commit.commit_transaction(node, work("b", 0, "p")))
    bench.run(commit.commit_transaction(node, work("c", 0, "x", expects=(parent,))))


def test_holders_of_one_side_share_a_lock_and_exclude_the_other_side() -> None:
    bench = Bench(lock_wait_seconds_max=0.1, lease_seconds=100.0)
    guard = layout.lock_row("guard", b"p")

    def holding(name: str, side: int) -> Step[Any]:
        return commit.commit_transaction(
            bench.node(side * 10 + len(name)), work(name, 0, locks=(RowLock(guard, side),))
        )

    def paused_at_increment(step: Step[Any]) -> None:
        sent = None
        while True:
            operation = step.send(sent)
            if type(operation).__name__ == "Increment":
                return
            sent = 0.0 if isinstance(operation, Now) else None
            if not isinstance(operation, Now | BeginWork | Pause):
                sent = execute_operation(bench.store, operation)

    paused_at_increment(holding("a", 1))
    paused_at_increment(holding("bb", 1))
    assert len(bench.run(sweep.held_locks())) == 2
    for other in (2, 0):
        with pytest.raises(Retry, match="lock wait timed out"):
            bench.run(holding("c", other))
    assert len(bench.run(sweep.held_locks())) == 2


def test_a_record_too_large_for_a_cell_goes_to_chunk_rows_and_is_put_together_again() -> None:
    bench = Bench(record_bytes_max=100)
    bench.run(commit.commit_transaction(bench.node(1), work("a", 0, "x", value=b"v" * 1000)))
    entry = log_rows.read_entry(bench.node(2), 1, bench.store.get(Get(layout.log_row(1, 16))))
    assert entry is not None
    whole = bench.run(log_rows.assemble_record(bench.node(2), entry))
    assert whole.writes[0].cells == ((b"c", b"v" * 1000),)
    at = latest(bench, bench.node(2))
    bench.run(vacuum_and_trim(bench.node(2), TABLE, b"\x11", at, at))
    left = [row for row, _ in bench.store.copy_rows().items() if row[:1] == layout.CHUNKS]
    assert all(not bench.store.get(Get(row)) for row in left)


def test_a_reply_lost_below_the_trim_floor_is_answered_by_the_outcome_cell_or_not_at_all() -> None:
    bench = Bench()
    node = bench.node(1)
    bench.run(commit.commit_transaction(node, work("a", 0, "x")))
    record = layout.Record(node.id * layout.ATTEMPTS_PER_NODE + 1, b"a", 0, 0, ())
    at = latest(bench, node)
    bench.run(vacuum_and_trim(bench.node(2), TABLE, b"\x11", at, at))
    assert bench.run(log_rows.resolve_doubt(node, 1, record)) is True
    nobody = layout.Record(77, b"nobody", 0, 0, ())
    with pytest.raises(Unavailable, match="unknown") as caught:
        bench.run(log_rows.resolve_doubt(node, 1, nobody))
    assert caught.value.sqlstate == "08007"


def test_a_closed_writer_keeps_its_locks_and_commits_at_a_new_position() -> None:
    bench = Bench()
    node, step, sent, closed = bench.node(1), None, None, False
    step = commit.commit_transaction(node, work("a", 0, "x"))
    while True:
        try:
            operation = step.send(sent)
        except StopIteration as stop:
            position = stop.value
            break
        sent = 0.0 if isinstance(operation, Now) else None
        if isinstance(operation, Now | BeginWork | Pause | Acknowledge):
            continue
        row = getattr(operation, "row", b"")
        if row.startswith(layout.LOG) and not closed and is_mutation(operation):
            closed = True
            bench.run(log_rows.close_position(bench.node(2), 1))
        sent = execute_operation(bench.store, operation)
    assert position == 2
    assert node.counts["live writers closed"] == 1
    assert latest(bench, bench.node(3)) == 2
    assert bench.run(read_rows.get_row(key("x"), 2)).columns == {b"c": b"v"}


def test_a_reader_finishes_what_a_dead_writer_committed() -> None:
    bench = Bench(lease_seconds=10.0)
    step, sent = commit.commit_transaction(bench.node(1), work("a", 0, "x", "y")), None
    while True:
        operation = step.send(sent)
        if isinstance(operation, Acknowledge):
            break
        sent = 0.0 if isinstance(operation, Now) else None
        if not isinstance(operation, Now | BeginWork | Pause):
            sent = execute_operation(bench.store, operation)
    reader = bench.node(2)
    assert latest(bench, reader) == 1
    found = bench.run(read_rows.get_rows([key("x"), key("y")], 1))
    assert [row.columns for row in found] == [{b"c": b"v"}] * 2
    assert len(bench.run(sweep.held_locks())) == 2
    bench.run(sweep.sweep_locks(reader))
    bench.now += 11.0
    assert bench.run(sweep.sweep_locks(reader)) == 2
    assert bench.run(sweep.held_locks()) == []


def test_a_snapshot_below_the_floor_is_told_so() -> None:
    bench = Bench()
    node = bench.node(1)
    bench.run(commit.commit_transaction(node, work("a", 0, "x")))
    at = latest(bench, node)
    bench.run(vacuum_and_trim(bench.node(2), TABLE, b"\x11", at, at))
    with pytest.raises(Retry, match="snapshot too old"):
        bench.run(commit.commit_transaction(node, work("b", 0, "y")))
    with pytest.raises(Unavailable, match="snapshot too old"):
        bench.run(read_rows.require_above_floor(0))
    bench.run(read_rows.require_above_floor(at))


def test_an_open_snapshot_holds_the_floor_of_live_nodes() -> None:
    bench = Bench()
    node = bench.node(1)
    bench.run(commit.commit_transaction(node, work("a", 0, "x")))
    at = latest(bench, node)
    node.open_snapshot(at)
    bench.run(nodes.send_heartbeat(node))
    bench.run(commit.commit_transaction(node, work("b", at, "x")))
    later = latest(bench, node)
    floors = bench.run(vacuum_and_trim(bench.node(2), TABLE, b"\x11", later, later))
    assert floors.versions == at
    assert bench.run(read_rows.get_row(key("x"), at)) is not None


def test_a_writer_under_an_older_catalog_is_refused_and_the_barrier_outlasts_it() -> None:
    bench = Bench(lease_seconds=10.0)
    node = bench.node(1)
    assert bench.run(change_version(0)) == 1
    with pytest.raises(Retry, match="catalog changed"):
        bench.run(commit.commit_transaction(node, work("a", 0, "x")))
    with pytest.raises(Retry, match="catalog changed"):
        bench.run(change_version(0))
    bench.run(catalog_barrier.raise_version(7))
    bench.run(catalog_barrier.raise_version(5))
    assert bench.run(catalog_barrier.read_version()) == 7
    assert bench.run(catalog_barrier.wait_for_older_locks(node, 7)) == 0


def test_a_lost_increment_leaves_a_hole_that_readers_close() -> None:
    bench = Bench()
    bench.store.increment(commit.Increment(layout.COUNTER_ROW, layout.NUMBER))
    position = bench.run(commit.commit_transaction(bench.node(1), work("a", 0, "x")))
    assert position == 2
    reader = bench.node(2)
    assert latest(bench, reader) == 2
    assert reader.counts["closed"] == 1
    assert bench.now > 0, "it was waited for first"


def test_replies_that_stay_lost_end_in_unknown_and_never_in_aborted() -> None:
    class Mute(MemoryCells):
        def check_and_mutate(self, mutate: CheckAndMutate) -> bool:
            answer = super().check_and_mutate(mutate)
            if mutate.row.startswith(layout.LOG):
                raise ReplyLost("reply lost")
            return answer

    bench = Bench()
    bench.store = Mute()
    with pytest.raises(Unavailable, match="outcome of the transaction is unknown"):
        bench.run(commit.commit_transaction(bench.node(1), work("a", 0, "x")))
    quiet = MemoryCells()
    for row, state in bench.store.copy_rows().items():
        for column, versions in state:
            for timestamp, value in versions.cells:
                quiet.mutate(Mutate(row, (Put(column, timestamp, value),)))
    bench.store = quiet
    assert latest(bench, bench.node(2)) == 1
    assert bench.run(commit.read_outcome(bench.node(2), b"a")) == 1


def test_forgetting_announces_waits_out_the_grace_and_only_then_removes() -> None:
    bench = Bench(grace_seconds=5.0)
    node = bench.node(1)
    for n in range(3):
        bench.run(commit.commit_transaction(node, work(f"t{n}", latest(bench, node), "x")))
    at = latest(bench, node)
    seen, step, sent = [], vacuum_and_trim(bench.node(2), TABLE, b"\x11", at, at), None
    while True:
        try:
            operation = step.send(sent)
        except StopIteration:
            break
        sent = 0.0 if isinstance(operation, Now) else None
        if isinstance(operation, Pause):
            assert operation.seconds >= 5.0
            seen.append("grace")
        elif not isinstance(operation, Now | BeginWork):
            if is_mutation(operation):
                floor = getattr(operation, "row", b"") == layout.FLOOR_ROW
                seen.append("floor" if floor else "remove")
            sent = execute_operation(bench.store, operation)
    assert seen == ["floor", "grace", "remove", "remove", "floor"]
    assert len(bench.store.get(Get(key("x"), all_versions=True))) == 2, "marker and one value"


def test_a_trim_of_holes_alone_ends_although_the_grace_is_longer_than_the_work_limit() -> None:
    bench = Bench(grace_seconds=5.0)
    node = bench.node(1)
    for _ in range(3):
        bench.store.increment(commit.Increment(layout.COUNTER_ROW, layout.NUMBER))
    at = latest(bench, node)
    assert at == 3, "all closed"
    assert bench.run(vacuum_and_trim(node, TABLE, b"\x11", at, at)).log == 3
    assert log_rows.decode_floors(bench.store.get(Get(layout.FLOOR_ROW))).trimmed == 3


def test_work_that_has_gone_on_for_long_can_still_announce_a_floor() -> None:
    bench = Bench(grace_seconds=5.0)
    node = bench.node(1)
    bench.run(commit.commit_transaction(node, work("a", 0, "x")))
    at = latest(bench, node)

    def after_long_work() -> Step[Any]:
        yield Pause(100.0)
        return (yield from vacuum_and_trim(node, TABLE, b"\x11", at, at))

    assert bench.run(after_long_work()).log == 1


def test_a_dead_writer_below_the_log_floor_is_settled_and_its_locks_go() -> None:
    bench = Bench(lease_seconds=10.0)
    step, sent = commit.commit_transaction(bench.node(1), work("a", 0, "x")), None
    while not isinstance(operation := step.send(sent), Acknowledge):
        sent = 0.0 if isinstance(operation, Now) else None
        if not isinstance(operation, Now | BeginWork | Pause):
            sent = execute_operation(bench.store, operation)
    reader = bench.node(2)
    at = latest(bench, reader)
    bench.run(vacuum_and_trim(reader, TABLE, b"\x11", at, at))
    bench.run(sweep.sweep_locks(reader))
    bench.now += 11.0
    before = dict(bench.store.copy_rows())
    assert bench.run(sweep.sweep_locks(reader)) == 1
    changed = {row for row, state in bench.store.copy_rows().items() if before.get(row) != state}
    assert changed == {root("x")}, "no marker is written where a record was"
    assert bench.run(sweep.held_locks()) == []
