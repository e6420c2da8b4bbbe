"""Microseconds of each kind of statement: Belvedere beside sqlite3, in one run.

    (a) alone: each statement in a transaction of its own
    (b) as the 100th of a transaction, after 99 updates of one row and other statements of its kind
    (c) shape, in bytecodes: the 100th compared with the first, a row of 1,000 with one of 10
    (d) queries by access paths, beside sqlite3 and PostgreSQL (`path_suite`)

Durability is off, one thread, and rounds of both systems alternate. Times are of the thread's CPU:
neither system waits for a disk here, and a busy machine would only add noise.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.progress import Progress

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure, alternate_rounds
from belvedere.benchmarks.statements.kinds import (
    KINDS,
    StatementKind,
    delete_text,
    insert_text,
    insert_values,
)
from belvedere.benchmarks.statements.path_suite import measure_paths
from belvedere.benchmarks.statements.peers import StatementPeer, open_belvedere, open_sqlite
from belvedere.benchmarks.statements.shape import GROWTH_MAX, count_in_transaction, run_preceding

ROUNDS = 10
COUNTS = {1: 100, 10: 30, 1000: 2}
"""Statements of a round, by their rows."""
PRECEDING = 99
MANY_PRECEDING = 999
MANY_GROWTH_MAX = 1.2
FEW_PRECEDING = 1
"""So that the first of a transaction comes right after an update of another row, as the 100th does:
what such a row changes in indexes is worked out by the first read of them."""
STEPS = ("a alone", "b in a transaction", "c shape", "d access paths")


def run(rows: int, seed: int, parts: Sequence[str] = ()) -> BenchmarkReport:
    report = BenchmarkReport("statements", seed)
    rows = max(rows, 4000)
    steps = {"a": _measure_single, "b": _measure_in_transactions, "c": _measure_shape}
    wanted = [s for s in steps if not parts or s in parts]
    if wanted:
        with open_peers(rows) as peers, Progress() as progress:
            for letter in progress.track(wanted):
                steps[letter](report, peers, _StartDrawer(rows, seed))
    if not parts or "d" in parts:
        measure_paths(report, rows, seed)
    return report


@contextmanager
def open_peers(rows: int) -> Iterator[tuple[StatementPeer, StatementPeer]]:
    """Belvedere and sqlite3, with the same tables."""
    with tempfile.TemporaryDirectory(prefix="belvedere-statements-") as folder:
        peers = open_belvedere(Path(folder) / "belvedere"), open_sqlite(Path(folder) / "lite.db")
        for peer in peers:
            peer.load_tables(rows)
        yield peers
        for peer in peers:
            peer.close()


class _StartDrawer:
    """The first row of each statement: a random one, or for inserts one that is not there."""

    def __init__(self, rows: int, seed: int) -> None:
        self._rows, self._random = rows, random.Random(seed)

    def draw_starts(self, kind: StatementKind, rows: int, count: int) -> list[int]:
        if kind.inserts or kind.deletes:
            return [self._rows + number * rows for number in range(count)]
        return [self._random.randrange(self._rows - 2 * rows) for _ in range(count)]


Peers = tuple[StatementPeer, StatementPeer]


def _measure_single(report: BenchmarkReport, peers: Peers, drawer: _StartDrawer) -> None:
    for kind in KINDS:
        for rows in kind.sizes:
            starts = drawer.draw_starts(kind, rows, COUNTS[rows])
            sides = [partial(_time_single, peer, kind, rows, starts) for peer in peers]
            ours, lite = alternate_rounds(ROUNDS, *sides)
            report.add(Figure(f"{kind.name}, {rows} rows", ours, "us", "", lite))


def _time_single(peer: StatementPeer, kind: StatementKind, rows: int, starts: list[int]) -> float:
    """Rows to be deleted are inserted before, and inserted ones deleted after, untimed."""
    if kind.deletes:
        for start in starts:
            peer.execute(insert_text(kind.table, rows), insert_values(kind.table, rows, start))
    spent = _time_statements(peer, kind, rows, starts)
    if kind.inserts:
        for start in starts:
            values = (start,) if rows == 1 else (start, start + rows)
            peer.execute(delete_text(kind.table, rows), values)
    return spent


def _measure_in_transactions(report: BenchmarkReport, peers: Peers, drawer: _StartDrawer) -> None:
    for kind in KINDS:
        for rows in kind.sizes:
            starts = drawer.draw_starts(kind, rows, max(COUNTS[rows] // 10, 1))
            sides = [partial(_time_in_transaction, peer, kind, rows, starts) for peer in peers]
            ours, lite = alternate_rounds(ROUNDS, *sides)
            name = f"{kind.name}, {rows} rows, {PRECEDING + 1}th"
            report.add(Figure(name, ours, "us", kind.goal_for(rows), lite))


def _time_in_transaction(
    peer: StatementPeer, kind: StatementKind, rows: int, starts: list[int]
) -> float:
    peer.execute("BEGIN")
    if kind.deletes:
        for start in starts:
            peer.execute(insert_text(kind.table, rows), insert_values(kind.table, rows, start))
    run_preceding(peer, kind, starts[0] if kind.inserts else 1000, PRECEDING)
    spent = _time_statements(peer, kind, rows, starts)
    peer.execute("ROLLBACK")
    return spent


def _time_statements(
    peer: StatementPeer, kind: StatementKind, rows: int, starts: list[int]
) -> float:
    text = kind.text(rows)
    every = [kind.values(rows, start) for start in starts]
    action: Callable[..., object] = peer.fetch_rows if kind.reads else peer.execute
    started = time.thread_time()
    for values in every:
        action(text, values)
    return (time.thread_time() - started) / len(every) * 1e6


def _measure_shape(report: BenchmarkReport, peers: Peers, drawer: _StartDrawer) -> None:
    ours, _ = peers
    goal = f"<= {GROWTH_MAX} ratio"
    for kind in KINDS:
        costs = {}
        for rows in kind.sizes:
            start = drawer.draw_starts(kind, rows, 1)[0] if kind.inserts else 1000
            count_in_transaction(ours, kind, rows, start, FEW_PRECEDING)  # its plan is made
            first, later = (
                count_in_transaction(ours, kind, rows, start, before)
                for before in (FEW_PRECEDING, PRECEDING)
            )
            costs[rows] = later / rows
            name = f"{kind.name}, {rows} rows, {PRECEDING + 1}th to first"
            report.add(Figure(name, later, "bytecodes", goal, first))
            if rows == kind.sizes[0]:
                late = count_in_transaction(ours, kind, rows, start, MANY_PRECEDING)
                name = f"{kind.name}, {rows} rows, {MANY_PRECEDING + 1}th to first"
                report.add(Figure(name, late, "bytecodes", f"<= {MANY_GROWTH_MAX} ratio", first))
        name = f"{kind.name}, a row of 1000 to one of 10"
        report.add(Figure(name, costs[1000], "bytecodes", goal, costs[10]))
