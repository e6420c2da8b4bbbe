"""`belvedere serve` beside PostgreSQL: the same client, driver and statements, in one run.

Both servers are processes of their own on a Unix socket, and both are durable. The client is
psycopg, and pgbench for several clients at once. Rounds of the two alternate. `rows` is the size of
the COPY; the table that is read has a tenth of them.
"""

from __future__ import annotations

import getpass
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from belvedere.benchmarks.report.measurements import (
    BenchmarkReport,
    Figure,
    alternate_rounds,
    microseconds_each,
)
from belvedere.benchmarks.report.postgres_peer import find_program, postgres_connection
from belvedere.errors import Unavailable, Unsupported

if TYPE_CHECKING:
    import psycopg

PORT = 5432
ROUNDS = 5
CALLS = 400
FETCHED = 10_000
CLIENTS = 8
PGBENCH_S = 3
START_S = 60.0

TABLES = (
    "CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, stock int NOT NULL)",
    "CREATE TABLE lines (id int PRIMARY KEY, item int NOT NULL, amount int NOT NULL)",
    "CREATE INDEX lines_item ON lines (item)",
)
JOIN = (
    "SELECT i.id AS item, i.name AS name, count(*) AS orders, sum(l.amount) AS amount"
    " FROM items i JOIN lines l ON l.item = i.id GROUP BY i.id, i.name"
)
BY_VIEW = "SELECT name, orders, amount FROM sold WHERE item = %s"
BY_JOIN = f"SELECT name, orders, amount FROM ({JOIN}) sold WHERE item = %s"
POINT = "SELECT name, stock FROM items WHERE id = %s"
UPDATE = "UPDATE items SET stock = stock + 1 WHERE id = %s"
LINES_OF_AN_ITEM = 50


class Server(NamedTuple):
    """A server with the tables, and a connection to it."""

    connection: psycopg.Connection[Any]
    by_key: str
    """The statement that reads one row of the join: from a view where there is one."""


