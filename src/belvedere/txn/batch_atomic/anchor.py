"""The anchor: a small file, apart from the log, that records the last durable position.

A store engine that loses the end of its log opens cleanly and reports nothing. The anchor detects
the loss: it is written after every sync, before the acknowledgement, so a recovered log that ends
before the anchor, or whose record there has another hash, has lost acknowledged commits.

A commit waits for the write of the anchor, not for its sync, which a thread does within PAUSE_S:
so after the death of a process the anchor knows every acknowledged commit, and after a power cut
all but those of the last moment. The log itself was synced before.

Three slots of SLOT_BYTES. One is known to be durable and one may be in a sync; what is written goes
to another one, so that a torn write leaves the durable one:

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
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import xxhash

from belvedere import failpoints, forks
from belvedere.errors import Corruption, Error, Unavailable

SLOT_BYTES = 512
SLOTS = 3
PAUSE_S = 0.01
"""The least time between two syncs: commits that follow each other share one."""
RESTORE_HINT = "restore a backup: what is left is no state that ever was"
ACCEPT_HINT = "restore a backup, or open with --accept-data-loss to go on with what is left"
sync_file = os.fdatasync
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

    def __init__(self, path: Path, mark: AnchorMark, slot: int, descriptor: int) -> None:
        self.mark = mark
        self._path = path
        self._descriptor = descriptor
        self._lock = threading.Lock()  # guards the three below
        self._newest_slot = self._durable_slot = slot
        self._syncing_slot = slot
        self._syncer: _Syncer | None = None
        forks.track_handle(self)

    def abandon_after_fork(self) -> None:
        self._close_file()

    @staticmethod
    def create(path: Path, store_id: bytes) -> Anchor:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.pwrite(descriptor, bytes(SLOTS * SLOT_BYTES), 0)
        anchor = Anchor(path, AnchorMark(0, store_id, 0, 0, 0, AnchorState.CLOSED), 0, descriptor)
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
        slots = enumerate(map(_parse_slot, _read_slots(descriptor)))
        marks = [(mark, slot) for slot, mark in slots if mark is not None]
        if not marks:
            os.close(descriptor)
            raise Corruption("the anchor file is damaged", path=str(path), hint=ACCEPT_HINT)
        return Anchor(path, *max(marks), descriptor)

    def write(self, *, incarnation: int, position: int, hash_: int, state: AnchorState) -> None:
        """Remember a position as durable; returns when the anchor itself is."""
        if self._syncer is not None:
            self._syncer.end()
            self._syncer.require_no_failure()
        self._write_slot(incarnation, position, hash_, state)
        self._sync_newest_slot()

    def write_soon_durable(
        self, *, incarnation: int, position: int, hash_: int, state: AnchorState
    ) -> None:
        """The same, but the sync is left to a thread. Its failure is raised by the next write."""
        if self._syncer is None:
            self._syncer = _Syncer(self._sync_newest_slot)
        self._syncer.require_no_failure()
        self._write_slot(incarnation, position, hash_, state)
        self._syncer.written.set()

    def _write_slot(self, incarnation: int, position: int, hash_: int, state: AnchorState) -> None:
        if failpoints.armed:
            failpoints.hit("anchor.before_write")
        mark = AnchorMark(
            self.mark.sequence + 1, self.mark.store_id, incarnation, position, hash_, state
        )
        body = _BODY.pack(*mark)
        content = body + _SUM.pack(xxhash.xxh3_64_intdigest(body))
        with self._lock:
            kept = (self._durable_slot, self._syncing_slot)
            slot = next(slot for slot in range(SLOTS) if slot not in kept)
            try:
                os.pwrite(self._descriptor, content, slot * SLOT_BYTES)
            except OSError as error:
                raise _write_error(error) from error
            self._newest_slot = slot
        if failpoints.armed:
            failpoints.hit("anchor.after_write")
        self.mark = mark

    def _sync_newest_slot(self) -> None:
        with self._lock:
            self._syncing_slot = slot = self._newest_slot
        try:
            sync_file(self._descriptor)
        except OSError as error:
            raise _write_error(error) from error
        with self._lock:
            self._durable_slot = slot
        if failpoints.armed:
            failpoints.hit("anchor.after_sync")

    def adopt_store(self, store_id: bytes) -> None:
        """From the next write on, belong to another store: after a loss was accepted."""
        self.mark = self.mark._replace(store_id=store_id)

    def close(self) -> None:
        if self._syncer is not None:
            self._syncer.end()
        self._close_file()

    def _close_file(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _Syncer:
    """The thread that syncs an anchor after writes."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self.written = threading.Event()
        self._failure: Error | None = None
        self._sync = sync
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="belvedere anchor", daemon=True)
        self._thread.start()

    def require_no_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        self._ended.set()
        self.written.set()
        self._thread.join()

    def _run(self) -> None:
        while self._failure is None:
            self.written.wait()
            self.written.clear()
            try:
                self._sync()
            except Error as error:
                self._failure = error
            if self._ended.wait(PAUSE_S) and not self.written.is_set():
                return


def _write_error(error: OSError) -> Unavailable:
    return Unavailable("the anchor could not be written", sqlstate="58030", detail=str(error))


def _read_slots(descriptor: int) -> list[bytes]:
    return [os.pread(descriptor, SLOT_BYTES, n * SLOT_BYTES) for n in range(SLOTS)]


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
