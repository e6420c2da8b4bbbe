"""The advisor: a database and a workload in, the views that pay out.

bind the workload      queries, writes, and what is neither
Synergy's stages       rooted trees, candidate paths, views per query
candidates             paths, joins, filtered joins, groups, whole queries, shared joins, indexes,
                       and other forms of them
prices                 each candidate planned and counted, alone
choice                 the set that is worth most, within the budget, and that plans then use
forecast               every statement with all chosen views in the catalog
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.advisor.candidates.candidate import Candidate
from belvedere.advisor.candidates.path_views import list_path_candidates
from belvedere.advisor.candidates.query_answers import list_query_answers
from belvedere.advisor.candidates.query_views import list_query_views
from belvedere.advisor.candidates.shared_views import list_shared_views
from belvedere.advisor.candidates.table_indexes import list_table_indexes
from belvedere.advisor.candidates.view_forms import list_view_forms
from belvedere.advisor.checked_choice import CheckedChoice, choose_used_views
from belvedere.advisor.choice.choose_views import ChoiceLimits, choose_views
from belvedere.advisor.choice.dismissals import Dismissal, list_dismissals
from belvedere.advisor.choice.objective import Choice, Objective, sum_bytes
from belvedere.advisor.forecast import WorkloadForecast, forecast_workload
from belvedere.advisor.pricing.cost_table import CandidateCost, CandidateEstimator, CostTable
from belvedere.advisor.pricing.cost_units import CostUnits
from belvedere.advisor.pricing.host import AdvisedDatabase
from belvedere.advisor.pricing.measured_factor import measure_database_factor
from belvedere.advisor.synergy.lock_roots import list_root_statements
from belvedere.advisor.synergy.mechanism import SynergyStages, run_mechanism
from belvedere.advisor.workload.bound_workload import BoundWorkload, bind_workload
from belvedere.advisor.workload.statements import WorkloadStatement

LAG = "1 s"
"""How far behind a view may be that is deferred because it would slow writes down."""


@dataclass(frozen=True, slots=True)
class AdviceRequest:
    """`roots`: names of tables, none to have them chosen. `budget_bytes`: None for no limit."""

    statements: Sequence[WorkloadStatement]
    roots: Sequence[str] = ()
    budget_bytes: int | None = None
    schema_only: bool = False
    """Only the views that Synergy's mechanism selects."""
    workload_only: bool = False
    """Only views made from queries, whatever the schema says."""


@dataclass(frozen=True, slots=True)
class AdvisedView:
    """A view or index that pays: its form and what it saves and costs, per run of the workload."""

    candidate: Candidate
    price: CandidateCost
    saved_us: float
    upkeep_us: float
    reason: str


@dataclass(frozen=True, slots=True)
class Advice:
    """`needed_bytes`: what the choice would take without the budget, where the budget decided."""

    workload: BoundWorkload
    stages: SynergyStages
    table: CostTable
    views: tuple[AdvisedView, ...]
    forecast: WorkloadForecast
    dismissed: tuple[Dismissal, ...]
    candidates: int
    budget_bytes: int | None
    stored_bytes: int
    needed_bytes: int | None

    def list_ddl(self) -> list[str]:
        return [view.candidate.write_ddl() for view in self.views]

    def list_lock_ddl(self) -> list[str]:
        """What gives the tables of each rooted tree one root lock."""
        return list_root_statements(self.stages.graph.catalog, self.stages.trees)


def advise(database: AdvisedDatabase, request: AdviceRequest) -> Advice:
    workload = bind_workload(database.catalog, request.statements)
    stages = run_mechanism(database.catalog, workload, request.roots)
    candidates = list_candidates(database, workload, stages, request)
    measured = any(one.mean_us is not None for one in request.statements)
    # Measured changes compare with measured statements only: both have this machine's speed.
    units = CostUnits(measure_database_factor(database) if measured else 1.0)
    table = CandidateEstimator(database, workload, units).estimate_candidates(candidates)
    budget = float("inf") if request.budget_bytes is None else float(request.budget_bytes)
    checked = choose_used_views(database, workload, table, ChoiceLimits(budget))
    needed = None
    if request.budget_bytes is not None:
        unlimited = choose_views(table, ChoiceLimits())
        wanted = sum_bytes(unlimited)
        needed = wanted if wanted > request.budget_bytes else None
    return _make_advice(database, request, workload, stages, checked, needed)


def list_candidates(
    database: AdvisedDatabase,
    workload: BoundWorkload,
    stages: SynergyStages,
    request: AdviceRequest,
) -> list[Candidate]:
    """All candidates, each definition once, without those that exist."""
    catalog = database.catalog
    found = [] if request.workload_only else list_path_candidates(stages)
    if not request.schema_only:
        for query in workload.queries:
            found += list_query_views(catalog, query)
            found += list_query_answers(catalog, query)
        found += list_shared_views(catalog, workload.queries)
        found += list_view_forms(catalog, found, workload.writes)
        found += list_table_indexes(catalog, workload.queries)
    existing = {view.definition for view in catalog.views}
    unique: dict[tuple[object, ...], Candidate] = {}
    for one in found:
        if one.definition not in existing or one.is_index:
            unique.setdefault(one.identity, one)
    return list(unique.values())


def _make_advice(
    database: AdvisedDatabase,
    request: AdviceRequest,
    workload: BoundWorkload,
    stages: SynergyStages,
    checked: CheckedChoice,
    needed: int | None,
) -> Advice:
    table, chosen = checked.table, checked.chosen
    objective = Objective(table)
    budget = float("inf") if request.budget_bytes is None else float(request.budget_bytes)
    return Advice(
        workload,
        stages,
        table,
        tuple(_describe_choice(objective, choice, chosen) for choice in chosen),
        forecast_workload(database, workload, table, chosen),
        tuple(list_dismissals(objective, chosen, budget)),
        len(table.prices) + len(table.rejected),
        request.budget_bytes,
        sum_bytes(chosen),
        needed,
    )


def apply_form(choice: Choice) -> Candidate:
    """The candidate with the options of its form."""
    if not choice.deferred:
        return choice.price.candidate
    given = (("maintenance", "deferred"), ("max_lag", LAG))
    candidate = choice.price.candidate
    return candidate.with_options((*candidate.options, *given))


def _describe_choice(objective: Objective, choice: Choice, chosen: Sequence[Choice]) -> AdvisedView:
    rest = [one for one in chosen if one is not choice]
    saved = objective.sum_savings(chosen) - objective.sum_savings(rest)
    names = ", ".join(sorted(choice.price.savings))
    form = (
        "deferred: inside commits it would more than double a write"
        if choice.deferred
        else "immediate: no write takes more than twice as long"
    )
    kind = choice.price.candidate.kind
    if choice.price.candidate.is_index:
        form = "an index is enough"
    for name, value in choice.price.candidate.options:
        form = f"{name} = '{value}': a write changes few entries; {form}"
    return AdvisedView(
        apply_form(choice),
        choice.price,
        saved,
        objective.sum_upkeep_cost(choice),
        f"{kind} for {names}; {form}",
    )
