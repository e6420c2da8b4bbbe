"""Records of transactions of several changes, and chunks of those that are too large for one value.

A record is split into chunks of at most `CHUNK_BYTES`. The first is stored under the record's log
key; the others under the key family `piece`, with the same position. All are written in the one
batch of their commit, so a reader that sees the first finds them all. A record's header holds its
total length and its hash covers all chunks, so a lost or exchanged chunk is detected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from belvedere.codec import keyspace
from belvedere.codec.record import encode_stored_changes, record_length, record_position
from belvedere.errors import InvalidInput
from belvedere.kv.batch import BatchStore, Write
from belvedere.txn.contracts import RowChange

CHUNK_BYTES = 256 * 1024
"""Far below the maximum length of a value: a store reads entire blocks, so a seek to the record
after a large one would read the large one too."""


COLUMNS_CHANGES_MIN = 500
"""Records of fewer changes are encoded change by change."""


def encode_changes(
    position: int,
    previous_hash: int,
    catalog_version: int,
    time: int,
    transaction: bytes,
    changes: Sequence[RowChange],
) -> tuple[bytes, int]:
    """The record of a transaction, and its hash."""
    header = (position, previous_hash, catalog_version, time, transaction)
    if len(changes) < COLUMNS_CHANGES_MIN:
        return encode_stored_changes(*header, changes)
    from belvedere.codec.bulk_record import encode_many_changes  # heavy

    keys, olds = [key for key, _, _, _ in changes], [old for _, old, _, _ in changes]
    return encode_many_changes(*header, keys, olds, [new for _, _, new, _ in changes])


def split_record(position: int, record: bytes) -> list[Write]:
    """The writes that store a record."""
    if len(record) <= CHUNK_BYTES:
        return [(keyspace.log_key(position), record)]
    cuts = range(CHUNK_BYTES, len(record), CHUNK_BYTES)
    rest = [
        (keyspace.piece_key(position, number), record[cut : cut + CHUNK_BYTES])
        for number, cut in enumerate(cuts, 1)
    ]
    return [(keyspace.log_key(position), record[:CHUNK_BYTES]), *rest]


def assemble_record(store: BatchStore, data: bytes) -> bytes:
    """The complete record, from the value under its log key. Damage is left to the decoder."""
    if len(data) < CHUNK_BYTES or record_length(data) <= len(data):
        return data
    position = record_position(data)
    rest = store.scan_values(*keyspace.piece_range(position - 1, position), batch_rows=1)
    found = b"".join([data, *[piece for batch in rest for piece in batch]])
    if len(found) < record_length(data) and store.get(keyspace.log_key(position)) is None:
        raise InvalidInput(
            "position is no longer in the log", sqlstate="22023", position_wanted=position
        )
    return found


def assemble_batches(store: BatchStore, batches: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    for batch in batches:
        small = max(map(len, batch)) < CHUNK_BYTES  # nearly always
        yield batch if small else [assemble_record(store, data) for data in batch]


def delete_log_range(store: BatchStore, from_exclusive: int, to_inclusive: int) -> None:
    """Delete records, then their chunks: chunks without a record are harmless remains, a record
    without its chunks would be damaged."""
    store.delete_range(*keyspace.log_range(from_exclusive, to_inclusive))
    store.delete_range(*keyspace.piece_range(from_exclusive, to_inclusive))
