"""The delta tree: a view's definition as operators whose deltas can be computed.

    `Core`         linear: selections, projections, inner joins, UNION ALL of tables
                   (`views.core`)
    `Map`          selections and projections above something that is not a core
    `Union`        UNION ALL of two trees, one of which is not a core
    `Apply`        operators that compute rows from each left row by itself, with the rows of other
                   inputs that match it: left, semi and anti joins, joins of trees, lateral joins,
                   sub-queries
    `Recompute`    everything else, by partition: aggregates by group, windows by partition, set
                   operations by row, LIMIT as one partition
    `Whole`        with `strict = false`, definitions that have no delta

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
from belvedere.plan.looks import total_keys
from belvedere.views.core import Branch, Expressions, Leaf


@dataclass(frozen=True, slots=True)
class Core:
    branches: tuple[Branch, ...]
    plan: n.Node


@dataclass(frozen=True, slots=True)
class Map:
    input: Tree
    plan: n.Filter | n.Project


@dataclass(frozen=True, slots=True)
class Union:
    left: Tree
    right: Tree
    plan: n.Node


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a Recompute, and the expressions over its rows that are the key."""

    tree: Tree
    keys: Expressions


@dataclass(frozen=True, slots=True)
class Recompute:
    """`rebuild` gives the operator over other inputs; `plan` is the operator itself. `passed` are
    the columns of the operator's row that are its keys, in the keys' order."""

    inputs: tuple[Input, ...]
    rebuild: Callable[[tuple[n.Node, ...]], n.Node]
    plan: n.Node
    passed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Right:
    """An input that an Apply looks up for its left rows. Rows match when `left_keys`, over the left
    row, equal `keys`, over this input's row; with `null_safe`, NULLs match too. `read` is false
    where the operator reads the rows by itself and needs only to know that they changed."""

    tree: Tree
    left_keys: Expressions
    keys: Expressions
    null_safe: bool = False
    read: bool = True


@dataclass(frozen=True, slots=True)
class Apply:
    """`rebuild` gives the operator over another left input and other rows of the rights that are
    read. `join` is its kind where it is a plain join."""

    left: Tree
    rights: tuple[Right, ...]
    rebuild: Callable[[n.Node, tuple[n.Node, ...]], n.Node]
    plan: n.Node
    join: n.Join | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """Recomputed in full whenever one of the relations changes; always the tree's root."""

    plan: n.Node
    relations: tuple[int, ...]


Tree = Core | Map | Union | Apply | Recompute | Whole


def children(tree: Tree) -> tuple[Tree, ...]:
    """The trees a tree is made of, from left to right."""
    match tree:
        case Core() | Whole():
            return ()
        case Map():
            return (tree.input,)
        case Union():
            return (tree.left, tree.right)
        case Apply():
            return (tree.left, *(right.tree for right in tree.rights))
        case Recompute():
            return tuple(one.tree for one in tree.inputs)


def walk_tree(tree: Tree) -> Iterator[Tree]:
    """A tree and all that it is made of, each before its children."""
    yield tree
    for child in children(tree):
        yield from walk_tree(child)


def leaves_of(tree: Tree) -> Iterator[Leaf]:
    """The leaves of all cores, from left to right."""
    cores = (part for part in walk_tree(tree) if isinstance(part, Core))
    return (leaf for core in cores for branch in core.branches for leaf in branch.leaves)


def inputs_of(tree: Tree) -> tuple[int, ...]:
    """The relations a tree is made of, each once."""
    if isinstance(tree, Whole):
        return tree.relations
    return tuple(dict.fromkeys(leaf.relation for leaf in leaves_of(tree) if not leaf.constant))


def slots_of(tree: Tree, relation: int) -> set[int]:
    """The columns of a table that a tree looks at."""
    leaves = (leaf for leaf in leaves_of(tree) if leaf.relation == relation)
    return {slot for leaf in leaves for slot in leaf.slots}


def sorted_by_all(node: n.Node) -> n.Node:
    return n.Sort(node, total_keys(node.fields))
