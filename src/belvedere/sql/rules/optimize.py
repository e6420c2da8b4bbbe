"""The optimizer: one ordered tuple of rules, each a function from plan to plan."""

from __future__ import annotations

from belvedere.plan import nodes as n
from belvedere.sql.rules.choose_access import choose_access
from belvedere.sql.rules.choose_joins import choose_joins
from belvedere.sql.rules.context import Context, Rule, everywhere
from belvedere.sql.rules.decorrelate import decorrelate
from belvedere.sql.rules.fold_constants import fold_constants
from belvedere.sql.rules.inline_ctes import inline_ctes
from belvedere.sql.rules.order_by_key import order_by_key
from belvedere.sql.rules.order_joins import order_joins
from belvedere.sql.rules.prune_columns import prune_columns
from belvedere.sql.rules.push_predicates import push_predicates
from belvedere.sql.rules.simplify_projects import simplify_projects
from belvedere.sql.rules.top_n import top_n


def answer_from_view(plan: n.Node, context: Context) -> n.Node:
    """The slot of the rule that replaces parts of a plan by a view that has them."""
    return plan if context.rewrite is None else context.rewrite(plan, context)


RULES: tuple[Rule, ...] = (
    inline_ctes,
    everywhere(fold_constants),
    everywhere(decorrelate),
    everywhere(push_predicates),
    everywhere(answer_from_view),
    everywhere(order_joins),
    everywhere(simplify_projects),
    everywhere(prune_columns),
    everywhere(simplify_projects),
    everywhere(choose_access),
    everywhere(choose_joins),
    everywhere(order_by_key),
    everywhere(top_n),
    everywhere(simplify_projects),
)


def optimize(plan: n.Node, context: Context) -> n.Node:
    for rule in RULES:
        plan = rule(plan, context)
    return plan
