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
from belvedere.views.core import refused
from belvedere.views.normal import equal_sides, normalise
from belvedere.views.tree import Apply, Right, Tree

TreeOf = Callable[[n.Node], Tree]
Rebuild = Callable[[tuple[n.Node, ...]], n.Node]


class Cut(NamedTuple):
    """The inputs that a sub-query looks up, and how to rebuild its plan over other rows of those
    that are read by key."""

    rights: tuple[Right, ...]
    rebuild: Rebuild


def applied(node: n.Filter | n.Project, tree_of: TreeOf) -> Apply:
    """The Apply of a selection or projection that has sub-queries."""
    cuts = [_cut(plan, tree_of) for plan in _plans(node)]
    rights = tuple(right for cut in cuts for right in cut.rights)

    def rebuild(left: n.Node, given: tuple[n.Node, ...]) -> n.Node:
        plans = _rebuilt(cuts, given)

        def put(expression: e.Expression) -> e.Expression:
            new = transform.rebuild(expression, put)
            return transform.with_subplan(new, lambda _: next(plans))

        changed = transform.rebuild_expressions(node, put)
        return transform.with_inputs(changed, (left,))

    return Apply(tree_of(node.input), rights, rebuild, node)


def lateral(node: n.Join, tree_of: TreeOf) -> Apply:
    if node.kind not in (n.JoinKind.INNER, n.JoinKind.LEFT):
        raise refused(f"lateral {node.kind} join", "its right side depends on each left row")
    cut = _cut(node.right, tree_of)

    def rebuild(left: n.Node, given: tuple[n.Node, ...]) -> n.Node:
        return replace(node, left=left, right=cut.rebuild(given))

    return Apply(tree_of(node.left), cut.rights, rebuild, node)


def _rebuilt(cuts: list[Cut], given: tuple[n.Node, ...]) -> Iterator[n.Node]:
    for cut in cuts:
        count = sum(right.read for right in cut.rights)
        yield cut.rebuild(given[:count])
        given = given[count:]


def _plans(node: n.Filter | n.Project) -> list[n.Node]:
    """The plans of a node's sub-queries, in the order in which they are rebuilt."""
    found: list[n.Node] = []

    def see(expression: e.Expression) -> e.Expression:
        transform.rebuild(expression, see)
        plan = transform.subplan(expression)
        if plan is not None:
            found.append(plan)
        return expression

    transform.rebuild_expressions(node, see)
    return found


def _cut(plan: n.Node, tree_of: TreeOf) -> Cut:
    depths = {depth for depth, _ in transform.outer_references(plan)}
    if depths - {1}:
        raise refused("sub-query", "it depends on rows further out than the one around it")
    if not depths:
        return Cut((Right(tree_of(normalise(_ordered(plan))), (), ()),), lambda given: given[0])
    above: list[n.Node] = []
    node = plan
    while not isinstance(node, n.Filter) or not _ties(node):
        below = transform.inputs(node)
        if len(below) != 1 or _has_subqueries(node):
            return _uncut(plan, tree_of)
        above.append(node)
        node = below[0]
    if transform.outer_references(node.input) or _has_subqueries(node):
        return _uncut(plan, tree_of)
    ties, (tied, below_it) = _ties(node), _split(node)

    def rebuild(given: tuple[n.Node, ...]) -> n.Node:
        made: n.Node = replace(tied, input=given[0])
        for upper in reversed(above):
            made = transform.with_inputs(upper, (made,))
        return made

    keys = tuple(mine for mine, _ in ties)
    around = tuple(other for _, other in ties)
    return Cut((Right(tree_of(normalise(below_it)), around, keys),), rebuild)


def _split(node: n.Filter) -> tuple[n.Filter, n.Node]:
    """The filter with only its correlated conditions, and its input with the other conditions:
    there they join tables that would otherwise be multiplied."""
    conditions = transform.conjuncts(node.condition)
    own = [one for one in conditions if not transform.has_outer(one)]
    rest = transform.conjunction([one for one in conditions if transform.has_outer(one)])
    inner = transform.conjunction(own)
    assert rest is not None
    return replace(node, condition=rest), (
        node.input if inner is None else n.Filter(node.input, inner)
    )


def _ordered(plan: n.Node) -> n.Node:
    """The plan without Sorts at its top, where an order has no effect."""
    while isinstance(plan, n.Sort):
        plan = plan.input
    return plan


def _uncut(plan: n.Node, tree_of: TreeOf) -> Cut:
    """The lookup of a plan that reads its tables by itself, without keys."""
    found = [one for one in transform.walk(plan) if isinstance(one, n.Scan)]
    scans = {(one.relation, one.slots): one for one in found}
    rights = tuple(Right(tree_of(_bare(scan)), (), (), read=False) for scan in scans.values())
    return Cut(rights, lambda given: plan)


def _bare(scan: n.Scan) -> n.Scan:
    return n.Scan(scan.relation, scan.name, scan.slots, scan.fields)


def _has_subqueries(node: n.Node) -> bool:
    return any(map(transform.has_subplan, transform.own_expressions(node)))


def _ties(node: n.Filter) -> list[tuple[e.Expression, e.Expression]]:
    """Conditions `mine = around`: mine over the input's row, around over the outer row."""
    return [
        (mine, _closer(around))
        for condition in transform.conjuncts(node.condition)
        for mine, around in equal_sides(condition)
        if transform.columns_of(mine)
        and not transform.has_outer(mine)
        and transform.has_outer(around)
        and not transform.columns_of(around)
    ]


def _closer(expression: e.Expression) -> e.Expression:
    if isinstance(expression, e.OuterColumn):
        return e.Column(expression.index, expression.type, expression.name)
    return transform.rebuild(expression, _closer)
