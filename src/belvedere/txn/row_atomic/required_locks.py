"""The locks that a transaction requires, all as lock rows of one form.

- roots: of every row it changes, as they were locked by its statements; and, looked up again once
  the locks are held, as they are then, since an ancestor may have moved in between;
- claims: of primary keys that no root implies, so that two rows of one key under different roots
  do not both come into being; and of rows that have no root at all;
- the catalog, and the lock of view maintenance, for changes of the catalog;
- what participants ask for: claims of unique values, guards of parents, join keys, states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.txn.contracts import Intent, LockRequest, Participant, Reader, RowChange
from belvedere.txn.history.readers import OverlayReader
from belvedere.txn.transaction.root_keys import root_finder

CATALOG = LockRequest("catalog", b"")
MAINTENANCE = LockRequest("state", b"")
"""Held by every batch that maintains deferred views: one at a time, and none during DDL."""


def required_locks(
    intent: Intent, catalog: Catalog, participants: Sequence[Participant], reader: Reader
) -> frozenset[LockRequest]:
    """Every lock the transaction needs, as `reader` shows the store."""
    found = set(intent.locks)
    for change in intent.changes:
        found.update(_root_locks(change, catalog, intent, reader))
    roots = {request.key for request in found if request.kind == "root"}
    for change in intent.changes:
        found.update(_claim_locks(change, roots))
    for participant in participants:
        for request in participant.locks(intent.changes, reader):
            if request.kind != "parent" or request.key not in roots:
                found.add(request)
    return frozenset(found) or frozenset([LockRequest("claim", c.key) for c in intent.changes])


def _claim_locks(change: RowChange, roots: set[bytes]) -> Iterator[LockRequest]:
    if change.relation == model.CATALOG_RELATION:
        yield CATALOG
        yield MAINTENANCE
    elif change.relation < model.FIRST_USER_ID:
        yield LockRequest("claim", change.key)  # nothing else is locked for it
    elif change.key not in roots and (change.old is None or change.new is None):
        yield LockRequest("claim", change.key)


def _root_locks(
    change: RowChange, catalog: Catalog, intent: Intent, reader: Reader
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
        overlay = {each.key: each.new for each in intent.changes}
        after = OverlayReader(reader, overlay, reader.position, catalog)
        yield LockRequest("root", root(change.key, decode(change.new), after))
