"""The review of views that exist: what each has saved the statements that ran, and what it cost.

Every statement is planned as it is and without the view; the difference, as often as the statement
ran, is what the view has saved. What it cost is counted from its delta plan for each write that
ran, in measured microseconds where a change of the view has been measured. Statements are counted
since the view was made or the statistics began, whichever was later; the counts survive restarts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from belvedere.advisor.pricing.cost_units import CostUnits
from belvedere.advisor.pricing.host import AdvisedDatabase
from belvedere.advisor.pricing.hypothetical_catalog import HypotheticalCatalog
from belvedere.advisor.pricing.measured_factor import measure_database_factor
from belvedere.advisor.pricing.write_cost import estimate_view_write
from belvedere.advisor.workload.bound_workload import BoundWorkload, WorkloadQuery, bind_workload
from belvedere.advisor.workload.statements import WorkloadStatement
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ObjectState, View, ViewKind
from belvedere.views.rewrite.planner import RewritePlanner


@dataclass(frozen=True, slots=True)
class ViewReview:
    """`named`: statements read the view by its name, so that it is needed whatever it costs.
    `tried`: statements about its tables have run since it was made."""

    name: str
    calls: float
    saved_us: float
    upkeep_us: float
    named: bool
    tried: bool = True

    @property
    def pays(self) -> bool:
        return self.named or self.saved_us > self.upkeep_us

    @property
    def is_idle(self) -> bool:
        return self.tried and not self.pays


EarlierCalls = Mapping[int, Mapping[str, tuple[float, float]]]
"""By the id of a view: how often each statement had run when it was made, and for how long, us."""


def review_views(
    database: AdvisedDatabase,
    statements: Sequence[WorkloadStatement],
    earlier: EarlierCalls | None = None,
) -> list[ViewReview]:
    """The views that users made, those that pay least first."""
    workload = bind_workload(database.catalog, statements)
    units = CostUnits(measure_database_factor(database))
    found = [
        _review_view(
            database, _count_since(workload, (earlier or {}).get(view.id, {})), units, view
        )
        for view in _list_user_views(database.catalog)
    ]
    return sorted(found, key=lambda one: (one.pays, one.saved_us - one.upkeep_us))


def _count_since(
    workload: BoundWorkload, before: Mapping[str, tuple[float, float]]
) -> BoundWorkload:
    """The workload without the runs before; statements that have not run since are left out."""

    def subtract_runs(statement: WorkloadStatement) -> WorkloadStatement:
        calls, total_us = before.get(statement.text, (0, 0.0))
        left = statement.calls - calls
        if not calls or left <= 0 or statement.mean_us is None:
            return replace(statement, calls=max(left, 0.0))
        mean_us = max(statement.mean_us * statement.calls - total_us, 0.0) / left
        return replace(statement, calls=left, mean_us=mean_us)

    queries = [replace(one, statement=subtract_runs(one.statement)) for one in workload.queries]
    writes = [replace(one, statement=subtract_runs(one.statement)) for one in workload.writes]
    return replace(
        workload,
        queries=tuple([one for one in queries if one.statement.calls]),
        writes=tuple([one for one in writes if one.statement.calls]),
    )


def _list_user_views(catalog: Catalog) -> Iterator[View]:
    for view in catalog.views:
        if view.kind is ViewKind.USER and view.state is ObjectState.READY:
            yield view


def _review_view(
    database: AdvisedDatabase, workload: BoundWorkload, units: CostUnits, view: View
) -> ViewReview:
    hypothesis = HypotheticalCatalog(database)
    planner = RewritePlanner(hypothesis.registry, hypothesis.statistics)
    without = _drop_view(database.catalog, view)
    calls, saved, named = 0.0, 0.0, False
    tried = any(one.relation in view.inputs for one in workload.writes)
    for query in workload.queries:
        if view.id in query.data.relations:
            named, calls = True, calls + query.statement.calls
            continue
        if not set(view.inputs) & set(query.data.relations):
            continue
        tried = True
        before = _plan_cost(planner, query, without)
        after = _plan_cost(planner, query, database.catalog)
        if after < before:
            calls += query.statement.calls
            saved += _convert_saving(units, query, before, after)
    upkeep = _sum_upkeep(hypothesis, workload, units, view)
    return ViewReview(view.name, calls, saved, upkeep, named, tried)


def _drop_view(catalog: Catalog, view: View) -> Catalog:
    """The catalog without the view and the indexes of it."""
    gone = [view.id, *(one.id for one in catalog.dependent_views(view.id))]
    return catalog.with_objects(dict.fromkeys(gone))


def _plan_cost(planner: RewritePlanner, query: WorkloadQuery, catalog: Catalog) -> float:
    found = planner.rewrite_plan(query.data.plan, catalog)
    if found is not None and found.plan is not None:
        return found.cost
    optimized = planner.optimize_over_state(query.data.plan, catalog)
    return planner.estimate_plan_cost(optimized, catalog)


def _convert_saving(units: CostUnits, query: WorkloadQuery, before: float, after: float) -> float:
    """Microseconds saved by all runs: a measured time is what the query takes with the view."""
    with_view, without = units.convert_query_cost(after), units.convert_query_cost(before)
    measured = query.statement.mean_us
    scale = 1.0 if measured is None else measured / with_view
    return (without - with_view) * scale * query.statement.calls


def _sum_upkeep(
    hypothesis: HypotheticalCatalog, workload: BoundWorkload, units: CostUnits, view: View
) -> float:
    kept = hypothesis.describe_existing_view(view)
    return sum(
        estimate_view_write(hypothesis, kept, write, units) * write.statement.calls
        for write in workload.writes
    )
