"""The dashboard of the CloudTPS thesis, at a size for two cores.

Events of products of categories; the view is the sum and the number of events by category, over a
join. Measured are transactions a second by update size (rows in a transaction): without a view,
with a synchronous one (immediate), an asynchronous one (deferred), in turn, and maintenance from
the log only; then a view refreshed every 50, 500 and 5,000 ms while 150 hot rows change, and while
new rows are inserted, each between two rounds without a view. The thesis used 20 machines; its
curves are lost, only their description in the text is left.
"""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count as counting
from pathlib import Path

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure, alternate_rounds
from belvedere.benchmarks.report.plots import Plot
from belvedere.benchmarks.views.suite import run_steps
from belvedere.benchmarks.views.workload import (
    ON_DEMAND,
    create_view,
    load_rows,
    open_connection,
    time_call,
    try_statement,
    wait_for_views,
)
from belvedere.interfaces.dbapi import Connection

SHOPS, PRODUCTS, CATEGORIES, EVENTS = 50, 5_000, 20, 5_000
UPDATE_SIZES = (1, 5, 10, 20, 40)
HOT_ROWS = 150
INTERVALS = ("50 ms", "500 ms", "5000 ms")
SECONDS = 2.0
ROUNDS = 4

BY_CATEGORY = (
    "SELECT p.cat_id, sum(e.cost) AS total, count(*) AS n"
    " FROM events e JOIN products p ON p.id = e.prod_id GROUP BY p.cat_id"
)
BY_SHOP = (
    "SELECT s.id, c.id AS cat_id, sum(e.cost) AS total, count(*) AS n FROM events e"
    " JOIN products p ON p.id = e.prod_id JOIN categories c ON c.id = p.cat_id"
    " JOIN shops s ON s.id = e.shop_id GROUP BY s.id, c.id"
)
PUBLISHED = {
    "synchronous": "fig 6.2: considerably lower than asynchronous",
    "asynchronous": "fig 6.2: the highest",
    "applied": "fig 6.2: much more work than synchronous",
    "50 ms": "fig 6.3: as synchronous",
    "500 ms": "fig 6.3: considerable speed-up",
    "5000 ms": "fig 6.3: close to writing without views",
}
NEW_ROWS_PUBLISHED = "6.3: new rows gain nothing from longer intervals"
KINDS = {"hot rows": f"{HOT_ROWS} hot rows change", "new rows": "new rows come"}


def run(scale: float, seed: int) -> BenchmarkReport:
    steps = {"update sizes": update_sizes, "four tables": four_tables, "refresh": refresh_every}
    return run_steps("cloudtps", steps, scale, seed)


def _create_dashboard(connection: Connection, scale: float) -> int:
    """Create and load the tables; return the number of events."""
    products, events = max(int(PRODUCTS * scale), 100), max(int(EVENTS * scale), 200)
    for statement in (
        "CREATE TABLE shops (id integer PRIMARY KEY, name text NOT NULL)",
        "CREATE TABLE categories (id integer PRIMARY KEY, name text NOT NULL, parent integer)",
        "CREATE TABLE products (id integer PRIMARY KEY, shop_id integer NOT NULL,"
        " cat_id integer NOT NULL, name text NOT NULL)",
        "CREATE TABLE events (id bigint PRIMARY KEY, at timestamp NOT NULL,"
        " prod_id integer NOT NULL, shop_id integer NOT NULL, type integer NOT NULL,"
        " cost bigint NOT NULL)",
    ):
        connection.execute(statement)
    load_rows(connection, "shops", "i, 'shop ' || i", SHOPS)
    load_rows(connection, "categories", "i, 'category ' || i, NULL", CATEGORIES)
    load_rows(
        connection, "products", f"i, i % {SHOPS}, i % {CATEGORIES}, 'product ' || i", products
    )
    row = f"i, timestamp '2026-01-01', i % {products}, i % {SHOPS}, i % 3, i % 100"
    load_rows(connection, "events", row, events)
    return events


