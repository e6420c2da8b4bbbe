"""Insert, update and delete of table rows in a transaction: encoding, NOT NULL, key, root lock.

Participants check everything else a row must satisfy (unique values, foreign keys) at commit; the
executor has evaluated what needs expressions (CHECK, defaults) before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.errors import InvalidInput
from belvedere.txn.transaction.root_keys import root_finder
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

SHOWN_MAX = 64
"""How much of a value an error shows."""


def insert_row(transaction: Transaction, table: CompiledTable, row: Row) -> None:
    """Add a complete row (by slot). 23505: its key is taken; 23502: a column must not be NULL."""
    key = table.key_of(row)
    value = encode_checked_row(table, row)
    _lock_root(transaction, table, key, row)
    if transaction.get(key) is not None:
        raise used_key_error(transaction, table, key, row)
    transaction.write(key, None, value)


def update_row(
    transaction: Transaction,
    table: CompiledTable,
    old: Row,
    new: Row,
    value: bytes | None = None,
    old_key: bytes | None = None,
) -> None:
    """Replace a row that was read through this transaction; `value` is its stored form and
    `old_key` its key, if known."""
    if old_key is None:
        old_key = table.key_of(old)
    if value is None:
        value = transaction.get(old_key)
    new_key = old_key if table.same_key(old, new) else table.key_of(new)
    if old_key == new_key:
        replace_row(transaction, table, old_key, old, new, value)
        return
    encoded = encode_checked_row(table, new)
    _lock_root(transaction, table, old_key, old)
    transaction.require_unchanged(old_key)
    _lock_root(transaction, table, new_key, new)
    if transaction.get(new_key) is not None:
        raise used_key_error(transaction, table, new_key, new)
    transaction.write(old_key, value, None)
    transaction.write(new_key, None, encoded)


def replace_row(
    transaction: Transaction,
    table: CompiledTable,
    key: bytes,
    old: Row,
    new: Row,
    value: bytes | None,
) -> None:
    """Replace a row, stored as `value`, by one with the same key."""
    encoded = encode_checked_row(table, new)
    _lock_root(transaction, table, key, old)
    if table.table.foreign_keys:
        transaction.require_unchanged(key)
        _lock_root(transaction, table, key, new)
    transaction.write(key, value, encoded)


def delete_row(
    transaction: Transaction, table: CompiledTable, row: Row, value: bytes | None = None
) -> None:
    """Remove a row that was read through this transaction."""
    key = table.key_of(row)
    if value is None:
        value = transaction.get(key)
    delete_stored_row(transaction, table, key, row, value)


def delete_stored_row(
    transaction: Transaction, table: CompiledTable, key: bytes, row: Row, value: bytes | None
) -> None:
    """The same with its key, and with what is stored under it."""
    _lock_root(transaction, table, key, row)
    transaction.write(key, value, None)


def encode_checked_row(table: CompiledTable, row: Row) -> bytes:
    """The stored form of a row. 23502: a column must not be NULL."""
    encoded = table.encode_required(row)
    if encoded is None:
        raise find_null_violation(table, row)
    return encoded


def find_null_violation(table: CompiledTable, row: Row) -> InvalidInput:
    """The error of a row that is NULL in a column that must not be."""
    name = next(name for slot, name in table.not_null if row[slot] is None)
    return null_violation(table, name, [row[column.slot] for column in table.live_columns])


def null_violation(table: CompiledTable, column: str, values: Iterable[Any]) -> InvalidInput:
    """`values` are those of the columns that a user sees."""
    return InvalidInput(
        "null value in a column that must not be null",
        sqlstate="23502",
        detail=describe_failing_row(values),
        table=table.table.name,
        column=column,
    )


def describe_failing_row(values: Iterable[Any]) -> str:
    """The error detail that shows the row; long values are truncated."""
    shown = ["null" if value is None else str(value) for value in values]
    cut = [one if len(one) <= SHOWN_MAX else f"{one[:SHOWN_MAX]}.." for one in shown]
    return f"failing row contains ({', '.join(cut)})"


def _lock_root(transaction: Transaction, table: CompiledTable, key: bytes, row: Row) -> None:
    catalog, id_ = transaction.snapshot.catalog, table.table.id
    root = (
        catalog.root_key_cache[id_] if id_ in catalog.root_key_cache else root_finder(catalog, id_)
    )
    if root is not None:
        key = root(key, row, transaction)
    transaction.lock_root(key)


def lock_roots(
    transaction: Transaction,
    table: CompiledTable,
    keys: Sequence[bytes],
    olds: Sequence[Row],
    news: Sequence[Row] = (),
) -> None:
    """Lock the roots of many rows, before and after a change that keeps their keys. Each row is
    checked before the next lock is waited for: nobody waits, and is part of a deadlock, for a
    statement that has failed already."""
    root = root_finder(transaction.catalog, table.table.id)
    if root is None:
        roots = keys
    else:
        if news:
            olds = list(chain.from_iterable(zip(olds, news)))
            keys = [key for key in keys for _ in (0, 1)]
        roots = [root(key, row, transaction) for key, row in zip(keys, olds)]
    checked = 0

    def check_locked_rows(place: int) -> None:
        nonlocal checked
        for key in keys[checked:place]:
            transaction.require_unchanged(key)
        checked = place

    transaction.lock_roots(roots, check_locked_rows)


def used_key_error(
    transaction: Transaction, table: CompiledTable, key: bytes, row: Row
) -> InvalidInput:
    """What a row with a key that the snapshot has is refused with. Retry when that is not the
    newest row: it may have been removed since."""
    transaction.require_unchanged(key)
    return duplicate_key_violation(table, row)


def duplicate_key_violation(table: CompiledTable, row: Row) -> InvalidInput:
    names = [table.table.columns[slot].name for slot in table.table.primary_key]
    values = [row[slot] for slot in table.table.primary_key]
    return InvalidInput(
        "duplicate key value violates unique constraint",
        sqlstate="23505",
        detail=f"key ({', '.join(names)}) = ({', '.join(map(str, values))}) already exists",
        constraint=table.table.primary_key_name,
    )
