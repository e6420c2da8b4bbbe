"""The choice of the tier that computes a batch of a deferred view: Python or DuckDB.

Sizes decide. A change costs Python microseconds and nothing else; DuckDB
(`views.maintain.duckdb_batch`) takes some milliseconds for a statement and next to nothing for a
row:

    python    changes x the cost of one, by the kind of the view
    duckdb    by columns from the log to the written entry, where all views of a batch allow it: a
              statement, and the rows of the tables that changed ones are joined with, or of the
              partitions that they touch; else a statement for old rows and one for new ones,
              decoded in Python
    refill    a statement, the rows of all the view's tables, and its stored state, replaced unread
              where ranges can be emptied; the log is not decoded where all views are refilled

The cheapest is taken (`views.cost.cost_model`), corrected by the batches measured on the store
(`views.cost.measured_costs`). `SET maintenance_tier` requests one of them, which is taken where it
is possible: EXPLAIN, and after a batch `belvedere.views`, show the tier of a view and the reason.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from belvedere.catalog.model import View
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.run import Interrupt, make_statement_interrupt
from belvedere.txn.contracts import Reader, RowChange
from belvedere.views.cost import cost_model
from belvedere.views.cost.batch_estimates import (
    DIFFERENCE_CHANGES,
    PARTITION_CHANGES_MIN,
    ROWS_MAX,
    STATE_COUNTED_MAX,
    BatchEstimates,
)
from belvedere.views.cost.cost_model import (
    ADDED_CHANGE_S,
    estimate_column_change_s,
    estimate_duckdb_refill_s,
    estimate_duckdb_sums_s,
    estimate_family_s,
    estimate_python_change_s,
)
from belvedere.views.cost.maintenance_tier import MaintenanceTier
from belvedere.views.cost.measured_costs import CostFactors, start_timer
from belvedere.views.cost.partition_sizes import recomputes_partitions
from belvedere.views.cost.row_counts import PositionSpan, RowCounts
from belvedere.views.delta.delta_tree import collect_relations
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.maintain.state_entries import StateEntries
from belvedere.views.maintain.view_family import ViewFamily
from belvedere.views.state.additions import (
    AdditionRecorder,
    compute_correcting_additions,
)

COLUMN_CHANGES_MIN, FAMILY_CHANGES_MIN = 1_000, 200
"""Fewer changes are not added up by columns, for one view and for several together."""

CHANGES_MIN, PYTHON_S_MAX = 5_000, 0.1
"""Fewer changes are computed in Python, without estimating costs, where they are expected to take
less than so many seconds."""

BACKFILL_ROWS_MIN = 50_000
"""A view of fewer table rows is filled in Python."""

NOT_OPEN = "DuckDB is not open"


class TierChoice(NamedTuple):
    """The tier chosen for a batch. `seconds` is its expected time on the machine of the
    constants."""

    tier: MaintenanceTier
    reason: str
    seconds: float = 0.0


class TierSelector:
    """Chooses and runs tiers for an open store. Knows the DuckDB engine, once one is attached;
    estimated row counts of relations; and the tier that was set (None: the cheapest)."""

    def __init__(self) -> None:
        self.engine: DuckEngine | None = None
        self.row_counts = RowCounts()
        self._requested_tier: MaintenanceTier | None = None
        self.costs = CostFactors()
        self.counts_waits = False  # of a remote store, for which they are the cost
        self.replaces_state = False  # by a store that empties a range as part of a batch
        self.estimates = BatchEstimates(self.row_counts, self.costs)
        self.families: dict[tuple[ViewMaintainer, ...], ViewFamily] = {}
        self._users = 0
        self._unused = threading.Condition()

    @property
    def requested_tier(self) -> MaintenanceTier | None:
        return self._requested_tier

    @requested_tier.setter
    def requested_tier(self, tier: MaintenanceTier | None) -> None:
        self._requested_tier = tier
        self.estimates.rows_max = ROWS_MAX if tier is None else math.inf

    def attach_duckdb(
        self,
        engine: DuckEngine,
        rows_of: Callable[[int], float],
        distinct_of: Callable[[int, int], float | None] = lambda relation, slot: None,
    ) -> None:
        self.engine = engine
        self.row_counts.count_rows, self.row_counts.count_distinct = rows_of, distinct_of

    def detach_duckdb(self) -> None:
        """Stop using DuckDB; returns when its last use has ended."""
        with self._unused:
            self.engine = None
            self._unused.wait_for(lambda: not self._users)

    @contextmanager
    def borrow_duckdb_engine(self) -> Iterator[DuckEngine | None]:
        with self._unused:
            engine = self.engine
            self._users += 1
        try:
            yield engine
        finally:
            with self._unused:
                self._users -= 1
                self._unused.notify_all()

    def find_duckdb_refusal(self, maintainer: ViewMaintainer) -> str | None:
        """Why DuckDB cannot compute a view's batches; None: it can."""
        if self.engine is None:
            return NOT_OPEN
        return maintainer.duckdb_evaluator.refusal

    def backfills_by_columns(self, maintainer: ViewMaintainer, rows: float) -> bool:
        """Whether a view over so many table rows is filled by DuckDB."""
        return (
            self.prefers_backfill_by_columns(rows) and self.find_duckdb_refusal(maintainer) is None
        )

    def prefers_backfill_by_columns(self, rows: float) -> bool:
        """Whether something over so many table rows is filled by columns, where it can be."""
        if self.requested_tier is None:
            return BACKFILL_ROWS_MIN <= rows <= ROWS_MAX
        return self.requested_tier is not MaintenanceTier.PYTHON

    def compute_state_by_duckdb(
        self, maintainer: ViewMaintainer, reader: Reader, interrupt: Interrupt
    ) -> StateEntries | str:
        """The state of a view at `reader`, or why DuckDB cannot compute it. A store that is being
        opened has no DuckDB yet, and gets one for this call."""
        with self.borrow_duckdb_engine() as known:
            engine = known or DuckEngine()
            try:
                return maintainer.compute_state_by_duckdb(engine, reader, interrupt)
            finally:
                if known is None:
                    engine.close()

    # -- choosing -----------------------------------------------------------------------------

    @property
    def refill_min_changes(self) -> float:
        """With fewer logged changes than this no view is refilled."""
        if self.engine is None or self.requested_tier not in (None, MaintenanceTier.REFILL):
            return math.inf
        return DIFFERENCE_CHANGES[0] if self.requested_tier is None else 1

    def refill_changes_lower_bound(
        self, view: View, maintainer: ViewMaintainer, span: PositionSpan
    ) -> float:
        """With fewer logged changes the view is not refilled, however small it and its tables."""
        if self._replaces_partitions(maintainer):
            return DIFFERENCE_CHANGES[0]
        least_s = estimate_duckdb_refill_s(0, 0)
        return self._find_refill_break_even_at_cost(view, maintainer, least_s, 0)

    def find_refill_break_even(
        self, view: View, maintainer: ViewMaintainer, span: PositionSpan
    ) -> float:
        """From how many logged changes on a refill is cheaper than taking them in."""
        if self._replaces_partitions(maintainer):
            return self.estimates.difference_limit_changes(view, maintainer, span)
        rows = self.estimates.estimate_row_total(collect_relations(maintainer.tree), span)
        return self._find_refill_break_even_at_cost(
            view, maintainer, self.estimates.estimate_view_refill_s(view, maintainer, span), rows
        )

    def _find_refill_break_even_at_cost(
        self, view: View, maintainer: ViewMaintainer, seconds: float, rows: float
    ) -> float:
        """The same for a refill of so many seconds once the columns of its tables, of so many rows,
        are brought up to date: change by change, or read again where that is cheaper."""
        least = self.refill_min_changes
        if least == math.inf or self.find_duckdb_refusal(maintainer) is not None:
            return math.inf
        if self.requested_tier is MaintenanceTier.REFILL:
            return least
        if maintainer.can_sum_by_columns() and maintainer.duckdb_evaluator.uses_difference_plan:
            return math.inf  # reads no stored state, so that it is always cheaper
        least = max(least, CHANGES_MIN)
        expected = self.costs.scale_to_measured_seconds
        each = self.estimates.estimate_logged_change_s(view, maintainer)
        if maintainer.can_sum_by_columns():
            columns = estimate_column_change_s(grouped=maintainer.is_grouped)
            each = min(each, expected(view.id, MaintenanceTier.DUCKDB, columns))
        refill = MaintenanceTier.REFILL
        anew = expected(view.id, refill, seconds + rows * cost_model.STORED_ROW_S) / each
        gain = each - expected(view.id, refill, cost_model.COPIED_CHANGE_S)
        by_change = expected(view.id, refill, seconds) / gain if gain > 0 else math.inf
        return max(least, min(anew, by_change))

    def _replaces_partitions(self, maintainer: ViewMaintainer) -> bool:
        """Whether the touched partitions or the whole view replace what is stored, unread."""
        return (
            (self.replaces_state and self.requested_tier is None)
            and maintainer.can_sum_by_columns()
            and maintainer.duckdb_evaluator.uses_difference_plan
        )

    def column_changes_lower_bound(
        self, view: View, maintainer: ViewMaintainer, span: PositionSpan, together: int = 1
    ) -> float:
        """With fewer logged changes than this they are not added up by columns, however large the
        view's tables are, which nobody has asked yet. So many views are computed `together`."""
        if self.requested_tier is not None:
            return 1
        difference = (
            maintainer.can_sum_by_columns() and maintainer.duckdb_evaluator.uses_difference_plan
        )
        if difference:
            return DIFFERENCE_CHANGES[0]
        return COLUMN_CHANGES_MIN if together == 1 else FAMILY_CHANGES_MIN

    def find_column_break_even(
        self, view: View, maintainer: ViewMaintainer, span: PositionSpan, together: int = 1
    ) -> float:
        """From how many logged changes on it is cheaper to add them up by columns, where they are
        joined with nothing."""
        if (
            self.requested_tier not in (None, MaintenanceTier.DUCKDB)
            or self.find_duckdb_refusal(maintainer) is not None
            or not maintainer.can_sum_by_columns()
        ):
            return math.inf
        if self.requested_tier is MaintenanceTier.DUCKDB:
            return 1
        if maintainer.duckdb_evaluator.uses_difference_plan:
            return self.estimates.find_difference_break_even(view, maintainer, span)
        expected, grouped = self.costs.scale_to_measured_seconds, maintainer.is_grouped
        each = estimate_column_change_s(grouped=grouped)
        fixed = estimate_family_s(cost_model.STATEMENT_S, together) / together
        gain_s = self.estimates.estimate_logged_change_s(view, maintainer) - expected(
            view.id, MaintenanceTier.DUCKDB, each
        )
        fixed_s = expected(view.id, MaintenanceTier.DUCKDB, fixed)
        least = self.column_changes_lower_bound(view, maintainer, span, together)
        return max(least, fixed_s / gain_s) if gain_s > 0 else math.inf

    def choose_tier(
        self,
        view: View,
        maintainer: ViewMaintainer,
        changes: Sequence[RowChange],
        span: PositionSpan,
        *,
        at_end: bool,
    ) -> TierChoice:
        """Choose the tier of a batch. `at_end`: the tables can be read as they are after these
        changes."""
        count = len(changes)
        seconds = self.estimates.estimate_python_s(maintainer, count, span)
        if self.requested_tier is MaintenanceTier.PYTHON:
            return TierChoice(MaintenanceTier.PYTHON, "set maintenance_tier = python", seconds)
        expected = self.costs.scale_to_measured_seconds
        by_partition = count >= PARTITION_CHANGES_MIN and recomputes_partitions(maintainer.tree)
        cheap = expected(view.id, MaintenanceTier.PYTHON, seconds) < PYTHON_S_MAX
        if self.requested_tier is None and count < CHANGES_MIN and cheap and not by_partition:
            return TierChoice(MaintenanceTier.PYTHON, format_change_count(count), seconds)
        refused = self.find_duckdb_refusal(maintainer)
        if refused is not None:
            return TierChoice(
                MaintenanceTier.PYTHON, f"{format_change_count(count)}; {refused}", seconds
            )
        costs = self._estimate_tier_costs(view, maintainer, changes, span, at_end=at_end)
        if self.requested_tier is not None:
            asked = [
                self.requested_tier,
                *(way for way in (MaintenanceTier.DUCKDB, MaintenanceTier.REFILL) if way in costs),
            ]
            way = next((way for way in asked if way in costs), MaintenanceTier.PYTHON)
            return TierChoice(way, f"set maintenance_tier = {self.requested_tier}", costs[way])
        here = {
            way: self.costs.scale_to_measured_seconds(view.id, way, cost)
            for way, cost in costs.items()
        }
        way = min(here, key=lambda one: here[one])
        for other in here.keys() - {way}:
            self.costs.decay_unused_factor(view.id, other)
        shown = ", ".join(f"{way} {cost * 1e3:.0f} ms" for way, cost in here.items())
        return TierChoice(way, f"{format_change_count(count)}: {shown}", costs[way])

    def _estimate_tier_costs(
        self,
        view: View,
        maintainer: ViewMaintainer,
        changes: Sequence[RowChange],
        span: PositionSpan,
        *,
        at_end: bool,
    ) -> dict[MaintenanceTier, float]:
        """The estimated seconds of each possible tier, on the machine of the constants. Relations
        are not counted for a batch that is computed faster than they could be counted."""
        count, expected = len(changes), self.costs.scale_to_measured_seconds
        costs = {MaintenanceTier.PYTHON: self.estimates.estimate_python_s(maintainer, count, span)}
        shortest = min(
            expected(view.id, way, cost_model.STATEMENT_S)
            for way in (MaintenanceTier.DUCKDB, MaintenanceTier.REFILL)
        )
        if (
            self.requested_tier is None
            and expected(view.id, MaintenanceTier.PYTHON, costs[MaintenanceTier.PYTHON]) <= shortest
        ):
            return costs
        if maintainer.duckdb_evaluator.can_sum_by_group and maintainer.has_independent_changes(
            changes
        ):
            others = set(view.inputs) - {change.relation for change in changes[:1]}
            rows = self.estimates.estimate_partner_rows(maintainer.tree, others, span)
            costs[MaintenanceTier.DUCKDB] = estimate_duckdb_sums_s(count, rows)
        if at_end:
            costs[MaintenanceTier.REFILL] = self.estimates.estimate_view_refill_s(
                view, maintainer, span
            )
        return {way: cost for way, cost in costs.items() if cost < math.inf}

    def build_tier_explain_line(self, view: View, maintainer: ViewMaintainer, position: int) -> str:
        """One line of EXPLAIN: which tier computes batches of a view that begin at a position."""
        if self.requested_tier is not None:
            return f"batches: {self.requested_tier} where it can be, set maintenance_tier"
        refused = self.find_duckdb_refusal(maintainer)
        if refused is not None:
            return f"batches: Python: {refused}"
        parts, span = [], PositionSpan(position, position)
        columns = self.find_column_break_even(view, maintainer, span)
        if columns < math.inf:
            difference = maintainer.duckdb_evaluator.uses_difference_plan
            how = "computed before and after by DuckDB" if difference else "added up by columns"
            parts.append(f"{how} from about {columns:.0f} changes on")
        elif maintainer.duckdb_evaluator.can_sum_by_group:
            expected = self.costs.scale_to_measured_seconds
            by_python = estimate_python_change_s(maintainer.tree, grouped=maintainer.is_grouped)
            python_s = expected(view.id, MaintenanceTier.PYTHON, by_python)
            gain_s = python_s - expected(view.id, MaintenanceTier.DUCKDB, ADDED_CHANGE_S)
            least = expected(view.id, MaintenanceTier.DUCKDB, estimate_duckdb_sums_s(0, 0)) / max(
                gain_s, 1e-9
            )
            parts.append(f"added up by DuckDB from about {max(CHANGES_MIN, least):.0f} changes on")
        whole = self.find_refill_break_even(view, maintainer, span)
        if whole < math.inf:
            parts.append(f"computed anew by DuckDB from about {whole:.0f} on")
        return "; ".join(["batches: Python", *([", ".join(parts)] if parts else [])])

    # -- computing ----------------------------------------------------------------------------

    def record_additions_by_tier(
        self,
        view: View,
        maintainer: ViewMaintainer,
        changes: Sequence[RowChange],
        before: Reader,
        reader: Reader,
        recorder: AdditionRecorder,
        span: PositionSpan,
        *,
        at_end: bool,
    ) -> TierChoice:
        """Record what the changes add, by the tier chosen; `before` is the state before them, or
        `reader` where that is not needed."""
        choice = self.choose_tier(view, maintainer, changes, span, at_end=at_end)
        timer = start_timer(self.counts_waits)
        refused = self._try_record_by_duckdb(
            choice, view, maintainer, changes, reader, recorder, span
        )
        if refused is not None:
            seconds = self.estimates.estimate_python_s(maintainer, len(changes), span)
            choice = TierChoice(
                MaintenanceTier.PYTHON, f"{format_change_count(len(changes))}; {refused}", seconds
            )
            timer = start_timer(self.counts_waits)
        if choice.tier is MaintenanceTier.PYTHON:
            after = reader if before is not reader else None
            maintainer.writes(changes, before, recorder, after=after)
        if choice.tier is not MaintenanceTier.REFILL:  # a refill records its own cost
            taken = timer()
            self.costs.record_batch_cost(view.id, choice.tier, choice.seconds, taken, len(changes))
        return choice

    def _try_record_by_duckdb(
        self,
        choice: TierChoice,
        view: View,
        maintainer: ViewMaintainer,
        changes: Sequence[RowChange],
        reader: Reader,
        recorder: AdditionRecorder,
        span: PositionSpan,
    ) -> str | None:
        """Record the same by DuckDB, if that was chosen; returns why DuckDB could not."""
        if choice.tier is MaintenanceTier.REFILL:
            return self.try_record_refill(view, maintainer, reader, recorder, len(changes), span)
        if choice.tier is MaintenanceTier.DUCKDB:
            with self.borrow_duckdb_engine() as engine:
                found = (
                    maintainer.duckdb_evaluator.sum_changes_by_group(engine, changes, reader)
                    if engine
                    else NOT_OPEN
                )
            if isinstance(found, str):
                return found
            maintainer.write_sums_as_additions(found, recorder)
        return None

    def try_record_refill(
        self,
        view: View,
        maintainer: ViewMaintainer,
        reader: Reader,
        recorder: AdditionRecorder,
        changes: int,
        span: PositionSpan,
    ) -> str | None:
        """Record the additions that turn the stored state into what the tables at `reader` give,
        after so many changes; returns why that was not possible."""
        timer = start_timer(self.counts_waits)
        with self.borrow_duckdb_engine() as engine:
            found = (
                maintainer.compute_state_by_duckdb(engine, reader, make_statement_interrupt())
                if engine
                else NOT_OPEN
            )
        if isinstance(found, str):
            return found
        rows = None
        if view.options.keep_changes is None:  # nobody asks what was added
            if self.replaces_state and found.has_storable_keys:
                recorder.cleared.append(maintainer.state_range)
                rows = found.list_writes()
            else:
                rows = maintainer.try_compute_replacing_writes(reader, found)
        if rows is None:
            wanted: dict[bytes, bytes | None] = {
                key: value
                for some in found.list_batches_from(b"", STATE_COUNTED_MAX)
                for key, value in some
            }
            recorder.additions += compute_correcting_additions(reader, view, wanted)
        else:
            recorder.rows += rows
        taken = timer()
        seconds = self.estimates.estimate_view_refill_s(view, maintainer, span)
        self.costs.record_batch_cost(view.id, MaintenanceTier.REFILL, seconds, taken, changes)
        return None


def format_change_count(count: int) -> str:
    return f"{count} change{'' if count == 1 else 's'}"
