"""The pipeline on Spark: reads of tables and the log, writes, and the jobs on views.

This process opens the store and serves the tasks; Spark runs on the same cores. Scale 1
reads 2 million rows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from belvedere.benchmarks.pipeline_scaling import best, frame_of, scaling
from belvedere.benchmarks.pipeline_views import fills, follows, freshness, verifies
from belvedere.benchmarks.report import Figure, Report
from belvedere.benchmarks.workload import load, opened
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.session import session
from belvedere.pipeline.store import Relation, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 2_000_000
MASTER = "local[2]"
SETTINGS = {"spark.driver.memory": "2g"}
SCHEMA = """
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer bigint NOT NULL, status text NOT NULL,
    total numeric(12, 2) NOT NULL, weight double precision, at timestamp NOT NULL)
"""
COLUMNS = (
    "i, i % 5003, 'status ' || i % 7, (i % 100000) / 100.0, i * 0.25,"
    " timestamp '2026-01-01' + i * interval '1 second'"
)


class Bench(NamedTuple):
    spark: SparkSession
    store: Store
    connection: Connection
    rows: int
    report: Report


def run(scale: float = 1.0, seed: int = 1) -> Report:
    report = Report("pipeline", seed)
    with _ready(max(int(ROWS * scale), 1000), report) as bench:
        for part in (scans, look_ups, log, writes, fills, follows, freshness, verifies):
            part(bench)
    scaling(report, SCHEMA, COLUMNS, max(int(ROWS * scale), 1000))
    return report


@contextmanager
def _ready(rows: int, report: Report) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="belvedere-bench-") as scratch:
        path = Path(scratch) / "shop.db"
        with opened(path) as connection, session(MASTER, "bench", SETTINGS) as spark:
            connection.execute(SCHEMA)
            load(connection, "orders", COLUMNS, rows)
            yield Bench(spark, Store.of(str(path)), connection, rows, report)


def scans(bench: Bench) -> None:
    """Scan a table to a DataFrame: every column of every row, handed to Spark."""
    frame = _read(bench, table="orders")
    spent = best(lambda: _consumed(frame))
    bench.report.add(Figure("scan of a table", bench.rows / spent, "rows/s", ">= 500000 value"))
    narrow = _read(bench, table="orders", columns="id,total")
    spent = best(lambda: _consumed(narrow))
    bench.report.add(Figure("scan of two columns", bench.rows / spent, "rows/s"))
    lease = bench.store.lease()
    relation = Relation("table", "orders")
    (whole,) = bench.store.splits(relation, lease, 1)
    spent = best(lambda: _counted(bench.store.scan(relation, lease, whole)))
    bench.store.release(lease)
    bench.report.add(Figure("the owner's part of it, one peer", bench.rows / spent, "rows/s"))


def look_ups(bench: Bench) -> None:
    """A pushed-down filter: the latency of a job that reads one row."""
    frame = _read(bench, table="orders").where("id = 777")
    bench.report.add(Figure("one row by its key", best(frame.collect) * 1000, "ms"))


def log(bench: Bench) -> None:
    frame = _read(bench, changes="orders")
    spent = best(lambda: _consumed(frame))
    bench.report.add(Figure("changes of a table from the log", bench.rows / spent, "rows/s"))


def writes(bench: Bench) -> None:
    rows = max(bench.rows // 20, 1000)
    bench.connection.execute("CREATE TABLE copy (id bigint PRIMARY KEY, name text)")
    frame = bench.spark.range(0, rows, numPartitions=2).selectExpr("id", "'n' || id as name")
    writer = frame.write.format("belvedere").mode("append")
    writer = writer.option("database", str(bench.store.directory)).option("table", "copy")
    started = time.perf_counter()
    writer.save()
    spent = time.perf_counter() - started
    bench.report.add(Figure("append in one transaction", rows / spent, "rows/s"))
    started = time.perf_counter()
    writer.option("operation", "upsert").save()
    spent = time.perf_counter() - started
    bench.report.add(Figure("upsert in one transaction", rows / spent, "rows/s"))


def _read(bench: Bench, **options: str) -> DataFrame:
    return frame_of(bench.spark, bench.store.directory, **options)


def _consumed(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _counted(batches: Iterator[object]) -> int:
    return sum(1 for _ in batches)
