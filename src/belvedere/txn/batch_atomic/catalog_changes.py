"""The catalog in a commit: what its changes make of it, and whether it is still the one that the
transaction was planned on, as far as it matters to that transaction."""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.merge import accepts_rows_of, merge_created_objects
from belvedere.codec import keyspace
from belvedere.errors import Corruption
from belvedere.txn.contracts import Intent, RowChange

CATALOG_PREFIX = keyspace.row_prefix(model.CATALOG_RELATION)


def apply_catalog_changes(catalog: Catalog, changes: Sequence[RowChange]) -> Catalog:
    """The catalog after the catalog rows among these changes."""
    return catalog.with_objects(decode_catalog_changes(changes))


def decode_catalog_changes(changes: Sequence[RowChange]) -> dict[int, model.AnyObject | None]:
    """The objects of the catalog rows among these changes, by id (None: removed)."""
    changed: dict[int, model.AnyObject | None] = {}
    for change in changes:
        if change.key.startswith(CATALOG_PREFIX):
            item = _require_stored(change)
            changed[item.id] = item if change.new is not None else None
    return changed


def _require_stored(change: RowChange) -> model.AnyObject:
    """The object of a catalog change, after it or before."""
    stored = change.new if change.new is not None else change.old
    if stored is None:
        raise Corruption("a catalog change without a row")
    return model.decode(stored)


def merge_catalog_changes(intent: Intent, newest: Catalog, batch: int) -> Intent:
    """The intent with what it creates as a change of the newest catalog, which batch `batch` left;
    as it is where it creates nothing, or where the two do not go together."""
    changed = decode_catalog_changes(intent.changes)
    merged = merge_created_objects(intent.snapshot.catalog, newest, changed)
    if merged is None:
        return intent
    head = model.encode(newest.head)
    rows = dict(zip(merged, model.encode_all(merged.values()), strict=True))
    changes: list[RowChange] = []
    for change in intent.changes:
        if change.key.startswith(CATALOG_PREFIX):
            id_ = _require_stored(change).id
            old = head if id_ == model.HEAD_ID else None
            changes.append(RowChange(change.key, old, rows[id_], batch))
        else:
            changes.append(change)
    return intent._replace(changes=tuple(changes))


def redefines_written_table(intent: Intent, newest: Catalog) -> bool:
    """Whether a table that was written is not what it was. One that the transaction itself has made
    is in neither catalog."""
    planned = intent.snapshot.catalog
    for relation in {change.relation for change in intent.changes}:
        item, before = newest.get(relation), planned.get(relation)
        if relation < model.FIRST_USER_ID or (item is None and before is None):
            continue
        if item is None or is_dropped(item):
            return True
        if item.version > planned.version and not accepts_rows_of(before, item):
            return True
    return False
