"""The locks that a transaction requires, all as lock rows of one form.

- roots: of every row it changes, as they were locked by its statements; and, looked up again once
  the locks are held, as they are then, since an ancestor may have moved in between;
- claims: of primary keys that no root implies, so that two rows of one key under different roots
  do not both come into being; and of rows that have no root at all;
- the catalog, and the lock of view maintenance, for changes of the catalog;
- what participants ask for: claims of unique values, guards of parents, join keys, states.

With them, what the transaction's intent asks of its commit (`build_request`), and what participants
add to it (`derive_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.foreign_key_graph import key_implies_root
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec import keyspace
from belvedere.codec.record import encode_record
from belvedere.txn.contracts import Intent, LockRequest, Participant, Reader, RowChange
from belvedere.txn.history.readers import OverlayReader
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import Record
from belvedere.txn.row_atomic.cells.placement import row_of
from belvedere.txn.row_atomic.commit import CommitRequest
from belvedere.txn.row_atomic.locks import RowLock
from belvedere.txn.row_atomic.reader import RowReader, RowWriter, row_write
from belvedere.txn.transaction.foreign_keys import CHILDREN
from belvedere.txn.transaction.root_keys import root_finder

PREFIX = keyspace.ROW_PREFIX_BYTES
CATALOG = LockRequest("catalog", b"")
MAINTENANCE = LockRequest("state", b"")
"""Held by every batch that maintains deferred views: one at a time, and none during DDL."""


def required_locks(
    intent: Intent, catalog: Catalog, participants: Sequence[Participant], reader: Reader
) -> frozenset[LockRequest]:
    """Every lock the transaction needs, as `reader` shows the store."""
    found = set(intent.locks)
    after = OverlayReader(reader, {c.key: c.new for c in intent.changes}, reader.position, catalog)
    for change in intent.changes:
        found.update(_root_locks(change, catalog, reader, after))
    roots = {request.key for request in found if request.kind == "root"}
    for change in intent.changes:
        found.update(_claim_locks(change, catalog, roots))
    for participant in participants:
        for request in participant.locks(intent.changes, reader):
            # Removing a parent takes its root lock as well: with that, a child needs no
            # guard. But the children of others have nothing else against which one removes it.
            if request.kind != "parent" or request.side != CHILDREN or request.key not in roots:
                found.add(request)
    return frozenset(found) or frozenset([LockRequest("claim", c.key) for c in intent.changes])


def _claim_locks(change: RowChange, catalog: Catalog, roots: set[bytes]) -> Iterator[LockRequest]:
    if change.relation == model.CATALOG_RELATION:
        yield CATALOG
        yield MAINTENANCE
    elif change.relation < model.FIRST_USER_ID:
        yield LockRequest("claim", change.key)  # nothing else is locked for it
    elif change.key not in roots and (change.old is None or change.new is None):
        if not _key_implies_root(catalog, change.relation):
            yield LockRequest("claim", change.key)


def _key_implies_root(catalog: Catalog, relation: int) -> bool:
    """Kept per catalog. A row whose parents are not all there has the lock of the last one that
    is, but is not committed: the foreign key is checked once the locks are held."""
    known = catalog.derived_cache.get(("key implies root", relation))
    if known is None:
        table = catalog.get(relation)
        known = isinstance(table, Table) and key_implies_root(catalog, table)
        catalog.derived_cache["key implies root", relation] = known
    return bool(known)


def _root_locks(
    change: RowChange, catalog: Catalog, reader: Reader, after: Reader
) -> Iterator[LockRequest]:
    """The root of a row that has ancestors, before and after the transaction."""
    if not isinstance(catalog.get(change.relation), Table):
        return
    root = root_finder(catalog, change.relation)
    if root is None:
        yield LockRequest("root", change.key)
        return
    decode = compiled_table(catalog, change.relation).decode
    if change.old is not None:
        yield LockRequest("root", root(change.key, decode(change.old), reader))
    if change.new is not None:
        yield LockRequest("root", root(change.key, decode(change.new), after))


def build_request(
    intent: Intent, catalog: Catalog, wanted: Iterable[LockRequest], time: int
) -> CommitRequest:
    """Locks, writes of cells and the record of a transaction."""
    logged = [(c.relation, c.key[PREFIX:], c.old, c.new) for c in intent.changes]
    body = encode_record(0, 0, catalog.version, time, intent.transaction, logged)
    return CommitRequest(
        intent.transaction,
        intent.snapshot.batch,
        intent.snapshot.catalog.version,
        lock_rows(wanted),
        tuple(row_write(catalog, c.key, c.old, c.new) for c in intent.changes),
        body=body,
        time=time,
        seen={row_of(catalog, change.key): change.seen for change in intent.changes},
    )


def derive_rows(
    intent: Intent, participants: Sequence[Participant], newest: RowReader, record: Record
) -> Record:
    """The record with what participants write, which have checked it: at the newest rows, once the
    locks are held."""
    writer = RowWriter(newest)
    for participant in participants:
        participant.writes(intent.changes, newest, writer)
    checking = [participant for participant in participants if participant.checks]
    if checking:
        overlay = {change.key: change.new for change in intent.changes}
        overlay.update(writer.visible_rows())
        after = OverlayReader(newest, overlay, newest.position + 1, newest.catalog)
        for participant in checking:
            participant.check(intent.changes, after)
    return msgspec.structs.replace(record, writes=record.writes + writer.writes())


def lock_rows(wanted: Iterable[LockRequest]) -> tuple[RowLock, ...]:
    return tuple(RowLock(layout.lock_row(each.kind, each.key), each.side) for each in wanted)
