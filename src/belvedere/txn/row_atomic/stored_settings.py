"""Settings that all nodes of a store have to agree on: kept in it, by the first that opens it.

A node that counted with a shorter lease than the others would take them for dead; one with a
shorter grace would remove tombstones that their late requests still need.
"""

from __future__ import annotations

from dataclasses import replace

from belvedere.errors import InvalidInput
from belvedere.kv.cell import BeginWork, CheckAndMutate, Get, MultiGet, Put, Step, value_of
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import StoredSettings
from belvedere.txn.row_atomic.node import NodeSettings

WORK_SHARE = 0.4
"""The part of the grace in which a node may act on what it read; the rest is for its requests."""


def agree_on_settings(
    defaults: NodeSettings, lease_ms: int | None, grace_ms: int | None
) -> Step[NodeSettings]:
    """The settings of the store: those that are kept in it, or, where it is new, the wanted ones,
    which are then kept. InvalidInput when others are wanted than those that it has."""
    usual = StoredSettings(
        defaults.lanes,
        round(defaults.lease_seconds * 1000),
        round(defaults.grace_seconds * 1000),
    )
    wanted = StoredSettings(usual.lanes, lease_ms or usual.lease_ms, grace_ms or usual.grace_ms)
    while True:
        rows = yield MultiGet((Get(layout.SETTINGS_ROW), Get(layout.IDENTITY_ROW)))
        stored = value_of(rows[0], layout.SETTINGS)
        if stored is not None:
            found = layout.decode(StoredSettings, stored, layout.SETTINGS_ROW)
            _require_same(found, lease_ms, grace_ms)
            return _apply_settings(defaults, found)
        if value_of(rows[1], layout.IDENTITY) is not None:
            # Made before settings were kept: everybody on it counts with the usual ones.
            _require_same(usual, lease_ms, grace_ms)
            wanted = usual
        _require_lease_above_grace(wanted)
        yield BeginWork()
        put = Put(layout.SETTINGS, layout.ONLY, layout.encode(wanted))
        yield CheckAndMutate(layout.SETTINGS_ROW, layout.SETTINGS, None, (put,))


def _apply_settings(defaults: NodeSettings, found: StoredSettings) -> NodeSettings:
    grace = found.grace_ms / 1000
    return replace(
        defaults,
        lanes=found.lanes,
        lease_seconds=found.lease_ms / 1000,
        grace_seconds=grace,
        work_seconds_max=grace * WORK_SHARE,
    )


def _require_same(found: StoredSettings, lease_ms: int | None, grace_ms: int | None) -> None:
    if lease_ms in (None, found.lease_ms) and grace_ms in (None, found.grace_ms):
        return
    raise InvalidInput(
        "the database has another lease or grace",
        sqlstate="22023",
        hint="they are chosen when it is made: leave them out of the URL",
        lease_ms=found.lease_ms,
        grace_ms=found.grace_ms,
    )


def _require_lease_above_grace(wanted: StoredSettings) -> None:
    if wanted.lease_ms <= wanted.grace_ms:
        raise InvalidInput(
            "the lease has to be longer than the grace",
            sqlstate="22023",
            lease_ms=wanted.lease_ms,
            grace_ms=wanted.grace_ms,
        )
