"""`belvedere bench scaling [--database hbase://host:port/namespace]`.

Curves of commits a second and latencies for 1 to 200 nodes on a cluster of 50 region servers with
1,000 data regions: locks, log and outcomes in 4 regions each and in 64, with 16, 64 and 256 client
threads a node, uniform and skewed keys, with and without a view. With a database, which must not be
there yet and is removed, service times are measured on it, and so are 1, 2 and 4 processes, beside
what the model says of them.
"""

from __future__ import annotations

from belvedere.benchmarks.hbase.shop import Sizes, load_shop, require_empty
from belvedere.benchmarks.hbase.writes import PROCESSES, process_rate
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.report.plots import Plot
from belvedere.benchmarks.scaling.cluster import ClusterShape
from belvedere.benchmarks.scaling.fleet import Load, Outcome, run_fleet
from belvedere.benchmarks.scaling.service_times import (
    MEASURED,
    ServiceTimes,
    measure_best_times,
)
from belvedere.benchmarks.scaling.spark_model import JOINS, SUMS, changes_per_second
from belvedere.errors import InvalidInput
from belvedere.interfaces.dbapi import connect
from belvedere.kv.hbase.exchange import Exchange
from belvedere.kv.hbase.store import HBaseCells
from belvedere.kv.hbase.tables import drop_tables
from belvedere.kv.hbase.url import is_hbase_url, parse_url
from belvedere.txn.row_atomic.hbase_setup import SPREAD_REGIONS, build_table_layout
from belvedere.txn.row_atomic.node import NodeSettings

NODES = (1, 2, 5, 10, 20, 50, 100, 200)
THREADS, MORE_THREADS, MOST_THREADS = 16, 64, 256
SERVERS = 50
REGIONS = 64
ZIPF = 0.99
GROUPS = 1000
ROUNDS = 3
"""Of what is measured; the best counts."""

SECONDS_PER_NODE = 0.02
"""Of virtual time, at least: with many nodes queues take longer to fill."""

EXECUTORS = (1, 2, 4, 10, 20, 50, 100)
BATCH = 1_000_000
CASES = {
    "16 threads, 4 regions": (Load(0, THREADS), SPREAD_REGIONS),
    "16 threads": (Load(0, THREADS), REGIONS),
    "64 threads": (Load(0, MORE_THREADS), REGIONS),
    "256 threads": (Load(0, MOST_THREADS), REGIONS),
    "64 threads, Zipf keys": (Load(0, MORE_THREADS, skew=ZIPF), REGIONS),
    "64 threads, a view": (Load(0, MORE_THREADS, groups=GROUPS), REGIONS),
}


def run(scale: float, seed: int, *, database: str | None) -> BenchmarkReport:
    if database is not None and not is_hbase_url(database):
        raise InvalidInput("not a URL of an HBase database", sqlstate="22023", url=database)
    report = BenchmarkReport("scaling", seed)
    seconds = max(0.1, 0.8 * scale)
    times = MEASURED
    if database is not None:
        times = _measure_real_points(database, scale, seconds, seed, report)
    for name, value in times.as_milliseconds().items():
        report.add(Figure(f"service time: {name.replace('_', ' ')}", value, "ms"))
    nodes = tuple(count for count in NODES if count <= 200 * scale or count <= 2)
    _draw_curves(times, nodes, seconds, seed, report)
    _draw_spark(report)
    return report


def _measure_real_points(
    url: str, scale: float, seconds: float, seed: int, report: BenchmarkReport
) -> ServiceTimes:
    sizes = Sizes.at_scale(scale)
    with connect(url, autocommit=True) as con:
        require_empty(con, url)
        load_shop(con, sizes)
        store = HBaseCells(parse_url(url), build_table_layout(NodeSettings()), create=False)
        times = measure_best_times(store, con, max(50, sizes.calls), ROUNDS)
        store.close()
    try:
        for processes in PROCESSES:
            rate = max(process_rate(url, processes, sizes.calls) for _ in range(ROUNDS))
            shape = ClusterShape(1, cores=times.cores, data_regions=1)
            modelled = run_fleet(Load(processes, 1), shape, times, seconds, seed)
            name = f"commits/s, {processes} processes: the model, to the real ones"
            report.add(Figure(name, modelled.commits, "1/s", "", rate))
    finally:
        exchange = Exchange(parse_url(url))
        drop_tables(exchange)
        exchange.close()
    return times


def _draw_curves(
    times: ServiceTimes, nodes: tuple[int, ...], seconds: float, seed: int, report: BenchmarkReport
) -> None:
    commits: dict[str, list[tuple[float, float]]] = {}
    latency: dict[str, list[tuple[float, float]]] = {}
    for name, (load, regions) in CASES.items():
        for count in nodes:
            outcome = run_fleet(
                Load(count, load.threads, skew=load.skew, groups=load.groups),
                ClusterShape(SERVERS, regions=regions),
                times,
                max(seconds, count * SECONDS_PER_NODE * min(1.0, seconds)),
                seed,
            )
            commits.setdefault(name, []).append((count, outcome.commits))
            latency.setdefault(name, []).append((count, 1000 * outcome.latency))
            _report_point(f"{name}, {count} nodes", outcome, report)
    title = f"commits a second ({SERVERS} region servers)"
    report.plots.append(Plot(title, "nodes", "commits/s", commits, logarithmic=True))
    report.plots.append(
        Plot("latency of a commit (median)", "nodes", "ms", latency, logarithmic=True)
    )


def _report_point(name: str, outcome: Outcome, report: BenchmarkReport) -> None:
    report.add(Figure(f"{name}: commits/s", outcome.commits, "1/s"))
    report.add(Figure(f"{name}: latency p50", 1000 * outcome.latency, "ms"))
    report.add(Figure(f"{name}: latency p99", 1000 * outcome.latency_p99, "ms"))
    report.add(Figure(f"{name}: run again, of a commit", outcome.retries, "times"))
    report.add(Figure(f"{name}: commits of a group", outcome.group, "commits"))
    for resource, share in outcome.busiest[:2]:
        report.add(Figure(f"{name}: {resource} busy", 100 * share, "%"))


def _draw_spark(report: BenchmarkReport) -> None:
    curves: dict[str, list[tuple[float, float]]] = {
        name: [(count, changes_per_second(figures, BATCH, count)) for count in EXECUTORS]
        for name, figures in (("count and sum", SUMS), ("join and sum", JOINS))
    }
    title = f"views on Spark (a formula; batches of {BATCH:,} changes)"
    report.plots.append(Plot(title, "executors", "changes/s", curves, logarithmic=True))
    for name, points in curves.items():
        for count, rate in points:
            report.add(Figure(f"Spark, {name}, {count:.0f} executors", rate, "changes/s"))
