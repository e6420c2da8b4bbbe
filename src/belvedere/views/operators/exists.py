"""Existence checks by one seek: whether a table has any row with a key."""

from __future__ import annotations

from collections.abc import Callable

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Maintenance, ObjectState
from belvedere.catalog.relation_codecs import compiled_index, compiled_table
from belvedere.codec.keys import KeyCodec
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.delta.delta_tree import DeltaTree
from belvedere.views.delta.linear_core import Expressions
from belvedere.views.delta.min_max import find_table_slot, match_plain_table_branch

KeyExists = Callable[[Reader, Row], bool]


def build_key_exists_check(
    catalog: Catalog, tree: DeltaTree, keys: Expressions
) -> KeyExists | None:
    """A check by one seek whether the tree has a row with these keys; None: not possible."""
    branch = match_plain_table_branch(tree)
    if branch is not None and not keys:
        table = compiled_table(catalog, branch.leaves[0].relation)
        return lambda reader, key: (
            read_first_or_last_entry(reader, table.start, table.end) is not None
        )
    slots = () if branch is None else tuple(find_table_slot(branch, key) for key in keys)
    if branch is None or not slots or None in slots or len(set(slots)) < len(slots):
        return None
    for codec, parts in _list_key_codecs_with_slots(catalog, branch.leaves[0].relation):
        head = parts[: len(slots)]
        if set(head) == set(slots):
            return _build_prefix_exists_check(codec, [slots.index(slot) for slot in head])
    return None


def _list_key_codecs_with_slots(
    catalog: Catalog, relation: int
) -> list[tuple[KeyCodec, tuple[int | None, ...]]]:
    """The orders in which a table's rows are stored: its primary key, and its plain indexes."""
    table = compiled_table(catalog, relation)
    found: list[tuple[KeyCodec, tuple[int | None, ...]]] = [(table.key, table.table.primary_key)]
    for index in catalog.table_indexes(relation):
        ready = index.state is ObjectState.READY and index.maintenance is Maintenance.IMMEDIATE
        if ready and index.where is None and not index.unique:
            codec = compiled_index(catalog, index.id).key
            found.append((codec, tuple(part.slot for part in index.parts)))
    return found


def _build_prefix_exists_check(codec: KeyCodec, order: list[int]) -> KeyExists:
    def has_row_with_prefix(reader: Reader, key: Row) -> bool:
        start, end = codec.prefix_range(tuple([key[at] for at in order]))
        assert end is not None
        return read_first_or_last_entry(reader, start, end) is not None

    return has_row_with_prefix


def read_first_or_last_entry(
    reader: Reader, start: bytes, end: bytes, *, reverse: bool = False
) -> bytes | None:
    """The first entry of a range, or the last."""
    for batch in reader.scan(start, end, reverse=reverse, limit=1):
        for _, entry in batch:
            return entry
    return None
