"""Microseconds of queries by access paths: Belvedere beside sqlite3 and PostgreSQL, in one run.

The baseline is the better of the two. Belvedere and sqlite3 are measured by the CPU time of the
thread, PostgreSQL, which is another process, by the time that a client waits. Every query has run
before it is measured, and rounds of the systems alternate.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure, alternate_rounds
from belvedere.benchmarks.report.postgres_peer import postgres_connection
from belvedere.benchmarks.statements.kinds import Values
from belvedere.benchmarks.statements.path_queries import (
    PATH_INDEXES,
    PATH_QUERIES,
    PATH_TABLES,
    PathQuery,
    make_path_rows,
)
from belvedere.benchmarks.statements.peers import StatementPeer, open_belvedere, open_sqlite

if TYPE_CHECKING:
    import psycopg

ROUNDS = 8
ROUND_RUNS = 20
ROUND_S = 0.5
"""A round of a slow query ends after so many seconds."""
Fetch = Callable[[str, Values], list[tuple[Any, ...]]]
Clock = Callable[[], float]


class PathPeer:
    """A system with the tables of the queries, and the clock that its queries are measured by."""

    def __init__(self, name: str, fetch: Fetch, clock: Clock) -> None:
        self.name, self.fetch, self._clock = name, fetch, clock

    def time_query(self, query: PathQuery, rows: int, seed: int) -> float:
        """Microseconds of one run."""
        rng, runs = random.Random(seed), 0
        spent, until = 0.0, time.perf_counter() + ROUND_S
        while runs < ROUND_RUNS and (runs == 0 or time.perf_counter() < until):
            values = query.values(rng, rows)
            started = self._clock()
            self.fetch(query.text, values)
            spent += self._clock() - started
            runs += 1
        return spent / runs * 1e6


def measure_paths(report: BenchmarkReport, rows: int, seed: int) -> None:
    with open_path_peers(rows, seed) as peers:
        if len(peers) < 3:
            report.absent.append("PostgreSQL: its wheel is not installed")
        for query in PATH_QUERIES:
            for peer in peers:
                peer.time_query(query, rows, seed)
            sides = [partial(peer.time_query, query, rows, seed) for peer in peers]
            ours, *others = alternate_rounds(ROUNDS, *sides)
            report.add(Figure(query.name, ours, "us", query.goal, min(others)))


@contextmanager
def open_path_peers(rows: int, seed: int) -> Iterator[list[PathPeer]]:
    """Belvedere first. PostgreSQL is left out without its wheel."""
    made = make_path_rows(rows, seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="belvedere-paths-")))
        peers = []
        opened = {
            "belvedere": open_belvedere(folder / "belvedere"),
            "sqlite3": open_sqlite(folder / "lite.db"),
        }
        for name, peer in opened.items():
            stack.callback(peer.close)
            _load_embedded(peer, made)
            peers.append(PathPeer(name, peer.fetch_rows, time.thread_time))
        connection = stack.enter_context(postgres_connection())
        if connection is not None:
            _load_postgres(connection, made)
            peers.append(PathPeer("PostgreSQL", _fetch_from(connection), time.perf_counter))
        yield peers


def _load_embedded(peer: StatementPeer, made: dict[str, list[Values]]) -> None:
    for statement in PATH_TABLES:
        peer.execute(statement)
    peer.execute("BEGIN")
    for table, rows in made.items():
        peer.insert_many(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    peer.execute("COMMIT")
    for statement in (*PATH_INDEXES, "ANALYZE"):
        peer.execute(statement)


def _load_postgres(connection: psycopg.Connection[Any], made: dict[str, list[Values]]) -> None:
    for statement in PATH_TABLES:
        connection.execute(statement)
    for table, rows in made.items():
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    for statement in (*PATH_INDEXES, "ANALYZE"):
        connection.execute(statement)


def _fetch_from(connection: psycopg.Connection[Any]) -> Fetch:
    def fetch_rows(text: str, values: Values) -> list[tuple[Any, ...]]:
        return connection.execute(text.replace("?", "%s"), values).fetchall()

    return fetch_rows
