"""The prices of all candidates: what each saves each query, costs each write, and stores.

A candidate is priced alone, by planning every query that shares a table with it over a catalog in
which it exists. What it saves belongs to the blocks of the query that it answers: candidates for
different blocks of one query add up, of those for the same block the best one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from belvedere.advisor.candidates.candidate import Candidate
from belvedere.advisor.pricing.cost_units import STATEMENT_US, CostUnits
from belvedere.advisor.pricing.host import AdvisedDatabase
from belvedere.advisor.pricing.hypothetical_catalog import HypotheticalCatalog
from belvedere.advisor.pricing.index_cost import estimate_index_upkeep
from belvedere.advisor.pricing.write_cost import estimate_plain_write, estimate_view_write
from belvedere.advisor.workload.bound_workload import BoundWorkload, WorkloadQuery
from belvedere.errors import Error
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.printer import print_plan
from belvedere.sql.rules.estimates import estimate_rows
from belvedere.views.explain.cost_estimate import estimate_entries_and_bytes
from belvedere.views.rewrite.planner import PlanAlternative, RewriteChoice, RewritePlanner

SAVED_SHARE_MIN = 0.4
"""The share of a query's time that a candidate has to save: estimates are not finer than that."""

INDEX_SITE = "index"
"""Where an index of a table saves: beside any block."""

WHOLE_SITE = "whole"
"""Where a view saves that answers more than a block: in place of all that answer blocks."""


@dataclass(frozen=True, slots=True)
class SavedTime:
    """Microseconds that a candidate saves one run of a query, in the blocks `sites`."""

    saved_us: float
    sites: frozenset[str]


@dataclass(frozen=True, slots=True)
class CandidateCost:
    """A candidate with its savings by query, its cost by write, and its size. `refusals` say, by
    query, why it does not answer one that it was made for."""

    candidate: Candidate
    savings: dict[str, SavedTime]
    write_us: dict[str, float]
    rows: float
    stored_bytes: int
    refusals: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RejectedCandidate:
    candidate: Candidate
    reason: str


@dataclass(slots=True)
class CostTable:
    """`query_us` and `write_us` are what statements take with nothing added."""

    query_us: dict[str, float] = field(default_factory=dict)
    write_us: dict[str, float] = field(default_factory=dict)
    calls: dict[str, float] = field(default_factory=dict)
    prices: list[CandidateCost] = field(default_factory=list)
    rejected: list[RejectedCandidate] = field(default_factory=list)


