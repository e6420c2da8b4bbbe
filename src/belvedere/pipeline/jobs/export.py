"""Export job: writes a table, a view or the rows of a query, at one position, to files of any
format that Spark knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, Observation, SparkSession, functions

from belvedere.errors import InvalidInput
from belvedere.execution.spark.failures import FAILURES, failure_cause
from belvedere.pipeline.store.client import ReadRequest, Store

CSV = {
    "header": "true",
    "escape": '"',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
"""Texts unchanged, with white space at their ends; quotes as `load` and COPY read them."""


class ExportInputs(NamedTuple):
    spark: SparkSession
    store: Store
    relation: ReadRequest
    position: int
    partitions: int


@dataclass(frozen=True, slots=True)
class ExportResult:
    directory: Path
    rows: int
    files: int
    position: int


def build_export_frame(inputs: ExportInputs) -> DataFrame:
    reader = inputs.spark.read.format("belvedere")
    reader = reader.option("database", inputs.store.url)
    reader = reader.option(inputs.relation.kind, inputs.relation.name)
    reader = reader.option("position", str(inputs.position))
    return reader.option("partitions", str(inputs.partitions)).load()


def run_export(
    spark: SparkSession,
    store: Store,
    relation: ReadRequest,
    directory: Path,
    *,
    form: str = "parquet",
    position: int | None = None,
    partitions: int | None = None,
) -> ExportResult:
    if directory.exists():
        raise InvalidInput("directory exists already", sqlstate="58P02", path=str(directory))
    lease = store.take_position_lease(position)
    try:
        store.describe_relation(relation)
        parts = partitions or spark.sparkContext.defaultParallelism
        frame = build_export_frame(ExportInputs(spark, store, relation, lease.position, parts))
        counted = Observation()
        frame = frame.observe(counted, functions.count(functions.lit(1)).alias("rows"))
        writer = frame.write.format(form)
        for name, value in CSV.items() if form == "csv" else ():
            writer = writer.option(name, value)
        writer.save(str(directory))
        rows = int(counted.get["rows"])
    except FAILURES as error:
        raise InvalidInput(
            "export failed", sqlstate="58030", detail=failure_cause(error)
        ) from error
    finally:
        store.release_position_lease(lease)
    files = [file for file in directory.iterdir() if file.name.startswith("part-")]
    return ExportResult(directory, rows, len(files), lease.position)
