"""Writes of single rows, with the actions of the foreign keys that refer to them.

NO ACTION is left to the check at commit. RESTRICT, CASCADE, SET NULL and SET DEFAULT act here, at
once and in this transaction, so that their effects are ordinary changes of ordinary rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.foreign_key_graph import child_foreign_keys
from belvedere.catalog.model import ForeignKey, ReferentialAction
from belvedere.catalog.relation_codecs import CompiledTable, compiled_index, compiled_table
from belvedere.errors import Corruption, InvalidInput, Unsupported
from belvedere.txn.contracts import Reader
from belvedere.txn.transaction import table_rows as stored
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row


def insert(txn: Transaction, table: CompiledTable, row: Row) -> None:
    stored.insert_row(txn, table, row)


def update(
    txn: Transaction, table: CompiledTable, old: Row, new: Row, value: bytes | None = None
) -> None:
    """`value` is the stored form of the old row, if it is known."""
    stored.update_row(txn, table, old, new, value)
    _apply_update_actions(txn, table, old, new)


def _apply_update_actions(txn: Transaction, table: CompiledTable, old: Row, new: Row) -> None:
    """Runs the ON UPDATE actions of the foreign keys that refer to a changed row."""
    for child, key in referring_keys(txn.catalog, table.table.id):
        before = tuple([old[slot] for slot in key.parent_columns])
        after = tuple([new[slot] for slot in key.parent_columns])
        if before != after and None not in before:
            _apply_action(txn, child, key, before, after)


def update_all(txn: Transaction, table: CompiledTable, pairs: list[tuple[Row, Row]]) -> None:
    """Rows of one statement. Keys are compared as they are after all of it, so that a row may take
    the key of another one whose key changes (id = id + 1)."""
    moved = [pair for pair in pairs if not table.same_key(*pair)]
    if len(moved) < 2:
        for old, new in pairs:
            update(txn, table, old, new)
        return
    for old, _ in moved:
        stored.delete_row(txn, table, old)
    for old, new in pairs:
        if table.same_key(old, new):
            stored.update_row(txn, table, old, new)
        else:
            stored.insert_row(txn, table, new)
        _apply_update_actions(txn, table, old, new)


def delete(txn: Transaction, table: CompiledTable, row: Row, value: bytes | None = None) -> None:
    stored.delete_row(txn, table, row, value)
    for child, key in referring_keys(txn.catalog, table.table.id):
        values = tuple([row[slot] for slot in key.parent_columns])
        if None not in values:
            _apply_action(txn, child, key, values, None)


def referring_keys(catalog: Catalog, parent: int) -> tuple[tuple[CompiledTable, ForeignKey], ...]:
    """The foreign keys that refer to `parent` and have an action, cached per catalog."""
    memo_key = ("referring", parent)
    found = catalog.derived_cache.get(memo_key)
    if found is None:
        found = catalog.derived_cache[memo_key] = tuple(
            (compiled_table(catalog, table.id), key)
            for table, key in child_foreign_keys(catalog, parent)
            if not key.on_delete is key.on_update is ReferentialAction.NO_ACTION
        )
    return found  # type: ignore[return-value]


def _apply_action(
    txn: Transaction, child: CompiledTable, key: ForeignKey, values: Row, moved: Row | None
) -> None:
    action = key.on_delete if moved is None else key.on_update
    if action is ReferentialAction.NO_ACTION:
        return
    for row in list(referring_rows(txn, child, key, values)):
        match action:
            case ReferentialAction.RESTRICT:
                raise InvalidInput(
                    "row is still referenced",
                    sqlstate="23001",
                    constraint=key.name,
                    table=child.table.name,
                )
            case ReferentialAction.CASCADE if moved is None:
                delete(txn, child, row)
            case ReferentialAction.CASCADE:
                assert moved is not None
                update(txn, child, row, _replace_values(row, key.columns, moved))
            case ReferentialAction.SET_NULL:
                update(
                    txn, child, row, _replace_values(row, key.columns, (None,) * len(key.columns))
                )
            case ReferentialAction.SET_DEFAULT:
                update(
                    txn, child, row, _replace_values(row, key.columns, _default_values(child, key))
                )


def _replace_values(row: Row, slots: tuple[int, ...], values: Row) -> Row:
    changed = list(row)
    for slot, value in zip(slots, values):
        changed[slot] = value
    return tuple(changed)


def _default_values(child: CompiledTable, key: ForeignKey) -> Row:
    if any(child.table.columns[slot].default is not None for slot in key.columns):
        raise Unsupported(
            "ON DELETE or UPDATE SET DEFAULT with a default that is not NULL", constraint=key.name
        )
    return (None,) * len(key.columns)


def referring_rows(
    reader: Reader, child: CompiledTable, key: ForeignKey, values: Row
) -> Iterator[Row]:
    """The rows that refer to these values, by the index that serves the foreign key."""
    assert key.index is not None
    index = compiled_index(reader.catalog, key.index)
    start, end = index.key.prefix_range(_in_index_order(index.index.parts, key, values))
    assert end is not None
    primary: Callable[[bytes], Row] = index.layout.projector(index.primary_key)
    for pairs in reader.scan(start, end):
        for _, entry in pairs:
            found = reader.get(child.key.encode(primary(entry)))
            if found is None:
                raise Corruption("index entry points to no row", index=index.index.name)
            yield child.decode(found)


def _in_index_order(parts: tuple[object, ...], key: ForeignKey, values: Row) -> Row:
    by_slot = dict(zip(key.columns, values))
    return tuple([by_slot[part.slot] for part in parts[: len(values)]])  # type: ignore[attr-defined]
