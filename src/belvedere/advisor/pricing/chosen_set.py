"""Every query planned with all chosen views in the catalog: what the optimizer would really do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.advisor.candidates.candidate import Candidate
from belvedere.advisor.pricing.host import AdvisedDatabase
from belvedere.advisor.pricing.hypothetical_catalog import HypotheticalCatalog
from belvedere.advisor.workload.bound_workload import BoundWorkload
from belvedere.plan import nodes as n
from belvedere.views.rewrite.planner import RewritePlanner


@dataclass(frozen=True, slots=True)
class QueryPlanning:
    """The optimizer's cost of a query before and after, and the views it reads after."""

    cost_before: float
    cost_after: float
    views: tuple[str, ...]


def plan_chosen_set(
    database: AdvisedDatabase, workload: BoundWorkload, chosen: Sequence[Candidate]
) -> dict[str, QueryPlanning]:
    plain, hypothesis = HypotheticalCatalog(database), HypotheticalCatalog(database)
    for candidate in chosen:
        hypothesis.add_candidate(candidate)
    found = {}
    for query in workload.queries:
        before, _ = _plan_query(plain, query.data.plan)
        after, views = _plan_query(hypothesis, query.data.plan)
        found[query.name] = QueryPlanning(before, min(after, before), views)
    return found


def _plan_query(hypothesis: HypotheticalCatalog, plan: n.Node) -> tuple[float, tuple[str, ...]]:
    planner = RewritePlanner(hypothesis.registry, hypothesis.statistics)
    catalog = hypothesis.catalog
    found = planner.rewrite_plan(plan, catalog)
    if found is not None:
        names = dict.fromkeys(one.view.rows.name for one in found.answers)
        return found.cost, tuple(names)
    return planner.estimate_plan_cost(planner.optimize_over_state(plan, catalog), catalog), ()
