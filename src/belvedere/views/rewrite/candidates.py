"""The views that may answer queries, as blocks, by the tables that they read.

A definition is bound and brought to its normal form when a query first shares a table with it, and
again only when something that its meaning depends on has changed: the catalog's version alone does
not matter. `CandidateView.required` are the tables that a query must read: those that no lossless
join adds. Views that share too few tables, or have other columns, are passed over by comparing
sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ObjectState, View, ViewKind
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.context import OptimizerContext
from belvedere.views.registry.view_registry import ViewRegistry, list_definition_versions
from belvedere.views.rewrite.compensate import ViewRelation
from belvedere.views.rewrite.exact_match import (
    ExactMatchDefinition,
    build_exact_match_definition,
    simplify_for_exact_match,
)
from belvedere.views.rewrite.lossless_joins import list_required_tables
from belvedere.views.rewrite.signature import ViewSignature, build_view_signature
from belvedere.views.rewrite.view_block import MatchRefusal, ViewBlock, build_view_block


@dataclass(frozen=True, slots=True)
class CandidateView:
    """A view that queries may read: as a plan names it, and as a block; where that does not
    say all, `exact` is its whole definition."""

    rows: ViewRelation
    block: ViewBlock | MatchRefusal
    required: frozenset[int]
    signature: ViewSignature | None
    exact: ExactMatchDefinition | None = None


class CandidateViews:
    """The candidates of a database."""

    def __init__(self, registry: ViewRegistry) -> None:
        self._registry = registry
        self._known: dict[int, tuple[object, CandidateView]] = {}

    def list_candidate_views(self, catalog: Catalog, tables: Sequence[int]) -> list[CandidateView]:
        """The views that share a table with these, in the order of their ids."""
        memo_key = ("candidates", tuple(tables))
        known = catalog.derived_cache.get(memo_key)
        if known is None:
            found = {view.id: view for table in tables for view in catalog.dependent_views(table)}
            known = catalog.derived_cache[memo_key] = [
                self._get_cached_candidate(catalog, view)
                for _, view in sorted(found.items())
                if can_answer_queries(view)
            ]
        return cast("list[CandidateView]", known)

    def _get_cached_candidate(self, catalog: Catalog, view: View) -> CandidateView:
        memo_key = ("candidate", view.id)
        found = catalog.derived_cache.get(memo_key)
        if found is None:
            uses = (list_definition_versions(catalog, view), view.name, view.columns)
            known = self._known.get(view.id)
            if known is None or known[0] != uses:
                known = self._known[view.id] = (uses, self._bind_and_make_candidate(catalog, view))
            found = catalog.derived_cache[memo_key] = known[1]
        assert isinstance(found, CandidateView)
        return found

    def _bind_and_make_candidate(self, catalog: Catalog, view: View) -> CandidateView:
        definition = self._registry.bind_definition(catalog, view)
        fields = tuple(
            [
                Field(column.name, field.type)
                for column, field in zip(view.columns, definition.fields, strict=True)
            ]
        )
        rows = ViewRelation(view.id, view.name, fields)
        return make_candidate_view(rows, definition, catalog)


def make_candidate_view(rows: ViewRelation, definition: n.Node, catalog: Catalog) -> CandidateView:
    block = build_view_block(definition, catalog)
    exact = None
    if isinstance(block, MatchRefusal) or _needs_exact_match(block):
        context = OptimizerContext(catalog, STORED_EXPRESSIONS)
        exact = build_exact_match_definition(simplify_for_exact_match(definition, context))
    if isinstance(block, MatchRefusal):
        tables = frozenset() if exact is None else exact.tables
        return CandidateView(rows, block, tables, None, exact)
    required = list_required_tables(block.block, catalog)
    return CandidateView(rows, block, required, build_view_signature(block), exact)


def _needs_exact_match(view: ViewBlock) -> bool:
    """Whether a query may repeat the definition and yet not be matched with its block."""
    return None in view.columns or any(map(transform.has_subplan, view.block.conditions))


def can_answer_queries(view: View) -> bool:
    """Whether queries may be answered from the view: one that a user made and that is ready, and
    whose state never waits for a full recompute."""
    ready = view.state is ObjectState.READY and view.replaces is None
    return ready and view.kind is ViewKind.USER and view.options.strict
