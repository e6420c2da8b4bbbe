"""The rows of the protocol and what is in their cells.

| row | columns | value |
|---|---|---|
| 0x20 counter | n | the last position handed out (an increment cell) |
| 0x20 nodes | n | the last node id handed out (an increment cell) |
| 0x20 position | p, d | (decided, applied, changed, catalog); the shared closing delay in seconds |
| 0x20 floor | f | Floors: what readers and log readers may no longer ask for |
| 0x20 catalog | v, h | the catalog version; the holds on tables (Holds) |
| 0x20 identity | i | the store's identity: format, id and the secret of its tokens |
| 0x20 settings | s | StoredSettings: what all nodes have to agree on |
| 0x21 slot, kind, key | h | a lock: LockValue. No cell: free |
| 0x22 lane, position | o, v, a, w | the log: owner (attempt, or abort), framed Record, applied,
                                     how many parts are applied |
| 0x23 attempt, number | v | a part of a record too large for one cell |
| 0x24 slot, transaction id | p | the outcome: the position it committed at |
| 0x25 node id | b | a Heartbeat |
| 0x26 relation, position, node | s | what a node has sampled of a table, for the others |
| 0x01 'consumer/', name | p | the position a consumer of the log has applied |
| 0x10 ... | 0x00, columns, +, = | data: marker, cells, delta cells, fold cells (`data_cells`) |

A slot is one byte of the hash of what follows it: locks and outcomes lie in as many regions as are
wanted, whatever their keys are. Locks are taken and listed in the order of kind and key
(`lock_order`), which slots do not change.

Timestamps. Data cells carry the position that wrote them. A lock cell carries the id of the attempt
that made it, which is unique, and is removed by a tombstone of exactly that timestamp: the
tombstone then also kills a late or repeated request of that attempt only. Every other
cell is only ever overwritten at timestamp 1 (the last put wins) or deleted for good.

An attempt id is node id * 2**32 + number of the attempt on that node: unique for ever.
"""

from __future__ import annotations

import struct
import zlib
from typing import TypeVar

import msgspec

from belvedere.catalog.model import CATALOG_RELATION
from belvedere.codec import keyspace
from belvedere.errors import Corruption
from belvedere.kv.cell import Cells, value_of

SYSTEM = bytes((keyspace.SYSTEM,))
LOCKS = bytes((keyspace.LOCKS,))
LOG = bytes((keyspace.LANES,))
CHUNKS = bytes((keyspace.CHUNKS,))
OUTCOMES = bytes((keyspace.OUTCOMES,))
HEARTBEATS = bytes((keyspace.HEARTBEATS,))
SAMPLES = bytes((keyspace.SAMPLES,))

COUNTER_ROW = SYSTEM + b"counter"
NODES_ROW = SYSTEM + b"nodes"
POSITION_ROW = SYSTEM + b"position"
FLOOR_ROW = SYSTEM + b"floor"
CATALOG_ROW = SYSTEM + b"catalog"
IDENTITY_ROW = SYSTEM + b"identity"
SETTINGS_ROW = SYSTEM + b"settings"

NUMBER = b"n"
POSITIONS = b"p"
DELAY = b"d"
FLOORS = b"f"
VERSION = b"v"
HOLDS = b"h"
HOLDERS = b"h"
OWNER = b"o"
RECORD = b"v"
APPLIED = b"a"
PROGRESS = b"w"
OUTCOME = b"p"
BEAT = b"b"
IDENTITY = b"i"
SETTINGS = b"s"
CONSUMED = b"p"
SAMPLE = b"s"

ONLY = 1
"""The timestamp of cells that have no history."""

ABORT = b"abort"
YES = b"1"

LOCK_KINDS = ("root", "catalog", "table", "claim", "parent", "guard", "join", "state")
"""In lock order: a root key first, so that it is the primary of the common transaction. Kinds that
are not listed come last, by name."""

_OTHER_KIND = b"\x7f"
SLOTS = 256

ATTEMPTS_PER_NODE = 2**32
_CATALOG_ROWS = keyspace.relation_range(CATALOG_RELATION)[0]


