"""The anchor: a small file, apart from the log, that records the last durable position.

A store engine that loses the end of its log opens cleanly and reports nothing. The anchor detects
the loss: it is written after every sync, before the acknowledgement, so a recovered log that ends
before the anchor, or whose record there has another hash, has lost acknowledged commits.

Two slots of SLOT_BYTES, written in turn, so that a torn write leaves the other one:

    u64 sequence    higher wins
    16B store id
    u64 incarnation
    u64 position    last durable position
    u64 hash        of the record at that position (0 at position 0)
    u8  state       see State
    u64 checksum    xxh3_64 of all before
"""

from __future__ import annotations

import enum
import os
import struct
from pathlib import Path
from typing import NamedTuple

import xxhash

from belvedere import failpoints, forks
from belvedere.errors import Corruption, Unavailable

SLOT_BYTES = 512
RESTORE_HINT = "restore a backup: what is left is no state that ever was"
ACCEPT_HINT = "restore a backup, or open with --accept-data-loss to go on with what is left"
_BODY = struct.Struct("<Q16sQQQB")
_SUM = struct.Struct("<Q")


class AnchorState(enum.IntEnum):
    """What the process that wrote the anchor was doing."""

    OPEN = 0  # open, durability full: the log reaches at least this position
    CLOSED = 1  # closed cleanly: the log ends at this position
    OPEN_UNSYNCED = 2  # open, durability off: acknowledged commits may be lost after this position


class AnchorMark(NamedTuple):
    """The contents of a slot."""

    sequence: int
    store_id: bytes
    incarnation: int
    position: int
    hash: int
    state: AnchorState


class Anchor:
    """The open anchor file. One writer at a time (the group-commit leader, or open and close)."""

    def __init__(self, path: Path, mark: AnchorMark, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self.mark = mark
        forks.track_handle(self)

    def abandon_after_fork(self) -> None:
        self.close()

    @staticmethod
    def create(path: Path, store_id: bytes) -> Anchor:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.pwrite(descriptor, bytes(2 * SLOT_BYTES), 0)
        anchor = Anchor(path, AnchorMark(0, store_id, 0, 0, 0, AnchorState.CLOSED), descriptor)
        anchor.write(incarnation=1, position=0, hash_=0, state=AnchorState.CLOSED)
        return anchor

    @staticmethod
    def open(path: Path) -> Anchor:
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            raise Corruption(
                "the anchor file is missing", path=str(path), hint=ACCEPT_HINT
            ) from None
        marks = [m for m in map(_parse_slot, _read_slots(descriptor)) if m is not None]
        if not marks:
            os.close(descriptor)
            raise Corruption("the anchor file is damaged", path=str(path), hint=ACCEPT_HINT)
        return Anchor(path, max(marks), descriptor)

    def write(self, *, incarnation: int, position: int, hash_: int, state: AnchorState) -> None:
        """Remember a position as durable; returns when the anchor itself is."""
        if failpoints.armed:
            failpoints.hit("anchor.before_write")
        mark = AnchorMark(
            self.mark.sequence + 1, self.mark.store_id, incarnation, position, hash_, state
        )
        body = _BODY.pack(*mark)
        slot = body + _SUM.pack(xxhash.xxh3_64_intdigest(body))
        try:
            os.pwrite(self._descriptor, slot, (mark.sequence % 2) * SLOT_BYTES)
            if failpoints.armed:
                failpoints.hit("anchor.after_write")
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise Unavailable(
                "the anchor could not be written", sqlstate="58030", detail=str(error)
            ) from error
        if failpoints.armed:
            failpoints.hit("anchor.after_sync")
        self.mark = mark

    def adopt_store(self, store_id: bytes) -> None:
        """From the next write on, belong to another store: after a loss was accepted."""
        self.mark = self.mark._replace(store_id=store_id)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _read_slots(descriptor: int) -> list[bytes]:
    return [os.pread(descriptor, SLOT_BYTES, n * SLOT_BYTES) for n in (0, 1)]


def _parse_slot(slot: bytes) -> AnchorMark | None:
    size = _BODY.size
    if len(slot) < size + _SUM.size:
        return None
    if _SUM.unpack_from(slot, size)[0] != xxhash.xxh3_64_intdigest(slot[:size]):
        return None
    sequence, store_id, incarnation, position, hash_, state = _BODY.unpack_from(slot)
    if state not in set(AnchorState):
        return None
    return AnchorMark(sequence, store_id, incarnation, position, hash_, AnchorState(state))
