"""The delta tree: a view's definition as operators whose deltas can be computed.

    `LinearCore`         linear: selections, projections, inner joins, UNION ALL of tables
                   (`views.delta.linear_core`)
    `Map`          selections and projections above something that is not a core
    `Union`        UNION ALL of two trees, one of which is not a core
    `Apply`        operators that compute rows from each left row by itself, with the rows of other
                   inputs that match it: left, semi and anti joins, joins of trees, lateral joins,
                   sub-queries
    `Recompute`    everything else, by partition: aggregates by group, windows by partition, set
                   operations by row, LIMIT as one partition
    `FullRecompute`        with `strict = false`, definitions that have no delta

An Apply is linear in its left input, so inserted and deleted left rows cost what they match; from
its other inputs it takes the touched keys, and recomputes the left rows of these keys. A Recompute
recomputes every touched key, over all its inputs. Neither has state of its own.

Where an operator's result depends on the order of its input (ties, string_agg), the input is sorted
by all its columns first, so that the same rows always give the same result; a LIMIT breaks ties by
all columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from belvedere.plan import nodes as n
from belvedere.plan.representation import total_order_keys
from belvedere.views.delta.linear_core import CoreBranch, CoreLeaf, Expressions


@dataclass(frozen=True, slots=True)
class LinearCore:
    branches: tuple[CoreBranch, ...]
    plan: n.Node


@dataclass(frozen=True, slots=True)
class Map:
    input: DeltaTree
    plan: n.Filter | n.Project


@dataclass(frozen=True, slots=True)
class Union:
    left: DeltaTree
    right: DeltaTree
    plan: n.Node


@dataclass(frozen=True, slots=True)
class RecomputeInput:
    """An input of a Recompute, and the expressions over its rows that are the key."""

    tree: DeltaTree
    keys: Expressions


@dataclass(frozen=True, slots=True)
class Recompute:
    """`rebuild` gives the operator over other inputs; `plan` is the operator itself. `key_columns`
    are the columns of the operator's row that are its keys, in the keys' order. Of a window of
    which a filter above keeps no more than the `first_rows` of each partition, the others need not
    be given."""

    inputs: tuple[RecomputeInput, ...]
    rebuild: Callable[[tuple[n.Node, ...]], n.Node]
    plan: n.Node
    key_columns: tuple[int, ...] = ()
    first_rows: int | None = None


@dataclass(frozen=True, slots=True)
class LookupInput:
    """An input that an Apply looks up for its left rows. Rows match when `left_keys`, over the left
    row, equal `keys`, over this input's row; with `null_safe`, NULLs match too. `is_read` is false
    where the operator reads the rows by itself and needs only to know that they changed."""

    tree: DeltaTree
    left_keys: Expressions
    keys: Expressions
    null_safe: bool = False
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class Apply:
    """`rebuild` gives the operator over another left input and other rows of the rights that are
    read. `join` is its kind where it is a plain join."""

    left: DeltaTree
    rights: tuple[LookupInput, ...]
    rebuild: Callable[[n.Node, tuple[n.Node, ...]], n.Node]
    plan: n.Node
    join: n.Join | None = None


@dataclass(frozen=True, slots=True)
class FullRecompute:
    """Recomputed in full whenever one of the relations changes; always the tree's root."""

    plan: n.Node
    relations: tuple[int, ...]


DeltaTree = LinearCore | Map | Union | Apply | Recompute | FullRecompute


def child_trees(tree: DeltaTree) -> tuple[DeltaTree, ...]:
    """The trees a tree is made of, from left to right."""
    match tree:
        case LinearCore() | FullRecompute():
            return ()
        case Map():
            return (tree.input,)
        case Union():
            return (tree.left, tree.right)
        case Apply():
            return (tree.left, *(right.tree for right in tree.rights))
        case Recompute():
            return tuple(one.tree for one in tree.inputs)


def walk_tree(tree: DeltaTree) -> Iterator[DeltaTree]:
    """A tree and all that it is made of, each before its children."""
    yield tree
    for child in child_trees(tree):
        yield from walk_tree(child)


def iterate_core_leaves(tree: DeltaTree) -> Iterator[CoreLeaf]:
    """The leaves of all cores, from left to right."""
    cores = (part for part in walk_tree(tree) if isinstance(part, LinearCore))
    return (leaf for core in cores for branch in core.branches for leaf in branch.leaves)


def collect_relations(tree: DeltaTree) -> tuple[int, ...]:
    """The relations a tree is made of, each once."""
    if isinstance(tree, FullRecompute):
        return tree.relations
    return tuple(
        dict.fromkeys(leaf.relation for leaf in iterate_core_leaves(tree) if not leaf.constant)
    )


def collect_read_slots(tree: DeltaTree, relation: int) -> set[int]:
    """The columns of a table that a tree looks at."""
    leaves = (leaf for leaf in iterate_core_leaves(tree) if leaf.relation == relation)
    return {slot for leaf in leaves for slot in leaf.slots}


def build_sort_by_all_columns(node: n.Node) -> n.Node:
    return n.Sort(node, total_order_keys(node.fields))
