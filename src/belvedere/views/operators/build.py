"""The builder of delta operators: a delta tree to the operator that runs it."""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.views.delta.delta_tree import (
    Apply,
    DeltaTree,
    FullRecompute,
    LinearCore,
    Map,
    Recompute,
    Union,
)
from belvedere.views.operators.apply import ApplyOperator
from belvedere.views.operators.auxiliary_readers import AuxiliaryViews
from belvedere.views.operators.full_recompute import FullRecomputeOperator
from belvedere.views.operators.linear import LinearCoreOperator, MapOperator, UnionOperator
from belvedere.views.operators.operator import DeltaOperator
from belvedere.views.operators.recompute import RecomputeOperator


def build_delta_operator(catalog: Catalog, tree: DeltaTree, kept: AuxiliaryViews) -> DeltaOperator:
    match tree:
        case LinearCore():
            return LinearCoreOperator(catalog, tree)
        case FullRecompute():
            return FullRecomputeOperator(catalog, tree, kept.view)
        case Map():
            return MapOperator(catalog, tree, build_delta_operator(catalog, tree.input, kept))
        case Union():
            return UnionOperator(
                build_delta_operator(catalog, tree.left, kept),
                build_delta_operator(catalog, tree.right, kept),
            )
        case Apply():
            rights = [build_delta_operator(catalog, right.tree, kept) for right in tree.rights]
            return ApplyOperator(
                catalog, tree, build_delta_operator(catalog, tree.left, kept), rights, kept
            )
        case Recompute():
            inputs = [build_delta_operator(catalog, one.tree, kept) for one in tree.inputs]
            return RecomputeOperator(catalog, tree, inputs, kept)
