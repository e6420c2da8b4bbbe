"""The log record: everything one transaction changed, in one value.

Little-endian:
- header, 64 bytes: u64 hash (xxh3 of all that follows), u32 total length, u64 position, u64 hash of
  the record before, u64 catalog version, i64 commit time (microseconds), 16 bytes transaction id,
  u32 change count n
- directory, n times 20 bytes: u32 relation, u8 kind (1 insert, 2 update, 3 delete), 3 zero bytes,
  u32 ends of key, old row and new row in the tail
- tail: key, old row and new row of each change, one after the other

A key here is the encoded key without family and relation. The kind says whether there is an
old and a new row, so that an empty row and no row stay apart. The hash of the record before makes
the log a chain: a lost or exchanged record is detected.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, NoReturn

from xxhash import xxh3_64_intdigest

from belvedere.codec.keyspace import ROW_PREFIX_BYTES
from belvedere.errors import Corruption, InvalidInput

HEADER_BYTES = 64
ENTRY_BYTES = 20
HASH_BYTES = 8
TRANSACTION_BYTES = 16

INSERT = 1
UPDATE = 2
DELETE = 3

_relation = struct.Struct(">I")  # as the key of a row has it
_hash = struct.Struct("<Q")
_header = struct.Struct("<QIQQQq16sI")
_body = struct.Struct("<IQQQq16sI")
_entry = struct.Struct("<IB3xIII")
_single = struct.Struct("<IQQQq16sIIB3xIII")
_SINGLE_BYTES = HEADER_BYTES + ENTRY_BYTES


class Change(NamedTuple):
    """One row mutation. No old row: an insert; no new row: a delete; both: an update."""

    relation: int
    key: bytes
    old: bytes | None
    new: bytes | None


PlainChange = tuple[int, bytes, bytes | None, bytes | None]
"""A Change, or a tuple of the same: what a commit builds, where each object counts."""


StoredChange = tuple[bytes, bytes | None, bytes | None, int]
"""A row's complete key in the store, the row before and after, and what a record leaves out."""


HeaderFields = tuple[int, int, int, int, bytes, int]
"""Position, hash of the record before, catalog version, time, transaction id, change count."""


class LogRecord(NamedTuple):
    """A verified log record; its changes are decoded on request."""

    position: int
    hash: int
    previous_hash: int
    catalog_version: int
    time: int
    transaction: bytes
    change_count: int
    data: bytes

    def changes(self) -> Iterator[Change]:
        """The changes in the order in which they were made."""
        make = tuple.__new__
        return (make(Change, one) for one in self.list_changes())

    def list_changes(self) -> list[PlainChange]:
        """The changes as a list of plain tuples, all decoded at once."""
        data = self.data
        base = HEADER_BYTES + ENTRY_BYTES * self.change_count
        start, length = base, len(data)
        found: list[PlainChange] = []
        for relation, kind, key_end, old_end, new_end in _entry.iter_unpack(
            data[HEADER_BYTES:base]
        ):
            key_end += base
            old_end += base
            new_end += base
            if not start <= key_end <= old_end <= new_end <= length or not 1 <= kind <= 3:
                raise Corruption("log record has a broken directory", log_position=self.position)
            key = data[start:key_end]
            old = None if kind == INSERT else data[key_end:old_end]
            found.append((relation, key, old, None if kind == DELETE else data[old_end:new_end]))
            start = new_end
        return found


def encode_record(
    position: int,
    previous_hash: int,
    catalog_version: int,
    time: int,
    transaction: bytes,
    changes: Sequence[PlainChange],
) -> bytes:
    """The bytes of a record. `time` is in microseconds since 1970, `transaction` has 16 bytes."""
    return encode_record_with_hash(
        position, previous_hash, catalog_version, time, transaction, changes
    )[0]


def encode_record_with_hash(
    position: int,
    previous_hash: int,
    catalog_version: int,
    time: int,
    transaction: bytes,
    changes: Sequence[PlainChange],
) -> tuple[bytes, int]:
    """The bytes of a record, and the hash the next one names as that of the record before."""
    try:
        directory, tail = _directory_and_tail(position, changes)
    except (struct.error, TypeError, ValueError) as error:
        raise InvalidInput("log record cannot be encoded", detail=str(error)) from error
    length = HEADER_BYTES + len(directory) + len(tail)
    fields = (position, previous_hash, catalog_version, time, transaction, len(changes))
    return seal_record(length, fields, directory, (tail,))


