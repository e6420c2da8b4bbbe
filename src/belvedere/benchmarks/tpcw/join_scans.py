"""Scans of joins, by the join and by a view of it: figure 10 of the Synergy paper.

Two joins, of customers with their orders, and of these with their lines: all of their rows, and
those of one customer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.report.plots import Plot, bar_points
from belvedere.benchmarks.tpcw.generate import TpcwRandom, TpcwSize
from belvedere.benchmarks.tpcw.systems import TpcwStore

REPEATS = 5
CUSTOMERS = 10
"""Customers whose rows are read in one repeat."""


@dataclass(frozen=True, slots=True)
class ScannedJoin:
    view: str
    tables: str
    query: str
    published: str


JOINS = (
    ScannedJoin(
        "scanned_customer_orders",
        "customers and orders",
        "SELECT * FROM customer, orders WHERE o_c_id = c_id",
        "6x",
    ),
    ScannedJoin(
        "scanned_customer_order_lines",
        "customers, orders and lines",
        "SELECT * FROM customer, orders, order_line WHERE o_c_id = c_id AND ol_o_id = o_id",
        "11.7x",
    ),
)


def add_scan_figures(
    report: BenchmarkReport, store: TpcwStore, size: TpcwSize, seed: int, *, goals: bool
) -> None:
    """The views are made for it and dropped again."""
    bars: dict[str, tuple[float, float]] = {}
    for join in JOINS:
        by_tables = _time_join(store, join, size, seed)
        store.connection.execute(f"CREATE MATERIALIZED VIEW {join.view} AS {join.query}")
        by_view = _time_join(store, join, size, seed)
        store.connection.execute(f"DROP MATERIALIZED VIEW {join.view}")
        for what, goal, published, view, tables in (
            ("all rows", ">= 6 value", join.published, by_view[0], by_tables[0]),
            ("one customer", ">= 11.7 value", "", by_view[1], by_tables[1]),
        ):
            bars[f"{join.tables},\n{what}"] = (tables * 1000, view * 1000)
            name = f"{join.tables}, {what}, by a view"
            report.add(Figure(name, view, "ms", "", tables))
            faster = Figure(f"{name}: faster by", tables / view, "x", published=published)
            if goals:
                faster = Figure(faster.name, faster.value, "x", goal, published=published)
            report.add(faster)

    curves = {
        name: bar_points([found[place] for found in bars.values()])
        for place, name in enumerate(("join", "view"))
    }
    report.plots.append(
        Plot("TPC-W scans of joins", "", "microseconds", curves, logarithmic_y=True, bars=(*bars,))
    )


def _time_join(
    store: TpcwStore, join: ScannedJoin, size: TpcwSize, seed: int
) -> tuple[float, float]:
    """Milliseconds of all rows, and of one customer's: the best of some repeats."""
    whole, one = [], []
    random = TpcwRandom(seed)
    for _ in range(REPEATS):
        started = time.perf_counter()
        store.run(join.query, ())
        whole.append(time.perf_counter() - started)
        started = time.perf_counter()
        for _ in range(CUSTOMERS):
            store.run(f"{join.query} AND c_id = ?", (random.draw_customer(size),))
        one.append((time.perf_counter() - started) / CUSTOMERS)
    return min(whole) * 1000, min(one) * 1000
