"""Nodes and locks of a row-atomic store as lists, for the system tables."""

from __future__ import annotations

from belvedere.kv.cell import CellScan, Now, Step, value_of
from belvedere.txn.cluster import NodeLock, NodeStatus
from belvedere.txn.row_atomic import locks
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import Heartbeat, Holder
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.node import Node, node_of


def list_nodes(node: Node) -> Step[list[NodeStatus]]:
    """Every node whose heartbeat is in the store and that is not known to be gone, by number."""
    found = []
    now = yield Now()
    for row, cells in (yield CellScan(layout.HEARTBEATS, layout.HEARTBEATS + b"\xff" * 9)):
        stored = value_of(cells, layout.BEAT)
        assert stored is not None
        beat = layout.decode(Heartbeat, stored, row)
        if beat == layout.GONE:
            continue
        other = int.from_bytes(row[1:])
        stale = locks.is_heartbeat_stale(node, other, beat, now)
        silent = now - node.heard[other][1]
        snapshot = beat.snapshots_from if beat.snapshots_from >= 0 else None
        limits = node.settings.lease_seconds, node.settings.grace_seconds
        here = other == node.id
        found.append(NodeStatus(other, beat.beat, here, not stale, silent, snapshot, *limits))
    return found


def list_locks() -> Step[list[NodeLock]]:
    """Every lock row with each of its holders."""
    return [_describe_lock(row, holder) for row, holder in (yield from sweep.held_locks())]


def _describe_lock(row: bytes, holder: Holder) -> NodeLock:
    kind, key = layout.split_lock_row(row)
    stamp = holder.stamp or None
    return NodeLock(kind, key, node_of(holder.attempt), holder.attempt, holder.side, stamp)
