"""Task functions of a backfill that write state as sorted files, which the store ingests unchanged.

A task attempt whose result Spark discards leaves files that are never ingested.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from belvedere import failpoints
from belvedere.codec import accumulator
from belvedere.errors import Error
from belvedere.execution.spark.operators import TaskFailure
from belvedere.kv.rocksdb import RocksSortedFileWriter
from belvedere.kv.rocksdb_settings import store_options
from belvedere.pipeline.aggregate.additions import decode_view_of_state_key, sum_encoded_additions
from belvedere.pipeline.aggregate.spark_sums import TotalsEncoder
from belvedere.pipeline.store.tables import Batches, decode_catalog

FILES = "view int, file string, rows bigint"


@dataclass(frozen=True, slots=True)
class SortedFileTask:
    """In the task that owns these keys: sums them and writes one sorted file for each view."""

    directory: str

    def __call__(self, batches: Batches) -> Batches:
        sums = sum_encoded_additions(batches).sums
        for view, keys in groupby(sorted(sums), decode_view_of_state_key):
            pairs = [(key, accumulator.encode(*sums[key])) for key in keys]
            yield _write_sorted_file(self.directory, view, pairs)


@dataclass(frozen=True, slots=True)
class TotalsFileTask:
    """In the task that owns these groups: writes their state as one sorted file."""

    directory: str
    objects: tuple[bytes, ...]
    encoder: TotalsEncoder

    def __call__(self, batches: Batches) -> Batches:
        catalog = decode_catalog(self.objects)
        pairs: list[tuple[bytes, bytes]] = []
        try:
            for batch in batches:
                pairs += zip(*self.encoder.encode_state_entries(catalog, batch))
        except Error as error:
            raise TaskFailure(error) from None
        if pairs:
            pairs.sort()
            yield _write_sorted_file(self.directory, self.encoder.view, pairs)


def _write_sorted_file(
    directory: str, view: int, pairs: Sequence[tuple[bytes, bytes]]
) -> pa.RecordBatch:
    """Write a file of these pairs; returns the row that reports it to the driver."""
    if failpoints.armed:
        failpoints.hit("fill.before_file")
    path = Path(directory) / f"{view}-{secrets.token_hex(8)}.sst"
    writer = RocksSortedFileWriter(path, store_options(create=False, salvage=False))
    for key, value in pairs:
        writer.put(key, value)
    writer.finish()
    if failpoints.armed:
        failpoints.hit("fill.after_file")
    arrays = [
        pa.array([view], pa.int32()),
        pa.array([str(path)], pa.utf8()),
        pa.array([len(pairs)], pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["view", "file", "rows"])
