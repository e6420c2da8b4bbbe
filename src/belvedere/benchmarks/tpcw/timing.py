"""Times of the statements of TPC-W on several systems, a few executions of each in turn.

A run is the mean of several executions with drawn parameters, the same ones on each system. The
systems take turns every few executions, in an order drawn for each turn, so that other work on the
machine, and what the system before has left in the caches, hits them alike. CPU time is that of the
thread that asks, and says nothing of a server's: it is None for one.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich.progress import Progress

from belvedere.benchmarks.tpcw.statements import STATEMENTS, KeySource, TpcwStatement
from belvedere.benchmarks.tpcw.systems import RowLockSystem, TpcwSystem

RUN_S = 0.05
"""Seconds of executions in one run of the system that is slowest, unless one takes longer."""

EXECUTIONS_MAX = 50
TURN = 2
"""Executions that count of one turn of a system; one before them does not."""

WARM_UP = 3


@dataclass(frozen=True, slots=True)
class RunTime:
    """Milliseconds of one execution, the mean of a run; of CPU where the system is no server."""

    wall: float
    cpu: float | None


class StatementTimes:
    """The times of every statement on every system."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, list[RunTime]]] = {}

    def add_runs(self, statement: str, system: str, runs: list[RunTime]) -> None:
        self._runs.setdefault(statement, {})[system] = runs

    def list_systems(self, statement: str) -> list[str]:
        return list(self._runs[statement])

    def mean(self, statement: str, system: str, *, cpu: bool = False) -> float:
        return statistics.fmean(self._list_times(statement, system, cpu=cpu))

    def standard_error(self, statement: str, system: str, *, cpu: bool = False) -> float:
        times = self._list_times(statement, system, cpu=cpu)
        return statistics.stdev(times) / math.sqrt(len(times)) if len(times) > 1 else 0.0

    def has_cpu(self, system: str) -> bool:
        return all(run.cpu is not None for by in self._runs.values() for run in by.get(system, ()))

    def compare(
        self, statements: Iterable[TpcwStatement], system: str, base: str, *, cpu: bool = False
    ) -> float:
        """How many times as long the statements take as on the other system: geometric mean."""
        ratios = [
            self.mean(one.name, system, cpu=cpu) / self.mean(one.name, base, cpu=cpu)
            for one in statements
        ]
        return math.exp(statistics.fmean(map(math.log, ratios)))

    def average_speedup(
        self, statements: Iterable[TpcwStatement], system: str, base: str, *, cpu: bool = False
    ) -> float:
        """How many times faster the statements are than on the other system: arithmetic mean."""
        return statistics.fmean(
            self.mean(one.name, base, cpu=cpu) / self.mean(one.name, system, cpu=cpu)
            for one in statements
        )

    def _list_times(self, statement: str, system: str, *, cpu: bool) -> list[float]:
        runs = self._runs[statement][system]
        if cpu:
            return [run.cpu for run in runs if run.cpu is not None]
        return [run.wall for run in runs]


def time_systems(
    systems: dict[str, TpcwSystem],
    sources: dict[str, KeySource],
    times: StatementTimes,
    runs: int,
) -> None:
    rng = random.Random(1)
    with Progress(transient=True) as progress:
        for statement in progress.track(list(STATEMENTS.values())):
            for name, system in systems.items():
                _warm_up(system, sources[name], statement)
            found: dict[str, list[RunTime]] = {name: [] for name in systems}
            for _ in range(runs):
                for name, one in _time_run(systems, sources, statement, rng).items():
                    found[name].append(one)
            for name, taken in found.items():
                times.add_runs(statement.name, name, taken)


def _warm_up(system: TpcwSystem, source: KeySource, statement: TpcwStatement) -> None:
    for _ in range(WARM_UP):
        _execute(system, source, statement, lambda: None)
    if isinstance(system, RowLockSystem) and not statement.is_query:
        draws = []
        for _ in range(WARM_UP):
            run_needed_writes(system, source, statement)
            draws.append(statement.draw(source))
        system.count_entries(statement.name, statement.sql, draws)


def _time_run(
    systems: dict[str, TpcwSystem],
    sources: dict[str, KeySource],
    statement: TpcwStatement,
    rng: random.Random,
) -> dict[str, RunTime]:
    wall, cpu = dict.fromkeys(systems, 0.0), dict.fromkeys(systems, 0.0)
    count, order = 0, list(systems)
    while count < EXECUTIONS_MAX and max(wall.values()) < RUN_S:
        rng.shuffle(order)
        for name in order:
            system = systems[name]
            # The one before has filled the caches of the processor with its own.
            _execute(system, sources[name], statement, lambda: None)
            for _ in range(TURN):
                before = [0.0, 0.0]

                def start(before: list[float] = before) -> None:
                    before[:] = time.perf_counter(), time.thread_time()

                _execute(system, sources[name], statement, start)
                wall[name] += time.perf_counter() - before[0]
                cpu[name] += time.thread_time() - before[1]
        count += TURN
    return {
        name: RunTime(
            wall[name] / count * 1000, None if system.is_server else cpu[name] / count * 1000
        )
        for name, system in systems.items()
    }


def _execute(
    system: TpcwSystem, source: KeySource, statement: TpcwStatement, start: Callable[[], object]
) -> None:
    """Run the statement, `start` just before it."""
    run_needed_writes(system, source, statement)
    parameters = statement.draw(source)
    start()
    if statement.is_query:
        system.run(statement.sql, parameters)
    else:
        system.run_write(statement.name, statement.sql, parameters)


def run_needed_writes(system: TpcwSystem, source: KeySource, statement: TpcwStatement) -> None:
    """The writes that make the rows which the statement is about."""
    for needed in statement.needs:
        one = STATEMENTS[needed]
        system.run(one.sql, one.draw(source))
