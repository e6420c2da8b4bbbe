"""What views that do not exist would do for queries: the question of an advisor.

    views = HypotheticalViews(catalog, registry, statistics, [NewView("v", "SELECT ..")])
    found = views.rewrite_plan(plan)

`plan` is the bound plan of a query, as `sql.bind` gives it. `found` is a `RewriteChoice`, or None
when none of the views shares a table with the query. `found.answers` says which views answer which
parts and what is done to their rows; it is empty when no view is taken. `found.refusals` has a
reason for each that is not. `found.plan` reads the views, `found.cost` is its cost, and
`found.cost_without` that without the views, in the optimizer's unit (one row read by its key).

The views are put into a copy of the catalog, where they are ready and have as many rows as their
definitions are estimated to give (`row_counts`, by name); the database does not change. Views that
exist are left out unless `with_existing`. A definition that no view can have raises Unsupported, as
CREATE MATERIALIZED VIEW does. A definition is compiled once, so one object serves a whole workload.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import ObjectState, View
from belvedere.plan import nodes as n
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import estimate_rows
from belvedere.sql.rules.statistics import Statistics
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.compile.defined_view import DefinedView, NewView
from belvedere.views.explain.cost_estimate import estimate_entries_and_bytes
from belvedere.views.registry.view_registry import ViewRegistry
from belvedere.views.rewrite.candidates import CandidateView, CandidateViews
from belvedere.views.rewrite.planner import RewriteChoice, RewritePlanner


class HypotheticalViews:
    """Views that do not exist, in a catalog of their own."""

    def __init__(
        self,
        catalog: Catalog,
        registry: ViewRegistry,
        statistics: Statistics,
        wanted: Sequence[NewView],
        *,
        with_existing: bool = False,
    ) -> None:
        edit = CatalogEdit(catalog)
        context = OptimizerContext(catalog, STORED_EXPRESSIONS, statistics)
        compiled: dict[int, MaintenancePlan] = {}
        self.row_counts: dict[str, float] = {}
        by_id: dict[int, float] = {}
        for new in wanted:
            defined = registry.build_defined_view(catalog, new)
            id_ = _put_ready_view(edit, defined)
            compiled[id_] = defined.compiled
            entries, _ = estimate_entries_and_bytes(
                defined.compiled, lambda node: estimate_rows(node, context)
            )
            self.row_counts[new.name] = by_id[id_] = float(entries)
        self.catalog = edit.catalog
        for id_, plan in compiled.items():
            registry.use_compiled_definition(self.catalog, id_, plan)
        self._chosen = None if with_existing else frozenset(compiled)
        self._candidates = CandidateViews(registry)
        self._planner = RewritePlanner(registry, statistics, self._list_candidates, by_id)

    def rewrite_plan(self, plan: n.Node) -> RewriteChoice | None:
        """The cheapest plan of a query with these views; see the module."""
        return self._planner.rewrite_plan(plan, self.catalog)

    def _list_candidates(self, catalog: Catalog, tables: Sequence[int]) -> list[CandidateView]:
        found = self._candidates.list_candidates(catalog, tables)
        if self._chosen is None:
            return found
        return [one for one in found if one.rows.relation in self._chosen]


def _put_ready_view(edit: CatalogEdit, defined: DefinedView) -> int:
    """The id of the view in the edited catalog."""
    id_ = edit.create_view(defined.definition)
    view = edit.catalog.get(id_)
    assert isinstance(view, View)
    edit.put(msgspec.structs.replace(view, state=ObjectState.READY))
    return id_
