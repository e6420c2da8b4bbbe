"""REFRESH beside PostgreSQL's REFRESH: `belvedere bench matrix`, 45 cells.

Five views, three sizes, and 1, 10 and 50 % of the rows changed: a third of these is updated, a
third deleted, a third inserted. The views are deferred, so that REFRESH applies what has changed;
in PostgreSQL it computes the view again. Both get the same statements, and take turns view by view.
After each turn the two views are compared row for row, and rows that differ are counted.

A second figure of each cell is the time of the processor, on Linux: of this process with its
threads, and of the server's process for the connection. Other work on the machine adds little to
it.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich.progress import Progress

from belvedere.benchmarks.report import postgres_peer
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.views.matrix import PARENTS, LiveIds, execute_in_postgres, name_view
from belvedere.benchmarks.views.workload import load_rows, open_connection, time_call
from belvedere.interfaces.dbapi import Connection

SIZES = {"small": 10_000, "medium": 100_000, "large": 1_000_000}
SHARES = (0.01, 0.1, 0.5)
TURNS = 2
GOAL = "<= 1 ratio"

VIEWS = {
    "filter": "SELECT id, v FROM t WHERE v % 10 = 0",
    "aggregate": "SELECT g, count(*) AS n, sum(v) AS total FROM t GROUP BY g",
    "join": "SELECT t.id, t.v, p.kind FROM t JOIN parents p ON p.id = t.g",
    "join + aggregate": "SELECT p.kind, count(*) AS n, sum(t.v) AS total"
    " FROM t JOIN parents p ON p.id = t.g GROUP BY p.kind",
    "window": "SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY v, id) AS place FROM t",
}
STEPS = tuple(SIZES)
"""The parts, by their first letter."""

_TABLES = (
    "CREATE TABLE parents (id integer PRIMARY KEY, kind integer NOT NULL)",
    f"INSERT INTO parents SELECT i, i % 100 FROM generate_series(0, {PARENTS - 1}) AS s (i)",
    "CREATE TABLE t (id integer PRIMARY KEY, g integer NOT NULL, v bigint NOT NULL)",
)


class RefreshTime(NamedTuple):
    """Seconds, and seconds of CPU."""

    wall: float
    cpu: float


def run(scale: float, seed: int, parts: Sequence[str] = ()) -> BenchmarkReport:
    """Measure the cells of every size, or of those with these letters."""
    report = BenchmarkReport(f"matrix, scale {scale:g}", seed)
    wanted = [size for name, size in SIZES.items() if not parts or name[0] in parts]
    with Progress() as progress, postgres_peer.postgres_connection() as server:
        if server is None:
            report.absent.append("REFRESH on PostgreSQL: its wheel is not installed")
            return report
        task = progress.add_task("matrix", total=len(wanted))
        for size in wanted:
            rows = max(int(size * scale), 100)
            progress.update(task, description=f"matrix ({rows} rows)")
            with tempfile.TemporaryDirectory(prefix="belvedere-bench-") as directory:
                with open_connection(Path(directory) / "store") as connection:
                    measure_cells(connection, server, rows, report)
            progress.advance(task)
    return report


def measure_cells(connection: Connection, server: Any, rows: int, report: BenchmarkReport) -> None:
    """Measure the views over tables of so many rows, at each share of changed ones."""
    _set_up_tables(connection, server, rows)
    for number, (name, query) in enumerate(VIEWS.items()):
        # Different intervals put the views in different groups: REFRESH of one leaves the others.
        options = f"WITH (maintenance = 'deferred', refresh_every = '{3600 + number} s')"
        connection.execute(f"CREATE MATERIALIZED VIEW {name_view(name)} {options} AS {query}")
        server.execute(f"CREATE MATERIALIZED VIEW {name_view(name)} AS {query}")
    sides: tuple[tuple[LiveIds, Callable[[str, tuple[int, ...]], object]], ...] = (
        (LiveIds(0, rows), connection.execute),
        (LiveIds(0, rows), partial(execute_in_postgres, server)),
    )
    try:
        for share in SHARES:
            taken: dict[str, list[tuple[RefreshTime, RefreshTime]]] = {name: [] for name in VIEWS}
            different = dict.fromkeys(VIEWS, 0)
            for turn in range(TURNS):
                for ids, execute in sides:
                    ids.apply_changes(ids.third_of_share(share), execute)
                for name in VIEWS:
                    taken[name].append(_time_both_sides(connection, server, name, turn))
                    different[name] += count_different_rows(connection, server, name)
            _report_cells(report, f"{rows} rows, {share:.0%} changed", taken, different)
    finally:
        server.execute("DROP TABLE t, parents CASCADE")


def _set_up_tables(connection: Connection, server: Any, rows: int) -> None:
    for statement in _TABLES:
        connection.execute(statement)
        server.execute(statement)
    load_rows(connection, "t", f"i, i % {PARENTS}, i", rows)
    server.execute(
        f"INSERT INTO t SELECT i, i % {PARENTS}, i FROM generate_series(0, {rows - 1}) AS s (i)"
    )
    server.execute("ANALYZE")


def _time_both_sides(
    connection: Connection, server: Any, name: str, turn: int
) -> tuple[RefreshTime, RefreshTime]:
    """REFRESH here and there, who is first by turns."""
    refresh = f"REFRESH MATERIALIZED VIEW {name_view(name)}"
    statistics = Path(f"/proc/{server.info.backend_pid}/schedstat")
    sides = (
        (partial(connection.execute, refresh), time.process_time),
        (partial(server.execute, refresh), lambda: _read_cpu_seconds(statistics)),
    )
    order = (1, 0) if turn % 2 else (0, 1)
    found = {}
    for side in order:
        run, read_cpu = sides[side]
        before = read_cpu()
        seconds = time_call(run)
        found[side] = RefreshTime(seconds, read_cpu() - before)
    return found[0], found[1]


def _read_cpu_seconds(statistics: Path) -> float:
    """What the server's process for the connection has used, without workers of its own."""
    return int(statistics.read_text().split()[0]) / 1e9


def count_different_rows(connection: Connection, server: Any, name: str) -> int:
    """How many rows one of the two views has and the other has not."""
    query = f"SELECT * FROM {name_view(name)}"
    ours = Counter(map(tuple, connection.execute(query).fetchall()))
    theirs = Counter(map(tuple, server.execute(query).fetchall()))
    return (ours - theirs).total() + (theirs - ours).total()


def _report_cells(
    report: BenchmarkReport,
    title: str,
    taken: Mapping[str, Sequence[tuple[RefreshTime, RefreshTime]]],
    different: Mapping[str, int],
) -> None:
    for name, turns in taken.items():
        for kind, goal in (("", GOAL), (", CPU", "")):
            at = 1 if kind else 0
            ours, theirs = (median([one[at] for one in side]) * 1e3 for side in zip(*turns))
            report.add(Figure(f"{title}, {name}{kind}", ours, "ms", goal, theirs))
    rows = sum(different.values())
    report.add(Figure(f"{title}, rows that differ", rows, "rows", "<= 0 value"))
