"""Task functions of a backfill that write the state of the keys they own.

FileTarget   as a sorted file, which the store ingests unchanged; a task attempt whose result
             Spark discards leaves files that are never ingested
CellTarget   as cells of a database on HBase, as of the position of the scan: twice is once
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from belvedere import failpoints
from belvedere.codec import accumulator
from belvedere.errors import Error
from belvedere.execution.spark.operators import TaskFailure
from belvedere.kv.batch import Pair
from belvedere.kv.rocksdb import RocksSortedFileWriter
from belvedere.kv.rocksdb_settings import store_options
from belvedere.pipeline.aggregate.additions import decode_view_of_state_key, sum_encoded_additions
from belvedere.pipeline.aggregate.spark_sums import TotalsEncoder
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.tables import Batches, decode_catalog

FILES = "view int, file string, rows bigint"


class StateTarget(Protocol):
    """Pickles. Implemented by FileTarget and CellTarget."""

    def write_state(self, view: int, pairs: Sequence[Pair]) -> str:
        """Write the state of some keys, sorted by them; returns the name of their file, if any."""


@dataclass(frozen=True, slots=True)
class FileTarget:
    directory: str

    def write_state(self, view: int, pairs: Sequence[Pair]) -> str:
        path = Path(self.directory) / f"{view}-{secrets.token_hex(8)}.sst"
        writer = RocksSortedFileWriter(path, store_options(create=False, salvage=False))
        for key, value in pairs:
            writer.put(key, value)
        writer.finish()
        return str(path)


@dataclass(frozen=True, slots=True)
class CellTarget:
    store: Store
    position: int

    def write_state(self, view: int, pairs: Sequence[Pair]) -> str:
        keys, values = zip(*pairs)
        columns = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
        batch = pa.record_batch(columns, names=["key", "value"])
        named = {"view": view, "position": self.position, "job": ""}
        self.store.send_verb_batches("fill_write", batch.schema, [batch], **named)
        return ""


@dataclass(frozen=True, slots=True)
class SummedStateTask:
    """In the task that owns these keys: sums them and writes them, view by view."""

    target: StateTarget

    def __call__(self, batches: Batches) -> Batches:
        sums = sum_encoded_additions(batches).sums
        for view, keys in groupby(sorted(sums), decode_view_of_state_key):
            pairs = [(key, accumulator.encode(*sums[key])) for key in keys]
            yield _write_state(self.target, view, pairs)


@dataclass(frozen=True, slots=True)
class TotalsStateTask:
    """In the task that owns these groups: writes their state."""

    target: StateTarget
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
            yield _write_state(self.target, self.encoder.view, pairs)


def _write_state(target: StateTarget, view: int, pairs: Sequence[Pair]) -> pa.RecordBatch:
    """Write these pairs; returns the row that reports them to the driver."""
    if failpoints.armed:
        failpoints.hit("fill.before_file")
    try:
        name = target.write_state(view, pairs)
    except Error as error:
        raise TaskFailure(error) from None
    if failpoints.armed:
        failpoints.hit("fill.after_file")
    arrays = [
        pa.array([view], pa.int32()),
        pa.array([name], pa.utf8()),
        pa.array([len(pairs)], pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["view", "file", "rows"])
