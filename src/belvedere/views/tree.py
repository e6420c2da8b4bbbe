"""A definition as a tree of what its delta is made of.

    Core        linear: selections, projections, inner joins, UNION ALL of tables (`views.core`)
    Map         selections and projections above something that is not a core
    Union       UNION ALL of two trees, one of which is not a core
    Recompute   everything else, by partition: outer, semi and anti joins by join key, aggregates by
                group, windows by partition, DISTINCT and set operations by row, LIMIT as a whole

A Recompute is right for any operator that treats the rows of one key value apart from all others:
its delta is its result over the touched keys now, less the same before. It keeps no state of its
own and costs what the touched partitions hold.

Where an operator's result depends on the order of its input (ties, float sums, string_agg), the
input of a Recompute is sorted by all its columns first, so that the same rows always give the same
result; a LIMIT breaks ties by all columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from belvedere.errors import Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Fields
from belvedere.types import Kind
from belvedere.views.core import Branch, Expressions, branches_of, name_of, refused

_UNSORTABLE = (Kind.JSON, Kind.ARRAY)


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
    """`rebuild` gives the operator over other inputs; `plan` is the operator as it stands."""

    inputs: tuple[Input, ...]
    rebuild: Callable[[tuple[n.Node, ...]], n.Node]
    plan: n.Node


Tree = Core | Map | Union | Recompute


def tree_of(node: n.Node) -> Tree:
    """The tree of a bound plan; Unsupported names what has no delta."""
    try:
        return Core(branches_of(node), node)
    except Unsupported as not_linear:
        match node:
            case n.Sort():
                return tree_of(node.input)
            case n.Filter() | n.Project():
                _require_plain(node, not_linear)
                return Map(tree_of(node.input), node)
            case n.SetOperation(kind=n.SetKind.UNION, all=True):
                return Union(tree_of(node.left), tree_of(node.right), node)
            case n.SetOperation():
                both = tuple(_whole_row(side) for side in (node.left, node.right))
                return Recompute(both, lambda new: transform.with_inputs(node, new), node)
            case n.Join():
                return _join(node)
            case n.Aggregate() | n.Window() | n.Distinct() | n.Limit() | n.TopN():
                return _of_one_input(node)
            case _:
                raise


def inputs_of(tree: Tree) -> tuple[int, ...]:
    """The relations a tree is made of, each once."""
    match tree:
        case Core():
            found = [leaf.relation for branch in tree.branches for leaf in branch.leaves]
        case Map():
            return inputs_of(tree.input)
        case Union():
            found = [*inputs_of(tree.left), *inputs_of(tree.right)]
        case Recompute():
            found = [relation for one in tree.inputs for relation in inputs_of(one.tree)]
    return tuple(dict.fromkeys(found))


def sorted_by_all(node: n.Node) -> n.Node:
    return n.Sort(node, all_keys(node.fields))


def all_keys(fields: Fields) -> tuple[e.SortKey, ...]:
    return tuple(
        e.SortKey(e.Column(i, f.type, f.name))
        for i, f in enumerate(fields)
        if f.type.kind not in _UNSORTABLE
    )


def _join(node: n.Join) -> Recompute:
    if node.lateral:
        raise refused(name_of(node), "its right side depends on each left row")
    if node.residual is not None and transform.has_subplan(node.residual):
        raise refused("sub-query", "a sub-query in a join condition has no delta of its own")
    left = Input(tree_of(node.left), tuple(key.left for key in node.keys))
    right = Input(tree_of(node.right), tuple(key.right for key in node.keys))
    return Recompute((left, right), lambda new: replace(node, left=new[0], right=new[1]), node)


def _of_one_input(
    node: n.Aggregate | n.Window | n.Distinct | n.Limit | n.TopN,
) -> Recompute:
    """Operators of one input, by what they partition it by."""
    below: n.Node = node.input
    keys: Expressions = ()
    total = node
    match node:
        case n.Aggregate(grouping_sets=None):
            keys = node.groups
        case n.Aggregate():
            keys = ()
        case n.Window():
            keys = node.partition
        case n.Distinct():
            keys = node.on if node.on is not None else _columns(node.fields)
        case n.Limit():
            total, below = _total_limit(node)
        case n.TopN():
            total = replace(node, keys=node.keys + all_keys(node.fields))
    one = Input(tree_of(below), keys)
    if isinstance(node, n.Limit | n.Distinct) and isinstance(node.input, n.Sort):
        return Recompute((one,), _above_sort(total), node)
    return Recompute((one,), lambda new: transform.with_inputs(total, new), node)


def _total_limit(node: n.Limit) -> tuple[n.Limit, n.Node]:
    """A LIMIT whose ties are broken, and what stands below its Sort."""
    if not isinstance(node.input, n.Sort):
        raise refused("limit without order by", "any rows would do, so they would change at will")
    if node.with_ties:
        return node, node.input.input
    ordered = replace(node.input, keys=node.input.keys + all_keys(node.fields))
    return replace(node, input=ordered), node.input.input


def _above_sort(node: n.Node) -> Callable[[tuple[n.Node, ...]], n.Node]:
    """Rebuilds an operator that stands on a Sort, over what stands below the Sort."""
    (ordered,) = transform.inputs(node)
    assert isinstance(ordered, n.Sort)
    keys = ordered.keys

    def rebuild(new: tuple[n.Node, ...]) -> n.Node:
        again = n.Sort(new[0], keys + all_keys(new[0].fields))
        return transform.with_inputs(node, (again,))

    return rebuild


def _whole_row(node: n.Node) -> Input:
    return Input(tree_of(node), _columns(node.fields))


def _columns(fields: Fields) -> Expressions:
    return tuple(e.Column(i, f.type, f.name) for i, f in enumerate(fields))


def _require_plain(node: n.Filter | n.Project, error: Unsupported) -> None:
    for expression in transform.own_expressions(node):
        if transform.has_subplan(expression):
            raise error
