"""Joins of a view that change no row of the rest: its extra tables, which a query does not read.

A table that is joined along a foreign key has exactly one row for each row of the child, when

    the foreign key is enforced and checked with every statement
    none of its columns can be NULL
    the join has no other condition on the table, and no other table is joined to it

so the join neither drops nor repeats rows, and its equalities may be added to any query that reads
the child. A left join with all columns of a unique key has at most one row for each row before it,
and keeps rows without a match: it may go too. Tables are taken away one after the other, those
that refer to no extra table first.
"""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ForeignKey, ObjectState, Table
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.sql.rules.equality import make_equality
from belvedere.views.rewrite.block import BlockLeaf, QueryBlock
from belvedere.views.rewrite.column_classes import ColumnClasses, match_column_equality


def find_lossless_equalities(
    view: QueryBlock, extras: Iterable[int], catalog: Catalog
) -> list[e.Expression] | None:
    """The equalities of the joins with the extra leaves of a view, which may be added to a query;
    None when some leaf may drop or repeat rows."""
    left = [view.leaves[i] for i in range(len(view.leaves))]
    waiting = [view.leaves[i] for i in extras]
    found: list[e.Expression] = []
    while waiting:
        for leaf in waiting:
            equalities = _find_removal_equalities(view, leaf, left, catalog)
            if equalities is not None:
                break
        else:
            return None
        found += equalities
        waiting.remove(leaf)
        left.remove(leaf)
    return found


def _find_removal_equalities(
    view: QueryBlock, leaf: BlockLeaf, left: list[BlockLeaf], catalog: Catalog
) -> list[e.Expression] | None:
    """The equalities by which the leaf is joined to one of those that are left, if it may go."""
    rest = [one for one in left if one is not leaf]
    used = [condition for condition in view.conditions if _reads_leaf(condition, leaf)]
    for other in rest:
        if other.on is not None and any(_reads_leaf(one, leaf) for one in other.on):
            return None
    if leaf.on is not None:
        return [] if not used and _has_unique_match(leaf, leaf.on, catalog) else None
    known = {column for one in rest if one.on is None for column in one.columns}
    gone = [one for one in used if not transform.columns_of(one) <= known | set(leaf.columns)]
    if any(match_column_equality(one) is None for one in used) or leaf.relation is None:
        return None
    used = [one for one in used if one not in gone]  # those with leaves that went before
    classes = ColumnClasses(view.conditions)
    for child in rest:
        if child.relation is None or child.on is not None:
            continue
        for key in catalog.table(child.relation).foreign_keys:
            pairs = _find_foreign_key_equalities(key, child, leaf, classes, catalog)
            if pairs is not None and _reads_only_key_columns(used, leaf, key):
                return pairs
    return None


def _reads_leaf(condition: e.Expression, leaf: BlockLeaf) -> bool:
    return not transform.columns_of(condition).isdisjoint(leaf.columns)


def _find_foreign_key_equalities(
    key: ForeignKey, child: BlockLeaf, parent: BlockLeaf, classes: ColumnClasses, catalog: Catalog
) -> list[e.Expression] | None:
    """The equalities of the join along the foreign key, if the leaves are joined by it and it
    finds a parent for every row."""
    if key.parent != parent.relation or not key.enforced or key.deferrable:
        return None
    assert child.relation is not None
    table, above = catalog.table(child.relation), catalog.table(key.parent)
    pairs: list[e.Expression] = []
    for mine, theirs in zip(key.columns, key.parent_columns, strict=True):
        here, there = child.offset + mine, parent.offset + theirs
        if not is_declared_not_null(table, mine) or classes.find_representative(
            here
        ) != classes.find_representative(there):
            return None
        left = e.Column(here, table.columns[mine].type)
        pairs.append(make_equality(left, e.Column(there, above.columns[theirs].type)))
    return pairs


def _reads_only_key_columns(used: list[e.Expression], leaf: BlockLeaf, key: ForeignKey) -> bool:
    """Whether the conditions read no columns of the leaf but those that the key refers to."""
    referred = {leaf.offset + slot for slot in key.parent_columns}
    read = set().union(*(transform.columns_of(one) for one in used)) & set(leaf.columns)
    return read <= referred


def is_declared_not_null(table: Table, slot: int) -> bool:
    return table.columns[slot].not_null or slot in table.primary_key


def _has_unique_match(leaf: BlockLeaf, on: Iterable[e.Expression], catalog: Catalog) -> bool:
    """Whether a left join finds at most one row: its condition fixes all columns of a unique
    key."""
    if leaf.relation is None:
        return False
    table = catalog.table(leaf.relation)
    fixed = {slot for one in on if (slot := _find_fixed_slot(one, leaf)) is not None}
    keys = [table.primary_key]
    for index in catalog.table_indexes(leaf.relation):
        slots = [part.slot for part in index.parts]
        plain = index.unique and index.where is None and index.state is ObjectState.READY
        if plain and None not in slots:
            keys.append(tuple([slot for slot in slots if slot is not None]))
    return any(fixed.issuperset(key) for key in keys)


def _find_fixed_slot(condition: e.Expression, leaf: BlockLeaf) -> int | None:
    """The slot that the condition sets equal to a value of the other leaves."""
    match condition:
        case e.Call(function, (one, other), _) if function.name == "=":
            for mine, value in ((one, other), (other, one)):
                if isinstance(mine, e.Column) and mine.index in leaf.columns:
                    if not _reads_leaf(value, leaf):
                        return mine.index - leaf.offset
    return None


def list_required_tables(view: QueryBlock, catalog: Catalog) -> frozenset[int]:
    """The tables of a view that stay when all lossless joins are taken away."""
    left = list(view.leaves)
    while len(left) > 1:
        for leaf in reversed(left):
            if _find_removal_equalities(view, leaf, left, catalog) is not None:
                left.remove(leaf)
                break
        else:
            break
    return frozenset([leaf.relation for leaf in left if leaf.relation is not None])
