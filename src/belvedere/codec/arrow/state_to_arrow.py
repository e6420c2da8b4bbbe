"""View state to Arrow columns: amounts as a matrix, payloads as rows, without a Python loop.

The value format is `codec.accumulator`'s. Amounts of eight bytes only: what has others is for
Python, and None stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from belvedere.codec.arrow.rows_to_arrow import EncodedRows, JoinedValues
from belvedere.codec.rows import RowLayout

Integers = npt.NDArray[np.int64]

_HEAD_BYTES = 7


def decode_amounts(values: JoinedValues, width: int) -> Integers | None:
    """The amounts of stored values, a line each; None where one has not this many, of eight bytes
    each."""
    size = _HEAD_BYTES + 8 * width
    if not len(values.lengths):
        return np.empty((0, width), np.int64)
    if values.lengths.min() < size:
        return None
    heads = values.gather(values.starts, size)
    lengths = np.ascontiguousarray(heads[:, 3:7]).view("<u4").ravel()
    counts = np.ascontiguousarray(heads[:, 1:3]).view("<u2").ravel()
    if heads[:, 0].any() or (counts != width).any() or (lengths != values.lengths - size).any():
        return None
    return np.ascontiguousarray(heads[:, _HEAD_BYTES:]).view("<i8").reshape(-1, width)


def copy_payloads(values: JoinedValues, width: int) -> pa.Array:
    """The payloads of stored values that have so many amounts of eight bytes."""
    begins = values.starts + _HEAD_BYTES + 8 * width
    offsets, data = values.copy_ranges(begins, values.starts + values.lengths)
    count = len(values.lengths)
    found = pa.Array.from_buffers(pa.binary(), count, [None, offsets, data])
    return found.cast(pa.large_binary())


def states_to_arrow(
    payload: RowLayout, width: int, values: list[bytes], slots: Sequence[int]
) -> list[pa.Array] | None:
    """These slots of stored values, in their order: the columns of the payload, then its amounts.
    None where an amount has more than eight bytes."""
    joined = JoinedValues(values)
    amounts = decode_amounts(joined, width)
    if amounts is None:
        return None
    columns = len(payload.slots)
    stored = [slot for slot in slots if slot < columns]
    decoded = EncodedRows(payload, copy_payloads(joined, width)).decode_columns(stored)
    by_slot = dict(zip(stored, decoded, strict=True))
    return [
        by_slot[slot]
        if slot < columns
        else pa.array(np.ascontiguousarray(amounts[:, slot - columns]))
        for slot in slots
    ]
