"""View expansion: a plan that names views becomes one over their state, or over their tables.

`expand_views` replaces every scan of a view. For a query the replacement is the view's reading
plan, over its stored rows. In the definition of a view it is the definition of the view that is
named, so that every view is maintained from base tables and a diamond of views sees each change
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ObjectState, View
from belvedere.catalog.view_options import Backfill
from belvedere.errors import Unavailable
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform

PlanOf = Callable[[View, n.Scan], n.Node]
"""A plan whose fields are the view's columns. The scan tells what is needed: columns and rows that
it leaves out need not be produced, but may be."""


def list_views_read_by_plan(catalog: Catalog, plan: n.Node) -> tuple[View, ...]:
    """The materialized views a plan reads, each once."""
    scans = [node.relation for node in transform.walk_plan(plan) if isinstance(node, n.Scan)]
    found = map(catalog.get, dict.fromkeys(scans))
    return tuple([view for view in found if isinstance(view, View)])


def expand_views(
    catalog: Catalog, plan: n.Node, plan_of: PlanOf, *, reads_state: bool = True
) -> n.Node:
    """The plan with every scan of a view replaced by `plan_of(view, scan)`. `reads_state`: these
    plans read the state of views, which must be there."""

    def expand_scan(scan: n.Scan) -> n.Node:
        view = catalog.get(scan.relation)
        if not isinstance(view, View):
            return scan
        if reads_state:
            require_readable_view(view)
        return _project_to_scan_columns(scan, _set_state_scan_name(plan_of(view, scan), view))

    return transform.rewrite_nodes(plan, n.Scan, expand_scan, subplans=True)


def expand_views_by_id(plan: n.Node, plans: Mapping[int, n.Node]) -> n.Node:
    """The plan with the scans of these views replaced; by id, plans of the views' columns."""

    def expand_scan(scan: n.Scan) -> n.Node:
        if scan.relation not in plans:
            return scan
        return _project_to_scan_columns(scan, plans[scan.relation])

    return transform.rewrite_nodes(plan, n.Scan, expand_scan, subplans=True)


def _set_state_scan_name(plan: n.Node, view: View) -> n.Node:
    """The plan with the view's own name at the scan of its state, for display."""
    if isinstance(plan, n.Scan) and plan.relation == view.id:
        return replace(plan, name=view.name)
    return transform.rebuild_inputs(plan, lambda one: _set_state_scan_name(one, view))


def require_readable_view(view: View) -> None:
    if view.state is not ObjectState.READY:
        raise Unavailable(
            "view cannot be read in its present state",
            sqlstate="55000",
            hint="fill it with `belvedere pipeline backfill`"
            if view.options.backfill is Backfill.LATER
            else "it is being filled: try again when it is ready (belvedere.views)",
            name=view.name,
            state=view.state.value,
        )


def _project_to_scan_columns(scan: n.Scan, plan: n.Node) -> n.Node:
    """The view's rows, projected to the scan's columns, with its condition."""
    columns = tuple(
        e.Column(slot, field.type, field.name)
        for slot, field in zip(scan.slots, scan.fields, strict=True)
    )
    node: n.Node = n.Project(plan, columns, scan.fields)
    return node if scan.filter is None else n.Filter(node, scan.filter)
