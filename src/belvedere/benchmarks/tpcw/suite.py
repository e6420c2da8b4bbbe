"""TPC-W: response time of every statement with and without the advised views, in one run.

Each statement runs on each system in turn, RUNS times; a run is the mean of several executions with
drawn parameters. The tables are those of the Synergy paper: joins (figure 12), writes (figure 14),
the sum over all statements (table II), size (table III), and what locks cost (figure 11).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence

from rich.progress import Progress

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.report.plots import Plot, bar_points
from belvedere.benchmarks.tpcw.generate import TpcwRandom, TpcwSize, choose_size
from belvedere.benchmarks.tpcw.mixes import write_workload
from belvedere.benchmarks.tpcw.statements import (
    CLEAR_CART,
    QUERIES,
    SEARCHES,
    STATEMENTS,
    WRITES,
    KeySource,
    TpcwStatement,
)
from belvedere.benchmarks.tpcw.systems import (
    ADVISED,
    PLAIN,
    POSTGRES,
    ROW_LOCKS,
    SYNERGY,
    VARIANTS,
    WORKLOAD,
    RowLockSystem,
    TpcwStore,
    TpcwSystem,
    open_systems,
)

RUNS = 10
RUN_S = 0.05
"""Seconds of executions in one run, unless one takes longer."""

EXECUTIONS_MAX = 50
WARM_UP = 3
FAST_QUERIES = ("Q4", "Q5", "Q10", "Q11")
"""The joins for which the goal is a factor of 20."""

LOCKS = (10, 100, 1_000)
PUBLISHED_LOCKS_MS = (342, 571, 2_182)

Times = dict[str, dict[str, list[float]]]
"""Milliseconds of each run, by statement and system."""


def run(
    customers: int,
    seed: int,
    *,
    items: int | None = None,
    database: str | None = None,
    variants: Sequence[str] = VARIANTS,
    runs: int = RUNS,
) -> BenchmarkReport:
    size = choose_size(customers, items)
    report = BenchmarkReport(f"tpcw, {customers:,} customers, {size.items:,} items", seed)
    chosen = (ADVISED,) if database else tuple(variants)
    with open_systems(size, seed, chosen, database) as systems:
        if POSTGRES in chosen and POSTGRES not in systems:
            report.absent.append("PostgreSQL: its wheel is not installed")
        times = _time_everything(report, systems, size, seed, runs)
        _add_query_figures(report, times)
        _add_write_figures(report, times)
        _add_sum_figures(report, times)
        _add_size_figures(report, systems)
        _add_lock_figures(report, systems, size, seed)
        _add_plots(report, times)
    return report


def _time_everything(
    report: BenchmarkReport,
    systems: dict[str, TpcwSystem],
    size: TpcwSize,
    seed: int,
    runs: int,
) -> Times:
    """Views are made after a first pass without them where there is one store only."""
    times: Times = {name: {} for name in STATEMENTS}
    sources = {name: KeySource(TpcwRandom(seed), size) for name in systems}
    if PLAIN not in systems:
        (only,) = systems.values()
        source = KeySource(TpcwRandom(seed), size, base=10_000_000)
        _time_systems({PLAIN: only}, {PLAIN: source}, times, runs)
    workload = write_workload("once")
    for variant, system in systems.items():
        if isinstance(system, TpcwStore) and variant != PLAIN:
            advice = system.advise_views(workload, variant=variant)
            report.add(Figure(f"views, {variant}", float(len(advice.views)), "views"))
            if isinstance(system, RowLockSystem):
                system.prepare_locks()
    _time_systems(systems, sources, times, runs)
    return times


def _time_systems(
    systems: dict[str, TpcwSystem], sources: dict[str, KeySource], times: Times, runs: int
) -> None:
    with Progress(transient=True) as progress:
        for statement in progress.track(list(STATEMENTS.values())):
            for name, system in systems.items():
                _warm_up(system, sources[name], statement)
                times[statement.name][name] = []
            for _ in range(runs):
                for name, system in systems.items():
                    taken = _time_run(system, sources[name], statement)
                    times[statement.name][name].append(taken)


def _warm_up(system: TpcwSystem, source: KeySource, statement: TpcwStatement) -> None:
    for _ in range(WARM_UP):
        _execute(system, source, statement)
    if isinstance(system, RowLockSystem) and not statement.is_query:
        for needed in statement.needs:
            one = STATEMENTS[needed]
            system.run(one.sql, one.draw(source))
        system.count_entries(statement.name, statement.sql, statement.draw(source))


def _time_run(system: TpcwSystem, source: KeySource, statement: TpcwStatement) -> float:
    """The mean of some executions, in milliseconds."""
    spent, count = 0.0, 0
    while spent < RUN_S and count < EXECUTIONS_MAX:
        spent += _execute(system, source, statement)
        count += 1
    return spent / count * 1000


def _execute(system: TpcwSystem, source: KeySource, statement: TpcwStatement) -> float:
    for needed in statement.needs:
        one = STATEMENTS[needed]
        system.run(one.sql, one.draw(source))
    parameters = statement.draw(source)
    started = time.perf_counter()
    if statement.is_query:
        system.run(statement.sql, parameters)
    else:
        system.run_write(statement.name, statement.sql, parameters)
    return time.perf_counter() - started


# -- figures ---------------------------------------------------------------------------------------


def _mean(times: Times, statement: str, system: str) -> float:
    return statistics.fmean(times[statement][system])


def _standard_error(times: Times, statement: str, system: str) -> float:
    runs = times[statement][system]
    return statistics.stdev(runs) / math.sqrt(len(runs)) if len(runs) > 1 else 0.0


def _add_statement(
    report: BenchmarkReport, times: Times, name: str, goal: str, published: str = ""
) -> None:
    for system in times[name]:
        if system == PLAIN:
            continue
        error = _standard_error(times, name, system)
        value, base = _mean(times, name, system), _mean(times, name, PLAIN)
        report.add(
            Figure(
                f"{name}, {system} (s.e. {error:.3g} ms)",
                value,
                "ms",
                goal if system == ADVISED else "",
                base,
                published if system == ADVISED else "",
            )
        )


def _add_query_figures(report: BenchmarkReport, times: Times) -> None:
    for query in (*QUERIES, *SEARCHES):
        goal = "<= 0.05 ratio" if query.name in FAST_QUERIES else "<= 1.1 ratio"
        _add_statement(report, times, query.name, goal)
    for system in times["Q1"]:
        if system == PLAIN:
            continue
        speedups = [_mean(times, q.name, PLAIN) / _mean(times, q.name, system) for q in QUERIES]
        geometric = math.exp(statistics.fmean(map(math.log, speedups)))
        published = {ADVISED: "28.2x on average", SYNERGY: "28.2x on average"}.get(system, "")
        goal = ">= 3 value" if system == ADVISED else ""
        report.add(
            Figure(f"Q1 to Q11, {system}: faster by", geometric, "x", goal, published=published)
        )


def _add_write_figures(report: BenchmarkReport, times: Times) -> None:
    for write in (*WRITES, CLEAR_CART):
        _add_statement(report, times, write.name, "")
    for system in times["W1"]:
        if system != PLAIN:
            slowdowns = [_mean(times, w.name, system) / _mean(times, w.name, PLAIN) for w in WRITES]
            geometric = math.exp(statistics.fmean(map(math.log, slowdowns)))
            goal = "<= 2 value" if system == ADVISED else ""
            report.add(Figure(f"W1 to W13, {system}: slower by", geometric, "x", goal))


def _add_sum_figures(report: BenchmarkReport, times: Times) -> None:
    """Table II: the response times of all statements, added up."""
    published = {ADVISED: "33.7 s of 173.4 s, 80.5 % less", ROW_LOCKS: "77.4 s of 173.4 s"}
    published[WORKLOAD] = "132.4 s of 173.4 s"
    names = [one.name for one in (*QUERIES, *WRITES)]
    base = sum(_mean(times, name, PLAIN) for name in names)
    for system in times["Q1"]:
        if system != PLAIN:
            total = sum(_mean(times, name, system) for name in names)
            goal = "<= 0.1 ratio" if system == ADVISED else ""
            report.add(
                Figure(
                    f"sum of all statements, {system}",
                    total,
                    "ms",
                    goal,
                    base,
                    published.get(system, ""),
                )
            )


def _add_size_figures(report: BenchmarkReport, systems: dict[str, TpcwSystem]) -> None:
    """Table III: the size of the database."""
    sizes = {name: system.measure_bytes() for name, system in systems.items()}
    base = sizes.get(PLAIN)
    for name, found in sizes.items():
        if found is not None and base is not None and name != PLAIN:
            published = "2.1x" if name == ADVISED else ""
            report.add(Figure(f"size, {name}", found / 1e6, "MB", "", base / 1e6, published))


def _add_lock_figures(
    report: BenchmarkReport, systems: dict[str, TpcwSystem], size: TpcwSize, seed: int
) -> None:
    system = systems.get(ADVISED)
    if not isinstance(system, TpcwStore):
        return
    source = KeySource(TpcwRandom(seed + 1), size, base=20_000_000)
    roots = []
    for write in WRITES:
        for needed in write.needs:
            one = STATEMENTS[needed]
            system.run(one.sql, one.draw(source))
        counts = system.count_locks(write.sql, write.draw(source))
        roots.append(counts.pop("root", 0))
        others = sum(counts.values())
        if others:
            report.add(Figure(f"other locks of {write.name}", float(others), "locks"))
    report.add(Figure("root locks of a write, at most", float(max(roots)), "locks", "<= 1 value"))
    _add_lock_times(report, system)


def _add_lock_times(report: BenchmarkReport, system: TpcwStore) -> None:
    """Figure 11: taking and releasing so many locks."""
    for count, published in zip(LOCKS, PUBLISHED_LOCKS_MS, strict=True):
        started = time.perf_counter()
        with system.session.host.begin() as transaction:
            for number in range(count):
                transaction.lock_root(b"benchmark/%d" % number)
        taken = (time.perf_counter() - started) * 1000
        report.add(Figure(f"{count} locks", taken, "ms", published=f"{published} ms"))


def _add_plots(report: BenchmarkReport, times: Times) -> None:
    for title, statements in (("TPC-W joins", QUERIES), ("TPC-W writes", WRITES)):
        names = tuple(one.name for one in statements)
        curves = {
            system: bar_points([_mean(times, name, system) * 1000 for name in names])
            for system in times[names[0]]
        }
        report.plots.append(Plot(title, "statement", "microseconds", curves, bars=names))
