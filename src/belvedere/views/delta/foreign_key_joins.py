"""Pruning of delta terms: enforced foreign keys make some of them empty.

No child row can refer to a parent row that does not exist yet, so a row inserted into the parent's
table (inserted, not updated) joins none of the old rows of the child's:

    orders o JOIN customers c ON o.customer = c.id      orders.customer REFERENCES customers

an inserted customer adds nothing to `dcustomers x orders`; only orders inserted in the same
transaction can match it, and those have a term of their own.

This holds in the commit section, where the state before obeys the constraints of the catalog. A
range of the log may begin before the constraint existed, and a transaction may insert the child
first and read the view, so nothing is pruned then (`DeltaStep`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ForeignKey
from belvedere.plan import expressions as e
from belvedere.views.delta.linear_core import CoreBranch, CoreLeaf


class ForeignKeyJoin(NamedTuple):
    """Rows inserted into leaf `parent` join no old row of leaf `child`."""

    parent: int
    child: int
    foreign_key: str


def find_foreign_key_joins(branch: CoreBranch, catalog: Catalog) -> tuple[ForeignKeyJoin, ...]:
    """Every pair of leaves of the branch that is joined along an enforced foreign key."""
    equal = set(_find_equal_column_pairs(branch))
    tables = [i for i, leaf in enumerate(branch.leaves) if leaf.constant is None]
    return tuple(
        ForeignKeyJoin(parent, child, key.name)
        for child in tables
        for key in catalog.table(branch.leaves[child].relation).foreign_keys
        for parent in tables
        if parent != child
        and _is_foreign_key_join(branch.leaves[child], branch.leaves[parent], key, equal)
    )


def _find_equal_column_pairs(branch: CoreBranch) -> Iterator[tuple[int, int]]:
    """Pairs of columns of the branch's row that a condition sets equal, both ways."""
    for condition in branch.conditions:
        match condition:
            case e.Call(function, (e.Column() as one, e.Column() as other), _):
                if function.name == "=":
                    yield one.index, other.index
                    yield other.index, one.index


def _is_foreign_key_join(
    child: CoreLeaf, parent: CoreLeaf, key: ForeignKey, equal: set[tuple[int, int]]
) -> bool:
    if not key.enforced or key.parent != parent.relation:
        return False
    pairs = zip(key.columns, key.parent_columns, strict=True)
    return all(
        mine in child.slots
        and theirs in parent.slots
        and (
            child.offset + child.slots.index(mine),
            parent.offset + parent.slots.index(theirs),
        )
        in equal
        for mine, theirs in pairs
    )
