"""The refresh matrix of pg_trickle: five views, three sizes, three shares of changed rows.

A third of the changed rows is updated, a third deleted, a third inserted. Incremental is REFRESH of
a deferred view; full is CREATE MATERIALIZED VIEW of the same query on the same rows; PostgreSQL
gets the same statements and runs REFRESH, in the same run, where it is installed.
The cost of one change is also given in units of a raw get of the engine at that size, for the same
number of changes at every size, so that the fixed cost of a statement does not hide the growth.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from belvedere.benchmarks.report import postgres_peer
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure, alternate_rounds
from belvedere.benchmarks.report.plots import Plot
from belvedere.benchmarks.views.workload import (
    create_view,
    get_database,
    load_rows,
    open_connection,
    split_spans,
    time_call,
    try_statement,
)
from belvedere.interfaces.dbapi import Connection

SIZES = (10_000, 100_000, 1_000_000)
SHARES = (0.01, 0.1, 0.5)
PARENTS = 1_000
TRANSACTION_ROWS = 1_000
GETS = 2_000
EQUAL_CHANGES = 3_000
"""Changes of a cycle that compares sizes, at scale 1."""

EQUAL_CYCLES = 4
"""The number of such cycles; each view is judged by its better quarter."""

VIEWS = {
    "scan": "SELECT id, g, v FROM t",
    "filter": "SELECT id, v FROM t WHERE v % 10 = 0",
    "aggregate": "SELECT g, count(*) AS n, sum(v) AS total FROM t GROUP BY g",
    "join": "SELECT t.id, t.v, p.kind FROM t JOIN parents p ON p.id = t.g",
    "join + aggregate": "SELECT p.kind, count(*) AS n, sum(t.v) AS total"
    " FROM t JOIN parents p ON p.id = t.g GROUP BY p.kind",
}
PUBLISHED = {
    ("scan", 0.01): "300 -> 4.6 ms (66x)",
    ("scan", 0.1): "265 -> 112 ms (2.4x)",
    ("scan", 0.5): "549 -> 822 ms (0.7x)",
    ("filter", 0.01): "134 -> 3.4 ms (40x)",
    ("filter", 0.1): "152 -> 83 ms (1.8x)",
    ("filter", 0.5): "212 -> 175 ms (1.2x)",
    ("aggregate", 0.01): "17.2 -> 2.5 ms (6.8x)",
    ("aggregate", 0.1): "18.3 -> 10.7 ms (1.7x)",
    ("aggregate", 0.5): "25.3 -> 40.4 ms (0.6x)",
    ("join", 0.01): "294 -> 18 ms (16x)",
    ("join", 0.1): "454 -> 188 ms (2.4x)",
    ("join", 0.5): "348 -> 320 ms (1.1x)",
    ("join + aggregate", 0.01): "27.8 -> 14.6 ms (1.9x)",
    ("join + aggregate", 0.1): "31.4 -> 95.4 ms (0.3x)",
    ("join + aggregate", 0.5): "33.1 -> 35.1 ms (0.9x)",
}
"""pg_trickle, 100,000 rows, full and incremental."""


@dataclass(slots=True)
class LiveIds:
    """The existing ids: rows are deleted at the low end and inserted at the high end."""

    low: int
    high: int

    def third_of_share(self, share: float) -> int:
        """A third of this share of the rows."""
        return max(int((self.high - self.low) * share / 3), 1)

    def apply_changes(self, third: int, execute: Callable[[str, tuple[int, ...]], object]) -> None:
        """Delete, update and insert `third` rows each."""
        for first, last in split_spans(third, TRANSACTION_ROWS):
            deleted = (self.low + first, self.low + last)
            execute("DELETE FROM t WHERE id BETWEEN ? AND ?", deleted)
            updated = (self.low + third + first, self.low + third + last)
            execute("UPDATE t SET v = v + 1, g = (g + 7) % 1000 WHERE id BETWEEN ? AND ?", updated)
            made = (self.high + first, self.high + last)
            execute(
                "INSERT INTO t SELECT i, i % 1000, i FROM generate_series(?::int, ?::int) AS s (i)",
                made,
            )
        self.low, self.high = self.low + third, self.high + third


def measure_matrix(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in VIEWS}
    equal = max(int(EQUAL_CHANGES * scale / 3), 10)
    with postgres_peer.postgres_connection() as server:
        if server is None:
            report.absent.append("(e) REFRESH on PostgreSQL: its wheel is not installed")
        for size in SIZES:
            rows = max(int(size * scale), 100)
            with open_connection(directory / str(size)) as connection:
                reason = _set_up(connection, server, rows)
                if reason is not None:
                    report.absent.append(f"(e) the matrix: {reason}")
                    return
                window = LiveIds(0, rows)
                _measure_cost(connection, window, equal, seed, costs)
                _run_cycles(connection, server, window, equal, report)
    _report_flatness(report, costs)


def _set_up(connection: Connection, server: Any, rows: int) -> str | None:
    """Create tables and views on both sides; return the reason if one is not supported."""
    for side in (connection, server):
        if side is not None:
            for statement in (
                "CREATE TABLE parents (id integer PRIMARY KEY, kind integer NOT NULL)",
                "INSERT INTO parents SELECT i, i % 100"
                f" FROM generate_series(0, {PARENTS - 1}) AS s (i)",
                "CREATE TABLE t (id integer PRIMARY KEY, g integer NOT NULL, v bigint NOT NULL)",
            ):
                side.execute(statement)
    load_rows(connection, "t", f"i, i % {PARENTS}, i", rows)
    for number, (name, query) in enumerate(VIEWS.items()):
        # Different intervals put the views in different groups: REFRESH of one leaves the others.
        reason = try_statement(
            connection,
            f"CREATE MATERIALIZED VIEW {name_view(name)} WITH (maintenance = 'deferred',"
            f" refresh_every = '{3600 + number} s') AS {query}",
        )
        if reason is not None:
            return reason
    if server is not None:
        server.execute(
            f"INSERT INTO t SELECT i, i % {PARENTS}, i FROM generate_series(0, {rows - 1}) AS s (i)"
        )
        for name, query in VIEWS.items():
            server.execute(f"CREATE MATERIALIZED VIEW {name_view(name)} AS {query}")
        server.execute("ANALYZE")
    return None


def _measure_cost(
    connection: Connection,
    window: LiveIds,
    equal: int,
    seed: int,
    costs: dict[str, list[tuple[float, float]]],
) -> None:
    """Measure the cost of one of `equal` changes at this size, in raw gets."""
    rows, get_us = window.high, _raw_get(connection, window, seed)

    def time_changes() -> float:
        return time_call(lambda: window.apply_changes(equal, connection.execute))

    def time_refresh(name: str) -> float:
        return time_call(lambda: connection.execute(f"REFRESH MATERIALIZED VIEW {name_view(name)}"))

    _, *taken = alternate_rounds(
        EQUAL_CYCLES, time_changes, *[partial(time_refresh, name) for name in costs]
    )
    for points, view_s in zip(costs.values(), taken, strict=True):
        points.append((float(rows), view_s / (3 * equal) * 1e6 / get_us))


def _run_cycles(
    connection: Connection, server: Any, window: LiveIds, equal: int, report: BenchmarkReport
) -> None:
    rows = window.high - window.low
    there = LiveIds(0, rows)
    with ExitStack() as stack:
        if server is not None:
            stack.callback(server.execute, "DROP TABLE t, parents CASCADE")
            for _ in range(EQUAL_CYCLES):
                there.apply_changes(equal, partial(execute_in_postgres, server))
        for share in SHARES:
            third = window.third_of_share(share)
            window.apply_changes(third, connection.execute)
            if server is not None:
                there.apply_changes(third, partial(execute_in_postgres, server))
            for name in VIEWS:
                _measure_view(connection, server, name, rows, share, report)


def _measure_view(
    connection: Connection, server: Any, name: str, rows: int, share: float, report: BenchmarkReport
) -> None:
    """Time the refresh of one view, its full recompute, and PostgreSQL's refresh."""
    refresh = f"REFRESH MATERIALIZED VIEW {name_view(name)}"
    taken = time_call(partial(connection.execute, refresh))
    full = time_call(partial(create_view, connection, "recomputed", VIEWS[name]))
    connection.execute("DROP MATERIALIZED VIEW recomputed")
    published = PUBLISHED[name, share] if rows == SIZES[1] else ""
    title = f"(e) {rows} rows, {share:.0%} changed, {name}"
    figure = Figure(
        f"{title} / full", taken * 1e3, "ms", "<= 1.2 ratio", full * 1e3, published=published
    )
    report.add(figure)
    if server is not None:
        theirs = time_call(partial(server.execute, refresh))
        report.add(Figure(f"{title} / PostgreSQL", taken * 1e3, "ms", "", theirs * 1e3))


