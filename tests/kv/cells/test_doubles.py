"""What the doubles add to the contract: compaction, faults, a driver, virtual time."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.errors import Error, Unavailable
from belvedere.kv.cell import (
    Acknowledge,
    BeginWork,
    CellDelete,
    Change,
    CheckAndMutate,
    Driver,
    Get,
    Increment,
    Many,
    Mutate,
    Now,
    Pause,
    Put,
    ReplyLost,
    Step,
    WorkExpired,
)
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.kv.doubles.cells_faults import FaultyCells
from belvedere.kv.doubles.cells_network import (
    NetworkFaults,
    NetworkSimulation,
    SimulatedMachine,
    SimulatedProcess,
)

ROW, A = b"row", b"a"

puts = st.builds(
    Put, st.sampled_from([b"a", b"b"]), st.integers(1, 6), st.binary(min_size=1, max_size=2)
)
deletes = st.builds(CellDelete, st.sampled_from([b"a", b"b"]), st.integers(1, 6), st.booleans())


@settings(max_examples=300, deadline=None)
@given(st.lists(puts | deletes, max_size=12), st.integers(0, 7))
def test_the_rules_hold_against_a_plain_model(changes: list[Change], as_of: int) -> None:
    store = MemoryCells()
    values: dict[tuple[bytes, int], bytes] = {}
    for change in changes:
        store.mutate(Mutate(ROW, (change,)))
        if isinstance(change, Put):
            values[change.column, change.timestamp] = change.value
    expected = {}
    for (column, timestamp), value in values.items():
        hidden = any(
            isinstance(change, CellDelete)
            and change.column == column
            and (timestamp == change.timestamp if change.exact else timestamp <= change.timestamp)
            for change in changes
        )
        if not hidden:
            expected[column, timestamp] = value
    found = {(c.column, c.timestamp): c.value for c in store.get(Get(ROW, all_versions=True))}
    assert found == expected
    newest = {c.column: c.timestamp for c in store.get(Get(ROW, as_of=as_of))}
    for column in (b"a", b"b"):
        seen = [at for name, at in expected if name == column and at <= as_of]
        assert newest.get(column) == (max(seen) if seen else None)
    store.compact()
    after = {(c.column, c.timestamp): c.value for c in store.get(Get(ROW, all_versions=True))}
    assert after == expected, "a compaction changes nothing that can be seen"


def test_after_a_compaction_a_tombstone_hides_no_more() -> None:
    store = MemoryCells()
    store.mutate(Mutate(ROW, (CellDelete(A, 15),)))
    store.compact(ROW)
    store.mutate(Mutate(ROW, (Put(A, 12, b"late"),)))
    assert store.get(Get(ROW))[0].value == b"late"


def test_every_fault_happens_and_the_store_stays_explicable() -> None:
    store = FaultyCells(MemoryCells(), seed=7, share=0.5)
    lost = answered = 0
    for number in range(400):
        row = b"%d" % number
        try:
            answered += store.check_and_mutate(CheckAndMutate(row, A, None, (Put(A, 1, b"x"),)))
        except ReplyLost:
            lost += 1
    assert set(store.counts) == {"lost", "delayed", "reply lost", "twice", "answered false"}
    present = sum(bool(store.under.get(Get(b"%d" % n))) for n in range(400))
    assert lost == store.counts["lost"] + store.counts["delayed"] + store.counts["reply lost"]
    assert answered <= present <= 400 - store.counts["lost"]


def driver(clock: list[float], store: Any = None) -> Driver:
    def tick() -> float:
        clock[0] += 0.1
        return clock[0]

    return Driver(store or MemoryCells(), tick, lambda seconds: None, work_seconds_max=1.0)


def test_the_driver_runs_a_step_and_counts_round_trips() -> None:
    acknowledged: list[int] = []

    def step() -> Step[int]:
        yield BeginWork()
        yield Many((Mutate(ROW, (Put(A, 1, b"x"),)), Increment(b"n", A)))
        yield Acknowledge(5)
        yield Pause(3.0)
        assert (yield Now()) > 0
        return len((yield Get(ROW)))

    run = driver([0.0])
    assert run.run_step(step(), acknowledged.append) == 1
    assert acknowledged == [5]
    assert run.round_trips == 2


def test_changes_are_refused_too_long_after_the_work_began_but_reads_are_not() -> None:
    clock = [0.0]

    def step() -> Step[str]:
        yield BeginWork()
        clock[0] += 2.0
        yield Get(ROW)
        with pytest.raises(WorkExpired):
            yield Mutate(ROW, (Put(A, 1, b"x"),))
        yield BeginWork()
        yield Mutate(ROW, (Put(A, 1, b"x"),))
        return "done"

    assert driver(clock).run_step(step()) == "done"


def test_one_failure_among_many_does_not_keep_the_others_from_being_tried() -> None:
    class Broken(MemoryCells):
        def mutate(self, mutate: Mutate) -> None:
            if mutate.row == b"bad":
                raise Unavailable("broken")
            super().mutate(mutate)

    store = Broken()

    def step() -> Step[None]:
        yield Many((Mutate(b"bad", ()), Mutate(ROW, (Put(A, 1, b"x"),))))

    with pytest.raises(Unavailable):
        driver([0.0], store).run_step(step())
    assert store.get(Get(ROW))


def counting(world: NetworkSimulation, trips: int) -> tuple[list[Any], SimulatedProcess]:
    ended: list[Any] = []

    def step() -> Step[int]:
        done = 0
        for _ in range(trips):
            try:
                yield BeginWork()
                yield Increment(ROW, A)
                done += 1
            except ReplyLost:
                continue
        return done

    def end(result: Any, error: Error | None) -> None:
        ended.append(result)

    return ended, SimulatedProcess(SimulatedMachine("m"), step(), end)


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> tuple[Any, ...]:
        world = NetworkSimulation(
            Random(seed), NetworkFaults(request_lost=0.1, reply_lost=0.1, delayed=0.1, twice=0.1)
        )
        ended, process = counting(world, 50)
        world.start_process(process)
        world.run_until(1000.0)
        return tuple(ended), dict(world.counts), world.store.get(Get(ROW))

    assert history(3) == history(3)
    assert history(3) != history(4)


def test_a_dead_machine_does_nothing_more_and_a_paused_one_goes_on_later() -> None:
    world = NetworkSimulation(Random(1))
    ended, process = counting(world, 50)
    process.machine.paused_until = 10.0
    world.start_process(process)
    world.run_until(9.0)
    assert world.store.get(Get(ROW)) == ()
    world.run_until(10.01)
    process.machine.alive = False
    world.run_until(100.0)
    assert ended == []
    assert 0 < int.from_bytes(world.store.get(Get(ROW))[0].value) < 50
