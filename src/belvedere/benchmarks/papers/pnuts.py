"""The experiments of the PNUTS paper on asynchronous views, at a size for two cores.

Remote view tables are partitioned by the view's key (an index by default); local ones are stored
with the base partition and are combined on read. Clients read by key and write in a given ratio at
a given rate, all forms in turn, each judged by its better quarter. Unsupported forms are listed
under the table. The paper ran MySQL on disks behind three storage servers; its diagrams are lost,
only their description in the text is left.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from belvedere.benchmarks.papers import pnuts_queries
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure, alternate_rounds
from belvedere.benchmarks.report.plots import Plot
from belvedere.benchmarks.views.deferred_views import commit_to_visible
from belvedere.benchmarks.views.suite import run_steps
from belvedere.benchmarks.views.workload import (
    create_view,
    find_view,
    get_database,
    load_rows,
    open_connection,
    percentile,
    run_paced,
    time_call,
    try_statement,
    uniform_keys,
    wait_for_views,
)
from belvedere.interfaces.dbapi import Connection

ROWS = 20_000
PAYLOAD_BYTES = 4_096
PARTITIONS = 64
OPERATIONS = 4_000
ROUNDS = 4
RATE = 4_000
RATES = (1_000, 2_000, 4_000, 8_000)
RATIOS = (32, 16, 8, 4, 2, 1)
SPIKE = (("before", 500), ("spike", 6_000), ("after", 500))
SPIKE_SECONDS = 2.0
SAMPLE_EVERY = 20
SHARES = {"maintenance unbounded": 1, "clients first": 0.1}

FORMS = {
    "no view": [],
    "1 remote": ["CREATE INDEX i0 ON t (g) WITH (maintenance = 'deferred')"],
    "1 local": ["CREATE INDEX i0 ON t (g) WITH (placement = 'local')"],
    "local on remote": [
        "CREATE INDEX i0 ON t (g) WITH (maintenance = 'deferred')",
        "CREATE MATERIALIZED VIEW l0 WITH (placement = 'local', maintenance = 'deferred')"
        " AS SELECT g, count(*) AS n FROM t GROUP BY g",
    ],
    "1 immediate index": ["CREATE INDEX i0 ON t (g)"],
    "1 deferred view by key": [
        "CREATE MATERIALIZED VIEW r0 WITH (maintenance = 'deferred') AS SELECT g, id FROM t"
    ],
}
FORM_PUBLISHED = {
    "1 remote": "fig 5: +50% latency at 400 op/s",
    "1 local": "fig 5: between no view and remote",
    "local on remote": "fig 5: as remote, steeper",
}


def run(scale: float, seed: int) -> BenchmarkReport:
    return run_steps(
        "pnuts",
        {
            "forms": measure_forms,
            "ratios": measure_ratios,
            "numbers": measure_view_counts,
            "staleness": measure_staleness,
            "spike": measure_spike,
        }
        | pnuts_queries.STEPS,
        scale,
        seed,
    )


def _create_table(connection: Connection, rows: int) -> None:
    connection.execute(
        f"CREATE TABLE t (id bigint PRIMARY KEY, g integer NOT NULL, h integer NOT NULL,"
        f" k integer NOT NULL, v bigint NOT NULL, payload text NOT NULL)"
        f" WITH (partitions = {PARTITIONS})"
    )
    row = f"i, i % 250, i % 500, i % 1000, i, repeat('x', {PAYLOAD_BYTES})"
    load_rows(connection, "t", row, rows)


def _create_form(connection: Connection, rows: int, statements: list[str]) -> str | None:
    """Create the table with these views; return the reason if one is not supported."""
    _create_table(connection, rows)
    for statement in statements:
        reason = try_statement(connection, statement)
        if reason is not None:
            return reason
    return None


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """A client load: reads for each write and operations a second, on a table of `rows` rows."""

    rows: int
    reads: int
    rate: float
    scale: float
    seed: int


def _mean_latencies(connections: Sequence[Connection], load_: ClientLoad) -> list[float]:
    """Mean microseconds of an operation in each store, measured in turn."""
    rngs = [random.Random(load_.seed) for _ in connections]
    sides = zip(connections, rngs, strict=True)
    return alternate_rounds(
        ROUNDS, *(partial(_mean_us, partial(_run_clients, *side, load_)) for side in sides)
    )


def _run_clients(connection: Connection, rng: random.Random, load_: ClientLoad) -> list[float]:
    """Run the mix of operations at its rate; return the seconds of each."""
    works: list[Callable[[], object]] = []
    for number in range(max(int(OPERATIONS * load_.scale / ROUNDS), 25)):
        key = rng.randrange(load_.rows)
        if number % (load_.reads + 1):
            works.append(partial(_read_row, connection, key))
        else:
            works.append(partial(_write_row, connection, key, rng.randrange(250)))
    for work in works[:20]:
        work()
    return run_paced(load_.rate, works)


def _read_row(connection: Connection, key: int) -> None:
    connection.execute("SELECT * FROM t WHERE id = ?", (key,)).fetchall()


def _write_row(connection: Connection, key: int, value: int) -> None:
    text = "UPDATE t SET g = ?, h = ?, k = ? WHERE id = ?"
    connection.execute(text, (value, value, value, key))


def _mean_us(work: Callable[[], list[float]]) -> float:
    """Mean microseconds of the operations of `work`."""
    taken = work()
    return sum(taken) / len(taken) * 1e6


# -- figure 5 --------------------------------------------------------------------------------------


def _open_forms(
    stack: ExitStack, directory: Path, rows: int, figure: str, report: BenchmarkReport
) -> dict[str, Connection]:
    """Open a store for each supported form."""
    found = {}
    for name, statements in FORMS.items():
        connection = stack.enter_context(open_connection(directory / name.replace(" ", "_")))
        reason = _create_form(connection, rows, statements)
        if reason is None:
            found[name] = connection
        else:
            report.absent.append(f"{figure}, {name}: {reason}")
    return found


def measure_forms(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """Latency of clients that read eight times as often as they write, at several rates."""
    rows = max(int(ROWS * scale), 200)
    curves: dict[str, list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        stores = _open_forms(stack, directory, rows, "fig 5", report)
        for rate in RATES:
            means = _mean_latencies(tuple(stores.values()), ClientLoad(rows, 8, rate, scale, seed))
            for name, mean in zip(stores, means, strict=True):
                published = FORM_PUBLISHED.get(name, "")
                title = f"8:1 at {rate}/s, {name}, mean"
                report.add(Figure(title, mean, "us", "", means[0], published))
                curves.setdefault(name, []).append((float(rate), mean))
    title, x, y = "PNUTS latency by load", "operations a second", "mean latency (us)"
    report.plots.append(Plot(title, x, y, curves, logarithmic=True))


# -- figure 6 --------------------------------------------------------------------------------------


def measure_ratios(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    rows = max(int(ROWS * scale), 200)
    curves: dict[str, list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        stores = _open_forms(stack, directory, rows, "fig 6", report)
        for ratio in RATIOS:
            means = _mean_latencies(
                tuple(stores.values()), ClientLoad(rows, ratio, RATE, scale, seed)
            )
            for name, mean in zip(stores, means, strict=True):
                published = "fig 6: the gap grows with writes" if name != "no view" else ""
                title = f"{ratio}:1, {name}, mean latency"
                report.add(Figure(title, mean, "us", "", means[0], published))
                curves.setdefault(name, []).append((float(ratio), mean))
    title = "PNUTS latency by reads for each write"
    x, y = "reads for each write", "mean latency (us)"
    report.plots.append(Plot(title, x, y, curves, logarithmic=True))


# -- figures 7 and 8 -------------------------------------------------------------------------------

INDEXES = {
    "remote": "CREATE INDEX {name} ON t ({column}) WITH (maintenance = 'deferred')",
    "local": "CREATE INDEX {name} ON t ({column}) WITH (placement = 'local')",
    "immediate index": "CREATE INDEX {name} ON t ({column})",
}


def measure_view_counts(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """Latency with none to three views of a kind."""
    rows = max(int(ROWS * scale), 200)
    curves: dict[str, list[tuple[float, float]]] = {}
    for kind, statement in INDEXES.items():
        with ExitStack() as stack:
            stores = []
            for count in range(4):
                place = directory / f"{kind}{count}".replace(" ", "_")
                stores.append(stack.enter_context(open_connection(place)))
                statements = [statement.format(name=f"i{one}", column=one) for one in "ghk"[:count]]
                reason = _create_form(stores[-1], rows, statements)
                if reason is not None:
                    report.absent.append(f"fig 7 and 8, {count} {kind}: {reason}")
                    stores.pop()
                    break
            means = _mean_latencies(stores, ClientLoad(rows, 8, RATE, scale, seed))
        for count, mean in enumerate(means):
            published = f"fig {7 if kind == 'remote' else 8}: grows by view" if count else ""
            title = f"{count} {kind}, mean latency"
            report.add(Figure(title, mean, "us", "", means[0], published))
            curves.setdefault(kind, []).append((float(count), mean))
    report.plots.append(Plot("PNUTS number of views", "views", "mean latency (us)", curves))


# -- 7.2.4 -----------------------------------------------------------------------------------------


def measure_staleness(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """The time from a write until its view row is visible."""
    rows = max(int(ROWS * scale), 200)
    with open_connection(directory / "store") as connection:
        _create_table(connection, rows)
        create_view(connection, "r", "SELECT g, id, v FROM t", maintenance="deferred")
        wait_for_views(connection, "r")
        keys = uniform_keys(random.Random(seed), rows, max(int(OPERATIONS * scale), 100))
        found = commit_to_visible(connection, "r", keys, rate=RATE / 9)
    report.add(Figure("staleness, mean", sum(found) / len(found) * 1e3, "ms", "", None, "437 ms"))
    for share in (0.5, 0.99):
        report.add(Figure(f"staleness, p{share * 100:.0f}", percentile(found, share) * 1e3, "ms"))
    points = [(percentile(found, share / 100) * 1e3, float(share)) for share in range(0, 101, 5)]
    x, y = "from the commit to the view (ms)", "% of writes that are there"
    report.plots.append(Plot("PNUTS staleness of a remote view", x, y, {"remote": points}))


def measure_spike(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """Writes at a usual rate, a spike, and the usual rate again; once with unbounded maintenance,
    once with clients first. The backlog grows in the spike and drains after it."""
    rows, curves = max(int(ROWS * scale), 200), {}
    for name, share in SHARES.items():
        with open_connection(directory / name.replace(" ", "_")) as connection:
            _create_table(connection, rows)
            create_view(connection, "r", "SELECT g, id, v FROM t", maintenance="deferred")
            reason = try_statement(connection, f"SET maintenance_share = {share}")
            if reason is not None:
                report.absent.append(f"7.2.4, {name}: {reason}")
                continue
            wait_for_views(connection, "r")
            curves[name] = _run_spike(connection, name, rows, seed, scale, report)
    title, x, y = "PNUTS backlog in a spike", "seconds", "writes not yet in the view"
    report.plots.append(Plot(title, x, y, curves))


def _run_spike(
    connection: Connection, name: str, rows: int, seed: int, scale: float, report: BenchmarkReport
) -> list[tuple[float, float]]:
    """Run the phases; return the backlog by time."""
    db, view = get_database(connection), find_view(connection, "r")
    start, points = time.perf_counter(), [(0.0, 0.0)]

    def write_number(number: int) -> None:
        key = (number * 7_919 + seed) % rows
        _write_row(connection, key, number % 250)
        if number % SAMPLE_EVERY == 0:
            backlog = float(max(db.position - db.views.read_view_watermark(view), 0))
            points.append((time.perf_counter() - start, backlog))

    for phase, rate in SPIKE:
        count = max(int(rate * SPIKE_SECONDS * min(scale, 1)), 20)
        works = [partial(write_number, number) for number in range(count)]
        mean = _mean_us(partial(run_paced, rate, works))
        title = f"{name}, {phase} ({rate}/s)"
        report.add(Figure(f"{title}, mean latency", mean, "us"))
        most = max(backlog for _, backlog in points)
        if phase == "spike":
            note = "7.2.4: grows linearly, drains after the spike"
            report.add(Figure(f"{title}, largest backlog", most, "writes", "", count, note))
    drained = time_call(partial(wait_for_views, connection, "r"))
    points.append((time.perf_counter() - start, 0.0))
    report.add(Figure(f"{name}, drained after the last write", drained * 1e3, "ms"))
    return points
