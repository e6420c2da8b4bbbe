"""TPC-W: response time of every statement with and without the advised views, in one run.

Each statement runs RUNS times on each system (`timing`). The tables are those of the Synergy
paper: joins (figure 12), writes (figure 14), the sum over all statements (table II), size (table
III), scans of joins (figure 10), and what locks cost (figure 11). Goals are for CPU time where
every store is in this process, so that other work on the machine does not decide; for response
times otherwise.

A store at a URL has every variant one after the other, its views dropped between them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.report.plots import Plot, bar_points
from belvedere.benchmarks.tpcw.generate import TpcwRandom, TpcwSize, choose_size
from belvedere.benchmarks.tpcw.join_scans import add_scan_figures
from belvedere.benchmarks.tpcw.mixes import write_workload
from belvedere.benchmarks.tpcw.statements import (
    CLEAR_CART,
    QUERIES,
    SEARCHES,
    WRITES,
    KeySource,
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
    choose_kind,
    load_tables,
    open_postgres,
    open_systems,
)
from belvedere.benchmarks.tpcw.timing import StatementTimes, run_needed_writes, time_systems
from belvedere.interfaces.dbapi import connect

RUNS = 10
FAST_QUERIES = ("Q4", "Q5", "Q10", "Q11")
"""The joins for which the goal is a factor of 20."""

LOCKS = (10, 100, 1_000)
PUBLISHED_LOCKS_MS = (342, 571, 2_182)


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
    times = StatementTimes()
    if database:
        _measure_in_turn(report, times, database, size, seed, variants, runs)
    else:
        _measure_side_by_side(report, times, size, seed, variants, runs)
    judged_by_cpu = database is None
    _add_query_figures(report, times, judged_by_cpu)
    _add_write_figures(report, times, judged_by_cpu)
    _add_sum_figures(report, times, judged_by_cpu)
    _add_plots(report, times)
    return report


def _measure_side_by_side(
    report: BenchmarkReport,
    times: StatementTimes,
    size: TpcwSize,
    seed: int,
    variants: Sequence[str],
    runs: int,
) -> None:
    """A store for each variant, all in this process."""
    with open_systems(size, seed, variants) as systems:
        if POSTGRES in variants and POSTGRES not in systems:
            report.absent.append("PostgreSQL: its wheel is not installed")
        for variant, system in systems.items():
            _prepare_system(report, variant, system)
        sources = {name: KeySource(TpcwRandom(seed), size) for name in systems}
        time_systems(systems, sources, times, runs)
        _add_entry_figures(report, systems)
        _add_size_figures(report, systems)
        advised = systems.get(ADVISED)
        if isinstance(advised, TpcwStore):
            _add_lock_figures(report, advised, size, seed)
        plain = systems.get(PLAIN)
        if isinstance(plain, TpcwStore):
            add_scan_figures(report, plain, size, seed, goals=False)


def _measure_in_turn(
    report: BenchmarkReport,
    times: StatementTimes,
    database: str,
    size: TpcwSize,
    seed: int,
    variants: Sequence[str],
    runs: int,
) -> None:
    """One store for all variants, without views first; PostgreSQL has its own."""
    if POSTGRES in variants:
        with open_postgres(size, seed) as systems:
            if systems:
                sources = {POSTGRES: KeySource(TpcwRandom(seed), size)}
                time_systems(systems, sources, times, runs)
            else:
                report.absent.append("PostgreSQL: its wheel is not installed")
    with connect(database, autocommit=True) as connection:
        load_tables(connection, size, seed)
        stores = [one for one in variants if one not in (PLAIN, POSTGRES)]
        for number, variant in enumerate((PLAIN, *stores)):
            system = choose_kind(variant)(connection, None)
            _prepare_system(report, variant, system)
            source = KeySource(TpcwRandom(seed), size, base=1_000_000 * (number + 1))
            time_systems({variant: system}, {variant: source}, times, runs)
            _add_entry_figures(report, {variant: system})
            if variant == ADVISED:
                _add_lock_figures(report, system, size, seed)
            system.drop_views()
            if variant == PLAIN:
                add_scan_figures(report, system, size, seed, goals=True)


def _prepare_system(report: BenchmarkReport, variant: str, system: TpcwSystem) -> None:
    if not isinstance(system, TpcwStore) or variant == PLAIN:
        return
    advice = system.advise_views(write_workload("once"), variant=variant)
    report.add(Figure(f"views, {variant}", float(len(advice.views)), "views"))
    if isinstance(system, RowLockSystem):
        system.prepare_locks()


# -- figures ---------------------------------------------------------------------------------------


def _add_statement(
    report: BenchmarkReport, times: StatementTimes, name: str, goal: str, judged_by_cpu: bool
) -> None:
    """The response time on every system, and the CPU time of the advised views where it counts."""
    for system in times.list_systems(name):
        if system == PLAIN:
            continue
        for cpu in (False, True) if judged_by_cpu and system == ADVISED else (False,):
            error = times.standard_error(name, system, cpu=cpu)
            title = f"{name}, {system}{', CPU' if cpu else ''} (s.e. {error:.3g} ms)"
            value = times.mean(name, system, cpu=cpu)
            base = times.mean(name, PLAIN, cpu=cpu)
            judged = system == ADVISED and cpu == judged_by_cpu
            report.add(Figure(title, value, "ms", goal if judged else "", base))


def _list_clocks(times: StatementTimes, system: str) -> list[bool]:
    """Whether figures of the system are by CPU: both, or response time only."""
    return [False, True] if times.has_cpu(system) else [False]


def _name_system(system: str, *, cpu: bool) -> str:
    return f"{system}, CPU" if cpu else system


def _add_query_figures(report: BenchmarkReport, times: StatementTimes, judged_by_cpu: bool) -> None:
    for query in (*QUERIES, *SEARCHES):
        goal = "<= 0.05 ratio" if query.name in FAST_QUERIES else "<= 1.1 ratio"
        _add_statement(report, times, query.name, goal, judged_by_cpu)
    goal = ">= 3 value" if judged_by_cpu else ">= 28.2 value"
    for system in times.list_systems("Q1"):
        if system == PLAIN:
            continue
        published = {ADVISED: "28.2x on average", SYNERGY: "28.2x on average"}.get(system, "")
        for cpu in _list_clocks(times, system):
            faster = 1 / times.compare(QUERIES, system, PLAIN, cpu=cpu)
            judged = system == ADVISED and cpu == judged_by_cpu
            name = f"Q1 to Q11, {_name_system(system, cpu=cpu)}: faster by"
            report.add(Figure(name, faster, "x", goal if judged else "", published=published))
            mean = times.average_speedup(QUERIES, system, PLAIN, cpu=cpu)
            goal_of_mean = ">= 28.2 value" if judged and not judged_by_cpu else ""
            name = f"Q1 to Q11, {_name_system(system, cpu=cpu)}: mean of how much faster"
            report.add(Figure(name, mean, "x", goal_of_mean, published=published))


def _add_write_figures(report: BenchmarkReport, times: StatementTimes, judged_by_cpu: bool) -> None:
    for write in (*WRITES, CLEAR_CART):
        _add_statement(report, times, write.name, "", judged_by_cpu)
    for system in times.list_systems("W1"):
        if system == PLAIN:
            continue
        for cpu in _list_clocks(times, system):
            slower = times.compare(WRITES, system, PLAIN, cpu=cpu)
            judged = system == ADVISED and cpu == judged_by_cpu
            name = f"W1 to W13, {_name_system(system, cpu=cpu)}: slower by"
            report.add(Figure(name, slower, "x", "<= 2 value" if judged else ""))


def _add_sum_figures(report: BenchmarkReport, times: StatementTimes, judged_by_cpu: bool) -> None:
    """Table II: the response times of all statements, added up."""
    published = {ADVISED: "33.7 s of 173.4 s, 80.5 % less", ROW_LOCKS: "77.4 s of 173.4 s"}
    published[WORKLOAD] = "132.4 s of 173.4 s"
    names = [one.name for one in (*QUERIES, *WRITES)]
    for system in times.list_systems("Q1"):
        if system == PLAIN:
            continue
        for cpu in _list_clocks(times, system):
            total, base = (
                sum(times.mean(name, one, cpu=cpu) for name in names) for one in (system, PLAIN)
            )
            judged = system == ADVISED and cpu == judged_by_cpu
            name = f"sum of all statements, {_name_system(system, cpu=cpu)}"
            goal = "<= 0.1 ratio" if judged else ""
            report.add(Figure(name, total, "ms", goal, base, published.get(system, "")))


def _add_entry_figures(report: BenchmarkReport, systems: dict[str, TpcwSystem]) -> None:
    for system in systems.values():
        if isinstance(system, RowLockSystem):
            for name, count in system.entries.items():
                if count:
                    report.add(Figure(f"entry locks of {name}, row locks", count, "locks"))


def _add_size_figures(report: BenchmarkReport, systems: dict[str, TpcwSystem]) -> None:
    """Table III: the size of the database."""
    sizes = {name: system.measure_bytes() for name, system in systems.items()}
    base = sizes.get(PLAIN)
    for name, found in sizes.items():
        if found is not None and base is not None and name != PLAIN:
            published = "2.1x" if name == ADVISED else ""
            report.add(Figure(f"size, {name}", found / 1e6, "MB", "", base / 1e6, published))


def _add_lock_figures(
    report: BenchmarkReport, system: TpcwStore, size: TpcwSize, seed: int
) -> None:
    source = KeySource(TpcwRandom(seed + 1), size, base=20_000_000)
    roots = []
    for write in WRITES:
        run_needed_writes(system, source, write)
        counts = system.count_locks(write.sql, write.draw(source))
        roots.append(counts.pop("root", 0))
        others = sum(counts.values())
        if others:
            report.add(Figure(f"other locks of {write.name}", float(others), "locks"))
    report.add(Figure("root locks of a write, at most", float(max(roots)), "locks", "<= 1 value"))
    _add_lock_times(report, system)


def _add_lock_times(report: BenchmarkReport, system: TpcwStore) -> None:
    """Figure 11: taking and releasing so many locks."""
    found = []
    for count, published in zip(LOCKS, PUBLISHED_LOCKS_MS, strict=True):
        started = time.perf_counter()
        with system.session.host.begin() as transaction:
            for number in range(count):
                transaction.lock_root(b"benchmark/%d" % number)
        taken = (time.perf_counter() - started) * 1000
        found.append((float(count), taken))
        report.add(Figure(f"{count} locks", taken, "ms", published=f"{published} ms"))
    published_points = zip(map(float, LOCKS), map(float, PUBLISHED_LOCKS_MS), strict=True)
    curves = {"published": list(published_points), "measured": found}
    report.plots.append(
        Plot("TPC-W locks", "locks", "ms", curves, logarithmic=True, logarithmic_y=True)
    )


def _add_plots(report: BenchmarkReport, times: StatementTimes) -> None:
    for title, statements in (("TPC-W joins", QUERIES), ("TPC-W writes", WRITES)):
        names = tuple(one.name for one in statements)
        curves = {
            system: bar_points([times.mean(name, system) * 1000 for name in names])
            for system in times.list_systems(names[0])
        }
        report.plots.append(
            Plot(title, "statement", "microseconds", curves, logarithmic_y=True, bars=names)
        )
