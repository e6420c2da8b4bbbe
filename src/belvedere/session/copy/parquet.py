"""Parquet files for COPY: Arrow columns of a file, and rows to a file. Arrow is imported when first
needed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.errors import InvalidInput
from belvedere.execution.bulk_insert import can_cast_exactly
from belvedere.types import Kind, Row, SqlType

BATCH_ROWS = 20_000
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799  # of the years 1 to 9999


def read_column_batches(path: Path, names: list[str]) -> Iterator[list[Any]]:
    """The columns of these names, or all by position when the file has as many, in batches."""
    import pyarrow as pa  # heavy
    import pyarrow.parquet as files  # heavy

    try:
        opened = files.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise InvalidInput("not a parquet file", sqlstate="22P04", detail=str(error)) from error
    found = opened.schema_arrow.names
    chosen = names if set(names) <= set(found) else found
    if len(chosen) != len(names):
        raise InvalidInput(
            "file has other columns than the table", sqlstate="22P04", columns=", ".join(found)
        )
    for batch in opened.iter_batches(BATCH_ROWS, columns=chosen):
        yield [batch.column(name) for name in chosen]


def try_build_slot_ordered_batch(
    columns: list[Any], places: list[int | None] | None, table: CompiledTable
) -> Any:
    """The columns as a record batch with one column for every slot of the table, or None when a
    value might be another one in the table's type."""
    import pyarrow as pa  # heavy

    from belvedere.codec.arrow.rows_to_arrow import arrow_type  # heavy

    if places is None or not columns:
        return None
    arrays, types = [], table.layout.types
    for place, sql_type in zip(places, types):
        if place is None:
            arrays.append(pa.nulls(len(columns[0]), arrow_type(sql_type)))
            continue
        array = columns[place]
        if not can_cast_exactly(sql_type, array.type) or not _has_valid_values(array, sql_type):
            return None
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=[f"s{i}" for i in range(len(arrays))])


def _has_valid_values(array: Any, sql_type: SqlType) -> bool:
    """Whether every value is valid for the SQL type."""
    import pyarrow.compute as pc  # heavy

    if sql_type.kind is Kind.JSON:  # read value by value
        return bool(array.null_count == len(array))
    if sql_type.kind in (Kind.TEXT, Kind.VARCHAR, Kind.CHAR):
        return not pc.any(pc.match_substring(array, "\0")).as_py()
    if sql_type.kind not in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return True
    ends = pc.min_max(array.cast("timestamp[s]", safe=False))
    low, high = (ends[name].cast("int64").as_py() for name in ("min", "max"))
    return low is None or (low >= _FIRST_SECOND and high <= _LAST_SECOND)


def write_parquet_rows(
    path: Path, names: list[str], types: list[SqlType], rows: Iterator[Row]
) -> int:
    import pyarrow as pa  # heavy
    import pyarrow.parquet as files  # heavy

    from belvedere.execution.duckdb.leaves import rows_to_table  # heavy

    count, writer = 0, None
    while True:
        chunk = list(itertools.islice(rows, BATCH_ROWS))
        table: Any = rows_to_table(chunk, types).rename_columns(names)
        if writer is None:
            writer = files.ParquetWriter(path, table.schema)
        if chunk:
            writer.write_table(pa.table(table))
            count += len(chunk)
        if len(chunk) < BATCH_ROWS:
            writer.close()
            return count
