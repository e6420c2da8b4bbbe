"""Additions to the state of views: payload and amounts by key, in memory and as Arrow batches."""

from __future__ import annotations

import pyarrow as pa

from belvedere import failpoints
from belvedere.codec import accumulator, keyspace
from belvedere.pipeline.store.tables import Batches
from belvedere.views.state.additions import AddOnlyWriter

SCHEMA = "key binary, value binary"
Amounts = tuple[int, ...]
Sums = dict[bytes, tuple[bytes, Amounts]]
"""Payload and amounts by key."""


class SumRecorder(AddOnlyWriter):
    """A Writer that adds up what views add, by key."""

    def __init__(self) -> None:
        super().__init__()
        self.sums: Sums = {}

    def add(self, key: bytes, payload: bytes, amounts: Amounts) -> None:
        known = self.sums.get(key)
        if known is None:
            self.sums[key] = (payload, tuple(amounts))
        else:
            total = tuple([one + other for one, other in zip(known[1], amounts, strict=True)])
            self.sums[key] = (known[0], total)


def sum_additions_in_task(batches: Batches) -> Batches:
    """In the task that owns these keys: sum all additions to each."""
    recorder = sum_encoded_additions(batches)
    if failpoints.armed:
        failpoints.hit("pipeline.sum")
    yield from encode_nonzero_sums(recorder.sums)


def sum_encoded_additions(batches: Batches) -> SumRecorder:
    recorder = SumRecorder()
    for batch in batches:
        for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist()):
            recorder.add(key, *accumulator.decode(value))
    return recorder


def encode_nonzero_sums(sums: Sums) -> Batches:
    """Encode the sums that are not zero as batches of the columns key and value."""
    kept = [
        (key, accumulator.encode(payload, amounts))
        for key, (payload, amounts) in sums.items()
        if any(amounts)
    ]
    if kept:
        keys, values = zip(*kept)
        arrays = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, names=["key", "value"])


def decode_view_of_state_key(key: bytes) -> int:
    """The view whose state has this key."""
    return int.from_bytes(key[1 : keyspace.ROW_PREFIX_BYTES])
