"""TPC-H through `con.execute`, compared with DuckDB on its own tables, in one run.

`--rows` are lines of orders: 6,000,000 is scale factor 1, 600,000 is 0.1. Both sides load the same
Parquet files. Every query runs a first time (uncached on both sides) and its rows are compared with
DuckDB's; then it is repeated while another thread commits 500 times a second to `orders`, in a
column that no query reads, so that the answers stay comparable.

A query that fails or differs becomes a figure that misses its goal; the others are still measured.
"""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from rich.progress import Progress

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure, alternate_rounds
from belvedere.benchmarks.tpch import schema
from belvedere.benchmarks.tpch.generate import TableSizes, compute_sizes, generate_tables
from belvedere.interfaces.dbapi import Connection, connect
from belvedere.interfaces.exceptions import Error

REPEATS = 3
COMMITS_A_SECOND = 500
FILE_ROWS = 1_000_000
"""A COPY is one transaction with all its changes in memory: larger tables are several files."""

DIGITS = 9
"""Floats must agree to so many digits; all other values must be equal."""

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class ComparedSystems:
    """Belvedere and DuckDB with the same data."""

    path: Path
    belvedere: Connection
    duckdb: duckdb.DuckDBPyConnection
    size: TableSizes

    def open_connection(self) -> Connection:
        """Another connection to the same open store."""
        return connect(str(self.path), durability="off", autocommit=True)

    def query_text(self, number: int) -> str:
        return schema.query_text(number, self.size.fraction)

    def run_belvedere(self, number: int) -> Rows:
        return self.belvedere.execute(self.query_text(number)).fetchall()

    def run_duckdb(self, number: int) -> Rows:
        return self.duckdb.execute(self.query_text(number)).fetchall()


def run(rows: int, seed: int) -> BenchmarkReport:
    report = BenchmarkReport("queries", seed)
    with tempfile.TemporaryDirectory(prefix="belvedere-queries-") as name, Progress() as progress:
        task = progress.add_task("queries", total=1 + 2 * len(schema.QUERIES))
        with open_systems(Path(name), rows, seed, report) as systems:
            _warm_up(systems)
            progress.advance(task)
            equal = [
                number
                for number in schema.QUERIES
                if _measure_first_run(report, systems, number, lambda: progress.advance(task))
            ]
            report.add(_count_figure("queries equal to DuckDB's", len(equal)))
            with commit_meanwhile(systems) as commits:
                for number in equal:
                    _measure_repeats(report, systems, number)
                    progress.advance(task)
                report.add(Figure("commits beside the repeated runs", commits(), "1/s"))
            _measure_scan(report, systems)
    return report


# -- the data --------------------------------------------------------------------------------------


@contextmanager
def open_systems(
    directory: Path, rows: int, seed: int, report: BenchmarkReport | None = None
) -> Iterator[ComparedSystems]:
    """Open both systems, loaded from the same files."""
    size = compute_sizes(rows)
    files, path = write_files(directory, size, seed), directory / "belvedere"
    with (
        connect(str(path), durability="off", autocommit=True) as ours,
        duckdb.connect(":memory:") as theirs,
    ):
        taken = [
            _time_work(lambda: load_tables(ours, files)),
            _time_work(lambda: _load_duckdb(theirs, files)),
        ]
        if report is not None:
            report.add(Figure("load by COPY", taken[0] * 1e3, "ms", "", taken[1] * 1e3))
        yield ComparedSystems(path, ours, theirs, size)


def write_files(directory: Path, size: TableSizes, seed: int) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for name, table in generate_tables(size, seed).items():
        files[name] = []
        for start in range(0, table.num_rows, FILE_ROWS):
            files[name].append(directory / f"{name}.{start}.parquet")
            pq.write_table(table.slice(start, FILE_ROWS), files[name][-1])
    return files


def load_tables(connection: Connection, files: dict[str, list[Path]]) -> None:
    for table, parts in files.items():
        connection.execute(schema.create_table(table))
        for file in parts:
            connection.execute(f"COPY {table} FROM '{file}' (FORMAT parquet)")


def _load_duckdb(connection: duckdb.DuckDBPyConnection, files: dict[str, list[Path]]) -> None:
    """Load without foreign keys: with them DuckDB only loads more slowly."""
    for table, parts in files.items():
        names = [str(file) for file in parts]
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet({names})")


# -- what is measured ------------------------------------------------------------------------------


def _warm_up(systems: ComparedSystems) -> None:
    """Import and open the engines, which a process does once, before any query is timed."""
    large = "SELECT sum(n) FROM generate_series(1, 100000) AS g (n)"
    systems.belvedere.execute(large).fetchall()
    systems.duckdb.execute(large).fetchall()


