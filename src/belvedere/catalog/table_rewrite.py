"""Table rewrite: a copy of a table under a new id, to change its key or a column's type.

Rows, log records and before-images of a table are all read by its columns and its key, so neither
may change under one id. A table with another key or with a column of another type is therefore a
new table: it has the old one's name and slots and takes over its indexes, foreign keys and
sequences. The caller copies the rows.
"""

from __future__ import annotations

import msgspec

from belvedere.catalog.comments import move_comments
from belvedere.catalog.definition_rules import require_matching_columns
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import (
    CatalogColumn,
    ForeignKey,
    Index,
    ObjectState,
    Sequence,
    Table,
    TypeName,
)
from belvedere.catalog.rights.ownership import move_access_list
from belvedere.types import BIGINT

ROW_ID = "belvedere_row_id"
replace = msgspec.structs.replace


def has_primary_key(table: Table) -> bool:
    """Whether the table has a declared primary key, not the hidden row id."""
    return not table.columns[table.primary_key[0]].hidden


def with_primary_key(table: Table, slots: tuple[int, ...], name: str) -> Table:
    """The table keyed by these columns; a hidden row id is dropped."""
    columns = tuple(
        _drop_column(column)
        if column.hidden
        else replace(column, not_null=True)
        if column.slot in slots
        else column
        for column in table.columns
    )
    return replace(table, columns=columns, primary_key=slots, primary_key_name=name)


def without_primary_key(table: Table) -> Table:
    """The table keyed by a hidden row id; the columns of the key stay NOT NULL."""
    slot = len(table.columns)
    hidden = CatalogColumn(ROW_ID, TypeName.from_type(BIGINT), slot, not_null=True, hidden=True)
    return replace(
        table, columns=(*table.columns, hidden), primary_key=(slot,), primary_key_name=""
    )


def _drop_column(column: CatalogColumn) -> CatalogColumn:
    return CatalogColumn(f"dropped {column.slot}", column.type_name, column.slot, dropped=True)


def rewrite_table(edit: CatalogEdit, table: Table) -> Table:
    """Replace the table that has the id of `table` by `table` under a new id, and return that.

    The caller writes all rows again, so no column keeps a value for rows older than itself."""
    old = edit.catalog.table(table.id)
    indexes = edit.catalog.table_indexes(old.id)
    ids = {old.id: edit.allocate_id()} | {index.id: edit.allocate_id() for index in indexes}
    columns = tuple(replace(column, missing=None) for column in table.columns)
    for index in indexes:
        edit.mark_dropped(index)
    edit.mark_dropped(old)
    made = replace(
        table, id=ids[old.id], columns=columns, foreign_keys=_remap_foreign_keys(table, ids)
    )
    edit.put(made)
    for index in indexes:
        edit.put(replace(index, id=ids[index.id], table=made.id, state=ObjectState.READY))
    _ensure_child_indexes(edit, made)
    for other in edit.catalog.tables:
        if other.id != made.id and _remap_foreign_keys(other, ids) != other.foreign_keys:
            edit.put(replace(other, foreign_keys=_remap_foreign_keys(other, ids)))
    for item in tuple(edit.catalog.objects.values()):
        if isinstance(item, Sequence) and item.owner == old.id:
            edit.put(replace(item, owner=made.id))
    move_access_list(edit, old, made)
    move_comments(edit, old, made)
    for index in indexes:
        move_comments(edit, index, edit.catalog.objects[ids[index.id]])
    _require_matching_keys(edit, made.id)
    return edit.catalog.table(made.id)


def _ensure_child_indexes(edit: CatalogEdit, table: Table) -> None:
    """Give an index to foreign keys whose columns the former primary key began with."""
    keys = [
        replace(key, index=edit.ensure_child_index(table, key.columns))
        if key.enforced and key.index is None
        else key
        for key in table.foreign_keys
    ]
    if tuple(keys) != table.foreign_keys:
        edit.put(replace(edit.catalog.table(table.id), foreign_keys=tuple(keys)))


def _remap_foreign_keys(table: Table, ids: dict[int, int]) -> tuple[ForeignKey, ...]:
    return tuple(
        replace(
            key,
            parent=ids.get(key.parent, key.parent),
            parent_index=_remap_id(key.parent_index, ids),
            index=_remap_id(key.index, ids),
        )
        for key in table.foreign_keys
    )


def _remap_id(id_: int | None, ids: dict[int, int]) -> int | None:
    return None if id_ is None else ids.get(id_, id_)


def _require_matching_keys(edit: CatalogEdit, id_: int) -> None:
    """42804 when a foreign key from or to the table no longer fits its columns."""
    for child in edit.catalog.tables:
        for key in child.foreign_keys:
            if id_ in (child.id, key.parent):
                parent = edit.catalog.table(key.parent)
                require_matching_columns(child, key.columns, parent, key.parent_columns)


def retype_parts(index: Index, types: dict[int, TypeName]) -> Index:
    """The index with new types for its expressions, given by the number of the key part."""
    parts = tuple(
        replace(part, type_name=types.get(i, part.type_name)) for i, part in enumerate(index.parts)
    )
    return replace(index, parts=parts)
