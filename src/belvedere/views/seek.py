"""Existence checks by one seek: whether a table has any row with a key."""

from __future__ import annotations

from collections.abc import Callable

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Maintenance, State
from belvedere.catalog.relation import compiled_index, compiled_table
from belvedere.codec.keys import KeyCodec
from belvedere.plan import expressions as e
from belvedere.txn.border import Reader
from belvedere.types import Row
from belvedere.views.core import Branch, Expressions
from belvedere.views.tree import Core, Tree

Exists = Callable[[Reader, Row], bool]


def only_branch(tree: Tree) -> Branch | None:
    """The branch of a core that is a plain table: all its rows, some of its columns."""
    if not isinstance(tree, Core) or len(tree.branches) != 1:
        return None
    (branch,) = tree.branches
    plain = len(branch.leaves) == 1 and branch.leaves[0].constant is None
    return branch if plain and not branch.conditions else None


def slot_of(branch: Branch, expression: e.Expression) -> int | None:
    """The slot of the branch's table that an expression over the branch's columns is."""
    if not isinstance(expression, e.Column):
        return None
    column = branch.columns[expression.index]
    return branch.leaves[0].slots[column.index] if isinstance(column, e.Column) else None


def seeker(catalog: Catalog, tree: Tree, keys: Expressions) -> Exists | None:
    """A check by one seek whether the tree has a row with these keys; None: not possible."""
    branch = only_branch(tree)
    if branch is not None and not keys:
        table = compiled_table(catalog, branch.leaves[0].relation)
        return lambda reader, key: first(reader, table.start, table.end) is not None
    slots = () if branch is None else tuple(slot_of(branch, key) for key in keys)
    if branch is None or not slots or None in slots or len(set(slots)) < len(slots):
        return None
    for codec, parts in _orders(catalog, branch.leaves[0].relation):
        head = parts[: len(slots)]
        if set(head) == set(slots):
            return _exists(codec, [slots.index(slot) for slot in head])
    return None


def _orders(catalog: Catalog, relation: int) -> list[tuple[KeyCodec, tuple[int | None, ...]]]:
    """The orders in which a table's rows are stored: its primary key, and its plain indexes."""
    table = compiled_table(catalog, relation)
    found: list[tuple[KeyCodec, tuple[int | None, ...]]] = [(table.key, table.table.primary_key)]
    for index in catalog.indexes_of(relation):
        ready = index.state is State.READY and index.maintenance is Maintenance.IMMEDIATE
        if ready and index.where is None and not index.unique:
            codec = compiled_index(catalog, index.id).key
            found.append((codec, tuple(part.slot for part in index.parts)))
    return found


def _exists(codec: KeyCodec, order: list[int]) -> Exists:
    def exists(reader: Reader, key: Row) -> bool:
        start, end = codec.prefix_range(tuple([key[at] for at in order]))
        assert end is not None
        return first(reader, start, end) is not None

    return exists


def first(reader: Reader, start: bytes, end: bytes, *, reverse: bool = False) -> bytes | None:
    """The first entry of a range, or the last."""
    for batch in reader.scan(start, end, reverse=reverse, limit=1):
        for _, entry in batch:
            return entry
    return None
