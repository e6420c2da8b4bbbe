"""`belvedere bench hbase --database hbase://host:port/namespace`.

The namespace must not be there yet, or hold an empty database; it is removed at the end. Rounds of
both sides alternate.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.progress import Progress

from belvedere.benchmarks.hbase import dashboard, operation_mix, reads, writes
from belvedere.benchmarks.hbase.bare import BareGateway
from belvedere.benchmarks.hbase.shop import Sizes, load_shop, require_empty
from belvedere.benchmarks.report.measurements import BenchmarkReport
from belvedere.database import Database
from belvedere.errors import InvalidInput
from belvedere.interfaces.dbapi import Connection, connect
from belvedere.kv.hbase.exchange import Exchange
from belvedere.kv.hbase.tables import drop_tables
from belvedere.kv.hbase.url import is_hbase_url, parse_url
from belvedere.session.session import Session
from belvedere.txn.row_atomic.engine import RowAtomicEngine


def run(scale: float, seed: int, *, database: str | None) -> BenchmarkReport:
    if not is_hbase_url(database):
        raise InvalidInput(
            "this benchmark needs an HBase",
            sqlstate="22023",
            hint="make hbase-up; belvedere bench hbase --database hbase://host:port/namespace",
        )
    assert database is not None
    report = BenchmarkReport("hbase", seed)
    with connect(database, autocommit=True) as con:
        require_empty(con, database)
    try:
        with connect(database, autocommit=True) as con, connect(database) as txn:
            _measure_all(con, txn, database, Sizes.at_scale(scale), report)
    finally:
        exchange = Exchange(parse_url(database))
        drop_tables(exchange)
        exchange.close()
    return report


def _measure_all(
    con: Connection, txn: Connection, url: str, sizes: Sizes, report: BenchmarkReport
) -> None:
    load_shop(con, sizes)
    assert isinstance(con.session, Session)
    opened = con.session.host
    assert isinstance(opened, Database)
    assert isinstance(opened.engine, RowAtomicEngine)
    commits = opened.engine.commits
    bare = BareGateway(parse_url(url))
    item = opened.get_compiled_table("item")
    made = writes.Transactions(con, txn, commits)
    steps: list[Callable[[], None]] = [
        lambda: reads.measure_point_reads(con, commits, bare, item, sizes, report),
        lambda: writes.measure_transactions(made, bare, item, sizes, report),
        lambda: writes.measure_round_trips(made, commits, report),
        lambda: reads.measure_scans(con, bare, item, sizes, report),
        lambda: writes.measure_view(made, con, sizes, report),
        lambda: reads.measure_join(con, sizes, report),
        lambda: writes.measure_threads(url, sizes, report),
        lambda: writes.measure_processes(url, sizes, report),
        lambda: operation_mix.measure_mix(url, item, sizes, report),
        lambda: dashboard.measure_dashboard(con, url, sizes, report),
    ]
    with Progress() as progress:
        task = progress.add_task("hbase", total=len(steps))
        for step in steps:
            step()
            progress.advance(task)
    bare.close()
