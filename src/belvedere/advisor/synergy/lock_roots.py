"""The lock of each transaction: the root key that the rooted trees give every table.

A write locks the root of its row, found by following foreign keys (`catalog.foreign_key_graph`).
Tables of a rooted tree follow the tree's edges, and its root is locked by itself; so all rows that
a view joins along a tree have one root, and a write takes one root lock, whatever views there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from belvedere.advisor.synergy.rooted_trees import RootedTree
from belvedere.advisor.synergy.schema_graph import SchemaEdge
from belvedere.advisor.workload.sql_names import write_name
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.foreign_key_graph import parent_foreign_key
from belvedere.catalog.model import ForeignKey, Table
from belvedere.values.quoting import quote_literal


def list_root_statements(catalog: Catalog, trees: Sequence[RootedTree]) -> list[str]:
    """ALTER TABLE for the tables whose rows have another root than in their tree."""
    return [
        f"ALTER TABLE {write_name(table.name)} SET (root = {quote_literal(root)});"
        for tree in trees
        for table, root in _list_roots(catalog, tree)
    ]


def _list_roots(catalog: Catalog, tree: RootedTree) -> Iterator[tuple[Table, str]]:
    root = catalog.table(tree.root)
    if tree.parent_edges and parent_foreign_key(root) is not None:
        yield root, "self"
    for relation, edge in tree.parent_edges.items():
        table = catalog.table(relation)
        wanted, known = _find_foreign_key(table, edge), parent_foreign_key(table)
        if wanted is not None and wanted != known:
            yield table, wanted.name


def _find_foreign_key(table: Table, edge: SchemaEdge) -> ForeignKey | None:
    """The foreign key of the edge, if rows can be locked by it: it is enforced and never NULL."""
    not_null = {column.slot for column in table.columns if column.not_null}
    for key in table.foreign_keys:
        if key.parent == edge.parent and key.columns == edge.foreign_key:
            return key if key.enforced and not_null.issuperset(key.columns) else None
    return None
