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

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure, alternate_rounds
from belvedere.benchmarks.report.plots import Plot
from belvedere.benchmarks.views.workload import (
    create_view,
    load_rows,
    open_connection,
    percentile,
    run_paced,
    time_call,
    uniform_keys,
    wait_for_views,
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


def measure_immediate(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    rows = max(int(ROWS * scale), 2 * GROUPS)
    with open_connection(directory / "store") as connection:
        for count in COUNTS:
            _create_table(connection, f"t{count}", rows)
            for number in range(count):
                create_view(connection, f"v{count}_{number}", _count_query(f"t{count}", number))
        _create_join(connection, rows)
        names = [*(f"t{count}" for count in COUNTS), "joined"]
        taken = dict(
            zip(names, _alternate_tables(connection, names, rows, scale, seed), strict=True)
        )
    none = taken["t0"]
    report.add(Figure("(a) write, no view", none, "us"))
    for count in COUNTS[1:]:
        figure = Figure(
            f"(a) write, {count} immediate count/sum",
            taken[f"t{count}"],
            "us",
            GOALS.get(count, ""),
        )
        report.add(_with_baseline(figure, none))
    report.add(Figure("(a) write, 1 immediate join", taken["joined"], "us", "<= 2 ratio", none))
    curve = [(float(count), taken[f"t{count}"] / none) for count in COUNTS]
    report.plots.append(
        Plot("Write cost by immediate views", "views", "cost / cost without", {"count/sum": curve})
    )


def _with_baseline(figure: Figure, baseline: float) -> Figure:
    return Figure(figure.name, figure.value, figure.unit, figure.goal, baseline)


def _create_table(connection: Connection, name: str, rows: int) -> None:
    connection.execute(f"CREATE TABLE {name} {TABLE}")
    load_rows(connection, name, f"i, i % {GROUPS}, i % {GROUPS}, i", rows)


def _count_query(table: str, number: int) -> str:
    """A different view for every number: the same groups, another sum."""
    return f"SELECT g, count(*) AS n, sum(v + {number}) AS total FROM {table} GROUP BY g"


def _create_join(connection: Connection, rows: int) -> None:
    connection.execute("CREATE TABLE parents (id bigint PRIMARY KEY, name text NOT NULL)")
    load_rows(connection, "parents", "i, 'parent ' || i", GROUPS)
    _create_table(connection, "joined", rows)
    create_view(
        connection,
        "named",
        "SELECT c.id, c.v, p.name FROM joined c JOIN parents p ON p.id = c.parent",
    )


def _alternate_tables(
    connection: Connection, tables: list[str], rows: int, scale: float, seed: int
) -> list[float]:
    keys = uniform_keys(random.Random(seed), rows, _write_count(scale))
    sides = [partial(_time_updates, connection, table, keys) for table in tables]
    for side in sides:
        side()  # statements are prepared once
    return alternate_rounds(ROUNDS, *sides)


def _write_count(scale: float) -> int:
    return max(int(WRITES * min(scale * 10, 1)), 50)


def _time_updates(connection: Connection, table: str, keys: list[int]) -> float:
    """Microseconds of one update."""
    text, execute = f"UPDATE {table} SET v = v + 1 WHERE id = ?", connection.execute

    def update_rows() -> None:
        for key in keys:
            execute(text, (key,))

    return time_call(update_rows) / len(keys) * 1e6


# -- deferred --------------------------------------------------------------------------------------


def measure_deferred(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    rows = max(int(ROWS * scale), 2 * GROUPS)
    keys = uniform_keys(random.Random(seed), rows, _write_count(scale))
    with (
        open_connection(directory / "plain") as plain,
        open_connection(directory / "viewed") as viewed,
    ):
        for connection in (plain, viewed):
            _create_table(connection, "t", rows)
        create_view(viewed, "v", _count_query("t", 0), maintenance="deferred")
        for name, work, goal in (
            (f"latency at {RATE} writes/s", _paced_updates, "<= 1.1 ratio"),
            ("latency, saturated", _updates_of_t, "<= 1.3 ratio"),
        ):
            without, beside = alternate_rounds(
                ROUNDS, partial(work, plain, keys), partial(_then_follow, work, viewed, keys)
            )
            report.add(Figure(f"(a) 1 deferred view, {name}", beside, "us", goal, without))
        slow = [
            percentile(run_paced(RATE, _update_calls(connection, keys)), 0.99) * 1e6
            for connection in (viewed, plain)
        ]
        report.add(
            Figure(f"(a) 1 deferred view, p99 at {RATE} writes/s", slow[0], "us", "", slow[1])
        )


def _updates_of_t(connection: Connection, keys: list[int]) -> float:
    return _time_updates(connection, "t", keys)


def _paced_updates(connection: Connection, keys: list[int]) -> float:
    """Mean microseconds of one update at the fixed rate."""
    taken = run_paced(RATE, _update_calls(connection, keys))
    return sum(taken) / len(taken) * 1e6


def _update_calls(connection: Connection, keys: list[int]) -> list[Callable[[], object]]:
    text = "UPDATE t SET v = v + 1 WHERE id = ?"
    return [partial(connection.execute, text, (key,)) for key in keys]


def _then_follow(
    work: Callable[[Connection, list[int]], float], connection: Connection, keys: list[int]
) -> float:
    taken = work(connection, keys)
    wait_for_views(connection, "v")
    return taken
