"""Materialized views over a table that ALTER TABLE writes again.

Another type or key makes a table a new one (`catalog.table_rewrite`). The views over it are created
again by the same transaction, under their names, and its commit fills them. What reads the very
column whose type changes is refused, as in PostgreSQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import CatalogColumn, Table, View
from belvedere.errors import Unsupported
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.views.compile.defined_view import NewView
from belvedere.views.registry.view_registry import hide_later_columns

if TYPE_CHECKING:
    from belvedere.session.session import Session


class DroppedViews(NamedTuple):
    """Views of users and indexes that are views, in the order in which they were created."""

    views: tuple[View, ...]


def drop_dependent_views(
    edit: CatalogEdit, table: Table, retyped: CatalogColumn | None
) -> DroppedViews:
    """Drop the views over a table, to be created again. `retyped` is the column that gets another
    type, which no view may read."""
    found = [view for view in edit.catalog.dependent_views(table.id) if not view.part]
    views = tuple(sorted(found, key=lambda view: view.id))
    for view in views:
        _require_rebuildable_view(edit, view, table, retyped)
    for view in reversed(views):
        edit.drop_view(view.id, cascade=True)
    return DroppedViews(views)


def recreate_dropped_views(session: Session, edit: CatalogEdit, dropped: DroppedViews) -> None:
    """Create them again, over the table as it is now."""
    ids: dict[int, int] = {}
    for view in dropped.views:
        new = NewView(
            view.name,
            view.definition,
            view.maintenance,
            next(one.name for one in edit.catalog.schemas if one.id == view.schema),
            view.options,
            columns=tuple(column.name for column in view.columns),
            reads=tuple(ids.get(read, read) for read in view.reads),
            index=view.index,
        )
        ids[view.id] = session.host.views.create_view_in_edit(edit, new)


def _require_rebuildable_view(
    edit: CatalogEdit, view: View, table: Table, retyped: CatalogColumn | None
) -> None:
    plan = bind_simplified_definition(hide_later_columns(edit.catalog, view), view.definition)
    scans = [node for node in transform.walk_plan(plan) if isinstance(node, n.Scan)]
    read = {slot for scan in scans if scan.relation == table.id for slot in scan.slots}
    if retyped is not None and retyped.slot in read:
        raise Unsupported(
            "another type of a column that is read",
            hint="drop what reads it first",
            column=retyped.name,
            readers=view.noun_and_name,
        )
    if view.options.keep_changes is not None:
        raise _make_rebuild_refusal(view, "it keeps its changes, which would begin again")
    if plan != bind_simplified_definition(edit.catalog, view.definition):
        raise _make_rebuild_refusal(view, "its definition would see columns that were added later")


def _make_rebuild_refusal(view: View, why: str) -> Unsupported:
    return Unsupported(
        "writing all rows of a table under this view",
        detail=why,
        hint="drop the view first, and create it again",
        view=view.name,
    )
