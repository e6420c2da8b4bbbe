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
from belvedere.interfaces.verbs import staging
from belvedere.interfaces.verbs.relations import split_name
from belvedere.interfaces.verbs.serving import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.writing import CORRUPT, Outcome, Target, Writer, rows_of, target_of
from belvedere.plan.values.quoting import quote_identifier, quote_literal
from belvedere.session.session import Session
from belvedere.types import Row

PARTS_MAX = 10_000
SCHEMA = "belvedere_pipeline"
WRITTEN = f"{SCHEMA}.written"
REJECTS = pa.schema(
    [pa.field("row", pa.utf8()), pa.field("sqlstate", pa.utf8()), pa.field("reason", pa.utf8())]
)
_TABLE = f"""
    CREATE SCHEMA IF NOT EXISTS {SCHEMA};
    CREATE TABLE IF NOT EXISTS {WRITTEN} (
        writer text PRIMARY KEY, batch bigint NOT NULL, rows bigint NOT NULL)
"""


def check_columns(peer: Peer, arguments: Arguments) -> None:
    """Require that rows with these columns can be written; fails before any rows are sent."""
    catalog = peer.database.catalog
    schema, name = split_name(catalog, arguments.text("table"))
    columns = [one for one in arguments.texts("columns") or [] if one != CORRUPT]
    target_of(catalog, schema, name, columns, arguments.text("operation"))


def stage(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    check_columns(peer, arguments)
    upload = arguments.upload
    wanted = arguments.texts("columns")
    if upload.schema.names != wanted:
        raise InvalidInput(
            "rows have other columns than announced",
            sqlstate="42804",
            announced=wanted,
            found=upload.schema.names,
        )
    job, ended = arguments.optional_text("job"), peer.serving.ended_jobs
    name, rows = staging.stage(peer.serving.directory, upload, job, ended)
    return {"part": name, "rows": rows}


def discard(peer: Peer, arguments: Arguments) -> None:
    staging.discard(peer.serving.directory, arguments.texts("parts") or [])


def end_job(peer: Peer, arguments: Arguments) -> None:
    """Remove the parts of a job. With `again` later parts are accepted: streams reuse the name."""
    ended = None if arguments.optional_number("again") else peer.serving.ended_jobs
    staging.end_job(peer.serving.directory, arguments.text("job"), ended)


def write(peer: Peer, arguments: Arguments) -> Stream:
    """Write the parts. The value is a summary, the rows are the rejected ones. The job then ends,
    with or without success, unless a `writer` is named, which has more batches."""
    try:
        return _write(peer, arguments)
    finally:
        if arguments.has("job"):
            again = arguments.has("writer")
            ended = None if again else peer.serving.ended_jobs
            staging.end_job(peer.serving.directory, arguments.text("job"), ended)


def _write(peer: Peer, arguments: Arguments) -> Stream:
    parts = arguments.texts("parts") or []
    if len(parts) > PARTS_MAX:
        raise InvalidInput("too many parts", sqlstate="54000", found=len(parts))
    session = Session(peer.serving.shared)
    writer = arguments.optional_text("writer")
    if writer is not None:
        session.execute(_TABLE)
    attempts = peer.database.config.statement_retries_max
    while True:
        try:
            outcome, known = _transaction(peer, session, arguments, parts)
            break
        except Retry:
            attempts -= 1
            if attempts < 0:
                raise
    staging.discard(peer.serving.directory, parts)
    value = {
        "position": session.transactions.position,
        "written": outcome.written,
        "rejected": len(outcome.rejected),
        "reasons": [[*reason, count] for reason, count in outcome.reasons.most_common(20)],
        "repeated": known,
    }
    return Stream(REJECTS, [_rejects(outcome)], value)


def _transaction(
    peer: Peer, session: Session, arguments: Arguments, parts: list[str]
) -> tuple[Outcome, bool]:
    """The outcome, and whether the batch had been written before."""
    writer, batch = arguments.optional_text("writer"), arguments.optional_number("batch")
    session.execute("BEGIN")
    try:
        if writer is not None and not _is_new(session, writer, arguments.number("batch")):
            return Outcome(), True
        outcome = _apply(peer, session, arguments, parts) if parts else Outcome()
        if writer is not None:
            session.execute(
                f"INSERT INTO {WRITTEN} VALUES (?, ?, ?) ON CONFLICT (writer)"
                " DO UPDATE SET batch = excluded.batch, rows = excluded.rows",
                [writer, batch, outcome.written],
            )
        session.execute("COMMIT")
        return outcome, False
    finally:
        session.rollback()


def _is_new(session: Session, writer: str, batch: int) -> bool:
    found = session.execute(f"SELECT batch FROM {WRITTEN} WHERE writer = ?", [writer])
    found.materialize()
    return not found.rows or found.rows[0][0] < batch


def _apply(peer: Peer, session: Session, arguments: Arguments, parts: list[str]) -> Outcome:
    catalog, directory = session.catalog, peer.serving.directory
    schema, name = split_name(catalog, arguments.text("table"))
    columns = staging.columns_of_parts(directory, parts)
    corrupt = columns.index(CORRUPT) if CORRUPT in columns else None
    names = [one for one in columns if one != CORRUPT]
    target = target_of(catalog, schema, name, names, arguments.text("operation"))
    reject = arguments.optional_text("on_error") == "reject"
    whole = corrupt is None or staging.is_null(directory, parts, CORRUPT)
    if target.operation == "append" and not reject and whole:
        return Outcome(sum(_copied(session, target, directory, part) for part in parts))
    writer = Writer(session, target, reject=reject, corrupt=corrupt)
    writer.write(rows_of(staging.read_parts(directory, parts)))
    return writer.outcome


def _copied(session: Session, target: Target, directory: Path, part: str) -> int:
    """COPY takes a part by columns, where nothing has to be reckoned row by row."""
    names = ", ".join(quote_identifier(column.name) for column in target.columns)
    path = quote_literal(str(staging.existing(directory, part)))
    return session.execute(f"COPY {target.name} ({names}) FROM {path} (format parquet)").affected


def _json(row: Row) -> str:
    """A row as it was sent, as a JSON array."""
    return json.dumps(row, default=str, ensure_ascii=False)


def _rejects(outcome: Outcome) -> pa.RecordBatch:
    columns = [
        pa.array([_json(row) for row, _, _ in outcome.rejected], pa.utf8()),
        pa.array([sqlstate for _, sqlstate, _ in outcome.rejected], pa.utf8()),
        pa.array([reason for _, _, reason in outcome.rejected], pa.utf8()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REJECTS)


VERBS: dict[str, Verb] = {
    "check_columns": check_columns,
    "stage": stage,
    "discard": discard,
    "end_job": end_job,
    "write": write,
}
