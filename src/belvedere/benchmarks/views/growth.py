"""The growth of the cost of one change, over every shape of view: `belvedere bench growth`.

A change of one row must cost what it changes, not what the table or its group holds. Every shape
(`benchmarks.views.shapes`) is an immediate view, and one change of it is measured:

    groups   groups of 100, 1,000 and 10,000 rows, in tables of the same size
    tables   tables of 10,000, 100,000 and 1,000,000 rows, in groups of the same size

A figure is the largest size against the smallest, in keys of the store that the change reads and
writes, and in time. Keys are the same on every machine, so that a test judges them; the time is
CPU time of the thread, through the double that counts, which adds the same to all sizes. Shapes
whose answer itself changes in more rows are named, and judged by the time for each row of the
group.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich.progress import Progress

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.views.shapes import SHAPES, ViewShape
from belvedere.benchmarks.views.workload import split_spans
from belvedere.config import Config, Durability
from belvedere.database import SQL_COMPILERS, Database
from belvedere.kv.doubles.counter import CountingStore
from belvedere.kv.memory import MemoryStore
from belvedere.session.session import Session
from belvedere.txn.batch_atomic.recovery import open_directory, open_memory

GROUP_ROWS = (100, 1_000, 10_000)
TABLE_ROWS = (10_000, 100_000, 1_000_000)
ROWS, ROWS_EACH = 100_000, 100
"""The size of the tables while groups grow, and of the groups while tables grow."""

WARM_TURNS, TURNS = 2, 6
"""Changes that are made first, to compile what they need; and those that are measured."""

_PARAMETER = re.compile(r"(?<!:):(\w+)")

GOAL = 1.5
CHANGED_ROW_US = 2.0


class TableSize(NamedTuple):
    rows: int
    group_rows: int

    @property
    def groups(self) -> int:
        return max(1, self.rows // self.group_rows)


class KeyCost(NamedTuple):
    """Of one change: keys of the store read and written, seconds of its thread's CPU."""

    read: int
    written: int
    seconds: float

    @property
    def key_count(self) -> int:
        return self.read + self.written


@dataclass(slots=True)
class GrowthStore:
    """A database over a store that counts, with the tables of the shapes."""

    session: Session
    counter: CountingStore
    size: TableSize

    def run(self, statement: str, parameters: Sequence[object] = ()) -> None:
        self.session.execute(statement, parameters)

    def load_tables(self) -> None:
        groups = self.size.groups
        self.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int, w int)")
        self.run("CREATE TABLE p (id int PRIMARY KEY, r int, n text)")
        self.run("CREATE TABLE u (id int PRIMARY KEY, g int, v int)")
        for table, columns, count in (
            ("t", f"i, i % {groups}, 10 * (i / {groups}), i % 9", self.size.rows),
            ("p", "i, i % 10, 'n'", groups),
            ("u", "i, i, 10", groups),
        ):
            for first, last in split_spans(count):
                self.run(
                    f"INSERT INTO {table} SELECT {columns}"
                    f" FROM generate_series({first}, {last}) AS s (i)"
                )

    def measure_shape(self, shape: ViewShape) -> KeyCost:
        """The cost of one change with this view alone: the medians of some changes."""
        self.run(f"CREATE MATERIALIZED VIEW shape AS {shape.definition}")
        try:
            costs = [self._measure_change(shape, turn) for turn in range(WARM_TURNS + TURNS)]
        finally:
            self.run("DROP MATERIALIZED VIEW shape")
        return KeyCost(*(sorted(values[WARM_TURNS:])[TURNS // 2] for values in zip(*costs)))

    def _measure_change(self, shape: ViewShape, turn: int) -> KeyCost:
        groups = self.size.groups
        group = (turn // 2) % groups
        middle = group + groups * (self.size.group_rows // 2)
        given = {"id": middle, "g": group, "step": -15 if turn % 2 else 15, "turn": turn}
        parameters = [given[name] for name in _PARAMETER.findall(shape.change)]
        statement = _PARAMETER.sub("?", shape.change)
        self.counter.take_counts()
        started = time.thread_time()
        self.run(statement, parameters)
        return KeyCost(*self.counter.take_counts(), time.thread_time() - started)


@contextmanager
def open_growth_store(size: TableSize, directory: Path | None = None) -> Iterator[GrowthStore]:
    """A store with tables of this size, in memory without a directory."""
    config = Config(durability=Durability.OFF)
    opened = (
        open_memory(MemoryStore(), os.urandom)
        if directory is None
        else open_directory(directory, config, os.urandom)
    )
    counter = CountingStore(opened.store)
    opened.store = counter
    with Database(opened, config, **SQL_COMPILERS) as database:
        session = Session(database.open_shared_state())
        store = GrowthStore(session, counter, size)
        store.load_tables()
        yield store


def measure_shapes(
    size: TableSize, shapes: Sequence[ViewShape], directory: Path | None = None
) -> dict[str, KeyCost]:
    with open_growth_store(size, directory) as store:
        return {shape.name: store.measure_shape(shape) for shape in shapes}


def run(scale: float, seed: int, parts: Sequence[str] = ()) -> BenchmarkReport:
    """Measure every shape by groups and by tables."""
    report = BenchmarkReport(f"growth, scale {scale:g}", seed)
    axes = {
        "groups": [
            TableSize(_scale_count(ROWS, scale), _scale_count(each, scale)) for each in GROUP_ROWS
        ],
        "tables": [TableSize(_scale_count(rows, scale), ROWS_EACH) for rows in TABLE_ROWS],
    }
    wanted = {name: sizes for name, sizes in axes.items() if not parts or name[0] in parts}
    with Progress() as progress:
        task = progress.add_task("growth", total=sum(map(len, wanted.values())))
        for name, sizes in wanted.items():
            found = []
            for size in sizes:
                progress.update(task, description=f"growth ({name}, {size.rows} rows)")
                with tempfile.TemporaryDirectory(prefix="belvedere-bench-") as directory:
                    found.append(measure_shapes(size, SHAPES, Path(directory) / "store"))
                progress.advance(task)
            for shape in SHAPES:
                _report_shape(report, name, shape, sizes, [one[shape.name] for one in found])
    return report


STEPS = ("groups", "tables")
"""The parts, by their first letter."""


def _scale_count(count: int, scale: float) -> int:
    return max(10, round(count * scale))


def _report_shape(
    report: BenchmarkReport,
    axis: str,
    shape: ViewShape,
    sizes: Sequence[TableSize],
    costs: Sequence[KeyCost],
) -> None:
    first, last = costs[0], costs[-1]
    title = f"({axis[0]}) {shape.name}"
    if axis == "groups" and shape.answer:
        changed_us = last.seconds * 1e6 / sizes[-1].group_rows
        goal = f"<= {CHANGED_ROW_US:g} value"
        report.add(Figure(f"{title}, a row of the group ({shape.answer})", changed_us, "us", goal))
        return
    report.add(
        Figure(f"{title}, keys", last.key_count, "keys", f"<= {GOAL:g} ratio", first.key_count)
    )
    report.add(
        Figure(
            f"{title}, time", last.seconds * 1e6, "us", f"<= {GOAL:g} ratio", first.seconds * 1e6
        )
    )
