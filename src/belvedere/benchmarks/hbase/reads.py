"""Reads: by key and by scan against bare calls, and a join of three tables by view and by plan."""

from __future__ import annotations

import random
from itertools import cycle, islice

from belvedere.benchmarks.hbase.bare import BareGateway
from belvedere.benchmarks.hbase.shop import JOIN, JOIN_VIEW, Sizes
from belvedere.benchmarks.report.measurements import (
    BenchmarkReport,
    Figure,
    alternate_rounds,
    cpu_microseconds_each,
    microseconds_each,
)
from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.interfaces.dbapi import Connection
from belvedere.txn.row_atomic.commit_protocol import RowCommit

POINT_READ = "SELECT * FROM item WHERE id = ?"


def measure_point_reads(
    con: Connection,
    commits: RowCommit,
    bare: BareGateway,
    item: CompiledTable,
    sizes: Sizes,
    report: BenchmarkReport,
) -> None:
    """Each round reads other rows: a snapshot is young for some milliseconds, and remembers the
    rows that it was read with."""
    order = random.Random(report.seed).sample(range(sizes.items), sizes.items)
    bare_numbers, numbers = cycle(order), cycle(order)

    def read_bare() -> None:
        for number in islice(bare_numbers, sizes.calls):
            bare.get(item.key.encode_first(number))

    def read_by_sql() -> None:
        for number in islice(numbers, sizes.calls):
            assert len(con.execute(POINT_READ, (number,)).fetchall()) == 1

    before, rounds = commits.round_trips, 2 * sizes.rounds
    raw, ours, raw_cpu, our_cpu = alternate_rounds(
        rounds,
        lambda: microseconds_each(sizes.calls, read_bare),
        lambda: microseconds_each(sizes.calls, read_by_sql),
        lambda: cpu_microseconds_each(sizes.calls, read_bare),
        lambda: cpu_microseconds_each(sizes.calls, read_by_sql),
    )
    report.add(Figure("point read, to a bare get", ours, "us", "<= 1.5 ratio", raw))
    report.add(Figure("the same, CPU of this process", our_cpu, "us", baseline=raw_cpu))
    trips = (commits.round_trips - before) / (2 * rounds * sizes.calls)
    report.add(Figure("round trips: a point read", trips, "trips"))


def measure_scans(
    con: Connection, bare: BareGateway, item: CompiledTable, sizes: Sizes, report: BenchmarkReport
) -> None:
    def scan_bare() -> None:
        assert bare.scan(item.start, item.end) == sizes.items

    def scan_to_arrow() -> None:
        assert con.execute("SELECT * FROM item").fetch_arrow().num_rows == sizes.items

    raw, ours = alternate_rounds(
        sizes.rounds,
        lambda: microseconds_each(sizes.items, scan_bare),
        lambda: microseconds_each(sizes.items, scan_to_arrow),
    )
    report.add(Figure("scan to Arrow, a row, to a bare scan", ours, "us", "<= 1.3 ratio", raw))


def measure_join(con: Connection, sizes: Sizes, report: BenchmarkReport) -> None:
    """The baseline is the view, so that the ratio says how much longer the plan takes."""
    con.execute(JOIN_VIEW)

    def read_view() -> None:
        assert len(con.execute("SELECT * FROM sold").fetchall()) == sizes.customers

    def run_plan() -> None:
        con.execute("SET rewrite = off")
        assert len(con.execute(JOIN).fetchall()) == sizes.customers
        con.execute("SET rewrite = on")

    view, plan = alternate_rounds(
        sizes.rounds,
        lambda: microseconds_each(1, read_view) / 1000,
        lambda: microseconds_each(1, run_plan) / 1000,
    )
    report.add(Figure("join of 3 tables by plan, to its view", plan, "ms", ">= 10 ratio", view))