def run(rows: int, seed: int) -> BenchmarkReport:
    report = BenchmarkReport("server", seed)
    random = Random(seed)
    with ExitStack() as stack:
        theirs = stack.enter_context(postgres_connection(durable=True))
        if theirs is None:
            raise Unsupported("bench server without PostgreSQL", hint="install belvedere[dev]")
        ours = stack.enter_context(open_server())
        servers = [Server(ours, BY_VIEW), Server(theirs, BY_JOIN)]
        items = max(rows // 10, LINES_OF_AN_ITEM)
        for server in servers:
            load_tables(server, items)
        ours.execute(f"CREATE MATERIALIZED VIEW sold AS {JOIN}")
        for name, goal, measure in _list_measurements(items, rows, random):
            ours_us, theirs_us = alternate_rounds(ROUNDS, *[partial(measure, s) for s in servers])
            report.add(Figure(name, ours_us, "us", goal, theirs_us))
        _measure_pgbench(report, servers)
    return report


@contextmanager
def open_server() -> Iterator[psycopg.Connection[Any]]:
    """A connection to `belvedere serve` of an empty store, which stops with the block."""
    import psycopg  # heavy

    with tempfile.TemporaryDirectory(prefix="belvedere-serve-") as folder:
        command = [sys.executable, "-m", "belvedere", "serve", f"{folder}/shop", "--socket", folder]
        process = subprocess.Popen([*command, "--port", str(PORT)], stdout=subprocess.DEVNULL)
        try:
            with psycopg.connect(**_await_socket(process, Path(folder))) as connection:
                yield connection
        finally:
            process.terminate()
            process.wait()


def _await_socket(process: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    deadline = time.monotonic() + START_S
    while not (folder / f".s.PGSQL.{PORT}").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise Unavailable("belvedere serve did not start", sqlstate="08001")
        time.sleep(0.05)
    return {
        "host": str(folder),
        "port": PORT,
        "user": getpass.getuser(),
        "dbname": "belvedere",
        "autocommit": True,
    }


def load_tables(server: Server, items: int) -> None:
    connection = server.connection
    for text in TABLES:
        connection.execute(text)
    copy_rows(server, "items", items, lambda id_: (id_, f"item {id_}", 100))
    copy_rows(
        server,
        "lines",
        items,
        lambda id_: (id_, id_ % (items // LINES_OF_AN_ITEM), id_ % 7),
    )
    connection.execute("ANALYZE")


def copy_rows(
    server: Server, table: str, rows: int, make: Callable[[int], tuple[Any, ...]]
) -> None:
    with server.connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for id_ in range(rows):
            copy.write_row(make(id_))


Measure = Callable[[Server], float]


def _list_measurements(items: int, rows: int, random: Random) -> list[tuple[str, str, Measure]]:
    """The name, the goal and the microseconds of each thing that one client does."""
    keys = [random.randrange(items) for _ in range(CALLS)]
    sold = [key % (items // LINES_OF_AN_ITEM) for key in keys]
    fetched = min(FETCHED, items)
    return [
        ("point select, simple", "<= 1.3 ratio", partial(select_as_text, keys)),
        ("point select, extended", "<= 1.3 ratio", partial(run_each, POINT, keys, False)),
        ("point select, prepared", "<= 1.3 ratio", partial(run_each, POINT, keys, True)),
        ("durable update, prepared", "<= 1.3 ratio", partial(run_each, UPDATE, keys, True)),
        ("a join read by key", "<= 1 ratio", partial(read_join, sold)),
        (f"{fetched} rows fetched", "<= 1.5 ratio", partial(fetch_rows, fetched)),
        (f"COPY of {rows} rows", "<= 2 ratio", partial(copy_new_table, rows)),
    ]


def select_as_text(keys: list[int], server: Server) -> float:
    def select_all() -> None:
        for key in keys:
            server.connection.execute(POINT.replace("%s", str(key))).fetchone()

    return microseconds_each(len(keys), select_all)


def run_each(text: str, keys: list[int], prepared: bool, server: Server) -> float:
    def run_all() -> None:
        for key in keys:
            server.connection.execute(text, (key,), prepare=prepared)

    return microseconds_each(len(keys), run_all)


def read_join(keys: list[int], server: Server) -> float:
    few = keys[: max(1, len(keys) // 10)]
    return run_each(server.by_key, few, True, server)


def fetch_rows(count: int, server: Server) -> float:
    def fetch_all() -> None:
        found = server.connection.execute(f"SELECT * FROM items WHERE id < {count}").fetchall()
        assert len(found) == count

    return microseconds_each(1, fetch_all)


def copy_new_table(rows: int, server: Server) -> float:
    server.connection.execute("DROP TABLE IF EXISTS copied")
    server.connection.execute("CREATE TABLE copied (id int PRIMARY KEY, name text, stock int)")
    make = lambda id_: (id_, f"item {id_}", 100)  # noqa: E731
    return microseconds_each(1, lambda: copy_rows(server, "copied", rows, make))


def _measure_pgbench(report: BenchmarkReport, servers: list[Server]) -> None:
    program = find_program("pgbench")
    if program is None:
        report.absent.append("pgbench: it is not installed")
        return
    for server in servers:
        run_pgbench(program, server, "-i", "-s", "1", "-q")
    ours, theirs = [max(count_selects(program, server) for _ in range(2)) for server in servers]
    report.add(Figure(f"pgbench -S, {CLIENTS} clients", ours, "a second", ">= 0.6 ratio", theirs))


def count_selects(program: Path, server: Server) -> float:
    """Transactions a second of several clients that read by key."""
    work = ("-n", "-S", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", "-T", str(PGBENCH_S))
    found = re.search(r"tps = ([0-9.]+)", run_pgbench(program, server, *work))
    assert found is not None
    return float(found[1])


def run_pgbench(program: Path, server: Server, *arguments: str) -> str:
    info = server.connection.info
    place = ("-h", info.host, "-p", str(info.port), "-U", info.user)
    ran = subprocess.run(
        [program, *place, *arguments, info.dbname], capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        raise Unavailable("pgbench failed", detail=ran.stderr.strip(), sqlstate="58000")
    return ran.stdout
