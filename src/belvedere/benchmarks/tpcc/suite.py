"""TPC-C transactions per second: Belvedere beside sqlite3 and PostgreSQL, in one run.

    (a) one client, durability off; milliseconds of each transaction
    (b) the same with four immediate views in Belvedere
    (c) one client, durability full
    (d) eight threads, durability full, compared with one

Rounds of the systems alternate. After every part the twelve consistency conditions are checked on
each system, and a broken one fails the run. With the URL of a server (`postgresql://..`), it is
measured over the wire instead (`tpcc.over_wire`).
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.progress import Progress

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.report.postgres_peer import postgres_connection
from belvedere.benchmarks.tpcc import over_wire
from belvedere.benchmarks.tpcc.conditions import require_consistency
from belvedere.benchmarks.tpcc.generate import TpccSize, scale_size
from belvedere.benchmarks.tpcc.peers import (
    BelvederePeer,
    PostgresPeer,
    SqlitePeer,
    TransactionPeer,
    load_tables,
)
from belvedere.benchmarks.tpcc.schema import VIEWS
from belvedere.benchmarks.tpcc.transactions import WEIGHTS, NumberSource, Terminal, number_history

ROUNDS = 10
ROUND_TRANSACTIONS = 200
THREADS = 8
STEPS = ("a off", "b views", "c full", "d threads")
Peers = dict[str, TransactionPeer]
TimesByName = dict[str, list[float]]


def run(
    scale: float, seed: int, parts: Sequence[str] = (), *, database: str | None = None
) -> BenchmarkReport:
    report = BenchmarkReport("tpcc", seed)
    size = scale_size(scale)
    if database is not None:
        over_wire.measure_over_wire(report, database, size, seed)
        return report
    steps = {"a": _measure_off, "b": _measure_views, "c": _measure_full, "d": _measure_threads}
    with Progress() as progress:
        for letter in progress.track([s for s in steps if not parts or s in parts]):
            steps[letter](report, size, seed)
    return report


def _measure_off(report: BenchmarkReport, size: TpccSize, seed: int) -> None:
    with open_peers(report, "off") as peers:
        times = _alternate_terminals(peers, size, seed)
        _add_rates(report, times, "durability off", {"sqlite3": ">= 0.7 ratio"})
        for name in WEIGHTS:
            _add_latencies(report, times, name)


def _measure_views(report: BenchmarkReport, size: TpccSize, seed: int) -> None:
    with open_peers(report, "off") as peers:
        times = _alternate_terminals(peers, size, seed, VIEWS)
        _add_rates(report, times, "four views", {"sqlite3": ">= 0.5 ratio"})


def _measure_full(report: BenchmarkReport, size: TpccSize, seed: int) -> None:
    with open_peers(report, "full") as peers:
        times = _alternate_terminals(peers, size, seed)
        _add_rates(report, times, "durability full", {"sqlite3": ">= 1 ratio"})


def _measure_threads(report: BenchmarkReport, size: TpccSize, seed: int) -> None:
    """A warehouse for each thread, as TPC-C has it, so that they rarely wait for each other. What
    a transaction read is not to have changed when it writes: REPEATABLE READ."""
    size = TpccSize(THREADS, size.items, size.customers)
    rates = []
    with tempfile.TemporaryDirectory(prefix="belvedere-tpcc-") as name:
        path = Path(name) / "belvedere"
        peer = BelvederePeer(path, "full")
        load_tables(peer, size, seed)
        for threads in (1, THREADS):
            rates.append(_run_threads(path, size, seed, threads))
        require_consistency("belvedere", peer)
        peer.close()
    figure = Figure(f"{THREADS} threads, to one", rates[1], "1/s", ">= 3 ratio", rates[0])
    report.add(figure)


def _run_threads(path: Path, size: TpccSize, seed: int, threads: int) -> float:
    count = ROUND_TRANSACTIONS * ROUNDS // 4
    history = NumberSource(number_history(size) if threads == 1 else _shift_history(size, count))

    def run_terminal(number: int) -> None:
        peer = BelvederePeer(path, "full")
        peer.change_rows("SET default_transaction_isolation = 'repeatable read'", ())
        peer.commit()
        terminal = Terminal(peer, size, seed + number, history, number + 1)
        for _ in range(count // threads):
            terminal.run_next()
        peer.close()

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run_terminal, range(threads)))  # which raises what one of them raised
    return count / (time.perf_counter() - start)


def _shift_history(size: TpccSize, used: int) -> Iterator[int]:
    numbers = number_history(size)
    for _ in range(used):
        next(numbers)
    return numbers


# -- systems ---------------------------------------------------------------------------------------


@contextmanager
def open_peers(report: BenchmarkReport, durability: str) -> Iterator[Peers]:
    """Belvedere first. PostgreSQL is left out, and the report says so, without its wheel."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="belvedere-tpcc-"))
        peers: Peers = {
            "belvedere": BelvederePeer(Path(folder) / "belvedere", durability),
            "sqlite3": SqlitePeer(Path(folder) / "sqlite.db", durability),
        }
        connection = stack.enter_context(postgres_connection(durable=durability == "full"))
        if connection is None:
            report.absent.append("PostgreSQL: its wheel is not installed")
        else:
            peers["PostgreSQL"] = PostgresPeer(connection)
        yield peers
        for peer in peers.values():
            peer.close()


# -- rounds ----------------------------------------------------------------------------------------


def _alternate_terminals(
    peers: Peers, size: TpccSize, seed: int, views: Sequence[str] = ()
) -> dict[str, TimesByName]:
    """Seconds of each transaction by its name and system; views are made in Belvedere alone."""
    terminals: dict[str, Terminal] = {}
    for name, peer in peers.items():
        load_tables(peer, size, seed)
        if name == "belvedere":
            for view in views:
                peer.change_rows(view, ())
                peer.commit()
        terminals[name] = Terminal(peer, size, seed, number_history(size))
    found: dict[str, TimesByName] = {name: defaultdict(list) for name in peers}
    for terminal in terminals.values():
        for _ in range(ROUND_TRANSACTIONS // 2):  # plans are made and pages are read
            terminal.run_next()
    for _ in range(ROUNDS):
        for name, terminal in terminals.items():
            _time_transactions(terminal, found[name])
    for name, peer in peers.items():
        require_consistency(name, peer)
    return found


def _time_transactions(terminal: Terminal, times: TimesByName) -> None:
    for _ in range(ROUND_TRANSACTIONS):
        start = time.perf_counter()
        name = terminal.run_next()
        times[name].append(time.perf_counter() - start)


def _add_rates(
    report: BenchmarkReport, found: dict[str, TimesByName], what: str, goals: dict[str, str]
) -> None:
    rates = {name: _rate_of(times) for name, times in found.items()}
    for name, rate in rates.items():
        if name != "belvedere":
            goal = goals.get(name, "")
            report.add(Figure(f"{what}, to {name}", rates["belvedere"], "1/s", goal, rate))


def _rate_of(times: TimesByName) -> float:
    every = [one for some in times.values() for one in some]
    return len(every) / sum(every)


def _add_latencies(report: BenchmarkReport, found: dict[str, TimesByName], name: str) -> None:
    means = {system: _mean_ms(times[name]) for system, times in found.items() if times[name]}
    for system, mean in means.items():
        if system != "belvedere" and "belvedere" in means:
            figure = Figure(f"{name}, to {system}", means["belvedere"], "ms", "", mean)
            report.add(figure)


def _mean_ms(times: Sequence[float]) -> float:
    return sum(times) / len(times) * 1000
