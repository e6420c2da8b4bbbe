"""The log record of many changes, encoded by columns: the same bytes as `codec.record` makes.

The directory is one matrix of five little-endian words for each change, and the tail one join: no
Python frame for a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from belvedere.codec.keyspace import ROW_PREFIX_BYTES
from belvedere.codec.record import (
    DELETE,
    ENTRY_BYTES,
    HEADER_BYTES,
    INSERT,
    UPDATE,
    refuse_empty_change,
    seal_record,
)
from belvedere.errors import Unavailable

RECORD_BYTES_MAX = 2**32 - 1
"""A record has its length, and the ends of its rows, in four bytes."""

Column = Sequence[bytes | None]


def encode_many_changes(
    position: int,
    previous_hash: int,
    catalog_version: int,
    time: int,
    transaction: bytes,
    stored_keys: Sequence[bytes],
    olds: Column,
    news: Column,
) -> tuple[bytes, int]:
    """`record.encode_record_with_hash` of the rows under these complete keys of the store."""
    count = len(stored_keys)
    kinds = np.full(count, UPDATE, "<u4")
    absent = [_find_absent(olds), _find_absent(news)]
    if bool((absent[0] & absent[1]).any()):
        refuse_empty_change(position)
    kinds[absent[0]], kinds[absent[1]] = INSERT, DELETE
    parts = (
        [key[ROW_PREFIX_BYTES:] for key in stored_keys],
        _replace_absent(olds),
        _replace_absent(news),
    )
    ends = np.cumsum(np.column_stack([_count_bytes(part) for part in parts]))
    length = HEADER_BYTES + ENTRY_BYTES * count + int(ends[-1])
    if length > RECORD_BYTES_MAX:
        raise too_large(length)
    directory = np.empty((count, ENTRY_BYTES // 4), "<u4")
    directory[:, 0] = _read_relations(stored_keys)
    directory[:, 1] = kinds
    directory[:, 2:] = ends.reshape(count, 3)
    fields = (position, previous_hash, catalog_version, time, transaction, count)
    return seal_record(length, fields, directory.tobytes(), chain.from_iterable(zip(*parts)))


def too_large(size_bytes: int) -> Unavailable:
    return Unavailable(
        "transaction is too large",
        sqlstate="53200",
        hint="change fewer rows in one transaction",
        size_mb=size_bytes // 2**20,
        size_mb_max=RECORD_BYTES_MAX // 2**20,
    )


def _find_absent(rows: Column) -> npt.NDArray[np.bool_]:
    return np.fromiter([row is None for row in rows], np.bool_, len(rows))


def _replace_absent(rows: Column) -> Sequence[bytes]:
    return [b"" if row is None else row for row in rows]


def _count_bytes(parts: Sequence[bytes]) -> npt.NDArray[np.int64]:
    return np.fromiter(map(len, parts), np.int64, len(parts))


def _read_relations(stored_keys: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    heads = b"".join([key[1:ROW_PREFIX_BYTES] for key in stored_keys])
    return np.frombuffer(heads, ">u4")
