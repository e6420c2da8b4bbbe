"""Writes of single rows, with the actions of the foreign keys that refer to them.

NO ACTION is left to the check at commit. RESTRICT, CASCADE, SET NULL and SET DEFAULT act here, at
once and in this transaction, so that their effects are ordinary changes of ordinary rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from belvedere import interrupts
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.foreign_key_graph import child_foreign_keys
from belvedere.catalog.model import ForeignKey, ReferentialAction
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.errors import InvalidInput, Unsupported
from belvedere.txn.gc_pause import pause_cycle_collector
from belvedere.txn.transaction import table_rows as stored
from belvedere.txn.transaction.child_rows import find_child_rows
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

BATCH_ROWS = 4096
"""Rows of a statement that are locked and written together, between looks for its cancellation."""
ACTIONS = frozenset(ReferentialAction) - {ReferentialAction.NO_ACTION}


def insert(txn: Transaction, table: CompiledTable, row: Row) -> None:
    stored.insert_row(txn, table, row)


def update(
    txn: Transaction, table: CompiledTable, old: Row, new: Row, value: bytes | None = None
) -> None:
    """`value` is the stored form of the old row, if it is known."""
    stored.update_row(txn, table, old, new, value)
    _apply_update_actions(txn, table, ((old, new),))


def update_all(txn: Transaction, table: CompiledTable, pairs: list[tuple[Row, Row]]) -> None:
    """Rows of one statement. Keys are compared as they are after all of it, so that a row may take
    the key of another one whose key changes (id = id + 1). Actions come after all rows: those of
    a table that refers to itself see the rows as the statement left them, as in PostgreSQL."""
    if len(pairs) > 1:
        txn.fetch_ahead(table.key_of(old) for old, _ in pairs)
    moved = [pair for pair in pairs if not table.same_key(*pair)]
    at_once = len(moved) < 2
    for old, _ in () if at_once else moved:
        stored.delete_row(txn, table, old)
    for old, new in pairs:
        if at_once or table.same_key(old, new):
            stored.update_row(txn, table, old, new)
        else:
            stored.insert_row(txn, table, new)
    _apply_update_actions(txn, table, pairs)


def _apply_update_actions(
    txn: Transaction, table: CompiledTable, pairs: Sequence[tuple[Row, Row]]
) -> None:
    """Runs the ON UPDATE actions of the foreign keys that refer to changed rows. The rows that
    refer to them are all found before one is changed, so that each follows its parent once."""
    for child, key in referring_keys(txn.catalog, table.table.id):
        slots = key.parent_columns
        found = []
        for old, new in pairs:
            before, after = tuple([old[i] for i in slots]), tuple([new[i] for i in slots])
            if before != after and None not in before and key.on_update in ACTIONS:
                found += [(row, after) for row in find_child_rows(txn, child, key, before)]
        if found:
            _act_on_update(txn, child, key, found)


def _act_on_update(
    txn: Transaction, child: CompiledTable, key: ForeignKey, found: list[tuple[Row, Row]]
) -> None:
    """`found` are the rows that refer to changed rows, and what these have in place of the
    referenced values now."""
    if key.on_update is ReferentialAction.RESTRICT:
        raise _still_referenced_error(child, key)
    if key.on_update is not ReferentialAction.CASCADE:
        given = _absent_parent_values(child, key, key.on_update)
        found = [(row, given) for row, _ in found]
    slots = key.columns
    update_all(txn, child, [(row, _replace_values(row, slots, given)) for row, given in found])


def delete(txn: Transaction, table: CompiledTable, row: Row, value: bytes | None = None) -> None:
    stored.delete_row(txn, table, row, value)
    _apply_delete_actions(txn, table, (row,))


def delete_all(txn: Transaction, table: CompiledTable, rows: Sequence[Row]) -> None:
    """Rows of one statement; actions come after all of them."""
    if len(rows) > 1:
        txn.fetch_ahead(table.key_of(row) for row in rows)
    for row in rows:
        stored.delete_row(txn, table, row)
    _apply_delete_actions(txn, table, rows)


def delete_stored(
    txn: Transaction, table: CompiledTable, found: Sequence[tuple[bytes, bytes, Row]]
) -> None:
    """Rows of one statement, with their keys and stored forms."""
    for key, stored_form, row in found:
        stored.delete_stored_row(txn, table, key, row, stored_form)
    _apply_delete_actions(txn, table, [row for _, _, row in found])


def replace_many(
    txn: Transaction,
    table: CompiledTable,
    keys: list[bytes],
    stored_forms: list[bytes],
    olds: list[Row],
    news: list[Row],
) -> None:
    """Replace rows of one statement by rows with the same keys; nothing that other tables refer to
    with an action changes. NOT NULL was checked."""
    with pause_cycle_collector():
        for at in range(0, len(keys), BATCH_ROWS):
            interrupts.check_statement()
            here = slice(at, at + BATCH_ROWS)
            after = news[here] if table.table.foreign_keys else ()
            stored.lock_roots(txn, table, keys[here], olds[here], after)
            encoded = list(map(table.encode, news[here]))
            txn.write_many(keys[here], stored_forms[here], encoded)


def delete_many(
    txn: Transaction,
    table: CompiledTable,
    keys: list[bytes],
    stored_forms: list[bytes],
    rows: list[Row],
) -> None:
    """Remove rows of one statement; actions come after all of them."""
    with pause_cycle_collector():
        for at in range(0, len(keys), BATCH_ROWS):
            interrupts.check_statement()
            here = slice(at, at + BATCH_ROWS)
            stored.lock_roots(txn, table, keys[here], rows[here])
            some = keys[here]
            txn.write_many(some, stored_forms[here], [None] * len(some))
    _apply_delete_actions(txn, table, rows)


def _apply_delete_actions(txn: Transaction, table: CompiledTable, rows: Sequence[Row]) -> None:
    """Runs the ON DELETE actions of the foreign keys that refer to removed rows."""
    for child, key in referring_keys(txn.catalog, table.table.id):
        slots = key.parent_columns
        found: list[Row] = []
        for row in rows:
            values = tuple([row[slot] for slot in slots])
            if None not in values and key.on_delete in ACTIONS:
                found += find_child_rows(txn, child, key, values)
        if found:
            _act_on_delete(txn, child, key, found)


def _act_on_delete(
    txn: Transaction, child: CompiledTable, key: ForeignKey, found: list[Row]
) -> None:
    if key.on_delete is ReferentialAction.RESTRICT:
        raise _still_referenced_error(child, key)
    if key.on_delete is ReferentialAction.CASCADE:
        delete_all(txn, child, found)
        return
    given = _absent_parent_values(child, key, key.on_delete)
    update_all(txn, child, [(row, _replace_values(row, key.columns, given)) for row in found])


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


def _still_referenced_error(child: CompiledTable, key: ForeignKey) -> InvalidInput:
    return InvalidInput(
        "row is still referenced",
        sqlstate="23001",
        constraint=key.name,
        table=child.table.name,
    )


def _replace_values(row: Row, slots: tuple[int, ...], values: Row) -> Row:
    changed = list(row)
    for slot, value in zip(slots, values):
        changed[slot] = value
    return tuple(changed)


def _absent_parent_values(child: CompiledTable, key: ForeignKey, action: ReferentialAction) -> Row:
    """What SET NULL or SET DEFAULT writes."""
    defaults = [child.table.columns[slot].default for slot in key.columns]
    if action is ReferentialAction.SET_DEFAULT and any(one is not None for one in defaults):
        raise Unsupported(
            "ON DELETE or UPDATE SET DEFAULT with a default that is not NULL", constraint=key.name
        )
    return (None,) * len(key.columns)
