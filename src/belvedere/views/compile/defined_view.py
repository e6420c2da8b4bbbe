"""A new view: the request, and the compiled definition.

A definition is bound and compiled once on its way into the catalog. `NewView` may hold the plan
that the statement was bound to; `ViewRegistry.build_defined_view` compiles it to a `DefinedView`,
which all later steps use: the indexes and auxiliary views that are created with the view, the
view's entry in the catalog, and the registry, which maintains the view by this compiled definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.model import OWNER_ROLE
from belvedere.catalog.view_options import NO_OPTIONS, IndexColumns, Maintenance, ViewOptions
from belvedere.plan import nodes as n
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.delta.leaf_lookups import IndexRequirement


class BoundDefinition(NamedTuple):
    """The plan of a definition, over base tables. It holds for one version of the catalog: in
    another one the same text may mean something else."""

    plan: n.Node
    catalog_version: int


@dataclass(frozen=True, slots=True)
class NewView:
    """The request for a view: `reads` are the views that the definition names, `bound` is its plan,
    where the caller has one."""

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
    owner: int = OWNER_ROLE


@dataclass(frozen=True, slots=True)
class DefinedView:
    """A definition compiled under the catalog in which the view is created. `required_indexes`
    would save its maintenance a scan."""

    definition: ViewDefinition
    compiled: MaintenancePlan
    required_indexes: tuple[IndexRequirement, ...]
