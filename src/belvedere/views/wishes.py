"""The indexes that the maintenance of a view would use if they existed."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.views.auxiliary import blind, counts_of, ordered_rows, parts_of
from belvedere.views.compile import Compiled
from belvedere.views.core import Expressions
from belvedere.views.delta import Wish, restricted_wishes, terms_of
from belvedere.views.extremum import extrema_of, serving_index
from belvedere.views.operators import only_columns
from belvedere.views.tree import Apply, Core, Map, Recompute, Tree, Union, Whole, children


def required_indexes(catalog: Catalog, compiled: Compiled) -> tuple[Wish, ...]:
    """The indexes that would spare the view's maintenance a scan, the shortest for each table and
    set of columns."""
    trees = [compiled.tree, *(one.tree for one in compiled.auxiliaries)]
    found = [wish for tree in trees for wish in wishes_of(catalog, tree)]
    return tuple(dict.fromkeys(w if w.ordered else Wish(w.relation, w.slots[:1]) for w in found))


def wishes_of(catalog: Catalog, tree: Tree) -> Iterator[Wish]:
    """Every index that would save a scan of a table, for terms and for touched keys."""
    match tree:
        case Core():
            yield from terms_of(tree.branches, tree.plan.fields, catalog)[1]
        case Whole():
            return
        case Map() | Union():
            for child in children(tree):
                yield from wishes_of(catalog, child)
        case Apply():
            yield from wishes_of(catalog, tree.left)
            for right in tree.rights:
                yield from wishes_of(catalog, right.tree)
                for side, keys in ((right.tree, right.keys), (tree.left, right.left_keys)):
                    if keys and not blind(side, keys):
                        yield from _by_key(catalog, side, keys)
        case Recompute():
            extrema = extrema_of(tree)
            for slots in () if extrema is None else extrema.indexes:
                assert extrema is not None
                if serving_index(catalog, extrema.relation, slots) is None:
                    yield Wish(extrema.relation, slots, ordered=True)
            for one in tree.inputs:
                yield from wishes_of(catalog, one.tree)
                if extrema is None and not _assembled(tree) and not blind(one.tree, one.keys):
                    yield from _by_key(catalog, one.tree, one.keys)


def _assembled(tree: Recompute) -> bool:
    """Whether the operator is assembled from auxiliary views, without its input's rows."""
    if isinstance(tree.plan, n.SetOperation):
        return len(counts_of(tree)) == len(tree.inputs)
    return parts_of(tree) is not None or ordered_rows(tree) is not None


def _by_key(catalog: Catalog, tree: Tree, keys: Expressions) -> Iterator[Wish]:
    """The indexes that would find a tree's rows by these keys: those that the look-up by key of the
    tree's operator (`views.source`) would use."""
    if not keys:
        return
    match tree:
        case Core():
            yield from restricted_wishes(tree.branches, tree.plan.fields, keys, catalog)
        case Map(plan=n.Project(expressions=columns)):
            below = tuple(transform.map_columns(k, lambda c: columns[c.index]) for k in keys)
            yield from _by_key(catalog, tree.input, below)
        case Map() | Union():
            for child in children(tree):
                yield from _by_key(catalog, child, keys)
        case Apply():
            columns_ = only_columns(keys)
            if columns_ is not None and max(columns_) < len(tree.left.plan.fields):
                yield from _by_key(catalog, tree.left, keys)
        case Recompute():
            shared = [c for c in only_columns(keys) or () if c in tree.passed]
            for one in tree.inputs:
                some = tuple(one.keys[tree.passed.index(c)] for c in shared)
                yield from _by_key(catalog, one.tree, some)
