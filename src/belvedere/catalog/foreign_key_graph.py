"""The foreign-key graph, and the rooted trees it forms.

The root of a row is found by following the first enforced NOT NULL foreign key upward until a table
has none; `root = 'self'` or `root = '<foreign key>'` on a table overrides the rule. A cycle ends
where it would close: the table that would be visited twice is its own root.

The root key of a row is (root table, primary key of the row's root): the unit of locking.
"""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ForeignKey, Table


def child_foreign_keys(catalog: Catalog, parent: int) -> tuple[tuple[Table, ForeignKey], ...]:
    """Every enforced foreign key that points at `parent`, with the table that has it."""
    return tuple(
        (table, key)
        for table in catalog.tables
        for key in table.foreign_keys
        if key.parent == parent and key.enforced
    )


def leads_primary_key(table: Table, slots: tuple[int, ...]) -> bool:
    """Whether the primary key begins with these columns, in any order, so that rows with equal
    values in them are one range of the table."""
    return set(table.primary_key[: len(slots)]) == set(slots)


def parent_foreign_key(table: Table) -> ForeignKey | None:
    """The foreign key that makes rows of this table children in the hierarchy, if any."""
    if table.root == "self":
        return None
    not_null = {c.slot for c in table.columns if c.not_null}
    for key in table.foreign_keys:
        if table.root is not None and key.name != table.root:
            continue
        if key.enforced and not_null.issuperset(key.columns):
            return key
    return None


def root_path(catalog: Catalog, table: Table) -> tuple[ForeignKey, ...]:
    """The foreign keys from `table` up to its root table; empty when it is a root itself."""
    path: list[ForeignKey] = []
    visited = {table.id}
    key = parent_foreign_key(table)
    while key is not None and key.parent not in visited:
        path.append(key)
        visited.add(key.parent)
        key = parent_foreign_key(catalog.table(key.parent))
    return tuple(path)


def root_table(catalog: Catalog, table: Table) -> Table:
    path = root_path(catalog, table)
    return catalog.table(path[-1].parent) if path else table


def key_implies_root(catalog: Catalog, table: Table) -> bool:
    """Whether the primary key of a row says which root it has: then rows with one key have one
    root, whatever else is in them."""
    for key in root_path(catalog, table):
        if key.parent_index is not None or not set(key.columns) <= set(table.primary_key):
            return False
        table = catalog.table(key.parent)
    return True
