"""The planner of delta trees: a normalized plan (`views.normal`) to its tree (`views.tree`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from belvedere.errors import Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.looks import all_keys
from belvedere.views import subqueries
from belvedere.views.core import Expressions, branches_of, name_of, refused
from belvedere.views.normal import columns_of
from belvedere.views.tree import Apply, Core, Input, Map, Recompute, Right, Tree, Union


def tree_of(node: n.Node) -> Tree:
    """The tree of a normalized plan (`views.normal`); Unsupported names what has no delta."""
    try:
        return Core(branches_of(node), node)
    except Unsupported as not_linear:
        match node:
            case n.Sort():
                return tree_of(node.input)
            case n.Filter() | n.Project():
                return _mapped(node)
            case n.SetOperation(kind=n.SetKind.UNION, all=True):
                return Union(tree_of(node.left), tree_of(node.right), node)
            case n.SetOperation():
                both = tuple(
                    Input(tree_of(side), columns_of(side)) for side in (node.left, node.right)
                )
                passed = tuple(range(len(node.fields)))
                rebuild = lambda new: transform.with_inputs(node, new)  # noqa: E731
                return Recompute(both, rebuild, node, passed)
            case n.Join():
                return _join(node)
            case n.Aggregate() | n.Window() | n.Distinct() | n.Limit() | n.TopN():
                return _of_one_input(node)
            case _:
                raise not_linear


# -- of each left row ------------------------------------------------------------------------------


def _mapped(node: n.Filter | n.Project) -> Map | Apply:
    if any(map(transform.has_subplan, transform.own_expressions(node))):
        return subqueries.applied(node, tree_of)
    return Map(tree_of(node.input), node)


def _join(node: n.Join) -> Apply:
    if node.residual is not None and transform.has_subplan(node.residual):
        raise refused("sub-query", "a sub-query in the condition of an outer join")
    if node.lateral:
        return subqueries.lateral(node, tree_of)
    null_safe = any(key.null_safe for key in node.keys)
    if null_safe and not all(key.null_safe for key in node.keys):
        raise refused(name_of(node), "some of its keys match NULLs and some do not")
    right = Right(
        tree_of(node.right),
        tuple(key.left for key in node.keys),
        tuple(key.right for key in node.keys),
        null_safe,
    )

    def rebuild(left: n.Node, rights: tuple[n.Node, ...]) -> n.Node:
        return replace(node, left=left, right=rights[0])

    return Apply(tree_of(node.left), (right,), rebuild, node, node)


# -- by partition ----------------------------------------------------------------------------------


def _of_one_input(
    node: n.Aggregate | n.Window | n.Distinct | n.Limit | n.TopN,
) -> Recompute:
    """The Recompute of an operator of one input, with the keys that partition this input."""
    below: n.Node = node.input
    keys: Expressions = ()
    passed: tuple[int, ...] = ()
    total = node
    match node:
        case n.Aggregate(grouping_sets=None):
            keys, passed = node.groups, tuple(range(len(node.groups)))
        case n.Aggregate():
            pass
        case n.Window():
            keys = node.partition
            passed = tuple(k.index if isinstance(k, e.Column) else -1 for k in keys)
        case n.Distinct():
            keys = node.on or ()
            passed = tuple(k.index if isinstance(k, e.Column) else -1 for k in keys)
            below = below.input if isinstance(below, n.Sort) else below
        case n.Limit():
            total, below = _total_limit(node)
        case n.TopN():
            total = replace(node, keys=node.keys + all_keys(node.fields))
    one = Input(tree_of(below), keys)
    if isinstance(node, n.Limit | n.Distinct) and isinstance(node.input, n.Sort):
        return Recompute((one,), _above_sort(total), node, passed)
    return Recompute((one,), lambda new: transform.with_inputs(total, new), node, passed)


def _total_limit(node: n.Limit) -> tuple[n.Limit, n.Node]:
    """A LIMIT that has a Sort, and the input of that Sort."""
    if not isinstance(node.input, n.Sort):
        raise refused("limit without order by", "any rows would do, so they would change at will")
    return node, node.input.input


def _above_sort(node: n.Node) -> Callable[[tuple[n.Node, ...]], n.Node]:
    """How to rebuild an operator whose input is a Sort, over another input of that Sort."""
    (ordered,) = transform.inputs(node)
    assert isinstance(ordered, n.Sort)
    with_ties = isinstance(node, n.Limit) and node.with_ties
    keys = ordered.keys if with_ties else ordered.keys + all_keys(ordered.fields)

    def rebuild(new: tuple[n.Node, ...]) -> n.Node:
        again = n.Sort(new[0], keys)
        return transform.with_inputs(node, (again,))

    return rebuild
