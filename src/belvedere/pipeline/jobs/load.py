"""Load job: files into a table, as one transaction.

`build_files_frame` reads the files; `run_load` stages the rows in the tasks and has the owner of
the store write them in one transaction. Values of text formats (CSV, JSON) are read as text and
converted by the owner, by the rules of SQL: Spark would read an invalid value as NULL. A malformed
record is a bad row like any other.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from belvedere.errors import Error, InvalidInput
from belvedere.execution.spark.failures import (
    FAILURES,
    failure_cause,
    is_engine_error,
    translate_failure,
)
from belvedere.execution.spark.operators import TaskFailure
from belvedere.pipeline.datasource.rejects import (
    CORRUPT,
    require_writable_file,
    write_rejects_to_csv,
)
from belvedere.pipeline.datasource.write import WriteTarget, stage_batches_as_part
from belvedere.pipeline.store.client import ReadRequest, Store
from belvedere.pipeline.store.verb_hosts import NodeHost

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
}
PACKED = (".gz", ".bz2", ".zst")
TEXT_FORMATS = ("csv", "json")
CSV = {"header": "true", "escape": '"', "nullValue": "\0"}
"""As COPY reads it: a quote within quotes is doubled (Spark puts a backslash before it, which
`--option 'escape=\\'` reads); empty quotes are an empty text, and an empty field is NULL. Spark
distinguishes the two only when NULL is spelled as some text, so it is one that no value can be."""


class LoadInputs(NamedTuple):
    """The files to load; `form` is a format that Spark knows, with its options."""

    spark: SparkSession
    files: tuple[str, ...]
    form: str
    options: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Result of a load. `reasons` are (SQLSTATE, message, rows)."""

    table: str
    rows: int
    rejected: int
    position: int
    reasons: tuple[tuple[str, str, int], ...] = ()
    rejects_file: Path | None = field(default=None)


def run_load(
    inputs: LoadInputs,
    store: Store,
    table: str,
    *,
    operation: str = "append",
    on_error: str = "stop",
    rejects: Path | None = None,
) -> LoadResult:
    """Load files. A row that violates a rule stops the job, or is written to the file `rejects`
    with the reason."""
    kept = rejects or Path(f"{table}.rejects.csv")
    if on_error == "reject":
        require_writable_file(kept)
    columns = store.describe_relation(ReadRequest("table", table)).schema.names
    frame = build_files_frame(inputs, columns)
    given = [name for name in frame.columns if name != CORRUPT]
    store.check_write_columns(table, operation, given)
    job = secrets.token_hex(16)
    target = WriteTarget(store, table, operation, on_error, tuple(frame.columns), job)
    try:
        stage = (
            _stage_frame_in_driver if isinstance(store.host, NodeHost) else _stage_frame_in_tasks
        )
        parts = _stage_frame(stage, frame, target)
    except Error:
        store.end_write_job(job)
        raise
    written = store.commit_staged_parts(table, operation, parts, on_error=on_error, job=job)
    file = None
    if written.rejects.num_rows:
        file = kept
        write_rejects_to_csv(file, frame.columns, written)
    return LoadResult(
        table, written.rows, written.rejects.num_rows, written.position, written.reasons, file
    )


def build_files_frame(inputs: LoadInputs, columns: Sequence[str]) -> DataFrame:
    """The rows of the files. Without a header the columns are the table's, in its order."""
    reader = inputs.spark.read.format(inputs.form)
    for name, value in CSV.items() if inputs.form == "csv" else ():
        reader = reader.option(name, value)
    if inputs.form == "json":
        reader = reader.option("primitivesAsString", "true")
    for name, value in inputs.options.items():
        reader = reader.option(name, value)
    try:
        frame = reader.load(list(inputs.files))
        if inputs.form not in TEXT_FORMATS:
            return frame
        names = [name for name in frame.columns if name != CORRUPT]
        if inputs.options.get("header") == "false":
            names = _name_columns_by_position(names, columns)
        fields = [StructField(name, StringType()) for name in [*names, CORRUPT]]
        reader = reader.schema(StructType(fields)).option("mode", "PERMISSIVE")
        reader = reader.option("columnNameOfCorruptRecord", CORRUPT).option(
            "columnPruning", "false"
        )
        return reader.load(list(inputs.files))
    except FAILURES as error:
        raise InvalidInput(
            "files cannot be read", sqlstate="58P01", detail=failure_cause(error)
        ) from error


def _name_columns_by_position(found: Sequence[str], columns: Sequence[str]) -> list[str]:
    if len(found) > len(columns):
        raise InvalidInput(
            "files have more columns than the table",
            sqlstate="22P04",
            found=len(found),
            columns=", ".join(columns),
        )
    return list(columns[: len(found)])


def choose_file_format(files: Sequence[str], given: str | None) -> str:
    """The given format, else the one that the files' names imply."""
    if given is not None:
        return given
    found = {_guess_format_by_suffix(file) for file in files}
    if len(found) != 1 or None in found:
        raise InvalidInput(
            "format of the files is not known by their names",
            sqlstate="22023",
            hint="say --format csv, parquet, json or another one of Spark's",
            files=", ".join(files),
        )
    return str(found.pop())


def _guess_format_by_suffix(file: str) -> str | None:
    suffixes = [suffix for suffix in Path(file).suffixes if suffix not in PACKED]
    return FORMATS.get(suffixes[-1].lower()) if suffixes else None


def _stage_frame(
    stage: Callable[[DataFrame, WriteTarget], list[str]], frame: DataFrame, target: WriteTarget
) -> list[str]:
    try:
        return stage(frame, target)
    except FAILURES as error:
        if is_engine_error(error):
            raise translate_failure(error) from error
        raise InvalidInput(
            "files cannot be read", sqlstate="58P01", detail=failure_cause(error)
        ) from error


def _stage_frame_in_tasks(frame: DataFrame, target: WriteTarget) -> list[str]:
    """Stage the rows in the tasks; returns the names of the parts."""
    made = frame.mapInArrow(partial(_stage_one_task_part, target), "part string").collect()
    return [row.part for row in made if row.part]


def _stage_frame_in_driver(frame: DataFrame, target: WriteTarget) -> list[str]:
    """The same where a task reaches no place that the driver's node could read from: tasks read the
    files, and their batches come to the driver one partition after the other."""
    rows = frame.mapInArrow(_serialize_batches, "batch binary").toLocalIterator()
    batches = (batch for row in rows for batch in pa.ipc.open_stream(row.batch))
    part = stage_batches_as_part(target, batches, target.job).part
    return [part] if part else []


def _serialize_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: each batch as a value."""
    for batch in batches:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue()], pa.binary())], names=["batch"])


def _stage_one_task_part(
    target: WriteTarget, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: stage its rows as one part."""
    try:
        staged = stage_batches_as_part(target, iter(batches), target.job)
    except Error as error:
        raise TaskFailure(error) from None
    yield pa.RecordBatch.from_pydict({"part": [staged.part]})