class Holder(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One attempt in a lock. `side` 0 is exclusive; other sides only exclude different sides.
    `stamp` is the position the attempt may commit at, 0 before it has one; only the primary has
    it."""

    attempt: int
    primary: bytes
    side: int
    version: int
    stamp: int = 0


class LockValue(msgspec.Struct, frozen=True, array_like=True):
    """`changes` counts the changes of this cell, so that no value ever comes back."""

    made: int
    changes: int
    holders: tuple[Holder, ...]


class Hold(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An attempt that keeps others from writing to tables, with its primary lock."""

    attempt: int
    primary: bytes
    relations: tuple[int, ...]
    transaction: bytes = b""


class Holds(msgspec.Struct, frozen=True, array_like=True):
    """`changes` counts the changes of this cell, so that no value ever comes back."""

    changes: int = 0
    holds: tuple[Hold, ...] = ()


class Positions(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Every position up to `decided` has a record or an abort marker; every record up to `applied`
    has all its cells; `changed` is the last applied one that changed a table, `catalog` the last
    one that changed the catalog."""

    decided: int = 0
    applied: int = 0
    changed: int = 0
    catalog: int = 0

    def move_over(self, position: int, record: Record | None) -> Positions:
        """With one more position applied: the next one, which holds this record, or none."""
        changed = position if record is not None and record.body else self.changed
        moved = position if record is not None and record.changes_catalog() else self.catalog
        return Positions(max(self.decided, position), position, changed, moved)


class Floors(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Snapshots below `versions` and log positions up to `log` are no longer answered; records up
    to `trimmed` are gone."""

    versions: int = 0
    log: int = 0
    trimmed: int = 0


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`attempts_from`: attempts of this node with a lower number are over. `snapshots_from`: the
    oldest open snapshot of this node, -1 when there is none."""

    beat: int
    attempts_from: int
    snapshots_from: int


GONE = Heartbeat(-1, 2**63 - 1, -1)
"""Stands for the heartbeat of a node that was silent for the lease: all its attempts are over. One
that was only slow writes its own again."""


class StoredSettings(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Settings of a database that its nodes have to agree on, written when it is made."""

    lanes: int
    lease_ms: int
    grace_ms: int


class RowWrite(msgspec.Struct, frozen=True, array_like=True):
    """One row's new cells. `kind`: PUT, DELETE, ADD (a delta) or SET (a fold). `born`: since which
    position the row exists (0: since this write); cells that are older belong to an earlier life of
    the key."""

    row: bytes
    kind: int
    cells: tuple[tuple[bytes, bytes | None], ...] = ()
    born: int = 0
    sum: bytes = b""


PUT, DELETE, ADD, SET = 0, 1, 2, 3
CATALOG_WRITE = RowWrite(_CATALOG_ROWS, PUT)
"""Stands for the writes of a record in parts that changes the catalog."""


class Record(msgspec.Struct, frozen=True, array_like=True):
    """What a log row holds: enough for any node to write every cell of the transaction again.
    `body` is what it changed, for readers of the log; empty in a record that only maintains
    views."""

    attempt: int
    transaction: bytes
    version: int
    time: int
    writes: tuple[RowWrite, ...]
    body: bytes = b""

    def changes_catalog(self) -> bool:
        return bool(self.body) and any(w.row.startswith(_CATALOG_ROWS) for w in self.writes)


class Parts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Stands for a record in chunk rows; whether that changes tables, and the catalog. `writing`:
    how many of the parts hold writes (`record_parts`); 0: the record was cut as it is."""

    attempt: int
    count: int
    size: int
    changes: bool = True
    catalog: bool = False
    writing: int = 0


Stored = TypeVar("Stored")
_encoder = msgspec.msgpack.Encoder()
_decoders: dict[type, msgspec.msgpack.Decoder[object]] = {}
_frame = struct.Struct(">BII")
_sample = struct.Struct(">IQQ")
UNSPLIT, IN_PARTS = 1, 2


def encode(value: msgspec.Struct) -> bytes:
    return _encoder.encode(value)


def decode(form: type[Stored], value: bytes, row: bytes) -> Stored:
    """A stored struct. Corruption, naming the row, when the bytes are of another form."""
    decoder = _decoders.get(form)
    if decoder is None:
        decoder = _decoders[form] = msgspec.msgpack.Decoder(form)
    try:
        decoded = decoder.decode(value)
    except msgspec.MsgspecError as error:
        raise Corruption(
            "row was altered: unknown form", row=row.hex(), form=form.__name__
        ) from error
    assert isinstance(decoded, form)
    return decoded


def frame_payload(kind: int, payload: bytes) -> bytes:
    """Payload with kind, length and checksum before it."""
    return _frame.pack(kind, len(payload), zlib.crc32(payload)) + payload


def unframe_payload(value: bytes, row: bytes) -> tuple[int, bytes]:
    try:
        kind, length, checksum = _frame.unpack_from(value)
    except struct.error as error:
        raise Corruption("row was altered: bad checksum", row=row.hex()) from error
    payload = value[_frame.size :]
    if kind not in (UNSPLIT, IN_PARTS) or len(payload) != length or zlib.crc32(payload) != checksum:
        raise Corruption("row was altered: bad checksum", row=row.hex())
    return kind, payload


def read_number(cells: Cells, column: bytes, row: bytes) -> int:
    """An eight-byte number cell; 0 when absent."""
    stored = value_of(cells, column)
    if stored is None:
        return 0
    if len(stored) != 8:
        raise Corruption("row was altered: unknown form", row=row.hex(), form="number")
    return int.from_bytes(stored, signed=True)


def lock_row(kind: str, key: bytes) -> bytes:
    if kind in LOCK_KINDS:
        return _add_slot(LOCKS, bytes((LOCK_KINDS.index(kind),)) + key)
    return _add_slot(LOCKS, _OTHER_KIND + kind.encode() + b"\x00" + key)


def split_lock_row(row: bytes) -> tuple[str, bytes]:
    """Kind and key of a lock row."""
    if row[2:3] != _OTHER_KIND:
        return LOCK_KINDS[row[2]], row[3:]
    kind, _, key = row[3:].partition(b"\x00")
    return kind.decode(), key


def lock_order(row: bytes) -> bytes:
    """What lock rows are ordered by: their kind and key, without the slot."""
    return row[2:]


def _add_slot(family: bytes, rest: bytes) -> bytes:
    return family + bytes((zlib.crc32(rest) % SLOTS,)) + rest


def log_row(position: int, lanes: int) -> bytes:
    return LOG + (position % lanes).to_bytes(2) + position.to_bytes(8)


def chunk_row(attempt: int, part: int) -> bytes:
    return CHUNKS + attempt.to_bytes(8) + part.to_bytes(4)


def outcome_row(transaction: bytes) -> bytes:
    return _add_slot(OUTCOMES, transaction)


def heartbeat_row(node: int) -> bytes:
    return HEARTBEATS + node.to_bytes(8)


def sample_row(relation: int, position: int, node: int) -> bytes:
    return SAMPLES + _sample.pack(relation, position, node)


def split_sample_row(row: bytes) -> tuple[int, int]:
    """Position and node."""
    _, position, node = _sample.unpack_from(row, 1)
    return position, node