def encode_stored_changes(
    position: int,
    previous_hash: int,
    catalog_version: int,
    time: int,
    transaction: bytes,
    changes: Sequence[StoredChange],
) -> tuple[bytes, int]:
    """`encode_record_with_hash` of rows under their complete keys in the store: what a transaction
    of several changes costs. The directory is packed at once."""
    numbers: list[int] = []
    tail: list[bytes] = []
    relation_of, end = _relation.unpack_from, 0
    for key, old, new, _ in changes:
        kind = UPDATE
        if old is None:
            kind, old = INSERT, b""
        if new is None:
            if kind == INSERT:
                refuse_empty_change(position)
            kind, new = DELETE, b""
        key_end = end + len(key) - ROW_PREFIX_BYTES
        old_end = key_end + len(old)
        end = old_end + len(new)
        numbers += (relation_of(key, 1)[0], kind, key_end, old_end, end)
        tail += (key[ROW_PREFIX_BYTES:], old, new)
    count = len(changes)
    try:
        directory = _directory_struct(count).pack(*numbers)
    except struct.error as error:
        raise InvalidInput("log record cannot be encoded", detail=str(error)) from error
    fields = (position, previous_hash, catalog_version, time, transaction, count)
    return seal_record(HEADER_BYTES + ENTRY_BYTES * count + end, fields, directory, tail)


@functools.lru_cache(maxsize=1024)
def _directory_struct(count: int) -> struct.Struct:
    """The directory of a record of so many changes."""
    return struct.Struct("<" + "IB3xIII" * count)


def seal_record(
    length: int, fields: HeaderFields, directory: bytes, tail: Iterable[bytes]
) -> tuple[bytes, int]:
    """A record of this length from its parts, and its hash."""
    transaction = fields[4]
    try:
        if len(transaction) != TRANSACTION_BYTES:
            raise InvalidInput("transaction id must have 16 bytes", found=len(transaction))
        body = b"".join([_body.pack(length, *fields), directory, *tail])
    except (struct.error, TypeError) as error:
        raise InvalidInput("log record cannot be encoded", detail=str(error)) from error
    digest = xxh3_64_intdigest(body)
    return _hash.pack(digest) + body, digest


def encode_single_change(
    position: int,
    previous_hash: int,
    catalog_version: int,
    time: int,
    transaction: bytes,
    stored_key: bytes,
    old: bytes | None,
    new: bytes | None,
) -> tuple[bytes, int]:
    """`encode_record_with_hash` of one change of the row under `stored_key`, its complete key in
    the store. Most commits change one row, and this is half the cost."""
    kind = UPDATE
    if old is None:
        kind, old = INSERT, b""
    if new is None:
        if kind == INSERT:
            refuse_empty_change(position)
        kind, new = DELETE, b""
    key_end = len(stored_key) - ROW_PREFIX_BYTES
    old_end = key_end + len(old)
    new_end = old_end + len(new)
    try:
        body = (
            _single.pack(
                _SINGLE_BYTES + new_end, position, previous_hash, catalog_version, time,
                transaction, 1, _relation.unpack_from(stored_key, 1)[0], kind,
                key_end, old_end, new_end,
            )
            + stored_key[ROW_PREFIX_BYTES:] + old + new
        )  # fmt: skip
    except struct.error as error:
        raise InvalidInput("log record cannot be encoded", detail=str(error)) from error
    digest = xxh3_64_intdigest(body)
    return _hash.pack(digest) + body, digest


def record_length(data: bytes) -> int:
    """The length in a record's header, not verified."""
    return int.from_bytes(data[HASH_BYTES : HASH_BYTES + 4], "little")


def record_position(data: bytes) -> int:
    return int.from_bytes(data[HASH_BYTES + 4 : HASH_BYTES + 12], "little")


def change_count(data: bytes) -> int:
    """The change count in a record's header, not verified."""
    return int.from_bytes(data[HEADER_BYTES - 4 : HEADER_BYTES], "little")


def decode_record(data: bytes, position: int | None = None) -> LogRecord:
    """A record from its bytes, verified. `position` is the one in its key, when it is known."""
    if len(data) < HEADER_BYTES:
        raise Corruption("log record is cut short", log_position=position, found_bytes=len(data))
    digest, length, found, previous, version, time, transaction, count = _header.unpack_from(data)
    where = found if position is None else position
    if length != len(data):
        raise Corruption(
            "log record has the wrong length", log_position=where, expected=length, found=len(data)
        )
    if digest != xxh3_64_intdigest(data[HASH_BYTES:]):
        raise Corruption("log record does not match its hash", log_position=where)
    if found != where:
        raise Corruption("log record is of another position", log_position=where, found=found)
    if HEADER_BYTES + ENTRY_BYTES * count > length:
        raise Corruption("log record has a broken directory", log_position=where)
    return LogRecord(found, digest, previous, version, time, transaction, count, data)


def _directory_and_tail(position: int, changes: Sequence[PlainChange]) -> tuple[bytes, bytes]:
    entries: list[bytes] = []
    parts: list[bytes] = []
    pack = _entry.pack
    end = 0
    for relation, key, old, new in changes:
        if old is None:
            if new is None:
                refuse_empty_change(position)
            kind, old = INSERT, b""
        else:
            kind = UPDATE if new is not None else DELETE
        new = b"" if new is None else new
        key_end = end + len(key)
        old_end = key_end + len(old)
        end = old_end + len(new)
        entries.append(pack(relation, kind, key_end, old_end, end))
        parts += (key, old, new)
    return b"".join(entries), b"".join(parts)


def refuse_empty_change(position: int) -> NoReturn:
    raise InvalidInput("a change needs an old or a new row", log_position=position)