def _measure_first_run(
    report: BenchmarkReport, systems: ComparedSystems, number: int, done: Callable[[], object]
) -> bool:
    """Run a query once on both sides; return whether the rows are equal."""
    answers: list[Rows] = []
    theirs = _time_work(lambda: answers.append(systems.run_duckdb(number)))
    try:
        ours = _time_work(lambda: answers.append(systems.run_belvedere(number)))
    except Error as error:
        report.add(_count_figure(f"Q{number} fails: {error}", 0, 1))
        return False
    finally:
        done()
    found = find_difference(answers[1], answers[0], ordered=number in schema.TOTALLY_ORDERED)
    if found is not None:
        report.add(_count_figure(f"Q{number} differs: {found}", 0, 1))
        return False
    report.add(Figure(f"Q{number}, first run", ours * 1e3, "ms", "<= 20 ratio", theirs * 1e3))
    return True


def _measure_repeats(report: BenchmarkReport, systems: ComparedSystems, number: int) -> None:
    ours, theirs = alternate_rounds(
        REPEATS,
        lambda: _time_work(lambda: systems.run_belvedere(number)),
        lambda: _time_work(lambda: systems.run_duckdb(number)),
    )
    report.add(Figure(f"Q{number}, repeated", ours * 1e3, "ms", "<= 3 ratio", theirs * 1e3))


def _measure_scan(report: BenchmarkReport, systems: ComparedSystems) -> None:
    """Measure a scan of all columns of `lineitem` to Arrow."""
    lines = systems.belvedere.execute("SELECT count(*) FROM lineitem").fetchall()[0][0]
    query = "SELECT * FROM lineitem"
    (seconds,) = alternate_rounds(
        REPEATS, lambda: _time_work(lambda: systems.belvedere.execute(query).fetch_arrow())
    )
    report.add(Figure("scan to Arrow", lines / seconds, "rows/s", ">= 1500000 value"))


@contextmanager
def commit_meanwhile(systems: ComparedSystems) -> Iterator[Callable[[], float]]:
    """Commit to `orders` from another thread; yields a function that returns the rate so far."""
    keys = [row[0] for row in systems.duckdb.execute("SELECT o_orderkey FROM orders").fetchall()]
    ended, done, failed = threading.Event(), [0], list[Error]()
    writer = systems.open_connection()
    start = time.perf_counter()
    thread = threading.Thread(target=_commit_until, args=(ended, writer, keys, done, failed))
    thread.start()
    try:
        yield lambda: done[0] / (time.perf_counter() - start)
    finally:
        ended.set()
        thread.join()
        writer.close()
    if failed:
        raise failed[0]


def _commit_until(
    ended: threading.Event,
    writer: Connection,
    keys: list[int],
    done: list[int],
    failed: list[Error],
) -> None:
    """Commit once at each due time; after a delay, do not catch up in a burst."""
    due = time.perf_counter()
    try:
        while not ended.wait(max(due - time.perf_counter(), 0)):
            key, clerk = keys[done[0] * 7919 % len(keys)], f"Clerk#{done[0] % 10**9:09}"
            writer.execute("UPDATE orders SET o_clerk = ? WHERE o_orderkey = ?", (clerk, key))
            done[0] += 1
            due = max(due + 1 / COMMITS_A_SECOND, time.perf_counter() - 0.1)
    except Error as error:
        failed.append(error)  # raised by the thread that waits for this one


def _time_work(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _count_figure(name: str, value: int, wanted: int = len(schema.QUERIES)) -> Figure:
    return Figure(name, value, "queries", f">= {wanted} value")


# -- comparison ------------------------------------------------------------------------------------


def find_difference(ours: Rows, theirs: Rows, *, ordered: bool) -> str | None:
    """The first difference of two results, as bags unless `ordered`; None when equal.

    DuckDB's char does not pad, and its average and quotient of decimals are floats: blanks at the
    end do not count, and a column that is a float on either side is compared as one.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, DuckDB has {len(theirs)}"
    if not ours:
        return None
    floats = _float_columns([*ours, *theirs])
    pairs = zip(
        *(rows if ordered else sorted(rows, key=_sort_key(floats)) for rows in (ours, theirs)),
        strict=True,
    )
    for mine, other in pairs:
        if not all(map(_is_equal, mine, other, floats)):
            return f"{mine}, DuckDB has {other}"
    return None


def _float_columns(rows: Rows) -> list[bool]:
    return [any(isinstance(value, float) for value in column) for column in zip(*rows, strict=True)]


def _sort_key(floats: Sequence[bool]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Sort by exact columns first, so that the last digits of a float do not decide the order."""
    places = sorted(range(len(floats)), key=lambda place: floats[place])

    def row_key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            (row[place] is None, _comparable_value(row[place], floats[place])) for place in places
        )

    return row_key


def _comparable_value(value: Any, is_float: bool) -> Any:
    if value is None:
        return 0
    if is_float:
        return float(value)
    return value.rstrip(" ") if isinstance(value, str) else value


def _is_equal(mine: Any, other: Any, is_float: bool) -> bool:
    if mine is None or other is None:
        return mine is other
    if is_float:
        return math.isclose(mine, other, rel_tol=10**-DIGITS)
    return bool(_comparable_value(mine, False) == _comparable_value(other, False))
