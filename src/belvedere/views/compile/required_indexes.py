"""The indexes that the maintenance of a view would use if they existed."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.views.compile.auxiliary_views import (
    define_aggregate_auxiliaries,
    define_limit_auxiliary,
    define_set_operation_auxiliaries,
    needs_full_scan_for_keys,
)
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.delta.delta_plan import (
    find_key_restriction_indexes,
    find_term_indexes,
)
from belvedere.views.delta.delta_tree import (
    Apply,
    DeltaTree,
    FullRecompute,
    LinearCore,
    Map,
    Recompute,
    Union,
    child_trees,
)
from belvedere.views.delta.first_rows import match_first_rows_query
from belvedere.views.delta.leaf_lookups import IndexRequirement
from belvedere.views.delta.linear_core import Expressions
from belvedere.views.delta.min_max import find_index_ordered_by, match_min_max_query
from belvedere.views.delta.window_rows import match_window_rows_query


def find_view_required_indexes(
    catalog: Catalog, compiled: MaintenancePlan
) -> tuple[IndexRequirement, ...]:
    """The indexes that would spare the view's maintenance a scan, the shortest for each table and
    set of columns."""
    trees = [compiled.tree, *(one.tree for one in compiled.required_auxiliaries)]
    found = [
        requirement for tree in trees for requirement in find_tree_required_indexes(catalog, tree)
    ]
    return tuple(
        dict.fromkeys(w if w.ordered else IndexRequirement(w.relation, w.slots[:1]) for w in found)
    )


def find_tree_required_indexes(catalog: Catalog, tree: DeltaTree) -> Iterator[IndexRequirement]:
    """Every index that would save a scan of a table, for terms and for touched keys."""
    match tree:
        case LinearCore():
            yield from find_term_indexes(tree.branches, catalog)
        case FullRecompute():
            return
        case Map() | Union():
            for child in child_trees(tree):
                yield from find_tree_required_indexes(catalog, child)
        case Apply():
            yield from find_tree_required_indexes(catalog, tree.left)
            for right in tree.rights:
                yield from find_tree_required_indexes(catalog, right.tree)
                for side, keys in ((right.tree, right.keys), (tree.left, right.left_keys)):
                    if keys and not needs_full_scan_for_keys(side, keys):
                        yield from _find_key_lookup_indexes(catalog, side, keys)
        case Recompute():
            extrema = match_min_max_query(tree)
            for slots in () if extrema is None else extrema.required_index_columns:
                assert extrema is not None
                if find_index_ordered_by(catalog, extrema.relation, slots) is None:
                    yield IndexRequirement(extrema.relation, slots, ordered=True)
            first = match_first_rows_query(catalog, tree)
            if first is not None:
                slots = first.required_index_columns
                if find_index_ordered_by(catalog, first.relation, slots) is None:
                    yield IndexRequirement(first.relation, slots, ordered=True)
            is_window = isinstance(tree.plan, n.Window)
            near = match_window_rows_query(catalog, tree) if is_window else None
            if near is not None:
                if find_index_ordered_by(catalog, near.relation, near.slots) is None:
                    yield IndexRequirement(near.relation, near.slots, ordered=True)
            for one in tree.inputs:
                yield from find_tree_required_indexes(catalog, one.tree)
                if (
                    extrema is None
                    and first is None
                    and near is None
                    and not _is_computed_from_auxiliaries(tree)
                    and not needs_full_scan_for_keys(one.tree, one.keys)
                ):
                    yield from _find_key_lookup_indexes(catalog, one.tree, one.keys)


def _is_computed_from_auxiliaries(tree: Recompute) -> bool:
    """Whether the operator is assembled from auxiliary views, without its input's rows."""
    if isinstance(tree.plan, n.SetOperation):
        return len(define_set_operation_auxiliaries(tree)) == len(tree.inputs)
    return (
        define_aggregate_auxiliaries(tree) is not None or define_limit_auxiliary(tree) is not None
    )


def _find_key_lookup_indexes(
    catalog: Catalog, tree: DeltaTree, keys: Expressions
) -> Iterator[IndexRequirement]:
    """The indexes that would find a tree's rows by these keys: those that the look-up by key of the
    tree's operator (`views.operators.operator`) would use."""
    if not keys:
        return
    match tree:
        case LinearCore():
            yield from find_key_restriction_indexes(tree.branches, keys, catalog)
        case Map(plan=n.Project(expressions=columns)):
            below = tuple(transform.substitute_columns(key, columns) for key in keys)
            yield from _find_key_lookup_indexes(catalog, tree.input, below)
        case Map() | Union():
            for child in child_trees(tree):
                yield from _find_key_lookup_indexes(catalog, child, keys)
        case Apply():
            columns_ = match_plain_column_numbers(keys)
            if columns_ is not None and max(columns_) < len(tree.left.plan.fields):
                yield from _find_key_lookup_indexes(catalog, tree.left, keys)
        case Recompute():
            shared = [c for c in match_plain_column_numbers(keys) or () if c in tree.key_columns]
            for one in tree.inputs:
                some = tuple(one.keys[tree.key_columns.index(c)] for c in shared)
                yield from _find_key_lookup_indexes(catalog, one.tree, some)


def match_plain_column_numbers(keys: Expressions) -> list[int] | None:
    """The index of each key's column; None unless all keys are columns."""
    found = [key.index for key in keys if isinstance(key, e.Column)]
    return found if len(found) == len(keys) else None
