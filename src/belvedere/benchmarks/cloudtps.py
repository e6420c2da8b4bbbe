"""The dashboard of the CloudTPS thesis, at a size for two cores.

Events of products of categories; the view is the sum and the number of events by category, over a
join. Measured are transactions a second by update size (rows in a transaction): without a view,
with a synchronous one (immediate), an asynchronous one (deferred), and the applying of its log on
its own; then a view refreshed every 50, 500 and 5,000 ms while 150 hot rows change, and while new
rows come. The thesis ran 20 machines; its curves are lost, its text says how they lie.
"""

from __future__ import annotations

import random
import time
from functools import partial
from itertools import count as counting
from pathlib import Path

from belvedere.benchmarks.plots import Plot
from belvedere.benchmarks.report import Figure, Report
from belvedere.benchmarks.views import run_steps
from belvedere.benchmarks.workload import ON_DEMAND, create, load, opened, refused, seconds
from belvedere.interfaces.dbapi import Connection

SHOPS, PRODUCTS, CATEGORIES, EVENTS = 50, 5_000, 20, 5_000
UPDATE_SIZES = (1, 5, 10, 20, 40)
HOT_ROWS = 150
INTERVALS = ("50 ms", "500 ms", "5000 ms")
SECONDS = 2.0

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


def run(scale: float, seed: int) -> Report:
    steps = {"update sizes": update_sizes, "four tables": four_tables, "refresh": refresh_every}
    return run_steps("cloudtps", steps, scale, seed)


def _dashboard(connection: Connection, scale: float) -> int:
    """The tables, filled; how many events there are."""
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
    load(connection, "shops", "i, 'shop ' || i", SHOPS)
    load(connection, "categories", "i, 'category ' || i, NULL", CATEGORIES)
    load(connection, "products", f"i, i % {SHOPS}, i % {CATEGORIES}, 'product ' || i", products)
    row = f"i, timestamp '2026-01-01', i % {products}, i % {SHOPS}, i % 3, i % 100"
    load(connection, "events", row, events)
    return events


def _updates(connection: Connection, rng: random.Random, size: int, rows: int) -> None:
    """One transaction: the cost of so many events."""
    connection.execute("BEGIN")
    for _ in range(size):
        key = rng.randrange(rows)
        connection.execute("UPDATE events SET cost = cost + 1 WHERE id = ?", (key,))
    connection.execute("COMMIT")


def _inserts(connection: Connection, numbers: counting[int], size: int) -> None:
    connection.execute("BEGIN")
    for _ in range(size):
        row = (next(numbers), 1)
        connection.execute("INSERT INTO events VALUES (?, '2026-01-01', 1, 1, 1, ?)", row)
    connection.execute("COMMIT")


def _rate(work: partial[None], duration: float) -> float:
    """Transactions a second, for about this long."""
    done, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < duration or not done:
        work()
        done += 1
    return done / passed


# -- figure 6.2 ------------------------------------------------------------------------------------


def update_sizes(directory: Path, scale: float, seed: int, report: Report) -> None:
    duration = SECONDS * min(scale, 1)
    modes: dict[str, dict[str, str] | None] = {
        "no view": None,
        "synchronous": {},
        "asynchronous": {"maintenance": "deferred"},
    }
    curves: dict[str, list[tuple[float, float]]] = {}
    for mode, options in modes.items():
        with opened(directory / mode) as connection:
            events = _dashboard(connection, scale)
            if options is not None:
                create(connection, "dashboard", BY_CATEGORY, **options)
            rng = random.Random(seed)
            for size in UPDATE_SIZES:
                rate = _rate(partial(_updates, connection, rng, size, events), duration)
                curves.setdefault(mode, []).append((float(size), rate))
    _apply_phase(directory, scale, seed, report, curves)
    for mode, points in curves.items():
        for (rows, rate), (_, none) in zip(points, curves["no view"], strict=True):
            title = f"{mode}, {rows:.0f} rows a transaction"
            report.add(Figure(title, rate, "1/s", "", none, PUBLISHED.get(mode, "")))
    title = "CloudTPS transactions by update size"
    x, y = "rows in a transaction", "transactions a second"
    report.plots.append(Plot(title, x, y, curves, logarithmic_y=True))


