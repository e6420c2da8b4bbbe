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

from belvedere.benchmarks.pipeline.scaling import best_seconds, measure_scaling, read_frame
from belvedere.benchmarks.pipeline.views import (
    measure_backfills,
    measure_freshness,
    measure_maintenance,
    measure_verify,
)
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.views.workload import load_rows, open_connection
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import ReadRequest, Store
from belvedere.pipeline.store.spark_session import open_spark_session

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


class PipelineBenchmark(NamedTuple):
    spark: SparkSession
    store: Store
    connection: Connection
    rows: int
    report: BenchmarkReport


def run(scale: float = 1.0, seed: int = 1) -> BenchmarkReport:
    report = BenchmarkReport("pipeline", seed)
    with _prepare_store(max(int(ROWS * scale), 1000), report) as bench:
        for part in (
            measure_scans,
            measure_lookups,
            measure_log,
            measure_writes,
            measure_backfills,
            measure_maintenance,
            measure_freshness,
            measure_verify,
        ):
            part(bench)
    measure_scaling(report, SCHEMA, COLUMNS, max(int(ROWS * scale), 1000))
    return report


@contextmanager
def _prepare_store(rows: int, report: BenchmarkReport) -> Iterator[PipelineBenchmark]:
    with tempfile.TemporaryDirectory(prefix="belvedere-bench-") as scratch:
        path = Path(scratch) / "shop.db"
        with (
            open_connection(path) as connection,
            open_spark_session(MASTER, "bench", SETTINGS) as spark,
        ):
            connection.execute(SCHEMA)
            load_rows(connection, "orders", COLUMNS, rows)
            yield PipelineBenchmark(spark, Store.from_url(str(path)), connection, rows, report)


def measure_scans(bench: PipelineBenchmark) -> None:
    """Scan a table to a DataFrame: every column of every row, handed to Spark."""
    frame = _read_frame(bench, table="orders")
    spent = best_seconds(lambda: _consume_frame(frame))
    bench.report.add(Figure("scan of a table", bench.rows / spent, "rows/s", ">= 500000 value"))
    narrow = _read_frame(bench, table="orders", columns="id,total")
    spent = best_seconds(lambda: _consume_frame(narrow))
    bench.report.add(Figure("scan of two columns", bench.rows / spent, "rows/s"))
    lease = bench.store.take_position_lease()
    relation = ReadRequest("table", "orders")
    (whole,) = bench.store.plan_relation_splits(relation, lease, 1)
    spent = best_seconds(
        lambda: _count_batches(bench.store.scan_relation_split(relation, lease, whole))
    )
    bench.store.release_position_lease(lease)
    bench.report.add(Figure("the owner's part of it, one peer", bench.rows / spent, "rows/s"))


def measure_lookups(bench: PipelineBenchmark) -> None:
    """A pushed-down filter: the latency of a job that reads one row."""
    frame = _read_frame(bench, table="orders").where("id = 777")
    bench.report.add(Figure("one row by its key", best_seconds(frame.collect) * 1000, "ms"))


def measure_log(bench: PipelineBenchmark) -> None:
    frame = _read_frame(bench, changes="orders")
    spent = best_seconds(lambda: _consume_frame(frame))
    bench.report.add(Figure("changes of a table from the log", bench.rows / spent, "rows/s"))


def measure_writes(bench: PipelineBenchmark) -> None:
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


def _read_frame(bench: PipelineBenchmark, **options: str) -> DataFrame:
    return read_frame(bench.spark, bench.store.directory, **options)


def _consume_frame(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _count_batches(batches: Iterator[object]) -> int:
    return sum(1 for _ in batches)
