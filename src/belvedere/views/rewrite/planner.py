"""Query rewriting: the cheapest plan that reads materialized views in place of tables.

    simplify     the plan as blocks are found in it: predicates pushed down, sub-queries joined
    exact match  parts of the plan that repeat a whole definition
    sites        the blocks of the plan
    match        each block with each candidate view that has its tables
    cost         the optimizer's cost of the whole plan with the block answered, over view state

The cheapest plan is taken, and searched again for more blocks, as long as that lowers the cost.
Without a view that lowers it the plan stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from belvedere.catalog.catalog import Catalog
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.optimize import optimize
from belvedere.sql.rules.plan_cost import LEAST_READ, estimate_statement_cost
from belvedere.sql.rules.statistics import Statistics
from belvedere.views.read.expand_to_state import expand_views_over_state
from belvedere.views.read.rewrite_to_index import rewrite_to_index_views
from belvedere.views.registry.view_registry import ViewRegistry
from belvedere.views.rewrite.block import QueryBlock
from belvedere.views.rewrite.block_sites import (
    list_block_sites,
    replace_plan_node,
    writes_or_locks_rows,
)
from belvedere.views.rewrite.candidates import CandidateView, CandidateViews
from belvedere.views.rewrite.compensate import Compensation, build_compensation
from belvedere.views.rewrite.exact_match import (
    ExactMatchSites,
    simplify_for_block_match,
    simplify_for_exact_match,
)
from belvedere.views.rewrite.match import align_view, list_leaf_mappings
from belvedere.views.rewrite.signature import (
    QuerySignature,
    SignatureConflict,
    build_query_signature,
    find_signature_conflict,
)
from belvedere.views.rewrite.view_block import MatchRefusal
from belvedere.views.rewrite.view_statistics import ViewStatistics

ROUNDS_MAX = 4
"""How many blocks of a plan are answered from views."""

LEAST_COST = LEAST_READ
"""The least that a read of a view can cost: one row of its state."""

GROUPS = MatchRefusal("it has groups of rows")
ROWS = MatchRefusal("it has rows, not groups")
OTHER_TABLES = MatchRefusal("it joins other tables, which may drop or repeat rows")


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """A block of a plan answered by a view; `exact`: a part that repeats its whole definition."""

    view: CandidateView
    node: n.Node
    compensation: Compensation
    exact: bool = False


@dataclass(frozen=True, slots=True)
class RefusedView:
    """A view that shares tables with a statement and was not taken, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class RewriteChoice:
    """What rewriting found for a statement. `plan` names views, `optimized` reads their state;
    without `answers` no view is taken. Costs are in the optimizer's unit."""

    plan: n.Node
    optimized: n.Node
    cost: float
    cost_without: float
    answers: tuple[BlockAnswer, ...]
    list_refused_views: Callable[[], list[RefusedView]]

    @property
    def refusals(self) -> list[RefusedView]:
        """The views that share tables with the statement and were not taken. The reasons are
        written down only when somebody asks."""
        taken = {one.view.rows.name for one in self.answers}
        return [one for one in self.list_refused_views() if one.name not in taken]


class RewritePlanner:
    """Rewrites the statements of a database."""

    def __init__(
        self,
        registry: ViewRegistry,
        statistics: Statistics,
        list_candidates: Callable[[Catalog, Sequence[int]], list[CandidateView]] | None = None,
        row_counts: Mapping[int, float] | None = None,
    ) -> None:
        """`list_candidates` gives the views that share one of these tables; by default those that
        the catalog has. `row_counts` are those of views that do not exist."""
        self._row_counts = row_counts
        self._registry = registry
        self._statistics = statistics
        self._list_candidates = list_candidates or CandidateViews(registry).list_candidate_views

    def rewrite_plan(
        self, plan: n.Node, catalog: Catalog, plain: PlanAlternative | None = None
    ) -> RewriteChoice | None:
        """The cheapest plan over views; None when no view shares a table with the plan. `plain` is
        the plan without them, where the caller knows it."""
        scans = {node.relation for node in transform.walk_plan(plan) if isinstance(node, n.Scan)}
        candidates = self._list_candidates(catalog, sorted(scans))
        if not candidates or writes_or_locks_rows(plan):
            return None
        plain = plain or self.build_plan_alternative(plan, catalog)
        search = _CandidateSearch(catalog, [one for one in candidates if one.required <= scans])
        search.refuse_views_of_other_tables(one for one in candidates if not one.required <= scans)
        if not search.candidates:
            return plain.make_rewrite_choice(plain, (), search)
        if plain.cost <= LEAST_COST:
            search.refuse_all_candidates(f"without views the cost is {plain.cost:.1f}")
            return plain.make_rewrite_choice(plain, (), search)
        return self._choose_cheapest(plan, plain, catalog, search)

    def build_plan_alternative(self, plan: n.Node, catalog: Catalog) -> PlanAlternative:
        """The plan, reading views from their state, and its cost."""
        plan = rewrite_to_index_views(plan, catalog)
        optimized = self._optimize_expanded(plan, catalog)
        return PlanAlternative(plan, optimized, self.estimate_plan_cost(optimized, catalog))

    def optimize_over_state(self, plan: n.Node, catalog: Catalog) -> n.Node:
        """The optimized plan, with views read from their state."""
        return self._optimize_expanded(rewrite_to_index_views(plan, catalog), catalog)

    def _optimize_expanded(self, plan: n.Node, catalog: Catalog) -> n.Node:
        readable = expand_views_over_state(self._registry, catalog, plan)
        return optimize(readable, self._make_optimizer_context(catalog))

    def estimate_plan_cost(self, optimized: n.Node, catalog: Catalog) -> float:
        return estimate_statement_cost(optimized, self._make_optimizer_context(catalog))

    def _make_optimizer_context(self, catalog: Catalog) -> OptimizerContext:
        statistics = ViewStatistics(self._statistics, self._registry, catalog, self._row_counts)
        return OptimizerContext(catalog, STORED_EXPRESSIONS, statistics)

    def _choose_cheapest(
        self, plan: n.Node, plain: PlanAlternative, catalog: Catalog, search: _CandidateSearch
    ) -> RewriteChoice:
        simple = self._simplify_plan(plan, catalog, search)
        best, answers = plain, list[BlockAnswer]()
        found = search.list_block_answers(simple)
        while found and len(answers) < ROUNDS_MAX:
            chosen = None
            for one in found:
                made = replace_plan_node(simple, one.node, one.compensation.plan)
                priced = self.build_plan_alternative(made, catalog)
                search.refuse_unless_cheaper(one, priced.cost, best.cost)
                if priced.cost < best.cost:
                    chosen, best = (one, made), priced
            if chosen is None:
                break
            answers.append(chosen[0])
            simple = chosen[1]
            found = search.list_block_answers(simple)
        return best.make_rewrite_choice(plain, tuple(answers), search)

    def _simplify_plan(self, plan: n.Node, catalog: Catalog, search: _CandidateSearch) -> n.Node:
        simplify = (
            simplify_for_exact_match
            if search.has_exact_match_candidates
            else simplify_for_block_match
        )
        return simplify(plan, self._make_optimizer_context(catalog))


