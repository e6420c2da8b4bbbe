"""Scaling from one CPU to two: the same job in a child process that is limited to so many CPUs.

The child opens its own store, starts Spark with as many cores as it has CPUs, and prints the rows a
second of a scan with an aggregate. The owner of the store shares these CPUs, as it would on a small
machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.views.workload import load_rows, open_connection
from belvedere.pipeline.store.spark_session import open_spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECONDS_MAX = 1800
ROUNDS = 3


def measure_scaling(report: BenchmarkReport, schema: str, columns: str, rows: int) -> None:
    """Measure rows/s on one and on two CPUs; the goal is their ratio."""
    known = sorted(os.sched_getaffinity(0))
    if len(known) < 2:
        report.absent.append("1 -> 2 CPUs: this machine has one")
        return
    one, two = (_measure_in_child(known[:count], schema, columns, rows) for count in (1, 2))
    report.add(Figure("scan and aggregate, 2 CPUs vs 1", two, "rows/s", ">= 1.6 ratio", one))


def _measure_in_child(cpus: list[int], schema: str, columns: str, rows: int) -> float:
    command = [sys.executable, "-m", __name__, ",".join(map(str, cpus)), schema, columns, str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS_MAX)
    return float(done.stdout.splitlines()[-1])


def scan_rate(schema: str, columns: str, rows: int, cores: int) -> float:
    with tempfile.TemporaryDirectory(prefix="belvedere-bench-") as scratch:
        path = Path(scratch) / "shop.db"
        with (
            open_connection(path) as connection,
            open_spark_session(f"local[{cores}]", "scaling") as spark,
        ):
            connection.execute(schema)
            load_rows(connection, "orders", columns, rows)

            def group_rows() -> object:
                """Use a new DataFrame each time: Spark reuses the exchanges of an old one."""
                frame = read_frame(spark, path, table="orders")
                return frame.groupBy("customer").agg({"total": "sum", "weight": "max"}).collect()

            return rows / best_seconds(group_rows)


def read_frame(spark: SparkSession, directory: Path, **options: str) -> DataFrame:
    reader = spark.read.format("belvedere").option("database", str(directory))
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.option("partitions", "4").load()


def best_seconds(action: Callable[[], object]) -> float:
    """Seconds of the best of several rounds, after one to warm up."""
    action()
    spent = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        action()
        spent.append(time.perf_counter() - started)
    return min(spent)


def main(arguments: list[str]) -> None:
    cpus, schema, columns, rows = arguments
    chosen = {int(cpu) for cpu in cpus.split(",")}
    os.sched_setaffinity(0, chosen)
    sys.stdout.write(f"{scan_rate(schema, columns, int(rows), len(chosen))}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
