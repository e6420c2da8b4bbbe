"""HBase as the store of a node: which of its tables has which keys, where they are split, and
timings.

A node acts on what it read for at most the work limit, and a request takes at most the timeout of
the URL; together they are less than the grace, after which no request of it can arrive any more.
Gateways must give up on a request within the grace too (`hbase.client.operation.timeout`).
"""

from __future__ import annotations

import time

from belvedere.codec import keyspace
from belvedere.errors import InvalidInput, Unavailable
from belvedere.kv.cell import Driver, ReplyLost, WorkExpired
from belvedere.kv.hbase.store import HBaseCells
from belvedere.kv.hbase.tables import TableLayout, list_regions
from belvedere.kv.hbase.url import GRACE_MS_MAX, HBaseUrl, parse_url
from belvedere.txn.row_atomic.cells import layout, placement
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.node import WORK_SHARE, NodeSettings, agree_on_settings

SPREAD_REGIONS = 4
"""Regions that hashed tables, locks, log and outcomes have each from the beginning, unless the URL
says how many."""

LANES_MIN = 16

SNAPSHOT_SECONDS_MAX = 0.02
"""A statement that does not ask for the latest may read at a snapshot of this age: finding a new
one is two round trips, as much as two rows by their keys."""


def build_table_layout(settings: NodeSettings, regions: int = SPREAD_REGIONS) -> TableLayout:
    """The slots of hashed tables, locks and outcomes, and the lanes of the log, in so many regions
    each. Counter, floors, positions and catalog version, of which every commit reads or changes
    each, have a region of their own."""
    spread = bytes((placement.SPREAD,))
    slots = [region * placement.SLOTS // regions for region in range(1, regions)]
    cuts = min(regions, settings.lanes)
    lanes = [cut * settings.lanes // cuts for cut in range(cuts)]
    shared = (layout.COUNTER_ROW, layout.FLOOR_ROW, layout.POSITION_ROW, layout.SETTINGS_ROW)
    return TableLayout(
        rows_bytes=(keyspace.ROWS, placement.SPREAD),
        rows_splits=(spread, *(spread + bytes((slot,)) for slot in slots)),
        system_splits=(
            *shared,
            layout.LOCKS,
            *(layout.LOCKS + bytes((slot,)) for slot in slots),
            *(layout.LOG + lane.to_bytes(2) for lane in lanes),
            layout.OUTCOMES,
            *(layout.OUTCOMES + bytes((slot,)) for slot in slots),
        ),
    )


def open_hbase(
    url: str,
    *,
    create: bool = True,
    is_guest: bool = False,
    settings: NodeSettings | None = None,
) -> CellStoreSetup:
    """The store at a URL, for a node. It is closed with the node. `settings`: instead of those that
    the database keeps, for tests."""
    wanted = parse_url(url)
    regions = wanted.regions or SPREAD_REGIONS
    defaults = NodeSettings(
        lanes=max(LANES_MIN, regions), snapshot_seconds_max=SNAPSHOT_SECONDS_MAX
    )
    # Before anybody is asked: what no database can have agreed on.
    _require_timeout_below(wanted, (wanted.grace_ms or GRACE_MS_MAX) / 1000 * (1 - WORK_SHARE))
    made = build_table_layout(settings or defaults, regions)
    store = HBaseCells(wanted, made, create=create)
    try:
        settings = settings or _load_settings(store, wanted, defaults)
        _require_timeout_below(wanted, settings.grace_seconds - settings.work_seconds_max)
    except BaseException:
        store.close()
        raise
    return CellStoreSetup(
        store,
        settings,
        is_guest=is_guest,
        close=store.close,
        list_regions=lambda: list_regions(store.exchange),
    )


def _load_settings(store: HBaseCells, wanted: HBaseUrl, defaults: NodeSettings) -> NodeSettings:
    for _ in range(defaults.tries_max):
        driver = Driver(store, time.monotonic, time.sleep, defaults.work_seconds_max)
        try:
            return driver.run_step(agree_on_settings(defaults, wanted.lease_ms, wanted.grace_ms))
        except (ReplyLost, WorkExpired):
            continue
    raise Unavailable("the store does not answer", sqlstate="08006")


def _require_timeout_below(wanted: HBaseUrl, limit: float) -> None:
    if wanted.timeout_seconds >= limit:
        raise InvalidInput(
            "a request may not take that long",
            sqlstate="22023",
            detail="the rest of the grace period is for what a process has read",
            timeout_ms=wanted.timeout_ms,
            below_ms=round(limit * 1000),
        )
