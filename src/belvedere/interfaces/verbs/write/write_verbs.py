"""Verbs that write: "stage" rows, then "write" all parts of a job at once, or "end_job" without.

"write" is one transaction, so a job is atomic. For exactly-once writes a job names its `writer` and
`batch`: the last batch of every writer is a row of an ordinary table, written in the same
transaction, and a batch that is not newer is not written again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from belvedere.errors import InvalidInput, Retry
from belvedere.interfaces.verbs.peer import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.read.relations import split_name
from belvedere.interfaces.verbs.write import staging
from belvedere.interfaces.verbs.write.staged_writer import (
    CORRUPT,
    LoadOutcome,
    LoadTarget,
    StagedRowWriter,
    batches_to_rows,
    resolve_target,
)
from belvedere.session.session import Session
from belvedere.types import Row
from belvedere.values.quoting import quote_identifier, quote_literal

PARTS_MAX = 10_000
SCHEMA = "belvedere_pipeline"
WRITERS_TABLE = f"{SCHEMA}.written"
REJECTS = pa.schema(
    [pa.field("row", pa.utf8()), pa.field("sqlstate", pa.utf8()), pa.field("reason", pa.utf8())]
)
_CREATE_WRITERS_TABLE = f"""
    CREATE SCHEMA IF NOT EXISTS {SCHEMA};
    CREATE TABLE IF NOT EXISTS {WRITERS_TABLE} (
        writer text PRIMARY KEY, batch bigint NOT NULL, rows bigint NOT NULL)
