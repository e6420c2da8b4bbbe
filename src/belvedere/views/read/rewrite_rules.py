"""Query rewriting: rules from plan to plan by which materialized views answer queries.

A rule gets a bound plan, as the query was written, and the catalog. It returns the plan, or an
equivalent one that reads materialized views by their ids, as a query that names them would. Rules
run before anything examines which views a plan reads, so a view that a rule put in is as fresh as
the reader asks, is explained, and is verified like one that the query named.

Rules are registered from outside (`SharedState.rewrite_rules`); without any a plan stays the same.
A rule must keep the columns, their names and types: another plan is an error of the rule, and is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from belvedere.catalog.catalog import Catalog
from belvedere.errors import Unavailable
from belvedere.plan import nodes as n

RewriteRule = Callable[[n.Node, Catalog], n.Node]


def apply_rewrite_rules(plan: n.Node, catalog: Catalog, rules: Sequence[RewriteRule]) -> n.Node:
    """Apply the rules to the plan, in their order."""
    for rule in rules:
        made = rule(plan, catalog)
        if made.fields != plan.fields:
            raise Unavailable(
                "a rule answers a query with other columns",
                sqlstate="XX000",
                rule=getattr(rule, "__name__", "rule"),
            )
        plan = made
    return plan
