"""The sweep: finishes what dead processes began, before other nodes have to wait for it.

Any node runs it from time to time: every lock whose holder is over or silent is broken, and every
position that was taken is decided and applied; a node that was silent for the lease is noted as
gone. It is not needed for correctness, only for latency.
"""

from __future__ import annotations

from belvedere.kv.cell import BeginWork, CellScan, CheckAndMutate, Now, Put, Step, value_of
from belvedere.txn.row_atomic import load_holds, locks
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import Heartbeat, Holder, LockValue
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import Node


def held_locks() -> Step[list[tuple[bytes, Holder]]]:
    """Every (lock row, holder) there is, in the order in which locks are taken; also the rows of
    the system table of locks."""
    found = []
    rows = yield CellScan(layout.LOCKS, layout.LOG, (layout.HOLDERS,))
    for row, cells in sorted(rows, key=lambda each: layout.lock_order(each[0])):
        stored = value_of(cells, layout.HOLDERS)
        assert stored is not None
        value = layout.decode(LockValue, stored, row)
        found += [(row, holder) for holder in value.holders]
    return found


def sweep_locks(node: Node) -> Step[int]:
    """Break what is expired, decide and apply what is open; returns how many locks were broken."""
    broken = 0
    for row, holder in (yield from held_locks()):
        if (yield from locks.is_expired(node, row, holder)):
            yield from locks.break_holder(node, row, holder, advance.finish_attempt)
            broken += 1
    yield from load_holds.end_silent_holds(node)
    yield from advance.apply_open(node)
    yield from _retire_silent_nodes(node)
    return broken


def _retire_silent_nodes(node: Node) -> Step[None]:
    """Replace heartbeats that did not change for the lease, each only if it is still the same."""
    now = yield Now()
    for row, cells in (yield CellScan(layout.HEARTBEATS, layout.HEARTBEATS + b"\xff" * 9)):
        stored = value_of(cells, layout.BEAT)
        assert stored is not None
        beat, other = layout.decode(Heartbeat, stored, row), int.from_bytes(row[1:])
        if beat == layout.GONE or other == node.id:
            continue
        if locks.is_heartbeat_stale(node, other, beat, now):
            gone = Put(layout.BEAT, layout.ONLY, layout.encode(layout.GONE))
            yield BeginWork()
            yield CheckAndMutate(row, layout.BEAT, stored, (gone,))
