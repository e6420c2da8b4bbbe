"""Fixed overhead: of a cached statement, of an uncached one that is planned, and of the import; and
reads of views by their key, beside the same read of a table.

Each figure is the best of several rounds, since other load on the machine only adds time.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.interfaces.dbapi import Connection, connect

ROUNDS = 15
ROWS = 1000
IMPORT = "import time; t = time.perf_counter(); import belvedere; print(time.perf_counter() - t)"


def measure_overhead(report: BenchmarkReport) -> None:
    with connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        con.execute(f"INSERT INTO t SELECT i, i FROM generate_series(0, {ROWS - 1}) i")
        cached = _best_seconds(lambda number: con.execute("SELECT 1"), 1000)
        fresh = _best_seconds(
            lambda number: con.execute(_KEY_SELECT, (7,), freshness="latest"), 200
        )
        planned = _best_seconds(
            lambda number: con.execute(f"SELECT v FROM t WHERE id = {number}"), 60
        )
        _measure_view_reads(con, report)
    imported = min(_import_s() for _ in range(5))
    report.add(Figure("cached SELECT 1", cached * 1e6, "us", "<= 5 value"))
    report.add(Figure("cached read, freshness given", fresh * 1e6, "us"))
    report.add(Figure("uncached point select", planned * 1e3, "ms", "<= 1.5 value"))
    report.add(Figure("import belvedere", imported * 1e3, "ms", "<= 150 value"))


_KEY_SELECT = "SELECT v FROM t WHERE id = ?"
_VIEW = "SELECT v % 100 AS g, count(*) AS n FROM t GROUP BY v % 100"


def _measure_view_reads(con: Connection, report: BenchmarkReport) -> None:
    con.execute(f"CREATE MATERIALIZED VIEW now AS {_VIEW}")
    con.execute(f"CREATE MATERIALIZED VIEW later WITH (maintenance = 'deferred') AS {_VIEW}")
    con.execute("REFRESH MATERIALIZED VIEW later")
    table = _best_seconds(_reader_of_key(con, _KEY_SELECT), 1000)
    reads = (
        ("an immediate view", "now", "session", "<= 2.5 ratio"),
        ("a deferred view, 'session'", "later", "session", "<= 4 ratio"),
        ("a deferred view, 'any'", "later", "any", "<= 3 ratio"),
    )
    for name, view, freshness, goal in reads:
        con.execute(f"SET freshness = '{freshness}'")
        query = f"SELECT n FROM {view} WHERE g = ?"
        taken = _best_seconds(_reader_of_key(con, query), 1000)
        report.add(Figure(f"read of {name}, to a table", taken * 1e6, "us", goal, table * 1e6))


def _reader_of_key(con: Connection, query: str) -> Callable[[int], object]:
    return lambda number: con.execute(query, (7,)).fetchall()


def _best_seconds(action: Callable[[int], object], count: int) -> float:
    """Seconds of one call. Every call gets another number, so that its text can be uncached."""
    found = []
    for turn in range(ROUNDS):
        numbers = range(turn * count, turn * count + count)
        started = time.perf_counter()
        for number in numbers:
            action(number)
        found.append((time.perf_counter() - started) / count)
    return min(found)


def _import_s() -> float:
    """Seconds of the import, in a new process."""
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, check=True)
    return float(done.stdout)
