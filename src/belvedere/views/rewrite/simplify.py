"""The forms in which plans are compared: predicates pushed down, sub-queries joined, columns
pruned."""

from __future__ import annotations

from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.fold_constants import fold_nulls
from belvedere.sql.rules.prune_columns import prune_columns
from belvedere.sql.rules.push_predicates import push_predicates
from belvedere.sql.rules.simplify_projects import simplify_projects
from belvedere.sql.rules.subqueries.decorrelate import decorrelate
from belvedere.sql.rules.subqueries.inline_ctes import inline_ctes

_RULES = (
    inline_ctes,
    decorrelate,
    push_predicates,
    simplify_projects,
    prune_columns,
    simplify_projects,
)


def simplify_plan(plan: n.Node, context: OptimizerContext) -> n.Node:
    """The plan as blocks are found in it."""
    for rule in _RULES:
        plan = rule(plan, context)
    return plan


def simplify_whole_plan(plan: n.Node, context: OptimizerContext) -> n.Node:
    """The plan as it is compared with whole definitions. These are simplified before they are
    compiled, and a second pass finds something to do in what the first one has joined: two passes
    give both the same form."""
    for _ in range(2):
        plan = _prune_subplans(simplify_plan(fold_nulls(plan, context), context), context)
    return plan


def _prune_subplans(plan: n.Node, context: OptimizerContext) -> n.Node:
    def prune_subplan(inner: n.Node) -> n.Node:
        return _prune_subplans(prune_columns(inner, context), context)

    return transform.map_subplans(plan, prune_subplan)
