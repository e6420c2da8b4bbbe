"""Benchmarks of deferred maintenance: changes a second, lag, backfill, many views of one table."""

from __future__ import annotations

import random
import threading
import time
from functools import partial
from pathlib import Path

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.report.plots import Plot
from belvedere.benchmarks.views.workload import (
    ON_DEMAND,
    ThreadGroup,
    create_view,
    find_view,
    get_database,
    load_rows,
    open_connection,
    percentile,
    run_paced,
    split_spans,
    time_call,
    try_statement,
    uniform_keys,
    wait_for_views,
)
from belvedere.catalog.model import Maintenance
from belvedere.interfaces.dbapi import Connection
from belvedere.views.compile.defined_view import NewView

ROWS = 200_000
GROUPS = 1_000
TRANSACTION_ROWS = 100
RATE = 2_000
SECONDS = 5.0
VIEW_COUNTS = (1, 10, 100, 300)
WRITES = 10_000

COUNT_QUERY = "SELECT g, count(*) AS n, sum(v) AS total FROM t GROUP BY g"
JOIN_QUERY = (
    "SELECT p.kind, count(*) AS n, sum(t.v) AS total FROM t JOIN parents p ON p.id = t.g"
    " GROUP BY p.kind"
)
FILTER_QUERY = "SELECT id, v FROM t WHERE v % 10 = 0"


def _create_tables(connection: Connection, rows: int) -> None:
    connection.execute("CREATE TABLE parents (id integer PRIMARY KEY, kind integer NOT NULL)")
    load_rows(connection, "parents", f"i, i % {GROUPS // 10}", GROUPS)
    connection.execute(
        "CREATE TABLE t (id bigint PRIMARY KEY, g integer NOT NULL, v bigint NOT NULL)"
    )
    load_rows(connection, "t", f"i, i % {GROUPS}, i", rows)


# -- (b) -------------------------------------------------------------------------------------------


