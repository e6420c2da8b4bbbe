"""The estimated cost of a batch in each form, from the sizes of what it reads.

Seconds are those of the machine of the constants (`views.cost.cost_model`), except where a method
says that measured ones correct them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from belvedere.catalog.model import View
from belvedere.views.cost import cost_model
from belvedere.views.cost.cost_model import (
    estimate_difference_s,
    estimate_duckdb_columns_s,
    estimate_duckdb_refill_s,
    estimate_python_change_s,
)
from belvedere.views.cost.maintenance_tier import MaintenanceTier
from belvedere.views.cost.measured_costs import CostFactors
from belvedere.views.cost.partition_sizes import (
    estimate_partition_rows,
    recomputes_partitions,
)
from belvedere.views.cost.row_counts import PositionSpan, RowCounts
from belvedere.views.delta.delta_tree import DeltaTree, LinearCore, collect_relations
from belvedere.views.maintain.maintainer import ViewMaintainer

ROWS_MAX = 5_000_000
"""The most table rows that are read for a batch: DuckDB gets them as columns in memory."""

STATE_COUNTED_MAX = 5_000
"""A count of state entries stops here: a view with so many may have as many as its tables rows."""

PARTITION_CHANGES_MIN = 50
"""For fewer changes it is not asked how large the partitions are that they touch."""

DIFFERENCE_CHANGES = tuple(50 << step for step in range(20))
"""The numbers of changes of which it is asked whether a difference is cheaper."""


class BatchEstimates:
    """Estimates of an open store. `rows_max`: relations of more rows together are never read."""

    def __init__(self, row_counts: RowCounts, costs: CostFactors) -> None:
        self.rows_max: float = ROWS_MAX
        self._row_counts = row_counts
        self._costs = costs

    def estimate_row_total(self, relations: Iterable[int], span: PositionSpan) -> float:
        """About how many rows these relations have; infinitely many when they are too many."""
        rows = sum(self._row_counts.estimate_table_rows(relation, span) for relation in relations)
        return rows if rows <= self.rows_max else math.inf

    def estimate_partner_rows(
        self, tree: DeltaTree, others: Iterable[int], span: PositionSpan
    ) -> float:
        """About how many rows of these tables changed ones are joined with."""
        if isinstance(tree, LinearCore) and all(len(one.leaves) == 1 for one in tree.branches):
            return 0
        return self.estimate_row_total(others, span)

    def estimate_python_s(
        self, maintainer: ViewMaintainer, changes: float, span: PositionSpan
    ) -> float:
        """So many changes of a view, by Python."""
        tree = maintainer.tree
        seconds = changes * estimate_python_change_s(tree, grouped=maintainer.is_grouped)
        if changes < PARTITION_CHANGES_MIN or not recomputes_partitions(tree):
            return seconds
        return (
            seconds + self._estimate_touched_rows(tree, changes, span) * cost_model.PARTITION_ROW_S
        )

    def estimate_view_refill_s(
        self, view: View, maintainer: ViewMaintainer, span: PositionSpan
    ) -> float:
        rows = self.estimate_row_total(collect_relations(maintainer.tree), span)
        stored = self._row_counts.estimate_state_entries(view.id)
        if stored >= STATE_COUNTED_MAX:
            stored = max(stored, rows)
        return estimate_duckdb_refill_s(rows, stored)

    def estimate_columns_s(
        self, maintainer: ViewMaintainer, changes: float, others: set[int], span: PositionSpan
    ) -> float:
        """So many changes added up by columns, where `others` are the tables that did not
        change."""
        tree = maintainer.tree
        if maintainer.duckdb_evaluator.uses_difference_plan:
            rows = self.estimate_row_total(collect_relations(tree), span)
            touched = self._estimate_touched_rows(tree, changes, span)
            return estimate_difference_s(changes, touched, rows)
        partners = self.estimate_row_total(others, span) if others else 0
        return estimate_duckdb_columns_s(changes, partners, grouped=maintainer.is_grouped)

    def expect_column_seconds(
        self, view: View, maintainer: ViewMaintainer, seconds: float
    ) -> float:
        """The seconds expected here of a batch by columns that is estimated at so many. A
        difference runs the definition as a refill does: one that was never measured is taken to be
        as far off as that, and not as batches by columns of other views, which are far shorter."""
        way = MaintenanceTier.DUCKDB
        difference = maintainer.duckdb_evaluator.uses_difference_plan
        if difference and not self._costs.is_measured(view.id, way):
            way = MaintenanceTier.REFILL
        return self._costs.scale_to_measured_seconds(view.id, way, seconds)

    def estimate_logged_change_s(self, view: View, maintainer: ViewMaintainer) -> float:
        """A logged change that is decoded in Python, then added up there or by DuckDB, corrected
        by measured costs."""
        expected = self._costs.scale_to_measured_seconds
        grouped, summed = maintainer.is_grouped, maintainer.duckdb_evaluator.can_sum_by_group
        by_python = estimate_python_change_s(maintainer.tree, grouped=grouped)
        by_duckdb = cost_model.ADDED_CHANGE_S if summed else math.inf
        return self._estimate_unmeasured_s(maintainer) + min(
            expected(view.id, MaintenanceTier.PYTHON, by_python),
            expected(view.id, MaintenanceTier.DUCKDB, by_duckdb),
        )

    def estimate_logged_changes_s(
        self, view: View, maintainer: ViewMaintainer, changes: float, span: PositionSpan
    ) -> float:
        """So many of them."""
        if not maintainer.duckdb_evaluator.uses_difference_plan:
            return changes * self.estimate_logged_change_s(view, maintainer)
        seconds = self.estimate_python_s(maintainer, changes, span)
        return changes * self._estimate_unmeasured_s(
            maintainer
        ) + self._costs.scale_to_measured_seconds(view.id, MaintenanceTier.PYTHON, seconds)

    def _estimate_unmeasured_s(self, maintainer: ViewMaintainer) -> float:
        """The seconds before and after what is measured of a change that is decoded."""
        return cost_model.DECODE_S + (0 if maintainer.is_grouped else cost_model.STATE_ROW_S)

    def find_difference_break_even(
        self, view: View, maintainer: ViewMaintainer, span: PositionSpan
    ) -> float:
        """From about how many changes on the difference of the touched partitions is cheaper."""
        for changes in DIFFERENCE_CHANGES:
            seconds = self.estimate_columns_s(maintainer, changes, set(), span)
            by_columns = self.expect_column_seconds(view, maintainer, seconds)
            if by_columns < self.estimate_logged_changes_s(view, maintainer, changes, span):
                return changes
        return math.inf

    def difference_limit_changes(
        self, view: View, maintainer: ViewMaintainer, span: PositionSpan
    ) -> float:
        """From about how many changes on computing the view again is cheaper than the touched
        partitions."""
        expected = self._costs.scale_to_measured_seconds
        whole_s = self.estimate_view_refill_s(view, maintainer, span)
        refill_s = expected(view.id, MaintenanceTier.REFILL, whole_s)
        for changes in DIFFERENCE_CHANGES:
            columns_s = self.estimate_columns_s(maintainer, changes, set(), span)
            if refill_s < min(
                self.expect_column_seconds(view, maintainer, columns_s),
                self.estimate_logged_changes_s(view, maintainer, changes, span),
            ):
                return changes
        return math.inf

    def _estimate_touched_rows(self, tree: DeltaTree, changes: float, span: PositionSpan) -> float:
        rows = sum(
            self._row_counts.estimate_table_rows(one, span) for one in collect_relations(tree)
        )
        return min(rows, changes * estimate_partition_rows(tree, rows, self._row_counts))
