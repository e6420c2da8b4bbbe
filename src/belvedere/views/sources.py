"""The builder of delta operators: a delta tree to the operator that runs it."""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.views.apply import ApplySource
from belvedere.views.kept import Kept
from belvedere.views.operators import CoreSource, MapSource, UnionSource
from belvedere.views.partition import RecomputeSource
from belvedere.views.source import Source
from belvedere.views.tree import Apply, Core, Map, Recompute, Tree, Union, Whole
from belvedere.views.whole import WholeSource


def source_of(catalog: Catalog, tree: Tree, kept: Kept) -> Source:
    match tree:
        case Core():
            return CoreSource(catalog, tree)
        case Whole():
            return WholeSource(catalog, tree, kept.view)
        case Map():
            return MapSource(catalog, tree, source_of(catalog, tree.input, kept))
        case Union():
            return UnionSource(
                source_of(catalog, tree.left, kept), source_of(catalog, tree.right, kept)
            )
        case Apply():
            rights = [source_of(catalog, right.tree, kept) for right in tree.rights]
            return ApplySource(catalog, tree, source_of(catalog, tree.left, kept), rights, kept)
        case Recompute():
            inputs = [source_of(catalog, one.tree, kept) for one in tree.inputs]
            return RecomputeSource(catalog, tree, inputs, kept)