def measure_throughput(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """Apply the pending changes of the log by one REFRESH: in Python, in one thread; and, without a
    goal, by sums in DuckDB. The view is not recomputed here, though every row changes."""
    rows = max(int(ROWS * scale), GROUPS)
    views = {"count/sum": (COUNT_QUERY, 200_000), "join + aggregate": (JOIN_QUERY, 50_000)}
    for name, (query, wanted) in views.items():
        with open_connection(directory / name.replace("/", "_")) as connection:
            _create_tables(connection, rows)
            settings = ", ".join(f"{key} = '{value}'" for key, value in ON_DEMAND.items())
            reason = try_statement(
                connection, f"CREATE MATERIALIZED VIEW v WITH ({settings}) AS {query}"
            )
            if reason is not None:
                report.absent.append(f"(b) maintenance of {name}: {reason}")
                continue
            for tier, goal in (("python", f">= {wanted} value"), ("duckdb", "")):
                connection.execute(f"SET maintenance_tier = {tier}")
                rates = []
                for _ in range(3):
                    _change_all(connection, rows)
                    taken = time_call(partial(connection.execute, "REFRESH MATERIALIZED VIEW v"))
                    rates.append(rows / taken)
                what = f"(b) maintenance, {name}" + (", by DuckDB" if tier == "duckdb" else "")
                report.add(Figure(what, max(rates), "changes/s", goal))


def _change_all(connection: Connection, rows: int) -> None:
    """Update every row once, in transactions of TRANSACTION_ROWS rows."""
    for span in split_spans(rows, TRANSACTION_ROWS):
        connection.execute("UPDATE t SET v = v + 1 WHERE id BETWEEN ? AND ?", span)


# -- (c) -------------------------------------------------------------------------------------------


def measure_freshness(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """The time from a commit until another thread sees the view's watermark reach it."""
    rows = max(int(ROWS * scale), GROUPS)
    writes = max(int(RATE * SECONDS * min(10 * scale, 1)), 200)
    with open_connection(directory / "store") as connection:
        _create_tables(connection, rows)
        create_view(connection, "v", COUNT_QUERY, maintenance="deferred")
        wait_for_views(connection, "v")
        lags = commit_to_visible(connection, "v", uniform_keys(random.Random(seed), rows, writes))
    for share, goal in ((0.5, ""), (0.99, "<= 50 value")):
        name = f"(c) commit to visible, p{share * 100:.0f} at {RATE} writes/s"
        report.add(Figure(name, percentile(lags, share) * 1e3, "ms", goal))


def commit_to_visible(
    connection: Connection, name: str, keys: list[int], rate: float = RATE
) -> list[float]:
    """Update rows of `t` at this rate; seconds from each commit until the view has it."""
    db, view = get_database(connection), find_view(connection, name)
    committed: list[tuple[int, float]] = []
    seen: list[tuple[int, float]] = []
    ended = threading.Event()

    def write_key(key: int) -> None:
        connection.execute("UPDATE t SET v = v + 1 WHERE id = ?", (key,))
        committed.append((db.position, time.perf_counter()))

    def watch_watermark() -> None:
        while not ended.wait(0.0005):
            reached = db.views.read_view_watermark(view)
            if not seen or reached > seen[-1][0]:
                seen.append((reached, time.perf_counter()))

    watcher = ThreadGroup(watch_watermark)
    try:
        run_paced(rate, [partial(write_key, key) for key in keys])
        wait_for_views(connection, name)
        goal = db.position
        while not seen or seen[-1][0] < goal:
            time.sleep(0.001)
    finally:
        ended.set()
        watcher.join()
    return compute_lags(committed, seen)


def compute_lags(committed: list[tuple[int, float]], seen: list[tuple[int, float]]) -> list[float]:
    """For every (position, time) of a commit, the delay until a watermark reached it."""
    found, at = [], 0
    for position, moment in committed:
        while seen[at][0] < position:
            at += 1
        found.append(max(seen[at][1] - moment, 0.0))
    return found


# -- (d) -------------------------------------------------------------------------------------------


def measure_backfill(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    rows = max(int(ROWS * scale), GROUPS)
    views = {"count/sum": COUNT_QUERY, "join + aggregate": JOIN_QUERY, "filter": FILTER_QUERY}
    with open_connection(directory / "store") as connection:
        _create_tables(connection, rows)
        for name, query in views.items():
            rates = []
            for _ in range(3):
                rates.append(rows / time_call(partial(create_view, connection, "v", query)))
                connection.execute("DROP MATERIALIZED VIEW v")
            goal = ">= 200000 value" if name == "count/sum" else ""
            report.add(Figure(f"(d) backfill, {name}", max(rates), "rows/s", goal))


# -- (f) -------------------------------------------------------------------------------------------


def measure_many_views(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """Saturated writes with n deferred views; the lag of the views afterwards, that of paced
    writes, and their size."""
    rows = max(int(ROWS * scale), GROUPS)
    writes = max(int(WRITES * min(scale * 10, 1)), 100)
    keys = uniform_keys(random.Random(seed), rows, writes)
    rates, lag = [], []
    for count in VIEW_COUNTS:
        with open_connection(directory / str(count)) as connection:
            _create_tables(connection, rows)
            made = time_call(partial(_make_views, connection, count))
            names = [f"v{number}" for number in range(count)]
            wait_for_views(connection, *names)
            taken = time_call(partial(_write_keys, connection, keys))
            behind = time_call(partial(wait_for_views, connection, *names))
            lags = commit_to_visible(connection, names[-1], keys)
            size = sum(
                get_database(connection).views.measure_stored_size(find_view(connection, name))[1]
                for name in names
            )
        rates.append((float(count), writes / taken))
        lag.append((float(count), behind))
        title = f"(f) {count} deferred views"
        report.add(Figure(f"{title}, writes", writes / taken, "1/s", "", rates[0][1]))
        report.add(Figure(f"{title}, lag after {writes} writes", behind * 1e3, "ms"))
        name = f"{title}, commit to visible, p99 at {RATE} writes/s"
        report.add(Figure(name, percentile(lags, 0.99) * 1e3, "ms", "<= 1000 value"))
        each = (taken + behind) / (writes * count) * 1e6
        report.add(Figure(f"{title}, a write and its upkeep, for each view", each, "us"))
        report.add(Figure(f"{title}, state", size / 1e6, "MB"))
        report.add(Figure(f"{title}, filled in one walk", rows * count / made, "rows/s"))
    for title, label, points in (
        ("Writes beside deferred views", "writes a second", rates),
        ("Lag of deferred views", "seconds behind after the writes", lag),
    ):
        report.plots.append(Plot(title, "views", label, {"count/sum": points}, logarithmic=True))


def _make_views(connection: Connection, count: int) -> None:
    """Create `count` deferred views of one table, each with another sum."""
    wanted = [
        NewView(
            f"v{number}",
            f"SELECT g, count(*) AS n, sum(v + {number}) AS total FROM t GROUP BY g",
            Maintenance.DEFERRED,
        )
        for number in range(count)
    ]
    get_database(connection).create_views(wanted)


def _write_keys(connection: Connection, keys: list[int]) -> None:
    for key in keys:
        connection.execute("UPDATE t SET v = v + 1 WHERE id = ?", (key,))
