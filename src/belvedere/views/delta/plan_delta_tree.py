"""The planner of delta trees: a normalized plan (`views.delta.normalize`) to its tree
(`views.delta.delta_tree`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from belvedere.errors import Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.representation import column_sort_keys
from belvedere.views.delta import subqueries
from belvedere.views.delta.delta_tree import (
    Apply,
    DeltaTree,
    LinearCore,
    LookupInput,
    Map,
    Recompute,
    RecomputeInput,
    Union,
)
from belvedere.views.delta.linear_core import (
    Expressions,
    describe_node,
    flatten_to_branches,
    unsupported_construct_error,
)
from belvedere.views.delta.normalize import output_columns
from belvedere.views.delta.window_rows import find_first_rows_filter


def build_delta_tree(node: n.Node) -> DeltaTree:
    """The tree of a normalized plan (`views.delta.normalize`); Unsupported names what has no
    delta."""
    try:
        return LinearCore(flatten_to_branches(node), node)
    except Unsupported as not_linear:
        match node:
            case n.Sort():
                return build_delta_tree(node.input)
            case n.Filter() | n.Project():
                return _build_map_or_apply(node)
            case n.SetOperation(kind=n.SetKind.UNION, all=True):
                return Union(build_delta_tree(node.left), build_delta_tree(node.right), node)
            case n.SetOperation():
                both = tuple(
                    RecomputeInput(build_delta_tree(side), output_columns(side))
                    for side in (node.left, node.right)
                )
                passed = tuple(range(len(node.fields)))
                rebuild = lambda new: transform.with_inputs(node, new)  # noqa: E731
                return Recompute(both, rebuild, node, passed)
            case n.Join():
                return _build_join_apply(node)
            case n.Aggregate() | n.Window() | n.Distinct() | n.Limit() | n.TopN():
                return _build_recompute(node)
            case _:
                raise not_linear


# -- of each left row ------------------------------------------------------------------------------


def _build_map_or_apply(node: n.Filter | n.Project) -> Map | Apply:
    if subqueries.has_subqueries(node):
        return subqueries.build_subquery_apply(node, build_delta_tree)
    below = build_delta_tree(node.input)
    if isinstance(node, n.Filter) and isinstance(below, Recompute):
        below = replace(below, first_rows=find_first_rows_filter(node))
    return Map(below, node)


def _build_join_apply(node: n.Join) -> Apply:
    if node.residual is not None and transform.has_subplan(node.residual):
        raise unsupported_construct_error(
            "sub-query", "a sub-query in the condition of an outer join"
        )
    if node.lateral:
        return subqueries.build_lateral_apply(node, build_delta_tree)
    null_safe = any(key.null_safe for key in node.keys)
    if null_safe and not all(key.null_safe for key in node.keys):
        raise unsupported_construct_error(
            describe_node(node), "some of its keys match NULLs and some do not"
        )
    right = LookupInput(
        build_delta_tree(node.right),
        tuple(key.left for key in node.keys),
        tuple(key.right for key in node.keys),
        null_safe,
    )

    def rebuild_join(left: n.Node, rights: tuple[n.Node, ...]) -> n.Node:
        return replace(node, left=left, right=rights[0])

    return Apply(build_delta_tree(node.left), (right,), rebuild_join, node, node)


# -- by partition ----------------------------------------------------------------------------------


def _build_recompute(
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
            total, below = _split_sorted_limit(node)
        case n.TopN():
            total = replace(node, keys=node.keys + column_sort_keys(node.fields))
    one = RecomputeInput(build_delta_tree(below), keys)
    if isinstance(node, n.Limit | n.Distinct) and isinstance(node.input, n.Sort):
        return Recompute((one,), _make_rebuild_above_sort(total), node, passed)
    return Recompute((one,), lambda new: transform.with_inputs(total, new), node, passed)


def _split_sorted_limit(node: n.Limit) -> tuple[n.Limit, n.Node]:
    """A LIMIT that has a Sort, and the input of that Sort."""
    if not isinstance(node.input, n.Sort):
        raise unsupported_construct_error(
            "limit without order by", "any rows would do, so they would change at will"
        )
    return node, node.input.input


def _make_rebuild_above_sort(node: n.Node) -> Callable[[tuple[n.Node, ...]], n.Node]:
    """How to rebuild an operator whose input is a Sort, over another input of that Sort."""
    (ordered,) = transform.inputs(node)
    assert isinstance(ordered, n.Sort)
    with_ties = isinstance(node, n.Limit) and node.with_ties
    keys = ordered.keys if with_ties else ordered.keys + column_sort_keys(ordered.fields)

    def rebuild_operator(new: tuple[n.Node, ...]) -> n.Node:
        again = n.Sort(new[0], keys)
        return transform.with_inputs(node, (again,))

    return rebuild_operator