def _report_flatness(report: BenchmarkReport, costs: dict[str, list[tuple[float, float]]]) -> None:
    """Report how the cost of a change, in raw gets, grows from the smallest size to the largest."""
    for name, points in costs.items():
        (rows, small), *_, (more, large) = points
        title = f"(e) cost of a change, {name}, {more:.0f} rows against {rows:.0f}"
        report.add(Figure(title, large, "gets", "<= 1.5 ratio", small))
    title = "Cost of a change by table size"
    report.plots.append(Plot(title, "rows", "raw gets", costs, logarithmic=True))


def _raw_get(connection: Connection, window: LiveIds, seed: int) -> float:
    """Microseconds of one get of the engine, of existing keys."""
    db, rng = get_database(connection), random.Random(seed)
    encode, get = db.get_compiled_table("t").key.encode_first, db.store.get
    keys = [encode(rng.randrange(window.low, window.high)) for _ in range(GETS)]

    def read_all() -> None:
        for key in keys:
            get(key)

    return alternate_rounds(8, lambda: time_call(read_all))[0] / GETS * 1e6


def execute_in_postgres(server: Any, text: str, parameters: tuple[int, ...]) -> None:
    server.execute(text.replace("%", "%%").replace("?", "%s"), parameters)


def name_view(view: str) -> str:
    return "v_" + view.replace(" + ", "_")
