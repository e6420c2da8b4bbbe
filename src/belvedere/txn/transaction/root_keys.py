"""Root keys: the key of the top row of a hierarchy, which a transaction locks before it writes.

Compiled per table: a root table's row is its own root; a row one step below a root needs no read,
since its foreign key is the root's key. Deeper rows need none either where every foreign key on
the way passes the root's key on, as in (warehouse, district, order): the row has its columns.
Other rows read their ancestors, and a missing one ends the walk: its key is locked, and the foreign
key refuses the row later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.foreign_key_graph import root_path
from belvedere.catalog.model import ForeignKey
from belvedere.catalog.relation_codecs import CompiledTable, compiled_index, compiled_table
from belvedere.codec.keys import INTEGER_KEY_BYTES, INTEGER_KINDS
from belvedere.txn.contracts import Reader
from belvedere.types import Row

RootFinder = Callable[[bytes, Row, Reader], bytes]
"""(key of the row, the row, where to read ancestors) -> key of its root row."""


def root_finder(catalog: Catalog, table: int) -> RootFinder | None:
    """How to find the root of this table's rows, kept per catalog; None: a row is its own root."""
    if table not in catalog.root_key_cache:
        catalog.root_key_cache[table] = _compile_root_finder(catalog, table)
    found: RootFinder | None = catalog.root_key_cache[table]
    return found


def _compile_root_finder(catalog: Catalog, table: int) -> RootFinder | None:
    path = root_path(catalog, catalog.table(table))
    if not path:
        return None
    place = find_root_in_key(catalog, table)
    if place is not None:
        return _cut_root(place)
    slots = _find_inherited_root(catalog, path)
    if slots is not None:
        return _root_from_columns(compiled_table(catalog, path[-1].parent), slots)
    steps = [
        (parent_key_finder(catalog, fk), fk.columns, compiled_table(catalog, fk.parent))
        for fk in path
    ]

    def find_root(key: bytes, row: Row, reader: Reader) -> bytes:
        for number, (key_of_parent, columns, parent) in enumerate(steps, 1):
            found = key_of_parent(tuple([row[slot] for slot in columns]), reader)
            if found is None:
                return key
            key = found
            if number < len(steps):
                value = reader.get(key)
                if value is None:
                    return key
                row = parent.decode(value)
        return key

    return find_root


def _find_inherited_root(catalog: Catalog, path: tuple[ForeignKey, ...]) -> list[int] | None:
    """The columns of a row that are its root's key by the foreign keys of the path, none of which
    is ever NULL; None when one of them does not pass the key on."""
    inherited = dict(zip(path[0].parent_columns, path[0].columns, strict=True))
    for key in path[1:]:
        steps = zip(key.parent_columns, key.columns, strict=True)
        inherited = {up: inherited[slot] for up, slot in steps if slot in inherited}
    root = catalog.table(path[-1].parent).primary_key
    return [inherited[slot] for slot in root] if inherited.keys() >= set(root) else None


class KeyInKey(NamedTuple):
    """The key of a row of another table, its root or parent, is `prefix` and the bytes from `start`
    to `end` of a row's key."""

    prefix: bytes
    start: int
    end: int


def find_root_in_key(catalog: Catalog, table_id: int) -> KeyInKey | None:
    """Where a row's key has that of its root, so that no value is encoded again; None where it has
    not, or a value may be longer than another."""
    path = root_path(catalog, catalog.table(table_id))
    slots = _find_inherited_root(catalog, path) if path else None
    return find_key_in_key(catalog, table_id, path[-1].parent, slots) if slots else None


def find_parent_in_key(catalog: Catalog, table_id: int, key: ForeignKey) -> KeyInKey | None:
    """Where a row's key has that of the parent row that a foreign key refers to; None as above."""
    if key.parent_index is not None:
        return None
    columns = dict(zip(key.parent_columns, key.columns, strict=True))
    slots = [columns[slot] for slot in catalog.table(key.parent).primary_key]
    return find_key_in_key(catalog, table_id, key.parent, slots)


def find_key_in_key(
    catalog: Catalog, table_id: int, other_id: int, slots: Sequence[int]
) -> KeyInKey | None:
    """Where a row's key has the other table's key, of which it has the values in these slots."""
    table, other = compiled_table(catalog, table_id), compiled_table(catalog, other_id)
    own = table.table.primary_key
    first = own.index(slots[0]) if slots[0] in own else 0
    columns = (*table.key.columns[: first + len(slots)], *other.key.columns)
    whole = all(column.type.kind in INTEGER_KINDS for column in columns)
    if tuple(slots) != own[first : first + len(slots)] or not whole:
        return None
    start = len(table.key.prefix) + first * INTEGER_KEY_BYTES
    return KeyInKey(other.key.prefix, start, start + len(slots) * INTEGER_KEY_BYTES)


def _cut_root(place: KeyInKey) -> RootFinder:
    prefix, start, end = place
    return lambda key, row, reader: prefix + key[start:end]


def _root_from_columns(root: CompiledTable, slots: list[int]) -> RootFinder:
    """`slots` are those of the root's key in a row."""
    encode = root.key.encode
    return lambda key, row, reader: encode(tuple([row[slot] for slot in slots]))


ParentKeyFinder = Callable[[Row, Reader], bytes | None]
"""(values of the foreign key's columns, where to read a unique index) -> key of the parent row."""


def parent_key_finder(catalog: Catalog, key: ForeignKey) -> ParentKeyFinder:
    """How to get the key of the parent row; None when a value is NULL, or when the parent is found
    by a unique index and is not there."""
    parent = compiled_table(catalog, key.parent)
    if key.parent_index is None:
        return _find_by_primary_key(parent, key)
    return _find_by_unique_index(catalog, parent, key)


def _find_by_primary_key(parent: CompiledTable, key: ForeignKey) -> ParentKeyFinder:
    order = [key.parent_columns.index(slot) for slot in parent.table.primary_key]
    encode = parent.key.encode
    if order == sorted(order):
        return lambda values, reader: None if None in values else encode(values)
    return lambda values, reader: (
        None if None in values else encode(tuple([values[at] for at in order]))
    )


def _find_by_unique_index(
    catalog: Catalog, parent: CompiledTable, key: ForeignKey
) -> ParentKeyFinder:
    assert key.parent_index is not None
    index = compiled_index(catalog, key.parent_index)
    order = [key.parent_columns.index(part.slot or 0) for part in index.index.parts]

    def find_parent(values: Row, reader: Reader) -> bytes | None:
        if None in values:
            return None
        entry = reader.get(index.unique_key.encode(tuple([values[at] for at in order])))
        if entry is None:
            return None
        stored = index.layout.decode(entry)
        return parent.key.encode(tuple([stored[n] for n in index.primary_key]))

    return find_parent
