"""The catalog barrier: no transaction of an older catalog commits after the snapshot of a DDL.

A writer takes its locks first and reads the catalog version afterwards. So once the new version is
written, every writer of an older one either holds a lock that a scan of the lock rows shows, or
will see the new version and give up. The barrier waits for those locks, or breaks them, and only
then is a snapshot complete with respect to the old catalog.
"""

from __future__ import annotations

from belvedere.errors import Retry
from belvedere.kv.cell import (
    BeginWork,
    CheckAndMutate,
    Get,
    Now,
    Pause,
    Put,
    ReplyLost,
    Step,
    WorkExpired,
)
from belvedere.txn.row_atomic import advance, locks
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import Holder
from belvedere.txn.row_atomic.housekeeping.sweep import held_locks
from belvedere.txn.row_atomic.node import Node


def read_version() -> Step[int]:
    return layout.read_number((yield Get(layout.CATALOG_ROW)), layout.VERSION, layout.CATALOG_ROW)


def raise_version(version: int) -> Step[None]:
    """Make the catalog version at least this: its catalog rows are committed already, so
    any node that reads them may write the version."""
    while True:
        yield BeginWork()
        try:
            seen = yield from read_version()
            if seen >= version:
                return
            put = Put(layout.VERSION, layout.ONLY, version.to_bytes(8))
            expected = seen.to_bytes(8) if seen else None
            yield CheckAndMutate(layout.CATALOG_ROW, layout.VERSION, expected, (put,))
        except (ReplyLost, WorkExpired):
            continue


def wait_for_older_locks(node: Node, version: int) -> Step[int]:
    """Wait for, or break, every lock taken under a version older than this; then a snapshot that
    holds everything committed under it."""
    for row, holder in (yield from _older_locks(version)):
        yield from _wait_for_holder(node, row, holder)
    return (yield from advance.latest_position(node))


def _older_locks(version: int) -> Step[list[tuple[bytes, Holder]]]:
    while True:
        try:
            found = yield from held_locks()
            return [(row, holder) for row, holder in found if holder.version < version]
        except ReplyLost:
            continue


def _wait_for_holder(node: Node, row: bytes, holder: Holder) -> Step[None]:
    started = yield Now()
    while True:
        seen = yield from locks.read_lock(row)
        if seen is None or all(each.attempt != holder.attempt for each in seen.holders):
            return
        if (yield from locks.is_expired(node, row, holder)):
            yield from locks.break_holder(node, row, holder, advance.finish_attempt)
            return
        now = yield Now()
        if now - started > node.settings.lock_wait_seconds_max:
            raise Retry("lock wait timed out", sqlstate="55P03", row=row.hex())
        yield Pause(node.settings.lock_poll_seconds)
