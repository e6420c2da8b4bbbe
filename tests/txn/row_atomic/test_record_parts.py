"""Large records: written and applied in parts, each a short piece of work, by whoever is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from belvedere.errors import Corruption
from belvedere.kv.cell import CellDelete, CellScan, Get, Many, MultiGet, Mutate, Now, Step
from belvedere.txn.row_atomic import commit, read_rows
from belvedere.txn.row_atomic.cells import data_cells, layout
from belvedere.txn.row_atomic.commit import CommitRequest
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.housekeeping.vacuum import vacuum_and_trim
from belvedere.txn.row_atomic.locks import AttemptLocks
from belvedere.txn.row_atomic.log import advance, log_rows, record_parts
from belvedere.txn.row_atomic.node import send_heartbeat
from tests.txn.row_atomic.steps import Bench, key, latest, work

ROWS = 3 * record_parts.WRITES_IN_PART
NAMES = [f"x{number:05}" for number in range(ROWS)]
BODY = bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of few rows, so that there are many of them."""
    monkeypatch.setattr(record_parts, "WRITES_IN_PART", 8)
    monkeypatch.setattr(record_parts, "WRITES_IN_ROW_MAX", 16)


def large_work(count: int = 100) -> CommitRequest:
    writes = tuple(data_cells.put_row(key(name), {b"c": b"v"}) for name in NAMES[:count])
    return work("t", 0, "lock", writes=writes, body=BODY)


def count_rows(bench: Bench, at: int, count: int = 100) -> int:
    found = bench.run(read_rows.get_rows([key(name) for name in NAMES[:count]], at))
    return sum(row is not None for row in found)


def stop_after(step: Step[Any], operations: int) -> Step[bool]:
    """Only so many operations of a step, as those of a process that is then killed; whether there
    were more."""
    sent = None
    try:
        for _ in range(operations):
            sent = yield step.send(sent)
        return True
    except StopIteration:
        return False


def slow(bench: Bench, step: Step[Any], seconds: float) -> Step[Any]:
    """The step, on a store whose every answer takes this long."""
    sent = None
    while True:
        try:
            operation = step.send(sent)
        except StopIteration as ended:
            return ended.value
        if isinstance(operation, Get | Many | MultiGet | Mutate):
            bench.now += seconds
        sent = yield operation


def test_a_record_whose_cells_take_longer_than_one_piece_of_work_is_committed() -> None:
    bench = Bench(lease_seconds=1000.0)
    node = bench.node(1)
    position = bench.run(slow(bench, commit.commit_transaction(node, large_work()), 0.4))
    assert count_rows(bench, position) == 100
    assert latest(bench, bench.node(2)) == position
    assert bench.run(sweep.held_locks()) == []


def test_a_record_in_parts_is_read_as_it_was_written() -> None:
    bench = Bench(record_bytes_max=200)
    position = bench.run(commit.commit_transaction(bench.node(1), large_work()))
    log_row = layout.log_row(position, bench.settings.lanes)
    entry = log_rows.read_entry(bench.node(1), position, bench.store.get(Get(log_row)))
    assert entry is not None
    assert entry.parts is not None
    assert entry.parts.writing > 12
    record = bench.run(log_rows.assemble_record(bench.node(2), entry))
    assert (record.body, record.transaction) == (BODY, b"t")
    assert record.writes == large_work().writes


def test_a_writer_killed_at_any_operation_leaves_all_rows_or_none() -> None:
    outcomes = set()
    for operations in range(1, 1000):
        bench = Bench(lease_seconds=5.0, grace_seconds=4.0)
        writer, other = bench.node(1), bench.node(2)
        bench.run(send_heartbeat(writer))
        alive = bench.run(stop_after(commit.commit_transaction(writer, large_work(40)), operations))
        for _ in range(2):  # once to hear it, once to find it silent
            bench.run(sweep.sweep_locks(other))
            bench.now += 6.0
        bench.run(sweep.sweep_locks(other))
        at = latest(bench, other)
        outcomes.add(count_rows(bench, at, 40))
        assert bench.run(sweep.held_locks()) == []
        if not alive:
            break
    assert outcomes == {0, 40}


