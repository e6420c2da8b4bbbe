"""Statistics of the state of views: what is not sampled comes from the tables they are made of.

A column of a view that is a column of a table has as many different values as that one, at most as
many as the view has rows; their spread is taken to be the table's. A view that does not exist yet
has the number of rows that its definition is estimated to give. So has one whose rows were not
counted but extrapolated from their keys, where the two estimates are near each other: keys that
begin with text are spread unevenly, and sampled tables say more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.column_summary import ColumnSummary
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import estimate_distinct, estimate_rows, find_origin
from belvedere.sql.rules.statistics import Statistics
from belvedere.views.registry.view_registry import ViewRegistry

EXTRAPOLATED_MIN = 6_000.0
"""Fewer rows than these are counted."""

EXTRAPOLATION_ERROR_MAX = 3.0
"""How far the number of rows, extrapolated from the first keys, is off."""


class ViewStatistics:
    """The statistics of `tables`, completed for the views of a catalog."""

    def __init__(
        self,
        tables: Statistics,
        registry: ViewRegistry,
        catalog: Catalog,
        row_counts: Mapping[int, float] | None = None,
    ) -> None:
        """`row_counts` are those of views that do not exist yet."""
        self._tables = tables
        self._registry = registry
        self._catalog = catalog
        self._row_counts = dict(row_counts or {})

    def row_count(self, relation: int) -> float | None:
        if relation not in self._row_counts:
            rows = self._tables.row_count(relation)
            if rows is None or rows <= EXTRAPOLATED_MIN:
                return rows
            self._row_counts[relation] = self._prefer_defined_count(relation, rows)
        return self._row_counts[relation]

    def _prefer_defined_count(self, relation: int, rows: float) -> float:
        """The rows that the definition is estimated to give, unless the keys say otherwise."""
        view = self._catalog.get(relation)
        if not isinstance(view, View):
            return rows
        compiled = self._registry.get_maintenance_plan(self._catalog, view)
        plan = compiled.tree.plan
        if compiled.group is not None:
            plan = n.Aggregate(plan, compiled.group.groups, (), compiled.stored)
        context = OptimizerContext(self._catalog, STORED_EXPRESSIONS, self._tables)
        defined = estimate_rows(plan, context)
        near = rows / EXTRAPOLATION_ERROR_MAX <= defined <= rows * EXTRAPOLATION_ERROR_MAX
        return defined if near else rows

    def distinct_count(self, relation: int, slot: int) -> float | None:
        found = self._find_stored_expression(relation, slot)
        if found is None:
            return self._tables.distinct_count(relation, slot)
        expression, plan = found
        context = OptimizerContext(self._catalog, STORED_EXPRESSIONS, self._tables)
        return estimate_distinct(expression, plan, context)

    def value_range(self, relation: int, slot: int) -> tuple[Any, Any] | None:
        found = self._find_column_origin(relation, slot)
        return None if found is None else self._tables.value_range(*found)

    def column_summary(self, relation: int, slot: int) -> ColumnSummary | None:
        found = self._find_column_origin(relation, slot)
        return None if found is None else self._tables.column_summary(*found)

    def _find_column_origin(self, relation: int, slot: int) -> tuple[int, int] | None:
        """The column of a table that the column is, or comes from unchanged."""
        found = self._find_stored_expression(relation, slot)
        if found is not None:
            return find_origin(*found)
        return None if isinstance(self._catalog.get(relation), View) else (relation, slot)

    def _find_stored_expression(
        self, relation: int, slot: int
    ) -> tuple[e.Expression, n.Node] | None:
        """What a stored column of a view holds, over the plan of the rows that it is made of."""
        view = self._catalog.get(relation)
        if not isinstance(view, View) or slot >= len(view.stored):
            return None
        compiled = self._registry.get_maintenance_plan(self._catalog, view)
        plan = compiled.tree.plan
        if compiled.group is not None:
            return compiled.group.groups[slot], plan
        if len(plan.fields) != len(view.stored):
            return None
        return e.Column(slot, plan.fields[slot].type), plan