"""


def check_columns(peer: Peer, arguments: Arguments) -> None:
    """Require that rows with these columns can be written; fails before any rows are sent."""
    catalog = peer.database.catalog
    schema, name = split_name(catalog, arguments.get_text("table"))
    columns = [one for one in arguments.get_texts("columns") or [] if one != CORRUPT]
    resolve_target(catalog, schema, name, columns, arguments.get_text("operation"))


def stage_rows(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    check_columns(peer, arguments)
    upload = arguments.upload
    wanted = arguments.get_texts("columns")
    if upload.schema.names != wanted:
        raise InvalidInput(
            "rows have other columns than announced",
            sqlstate="42804",
            announced=wanted,
            found=upload.schema.names,
        )
    job, ended = arguments.optional_text("job"), peer.served_store.ended_jobs
    name, rows = staging.stage_upload(peer.served_store.directory, upload, job, ended)
    return {"part": name, "rows": rows}


def discard_parts(peer: Peer, arguments: Arguments) -> None:
    staging.discard_parts(peer.served_store.directory, arguments.get_texts("parts") or [])


def end_job(peer: Peer, arguments: Arguments) -> None:
    """Remove the parts of a job. With `again` later parts are accepted: streams reuse the name."""
    ended = None if arguments.optional_number("again") else peer.served_store.ended_jobs
    staging.end_job(peer.served_store.directory, arguments.get_text("job"), ended)


def write_parts(peer: Peer, arguments: Arguments) -> Stream:
    """Write the parts. The value is a summary, the rows are the rejected ones. The job then ends,
    with or without success, unless a `writer` is named, which has more batches."""
    try:
        return _write_with_retries(peer, arguments)
    finally:
        if arguments.has("job"):
            again = arguments.has("writer")
            ended = None if again else peer.served_store.ended_jobs
            staging.end_job(peer.served_store.directory, arguments.get_text("job"), ended)


def _write_with_retries(peer: Peer, arguments: Arguments) -> Stream:
    parts = arguments.get_texts("parts") or []
    if len(parts) > PARTS_MAX:
        raise InvalidInput("too many parts", sqlstate="54000", found=len(parts))
    session = Session(peer.served_store.shared)
    writer = arguments.optional_text("writer")
    if writer is not None:
        session.execute(_CREATE_WRITERS_TABLE)
    attempts = peer.database.config.statement_retries_max
    while True:
        try:
            outcome, known = _run_transaction(peer, session, arguments, parts)
            break
        except Retry:
            attempts -= 1
            if attempts < 0:
                raise
    staging.discard_parts(peer.served_store.directory, parts)
    value = {
        "position": session.transactions.position,
        "written": outcome.written,
        "rejected": len(outcome.rejected),
        "reasons": [[*reason, count] for reason, count in outcome.reasons.most_common(20)],
        "repeated": known,
    }
    return Stream(REJECTS, [_rejects_batch(outcome)], value)


def _run_transaction(
    peer: Peer, session: Session, arguments: Arguments, parts: list[str]
) -> tuple[LoadOutcome, bool]:
    """The outcome, and whether the batch had been written before."""
    writer, batch = arguments.optional_text("writer"), arguments.optional_number("batch")
    # Whether the batch is new is read first: a second writer of it must fail, and read again.
    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        if writer is not None and not _is_new(session, writer, arguments.get_number("batch")):
            return LoadOutcome(), True
        outcome = _apply_parts(peer, session, arguments, parts) if parts else LoadOutcome()
        if writer is not None:
            session.execute(
                f"INSERT INTO {WRITERS_TABLE} VALUES (?, ?, ?) ON CONFLICT (writer)"
                " DO UPDATE SET batch = excluded.batch, rows = excluded.rows",
                [writer, batch, outcome.written],
            )
        session.execute("COMMIT")
        return outcome, False
    finally:
        session.rollback()


def _is_new(session: Session, writer: str, batch: int) -> bool:
    found = session.execute(f"SELECT batch FROM {WRITERS_TABLE} WHERE writer = ?", [writer])
    found.convert_arrow_to_rows()
    return not found.rows or found.rows[0][0] < batch


def _apply_parts(
    peer: Peer, session: Session, arguments: Arguments, parts: list[str]
) -> LoadOutcome:
    catalog, directory = session.catalog, peer.served_store.directory
    schema, name = split_name(catalog, arguments.get_text("table"))
    columns = staging.columns_of_parts(directory, parts)
    corrupt = columns.index(CORRUPT) if CORRUPT in columns else None
    names = [one for one in columns if one != CORRUPT]
    target = resolve_target(catalog, schema, name, names, arguments.get_text("operation"))
    reject = arguments.optional_text("on_error") == "reject"
    whole = corrupt is None or staging.is_null(directory, parts, CORRUPT)
    if target.operation == "append" and not reject and whole:
        return LoadOutcome(sum(_copy_part(session, target, directory, part) for part in parts))
    writer = StagedRowWriter(session, target, reject=reject, corrupt=corrupt)
    writer.write_rows(batches_to_rows(staging.read_parts(directory, parts)))
    return writer.outcome


def _copy_part(session: Session, target: LoadTarget, directory: Path, part: str) -> int:
    """COPY writes a part by columns, where nothing has to be computed row by row."""
    names = ", ".join(quote_identifier(column.name) for column in target.columns)
    path = quote_literal(str(staging.require_part(directory, part)))
    return session.execute(
        f"COPY {target.qualified_name} ({names}) FROM {path} (format parquet)"
    ).affected


def _row_to_json(row: Row) -> str:
    """A row as it was sent, as a JSON array."""
    return json.dumps(row, default=str, ensure_ascii=False)


def _rejects_batch(outcome: LoadOutcome) -> pa.RecordBatch:
    columns = [
        pa.array([_row_to_json(row) for row, _, _ in outcome.rejected], pa.utf8()),
        pa.array([sqlstate for _, sqlstate, _ in outcome.rejected], pa.utf8()),
        pa.array([reason for _, _, reason in outcome.rejected], pa.utf8()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REJECTS)


VERBS: dict[str, Verb] = {
    "check_columns": check_columns,
    "stage": stage_rows,
    "discard": discard_parts,
    "end_job": end_job,
    "write": write_parts,
}
