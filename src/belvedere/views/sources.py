"""A tree to the source that runs it."""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.views.apply import ApplySource
from belvedere.views.operators import CoreSource, MapSource, UnionSource
from belvedere.views.partition import RecomputeSource
from belvedere.views.source import Source
from belvedere.views.tree import Apply, Core, Map, Recompute, Tree, Union


def source_of(catalog: Catalog, tree: Tree) -> Source:
    match tree:
        case Core():
            return CoreSource(catalog, tree)
        case Map():
            return MapSource(catalog, tree, source_of(catalog, tree.input))
        case Union():
            return UnionSource(source_of(catalog, tree.left), source_of(catalog, tree.right))
        case Apply():
            rights = [source_of(catalog, right.tree) for right in tree.rights]
            return ApplySource(catalog, tree, source_of(catalog, tree.left), rights)
        case Recompute():
            return RecomputeSource(catalog, tree, [source_of(catalog, i.tree) for i in tree.inputs])
