"""How long operations take on a real HBase: what the simulated cluster is made of.

    latency    of one call while nothing else runs, as the client sees it
    occupancy  of a core of a region server by one call: cores / calls a second when it is busy
    row hold   of a row that every call changes: 1 / calls a second on one row
    commit CPU of a node for one transaction of one row, SQL included

Measured here, gateway, region server and client share the machine, so that occupancy contains all
three: on machines of their own each does more. `MEASURED` has that of the region server alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from belvedere.interfaces.dbapi import Connection
from belvedere.kv.cell import CheckAndMutate, Get, Increment, Mutate, Put
from belvedere.kv.hbase.store import HBaseCells

CALLERS = 8
SCRATCH = b"\x7fscaling"
"""Rows of the system table that nobody else has."""


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """Seconds."""

    get_latency: float
    put_latency: float
    check_latency: float
    increment_latency: float
    get_occupancy: float
    change_occupancy: float
    row_hold: float
    commit_cpu: float
    cores: int = 2

    def as_milliseconds(self) -> dict[str, float]:
        return {name: 1000 * value for name, value in asdict(self).items() if name != "cores"}


MEASURED = ServiceTimes(
    get_latency=0.00049,
    put_latency=0.00057,
    check_latency=0.00098,
    increment_latency=0.00056,
    get_occupancy=0.00017,
    change_occupancy=0.00025,
    row_hold=1 / 2131,
    commit_cpu=0.00216,
)
"""One JVM with everything on 2 cores. Latencies of one caller. Occupancy: CPU of the threads of the
region server (handlers, network, WAL), by /proc, while 16 processes called; that of changes is
between an increment's and a conditional write's. The row that all change: increments of four
processes, while other work ran there, so that this is the most that one holds it."""


def measure_best_times(store: HBaseCells, con: Connection, calls: int, rounds: int) -> ServiceTimes:
    """The least of several rounds: other work on the machine only adds to a time."""
    found = [asdict(_measure_service_times(store, con, calls)) for _ in range(rounds)]
    return ServiceTimes(**{name: min(each[name] for each in found) for name in found[0]})


def _measure_service_times(store: HBaseCells, con: Connection, calls: int) -> ServiceTimes:
    """`con` has a table `item` whose rows 0 to 9 can be updated."""
    row = SCRATCH + b"one"
    value = Put(b"v", 1, b"x" * 100)
    store.mutate(Mutate(row, (value,)))
    check = CheckAndMutate(row, b"v", value.value, (value,))
    counter = Increment(SCRATCH + b"n", b"n")
    cores = MEASURED.cores
    return ServiceTimes(
        get_latency=_time_call(calls, lambda: store.get(Get(row))),
        put_latency=_time_call(calls, lambda: store.mutate(Mutate(row, (value,)))),
        check_latency=_time_call(calls, lambda: store.check_and_mutate(check)),
        increment_latency=_time_call(calls, lambda: store.increment(counter)),
        get_occupancy=cores / _busy_rate(calls, lambda caller: store.get(Get(_row_of(caller)))),
        change_occupancy=cores
        / _busy_rate(calls, lambda caller: store.mutate(Mutate(_row_of(caller), (value,)))),
        row_hold=1 / _busy_rate(calls, lambda _: store.increment(counter)),
        commit_cpu=_measure_commit_cpu(con, calls),
        cores=cores,
    )


def _row_of(caller: int) -> bytes:
    return SCRATCH + bytes((caller,))


def _time_call(calls: int, work: Callable[[], object]) -> float:
    """The median of single calls."""
    taken = []
    for _ in range(calls):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return sorted(taken)[len(taken) // 2]


def _busy_rate(calls: int, work: Callable[[int], object]) -> float:
    """Calls a second of several callers at once."""

    def call_often(caller: int) -> None:
        for _ in range(calls):
            work(caller)

    threads = [threading.Thread(target=call_often, args=(number,)) for number in range(CALLERS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return CALLERS * calls / (time.perf_counter() - started)


def _measure_commit_cpu(con: Connection, calls: int) -> float:
    update = "UPDATE item SET quantity = quantity + 1 WHERE id = ?"
    con.execute(update, (0,))
    started = time.process_time()
    for number in range(calls):
        con.execute(update, (number % 10,))
    return (time.process_time() - started) / calls
