"""`df.write.format("belvedere")` and `writeStream`: the writers of rows into a table.

Options: `database`, `table`; `operation`: append (the default), upsert or delete; `onError`: stop
(the default) or reject, then with `rejects`, the file for rejected rows and their reasons.

Each task sends its rows to the owner of the store, which stages them, still invisible. The commit
names all parts, and the owner writes them in one transaction. A job that fails before that leaves
nothing, neither rows nor parts, whatever its tasks still do. A stream sends its name (the id of the
query, which a restart from its checkpoint keeps) and the number of the batch; the owner stores the
last number in the same transaction, so a batch that Spark replays is not written again.

`write` runs in tasks, `commit` and `abort` in a process of the driver's machine; the writer is
pickled to both.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from belvedere.errors import InvalidInput, Unsupported
from belvedere.pipeline.datasource.rejects import require_writable_file, write_rejects_to_csv
from belvedere.pipeline.store.client import Store, WriteResult
from belvedere.pipeline.store.verb_hosts import NodeHost

QUERY_ID = "sql.streaming.queryId"


@dataclass(frozen=True)
class WriteTarget:
    """The table that a writer writes to, and how. Pickled to tasks."""

    store: Store
    table: str
    operation: str
    on_error: str
    columns: tuple[str, ...]
    job: str
    """Names the parts of a batch job's tasks; the query id names those of a stream."""
    rejects: Path | None = None

    def write_rejects_if_any(self, written: WriteResult, *, more: bool) -> None:
        if written.rejects.num_rows:
            assert self.rejects is not None
            write_rejects_to_csv(self.rejects, self.columns, written, more=more)


@dataclass
class StagedPart(WriterCommitMessage):
    """One task's part. `query` is the streaming query it belongs to."""

    part: str
    rows: int
    query: str | None


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, target: WriteTarget) -> None:
        self._target = target
        check_target_columns(target)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPart:
        return stage_batches_as_part(self._target, iterator, self._target.job)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        target = self._target
        written = target.store.commit_staged_parts(
            target.table,
            target.operation,
            _list_staged_part_names(messages),
            on_error=target.on_error,
            job=target.job,
        )
        target.write_rejects_if_any(written, more=False)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._target.store.end_write_job(self._target.job)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a stream. Spark constructs a new writer for each commit, so the query
    id is taken from the messages of the tasks."""

    def __init__(self, target: WriteTarget) -> None:
        self._target = target
        check_target_columns(target)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPart:
        query = _get_current_streaming_query_id()
        return stage_batches_as_part(
            self._target, iterator, _make_job_name_of_query(query) if query else self._target.job
        )

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        queries = {one.query for one in messages if isinstance(one, StagedPart)}
        if not queries:
            return
        query = queries.pop()
        if queries or query is None:
            raise InvalidInput("tasks do not know which query they belong to", sqlstate="XX000")
        target = self._target
        written = target.store.commit_staged_parts(
            target.table,
            target.operation,
            _list_staged_part_names(messages),
            on_error=target.on_error,
            job=_make_job_name_of_query(query),
            writer=query,
            batch=batchId,
        )
        target.write_rejects_if_any(written, more=True)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        for query in {one.query for one in messages if isinstance(one, StagedPart)}:
            if query is not None:
                self._target.store.end_write_job(_make_job_name_of_query(query), again=True)


def parse_write_target(
    store: Store, options: Mapping[str, str], columns: Sequence[str]
) -> WriteTarget:
    if isinstance(store.host, NodeHost):
        raise Unsupported(
            "writing rows from tasks of Spark to a database on HBase",
            hint="belvedere pipeline load, or COPY, writes files in one transaction",
            database=store.url,
        )
    if "table" not in options:
        raise InvalidInput("the option table is wanted", sqlstate="22023")
    on_error = options.get("onError", "stop")
    if on_error not in ("stop", "reject"):
        raise InvalidInput("unknown onError", sqlstate="22023", hint="stop or reject")
    rejects = Path(options["rejects"]) if "rejects" in options else None
    if on_error == "reject":
        if rejects is None:
            raise InvalidInput("the option rejects is wanted", sqlstate="22023")
        require_writable_file(rejects)
    operation = options.get("operation", "append")
    job = secrets.token_hex(16)
    return WriteTarget(store, options["table"], operation, on_error, tuple(columns), job, rejects)


def refuse_overwrite_mode(overwrite: bool) -> None:
    if overwrite:
        raise Unsupported(
            "mode overwrite", hint="use mode append with the option operation = upsert"
        )


def check_target_columns(target: WriteTarget) -> None:
    target.store.check_write_columns(target.table, target.operation, target.columns)


def stage_batches_as_part(
    target: WriteTarget, batches: Iterator[pa.RecordBatch], job: str
) -> StagedPart:
    first = next(batches, None)
    if first is None:
        return StagedPart("", 0, _get_current_streaming_query_id())
    part, rows = target.store.stage_rows(
        target.table, target.operation, first.schema, _prepend_batch(first, batches), job
    )
    return StagedPart(part, rows, _get_current_streaming_query_id())


def _prepend_batch(
    first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _get_current_streaming_query_id() -> str | None:
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(QUERY_ID)


def _make_job_name_of_query(query: str) -> str:
    return query.replace("-", "")


def _list_staged_part_names(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    """The parts that tasks reported; a failed task reported none."""
    return [one.part for one in messages if isinstance(one, StagedPart) and one.part]
