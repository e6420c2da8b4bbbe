"""Log records to Arrow, one line per change, without a Python loop over changes.

| column | type |
|---|---|
| position | int64 |
| time | timestamp(us, UTC) |
| transaction | fixed-size binary of 16 |
| relation | int64 |
| kind | int8: 1 insert, 2 update, 3 delete |
| key, old, new | binary; old and new are NULL when the change has none |

Headers and directories of all records are gathered as matrices. Key, old and new row of a change
are adjacent in the tail, so its four bounds delimit all three in the joined buffer.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from belvedere.codec.arrow.rows_to_arrow import JoinedValues
from belvedere.codec.record import DELETE, ENTRY_BYTES, HASH_BYTES, HEADER_BYTES, INSERT
from belvedere.errors import Corruption

Integers = npt.NDArray[np.int64]

SCHEMA = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("time", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("transaction", pa.binary(16), nullable=False),
        pa.field("relation", pa.int64(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        pa.field("old", pa.binary()),
        pa.field("new", pa.binary()),
    ]
)

_HEADER = np.dtype(
    [
        ("hash", "<u8"),
        ("length", "<u4"),
        ("position", "<i8"),
        ("previous", "<u8"),
        ("version", "<u8"),
        ("time", "<i8"),
        ("transaction", "V16"),
        ("count", "<u4"),
    ]
)
_ENTRY = np.dtype(
    [
        ("relation", "<u4"),
        ("kind", "u1"),
        ("zero", "V3"),
        ("key_end", "<u4"),
        ("old_end", "<u4"),
        ("new_end", "<u4"),
    ]
)

_AFTER_HASH = itemgetter(slice(HASH_BYTES, None))


def records_to_arrow(records: list[bytes]) -> pa.RecordBatch:
    """Every change of the records, in order. Corruption when one does not match its hash."""
    joined = JoinedValues(records)
    headers = _read_headers(joined, records)
    counts: Integers = headers["count"].astype(np.int64)
    owner = np.repeat(np.arange(len(records)), counts)
    first = np.cumsum(counts) - counts
    number = np.arange(len(owner)) - first[owner]
    bases = joined.starts + HEADER_BYTES + ENTRY_BYTES * counts
    if (bases > joined.starts + joined.lengths).any():
        _raise_damaged(headers, bases > joined.starts + joined.lengths, "broken directory")
    entries = (
        joined.gather(joined.starts[owner] + HEADER_BYTES + ENTRY_BYTES * number, ENTRY_BYTES)
        .view(_ENTRY)
        .ravel()
    )
    bounds = _change_bounds(entries, bases[owner], number)
    _check_directory(headers, joined, entries, bounds, owner)
    keys, olds, news = (
        joined.take_slices(bounds.ravel(), 4, part, len(owner)) for part in range(3)
    )
    kinds = np.ascontiguousarray(entries["kind"])
    columns = [
        _fixed_width_array(pa.int64(), headers["position"][owner]),
        _fixed_width_array(pa.timestamp("us", "UTC"), headers["time"][owner]),
        _fixed_width_array(pa.binary(16), headers["transaction"][owner]),
        _fixed_width_array(pa.int64(), entries["relation"].astype(np.int64)),
        _fixed_width_array(pa.int8(), kinds),
        keys,
        _with_nulls(olds, kinds == INSERT),
        _with_nulls(news, kinds == DELETE),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _read_headers(joined: JoinedValues, records: list[bytes]) -> npt.NDArray[Any]:
    """The headers of all records, each checked against its length and hash."""
    if len(joined.lengths) and joined.lengths.min() < HEADER_BYTES:
        raise Corruption("log record is cut short", found_bytes=int(joined.lengths.min()))
    headers = joined.gather(joined.starts, HEADER_BYTES).view(_HEADER).ravel()
    if (headers["length"] != joined.lengths).any():
        _raise_damaged(headers, headers["length"] != joined.lengths, "wrong length")
    hashed = map(xxh3_64_intdigest, map(_AFTER_HASH, records))
    digests = np.fromiter(hashed, np.uint64, len(records))
    if (headers["hash"] != digests).any():
        _raise_damaged(headers, headers["hash"] != digests, "wrong hash")
    return headers


def _change_bounds(entries: npt.NDArray[Any], bases: Integers, number: Integers) -> Integers:
    """For every change: start, end of its key, of its old row, of its new row."""
    bounds = np.zeros((len(entries), 4), np.int64)
    bounds[1:, 0] = entries["new_end"][:-1]
    bounds[number == 0, 0] = 0
    bounds[:, 1] = entries["key_end"]
    bounds[:, 2] = entries["old_end"]
    bounds[:, 3] = entries["new_end"]
    bounds += bases[:, None]
    return bounds


def _check_directory(
    headers: npt.NDArray[Any],
    joined: JoinedValues,
    entries: npt.NDArray[Any],
    bounds: Integers,
    owner: Integers,
) -> None:
    ends = joined.starts + joined.lengths
    wrong = (np.diff(bounds, axis=1) < 0).any(axis=1) | (bounds[:, 3] > ends[owner])
    wrong |= (entries["kind"] < INSERT) | (entries["kind"] > DELETE)
    if wrong.any():
        _raise_damaged(headers[owner], wrong, "broken directory")


def _raise_damaged(headers: npt.NDArray[Any], wrong: npt.NDArray[np.bool_], fault: str) -> None:
    position = int(headers["position"][wrong][0])
    raise Corruption("log record is damaged", fault=fault, log_position=position)


def _fixed_width_array(data_type: pa.DataType, data: npt.NDArray[Any]) -> pa.Array:
    buffer = pa.py_buffer(np.ascontiguousarray(data).view(np.uint8))
    return pa.Array.from_buffers(data_type, len(data), [None, buffer])


def _with_nulls(array: pa.Array, null: npt.NDArray[np.bool_]) -> pa.Array:
    if not null.any():
        return array
    _, offsets, data = array.buffers()
    validity = pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(array.type, len(array), [validity, offsets, data])
