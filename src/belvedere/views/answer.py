"""The joint for answering queries from views: rules from plan to plan.

A rule gets a bound plan, as the query was written, and the catalog. It gives the plan back, or one
that means the same and reads materialized views by their ids, as a query that names them would. It
runs before anything looks at which views a plan reads, so a view that a rule put in is as fresh as
the reader asks, is explained, and is verified like one that the query named.

Rules come from outside (`Shared.answering`); without any a plan is what it was. A rule must keep
the columns, their names and types: another plan is a fault of the rule, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from belvedere.catalog.catalog import Catalog
from belvedere.errors import Unavailable
from belvedere.plan import nodes as n

Rule = Callable[[n.Node, Catalog], n.Node]


def answered(plan: n.Node, catalog: Catalog, rules: Sequence[Rule]) -> n.Node:
    """The plan after every rule, in their order."""
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
