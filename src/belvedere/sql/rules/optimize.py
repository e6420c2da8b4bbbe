"""The optimizer: one ordered tuple of rules, each a function from plan to plan."""

from __future__ import annotations

from belvedere.plan import nodes as n
from belvedere.plan.transform import map_subplans
from belvedere.sql.rules.access.choose_access import choose_access
from belvedere.sql.rules.access.limit_state import limit_state
from belvedere.sql.rules.access.order_by_key import order_by_key
from belvedere.sql.rules.access.seek_min_max import seek_min_max
from belvedere.sql.rules.context import OptimizerContext, Rule
from belvedere.sql.rules.fold_constants import fail_constants, fold_constants
from belvedere.sql.rules.joins.choose_joins import choose_joins
from belvedere.sql.rules.joins.merge_joins import merge_joins
from belvedere.sql.rules.joins.order_joins import order_joins
from belvedere.sql.rules.joins.semi_joins import turn_semi_joins
from belvedere.sql.rules.prune_columns import prune_columns
from belvedere.sql.rules.push_predicates import push_predicates
from belvedere.sql.rules.seek_subqueries import seek_subqueries
from belvedere.sql.rules.simplify_projects import simplify_projects
from belvedere.sql.rules.subqueries.decorrelate import decorrelate
from belvedere.sql.rules.subqueries.inline_ctes import inline_ctes
from belvedere.sql.rules.top_n import top_n

RULES: tuple[Rule, ...] = (
    inline_ctes,
    fold_constants,
    decorrelate,
    push_predicates,
    turn_semi_joins,
    order_joins,
    simplify_projects,
    prune_columns,
    fail_constants,
    simplify_projects,
    choose_access,
    seek_min_max,
    choose_joins,
    order_by_key,
    top_n,
    limit_state,
    merge_joins,
    simplify_projects,
)


def optimize(plan: n.Node, context: OptimizerContext) -> n.Node:
    """The plan improved, then each plan that remains inside its expressions, and what those give to
    the scans around them."""
    for rule in RULES:
        plan = rule(plan, context)
    plan = map_subplans(plan, lambda inner: optimize(inner, context))
    return seek_subqueries(plan, context)
