"""The file of rejected rows: each as it was given, with its SQLSTATE and the reason.

Rows are committed before the rejects are written, so a job checks that the file can be written
before any work. A stream appends the rejects of each batch to the same file.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path

from belvedere.errors import InvalidInput
from belvedere.pipeline.store.client import WriteResult

CORRUPT = "_corrupt_record"
"""A column that Spark adds to text formats: the text of a malformed record, else NULL. Without any
malformed record, the file does not have it."""


def require_writable_file(file: Path) -> None:
    """Refuse a file that could not be written."""
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise InvalidInput("rejects file cannot be written", sqlstate="58P01", file=str(file))


def write_rejects_to_csv(
    file: Path, columns: Sequence[str], written: WriteResult, *, more: bool = False
) -> None:
    """Write the rejects of a job; `more`: append them to the file."""
    begun = more and file.exists() and file.stat().st_size > 0
    rejects = written.rejects.to_pylist()
    rows = [json.loads(reject["row"]) for reject in rejects]
    shown = [
        place
        for place, name in enumerate(columns)
        if name != CORRUPT or more or any(row[place] for row in rows)
    ]
    with file.open("a" if more else "w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        if not begun:
            writer.writerow([*(columns[i] for i in shown), "sqlstate", "reason"])
        for row, reject in zip(rows, rejects, strict=True):
            writer.writerow([*(row[i] for i in shown), reject["sqlstate"], reject["reason"]])
