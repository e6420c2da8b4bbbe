"""Query rewriting: the cheapest plan that reads materialized views in place of tables.

    simplify     the plan as blocks are found in it: predicates pushed down, sub-queries joined
    sites        the blocks of the plan
    match        each block with each candidate view that has its tables
    cost         the optimizer's cost of the whole plan with the block answered, over view state

The cheapest plan is taken, and searched again for more blocks, as long as that lowers the cost.
Without a view that lowers it the plan stays as it was.

What an advisor asks, about a view that does not exist, is `views.rewrite.hypothetical`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from belvedere.catalog.catalog import Catalog
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.optimize import optimize
from belvedere.sql.rules.plan_cost import estimate_statement_cost
from belvedere.sql.rules.prune_columns import prune_columns
from belvedere.sql.rules.push_predicates import push_predicates
from belvedere.sql.rules.simplify_projects import simplify_projects
from belvedere.sql.rules.statistics import Statistics
from belvedere.sql.rules.subqueries.decorrelate import decorrelate
from belvedere.sql.rules.subqueries.inline_ctes import inline_ctes
from belvedere.views.read.expand_to_state import expand_views_over_state
from belvedere.views.read.rewrite_to_index import rewrite_to_index_views
from belvedere.views.registry.view_registry import ViewRegistry
from belvedere.views.rewrite.block import QueryBlock
from belvedere.views.rewrite.block_sites import (
    list_block_sites,
    reads_base_tables_only,
    replace_plan_node,
)
from belvedere.views.rewrite.candidates import CandidateView, CandidateViews
from belvedere.views.rewrite.compensate import Compensation, build_compensation
from belvedere.views.rewrite.match import align_view, list_leaf_mappings
from belvedere.views.rewrite.view_block import MatchRefusal
from belvedere.views.rewrite.view_statistics import ViewStatistics

ROUNDS_MAX = 4
"""How many blocks of a plan are answered from views."""

_RULES = (
    inline_ctes,
    decorrelate,
    push_predicates,
    simplify_projects,
    prune_columns,
    simplify_projects,
)


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """A block of a plan answered by a view."""

    view: CandidateView
    node: n.Node
    compensation: Compensation


@dataclass(frozen=True, slots=True)
class RefusedView:
    """A view that shares tables with a statement and was not taken, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class RewriteChoice:
    """What rewriting found for a statement. `plan` names views, `optimized` reads their state; both
    are None when no view is taken. Costs are in the optimizer's unit."""

    plan: n.Node | None
    optimized: n.Node | None
    cost: float
    cost_without: float
    answers: tuple[BlockAnswer, ...]
    refused: tuple[RefusedView, ...]


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
        self._list_candidates = list_candidates or CandidateViews(registry).list_candidates

    def rewrite_plan(self, plan: n.Node, catalog: Catalog) -> RewriteChoice | None:
        """The cheapest plan over views; None when no view shares a table with the plan."""
        scans = {node.relation for node in transform.walk_plan(plan) if isinstance(node, n.Scan)}
        candidates = self._list_candidates(catalog, sorted(scans))
        if not candidates or not reads_base_tables_only(plan):
            return None
        return self._choose_cheapest(plan, catalog, candidates)

    def optimize_over_state(self, plan: n.Node, catalog: Catalog) -> n.Node:
        """The optimized plan, with views read from their state."""
        plan = rewrite_to_index_views(plan, catalog)
        readable = expand_views_over_state(self._registry, catalog, plan)
        return optimize(readable, self._make_context(catalog))

    def estimate_plan_cost(self, optimized: n.Node, catalog: Catalog) -> float:
        return estimate_statement_cost(optimized, self._make_context(catalog))

    def _make_context(self, catalog: Catalog) -> OptimizerContext:
        statistics = ViewStatistics(self._statistics, self._registry, catalog, self._row_counts)
        return OptimizerContext(catalog, STORED_EXPRESSIONS, statistics)

    def _choose_cheapest(
        self, plan: n.Node, catalog: Catalog, candidates: list[CandidateView]
    ) -> RewriteChoice:
        search = _Search(catalog, candidates)
        best: n.Node = self._simplify_plan(plan, catalog)
        answers: list[BlockAnswer] = []
        found = search.list_answers(best)
        if not found:
            return RewriteChoice(None, None, 0.0, 0.0, (), search.list_refused())
        optimized = self.optimize_over_state(best, catalog)
        cost = without = self.estimate_plan_cost(optimized, catalog)
        while found and len(answers) < ROUNDS_MAX:
            chosen = None
            for one in found:
                made = replace_plan_node(best, one.node, one.compensation.plan)
                ready = self.optimize_over_state(made, catalog)
                price = self.estimate_plan_cost(ready, catalog)
                search.note_cost(one, price, cost)
                if price < cost:
                    chosen, cost, optimized = (one, made), price, ready
            if chosen is None:
                break
            answers.append(chosen[0])
            best = chosen[1]
            found = search.list_answers(best)
        taken = {one.view.rows.name for one in answers}
        refused = tuple([one for one in search.list_refused() if one.name not in taken])
        if not answers:
            return RewriteChoice(None, None, cost, without, (), refused)
        return RewriteChoice(best, optimized, cost, without, tuple(answers), refused)

    def _simplify_plan(self, plan: n.Node, catalog: Catalog) -> n.Node:
        context = self._make_context(catalog)
        for rule in _RULES:
            plan = rule(plan, context)
        return plan


class _Search:
    """Matches blocks with candidates, and keeps the first reason why each was not taken."""

    def __init__(self, catalog: Catalog, candidates: list[CandidateView]) -> None:
        self._catalog = catalog
        self._candidates = candidates
        self._reasons: dict[str, str] = {}

    def list_answers(self, plan: n.Node) -> list[BlockAnswer]:
        """Every block of the plan that some view answers."""
        found = []
        for node, block in list_block_sites(plan, self._catalog):
            for candidate in self._candidates:
                made = match_candidate(block, candidate, self._catalog)
                if isinstance(made, MatchRefusal):
                    self._reasons.setdefault(candidate.rows.name, made.reason)
                else:
                    found.append(BlockAnswer(candidate, node, made))
        return found

    def note_cost(self, answer: BlockAnswer, price: float, cost: float) -> None:
        if price >= cost:
            reason = f"its plan costs {price:.1f}, another one {cost:.1f}"
            self._reasons[answer.view.rows.name] = reason

    def list_refused(self) -> tuple[RefusedView, ...]:
        return tuple([RefusedView(*one) for one in self._reasons.items()])


def match_candidate(
    query: QueryBlock, candidate: CandidateView, catalog: Catalog
) -> Compensation | MatchRefusal:
    """The block answered by the view, or the reason why it is not."""
    view = candidate.block
    if isinstance(view, MatchRefusal):
        return view
    if not candidate.required <= query.tables:
        missing = sorted(candidate.required - query.tables)
        names = ", ".join(catalog.table(one).name for one in missing)
        return MatchRefusal(f"it joins {names}, which may drop or repeat rows")
    if view.block.grouped:
        return MatchRefusal("it has groups of rows")
    if query.grouped and not view.block.grouped:
        return MatchRefusal("it has rows, not groups")  # the rows below are a block of their own
    first: MatchRefusal | None = None
    for mapping in list_leaf_mappings(query, view.block):
        aligned = align_view(query, view, mapping, catalog)
        if not isinstance(aligned, MatchRefusal):
            made = build_compensation(query, view, aligned, candidate.rows, catalog)
            if not isinstance(made, MatchRefusal):
                return made
            aligned = made
        first = first or aligned
    return first or MatchRefusal("it reads other tables")
