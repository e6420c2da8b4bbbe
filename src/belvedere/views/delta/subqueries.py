"""Sub-queries and lateral joins as an Apply, each with the keys that its rows are looked up by.

A sub-query is split where it is correlated with the outer row:

    (SELECT max(w) FROM b WHERE b.a = t.id AND b.w > t.n)

reads b by b.a = t.id; everything above (here: another condition, max) is evaluated for each outer
row, over the rows of b with that key. Without such an equality every outer row is recomputed when
the sub-query's rows change; where it is correlated in other places too, when any of its tables
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.views.delta.delta_tree import Apply, DeltaTree, LookupInput
from belvedere.views.delta.linear_core import unsupported_construct_error
from belvedere.views.delta.normalize import match_equality_both_ways, normalize_plan

BuildTree = Callable[[n.Node], DeltaTree]
RebuildPlan = Callable[[tuple[n.Node, ...]], n.Node]


class SubqueryLookup(NamedTuple):
    """The inputs that a sub-query looks up, and how to rebuild its plan over other rows of those
    that are read by key."""

    rights: tuple[LookupInput, ...]
    rebuild: RebuildPlan


def build_subquery_apply(node: n.Filter | n.Project, tree_of: BuildTree) -> Apply:
    """The Apply of a selection or projection that has sub-queries."""
    cuts = [_build_subquery_lookup(plan, tree_of) for plan in _collect_subplans(node)]
    rights = tuple(right for cut in cuts for right in cut.rights)

    def rebuild_operator(left: n.Node, given: tuple[n.Node, ...]) -> n.Node:
        plans = _rebuild_subplans(cuts, given)

        def replace_subplans(expression: e.Expression) -> e.Expression:
            new = transform.rebuild_operands(expression, replace_subplans)
            return transform.with_subplan(new, lambda _: next(plans))

        changed = transform.rebuild_expressions(node, replace_subplans)
        return transform.with_inputs(changed, (left,))

    return Apply(tree_of(node.input), rights, rebuild_operator, node)


def build_lateral_apply(node: n.Join, tree_of: BuildTree) -> Apply:
    if node.kind not in (n.JoinKind.INNER, n.JoinKind.LEFT):
        raise unsupported_construct_error(
            f"lateral {node.kind} join", "its right side depends on each left row"
        )
    cut = _build_subquery_lookup(node.right, tree_of)

    def rebuild_join(left: n.Node, given: tuple[n.Node, ...]) -> n.Node:
        return replace(node, left=left, right=cut.rebuild(given))

    return Apply(tree_of(node.left), cut.rights, rebuild_join, node)


def _rebuild_subplans(cuts: list[SubqueryLookup], given: tuple[n.Node, ...]) -> Iterator[n.Node]:
    for cut in cuts:
        count = sum(right.is_read for right in cut.rights)
        yield cut.rebuild(given[:count])
        given = given[count:]


def _collect_subplans(node: n.Filter | n.Project) -> list[n.Node]:
    """The plans of a node's sub-queries, in the order in which they are rebuilt."""
    found: list[n.Node] = []

    def collect_subplan(expression: e.Expression) -> e.Expression:
        transform.rebuild_operands(expression, collect_subplan)
        plan = transform.subplan(expression)
        if plan is not None:
            found.append(plan)
        return expression

    transform.rebuild_expressions(node, collect_subplan)
    return found


def _build_subquery_lookup(plan: n.Node, tree_of: BuildTree) -> SubqueryLookup:
    depths = {depth for depth, _ in transform.outer_references(plan)}
    if depths - {1}:
        raise unsupported_construct_error(
            "sub-query", "it depends on rows further out than the one around it"
        )
    if not depths:
        return SubqueryLookup(
            (LookupInput(tree_of(normalize_plan(_skip_sorts(plan))), (), ()),),
            lambda given: given[0],
        )
    above: list[n.Node] = []
    node = plan
    while not isinstance(node, n.Filter) or not _match_correlated_equalities(node):
        below = transform.inputs(node)
        if len(below) != 1 or has_subqueries(node):
            return _build_keyless_lookup(plan, tree_of)
        above.append(node)
        node = below[0]
    if transform.outer_references(node.input) or has_subqueries(node):
        return _build_keyless_lookup(plan, tree_of)
    ties, (tied, below_it) = _match_correlated_equalities(node), _split_correlated_filter(node)

    def rebuild_subquery(given: tuple[n.Node, ...]) -> n.Node:
        made: n.Node = replace(tied, input=given[0])
        for upper in reversed(above):
            made = transform.with_inputs(upper, (made,))
        return made

    keys = tuple(mine for mine, _ in ties)
    around = tuple(other for _, other in ties)
    return SubqueryLookup(
        (LookupInput(tree_of(normalize_plan(below_it)), around, keys),), rebuild_subquery
    )


def _split_correlated_filter(node: n.Filter) -> tuple[n.Filter, n.Node]:
    """The filter with only its correlated conditions, and its input with the other conditions:
    there they join tables that would otherwise be multiplied."""
    conditions = transform.conjuncts(node.condition)
    own = [one for one in conditions if not transform.has_outer_column(one)]
    rest = transform.conjunction([one for one in conditions if transform.has_outer_column(one)])
    inner = transform.conjunction(own)
    assert rest is not None
    return replace(node, condition=rest), (
        node.input if inner is None else n.Filter(node.input, inner)
    )


def _skip_sorts(plan: n.Node) -> n.Node:
    """The plan without Sorts at its top, where an order has no effect."""
    while isinstance(plan, n.Sort):
        plan = plan.input
    return plan


def _build_keyless_lookup(plan: n.Node, tree_of: BuildTree) -> SubqueryLookup:
    """The lookup of a plan that reads its tables by itself, without keys."""
    found = [one for one in transform.walk_plan(plan) if isinstance(one, n.Scan)]
    scans = {(one.relation, one.slots): one for one in found}
    rights = tuple(
        LookupInput(tree_of(_make_plain_scan(scan)), (), (), is_read=False)
        for scan in scans.values()
    )
    return SubqueryLookup(rights, lambda given: plan)


def _make_plain_scan(scan: n.Scan) -> n.Scan:
    return n.Scan(scan.relation, scan.name, scan.slots, scan.fields)


def has_subqueries(node: n.Node) -> bool:
    return any(map(transform.has_subplan, transform.own_expressions(node)))


def _match_correlated_equalities(node: n.Filter) -> list[tuple[e.Expression, e.Expression]]:
    """Conditions `mine = around`: mine over the input's row, around over the outer row."""
    return [
        (mine, _replace_outer_columns(around))
        for condition in transform.conjuncts(node.condition)
        for mine, around in match_equality_both_ways(condition)
        if transform.columns_of(mine)
        and not transform.has_outer_column(mine)
        and transform.has_outer_column(around)
        and not transform.columns_of(around)
    ]


def _replace_outer_columns(expression: e.Expression) -> e.Expression:
    if isinstance(expression, e.OuterColumn):
        return e.Column(expression.index, expression.type, expression.name)
    return transform.rebuild_operands(expression, _replace_outer_columns)
