"""Microseconds of CPU for each row of bulk statements: Belvedere beside three others, in one run.

    (a) no index   (b) an index on the column that changes   (c) the index and an immediate view

Durability is off, one client, DuckDB has one thread, and rounds of the systems alternate. Times are
of the CPU, that of PostgreSQL's own process included. The ratio is to the system of the goal; the
other systems stand below it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from rich.progress import Progress

from belvedere.benchmarks.bulk.peers import (
    BelvedereBulk,
    BulkPeer,
    DuckdbBulk,
    PostgresBulk,
    SqliteBulk,
)
from belvedere.benchmarks.bulk.tasks import (
    COPIED,
    TASKS,
    VALUES_ROWS,
    VARIANTS,
    Place,
    Task,
    Variant,
    create_table,
    write_rows,
)
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure, alternate_rounds
from belvedere.benchmarks.report.postgres_peer import postgres_connection

ROUNDS = 3
STEPS = ("a no index", "b index", "c index and view")


def run(rows: int, seed: int, parts: Sequence[str] = ()) -> BenchmarkReport:
    report = BenchmarkReport("bulk", seed)
    variants = [v for step, v in zip(STEPS, VARIANTS) if not parts or step[0] in parts]
    work = [(variant, task) for variant in variants for task in TASKS if variant in task.variants]
    with open_places(rows) as places, Progress() as progress:
        if len(places) < 4:
            report.absent.append("PostgreSQL: its wheel is not installed")
        for variant, task in progress.track(work):
            for place in places:
                place.create_target(variant)
            _measure_task(report, places, task, variant)
    return report


@contextmanager
def open_places(rows: int) -> Iterator[list[Place]]:
    """Every system that is there, with the same rows in its table `source`."""
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="belvedere-bulk-"))
        folder, file = Path(name), Path(name) / "rows.csv"
        folder.chmod(0o755)
        write_rows(file, COPIED * rows)
        peers: list[BulkPeer] = [
            BelvedereBulk(folder / "belvedere"),
            SqliteBulk(folder / "lite.db"),
            DuckdbBulk(folder / "duck.db"),
        ]
        connection = stack.enter_context(postgres_connection())
        if connection is not None:
            peers.append(PostgresBulk(connection))
        places = [Place(peer, rows, file) for peer in peers]
        for place in places:
            stack.callback(place.peer.close)
            create_table(place, "source", VARIANTS[0])
            place.peer.copy_file("source", file)
        yield places


def _measure_task(
    report: BenchmarkReport, places: Sequence[Place], task: Task, variant: Variant
) -> None:
    timed = [place for place in places if place.peer.name not in task.slow]
    found = alternate_rounds(ROUNDS, *[partial(time_task, place, task, variant) for place in timed])
    taken = dict(zip([place.peer.name for place in timed], found, strict=True))
    ours = taken.pop("belvedere")
    named = task.name + variant.name
    goal = task.goal if task.peer in taken else ""
    report.add(Figure(named, ours, "us a row", goal, taken.pop(task.peer, None)))
    for name, value in taken.items():
        report.add(Figure(f"{named}, to {name}", ours, "us a row", "", value))


def time_task(place: Place, task: Task, variant: Variant) -> float:
    """Microseconds of CPU for each row, the preparation left out."""
    task.prepare(place, variant)
    started = place.peer.cpu_seconds()
    task.work(place)
    spent = place.peer.cpu_seconds() - started
    return spent / (task.factor * place.rows or VALUES_ROWS) * 1e6
