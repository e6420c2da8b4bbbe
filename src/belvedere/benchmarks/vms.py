"""The experiments of VMS (views maintained from the log of HBase), at a size for two cores.

A base table t (id, c1, c2) with the aggregation key c1 and the value c2; the join has its right
table's key in c1. Clients insert, update and delete, a third each; deferred views follow by the
log. The paper ran 40 clients and 10 to 50 view managers on 40 machines: shapes compare, rates do
not. The numbers of its diagrams are lost; what is published below is what its text says.
"""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

from belvedere.benchmarks.plots import Plot, by_name
from belvedere.benchmarks.report import Figure, Report, alternate
from belvedere.benchmarks.views import run_steps
from belvedere.benchmarks.workload import (
    ON_DEMAND,
    Statement,
    create,
    database,
    follow,
    load,
    mixed,
    opened,
    run_all,
    seconds,
    uniform,
    zipfian,
)
from belvedere.interfaces.dbapi import Connection

ROWS = 50_000
OPERATIONS = 20_000
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


def run(scale: float, seed: int) -> Report:
    return run_steps(
        "vms",
        {
            "view types": view_types,
            "distributions": distributions,
            "number of views": number_of_views,
            "reading": reading,
        },
        scale,
        seed,
    )


def _tables(connection: Connection, rows: int) -> None:
    connection.execute("CREATE TABLE r (id integer PRIMARY KEY, name text NOT NULL)")
    load(connection, "r", "i, 'name ' || i", KEYS)
    connection.execute(
        "CREATE TABLE t (id bigint PRIMARY KEY, g integer NOT NULL, v integer NOT NULL)"
    )
    load(connection, "t", f"i, i % {KEYS}, i % 1000", rows)


def _sizes(scale: float) -> tuple[int, int]:
    return max(int(ROWS * scale), 100), max(int(OPERATIONS * scale), 60)


def _run(connection: Connection, statements: list[Statement], *views: str) -> tuple[float, float]:
    """Operations a second: of the clients, and until every view had all of them."""
    written = seconds(partial(run_all, connection, statements))
    behind = seconds(partial(follow, connection, *views))
    return len(statements) / written, len(statements) / (written + behind)


# -- figures 6, 7, 8 and 12 ------------------------------------------------------------------------


def view_types(directory: Path, scale: float, seed: int, report: Report) -> None:
    rows, count = _sizes(scale)
    statements = mixed(random.Random(seed), "t", rows, count, KEYS)
    with opened(directory / "none") as connection:
        _tables(connection, rows)
        none, _ = _run(connection, statements)
    report.add(Figure("no view, writes", none, "1/s"))
    kinds = ("writes beside it", "maintained", "maintenance alone")
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for name, (query, published) in VIEWS.items():
        with opened(directory / name.replace("%", "")) as connection:
            _tables(connection, rows)
            create(connection, "v", query, maintenance="deferred")
            follow(connection, "v")
            clients, maintained = _run(connection, statements, "v")
            alone = _maintenance_alone(connection, query, rows, count, seed)
        report.add(
            Figure(f"{name}, maintained", maintained, "1/s", "", none, f"fig 6-8: {published}")
        )
        cost = "fig 12: +40% time with views" if name == "count" else ""
        report.add(Figure(f"{name}, writes beside it", clients, "1/s", "", none, cost))
        share = "fig 6-8, by number of view managers; ratio = share of writes"
        report.add(Figure(f"{name}, maintenance alone", alone, "1/s", "", none, share))
        for kind, value in zip(kinds, (clients, maintained, alone), strict=True):
            found[kind].append(value)
    curves = {kind: by_name(values) for kind, values in found.items()}
    alone_only = {"": curves.pop("maintenance alone")}
    title, y, names = (
        f"VMS view types ({none:,.0f} writes a second without)",
        "operations a second",
        tuple(VIEWS),
    )
    report.plots.append(Plot(title, "", y, curves, bars=names))
    title, y = "VMS maintenance alone", "changes a second"
    report.plots.append(Plot(title, "", y, alone_only, bars=names))


def _maintenance_alone(
    connection: Connection, query: str, rows: int, count: int, seed: int
) -> float:
    """Updates a second that the view takes in when nobody writes."""
    connection.execute("DROP MATERIALIZED VIEW v")
    create(connection, "v", query, **ON_DEMAND)
    rng, text = random.Random(seed), "UPDATE t SET g = ?, v = ? WHERE id = ?"
    start = database(connection).position
    for key in uniform(rng, rows, count):
        connection.execute(text, (rng.randrange(KEYS), rng.randrange(1000), key))
    changes = database(connection).position - start
    refresh = partial(connection.execute, "REFRESH MATERIALIZED VIEW v")
    return changes / seconds(refresh)


