"""What a view costs the writes of a workload.

Counted from the view's delta plan (`views.explain.cost_estimate`), as EXPLAIN does, and multiplied
by the fan-out: one row of a parent table is in as many rows of a view as the view has more rows
than the table. An update of columns that a view does not read costs it nothing, and neither does an
insert into a parent, whose new row has no children yet. A co-located view has one entry for a row,
whatever it joins with.
"""

from __future__ import annotations

from belvedere.advisor.pricing.cost_units import HOT_ENTRY_US, INDEX_US, WRITE_US, CostUnits
from belvedere.advisor.pricing.hypothetical_catalog import HypotheticalCatalog, HypotheticalView
from belvedere.advisor.workload.bound_workload import WorkloadWrite
from belvedere.catalog.catalog import Catalog
from belvedere.views.delta.delta_tree import FullRecompute, collect_read_slots, collect_relations
from belvedere.views.explain.cost_estimate import (
    ChangeCost,
    estimate_change_cost_by_table,
    estimate_own_state_cost,
)


def estimate_plain_write(catalog: Catalog, write: WorkloadWrite) -> float:
    """Microseconds of the write without further views: the row and its indexes."""
    indexes = 0
    for index in catalog.table_indexes(write.relation):
        slots = {part.slot for part in index.parts}
        indexes += write.slots is None or bool(slots & write.slots)
    return WRITE_US + indexes * INDEX_US


def estimate_view_write(
    hypothesis: HypotheticalCatalog, view: HypotheticalView, write: WorkloadWrite, units: CostUnits
) -> float:
    """Microseconds that the view adds to one run of the write."""
    compiled = view.defined.compiled
    if write.relation not in collect_relations(compiled.tree):
        return 0.0
    if write.slots is not None and not isinstance(compiled.tree, FullRecompute):
        if not write.slots & collect_read_slots(compiled.tree, write.relation):
            return 0.0
    cost = _estimate_change(hypothesis, view, write)
    if cost == ChangeCost():
        return 0.0
    table_rows = hypothesis.statistics.row_count(write.relation) or 1.0
    one_entry = write.verb == "insert" or view.options.colocated
    fan_out = 1.0 if one_entry else max(1.0, view.rows / max(table_rows, 1.0))
    scanned = max(
        (hypothesis.statistics.row_count(one) or 0.0 for one in collect_relations(compiled.tree)),
        default=0.0,
    )
    changed = 2.0 if write.verb == "update" and compiled.group is None else 1.0
    hot = _estimate_hot_entry(hypothesis.catalog, view, write)
    return units.convert_change_cost(cost, scanned, fan_out * changed) + hot


def _estimate_hot_entry(catalog: Catalog, view: HypotheticalView, write: WorkloadWrite) -> float:
    """Microseconds of a write for being one of those that change the same group."""
    spread = catalog.table(write.relation).partitions > 1
    if view.defined.compiled.group is None or not spread:
        return 0.0
    return HOT_ENTRY_US / max(view.rows, 1.0)


def _estimate_change(
    hypothesis: HypotheticalCatalog, view: HypotheticalView, write: WorkloadWrite
) -> ChangeCost:
    compiled, catalog = view.defined.compiled, hypothesis.catalog
    if write.verb == "insert":
        found = estimate_change_cost_by_table(catalog, compiled, view.defined.required_indexes)
        return found.get(write.relation, ChangeCost())
    own = estimate_own_state_cost(catalog, compiled, write.relation, comes=False)
    kept = [
        one
        for one in compiled.required_auxiliaries
        if write.relation in collect_relations(one.tree)
    ]
    return own + ChangeCost(gets=len(kept), writes=len(kept))
