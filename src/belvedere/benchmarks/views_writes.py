"""The cost of a write with views: k immediate ones, a join, and deferred ones.

Writes are single-row UPDATE statements through a connection. Each number of views has its own table
in one store, with the same rows; rounds of all tables alternate. A deferred view is compared
between two stores, so that its worker runs in one of them only; a round ends when the view has
caught up.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from belvedere.benchmarks.plots import Plot
from belvedere.benchmarks.report import Figure, Report, alternate
from belvedere.benchmarks.workload import (
    create,
    follow,
    load,
    opened,
    paced,
    percentile,
    seconds,
    uniform,
)
from belvedere.interfaces.dbapi import Connection

ROWS = 100_000
GROUPS = 1_000
COUNTS = (0, 1, 2, 4, 8, 16)
WRITES = 1_000
ROUNDS = 12
RATE = 5_000
GOALS = {1: "<= 1.4 ratio"}
TABLE = "(id bigint PRIMARY KEY, g integer NOT NULL, parent bigint NOT NULL, v bigint NOT NULL)"


def immediate(directory: Path, scale: float, seed: int, report: Report) -> None:
    rows = max(int(ROWS * scale), 2 * GROUPS)
    with opened(directory / "store") as connection:
        for count in COUNTS:
            _table(connection, f"t{count}", rows)
            for number in range(count):
                create(connection, f"v{count}_{number}", _counted(f"t{count}", number))
        _joined(connection, rows)
        names = [*(f"t{count}" for count in COUNTS), "joined"]
        taken = dict(zip(names, _alternated(connection, names, rows, scale, seed), strict=True))
    none = taken["t0"]
    report.add(Figure("(a) write, no view", none, "us"))
    for count in COUNTS[1:]:
        figure = Figure(
            f"(a) write, {count} immediate count/sum",
            taken[f"t{count}"],
            "us",
            GOALS.get(count, ""),
        )
        report.add(_against(figure, none))
    report.add(Figure("(a) write, 1 immediate join", taken["joined"], "us", "<= 2 ratio", none))
    curve = [(float(count), taken[f"t{count}"] / none) for count in COUNTS]
    report.plots.append(
        Plot("Write cost by immediate views", "views", "cost / cost without", {"count/sum": curve})
    )


def _against(figure: Figure, baseline: float) -> Figure:
    return Figure(figure.name, figure.value, figure.unit, figure.goal, baseline)


def _table(connection: Connection, name: str, rows: int) -> None:
    connection.execute(f"CREATE TABLE {name} {TABLE}")
    load(connection, name, f"i, i % {GROUPS}, i % {GROUPS}, i", rows)


def _counted(table: str, number: int) -> str:
    """A different view for every number: the same groups, another sum."""
    return f"SELECT g, count(*) AS n, sum(v + {number}) AS total FROM {table} GROUP BY g"


def _joined(connection: Connection, rows: int) -> None:
    connection.execute("CREATE TABLE parents (id bigint PRIMARY KEY, name text NOT NULL)")
    load(connection, "parents", "i, 'parent ' || i", GROUPS)
    _table(connection, "joined", rows)
    create(
        connection,
        "named",
        "SELECT c.id, c.v, p.name FROM joined c JOIN parents p ON p.id = c.parent",
    )


def _alternated(
    connection: Connection, tables: list[str], rows: int, scale: float, seed: int
) -> list[float]:
    keys = uniform(random.Random(seed), rows, _writes(scale))
    sides = [partial(_updates, connection, table, keys) for table in tables]
    for side in sides:
        side()  # statements are prepared once
    return alternate(ROUNDS, *sides)


def _writes(scale: float) -> int:
    return max(int(WRITES * min(scale * 10, 1)), 50)


def _updates(connection: Connection, table: str, keys: list[int]) -> float:
    """Microseconds of one update."""
    text, execute = f"UPDATE {table} SET v = v + 1 WHERE id = ?", connection.execute

    def update() -> None:
        for key in keys:
            execute(text, (key,))

    return seconds(update) / len(keys) * 1e6


# -- deferred --------------------------------------------------------------------------------------


def deferred(directory: Path, scale: float, seed: int, report: Report) -> None:
    rows = max(int(ROWS * scale), 2 * GROUPS)
    keys = uniform(random.Random(seed), rows, _writes(scale))
    with opened(directory / "plain") as plain, opened(directory / "viewed") as viewed:
        for connection in (plain, viewed):
            _table(connection, "t", rows)
        create(viewed, "v", _counted("t", 0), maintenance="deferred")
        for name, work, goal in (
            (f"latency at {RATE} writes/s", _paced_updates, "<= 1.1 ratio"),
            ("latency, saturated", _updates_of_t, "<= 1.3 ratio"),
        ):
            without, beside = alternate(
                ROUNDS, partial(work, plain, keys), partial(_then_follow, work, viewed, keys)
            )
            report.add(Figure(f"(a) 1 deferred view, {name}", beside, "us", goal, without))
        slow = [
            percentile(paced(RATE, _works(connection, keys)), 0.99) * 1e6
            for connection in (viewed, plain)
        ]
        report.add(
            Figure(f"(a) 1 deferred view, p99 at {RATE} writes/s", slow[0], "us", "", slow[1])
        )


def _updates_of_t(connection: Connection, keys: list[int]) -> float:
    return _updates(connection, "t", keys)


def _paced_updates(connection: Connection, keys: list[int]) -> float:
    """Mean microseconds of one update at the fixed rate."""
    taken = paced(RATE, _works(connection, keys))
    return sum(taken) / len(taken) * 1e6


def _works(connection: Connection, keys: list[int]) -> list[Callable[[], object]]:
    text = "UPDATE t SET v = v + 1 WHERE id = ?"
    return [partial(connection.execute, text, (key,)) for key in keys]


def _then_follow(
    work: Callable[[Connection, list[int]], float], connection: Connection, keys: list[int]
) -> float:
    taken = work(connection, keys)
    follow(connection, "v")
    return taken
