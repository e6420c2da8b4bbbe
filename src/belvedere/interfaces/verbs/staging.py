"""Rows that tasks hand over before the job commits: files beside the store that nobody reads yet.

A part is one task's rows, an Arrow file of a random name under PATH/staging. Parts of a job that
failed are discarded by it; what nobody claims is gone when the store is opened again.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from belvedere.errors import InvalidInput, Unavailable
from belvedere.interfaces.verbs.serving import Upload

DIRECTORY = "staging"  # emptied by the owner when it begins
_NAME = re.compile(r"[0-9a-f]{32}")


def stage(store: Path, upload: Upload) -> tuple[str, int]:
    """Keep the rows; returns the part's name and how many there are."""
    directory = store / DIRECTORY
    directory.mkdir(mode=0o700, exist_ok=True)
    name = secrets.token_hex(16)
    path, rows = directory / name, 0
    try:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, upload.schema) as writer:
            for batch in upload.batches:
                writer.write_batch(batch)
                rows += batch.num_rows
    except OSError as error:
        path.unlink(missing_ok=True)
        raise Unavailable("rows cannot be staged", sqlstate="53100", detail=str(error)) from error
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return name, rows


def read_parts(store: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    for name in names:
        with pa.memory_map(str(_existing(store, name)), "rb") as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)


def schema_of_parts(store: Path, names: list[str]) -> pa.Schema:
    """The schema of the parts, which must be one."""
    found: pa.Schema | None = None
    for name in names:
        with pa.memory_map(str(_existing(store, name)), "rb") as source:
            schema = pa.ipc.open_file(source).schema
        if found is not None and not schema.equals(found):
            raise InvalidInput("parts of a job have different columns", sqlstate="42804")
        found = schema
    assert found is not None
    return found


def discard(store: Path, names: list[str]) -> None:
    for name in names:
        _path(store, name).unlink(missing_ok=True)


def _existing(store: Path, name: str) -> Path:
    path = _path(store, name)
    if not path.is_file():
        raise Unavailable(
            "staged rows are gone",
            sqlstate="55000",
            hint="run the job again: nothing of it was written",
            part=name,
        )
    return path


def _path(store: Path, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise InvalidInput("not the name of a part", sqlstate="08P01", found=name[:80])
    return store / DIRECTORY / name
