"""The catalog barrier: no transaction of an older catalog commits after the snapshot of a DDL.

A writer takes its locks first and reads the catalog version afterwards. So once the new version is
written, every writer of an older one either holds a lock that a scan of the lock rows shows, or
will see the new version and give up. The barrier waits for those locks, or breaks them, and only
then is a snapshot complete with respect to the old catalog.

`CatalogCache` has the catalogs that a node has read, so that a snapshot rarely has to look for its
own. A reader of one whose version is not written yet writes it.
"""

from __future__ import annotations

import threading

from belvedere.catalog import catalog as catalogs
from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.codec import keyspace
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
from belvedere.txn.row_atomic import locks
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import Holder, Positions
from belvedere.txn.row_atomic.housekeeping.sweep import held_locks
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import Node
from belvedere.txn.row_atomic.reader import RepeatableRunner, RowReader
from belvedere.txn.transaction.schema_change import CATALOG_KEY

CATALOGS_CACHED_MAX = 8
VERSION_MAX = 2**63
LOAD = "load"
"""The kind of the lock that an attempt takes before it holds tables."""


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


def wait_for_writers(node: Node) -> Step[None]:
    """Wait for, or break, every lock that is held now, but for those of attempts that hold tables,
    or are about to: these look for each other's holds themselves."""
    found = yield from _older_locks(VERSION_MAX)
    loads = {holder.attempt for row, holder in found if layout.split_lock_row(row)[0] == LOAD}
    for row, holder in found:
        if holder.attempt not in loads:
            yield from _wait_for_holder(node, row, holder)


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


class CatalogCache:
    """Catalogs by version, and by the position of the change that made them. Safe to use from any
    thread."""

    def __init__(self, look: RepeatableRunner) -> None:
        self._look = look
        self._by_version: dict[int, Catalog] = {}
        self._by_change: dict[int, Catalog] = {}
        self._mutex = threading.Lock()

    def catalog_of(self, at: Positions) -> Catalog:
        """The catalog of a snapshot at these positions: that of the last change of it."""
        found = self._by_change.get(at.catalog)
        if found is None:
            found = self._remember(self._by_change, at.catalog, self.catalog_at(at.applied))
        return found

    def knows_catalog(self, at: Positions) -> bool:
        return at.catalog in self._by_change

    def catalog_at(self, at: int) -> Catalog:
        """The catalog as of a position; one object for each version."""
        reader = RowReader(self._look, at, at, catalogs.empty_catalog())
        head = reader.get(CATALOG_KEY.encode((model.HEAD_ID,)))
        version = 0 if head is None else model.decode(head).version
        known = self._by_version.get(version)
        if known is not None:
            return known
        found = dict(catalogs.empty_catalog().objects)
        for batch in reader.scan(*keyspace.relation_range(model.CATALOG_RELATION)):
            for _, value in batch:
                item = model.decode(value)
                found[item.id] = item
        loaded = Catalog(found)
        if head is not None:
            self._look(lambda: raise_version(loaded.version))
        return self._remember(self._by_version, version, loaded)

    def _remember(self, kept: dict[int, Catalog], number: int, loaded: Catalog) -> Catalog:
        with self._mutex:
            found = kept.setdefault(number, loaded)
            for old in sorted(kept)[:-CATALOGS_CACHED_MAX]:
                if old != number:
                    del kept[old]
        return found
