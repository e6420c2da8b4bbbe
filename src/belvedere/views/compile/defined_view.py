"""A new view: what is asked for, and what its definition turned out to be.

A definition is bound and compiled once on its way into the catalog. `NewView` may bring the plan
that the statement was bound to; `Keeper.define` compiles it to a `DefinedView`, which everything
that follows takes: the indexes and auxiliary views that are made with the view, the view's entry in
the catalog, and the Keeper, which maintains the view by what was compiled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.view_options import NO_OPTIONS, IndexColumns, Maintenance, ViewOptions
from belvedere.plan import nodes as n
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.delta.delta_plan import IndexRequirement


class BoundDefinition(NamedTuple):
    """The plan of a definition, over base tables. It holds for one version of the catalog: in
    another one the same text may mean something else."""

    plan: n.Node
    catalog_version: int


@dataclass(frozen=True, slots=True)
class NewView:
    """What is asked for: `reads` are the views that the definition names, `bound` is its plan,
    where the asker has one."""

    name: str
    definition: str
    maintenance: Maintenance = Maintenance.IMMEDIATE
    schema: str = "public"
    options: ViewOptions = NO_OPTIONS
    columns: tuple[str, ...] = ()
    reads: tuple[int, ...] = ()
    index: IndexColumns | None = None
    replaces: int | None = None
    bound: BoundDefinition | None = None


@dataclass(frozen=True, slots=True)
class DefinedView:
    """A definition compiled under the catalog in which the view is made. `required_indexes` would
    spare its maintenance a scan."""

    definition: ViewDefinition
    compiled: MaintenancePlan
    required_indexes: tuple[IndexRequirement, ...]
