"""Catalog changes inside a transaction: an edit's objects become rows of the catalog relation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from belvedere import failpoints
from belvedere.catalog import model
from belvedere.catalog.edit import CatalogEdit
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.keyspace import row_prefix
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import BIGINT

T = TypeVar("T")
CATALOG_KEY = KeyCodec((KeyColumn(BIGINT),), row_prefix(model.CATALOG_RELATION))


def encode_catalog_key(id_: int) -> bytes:
    """The key of the row of an object of the catalog."""
    return CATALOG_KEY.encode((id_,))


class AppliedEdit(NamedTuple, Generic[T]):
    """What a change of the catalog returned, its edit, and the objects it changed by id."""

    result: T
    edit: CatalogEdit
    changed: dict[int, model.AnyObject | None]


def edit_catalog(change: Callable[[CatalogEdit], T], transaction: Transaction) -> AppliedEdit[T]:
    """Make a change of the catalog that the transaction sees a part of the transaction."""
    edit = CatalogEdit(transaction.catalog)
    result = change(edit)
    return AppliedEdit(result, edit, apply_edit(transaction, edit))


def apply_edit(transaction: Transaction, edit: CatalogEdit) -> dict[int, model.AnyObject | None]:
    """Write what the edit changed, which is returned by id (None: removed). It takes effect, for
    all sessions at once, with the commit."""
    changed = edit.changed_objects()
    if not changed:
        return changed
    head = changed[model.HEAD_ID]
    assert isinstance(head, model.Head)
    reserved = edit.before.reserved_ids  # no other edit gives these before the commit
    reserved.next_id = max(reserved.next_id, head.next_id)
    rows = model.encode_all(changed.values())
    keys = [CATALOG_KEY.encode((id_,)) for id_ in changed]
    for key, old, new in zip(keys, transaction.multi_get(keys), rows):
        transaction.write(key, old, new)
    if failpoints.armed:
        failpoints.hit("catalog.before")
    return changed
