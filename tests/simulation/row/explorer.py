"""Drives the protocol's own steps through every interleaving of a small case.

A case is a few processes (generators) on one store. The explorer walks the graph of all states they
can reach: in each state any process may take its next step, a delayed request may arrive, and,
while the case still has some of them to give, a fault may happen to a request or a process may die.
Two ways to one state are walked on from once. A state is

    the rows of the store, tombstones included
    where each process is: a generator is determined by the results it was sent, so a process is
    a path in a tree of results, grown by replaying the generator when a new branch is met
    requests still under way, and how many faults and deaths are left

Multi-gets and `Many` are taken apart: each row is read or written at a moment of its own. Time does
not exist: every lock is expired and every empty position overdue from the start, so each process
may be broken or closed at any moment. A writer may be closed and take a new position without end,
so what lies beyond `positions_max` positions is not walked (and counted).

A step that nobody can disturb or notice is taken at once, alone: reading a row that nobody writes
in this case, or reading as of a position when nothing is forgotten. Every other order ends in the
same states. The one exception is the grace: when a step pauses for it, requests begun before the
pause are gone after it, and processes that began work before it have to begin again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from belvedere.errors import Error
from belvedere.kv.cell import (
    Acknowledge,
    BeginWork,
    CellScan,
    CheckAndMutate,
    Get,
    Increment,
    Many,
    MultiGet,
    Mutate,
    Now,
    Operation,
    Pause,
    Put,
    ReplyLost,
    Step,
    WorkExpired,
    is_mutation,
)
from belvedere.kv.doubles.cells import (
    RowState,
    change_row,
    increment_cell,
    newest_value,
    read_row,
)
from belvedere.txn.row_atomic.cells import layout
from tests.simulation.row.printing import describe, describe_result

Rows = dict[bytes, RowState]
Outcome = tuple[Any, ...]
LOST, EXPIRED = "reply lost", "work expired"
PENDING: Any = ...


@dataclass(frozen=True)
class Case:
    """`check` sees the final rows and each process's outcome, and returns what is wrong. Faults
    happen to requests of `faulty` processes on rows that start with one of `fault_on`. With
    `switches_max`, only the schedules that leave an unfinished process for another that often."""

    name: str
    rows: Rows
    processes: tuple[tuple[str, Callable[[], Step[Outcome]]], ...]
    check: Callable[[Rows, dict[str, Outcome]], list[str]]
    faults: int = 0
    deaths: int = 0
    mortal: tuple[str, ...] = ()
    faulty: tuple[str, ...] = ()
    fault_on: tuple[bytes, ...] = (b"",)
    positions_max: int = 4
    forgets: bool = False
    changes_catalog: bool = False
    sweeps: bool = False
    ordered: bool = False
    switches_max: int | None = None
    counter_falls: bool = False
    """A fault is that the counter has forgotten some or all of what it handed out above the stored
    `applied`: what a region server might lose that does not sync an increment."""


@dataclass
class Report:
    case: str
    states: int = 0
    endings: int = 0
    cut: int = 0
    violation: str = ""
    interleaving: list[str] = field(default_factory=list)

    def summary(self) -> str:
        found = self.violation or "0 violations"
        head = f"{self.case}: {self.states} states, {self.endings} endings, {self.cut} cut: {found}"
        return "\n    ".join([head, *self.interleaving])


class Point:
    """Where a process is after a certain sequence of results."""

    __slots__ = (
        "acknowledged",
        "begun",
        "children",
        "number",
        "operation",
        "outcome",
        "parent",
        "sent",
    )

    def __init__(self, number: int, parent: Point | None, sent: Any) -> None:
        self.number = number
        self.parent = parent
        self.sent = sent
        self.children: dict[Any, Point] = {}
        self.operation: Operation | None = None
        self.outcome: Outcome | None = None
        self.acknowledged: int | None = None if parent is None else parent.acknowledged
        self.begun = False


class Machine:
    """The tree of everything one process can do."""

    def __init__(self, name: str, start: Callable[[], Step[Outcome]]) -> None:
        self.name = name
        self.start = start
        self.points = 0
        self.root = self._grow(None, None)

    def after(self, point: Point, result: Any) -> Point:
        child = point.children.get(result)
        if child is None:
            child = point.children[result] = self._grow(point, result)
        return child

    def _grow(self, parent: Point | None, sent: Any) -> Point:
        point = Point(self.points, parent, sent)
        self.points += 1
        history: list[Any] = []
        at: Point | None = point
        while at is not None and at.parent is not None:
            history.append(at.sent)
            at = at.parent
        step = self.start()
        pending = _next(step, None, Point(-1, None, None))
        for result in reversed(history):
            point.begun = False
            pending = _next(step, result, point)
        if isinstance(pending, tuple):
            point.outcome = pending
        else:
            point.operation = pending
        return point


def _next(step: Step[Outcome], result: Any, point: Point) -> Operation | Outcome:
    """The next operation on the store or pause for the grace; the outcome when the step ends."""
    while True:
        try:
            if result == LOST:
                operation = step.throw(ReplyLost("reply lost"))
            elif result == EXPIRED:
                operation = step.throw(WorkExpired("work expired"))
            else:
                operation = step.send(result)
        except StopIteration as stop:
            outcome: Outcome = stop.value
            return outcome
        result = None
        match operation:
            case Now():
                result = 0.0
            case BeginWork():
                point.begun = True
            case Acknowledge(position):
                point.acknowledged = position
            case Pause(seconds) if seconds < 1:
                pass
            case _:
                return operation


def operate(rows: Rows, operation: Operation) -> tuple[bytes, RowState | None, Any]:
    """What one operation does: the row it changes and how (None: not at all), and its result."""
    match operation:
        case Get(row):
            return row, None, read_row(rows.get(row, ()), operation)
        case CheckAndMutate(row, column, expected, changes):
            state = rows.get(row, ())
            if newest_value(state, column) != expected:
                return row, None, False
            return row, change_row(state, changes), True
        case Mutate(row, changes):
            return row, change_row(rows.get(row, ()), changes), None
        case Increment(row):
            return row, *increment_cell(rows.get(row, ()), operation)
        case CellScan(start, end):
            keys = sorted(row for row in rows if start <= row and (end is None or row < end))
            found = ((key, read_row(rows[key], operation)) for key in keys)
            return start, None, tuple(pair for pair in found if pair[1])[: operation.limit]
        case _:
            raise TypeError(f"not one row: {operation!r}")


def run_alone(rows: Rows, step: Step[Any]) -> tuple[Rows, Any]:
    """Drive one step to its end with nobody else about; for set-up and for the final look."""
    pending = _next(step, None, Point(-1, None, None))
    while not isinstance(pending, tuple):
        result: Any = None
        if isinstance(pending, MultiGet | Many):
            results = []
            for part in _parts(pending):
                row, after, one = operate(rows, part)
                rows = rows if after is None else {**rows, row: after}
                results.append(one)
            result = tuple(results)
        elif not isinstance(pending, Pause):
            row, after, result = operate(rows, pending)
            rows = rows if after is None else {**rows, row: after}
        pending = _next(step, result, Point(-1, None, None))
    return rows, pending


def _parts(operation: MultiGet | Many) -> tuple[Operation, ...]:
    return operation.gets if isinstance(operation, MultiGet) else operation.operations


class State(NamedTuple):
    """`places`: for each process its point and the results of the parts already done. `late`:
    (request, fresh) under way. `fresh[i]`: process i began work after the grace pause under way
    began. `content` is a hash of the rows, kept up to date change by change."""

    rows: Rows
    content: int
    places: tuple[tuple[Point, tuple[Any, ...]], ...]
    late: tuple[tuple[Operation, bool], ...]
    faults: int
    deaths: int
    dead: frozenset[int]
    fresh: tuple[bool, ...]
    expired: frozenset[int]
    turn: int = -1
    switches: int = 0

    def key(self) -> int:
        where = tuple([(point.number, done) for point, done in self.places])
        return hash((self.content, where, frozenset(self.late), *self[4:]))


def content_of(rows: Rows) -> int:
    content = 0
    for item in rows.items():
        content ^= hash(item)
    return content


def changed(state: State, row: bytes, after: RowState) -> State:
    content = state.content ^ hash((row, after))
    if row in state.rows:
        content ^= hash((row, state.rows[row]))
    return state._replace(rows={**state.rows, row: after}, content=content)


Label = tuple[str, Operation | None, Any]
"""Who, what, and the answer or the fault."""


class Explorer:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.machines = [Machine(name, start) for name, start in case.processes]
        self.report = Report(case.name)
        self._checked: dict[int, list[str]] = {}

    def run(self, states_max: int = 5_000_000) -> Report:
        first = self._first()
        key = first.key()
        came: dict[int, tuple[int, Label]] = {key: (0, ("", None, None))}
        stack = [(key, first)]
        while stack:
            key, state = stack.pop()
            self.report.states += 1
            if self.report.states > states_max:
                raise RuntimeError(f"{self.case.name}: more than {states_max} states")
            if _positions(state.rows) > self.case.positions_max:
                self.report.cut += 1
                continue
            for label, following in self._moves(state):
                next_key = following.key()
                if next_key not in came:
                    came[next_key] = (key, label)
                    stack.append((next_key, following))
            if self._all_over(state):
                self.report.endings += 1
                wrong = self._wrong(state)
                if wrong:
                    self.report.violation = "; ".join(wrong)
                    self.report.interleaving = _trace(came, key)
                    return self.report
        return self.report

    def _first(self) -> State:
        return State(
            self.case.rows,
            content_of(self.case.rows),
            tuple((machine.root, ()) for machine in self.machines),
            (),
            self.case.faults,
            self.case.deaths,
            frozenset(),
            (True,) * len(self.machines),
            frozenset(),
        )

    def _all_over(self, state: State) -> bool:
        return all(
            point.outcome is not None or i in state.dead
            for i, (point, _) in enumerate(state.places)
        )

    def _wrong(self, state: State) -> list[str]:
        outcomes: dict[str, Outcome] = {}
        for machine, (point, _) in zip(self.machines, state.places):
            if point.outcome is not None:
                outcomes[machine.name] = point.outcome
            elif point.acknowledged is not None:
                outcomes[machine.name] = ("committed", point.acknowledged)
            else:
                outcomes[machine.name] = ("unknown",)
        key = hash((state.content, tuple(sorted(outcomes.items()))))
        if key not in self._checked:
            try:
                self._checked[key] = self.case.check(state.rows, outcomes)
            except Error as error:
                self._checked[key] = [f"final look failed: {error}"]
        return self._checked[key]

    def _moves(self, state: State) -> Iterator[tuple[Label, State]]:
        for i, (point, done) in enumerate(state.places):
            if i not in state.dead and self._unnoticed(point, done):
                yield from self._process_moves(state, i, mortal=False)
                return
        for i, (point, _) in enumerate(state.places):
            if point.outcome is None and i not in state.dead:
                if self.case.switches_max is None:
                    yield from self._process_moves(state, i)
                else:
                    yield from self._counted_moves(state, i, self.case.switches_max)
        if self.case.counter_falls and state.faults:
            yield from _fallen_counters(state)
        for number, (request, _) in enumerate(state.late):
            row, after, _ = operate(state.rows, request)
            arrived = state._replace(late=state.late[:number] + state.late[number + 1 :])
            if after is not None:
                arrived = changed(arrived, row, after)
            yield ("late arrival", request, ""), arrived

    def _counted_moves(
        self, state: State, i: int, switches_max: int
    ) -> Iterator[tuple[Label, State]]:
        switches = state.switches
        if i != state.turn and state.turn >= 0 and state.places[state.turn][0].outcome is None:
            switches += 1
        if switches <= switches_max:
            for label, following in self._process_moves(state, i):
                yield label, following._replace(turn=i, switches=switches)

    def _unnoticed(self, point: Point, done: tuple[Any, ...]) -> bool:
        operation = point.operation
        if isinstance(operation, MultiGet | Many):
            waiting = [n for n, result in enumerate(done) if result is PENDING]
            operation = _parts(operation)[waiting[0] if done else 0]
        if isinstance(operation, Mutate) and operation.row.startswith(layout.OUTCOMES):
            return not self.case.faults
        if not isinstance(operation, Get):
            return False
        if operation.row == layout.CATALOG_ROW:
            return not self.case.changes_catalog
        if operation.row == layout.FLOOR_ROW or operation.as_of is not None:
            return not self.case.forgets
        return operation.row.startswith(layout.HEARTBEATS) and not self.case.sweeps

    def _process_moves(
        self, state: State, i: int, mortal: bool = True
    ) -> Iterator[tuple[Label, State]]:
        (point, done), name = state.places[i], self.machines[i].name
        operation = point.operation
        assert operation is not None
        if mortal and state.deaths and name in self.case.mortal:
            dead = state._replace(dead=state.dead | {i}, deaths=state.deaths - 1)
            yield (name, None, "dies"), dead
        if isinstance(operation, Pause):
            yield (name, None, "the grace has passed"), self._after_grace(state, i)
        elif i in state.expired and is_mutation(operation):
            yield (name, None, EXPIRED), self._sent(state, i, EXPIRED)
        elif isinstance(operation, MultiGet | Many):
            yield from self._part_moves(state, i, operation, done, mortal)
        else:
            for answer, following, label in self._fates(state, i, operation):
                yield (name, operation, label), self._sent(following, i, answer)

    def _part_moves(
        self, state: State, i: int, operation: MultiGet | Many, done: tuple[Any, ...], mortal: bool
    ) -> Iterator[tuple[Label, State]]:
        parts = _parts(operation)
        done = done or (PENDING,) * len(parts)
        waiting = [n for n, result in enumerate(done) if result is PENDING]
        if not mortal or self.case.ordered or isinstance(operation, MultiGet):
            waiting = waiting[:1]
        for n in waiting:
            for answer, following, label in self._fates(state, i, parts[n]):
                after = (*done[:n], answer, *done[n + 1 :])
                yield (self.machines[i].name, parts[n], label), self._part(following, i, after)

    def _part(self, state: State, i: int, done: tuple[Any, ...]) -> State:
        if PENDING in done:
            places = list(state.places)
            places[i] = (places[i][0], done)
            return state._replace(places=tuple(places))
        return self._sent(state, i, LOST if LOST in done else done)

    def _sent(self, state: State, i: int, result: Any) -> State:
        """Process i got a result and goes on to its next operation."""
        point = self.machines[i].after(state.places[i][0], result)
        places = (*state.places[:i], (point, ()), *state.places[i + 1 :])
        fresh, expired, late = state.fresh, state.expired, state.late
        if point.begun:
            fresh = (*fresh[:i], True, *fresh[i + 1 :])
            expired = expired - {i}
        if isinstance(point.operation, Pause):
            fresh = tuple(n == i for n in range(len(places)))
            late = tuple((request, False) for request, _ in late)
        return state._replace(places=places, fresh=fresh, expired=expired, late=late)

    def _after_grace(self, state: State, i: int) -> State:
        late = tuple(each for each in state.late if each[1])
        stale = frozenset(n for n, fresh in enumerate(state.fresh) if not fresh)
        passed = state._replace(late=late, expired=state.expired | stale)
        return self._sent(passed, i, None)

    def _fates(
        self, state: State, i: int, operation: Operation
    ) -> Iterator[tuple[Any, State, Any]]:
        """What may become of a request: (answer, state after it, label)."""
        row, after, result = operate(state.rows, operation)
        done = state if after is None else changed(state, row, after)
        yield result, done, result
        if not state.faults or not is_mutation(operation):
            return
        if self.case.counter_falls or self.machines[i].name not in self.case.faulty:
            return
        if not row.startswith(self.case.fault_on):
            return
        left = state.faults - 1
        late = (*state.late, (operation, state.fresh[i]))
        if after is not None:
            yield LOST, done._replace(faults=left), "done, reply lost"
            yield result, done._replace(faults=left, late=late), "done, and once more later"
        yield LOST, state._replace(faults=left), "lost"
        yield LOST, state._replace(faults=left, late=late), "delayed"
        if result is True:
            yield False, done._replace(faults=left), "done, answered False"


def _positions(rows: Rows) -> int:
    return int.from_bytes(newest_value(rows.get(layout.COUNTER_ROW, ()), layout.NUMBER) or b"")


def _fallen_counters(state: State) -> Iterator[tuple[Label, State]]:
    stored = newest_value(state.rows.get(layout.POSITION_ROW, ()), layout.POSITIONS)
    applied = 0
    if stored is not None:
        applied = layout.decode(layout.Positions, stored, layout.POSITION_ROW).applied
    for number in range(applied, _positions(state.rows)):
        put = Put(layout.NUMBER, layout.ONLY, number.to_bytes(8))
        fallen = change_row((), (put,))
        label = ("the counter", None, f"falls back to {number}")
        after = changed(state, layout.COUNTER_ROW, fallen)
        yield label, after._replace(faults=state.faults - 1)


def _trace(came: dict[int, tuple[int, Label]], key: int) -> list[str]:
    lines: list[str] = []
    while came[key][0]:
        key, (name, operation, answer) = came[key]
        what = "" if operation is None else describe(operation) + ": "
        lines.append(f"{name}: {what}{describe_result(answer)}")
    return lines[::-1]