def _run_updates(connection: Connection, rng: random.Random, size: int, rows: int) -> None:
    """Run one transaction that updates the cost of `size` events."""
    connection.execute("BEGIN")
    for _ in range(size):
        key = rng.randrange(rows)
        connection.execute("UPDATE events SET cost = cost + 1 WHERE id = ?", (key,))
    connection.execute("COMMIT")


def _run_inserts(connection: Connection, numbers: counting[int], size: int) -> None:
    connection.execute("BEGIN")
    for _ in range(size):
        row = (next(numbers), 1)
        connection.execute("INSERT INTO events VALUES (?, '2026-01-01', 1, 1, 1, ?)", row)
    connection.execute("COMMIT")


@dataclass(frozen=True, slots=True)
class ChangeClients:
    """Clients that change the hot rows of a store, or insert new ones."""

    connection: Connection
    rng: random.Random
    numbers: counting[int]

    def make_work(self, kind: str, size: int) -> partial[None]:
        if kind == "hot rows":
            return partial(_run_updates, self.connection, self.rng, size, HOT_ROWS)
        return partial(_run_inserts, self.connection, self.numbers, size)


def _measure_rate(work: partial[None], duration: float) -> float:
    """Transactions a second, measured for about `duration` seconds."""
    done, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < duration or not done:
        work()
        done += 1
    return done / passed


# -- figure 6.2 ------------------------------------------------------------------------------------