class CandidateEstimator:
    def __init__(
        self, database: AdvisedDatabase, workload: BoundWorkload, units: CostUnits
    ) -> None:
        self._database = database
        self._workload = workload
        self._units = units
        plain = HypotheticalCatalog(database)
        self._plain = RewritePlanner(plain.registry, plain.statistics)
        self._plans = {query.name: self._prepare_query(query) for query in workload.queries}
        self._costs = {query.name: self._plan_plain(query) for query in workload.queries}
        self._scales = {query.name: self._find_scale(query) for query in workload.queries}

    def estimate_candidates(self, candidates: Sequence[Candidate]) -> CostTable:
        table = self._make_plain_table()
        for candidate in candidates:
            try:
                price = self._estimate_candidate(candidate)
            except Error as error:
                if candidate.options:
                    continue  # a form that this view cannot have; the view itself is priced
                detail = f": {error.detail}" if error.detail else ""
                table.rejected.append(RejectedCandidate(candidate, f"{error.message}{detail}"))
                continue
            table.prices.append(price)
        return table

    def _make_plain_table(self) -> CostTable:
        table = CostTable()
        for query in self._workload.queries:
            table.query_us[query.name] = self._convert_cost(query, self._costs[query.name])
            table.calls[query.name] = query.statement.calls
        for write in self._workload.writes:
            plain = estimate_plain_write(self._database.catalog, write)
            table.write_us[write.name] = write.statement.mean_us or plain
            table.calls[write.name] = write.statement.calls
        return table

    def _prepare_query(self, query: WorkloadQuery) -> PlanAlternative:
        """The query over tables, planned once for all candidates."""
        return self._plain.build_plan_alternative(query.data.plan, self._database.catalog)

    def _plan_plain(self, query: WorkloadQuery) -> float:
        """The cost of the query with the views that exist."""
        plain = self._plans[query.name]
        found = self._plain.rewrite_plan(query.data.plan, self._database.catalog, plain)
        return plain.cost if found is None else found.cost

    def _find_scale(self, query: WorkloadQuery) -> float:
        """How a measured time compares with the estimate, where there is one."""
        measured = query.statement.mean_us
        if measured is None:
            return 1.0
        return max(measured, STATEMENT_US) / self._units.convert_query_cost(self._costs[query.name])

    def _convert_cost(self, query: WorkloadQuery, cost: float) -> float:
        """Microseconds of the query at this cost. The fixed part of a statement is not scaled: it
        stays, whatever the plan reads."""
        scaled = self._units.convert_query_cost(cost) * self._scales[query.name]
        return max(scaled, STATEMENT_US)

    def _estimate_candidate(self, candidate: Candidate) -> CandidateCost:
        hypothesis = HypotheticalCatalog(self._database)
        hypothesis.add_candidate(candidate)
        planner = RewritePlanner(hypothesis.registry, hypothesis.statistics)
        savings, refusals = {}, {}
        for query in self._workload.queries:
            if not candidate.relations & set(query.data.relations):
                continue
            found = self._estimate_saving(planner, hypothesis, candidate, query)
            if isinstance(found, SavedTime):
                savings[query.name] = found
            elif query.name in candidate.queries:
                refusals[query.name] = found
        writes, rows, size = self._estimate_upkeep(hypothesis, candidate)
        return CandidateCost(candidate, savings, writes, rows, size, refusals)

    def _estimate_saving(
        self,
        planner: RewritePlanner,
        hypothesis: HypotheticalCatalog,
        candidate: Candidate,
        query: WorkloadQuery,
    ) -> SavedTime | str:
        before, catalog = self._costs[query.name], hypothesis.catalog
        if candidate.is_index:
            optimized = planner.optimize_over_state(query.data.plan, catalog)
            after, sites = planner.estimate_plan_cost(optimized, catalog), frozenset({INDEX_SITE})
        else:
            found = planner.rewrite_plan(query.data.plan, catalog, self._plans[query.name])
            if found is None or not found.answers:
                return _find_refusal(found, candidate)
            mine = [one for one in found.answers if one.view.rows.name == candidate.name]
            exact = any(one.exact for one in mine)
            sites = frozenset({WHOLE_SITE} if exact else (_name_site(x.node) for x in mine))
            after = found.cost
        whole = self._convert_cost(query, before)
        saved = whole - self._convert_cost(query, after)
        if saved <= 0:
            return "it is not cheaper than the tables"
        if saved < whole * SAVED_SHARE_MIN:
            return f"it would save {saved / whole:.0%} of the time, less than estimates err"
        return SavedTime(saved, sites)

    def _estimate_upkeep(
        self, hypothesis: HypotheticalCatalog, candidate: Candidate
    ) -> tuple[dict[str, float], float, int]:
        if candidate.is_index:
            return estimate_index_upkeep(hypothesis, candidate, self._workload)
        view = hypothesis.views[candidate.name]
        writes = {
            write.name: price
            for write in self._workload.writes
            if (price := estimate_view_write(hypothesis, view, write, self._units))
        }
        context = hypothesis.make_context()
        entries, size = estimate_entries_and_bytes(
            view.defined.compiled, lambda plan: estimate_rows(plan, context)
        )
        return writes, view.rows, round(size * min(1.0, view.rows / entries))


def _find_refusal(found: RewriteChoice | None, candidate: Candidate) -> str:
    for one in [] if found is None else found.refusals:
        if one.name == candidate.name:
            return str(one.reason)
    return "it does not contain the query"


def _name_site(node: n.Node) -> str:
    """A block of a query, by its text: the same for every candidate that answers it, or the rows
    that it groups."""
    while isinstance(node, n.Aggregate | n.Distinct):
        node = node.input
    scans = sorted(s.name for s in transform.walk_plan(node) if isinstance(s, n.Scan))
    return f"{','.join(scans)} {hash(print_plan(node))}"
