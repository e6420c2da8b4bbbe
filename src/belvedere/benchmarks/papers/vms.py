"""The experiments of VMS (views maintained from the log of HBase), at a size for two cores.

A base table t (id, c1, c2) with the aggregation key c1 and the value c2; the join has its right
table's key in c1. Clients insert, update and delete, a third each; deferred views are maintained
from the log. The compared stores run in turn, part by part, judged by their better quarter. The
paper ran 40 clients and 10 to 50 view managers on 40 machines: shapes compare, rates do not. The
numbers of its diagrams are lost; the published figures below are those of its text.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from belvedere.benchmarks.report.measurements import (
    BenchmarkReport,
    Figure,
    alternate_rounds,
    better_quarter,
)
from belvedere.benchmarks.report.plots import Plot, bar_points
from belvedere.benchmarks.views.suite import run_steps
from belvedere.benchmarks.views.workload import (
    ON_DEMAND,
    Statement,
    create_view,
    get_database,
    load_rows,
    mix_changes,
    open_connection,
    run_all,
    time_call,
    uniform_keys,
    wait_for_views,
    zipfian_keys,
)
from belvedere.interfaces.dbapi import Connection

ROWS = 50_000
OPERATIONS = 20_000
PARTS = 4
KEYS = 500
SCAN_ROWS = (1_000, 10_000, 100_000, 1_000_000)
VIEW_COUNTS = (1, 2, 4, 8)
VIEWS = {
    "selection 10%": ("SELECT id, g, v FROM t WHERE v < 100", "the fastest: no auxiliary view"),
    "selection 50%": ("SELECT id, g, v FROM t WHERE v < 500", "slower than 10%"),
    "selection 90%": ("SELECT id, g, v FROM t WHERE v < 900", "slower than 50%"),
    "count": ("SELECT g, count(*) AS n FROM t GROUP BY g", "below selection"),
    "sum": ("SELECT g, sum(v) AS total FROM t GROUP BY g", "as count"),
    "min": ("SELECT g, min(v) AS least FROM t GROUP BY g", "below index"),
    "max": ("SELECT g, max(v) AS most FROM t GROUP BY g", "as min"),
    "index": ("SELECT g, id FROM t", "below count and sum"),
    "join": ("SELECT t.id, t.v, r.name FROM t JOIN r ON r.id = t.g", "the lowest"),
}


def run(scale: float, seed: int) -> BenchmarkReport:
    return run_steps(
        "vms",
        {
            "view types": view_types,
            "distributions": measure_distributions,
            "number of views": number_of_views,
            "reading": measure_reading,
        },
        scale,
        seed,
    )


def _create_tables(connection: Connection, rows: int) -> None:
    connection.execute("CREATE TABLE r (id integer PRIMARY KEY, name text NOT NULL)")
    load_rows(connection, "r", "i, 'name ' || i", KEYS)
    connection.execute(
        "CREATE TABLE t (id bigint PRIMARY KEY, g integer NOT NULL, v integer NOT NULL)"
    )
    load_rows(connection, "t", f"i, i % {KEYS}, i % 1000", rows)


def _scaled_sizes(scale: float) -> tuple[int, int]:
    return max(int(ROWS * scale), 100), max(int(OPERATIONS * scale), 60)


@dataclass(frozen=True, slots=True)
class StoreUnderLoad:
    """A store with views, and the statements of its clients."""

    connection: Connection
    statements: list[Statement]
    views: tuple[str, ...] = ()


def _run_part(side: StoreUnderLoad, part: int) -> tuple[float, float]:
    """Seconds of an operation in this part: of the clients, and until every view has caught up."""
    statements = side.statements[part::PARTS]
    written = time_call(partial(run_all, side.connection, statements))
    behind = time_call(partial(wait_for_views, side.connection, *side.views))
    return written / len(statements), (written + behind) / len(statements)


def _measure_rates(*sides: StoreUnderLoad) -> list[tuple[float, float]]:
    """Operations a second of each: of the clients, and until every view has caught up."""
    taken: list[list[tuple[float, float]]] = [[] for _ in sides]
    for part in range(PARTS):
        for side, times in zip(sides, taken, strict=True):
            times.append(_run_part(side, part))
    return [
        (
            1 / better_quarter([clients for clients, _ in times]),
            1 / better_quarter([maintained for _, maintained in times]),
        )
        for times in taken
    ]


# -- figures 6, 7, 8 and 12 ------------------------------------------------------------------------


def view_types(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    kinds = ("writes beside it", "maintained", "maintenance alone")
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    without = []
    for name, (query, published) in VIEWS.items():
        place = directory / name.replace("%", "")
        none, clients, maintained, alone = _view_type(place, query, scale, seed)
        without.append(none)
        report.add(
            Figure(f"{name}, maintained", maintained, "1/s", "", none, f"fig 6-8: {published}")
        )
        cost = "fig 12: +40% time with views" if name == "count" else ""
        report.add(Figure(f"{name}, writes beside it", clients, "1/s", "", none, cost))
        share = "fig 6-8, by number of view managers; ratio = share of writes"
        report.add(Figure(f"{name}, maintenance alone", alone, "1/s", "", none, share))
        for kind, value in zip(kinds, (clients, maintained, alone), strict=True):
            found[kind].append(value)
    report.add(Figure("no view, writes", max(without), "1/s"))
    curves = {kind: bar_points(values) for kind, values in found.items()}
    alone_only = {"": curves.pop("maintenance alone")}
    title, y, names = (
        f"VMS view types ({max(without):,.0f} writes a second without)",
        "operations a second",
        tuple(VIEWS),
    )
    report.plots.append(Plot(title, "", y, curves, bars=names))
    title, y = "VMS maintenance alone", "changes a second"
    report.plots.append(Plot(title, "", y, alone_only, bars=names))


def _view_type(
    directory: Path, query: str, scale: float, seed: int
) -> tuple[float, float, float, float]:
    """Writes a second without and with the view, and with catch-up; changes a second when idle."""
    rows, count = _scaled_sizes(scale)
    statements = mix_changes(random.Random(seed), "t", rows, count, KEYS)
    with (
        open_connection(directory / "none") as plain,
        open_connection(directory / "view") as connection,
    ):
        for one in (plain, connection):
            _create_tables(one, rows)
        create_view(connection, "v", query, maintenance="deferred")
        wait_for_views(connection, "v")
        (none, _), (clients, maintained) = _measure_rates(
            StoreUnderLoad(plain, statements), StoreUnderLoad(connection, statements, ("v",))
        )
        alone = _maintenance_only(connection, query, rows, count, seed)
    return none, clients, maintained, alone


def _maintenance_only(
    connection: Connection, query: str, rows: int, count: int, seed: int
) -> float:
    """Updates a second that maintenance applies while no client writes."""
    connection.execute("DROP MATERIALIZED VIEW v")
    create_view(connection, "v", query, **ON_DEMAND)
    rng, text = random.Random(seed), "UPDATE t SET g = ?, v = ? WHERE id = ?"
    start = get_database(connection).position
    for key in uniform_keys(rng, rows, count):
        connection.execute(text, (rng.randrange(KEYS), rng.randrange(1000), key))
    changes = get_database(connection).position - start
    refresh = partial(connection.execute, "REFRESH MATERIALIZED VIEW v")
    return changes / time_call(refresh)


# -- figure 11 -------------------------------------------------------------------------------------


def measure_distributions(
    directory: Path, scale: float, seed: int, report: BenchmarkReport
) -> None:
    """Updates of uniform and of skewed keys: consolidation makes hot rows cheap here."""
    rows, count = _scaled_sizes(scale)
    text = "UPDATE t SET v = v + 1 WHERE id = ?"
    sides: list[StoreUnderLoad] = []
    with ExitStack() as stack:
        for name, draw in (("uniform", uniform_keys), ("zipf", zipfian_keys)):
            connection = stack.enter_context(open_connection(directory / name))
            _create_tables(connection, rows)
            create_view(connection, "v", VIEWS["sum"][0], maintenance="deferred")
            wait_for_views(connection, "v")
            keys = draw(random.Random(seed), rows, count)
            sides.append(
                StoreUnderLoad(connection, [Statement(text, (key,)) for key in keys], ("v",))
            )
        (_, even), (_, skewed) = _measure_rates(*sides)
    published = "fig 11: zipf much slower than uniform (hot region servers)"
    report.add(Figure("uniform keys, maintained", even, "1/s"))
    report.add(Figure("zipf keys, maintained", skewed, "1/s", "", even, published))


# -- figure 13 -------------------------------------------------------------------------------------


def number_of_views(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    rows, count = _scaled_sizes(scale)
    statements = mix_changes(random.Random(seed), "t", rows, count, KEYS)
    sides: list[StoreUnderLoad] = []
    with ExitStack() as stack:
        for views in VIEW_COUNTS:
            connection = stack.enter_context(open_connection(directory / str(views)))
            _create_tables(connection, rows)
            names = tuple(f"v{number}" for number in range(views))
            for number, name in enumerate(names):
                query = f"SELECT g, count(*) AS n FROM t WHERE v >= {number} GROUP BY g"
                create_view(connection, name, query, maintenance="deferred")
            wait_for_views(connection, *names)
            sides.append(StoreUnderLoad(connection, statements, names))
        rates = [maintained for _, maintained in _measure_rates(*sides)]
    points = [(float(views), rate) for views, rate in zip(VIEW_COUNTS, rates, strict=True)]
    for views, rate in zip(VIEW_COUNTS, rates, strict=True):
        published = "fig 13: a leap from one to two, then ever less" if views > 1 else ""
        title = f"{views} count views, maintained"
        report.add(Figure(title, rate, "1/s", "", rates[0], published))
    report.plots.append(
        Plot("VMS number of views", "count views", "operations a second", {"maintained": points})
    )


# -- figure 9 --------------------------------------------------------------------------------------


def measure_reading(directory: Path, scale: float, seed: int, report: BenchmarkReport) -> None:
    """Read the newest counts: by the client from all rows, by a query, and from the view."""
    curves: dict[str, list[tuple[float, float]]] = {}
    ways = {
        "client scan": ("every row, counted by the client", "grows with the table, the slowest"),
        "server scan": ("GROUP BY over the table", "5 s at 1M rows"),
        "view": ("the immediate view", "below 1 ms, also at 10M rows"),
    }
    for size in SCAN_ROWS:
        rows = max(int(size * scale), 100)
        with open_connection(directory / str(size)) as connection:
            _create_tables(connection, rows)
            create_view(connection, "v", VIEWS["count"][0])
            actions = (_client_scan, _server_scan, _view_read)
            taken = alternate_rounds(5, *(partial(action, connection, seed) for action in actions))
        for (name, (how, published)), one in zip(ways.items(), taken, strict=True):
            curves.setdefault(name, []).append((float(rows), one * 1e3))
            title = f"one count of {rows} rows, {name}: {how}"
            report.add(Figure(title, one * 1e3, "ms", "", taken[0] * 1e3, f"fig 9: {published}"))
    title, x, y = "VMS reading a count", "rows of the table", "time of one count (ms)"
    report.plots.append(Plot(title, x, y, curves, logarithmic=True, logarithmic_y=True))


def _client_scan(connection: Connection, seed: int) -> float:
    def count_rows() -> int:
        found = connection.execute("SELECT g FROM t").fetchall()
        return sum(1 for (key,) in found if key == seed % KEYS)

    return time_call(count_rows)


def _server_scan(connection: Connection, seed: int) -> float:
    text = "SELECT count(*) FROM t WHERE g = ?"
    return time_call(lambda: connection.execute(text, (seed % KEYS,)).fetchall())


def _view_read(connection: Connection, seed: int) -> float:
    text, key = "SELECT n FROM v WHERE g = ?", (seed % KEYS,)
    return time_call(lambda: connection.execute(text, key).fetchall())
