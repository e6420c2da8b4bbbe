"""Queries of the PNUTS paper: index plans, counts by group, partitions, equijoins.

Table b has attributes a0 .. a4 with 250 .. 4,000 values, so that a group has 500 .. 31 of 125,000
rows at scale 1. A count is answered by an index scan, by a local aggregate combined over the base
partitions, or by one row of an aggregate view by group.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure, alternate_rounds
from belvedere.benchmarks.report.plots import Plot
from belvedere.benchmarks.views.workload import (
    create_view,
    load_rows,
    open_connection,
    time_call,
    try_statement,
)
from belvedere.interfaces.dbapi import Connection

ROWS = 125_000
VALUES = (250, 500, 1_000, 2_000, 4_000)
PAYLOAD_BYTES = 1_024
PARTITIONS = 64
PARTITION_COUNTS = (1, 4, 16, 64)
LOOKUPS = 20
JOINED_ROWS = 250

Step = Callable[[Path, float, int, BenchmarkReport], None]


def _create_table(connection: Connection, rows: int, partitions: int) -> None:
    columns = ", ".join(f"a{i} integer NOT NULL" for i in range(len(VALUES)))
    connection.execute(
        f"CREATE TABLE b (id bigint PRIMARY KEY, {columns}, p text NOT NULL)"
        f" WITH (partitions = {partitions})"
    )
    attributes = ", ".join(f"i % {count}" for count in VALUES)
    load_rows(connection, "b", f"i, {attributes}, repeat('x', {PAYLOAD_BYTES})", rows)


def _time_lookups(connection: Connection, text: str, keys: list[int]) -> float:
    """Milliseconds of one look-up."""

    def read_all() -> None:
        for key in keys:
            connection.execute(text, (key,)).fetchall()

    read_all()
    return alternate_rounds(3, lambda: time_call(read_all))[0] / len(keys) * 1e3


def _draw_keys(seed: int, values: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(values) for _ in range(LOOKUPS)]


# -- 7.3.1 -----------------------------------------------------------------------------------------


def index_plans(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """All rows of a group with their payload: by a covering or non-covering index, by a scan."""
    rows = max(int(ROWS * scale), 1000)
    with open_connection(directory / "store") as connection:
        _create_table(connection, rows, 1)
        text, keys = "SELECT p FROM b WHERE a0 = ?", _draw_keys(seed, VALUES[0])
        scan = _time_lookups(connection, text, keys[:2])
        taken = {}
        for name, include in (("thin + base", ""), ("index only", " INCLUDE (p)")):
            connection.execute(f"CREATE INDEX i ON b (a0){include}")
            taken[name] = _time_lookups(connection, text, keys)
            connection.execute("DROP INDEX i")
    report.add(Figure("rows of a group, table scan", scan, "ms", "", None, "7.3.1: 75 s"))
    for name, published in (
        ("thin + base", "more than 10x slower than index only"),
        ("index only", "two orders below the scan"),
    ):
        report.add(
            Figure(f"rows of a group, {name}", taken[name], "ms", "", scan, f"7.3.1: {published}")
        )


# -- figure 9 --------------------------------------------------------------------------------------


def group_sizes(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    rows = max(int(ROWS * scale), 1000)
    curves: dict[str, list[tuple[float, float]]] = {}
    with open_connection(directory / "store") as connection:
        _create_table(connection, rows, PARTITIONS)
        for place, values in enumerate(VALUES):
            keys, size = _draw_keys(seed, values), rows / values
            found = _time_counts(connection, f"a{place}", keys, report if place == 0 else None)
            for name, one in found.items():
                curves.setdefault(name, []).append((size, one))
    published = {
        "index scan": "fig 9: grows with the group",
        "local on base": "fig 9: constant, the most expensive",
        "local on remote": "fig 9: constant, the cheapest",
        "kept by group": "as local on remote",
    }
    for name, points in curves.items():
        for size, one in points:
            title = f"count of a group of {size:.0f}, {name}"
            report.add(Figure(title, one, "ms", "", None, published[name]))
    title, x, y = "PNUTS count by group size", "rows in a group", "time of one count (ms)"
    report.plots.append(Plot(title, x, y, curves, logarithmic=True, logarithmic_y=True))


def _time_counts(
    connection: Connection, column: str, keys: list[int], report: BenchmarkReport | None
) -> dict[str, float]:
    """Milliseconds of a count in each supported form; the report lists the others."""
    found = {}
    connection.execute(f"CREATE INDEX i_{column} ON b ({column})")
    found["index scan"] = _time_lookups(
        connection, f"SELECT count(*) FROM b WHERE {column} = ?", keys
    )
    query = f"SELECT {column}, count(*) AS n FROM b GROUP BY {column}"
    views = {
        "local on base": f"CREATE MATERIALIZED VIEW m_{column} WITH (placement = 'local')"
        f" AS {query}",
        "local on remote": f"CREATE MATERIALIZED VIEW m_{column} WITH (placement = 'local')"
        f" AS SELECT {column}, count(*) AS n FROM r_{column} GROUP BY {column}",
        "kept by group": f"CREATE MATERIALIZED VIEW m_{column} AS {query}",
    }
    create_view(connection, f"r_{column}", f"SELECT {column}, id FROM b")
    for name, statement in views.items():
        reason = try_statement(connection, statement)
        if reason is not None:
            if report is not None:
                report.absent.append(f"counts, {name}: {reason}")
            continue
        found[name] = _time_lookups(
            connection, f"SELECT n FROM m_{column} WHERE {column} = ?", keys
        )
        connection.execute(f"DROP MATERIALIZED VIEW m_{column}")
    connection.execute(f"DROP MATERIALIZED VIEW r_{column}")
    connection.execute(f"DROP INDEX i_{column}")
    return found


# -- figure 10 -------------------------------------------------------------------------------------


def measure_partitions(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """The group of 500 rows over 1 to 64 base partitions."""
    rows = max(int(ROWS * scale), 1000)
    curves: dict[str, list[tuple[float, float]]] = {}
    for count in PARTITION_COUNTS:
        with open_connection(directory / str(count)) as connection:
            _create_table(connection, rows, count)
            for name, one in _time_counts(
                connection, "a0", _draw_keys(seed, VALUES[0]), None
            ).items():
                curves.setdefault(name, []).append((float(count), one))
    for name, points in curves.items():
        grows = "grows with partitions" if name == "local on base" else "unaffected"
        for number, one in points:
            title = f"count over {number:.0f} partitions, {name}"
            report.add(Figure(title, one, "ms", "", points[0][1], f"fig 10: {grows}"))
    title, x, y = "PNUTS count by partitions", "partitions", "time of one count (ms)"
    report.plots.append(Plot(title, x, y, curves, logarithmic=True, logarithmic_y=True))


# -- 7.3.3 -----------------------------------------------------------------------------------------


def measure_equijoins(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """250 rows of each side by one key: scan of the co-located rows, and the join of them."""
    each = max(int(JOINED_ROWS * min(scale * 10, 1)), 10)
    keys = 20
    with open_connection(directory / "store") as connection:
        for name in ("l", "r"):
            connection.execute(
                f"CREATE TABLE {name} (id bigint PRIMARY KEY, k integer NOT NULL, v bigint)"
            )
            load_rows(connection, name, f"i, i % {keys}, i", keys * each)
        query = "SELECT l.k, l.id AS a, r.id AS b FROM l JOIN r ON r.k = l.k"
        base = _time_joins(connection, f"SELECT count(*) FROM ({query}) q WHERE k = ?", keys)
        report.add(Figure(f"equijoin {each} x {each}, from the tables", base, "ms"))
        reason = try_statement(
            connection, f"CREATE MATERIALIZED VIEW j WITH (join = 'colocated') AS {query}"
        )
        if reason is not None:
            report.absent.append(f"7.3.3, co-located equijoin: {reason}")
            return
        both = _time_joins(connection, "SELECT count(*) FROM j WHERE k = ?", keys)
        published = "7.3.3: the join step is 10% of the scan"
        title = f"equijoin {each} x {each}, co-located"
        report.add(Figure(title, both, "ms", "", base, published))


def _time_joins(connection: Connection, text: str, keys: int) -> float:
    return _time_lookups(connection, text, list(range(min(keys, 5))))


STEPS: dict[str, Step] = {
    "index plans": index_plans,
    "group sizes": group_sizes,
    "partitions": measure_partitions,
    "equijoins": measure_equijoins,
}
