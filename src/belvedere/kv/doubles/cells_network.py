"""A simulated row-atomic store behind a faulty network, in virtual time, on one thread.

Processes are steps (generators) on machines. Every request takes time to arrive and to be answered,
and by the seed some are lost, answered and lost on the way back, delayed beyond their timeout,
carried out twice, or answered False although applied. Parts of one multi-get or `Many` are sent
separately. A machine may pause (its processes stand still, its requests arrive all the same), die,
and be replaced. Tombstones are compacted away at random, but not before they are a grace old.

The promise made to the protocol, and nothing more: a request arrives at most a grace after the work
it belongs to began, or never.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from belvedere.errors import Error, Unavailable
from belvedere.kv.cell import (
    Acknowledge,
    BeginWork,
    CellDelete,
    CheckAndMutate,
    Many,
    MultiGet,
    Mutate,
    Now,
    Operation,
    Pause,
    ReplyLost,
    SingleRow,
    Step,
    WorkExpired,
    execute_operation,
    is_mutation,
)
from belvedere.kv.doubles.cells import MemoryCells


@dataclass(frozen=True, slots=True)
class NetworkFaults:
    """The probability of each fault, for each request, and the latencies and limits."""

    request_lost: float = 0.0
    reply_lost: float = 0.0
    delayed: float = 0.0
    twice: float = 0.0
    answered_false: float = 0.0
    parted: float = 0.1
    compacted: float = 0.0
    latency_seconds: float = 0.003
    timeout_seconds: float = 0.2
    grace_seconds: float = 1.0
    work_seconds_max: float = 0.4
    operations_per_second: float | None = None


NO_NETWORK_FAULTS = NetworkFaults()


@dataclass(eq=False, slots=True)
class SimulatedMachine:
    name: str
    clock_offset: float = 0.0
    alive: bool = True
    paused_until: float = 0.0
    step_seconds: float = 0.0
    cpu_seconds: float = 0.0
    """How long its one CPU works for each request of a step, when the last answer has come; for
    one process at a time."""
    busy_until: float = 0.0


@dataclass(eq=False, slots=True)
class SimulatedProcess:
    """A step running on a machine. `ended` is called with (result, None) or (None, error)."""

    machine: SimulatedMachine
    step: Step[Any]
    ended: Callable[[Any, Error | None], None]
    acknowledged: Callable[[int], None] | None = None
    begun: float = 0.0
    round_trips: int = 0


@dataclass(slots=True)
class _RoundTrip:
    """One yielded operation under way: as many requests as it has parts."""

    process: SimulatedProcess
    results: list[Any]
    waiting: int
    single: bool
    failure: Unavailable | None = None
    requests: int = 1


@dataclass(slots=True)
class NetworkSimulation:
    """The event loop: store, network and machines under one virtual clock."""

    random: Random
    faults: NetworkFaults = NO_NETWORK_FAULTS
    store: MemoryCells = field(default_factory=MemoryCells)
    now: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    serve: Callable[[Operation, float], float] | None = None
    """When a store with queues of its own has served a request that arrives at a moment."""
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _number: int = 0
    _busy_until: float = 0.0
    _waiting: int = 0
    _buried: dict[bytes, float] = field(default_factory=dict)

    def schedule_at(self, time: float, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (time, self._number, action))

    def start_process(self, process: SimulatedProcess) -> None:
        self.schedule_at(self.now, lambda: self._resume_process(process, None, None))

    def run_until(self, until: float, stop: Callable[[], bool] = lambda: False) -> None:
        """Run events until a moment, or until `stop` returns true."""
        while self._events and self._events[0][0] <= until and not stop():
            self.now, _, action = heapq.heappop(self._events)
            action()
        if not stop():
            self.now = max(self.now, until)

    def _resume_process(
        self, process: SimulatedProcess, result: Any, failure: Unavailable | None
    ) -> None:
        machine = process.machine
        if not machine.alive:
            return
        if machine.paused_until > self.now:
            self.schedule_at(
                machine.paused_until, lambda: self._resume_process(process, result, failure)
            )
            return
        while True:
            try:
                if failure is not None:
                    operation = process.step.throw(failure)
                else:
                    operation = process.step.send(result)
            except StopIteration as stop:
                process.ended(stop.value, None)
                return
            except Error as error:
                process.ended(None, error)
                return
            result, failure = None, None
            match operation:
                case Now():
                    result = self.now + machine.clock_offset
                case BeginWork():
                    process.begun = self.now
                case Acknowledge(position):
                    if process.acknowledged is not None:
                        process.acknowledged(position)
                case Pause(seconds):
                    self.schedule_at(
                        self.now + seconds, lambda: self._resume_process(process, None, None)
                    )
                    return
                case _:
                    late = self.now - process.begun > self.faults.work_seconds_max
                    if not late or not is_mutation(operation):
                        self._send_operation(process, operation)
                        return
                    failure = WorkExpired("too long since the work began")

    def _send_operation(self, process: SimulatedProcess, operation: Operation) -> None:
        process.round_trips += 1
        parts: tuple[SingleRow, ...]
        if isinstance(operation, MultiGet):
            parts = operation.gets
        elif isinstance(operation, Many):
            parts = operation.operations
        else:
            assert not isinstance(operation, Now | Pause | BeginWork | Acknowledge)
            parts = (operation,)
        single = not isinstance(operation, MultiGet | Many)
        trip = _RoundTrip(process, [None] * len(parts), 0, single)
        together = self.random.random() >= self.faults.parted
        if isinstance(operation, MultiGet) and together:
            trip.waiting = 1
            self._send_request(trip, -1, operation)
            return
        trip.waiting = trip.requests = len(parts)
        if not parts:
            self.schedule_at(self.now, lambda: self._resume_process(process, (), None))
        for number, part in enumerate(parts):
            self._send_request(trip, number, part)

    def _send_request(self, trip: _RoundTrip, number: int, operation: Operation) -> None:
        """Decide the fate of one request: delivered, lost, delayed or repeated."""
        weather, draw = self.faults, self.random.random()
        arrives = self.now + self._draw_latency()
        if weather.operations_per_second is not None:
            arrives = self._queue_request(arrives, weather.operations_per_second, operation)
        if self.serve is not None:
            arrives = self.serve(operation, arrives)
        timeout = self.now + weather.timeout_seconds
        latest = weather.grace_seconds - weather.work_seconds_max
        late = self.now + self.random.uniform(0.0, latest)
        changing = is_mutation(operation)
        fault = self._choose_fault(draw, changing)
        self.counts[fault] += 1
        lost = fault == "reply lost"
        if fault in ("", "reply lost", "twice", "answered false"):
            say_false = fault == "answered false"
            self.schedule_at(
                arrives, lambda: self._deliver_request(trip, number, operation, lost, say_false)
            )
        if fault in ("twice", "delayed"):
            self.schedule_at(late, lambda: self._apply_operation(operation))
        if fault in ("request lost", "reply lost", "delayed"):
            self.schedule_at(timeout, lambda: self._lose_reply(trip))

    def stall_store(self, seconds: float) -> None:
        """The store answers no request for a while; requests queue up."""
        self._busy_until = max(self._busy_until, self.now) + seconds

    def _queue_request(self, arrives: float, per_second: float, operation: Operation) -> float:
        """When a store of limited speed serves a request: it serves waiting ones in random order,
        so some wait long, as in a store of many threads."""
        rows = len(operation.gets) if isinstance(operation, MultiGet) else 1
        cost = (1.0 + 0.05 * (rows - 1)) / per_second
        self._waiting += 1
        served = (
            max(self._busy_until, arrives) + self.random.expovariate(1.0) * cost * self._waiting
        )

        def leave_queue() -> None:
            self._waiting -= 1

        self.schedule_at(served, leave_queue)
        return served

    def _choose_fault(self, draw: float, changing: bool) -> str:
        for fault, share in self._fault_shares(changing):
            if draw < share:
                return fault
            draw -= share
        return ""

    def _fault_shares(self, changing: bool) -> list[tuple[str, float]]:
        weather = self.faults
        shares = [("request lost", weather.request_lost)]
        if changing:
            shares += [
                ("reply lost", weather.reply_lost),
                ("delayed", weather.delayed),
                ("twice", weather.twice),
                ("answered false", weather.answered_false),
            ]
        return shares

    def _draw_latency(self) -> float:
        return self.random.expovariate(1.0) * self.faults.latency_seconds

    def _deliver_request(
        self, trip: _RoundTrip, number: int, operation: Operation, lost: bool, say_false: bool
    ) -> None:
        result = self._apply_operation(operation)
        if lost:
            return
        if say_false and isinstance(operation, CheckAndMutate):
            result = False
        self.schedule_at(
            self.now + self._draw_latency(), lambda: self._deliver_reply(trip, number, result)
        )

    def _apply_operation(self, operation: Operation) -> Any:
        result = execute_operation(self.store, operation)
        if isinstance(operation, Mutate | CheckAndMutate):
            row = operation.row
            if any(isinstance(change, CellDelete) for change in operation.changes):
                self._buried[row] = self.now
            if self.random.random() < self.faults.compacted:
                self.schedule_at(self.now + self.random.random(), lambda: self._compact_row(row))
        return result

    def _compact_row(self, row: bytes) -> None:
        if self.now - self._buried.get(row, 0.0) > self.faults.grace_seconds:
            self.counts["compactions"] += 1
            self.store.compact(row)

    def _lose_reply(self, trip: _RoundTrip) -> None:
        trip.failure = ReplyLost("reply lost")
        self._finish_request(trip)

    def _deliver_reply(self, trip: _RoundTrip, number: int, result: Any) -> None:
        if number < 0:
            trip.results = list(result)
        else:
            trip.results[number] = result
        self._finish_request(trip)

    def _finish_request(self, trip: _RoundTrip) -> None:
        trip.waiting -= 1
        if trip.waiting:
            return
        result = trip.results[0] if trip.single else tuple(trip.results)
        machine = trip.process.machine
        busy = machine.step_seconds
        if machine.cpu_seconds:
            work = machine.cpu_seconds * trip.requests
            machine.busy_until = max(machine.busy_until, self.now) + work
            self.schedule_at(
                machine.busy_until,
                lambda: self._resume_process(trip.process, result, trip.failure),
            )
        elif busy:
            work = self.random.expovariate(1.0) * busy
            self.schedule_at(
                self.now + work, lambda: self._resume_process(trip.process, result, trip.failure)
            )
        else:
            self._resume_process(trip.process, result, trip.failure)
