"""A fast decoder for log records of one change, which most records are.

It returns the same change as `record.decode_record` and verifies the same: length, hash, directory.
Maintenance reads the log with it, where every avoided allocation counts.
"""

from __future__ import annotations

import struct

from xxhash import xxh3_64_intdigest

from belvedere.codec.record import DELETE, ENTRY_BYTES, HASH_BYTES, HEADER_BYTES, INSERT

BASE = HEADER_BYTES + ENTRY_BYTES
_unpack = struct.Struct("<QIQQQq16sIIB3xIII").unpack_from

SingleChange = tuple[int, int, bytes, bytes | None, bytes | None]
"""Position, relation, key, old row, new row."""


def single_change(data: bytes) -> SingleChange | None:
    """The change of a record that has exactly one; None where it has another number of changes or
    is damaged: `decode_record` then reports the damage."""
    if len(data) < BASE:
        return None
    digest, length, position, _, _, _, _, count, relation, kind, key_end, old_end, new_end = (
        _unpack(data)
    )
    if (
        count != 1
        or length != len(data)
        or digest != xxh3_64_intdigest(data[HASH_BYTES:])
        or not key_end <= old_end <= new_end <= length - BASE
        or not 1 <= kind <= 3
    ):
        return None
    key_end += BASE
    old_end += BASE
    return (
        position,
        relation,
        data[BASE:key_end],
        None if kind == INSERT else data[key_end:old_end],
        None if kind == DELETE else data[old_end : BASE + new_end],
    )