@dataclass(frozen=True, slots=True)
class PlanAlternative:
    """A plan, as it reads the state of views, and its cost."""

    plan: n.Node
    optimized: n.Node
    cost: float

    def make_rewrite_choice(
        self, plain: PlanAlternative, answers: tuple[BlockAnswer, ...], search: _CandidateSearch
    ) -> RewriteChoice:
        return RewriteChoice(
            self.plan, self.optimized, self.cost, plain.cost, answers, search.list_refused_views
        )


class _CandidateSearch:
    """Matches blocks with candidates, and keeps the first reason why each was not taken."""

    def __init__(self, catalog: Catalog, candidates: list[CandidateView]) -> None:
        self._catalog = catalog
        self.candidates = candidates
        self._reasons: dict[str, MatchRefusal | SignatureConflict] = {}

    def refuse_all_candidates(self, reason: str) -> None:
        refusal = MatchRefusal(reason)
        self._reasons |= {one.rows.name: refusal for one in self.candidates}

    def refuse_views_of_other_tables(self, views: Iterable[CandidateView]) -> None:
        for view in views:
            block = view.block
            refusal = block if isinstance(block, MatchRefusal) else OTHER_TABLES
            self._reasons[view.rows.name] = refusal

    @property
    def has_exact_match_candidates(self) -> bool:
        return any(one.exact is not None for one in self.candidates)

    def list_block_answers(self, plan: n.Node) -> list[BlockAnswer]:
        """Every block of the plan that some view answers, and what repeats a whole definition."""
        found = self._list_exact_answers(plan) if self.has_exact_match_candidates else []
        for node, block in list_block_sites(plan, self._catalog):
            signature = build_query_signature(block)
            for candidate in self.candidates:
                made = match_candidate(block, signature, candidate, self._catalog)
                if isinstance(made, Compensation):
                    found.append(BlockAnswer(candidate, node, made))
                elif self._reasons.get(candidate.rows.name, ROWS) in (ROWS, GROUPS):
                    self._reasons[candidate.rows.name] = made
        return found

    def _list_exact_answers(self, plan: n.Node) -> list[BlockAnswer]:
        sites = ExactMatchSites(plan)
        return [
            BlockAnswer(one, node, made, exact=True)
            for one in self.candidates
            if one.exact is not None
            for node, made in sites.list_answered_nodes(one.exact, one.rows)
        ]

    def refuse_unless_cheaper(self, answer: BlockAnswer, price: float, cost: float) -> None:
        if price >= cost:
            reason = f"its plan costs {price:.1f}, another one {cost:.1f}"
            self._reasons[answer.view.rows.name] = MatchRefusal(reason)

    def list_refused_views(self) -> list[RefusedView]:
        return [
            RefusedView(
                name,
                one.reason
                if isinstance(one, MatchRefusal)
                else one.describe_refusal(self._catalog),
            )
            for name, one in self._reasons.items()
        ]


def match_candidate(
    query: QueryBlock, signature: QuerySignature, candidate: CandidateView, catalog: Catalog
) -> Compensation | MatchRefusal | SignatureConflict:
    """The block answered by the view, or the reason why it is not."""
    view = candidate.block
    if isinstance(view, MatchRefusal):
        return view
    if not candidate.required <= query.tables:
        return OTHER_TABLES
    if view.block.grouped and not query.grouped:
        return GROUPS
    if query.grouped and not view.block.grouped:
        return ROWS  # the rows that the query groups are a block of their own
    assert candidate.signature is not None
    conflict = find_signature_conflict(signature, candidate.signature)
    if conflict is not None:
        return conflict
    first: MatchRefusal | None = None
    for mapping in list_leaf_mappings(query, view.block):
        aligned = align_view(query, view, mapping, catalog)
        if not isinstance(aligned, MatchRefusal):
            made = build_compensation(query, view, aligned, candidate.rows, catalog)
            if not isinstance(made, MatchRefusal):
                return made
            aligned = made
        first = first or aligned
    return first or OTHER_TABLES
