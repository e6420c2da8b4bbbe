"""Samples of tables as processes of one store share them: their bytes, and several as one.

A process that plans a statement takes what others have sampled, as long as it is valid, and samples
a table itself only where there is nothing. Its own sample is then there for the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

BYTES_MAX = 512 * 1024
"""Of the rows of one shared sample; of a larger one, every other row is left out until it fits."""


class SharedSample(msgspec.Struct, frozen=True, array_like=True):
    """`version` is that of the relation's definition, which the stored rows `values` follow.
    `complete`: by a reading of all rows (ANALYZE). `in_runs`: rows lie side by side."""

    version: int
    rows: float
    complete: bool
    in_runs: bool
    values: tuple[bytes, ...] = ()


class PlacedSample(msgspec.Struct, frozen=True):
    """A sample, and the position it was taken at."""

    position: int
    sample: SharedSample


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(SharedSample)


def encode_sample(sample: SharedSample) -> bytes:
    values = sample.values
    while sum(map(len, values)) > BYTES_MAX:
        values = values[::2] if len(values) > 1 else ()
    return _encoder.encode(msgspec.structs.replace(sample, values=values))


def decode_sample(data: bytes) -> SharedSample | None:
    """None: of another form, that of another release; it is as if it were not there."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError:
        return None


def merge_samples(found: Sequence[PlacedSample]) -> PlacedSample | None:
    """All of them as one sample: the newest count, and every row once. One of a complete reading
    stands for itself: it has rows from everywhere."""
    if not found:
        return None
    complete = [each for each in found if each.sample.complete]
    newest = max(complete or found, key=lambda each: each.position)
    if complete:
        return newest
    values = dict.fromkeys(value for each in found for value in each.sample.values)
    merged = msgspec.structs.replace(
        newest.sample,
        values=tuple(values),
        in_runs=any(each.sample.in_runs for each in found),
    )
    return PlacedSample(min(each.position for each in found), merged)
