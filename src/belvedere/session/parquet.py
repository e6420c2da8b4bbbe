"""Parquet files as rows of Python values, and back. Arrow is imported when first needed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from belvedere.errors import InvalidInput
from belvedere.types import Row, SqlType

BATCH_ROWS = 20_000


def read(path: Path, names: list[str]) -> Iterator[Row]:
    """The columns of these names, or by place when the file has as many."""
    import pyarrow.parquet as files  # heavy

    opened = files.ParquetFile(path)
    found = opened.schema_arrow.names
    chosen = names if set(names) <= set(found) else found
    if len(chosen) != len(names):
        raise InvalidInput(
            "file has other columns than the table", sqlstate="22P04", columns=", ".join(found)
        )
    for batch in opened.iter_batches(BATCH_ROWS, columns=chosen):
        yield from zip(*[batch.column(name).to_pylist() for name in chosen])


def write(path: Path, names: list[str], types: list[SqlType], rows: Iterator[Row]) -> int:
    import pyarrow as pa  # heavy
    import pyarrow.parquet as files  # heavy

    from belvedere.execution.duck.leaves import table_of  # heavy

    count, writer = 0, None
    while True:
        chunk = list(itertools.islice(rows, BATCH_ROWS))
        table: Any = table_of(chunk, types).rename_columns(names)
        if writer is None:
            writer = files.ParquetWriter(path, table.schema)
        if chunk:
            writer.write_table(pa.table(table))
            count += len(chunk)
        if len(chunk) < BATCH_ROWS:
            writer.close()
            return count
