"""Fixed overhead: of a cached statement, of an uncached one that is planned, and of the import.

Each figure is the best of several rounds, since other load on the machine only adds time.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.interfaces.dbapi import connect

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
    imported = min(_import_s() for _ in range(5))
    report.add(Figure("cached SELECT 1", cached * 1e6, "us", "<= 5 value"))
    report.add(Figure("cached read, freshness given", fresh * 1e6, "us"))
    report.add(Figure("uncached point select", planned * 1e3, "ms", "<= 1.5 value"))
    report.add(Figure("import belvedere", imported * 1e3, "ms", "<= 150 value"))


_KEY_SELECT = "SELECT v FROM t WHERE id = ?"


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
