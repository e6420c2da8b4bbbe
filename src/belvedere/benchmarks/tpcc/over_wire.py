"""TPC-C over the wire: a server of PostgreSQL's protocol beside PostgreSQL, by the same driver.

One client first, rounds alternate; then eight, each with its own connection. PostgreSQL is durable,
and so is `belvedere serve`. The twelve conditions are checked on both at the end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.report.postgres_peer import connect_to_server, postgres_connection
from belvedere.benchmarks.tpcc.conditions import require_consistency
from belvedere.benchmarks.tpcc.generate import TpccSize
from belvedere.benchmarks.tpcc.peers import PostgresPeer, load_tables
from belvedere.benchmarks.tpcc.transactions import NumberSource, Terminal, number_history
from belvedere.errors import Unsupported

if TYPE_CHECKING:
    import psycopg

CLIENTS = 8
ROUNDS = 5
ROUND_TRANSACTIONS = 100


class WireServer(NamedTuple):
    name: str
    connection: psycopg.Connection[Any]

    def open_peer(self) -> PostgresPeer:
        """A connection of its own."""
        info = self.connection.info
        import psycopg  # heavy

        return PostgresPeer(psycopg.connect(info.dsn, password=info.password))


def measure_over_wire(report: BenchmarkReport, url: str, size: TpccSize, seed: int) -> None:
    size = TpccSize(CLIENTS, size.items, size.customers)  # a warehouse for each client
    with ExitStack() as stack:
        peer = stack.enter_context(postgres_connection(durable=True))
        if peer is None:
            raise Unsupported("TPC-C over the wire without PostgreSQL", hint="install its wheel")
        server = stack.enter_context(connect_to_server(url))
        systems = [WireServer("server", server), WireServer("PostgreSQL", peer)]
        peers = [PostgresPeer(system.connection) for system in systems]
        for one in peers:
            load_tables(one, size, seed)
        histories = [NumberSource(number_history(size)) for _ in systems]
        ours, theirs = _rate_one_client(peers, histories, size, seed)
        report.add(Figure("one client", ours, "1/s", ">= 0.7 ratio", theirs))
        ours, theirs = [
            _rate_clients(system, history, size, seed)
            for system, history in zip(systems, histories, strict=True)
        ]
        report.add(Figure(f"{CLIENTS} clients", ours, "1/s", ">= 0.7 ratio", theirs))
        for system, one in zip(systems, peers, strict=True):
            require_consistency(system.name, one)


def _rate_one_client(
    peers: Sequence[PostgresPeer], histories: Sequence[Iterator[int]], size: TpccSize, seed: int
) -> list[float]:
    terminals = [Terminal(p, size, seed, h) for p, h in zip(peers, histories, strict=True)]
    spent = [0.0 for _ in terminals]
    for terminal in terminals:
        _run_transactions(terminal, ROUND_TRANSACTIONS // 2)  # statements are prepared
    for _ in range(ROUNDS):
        for place, terminal in enumerate(terminals):
            spent[place] += _run_transactions(terminal, ROUND_TRANSACTIONS)
    return [ROUNDS * ROUND_TRANSACTIONS / seconds for seconds in spent]


def _rate_clients(system: WireServer, history: Iterator[int], size: TpccSize, seed: int) -> float:
    peers = [system.open_peer() for _ in range(CLIENTS)]
    terminals = [Terminal(peer, size, seed + 1 + n, history) for n, peer in enumerate(peers)]
    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(_run_transactions, terminals, repeat(ROUND_TRANSACTIONS)))
    spent = time.perf_counter() - start
    for peer in peers:
        peer.close()
    return CLIENTS * ROUND_TRANSACTIONS / spent


def _run_transactions(terminal: Terminal, count: int) -> float:
    """The seconds they took."""
    start = time.perf_counter()
    for _ in range(count):
        terminal.run_next()
    return time.perf_counter() - start
