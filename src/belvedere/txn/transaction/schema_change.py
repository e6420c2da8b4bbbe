"""Catalog changes inside a transaction: an edit's objects become rows of the catalog relation."""

from __future__ import annotations

from belvedere import failpoints
from belvedere.catalog import model
from belvedere.catalog.edit import CatalogEdit
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.keyspace import row_prefix
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import BIGINT

CATALOG_KEY = KeyCodec((KeyColumn(BIGINT),), row_prefix(model.CATALOG_RELATION))


def apply_edit(transaction: Transaction, edit: CatalogEdit) -> None:
    """Write what the edit changed; it takes effect, for all sessions at once, with the commit."""
    for id_, item in edit.changed_objects().items():
        key = CATALOG_KEY.encode((id_,))
        transaction.write(key, transaction.get(key), None if item is None else model.encode(item))
    if failpoints.armed:
        failpoints.hit("catalog.before")