def _apply_phase(
    directory: Path,
    scale: float,
    seed: int,
    report: Report,
    curves: dict[str, list[tuple[float, float]]],
) -> None:
    """The log of many transactions, taken in at once: the second phase on its own."""
    with opened(directory / "apply") as connection:
        events, rng = _dashboard(connection, scale), random.Random(seed)
        reason = refused(connection, _statement(ON_DEMAND))
        if reason is not None:
            report.absent.append(f"fig 6.2, applying on its own: {reason}")
            return
        transactions = max(int(500 * scale), 20)
        for size in UPDATE_SIZES:
            for _ in range(transactions):
                _updates(connection, rng, size, events)
            taken = seconds(partial(connection.execute, "REFRESH MATERIALIZED VIEW dashboard"))
            curves.setdefault("applied", []).append((float(size), transactions / taken))


def _statement(options: dict[str, str]) -> str:
    listed = ", ".join(f"{name} = '{value}'" for name, value in options.items())
    return f"CREATE MATERIALIZED VIEW dashboard WITH ({listed}) AS {BY_CATEGORY}"


def four_tables(directory: Path, scale: float, seed: int, report: Report) -> None:
    """The variant by shop and category."""
    rates = []
    for name, query in (("two", BY_CATEGORY), ("four", BY_SHOP)):
        with opened(directory / name) as connection:
            events, rng = _dashboard(connection, scale), random.Random(seed)
            create(connection, "dashboard", query)
            duration = SECONDS * min(scale, 1)
            rates.append(_rate(partial(_updates, connection, rng, 1, events), duration))
    report.add(Figure("four tables, synchronous, 1 row", rates[1], "1/s", "", rates[0]))


# -- figure 6.3 ------------------------------------------------------------------------------------


def refresh_every(directory: Path, scale: float, seed: int, report: Report) -> None:
    curves: dict[str, list[tuple[float, float]]] = {}
    modes: dict[str, dict[str, str] | None] = {"no view": None, "synchronous": {}}
    modes |= {one: {"maintenance": "deferred", "refresh_every": one} for one in INTERVALS}
    for mode, options in modes.items():
        with opened(directory / mode.replace(" ", "")) as connection:
            _dashboard(connection, scale)
            if options is not None:
                if options:
                    reason = refused(connection, _statement(options))
                    if reason is not None:
                        report.absent.append(f"fig 6.3, refresh every {mode}: {reason}")
                        continue
                else:
                    create(connection, "dashboard", BY_CATEGORY)
            _hot_and_new(connection, mode, scale, seed, curves)
    for mode, points in curves.items():
        for (size, rate), (_, none) in zip(points, curves[f"no view{_kind(mode)}"], strict=True):
            title = f"{mode}, {size:.0f} rows a transaction"
            published = PUBLISHED.get(mode.removesuffix(_kind(mode)), "")
            if "new rows" in mode and published:
                published = "6.3: new rows gain nothing from longer intervals"
            report.add(Figure(title, rate, "1/s", "", none, published))
    for kind, rows in (("hot rows", f"{HOT_ROWS} hot rows change"), ("new rows", "new rows come")):
        chosen = {m.removesuffix(f", {kind}"): p for m, p in curves.items() if m.endswith(kind)}
        title, x, y = f"CloudTPS refresh, {rows}", "rows in a transaction", "transactions a second"
        report.plots.append(Plot(title, x, y, chosen, logarithmic_y=True))


def _kind(mode: str) -> str:
    return ", new rows" if mode.endswith("new rows") else ", hot rows"


def _hot_and_new(
    connection: Connection,
    mode: str,
    scale: float,
    seed: int,
    curves: dict[str, list[tuple[float, float]]],
) -> None:
    rng, numbers, duration = random.Random(seed), counting(10**9), SECONDS * min(scale, 1)
    for size in UPDATE_SIZES[::2]:
        hot = partial(_updates, connection, rng, size, HOT_ROWS)
        new = partial(_inserts, connection, numbers, size)
        for kind, work in (("hot", hot), ("new", new)):
            points = curves.setdefault(f"{mode}, {kind} rows", [])
            points.append((float(size), _rate(work, duration)))
