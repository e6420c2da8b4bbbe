"""Many nodes wait for each other's positions: one moves `applied` for all, the others look on."""

from __future__ import annotations

from typing import Any

from belvedere.kv.cell import CheckAndMutate, Get, Increment, Operation, Step, execute_operation
from belvedere.txn.row_atomic import commit
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.locks import AttemptLocks
from belvedere.txn.row_atomic.log import advance, log_rows
from belvedere.txn.row_atomic.node import ADVANCE_WAIT_MAX, ADVANCE_WAIT_MIN, Node
from tests.txn.row_atomic.steps import Bench, work


def positions(bench: Bench) -> layout.Positions:
    return advance.decode_positions(bench.store.get(Get(layout.POSITION_ROW)))[0]


def append(bench: Bench, node: Node, name: str, *, applied: bool) -> int:
    """A commit that does not move the positions; its cells may still be to be written."""
    held = AttemptLocks(node.start_attempt(), 0)
    record = bench.run(commit.prepare_commit(node, held, work(name, 0, name)))
    position: int = bench.run(commit.append_record(node, held, record))
    if applied:
        bench.run(advance.write_cells(position, record))
        execute_operation(bench.store, log_rows.mark_applied(node, position))
    return position


def moves(step: Step[Any], bench: Bench) -> tuple[Any, int]:
    """The result of a step, and how often it tried to move the positions."""
    tried = 0

    def watch() -> Step[Any]:
        nonlocal tried
        result: Any = None
        while True:
            try:
                operation: Operation = step.send(result)
            except StopIteration as stop:
                return stop.value
            tried += isinstance(operation, CheckAndMutate) and operation.row == layout.POSITION_ROW
            result = yield operation

    return bench.run(watch()), tried


def test_applied_moves_over_what_is_applied_beyond_the_need_and_over_nothing_else() -> None:
    bench = Bench()
    writer, helper = bench.node(1), bench.node(2)
    taken = [append(bench, writer, "slow", applied=False)]
    taken += [append(bench, writer, name, applied=True) for name in "abc"]
    unwritten = append(bench, writer, "late", applied=False)
    bench.store.increment(Increment(layout.COUNTER_ROW, layout.NUMBER))  # nobody writes there
    helper.advance_wait = ADVANCE_WAIT_MIN
    assert bench.run(advance.apply_through(helper, taken[0])) == taken[-1]
    assert positions(bench).applied == taken[-1]
    assert unwritten not in helper.met, "it was not waited for"
    assert not helper.holes
    assert bench.store.get(Get(layout.log_row(unwritten + 1, helper.settings.lanes))) == ()
    assert bench.run(advance.apply_through(bench.node(3), unwritten)) == unwritten


def test_a_node_alone_looks_at_nothing_beyond_its_need() -> None:
    bench = Bench()
    writer = bench.node(1)
    first = append(bench, writer, "slow", applied=False)
    append(bench, writer, "a", applied=True)
    assert bench.run(advance.apply_through(writer, first)) == first
    assert positions(bench).applied == first


def test_a_node_that_was_late_looks_on_while_another_one_gets_on() -> None:
    bench = Bench()
    writer, late, other = bench.node(1), bench.node(2), bench.node(3)
    taken = [append(bench, writer, name, applied=True) for name in "abcd"]
    todo = list(taken)
    late.advance_wait = ADVANCE_WAIT_MAX

    def another_gets_on(seconds: float) -> None:
        bench.now += seconds
        if todo:
            late_wait, bench._sleep = bench._sleep, sleep  # type: ignore[method-assign]
            bench.run(advance.apply_through(other, todo.pop(0)))
            bench._sleep = late_wait  # type: ignore[method-assign]

    sleep = bench._sleep
    bench._sleep = another_gets_on  # type: ignore[method-assign]
    assert moves(advance.apply_through(late, taken[-1]), bench) == (taken[-1], 0)
    assert 0 < late.advance_wait < ADVANCE_WAIT_MAX, "the wait was long enough"


def test_a_node_that_was_late_helps_when_nobody_gets_on() -> None:
    bench = Bench()
    writer, late = bench.node(1), bench.node(2)
    taken = append(bench, writer, "a", applied=False)
    late.advance_wait = ADVANCE_WAIT_MAX
    assert moves(advance.apply_through(late, taken), bench) == (taken, 1)
    assert 0 < late.advance_wait < ADVANCE_WAIT_MAX, "it was first, so it waits less the next time"


def test_losing_makes_a_node_wait_longer_and_winning_shorter() -> None:
    node = Bench().node(1)
    waits = []
    for won in (False, False, True, True, True, False):
        node.note_advance(won=won)
        waits.append(node.advance_wait)
    unit = ADVANCE_WAIT_MIN
    assert waits == [unit, 2 * unit, unit, 0.0, 0.0, unit]
    for _ in range(20):
        node.note_advance(won=False)
    assert node.advance_wait == ADVANCE_WAIT_MAX
    drawn = {node.draw_advance_wait() for _ in range(50)}
    assert len(drawn) == 50, "another one each time"
    assert min(drawn) >= ADVANCE_WAIT_MAX / 2
    assert max(drawn) <= ADVANCE_WAIT_MAX
