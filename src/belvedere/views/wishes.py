"""Which indexes the maintenance of a view would use if they were there."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.views.delta import Wish, restricted_wishes, terms_of
from belvedere.views.tree import Core, Map, Recompute, Tree, Union


def wishes_of(catalog: Catalog, tree: Tree) -> Iterator[Wish]:
    """Every index that would save a scan of a table, for terms and for touched keys."""
    match tree:
        case Core():
            yield from terms_of(tree.branches, tree.plan.fields, catalog)[1]
        case Map():
            yield from wishes_of(catalog, tree.input)
        case Union():
            yield from wishes_of(catalog, tree.left)
            yield from wishes_of(catalog, tree.right)
        case Recompute():
            for one in tree.inputs:
                yield from wishes_of(catalog, one.tree)
                if isinstance(one.tree, Core) and one.keys:
                    branches, fields = one.tree.branches, one.tree.plan.fields
                    yield from restricted_wishes(branches, fields, one.keys, catalog)
