"""HBase as the store of a node: which of its tables has which keys, where they are split, and
timings.

A node acts on what it read for at most the work limit, and a request takes at most the timeout of
the URL; together they are less than the grace, after which no request of it can arrive any more.
Gateways must give up on a request within the grace too (`hbase.client.operation.timeout`).
"""

from __future__ import annotations

from belvedere.codec import keyspace
from belvedere.errors import InvalidInput
from belvedere.kv.hbase.store import HBaseCells
from belvedere.kv.hbase.tables import TableLayout, list_regions
from belvedere.kv.hbase.url import parse_url
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.node import NodeSettings

LOG_REGIONS = 4
"""Regions of the log: its lanes are spread over them, and so over region servers."""

SNAPSHOT_SECONDS_MAX = 0.02
"""A statement that does not ask for the latest may read at a snapshot of this age: finding a new
one is two round trips, as much as two rows by their keys."""


def build_table_layout(settings: NodeSettings) -> TableLayout:
    """Locks, log and the rest of the protocol in regions of their own, the log in several."""
    lanes = range(0, settings.lanes, max(1, settings.lanes // LOG_REGIONS))
    return TableLayout(
        rows_byte=keyspace.ROWS,
        system_splits=(
            layout.LOCKS,
            *(layout.LOG + lane.to_bytes(2) for lane in lanes),
            layout.CHUNKS,
        ),
    )


def open_hbase(
    url: str, *, create: bool = True, settings: NodeSettings | None = None
) -> CellStoreSetup:
    """The store at a URL, for a node. It is closed with the node."""
    wanted = parse_url(url)
    settings = settings or NodeSettings(snapshot_seconds_max=SNAPSHOT_SECONDS_MAX)
    limit = settings.grace_seconds - settings.work_seconds_max
    if wanted.timeout_seconds >= limit:
        raise InvalidInput(
            "a request may not take that long",
            sqlstate="22023",
            detail="the rest of the grace period is for what a process has read",
            timeout_ms=wanted.timeout_ms,
            below_ms=round(limit * 1000),
        )
    store = HBaseCells(wanted, build_table_layout(settings), create=create)
    return CellStoreSetup(
        store, settings, close=store.close, list_regions=lambda: list_regions(store.exchange)
    )
