"""View expansion for queries: scans of views become plans over their stored state."""

from __future__ import annotations

from functools import partial

from belvedere.catalog.catalog import Catalog
from belvedere.plan import nodes as n
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.push_predicates import push_predicates
from belvedere.views.read.expand_views import expand_views, list_views_read_by_plan
from belvedere.views.registry.view_registry import ViewRegistry


def expand_views_over_state(registry: ViewRegistry, catalog: Catalog, plan: n.Node) -> n.Node:
    """The plan with views replaced by plans over their state."""
    if not catalog.views:
        return plan
    plan = push_predicates_if_colocated(catalog, plan)
    return expand_views(catalog, plan, partial(registry.build_scan_reading_plan, catalog))


def push_predicates_if_colocated(catalog: Catalog, plan: n.Node) -> n.Node:
    """Co-located joins are told what is wanted of them before they become joins."""
    if not any(view.options.colocated for view in catalog.views):
        return plan
    told = any(view.options.colocated for view in list_views_read_by_plan(catalog, plan))
    return push_predicates(plan, OptimizerContext(catalog, STORED_EXPRESSIONS)) if told else plan