# -- figure 11 -------------------------------------------------------------------------------------


def distributions(directory: Path, scale: float, seed: int, report: Report) -> None:
    """Updates of uniform and of skewed keys: consolidation makes hot rows cheap here."""
    rows, count = _sizes(scale)
    rates: dict[str, float] = {}
    for name, draw in (("uniform", uniform), ("zipf", zipfian)):
        keys = draw(random.Random(seed), rows, count)
        text = "UPDATE t SET v = v + 1 WHERE id = ?"
        with opened(directory / name) as connection:
            _tables(connection, rows)
            create(connection, "v", VIEWS["sum"][0], maintenance="deferred")
            follow(connection, "v")
            _, rates[name] = _run(connection, [Statement(text, (key,)) for key in keys], "v")
    published = "fig 11: zipf much slower than uniform (hot region servers)"
    report.add(Figure("uniform keys, maintained", rates["uniform"], "1/s"))
    report.add(
        Figure("zipf keys, maintained", rates["zipf"], "1/s", "", rates["uniform"], published)
    )


# -- figure 13 -------------------------------------------------------------------------------------


def number_of_views(directory: Path, scale: float, seed: int, report: Report) -> None:
    rows, count = _sizes(scale)
    statements = mixed(random.Random(seed), "t", rows, count, KEYS)
    points: list[tuple[float, float]] = []
    for views in VIEW_COUNTS:
        with opened(directory / str(views)) as connection:
            _tables(connection, rows)
            names = [f"v{number}" for number in range(views)]
            for number, name in enumerate(names):
                query = f"SELECT g, count(*) AS n FROM t WHERE v >= {number} GROUP BY g"
                create(connection, name, query, maintenance="deferred")
            follow(connection, *names)
            _, maintained = _run(connection, statements, *names)
        points.append((float(views), maintained))
        published = "fig 13: a leap from one to two, then ever less" if views > 1 else ""
        report.add(
            Figure(
                f"{views} count views, maintained", maintained, "1/s", "", points[0][1], published
            )
        )
    report.plots.append(
        Plot("VMS number of views", "count views", "operations a second", {"maintained": points})
    )


# -- figure 9 --------------------------------------------------------------------------------------


def reading(directory: Path, scale: float, seed: int, report: Report) -> None:
    """The newest counts, by the client from all rows, by a query, and from the view."""
    curves: dict[str, list[tuple[float, float]]] = {}
    ways = {
        "client scan": ("every row, counted by the client", "grows with the table, the slowest"),
        "server scan": ("GROUP BY over the table", "5 s at 1M rows"),
        "view": ("the immediate view", "below 1 ms, also at 10M rows"),
    }
    for size in SCAN_ROWS:
        rows = max(int(size * scale), 100)
        with opened(directory / str(size)) as connection:
            _tables(connection, rows)
            create(connection, "v", VIEWS["count"][0])
            actions = (_client_scan, _server_scan, _view_read)
            taken = alternate(5, *(partial(action, connection, seed) for action in actions))
        for (name, (how, published)), one in zip(ways.items(), taken, strict=True):
            curves.setdefault(name, []).append((float(rows), one * 1e3))
            title = f"one count of {rows} rows, {name}: {how}"
            report.add(Figure(title, one * 1e3, "ms", "", taken[0] * 1e3, f"fig 9: {published}"))
    title, x, y = "VMS reading a count", "rows of the table", "time of one count (ms)"
    report.plots.append(Plot(title, x, y, curves, logarithmic=True, logarithmic_y=True))


def _client_scan(connection: Connection, seed: int) -> float:
    def count() -> int:
        found = connection.execute("SELECT g FROM t").fetchall()
        return sum(1 for (key,) in found if key == seed % KEYS)

    return seconds(count)


def _server_scan(connection: Connection, seed: int) -> float:
    text = "SELECT count(*) FROM t WHERE g = ?"
    return seconds(lambda: connection.execute(text, (seed % KEYS,)).fetchall())


def _view_read(connection: Connection, seed: int) -> float:
    text, key = "SELECT n FROM v WHERE g = ?", (seed % KEYS,)
    return seconds(lambda: connection.execute(text, key).fetchall())