def update_sizes(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    modes: dict[str, dict[str, str] | None] = {
        "no view": None,
        "synchronous": {},
        "asynchronous": {"maintenance": "deferred"},
    }
    curves: dict[str, list[tuple[float, float]]] = {mode: [] for mode in modes}
    with ExitStack() as stack:
        sides = []
        for mode, options in modes.items():
            connection = stack.enter_context(open_connection(directory / mode))
            events = _create_dashboard(connection, scale)
            if options is not None:
                create_view(connection, "dashboard", BY_CATEGORY, **options)
            views = ("dashboard",) if options else ()
            sides.append(partial(_run_round, connection, views, random.Random(seed), events))
        for size in UPDATE_SIZES:
            taken = alternate_rounds(ROUNDS, *(partial(side, size, scale) for side in sides))
            for points, one in zip(curves.values(), taken, strict=True):
                points.append((float(size), 1 / one))
    _apply_phase(directory, scale, seed, report, curves)
    for mode, points in curves.items():
        for (rows, rate), (_, none) in zip(points, curves["no view"], strict=True):
            title = f"{mode}, {rows:.0f} rows a transaction"
            report.add(Figure(title, rate, "1/s", "", none, PUBLISHED.get(mode, "")))
    title = "CloudTPS transactions by update size"
    x, y = "rows in a transaction", "transactions a second"
    report.plots.append(Plot(title, x, y, curves, logarithmic_y=True))


def _run_round(
    connection: Connection,
    views: tuple[str, ...],
    rng: random.Random,
    events: int,
    size: int,
    scale: float,
) -> float:
    """Seconds of a transaction. The round ends when the views have caught up, so that maintenance
    does not run in the next one; the wait is not counted."""
    rate = _measure_rate(
        partial(_run_updates, connection, rng, size, events), _round_seconds(scale)
    )
    wait_for_views(connection, *views)
    return 1 / rate


def _round_seconds(scale: float) -> float:
    return SECONDS * min(scale, 1) / ROUNDS


def _apply_phase(
    directory: Path,
    scale: float,
    seed: int,
    report: BenchmarkReport,
    curves: dict[str, list[tuple[float, float]]],
) -> None:
    """Measure maintenance only: one refresh that applies the log of many transactions."""
    with open_connection(directory / "apply") as connection:
        events, rng = _create_dashboard(connection, scale), random.Random(seed)
        reason = try_statement(connection, _view_statement(ON_DEMAND))
        if reason is not None:
            report.absent.append(f"fig 6.2, applying on its own: {reason}")
            return
        transactions = max(int(500 * scale), 20)
        for size in UPDATE_SIZES:
            for _ in range(transactions):
                _run_updates(connection, rng, size, events)
            taken = time_call(partial(connection.execute, "REFRESH MATERIALIZED VIEW dashboard"))
            curves.setdefault("applied", []).append((float(size), transactions / taken))


def _view_statement(options: dict[str, str]) -> str:
    listed = ", ".join(f"{name} = '{value}'" for name, value in options.items())
    settings = f" WITH ({listed})" if listed else ""
    return f"CREATE MATERIALIZED VIEW dashboard{settings} AS {BY_CATEGORY}"


def four_tables(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """The variant by shop and category."""
    with ExitStack() as stack:
        sides = []
        for name, query in (("two", BY_CATEGORY), ("four", BY_SHOP)):
            connection = stack.enter_context(open_connection(directory / name))
            events = _create_dashboard(connection, scale)
            create_view(connection, "dashboard", query)
            rng = random.Random(seed)
            sides.append(partial(_run_round, connection, (), rng, events, 1, scale))
        two, four = alternate_rounds(ROUNDS, *sides)
    title = "four tables against two, synchronous, 1 row"
    report.add(Figure(title, 1 / four, "1/s", "", 1 / two))


# -- figure 6.3 ------------------------------------------------------------------------------------


Curves = dict[str, list[tuple[float, float]]]


def refresh_every(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    curves: dict[str, Curves] = {kind: {} for kind in KINDS}
    modes: dict[str, dict[str, str]] = {"synchronous": {}}
    modes |= {one: {"maintenance": "deferred", "refresh_every": one} for one in INTERVALS}
    with open_connection(directory / "none") as plain:
        _create_dashboard(plain, scale)
        without = ChangeClients(plain, random.Random(seed), counting(10**9))
        for mode, options in modes.items():
            with open_connection(directory / mode.replace(" ", "")) as connection:
                _create_dashboard(connection, scale)
                reason = try_statement(connection, _view_statement(options))
                if reason is not None:
                    report.absent.append(f"fig 6.3, refresh every {mode}: {reason}")
                    continue
                clients = ChangeClients(connection, random.Random(seed), counting(10**9))
                _hot_and_new(clients, without, mode, scale, report, curves)
    for kind, rows in KINDS.items():
        title, x, y = f"CloudTPS refresh, {rows}", "rows in a transaction", "transactions a second"
        report.plots.append(Plot(title, x, y, curves[kind], logarithmic_y=True))


def _hot_and_new(
    clients: ChangeClients,
    without: ChangeClients,
    mode: str,
    scale: float,
    report: BenchmarkReport,
    curves: dict[str, Curves],
) -> None:
    """A refresh may run at any time, so the full duration counts; the baseline is the better of the
    rounds before and after."""
    duration = SECONDS * min(scale, 1)
    for kind in KINDS:
        published = PUBLISHED[mode] if kind == "hot rows" else NEW_ROWS_PUBLISHED
        for size in UPDATE_SIZES[::2]:
            before = _measure_rate(without.make_work(kind, size), _round_seconds(scale))
            rate = _measure_rate(clients.make_work(kind, size), duration)
            none = max(before, _measure_rate(without.make_work(kind, size), _round_seconds(scale)))
            title = f"{mode}, {kind}, {size} rows a transaction"
            report.add(Figure(title, rate, "1/s", "", none, published))
            _keep_best(curves[kind].setdefault("no view", []), size, none)
            curves[kind].setdefault(mode, []).append((float(size), rate))


def _keep_best(points: list[tuple[float, float]], size: int, rate: float) -> None:
    """Keep the best of several measurements for one size."""
    known = dict(points)
    known[float(size)] = max(rate, known.get(float(size), 0.0))
    points[:] = sorted(known.items())
