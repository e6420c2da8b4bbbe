"""DQE's overhead experiment (its table 1): 60 % reads, 20 % updates, 20 % scans of 1 to 10 rows, at
100 operations a second, by 1 and by 50 threads; by SQL and by bare calls of the gateway."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from belvedere.benchmarks.hbase.bare import BareGateway
from belvedere.benchmarks.hbase.shop import Sizes
from belvedere.benchmarks.hbase.writes import NOWHERE
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.interfaces.dbapi import connect
from belvedere.kv.hbase.url import parse_url

THREADS = (1, 50)
RATE = 100
SCAN_ROWS_MAX = 10
KINDS = ("read",) * 6 + ("update",) * 2 + ("scan",) * 2
PUBLISHED = {
    (1, "read"): "table 1: 0.79 to 0.53 ms",
    (1, "update"): "table 1: 1.3 to 0.51 ms",
    (1, "scan"): "table 1: 2.9 to 1.43 ms",
    (50, "read"): "table 1: 1.7 to 1.63 ms",
    (50, "update"): "table 1: 3.1 to 2.66 ms",
    (50, "scan"): "table 1: 6.1 to 4.64 ms",
}
STATEMENTS = {
    "read": "SELECT * FROM item WHERE id = ?",
    "update": "UPDATE item SET quantity = ? WHERE id = ?",
    "scan": "SELECT * FROM item WHERE id >= ? ORDER BY id LIMIT ?",
}
Operation = tuple[str, int, int]
"""Kind, first item, number of items."""

Perform = Callable[[Operation], object]


def measure_mix(url: str, item: CompiledTable, sizes: Sizes, report: BenchmarkReport) -> None:
    rng = random.Random(report.seed)
    operations = [
        (rng.choice(KINDS), rng.randrange(sizes.items), rng.randint(1, SCAN_ROWS_MAX))
        for _ in range(4 * sizes.calls)
    ]
    for threads in THREADS:
        bare = _time_kinds(threads, operations, lambda: _perform_bare(url, item))
        ours = _time_kinds(threads, operations, lambda: _perform_sql(url))
        for kind in STATEMENTS:
            name = f"{kind} of the mix at {RATE}/s, {threads} threads, to a bare call"
            published = PUBLISHED[threads, kind]
            report.add(Figure(name, ours[kind], "ms", "", bare[kind], published))


def _perform_bare(url: str, item: CompiledTable) -> tuple[Perform, Callable[[], None]]:
    gateway = BareGateway(parse_url(url))
    cells = gateway.read_cells(item.key.encode_first(1))

    def perform(operation: Operation) -> object:
        kind, first, count = operation
        key = item.key.encode_first(first)
        if kind == "read":
            return gateway.get(key)
        if kind == "scan":
            return gateway.scan_some(key, item.end, count)
        gateway.put(NOWHERE + key, cells)
        return None

    return perform, gateway.close


def _perform_sql(url: str) -> tuple[Perform, Callable[[], None]]:
    con = connect(url, autocommit=True)

    def perform(operation: Operation) -> object:
        kind, first, count = operation
        given = {"read": (first,), "update": (count, first), "scan": (first, count)}[kind]
        cursor = con.execute(STATEMENTS[kind], given)
        return cursor if kind == "update" else cursor.fetchall()

    return perform, con.close


def _time_kinds(
    threads: int,
    operations: list[Operation],
    open_side: Callable[[], tuple[Perform, Callable[[], None]]],
) -> dict[str, float]:
    """Mean milliseconds of each kind. Operation number n is due n / RATE seconds after the start;
    one that is late begins at once, and is counted from then."""
    taken: dict[str, list[float]] = {kind: [] for kind in STATEMENTS}
    ready, began = threading.Barrier(threads + 1), [0.0]

    def work(number: int) -> None:
        perform, close = open_side()
        with ExitStack() as ended:
            ended.callback(close)
            perform(operations[number % len(operations)])
            ready.wait()
            ready.wait()
            for turn in range(number, len(operations), threads):
                time.sleep(max(0.0, began[0] + turn / RATE - time.perf_counter()))
                started = time.perf_counter()
                perform(operations[turn])
                taken[operations[turn][0]].append(time.perf_counter() - started)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    ready.wait()
    began[0] = time.perf_counter()
    ready.wait()
    for worker in workers:
        worker.join()
    return {kind: sum(all_) / len(all_) * 1000 for kind, all_ in taken.items()}
