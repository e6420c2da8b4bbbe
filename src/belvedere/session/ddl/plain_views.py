"""Plain views as dependents: a catalog change may not remove what their text names.

A plain view is bound again whenever it is read, so binding it under the changed catalog shows
whether it is still valid.
"""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import CatalogColumn, PlainView, Table
from belvedere.errors import InvalidInput, Unsupported
from belvedere.sql.bind.statements.statement import bind_statement
from belvedere.sql.parse.script import parse_script


def refuse_or_drop_invalid_views(
    before: Catalog, edit: CatalogEdit, *, cascade: bool = False, can_cascade: bool = True
) -> None:
    """Drop the plain views that the edit makes invalid, with CASCADE; 2BP01 without it.
    `can_cascade`: the statement may say CASCADE."""
    while fallen := [
        one for one in _list_plain_views(edit.catalog) if _becomes_invalid(one, before, edit)
    ]:
        if not cascade:
            raise InvalidInput(
                "other objects depend on it",
                sqlstate="2BP01",
                detail=", ".join(f"view {one.name}" for one in fallen),
                hint="drop them first, or use CASCADE" if can_cascade else "drop them first",
            )
        for one in fallen:
            edit.drop_plain_view(one.id)


def find_dependent_plain_views(
    edit: CatalogEdit, table: Table, column: CatalogColumn
) -> list[PlainView]:
    """The plain views that would be invalid without this column."""
    trial = CatalogEdit(edit.catalog)
    gone = CatalogColumn(f"dropped {column.slot}", column.type_name, column.slot, dropped=True)
    trial.replace_column(table.id, gone)
    return [
        one for one in _list_plain_views(edit.catalog) if _becomes_invalid(one, edit.catalog, trial)
    ]


def _list_plain_views(catalog: Catalog) -> list[PlainView]:
    return [one for one in catalog.objects.values() if isinstance(one, PlainView)]


def _becomes_invalid(view: PlainView, before: Catalog, edit: CatalogEdit) -> bool:
    # A view that was invalid before does not block the change.
    return not _binds_under_catalog(view, edit.catalog) and _binds_under_catalog(view, before)


def _binds_under_catalog(view: PlainView, catalog: Catalog) -> bool:
    try:
        bind_statement(parse_script(view.definition)[0].tree, catalog)
    except (InvalidInput, Unsupported):
        return False
    return True
