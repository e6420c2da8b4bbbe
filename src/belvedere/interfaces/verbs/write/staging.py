"""Staging files: rows that tasks upload before their job commits, not yet visible to readers.

A part is one task's rows, a Parquet file under PATH/staging, so that COPY can read it by columns.
Its name is the job's name and a random one, 32 hexadecimal digits each. When a job ends, with or
without success, all its parts are removed, also those of lost tasks; a part that arrives later is
refused. Parts that a killed driver left are removed when the store is opened again.
"""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as files

from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.interfaces.verbs.peer import Upload

DIRECTORY = "staging"  # the owner empties it at its start
BATCH_ROWS = 20_000
_PLAIN: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_statistics": False}
_JOB = re.compile(r"[0-9a-f]{32}")
_NAME = re.compile(r"[0-9a-f]{64}")

EndedJobs = deque[str]
"""The names of jobs that ended, newest last."""


def stage_upload(store: Path, upload: Upload, job: str | None, ended: EndedJobs) -> tuple[str, int]:
    """Write the rows to a part; return its name and row count."""
    directory = store / DIRECTORY
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    job = secrets.token_hex(16) if job is None else _require_job_name(job)
    name = job + secrets.token_hex(16)
    path, rows = directory / name, 0
    try:
        with files.ParquetWriter(path, upload.schema, **_PLAIN) as writer:
            for batch in upload.batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        if job in ended:  # after the file exists: `end_job` adds the job, then lists files
            raise Unavailable("the job of these rows has ended", sqlstate="55000", job=job)
    except pa.ArrowNotImplementedError as error:
        path.unlink(missing_ok=True)
        raise Unsupported("rows of these types", detail=str(error)[:200]) from error
    except OSError as error:
        path.unlink(missing_ok=True)
        raise Unavailable("rows cannot be staged", sqlstate="53100", detail=str(error)) from error
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return name, rows


def read_parts(store: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    for name in names:
        with files.ParquetFile(require_part(store, name)) as opened:
            yield from opened.iter_batches(BATCH_ROWS)


def columns_of_parts(store: Path, names: list[str]) -> list[str]:
    """The columns of the parts, which must agree."""
    found = [files.read_schema(require_part(store, name)).names for name in names]
    if any(one != found[0] for one in found):
        raise InvalidInput("parts of a job have different columns", sqlstate="42804")
    return list(found[0])


def is_null(store: Path, names: list[str], column: str) -> bool:
    """Whether a column of the parts has no value at all."""
    tables = [files.read_table(require_part(store, name), columns=[column]) for name in names]
    return all(table.column(0).null_count == table.num_rows for table in tables)


def discard_parts(store: Path, names: list[str]) -> None:
    for name in names:
        _part_path(store, name).unlink(missing_ok=True)


def end_job(store: Path, job: str, ended: EndedJobs | None) -> None:
    """Remove all parts of a job. With `ended`, parts of late tasks are refused from then on."""
    if ended is not None:
        ended.append(_require_job_name(job))
    for path in (store / DIRECTORY).glob(f"{_require_job_name(job)}*"):
        path.unlink(missing_ok=True)


def _require_job_name(job: str) -> str:
    if not _JOB.fullmatch(job):
        raise InvalidInput("not the name of a job", sqlstate="08P01", found=job[:80])
    return job


def require_part(store: Path, name: str) -> Path:
    path = _part_path(store, name)
    if not path.is_file():
        raise Unavailable(
            "staged rows are gone",
            sqlstate="55000",
            hint="run the job again: nothing of it was written",
            part=name,
        )
    return path


def _part_path(store: Path, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise InvalidInput("not the name of a part", sqlstate="08P01", found=name[:80])
    return store / DIRECTORY / name
