"""CloudTPS's aggregate experiment: events of products, and the sum and number of events by
category, written by 1, 2 and 4 processes without a view, with an immediate and a deferred one.

Its verifier: every event costs the same, so that the sum has to be the number of events times that,
and each process inserts a known number. Run as a program it is one of the processes:

    python -m belvedere.benchmarks.hbase.dashboard URL NUMBER COUNT
"""

from __future__ import annotations

import sys
import time

from belvedere.benchmarks.hbase.shop import Sizes
from belvedere.benchmarks.hbase.writes import PROCESSES, ROWS_PER_PROCESS, process_rate
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.errors import Corruption
from belvedere.interfaces.dbapi import Connection, connect

PRODUCTS = 100
CATEGORIES = 20
COST = 7
WARM_UP = 2
TABLES = (
    "CREATE TABLE products (id BIGINT PRIMARY KEY, category INTEGER NOT NULL)",
    "CREATE TABLE events (writer BIGINT, number BIGINT, product BIGINT NOT NULL"
    " REFERENCES products, cost BIGINT NOT NULL, PRIMARY KEY (writer, number))",
    f"INSERT INTO products SELECT i, i % {CATEGORIES} FROM generate_series(0, {PRODUCTS - 1}) i",
)
BY_CATEGORY = (
    "SELECT p.category, count(*) AS events, sum(e.cost) AS cost FROM events e"
    " JOIN products p ON e.product = p.id GROUP BY p.category"
)
MODES = {"no view": "", "synchronous": "immediate", "asynchronous": "deferred"}


def measure_dashboard(con: Connection, url: str, sizes: Sizes, report: BenchmarkReport) -> None:
    for statement in TABLES:
        con.execute(statement)
    rates: dict[int, float] = {}
    for mode, maintenance in MODES.items():
        if maintenance:
            con.execute(
                f"CREATE MATERIALIZED VIEW dashboard WITH (maintenance = '{maintenance}')"
                f" AS {BY_CATEGORY}"
            )
        for processes in PROCESSES:
            con.execute("DELETE FROM events")
            rate = process_rate(url, processes, sizes.calls, __name__)
            base = rates.setdefault(processes, rate)
            name = f"dashboard, {mode}, {processes} processes"
            report.add(Figure(name, rate, "1/s", "", base))
            _verify_sums(con, processes * (sizes.calls + WARM_UP), viewed=bool(maintenance))
        if maintenance:
            con.execute("DROP MATERIALIZED VIEW dashboard")


def _verify_sums(con: Connection, events: int, *, viewed: bool) -> None:
    source = "dashboard" if viewed else f"({BY_CATEGORY}) AS dashboard"
    query = f"SELECT coalesce(sum(events), 0), coalesce(sum(cost), 0) FROM {source}"
    [found] = con.execute(query, freshness="latest").fetchall()
    if tuple(found) != (events, events * COST):
        raise Corruption("the sums of the dashboard are wrong", found=found, events=events)


def insert_events(con: Connection, writer: int, first: int, count: int) -> None:
    for number in range(first, first + count):
        row = (writer, number, (writer + number) % PRODUCTS, COST)
        con.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)


def main(url: str, number: int, count: int) -> None:
    """Print when it is ready, wait for a line, write, and print the seconds."""
    writer = number // ROWS_PER_PROCESS
    with connect(url, autocommit=True) as con:
        insert_events(con, writer, count, WARM_UP)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        started = time.perf_counter()
        insert_events(con, writer, 0, count)
        sys.stdout.write(f"{time.perf_counter() - started}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
