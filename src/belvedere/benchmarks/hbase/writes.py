"""Writes: single-row transactions against bare puts, with their round trips; several rows, locks
and tables; with a view; by threads of one process, and by several processes."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from belvedere.benchmarks.hbase.bare import BareGateway
from belvedere.benchmarks.hbase.shop import WATCHED_VIEW, Sizes, update_items
from belvedere.benchmarks.report.measurements import (
    BenchmarkReport,
    Figure,
    alternate_rounds,
)
from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.interfaces.dbapi import Connection, connect
from belvedere.txn.row_atomic.commit_protocol import RowCommit

THREADS = 16
PROCESSES = (1, 2, 4)
ROWS_PER_PROCESS = 10
LOCK_ROWS = (10, 100, 1000)
NOWHERE = b"\x10\xff\xff\xff\xfe"
"""Rows of a relation that does not exist, for bare puts."""

UPDATE = "UPDATE {} SET quantity = quantity + 1 WHERE id = ?"


class Transactions:
    """The transactions that are measured, on one connection that commits by itself."""

    def __init__(self, con: Connection, txn: Connection, commits: RowCommit) -> None:
        self._con = con
        self._txn = txn
        self._commits = commits
        self._orders = itertools.count(1000)

    def update_row(self, table: str, number: int) -> None:
        self._con.execute(UPDATE.format(table), (number,))

    def settle(self) -> None:
        self._commits.wait_settled()

    def place_order(self, customer: int) -> None:
        """Ten rows of three tables, under one lock: a customer, its order, eight lines."""
        number = next(self._orders)
        self._txn.execute("UPDATE customer SET spent = spent + 1 WHERE id = ?", (customer,))
        self._txn.execute("INSERT INTO orders VALUES (?, ?, DATE '2026-01-02')", (customer, number))
        self._txn.execute(
            "INSERT INTO line SELECT ?, ?, p, p FROM generate_series(1, 8) p", (customer, number)
        )
        self._txn.commit()

    def update_rows(self, count: int) -> None:
        """One statement and one transaction, with a lock for each row."""
        self._con.execute("UPDATE item SET quantity = quantity + 1 WHERE id < ?", (count,))


def time_calls(count: int, work: Callable[[int], object], settle: Callable[[], None]) -> float:
    """Milliseconds of a call until it is acknowledged. What is left to do then is waited for, but
    not counted."""
    taken = 0.0
    for number in range(count):
        started = time.perf_counter()
        work(number)
        taken += time.perf_counter() - started
        settle()
    return taken / count * 1000


def measure_transactions(
    made: Transactions,
    bare: BareGateway,
    item: CompiledTable,
    sizes: Sizes,
    report: BenchmarkReport,
) -> None:
    cells = bare.read_cells(item.key.encode_first(1))
    calls = sizes.calls

    def put_bare(number: int) -> None:
        bare.put(NOWHERE + number.to_bytes(8), cells)

    raw, one, loop = alternate_rounds(
        sizes.rounds,
        lambda: time_calls(calls, put_bare, lambda: None),
        lambda: time_calls(calls, lambda n: made.update_row("item", n % 10), made.settle),
        lambda: time_calls(calls, lambda n: made.update_row("item", n % 10), lambda: None),
    )
    report.add(Figure("one-lock transaction, to a bare put", one, "ms", "<= 8 ratio", raw))
    report.add(Figure("the same one after the other", loop, "ms", "", raw))
    one, ten = alternate_rounds(
        sizes.rounds,
        lambda: time_calls(calls // 4, lambda n: made.update_row("item", n % 10), made.settle),
        lambda: time_calls(
            calls // 4, lambda n: made.place_order(n % sizes.customers), made.settle
        ),
    )
    report.add(Figure("10 rows in 3 tables, to one row", ten, "ms", "<= 2 ratio", one))
    for count in LOCK_ROWS:
        if count <= sizes.items:
            taken = min(_time_lock_rows(made, count) for _ in range(3))
            report.add(Figure(f"a transaction with {count} lock rows", taken, "ms", "", one))


def _time_lock_rows(made: Transactions, count: int) -> float:
    return time_calls(1, lambda _: made.update_rows(count), made.settle)


def measure_round_trips(made: Transactions, commits: RowCommit, report: BenchmarkReport) -> None:
    """Of a warm single-row update: what its commit takes, and the one read before it."""
    made.update_row("item", 3)
    made.settle()
    before, settling = commits.round_trips, commits.settling_round_trips
    made.update_row("item", 3)
    made.settle()
    acknowledged = commits.round_trips - before
    after = commits.settling_round_trips - settling
    report.add(Figure("round trips: read the row", 1, "trips"))
    report.add(
        Figure("round trips: commit to acknowledgement", acknowledged - 1, "trips", "<= 5 value")
    )
    report.add(Figure("round trips: after it", after, "trips", "<= 2 value"))


def measure_view(
    made: Transactions, con: Connection, sizes: Sizes, report: BenchmarkReport
) -> None:
    con.execute(WATCHED_VIEW)
    plain, viewed = alternate_rounds(
        sizes.rounds,
        lambda: time_calls(sizes.calls, lambda n: made.update_row("item", n % 10), made.settle),
        lambda: time_calls(sizes.calls, lambda n: made.update_row("watched", n % 10), made.settle),
    )
    report.add(Figure("write with 1 immediate view, to none", viewed, "ms", "<= 1.3 ratio", plain))


def measure_threads(url: str, sizes: Sizes, report: BenchmarkReport) -> None:
    one, many = alternate_rounds(
        max(2, sizes.rounds // 2),
        lambda: -commits_per_second(url, 1, sizes.calls),
        lambda: -commits_per_second(url, THREADS, sizes.calls),
    )
    name = f"commits/s, {THREADS} threads of one process, to 1"
    report.add(Figure(name, -many, "1/s", ">= 5 ratio", -one))


def commits_per_second(url: str, threads: int, count: int) -> float:
    """Each thread has a connection and rows of its own; connecting is not counted."""
    ready = threading.Barrier(threads + 1)

    def write(number: int) -> None:
        with connect(url, autocommit=True) as con:
            update_items(con, number * 10, 1, 1)
            ready.wait()
            update_items(con, number * 10, count, 10)

    workers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    ready.wait()
    started = time.perf_counter()
    for worker in workers:
        worker.join()
    return threads * count / (time.perf_counter() - started)


def measure_processes(url: str, sizes: Sizes, report: BenchmarkReport) -> None:
    base = None
    for processes in PROCESSES:
        rate = process_rate(url, processes, sizes.calls)
        base = base or rate
        report.add(Figure(f"commits/s, {processes} processes", rate, "1/s", "", base))


def process_rate(
    url: str, processes: int, count: int, module: str = "belvedere.benchmarks.hbase.shop"
) -> float:
    """Commits a second of processes that begin at the same time, by the slowest."""
    command = [sys.executable, "-m", module, url]
    workers = [
        subprocess.Popen(
            [*command, str(number * ROWS_PER_PROCESS), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for worker in workers:
        assert worker.stdout is not None
        if worker.stdout.readline() != "ready\n":
            raise RuntimeError("a process of the benchmark has ended")
    seconds = []
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        printed, _ = worker.communicate()
        seconds.append(float(printed))
    return processes * count / max(seconds)