def kill_between_parts(bench: Bench) -> Callable[[], int]:
    """A writer that dies when two parts are applied; how many parts others apply after it."""
    step = commit.commit_transaction(bench.node(1), large_work(40))
    applied = [0]

    def count_progress(inner: Step[Any]) -> Step[Any]:
        sent = None
        while True:
            try:
                operation = inner.send(sent)
            except StopIteration as ended:
                return ended.value
            sent = yield operation
            if isinstance(operation, Mutate):
                applied[0] += any(c.column == layout.PROGRESS for c in operation.changes)
                if applied[0] == 2 and inner is step:
                    return None

    bench.run(count_progress(step))
    applied[0] = 0

    def finish() -> int:
        bench.run(count_progress(advance.latest_position(bench.node(2))))
        return applied[0]

    return finish


def test_others_go_on_with_the_first_part_that_is_not_applied() -> None:
    bench = Bench()
    assert kill_between_parts(bench)() == 3
    assert count_rows(bench, 1, 40) == 40


def test_a_writer_that_gets_on_is_waited_for_and_one_that_does_not_is_helped() -> None:
    bench = Bench()
    finish = kill_between_parts(bench)
    before = bench.now
    finish()
    assert bench.now - before >= bench.settings.work_seconds_max


def test_a_late_helper_of_a_record_that_is_applied_writes_nothing() -> None:
    bench = Bench()
    node = bench.node(1)
    position = bench.run(commit.commit_transaction(node, large_work(40)))
    latest(bench, node)
    log_row = layout.log_row(position, bench.settings.lanes)
    entry = log_rows.read_entry(node, position, bench.store.get(Get(log_row)))
    assert entry is not None
    assert entry.parts is not None

    def refuse_mutations(inner: Step[Any]) -> Step[Any]:
        sent = None
        while True:
            try:
                operation = inner.send(sent)
            except StopIteration as ended:
                return ended.value
            assert not isinstance(operation, Many | Mutate)
            sent = 0.0 if isinstance(operation, Now) else (yield operation)

    late = record_parts.apply_parts(node, position, entry.parts, 0)
    assert bench.run(refuse_mutations(late)) is False


def test_a_trim_removes_every_part() -> None:
    bench = Bench()
    node = bench.node(1)
    at = bench.run(commit.commit_transaction(node, large_work(40)))
    latest(bench, node)
    bench.run(vacuum_and_trim(node, b"\x10", b"\x11", at, at))
    assert bench.store.scan(CellScan(layout.LOG, layout.OUTCOMES)) == ()


@pytest.mark.parametrize("applied", [True, False], ids=["applied by others", "not applied"])
def test_missing_parts_are_damage_unless_others_have_moved_over_the_record(applied: bool) -> None:
    """A helper reads the log row, sleeps, and finds that the parts are gone."""
    bench = Bench(record_bytes_max=200)
    writer, helper = bench.node(1), bench.node(2)
    held = AttemptLocks(writer.start_attempt(), 0)
    one = work("t", 0, "x", value=b"v" * 1000)
    record = bench.run(commit.prepare_commit(writer, held, one))
    at = bench.run(commit.append_record(writer, held, record))
    cells = bench.store.get(Get(layout.log_row(at, writer.settings.lanes)))
    read = log_rows.read_entry(helper, at, cells)
    assert read is not None
    if applied:
        bench.run(advance.apply_through(writer, at))
    part = layout.chunk_row(held.attempt, 0)
    bench.store.mutate(Mutate(part, (CellDelete(layout.RECORD, layout.ONLY),)))
    if applied:
        bench.run(advance.apply_entry(helper, read))
        assert helper.counts["records applied for others"] == 0
    else:
        with pytest.raises(Corruption, match="part of a log record is missing"):
            bench.run(advance.apply_entry(helper, read))
