"""Every query planned with all chosen views in the catalog: what the optimizer would really do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from belvedere.advisor.candidates.candidate import Candidate
from belvedere.advisor.pricing.host import AdvisedDatabase
from belvedere.advisor.pricing.hypothetical_catalog import HypotheticalCatalog
from belvedere.advisor.workload.bound_workload import BoundWorkload
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.views.rewrite.planner import RewritePlanner


@dataclass(frozen=True, slots=True)
class QueryPlanning:
    """The optimizer's cost of a query before and after, the views that answer it after, and all
    that its plan then reads: views, tables, indexes."""

    cost_before: float
    cost_after: float
    views: tuple[str, ...]
    used: frozenset[str]


def plan_chosen_set(
    database: AdvisedDatabase, workload: BoundWorkload, chosen: Sequence[Candidate]
) -> dict[str, QueryPlanning]:
    plain, hypothesis = HypotheticalCatalog(database), HypotheticalCatalog(database)
    for candidate in chosen:
        hypothesis.add_candidate(candidate)
    found = {}
    for query in workload.queries:
        before, after = (
            _plan_query(plain, query.data.plan),
            _plan_query(hypothesis, query.data.plan),
        )
        cost = min(after.cost, before.cost)
        used = _list_used_names(after.optimized)
        found[query.name] = QueryPlanning(before.cost, cost, after.views, used)
    return found


class _PlannedQuery(NamedTuple):
    cost: float
    optimized: n.Node
    views: tuple[str, ...]


def _plan_query(hypothesis: HypotheticalCatalog, plan: n.Node) -> _PlannedQuery:
    planner = RewritePlanner(hypothesis.registry, hypothesis.statistics)
    catalog = hypothesis.catalog
    found = planner.rewrite_plan(plan, catalog)
    if found is not None:
        names = dict.fromkeys(one.view.rows.name for one in found.answers)
        return _PlannedQuery(found.cost, found.optimized, tuple(names))
    optimized = planner.optimize_over_state(plan, catalog)
    return _PlannedQuery(planner.estimate_plan_cost(optimized, catalog), optimized, ())


def _list_used_names(optimized: n.Node) -> frozenset[str]:
    """The relations that a plan reads, and the indexes that it reads them by."""
    found = set()
    for node in transform.walk_plan(optimized):
        if isinstance(node, n.Scan):
            found |= {node.name, node.access.index_name}
        if isinstance(node, n.Join) and node.lookup is not None:
            found.add(node.lookup.access.index_name)
    return frozenset(found)
