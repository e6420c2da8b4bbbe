"""TPC-H with the views that the advisor chooses for its 22 queries, in one run.

`--rows` are lines of orders: 600,000 is scale factor 0.1. Every query is timed over the tables;
then the advisor is asked, with a budget of the size of the data, its views are made, and the same
texts are timed again. Answers must be those of before, also after writes. The price of writes is
that of the first refresh function, an order with its lines in one transaction, and of the second,
which takes orders away again.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.progress import Progress

from belvedere.advisor.advise import Advice
from belvedere.benchmarks.queries import Rows, find_difference, load_tables, write_files
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.tpch import schema
from belvedere.benchmarks.tpch.generate import TableSizes, compute_sizes
from belvedere.interfaces.advice import AdviceOptions, compute_advice
from belvedere.interfaces.dbapi import Connection, connect
from belvedere.session.session import Session

REPEATS = 3
ORDERS = 30
"""Orders that are inserted and deleted, for the price of writes."""

LINES = 4
NEW_ORDER = 1 << 30
"""The key of the first order that is inserted."""

_COPY_ORDER = "INSERT INTO orders SELECT ?, {} FROM orders WHERE o_orderkey = ?"
_COPY_LINE = """INSERT INTO lineitem SELECT ?, l_partkey, l_suppkey, ?, {} FROM lineitem
    WHERE l_orderkey = ? ORDER BY l_linenumber LIMIT 1"""


@dataclass(frozen=True, slots=True)
class AdvisedStore:
    connection: Connection
    path: Path
    size: TableSizes

    def query_text(self, number: int) -> str:
        return schema.query_text(number, self.size.fraction)

    def run_query(self, number: int) -> Rows:
        return self.connection.execute(self.query_text(number)).fetchall()

    def measure_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())

    def advise_views(self, budget_bytes: int) -> Advice:
        session = self.connection.session
        assert isinstance(session, Session), "a benchmark opens its store itself"
        options = AdviceOptions(self.write_workload(), budget_bytes)
        return compute_advice(session.shared, options)

    def write_workload(self) -> str:
        texts = [self.query_text(number).strip().rstrip(";") for number in schema.QUERIES]
        return "\n".join(
            f"-- name: Q{number} calls: 1\n{text};\n"
            for number, text in zip(schema.QUERIES, texts, strict=True)
        )


def run(rows: int, seed: int) -> BenchmarkReport:
    report = BenchmarkReport("tpch, advised views", seed)
    with tempfile.TemporaryDirectory(prefix="belvedere-tpch-") as name, Progress() as progress:
        task = progress.add_task("tpch", total=2 * len(schema.QUERIES) + 2)
        size, path = compute_sizes(rows), Path(name) / "store"
        with connect(str(path), durability="off", autocommit=True) as connection:
            load_tables(connection, write_files(Path(name), size, seed))
            store = AdvisedStore(connection, path, size)
            measure_store(report, store, seed, lambda: progress.advance(task))
    return report


def measure_store(
    report: BenchmarkReport, store: AdvisedStore, seed: int, done: Callable[[], object]
) -> None:
    data_bytes = store.measure_bytes()
    before = {number: _time_query(store, number, done) for number in schema.QUERIES}
    plain_writes = _time_writes(store, seed)
    done()
    _make_views(report, store, data_bytes)
    done()
    after = {number: _time_query(store, number, done) for number in schema.QUERIES}
    _add_query_figures(report, before, after)
    _add_write_figures(report, plain_writes, _time_writes(store, seed))
    _insert_orders(store, random.Random(seed))
    equal = sum(_is_equal_over_tables(store, number) for number in schema.QUERIES)
    report.add(_count_equal("answers equal to those over tables, after writes", equal))


def _make_views(report: BenchmarkReport, store: AdvisedStore, data_bytes: int) -> None:
    started = time.process_time()
    advice = store.advise_views(data_bytes)
    report.add(Figure("advice", time.process_time() - started, "s of CPU"))
    started = time.perf_counter()
    for statement in advice.list_ddl():
        store.connection.execute(statement)
    report.add(Figure("making the views", time.perf_counter() - started, "s"))
    report.add(Figure("views", float(len(advice.views)), "views"))
    ((made,),) = store.connection.execute("SELECT sum(bytes) FROM belvedere.views").fetchall()
    size = float(made or 0) / 1e6
    report.add(Figure("size of the views", size, "MB", "<= 1 ratio", data_bytes / 1e6))


# -- queries ---------------------------------------------------------------------------------------


def _time_query(store: AdvisedStore, number: int, done: Callable[[], object]) -> tuple[Rows, float]:
    """The rows, and the milliseconds of the best of some runs after the first one."""
    rows, taken = store.run_query(number), []
    for _ in range(REPEATS):
        started = time.perf_counter()
        store.run_query(number)
        taken.append(time.perf_counter() - started)
    done()
    return rows, min(taken) * 1000


def _add_query_figures(
    report: BenchmarkReport,
    before: dict[int, tuple[Rows, float]],
    after: dict[int, tuple[Rows, float]],
) -> None:
    equal = 0
    for number, (rows, plain) in before.items():
        found, taken = after[number]
        ordered = number in schema.TOTALLY_ORDERED
        equal += find_difference(found, rows, ordered=ordered) is None
        report.add(Figure(f"Q{number}", taken, "ms", "", plain))
    report.add(_count_equal("answers equal to those without views", equal))
    sums = [sum(taken for _, taken in times.values()) for times in (after, before)]
    report.add(Figure("sum of the 22 queries", sums[0], "ms", "<= 0.2 ratio", sums[1]))


def _count_equal(name: str, count: int) -> Figure:
    return Figure(name, float(count), "queries", f">= {len(schema.QUERIES)} value")


def _is_equal_over_tables(store: AdvisedStore, number: int) -> bool:
    rows = store.run_query(number)
    store.connection.execute("SET rewrite = off")
    try:
        plain = store.run_query(number)
    finally:
        store.connection.execute("SET rewrite = on")
    return find_difference(rows, plain, ordered=number in schema.TOTALLY_ORDERED) is None


# -- writes ----------------------------------------------------------------------------------------


def _time_writes(store: AdvisedStore, seed: int) -> tuple[float, float]:
    """Milliseconds of CPU for an order with its lines, inserted and deleted again."""
    started = time.process_time()
    _insert_orders(store, random.Random(seed))
    inserted = time.process_time()
    for key in range(NEW_ORDER, NEW_ORDER + ORDERS):
        store.connection.execute("BEGIN")
        store.connection.execute("DELETE FROM lineitem WHERE l_orderkey = ?", (key,))
        store.connection.execute("DELETE FROM orders WHERE o_orderkey = ?", (key,))
        store.connection.execute("COMMIT")
    deleted = time.process_time()
    return (inserted - started) / ORDERS * 1000, (deleted - inserted) / ORDERS * 1000


def _insert_orders(store: AdvisedStore, rng: random.Random) -> None:
    """New orders with values of those that exist."""
    con = store.connection
    keys = [row[0] for row in con.execute("SELECT o_orderkey FROM orders").fetchall()]
    order = _COPY_ORDER.format(", ".join(schema.list_columns("orders")[1:]))
    line = _COPY_LINE.format(", ".join(schema.list_columns("lineitem")[4:]))
    for key in range(NEW_ORDER, NEW_ORDER + ORDERS):
        con.execute("BEGIN")
        con.execute(order, (key, rng.choice(keys)))
        for number in range(1, LINES + 1):
            con.execute(line, (key, number, rng.choice(keys)))
        con.execute("COMMIT")


def _add_write_figures(
    report: BenchmarkReport, before: tuple[float, float], after: tuple[float, float]
) -> None:
    for name, plain, taken in zip(("inserted", "deleted"), before, after, strict=True):
        report.add(Figure(f"an order with its lines {name}", taken, "ms of CPU", "", plain))
