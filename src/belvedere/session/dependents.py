"""Plain views as dependents: a catalog change may not remove what their text names.

A plain view is bound again whenever it is read, so binding it under the changed catalog shows
whether it is still valid.
"""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import Edit
from belvedere.catalog.model import Column, PlainView, Table
from belvedere.errors import InvalidInput, Unsupported
from belvedere.sql.bind.statement import bind_statement
from belvedere.sql.parse.script import parse_script


def keep_plain_views(before: Catalog, edit: Edit, *, cascade: bool = False) -> None:
    """Drop the plain views that the edit makes invalid, with CASCADE; 2BP01 without it."""
    while fallen := [one for one in _plain_views(edit.catalog) if _falls(one, before, edit)]:
        if not cascade:
            raise InvalidInput(
                "other objects depend on it",
                sqlstate="2BP01",
                detail=", ".join(f"view {one.name}" for one in fallen),
                hint="drop them first, or use CASCADE",
            )
        for one in fallen:
            edit.drop_plain_view(one.id)


def views_reading(edit: Edit, table: Table, column: Column) -> list[PlainView]:
    """The plain views that would be invalid without this column."""
    trial = Edit(edit.catalog)
    gone = Column(f"dropped {column.slot}", column.type_name, column.slot, dropped=True)
    trial.replace_column(table.id, gone)
    return [one for one in _plain_views(edit.catalog) if _falls(one, edit.catalog, trial)]


def _plain_views(catalog: Catalog) -> list[PlainView]:
    return [one for one in catalog.objects.values() if isinstance(one, PlainView)]


def _falls(view: PlainView, before: Catalog, edit: Edit) -> bool:
    # A view that was invalid before does not block the change.
    return not _stands(view, edit.catalog) and _stands(view, before)


def _stands(view: PlainView, catalog: Catalog) -> bool:
    try:
        bind_statement(parse_script(view.definition)[0].tree, catalog)
    except (InvalidInput, Unsupported):
        return False
    return True
