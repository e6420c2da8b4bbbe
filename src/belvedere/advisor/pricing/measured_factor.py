"""How the cost of changes, as measured on the views that exist, compares with its estimate."""

from __future__ import annotations

from belvedere.advisor.pricing.cost_units import CostUnits, measure_write_factor
from belvedere.advisor.pricing.host import AdvisedDatabase
from belvedere.catalog.model import View
from belvedere.errors import Error
from belvedere.views.compile.required_indexes import find_view_required_indexes
from belvedere.views.explain.cost_estimate import estimate_change_cost_by_table
from belvedere.views.registry.view_registry import ViewRegistry


def measure_database_factor(database: AdvisedDatabase) -> float:
    """1 where no view exists that has been measured."""
    catalog, units = database.catalog, CostUnits()
    registry = ViewRegistry(database.bind, lambda catalog, relations: ())
    pairs = []
    for id_, measured in database.measured_change_us.items():
        view = catalog.get(id_)
        if not isinstance(view, View):
            continue
        try:
            compiled = registry.get_maintenance_plan(catalog, view)
        except Error:
            continue  # such a view is not readable either, and says so to its readers
        required = find_view_required_indexes(catalog, compiled)
        costs = estimate_change_cost_by_table(catalog, compiled, required).values()
        estimates = [us for cost in costs if (us := units.convert_change_cost(cost, 0.0, 1.0))]
        if estimates:
            pairs.append((sum(estimates) / len(estimates), measured))
    return measure_write_factor(pairs)
