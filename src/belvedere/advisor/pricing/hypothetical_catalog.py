"""A catalog with candidates in it that do not exist, and statistics that know their size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from belvedere.advisor.candidates.candidate import Candidate
from belvedere.advisor.pricing.host import AdvisedDatabase
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.definitions import IndexDefinition, KeyPartDefinition
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Index, ObjectState, View
from belvedere.catalog.view_options import NO_OPTIONS, ViewOptions, check_options
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.column_summary import ColumnSummary
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import estimate_rows, find_origin
from belvedere.sql.rules.statistics import Statistics
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.compile.defined_view import DefinedView, NewView
from belvedere.views.registry.view_registry import ViewRegistry, hide_later_columns


@dataclass(slots=True)
class HypotheticalStatistics:
    """Statistics of what exists, and estimates for views that do not."""

    known: Statistics
    rows: dict[int, float] = field(default_factory=dict)
    origins: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """The column of a table that a column of a view comes from."""

    def row_count(self, relation: int) -> float | None:
        return self.rows[relation] if relation in self.rows else self.known.row_count(relation)

    def distinct_count(self, relation: int, slot: int) -> float | None:
        if relation not in self.rows:
            return self.known.distinct_count(relation, slot)
        origin = self.origins.get((relation, slot))
        return None if origin is None else self.known.distinct_count(*origin)

    def value_range(self, relation: int, slot: int) -> tuple[Any, Any] | None:
        if relation not in self.rows:
            return self.known.value_range(relation, slot)
        origin = self.origins.get((relation, slot))
        return None if origin is None else self.known.value_range(*origin)

    def column_summary(self, relation: int, slot: int) -> ColumnSummary | None:
        if relation not in self.rows:
            return self.known.column_summary(relation, slot)
        origin = self.origins.get((relation, slot))
        return None if origin is None else self.known.column_summary(*origin)


@dataclass(frozen=True, slots=True)
class HypotheticalView:
    """A candidate view as it would be in the catalog."""

    id: int
    defined: DefinedView
    rows: float
    options: ViewOptions = NO_OPTIONS


class HypotheticalCatalog:
    """The database's catalog with candidates added; the database itself does not change."""

    def __init__(self, database: AdvisedDatabase) -> None:
        self._database = database
        self._edit = CatalogEdit(database.catalog)
        self.registry = ViewRegistry(database.bind, lambda catalog, relations: ())
        self.statistics = HypotheticalStatistics(database.statistics)
        self.views: dict[str, HypotheticalView] = {}

    @property
    def catalog(self) -> Catalog:
        return self._edit.catalog

    def add_candidate(self, candidate: Candidate) -> None:
        """Unsupported or InvalidInput says why the candidate cannot exist."""
        if candidate.is_index:
            self._add_index(candidate)
        else:
            self._add_view(candidate)

    def _add_index(self, candidate: Candidate) -> None:
        parts = tuple(KeyPartDefinition(column) for column in candidate.columns)
        id_ = self._edit.create_index(IndexDefinition(candidate.table, parts, name=candidate.name))
        index = self._edit.catalog.get(id_)
        assert isinstance(index, Index)
        self._edit.put(msgspec.structs.replace(index, state=ObjectState.READY))

    def _add_view(self, candidate: Candidate) -> None:
        options = check_options(dict(candidate.options))
        new = NewView(candidate.name, candidate.definition, options.maintenance, options=options)
        defined = self.registry.build_defined_view(self.catalog, new)
        id_ = self._edit.create_view(defined.definition)
        view = self._edit.catalog.get(id_)
        assert isinstance(view, View)
        orders = defined.compiled.stored_orders
        self._edit.put(msgspec.structs.replace(view, state=ObjectState.READY, orders=orders))
        rows = self._estimate_view_rows(defined.compiled, view)
        self.views[candidate.name] = HypotheticalView(id_, defined, rows, options)
        self.statistics.rows[id_] = rows
        self._note_origins(id_, defined.compiled)

    def describe_existing_view(self, view: View) -> HypotheticalView:
        """A view that exists, in the form in which candidates are estimated."""
        options = view.options
        new = NewView(view.name, view.definition, view.maintenance, options=options)
        seen = hide_later_columns(self.catalog, view)
        defined = self.registry.build_defined_view(seen, new)
        rows = self.statistics.row_count(view.id) or 1.0
        return HypotheticalView(view.id, defined, rows, options)

    def _estimate_view_rows(self, compiled: MaintenancePlan, view: View) -> float:
        plan = compiled.tree.plan
        if compiled.group is None:
            return estimate_rows(plan, self.make_context())
        groups, stored, partitions = compiled.group.groups, compiled.stored, 1
        if view.options.local:  # the number of the partition is the first of its groups
            groups, stored = groups[1:], stored[1:]
            partitions = max(self.catalog.table(one).partitions for one in view.inputs)
        rows = estimate_rows(plan, self.make_context())
        found = estimate_rows(n.Aggregate(plan, groups, (), stored), self.make_context())
        return min(rows, found * partitions)

    def _note_origins(self, view: int, compiled: MaintenancePlan) -> None:
        plan = compiled.tree.plan
        for slot, stored in enumerate(compiled.stored):
            expression: e.Expression = e.Column(slot, stored.type)
            if compiled.group is not None:
                expression = compiled.group.groups[slot]
            origin = find_origin(expression, plan)
            if origin is not None:
                self.statistics.origins[view, slot] = origin

    def make_context(self) -> OptimizerContext:
        return OptimizerContext(self.catalog, STORED_EXPRESSIONS, self.statistics)
