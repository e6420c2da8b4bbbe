"""Every key family of a store, listed once.

A key is one family byte and what the family says (integers are big-endian, so keys sort by them):

| family | byte | then | value |
|---|---|---|---|
| meta | 0x01 | name, UTF-8 | whatever the name says |
| log | 0x02 | position, u64 | one log record (`codec.record`) |
| watermark | 0x03 | id of a maintenance group or view, u32 | its position |
| stream | 0x04 | view id, u32; position, u64; number, u32 | what was added
  (`views.changefeed.entries`) |
| claim | 0x05 | maintenance group id, u32 | who maintains it (`views.state.claims`) |
| piece | 0x06 | position, u64; number, u32 | a further piece of a large log record
  (`txn.batch_atomic.log_chunks`) |
| rows | 0x10 | relation id, u32; encoded key (`codec.keys`) | a row (`codec.rows`) |

A row-atomic store has the same families except log and piece. It also has the rows of its commit
protocol (`txn.row_atomic.cells.layout` describes their cells):

| family | byte | then |
|---|---|---|
| spread rows | 0x11 | slot, u8; relation id, u32; encoded key: a row of a hashed table, or an entry
  of a local view of one (`txn.row_atomic.cells.placement`) |
| system | 0x20 | name: counter, nodes, position, floor, catalog, identity |
| locks | 0x21 | slot, u8; kind, then what is locked |
| lanes | 0x22 | lane, u16; position, u64: the log |
| chunks | 0x23 | attempt, u64; number, u32: a part of a large log record |
| outcomes | 0x24 | slot, u8; transaction id |
| heartbeats | 0x25 | node id, u64 |
| samples | 0x26 | relation id, u32; position, u64; node id, u64: a sample of a table |

Every table, index, view and auxiliary view is a relation. Relation ids below `USER_RELATIONS_FROM`
belong to the system. Ids are never reused.

Invariants: two families never share a key; all keys of a relation are one range; no key starts with
0xFF, so that every prefix has a next one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from belvedere.errors import Corruption, InvalidInput

STORE_FORMAT = 1

META = 0x01
LOG = 0x02
WATERMARK = 0x03
STREAM = 0x04
CLAIM = 0x05
PIECE = 0x06
ROWS = 0x10
SPREAD_ROWS = 0x11
SYSTEM = 0x20
LOCKS = 0x21
LANES = 0x22
CHUNKS = 0x23
OUTCOMES = 0x24
HEARTBEATS = 0x25
SAMPLES = 0x26

CATALOG_RELATION = 1
SEQUENCE_RELATION = 2
USER_RELATIONS_FROM = 100

POSITION_MAX = 2**63 - 1
RELATION_MAX = 2**32 - 1
ROW_PREFIX_BYTES = 5

_family_and_u32 = struct.Struct(">BI")
_family_and_u64 = struct.Struct(">BQ")
_stream = struct.Struct(">BIQI")
_piece = struct.Struct(">BQI")


@dataclass(frozen=True, slots=True)
class MetaKey:
    name: str


@dataclass(frozen=True, slots=True)
class LogKey:
    position: int


@dataclass(frozen=True, slots=True)
class WatermarkKey:
    group: int


@dataclass(frozen=True, slots=True)
class StreamKey:
    """The entry at position 0 holds the position from which the view's changes are recorded."""

    view: int
    position: int
    number: int


@dataclass(frozen=True, slots=True)
class ClaimKey:
    group: int


@dataclass(frozen=True, slots=True)
class PieceKey:
    """A further piece of a log record, numbered from 1: the first is the log key's value."""

    position: int
    number: int


@dataclass(frozen=True, slots=True)
class RowKey:
    """`key` is the encoded key without family and relation."""

    relation: int
    key: bytes


ParsedKey = MetaKey | LogKey | WatermarkKey | StreamKey | ClaimKey | PieceKey | RowKey


def meta_key(name: str) -> bytes:
    return b"\x01" + name.encode()


def log_key(position: int) -> bytes:
    if not 0 <= position <= POSITION_MAX:
        raise InvalidInput("position out of range", sqlstate="22003", found=position)
    return _family_and_u64.pack(LOG, position)


def watermark_key(group: int) -> bytes:
    return _family_and_u32.pack(WATERMARK, _require_u32(group))


def stream_key(view: int, position: int, number: int = 0) -> bytes:
    return _stream.pack(STREAM, _require_u32(view), position, number)


def claim_key(group: int) -> bytes:
    return _family_and_u32.pack(CLAIM, _require_u32(group))


def piece_key(position: int, number: int) -> bytes:
    return _piece.pack(PIECE, position, number)


def row_prefix(relation: int) -> bytes:
    """What every key of the relation starts with: the `prefix` of its KeyCodec."""
    return _family_and_u32.pack(ROWS, _require_u32(relation))


def meta_range() -> tuple[bytes, bytes]:
    return b"\x01", b"\x02"


def log_range(from_exclusive: int, to_inclusive: int) -> tuple[bytes, bytes]:
    """The keys of the records from < position <= to; an empty range when there are none."""
    start = _after_log_key(from_exclusive)
    return start, max(start, _after_log_key(to_inclusive))


def piece_range(from_exclusive: int, to_inclusive: int) -> tuple[bytes, bytes]:
    """The further pieces of the records from < position <= to."""
    return piece_key(from_exclusive + 1, 0), piece_key(to_inclusive + 1, 0)


def watermark_range() -> tuple[bytes, bytes]:
    return b"\x03", b"\x04"


def stream_range(view: int, after: int = 0, through: int = POSITION_MAX) -> tuple[bytes, bytes]:
    """What was added to a view at the positions after < position <= through."""
    return stream_key(view, after + 1), stream_key(view, through + 1)


def relation_range(relation: int) -> tuple[bytes, bytes]:
    """Every key of one relation."""
    prefix = row_prefix(relation)
    end = next_prefix(prefix)
    assert end is not None, "a row prefix never consists of 0xff alone"
    return prefix, end


def next_prefix(prefix: bytes) -> bytes | None:
    """The smallest bytes greater than every key with that prefix; None when there are none."""
    head = prefix.rstrip(b"\xff")
    if not head:
        return None
    return head[:-1] + bytes((head[-1] + 1,))


def parse_key(key: bytes) -> ParsedKey:
    """What a key is. Corruption when it belongs to no family."""
    try:
        match key[0]:
            case 0x01:
                return MetaKey(key[1:].decode())
            case 0x02:
                return LogKey(_family_and_u64.unpack(key)[1])
            case 0x03:
                return WatermarkKey(_family_and_u32.unpack(key)[1])
            case 0x04:
                return StreamKey(*_stream.unpack(key)[1:])
            case 0x05:
                return ClaimKey(_family_and_u32.unpack(key)[1])
            case 0x06:
                return PieceKey(*_piece.unpack(key)[1:])
            case 0x10:
                return RowKey(_family_and_u32.unpack_from(key)[1], key[ROW_PREFIX_BYTES:])
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise Corruption("key does not follow its family", key=key.hex()) from error
    raise Corruption("key of an unknown family", key=key.hex())


def _after_log_key(position: int) -> bytes:
    if not 0 <= position <= POSITION_MAX:
        raise InvalidInput("position out of range", sqlstate="22003", found=position)
    return _family_and_u64.pack(LOG, position + 1)


def _require_u32(number: int) -> int:
    if not 0 <= number <= RELATION_MAX:
        raise InvalidInput("relation or group id out of range", sqlstate="22003", found=number)
    return number
