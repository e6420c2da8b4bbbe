"""CREATE VIEW, and plain views as dependents: a catalog change may not remove what they name.

A plain view is bound again whenever it is read, so binding it under the changed catalog shows
whether it is still valid.
"""

from __future__ import annotations

import msgspec

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import CatalogColumn, PlainView, Table, TypeName
from belvedere.errors import InvalidInput, Unsupported
from belvedere.session.ddl.rename_in_views import drop_column_aliases
from belvedere.sql import definitions as d
from belvedere.sql.bind.statements.statement import bind_statement
from belvedere.sql.parse.script import parse_script

PUBLIC = "public"


def create_or_replace_plain_view(edit: CatalogEdit, statement: d.CreateView) -> None:
    schema = statement.name.schema or PUBLIC
    found = edit.catalog.find_relation(statement.name.name, schema)
    columns = tuple(
        CatalogColumn(column.name, TypeName.from_type(column.type), slot)
        for slot, column in enumerate(statement.columns)
    )
    if found is not None:
        if not (statement.or_replace and isinstance(found, PlainView)):
            raise InvalidInput(
                "relation already exists", sqlstate="42P07", name=statement.name.name
            )
        _require_columns_only_added(found, columns)
        edit.put(msgspec.structs.replace(found, definition=statement.query, columns=columns))
        return
    edit.put(
        PlainView(
            id=edit.allocate_id(),
            name=statement.name.name,
            schema=edit.catalog.schema_id(schema),
            definition=statement.query,
            columns=columns,
        )
    )


def _require_columns_only_added(view: PlainView, columns: tuple[CatalogColumn, ...]) -> None:
    """CREATE OR REPLACE may only add columns at the end."""
    for old, new in zip(view.columns, columns):
        if old.name != new.name or old.type != new.type:
            raise InvalidInput(
                "cannot change a column of a view", sqlstate="42P16", column=old.name
            )
    if len(columns) < len(view.columns):
        raise InvalidInput("cannot drop columns from a view", sqlstate="42P16", name=view.name)


def refuse_or_drop_invalid_views(
    before: Catalog, edit: CatalogEdit, *, cascade: bool = False, can_cascade: bool = True
) -> None:
    """Drop the plain views that the edit makes invalid, with CASCADE; 2BP01 without it.
    `can_cascade`: the statement may say CASCADE."""
    while fallen := [
        one
        for one in _list_plain_views(edit.catalog)
        if _becomes_invalid(one, before, edit.catalog)
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
    drop_column_aliases(trial, table, column)
    gone = CatalogColumn(f"dropped {column.slot}", column.type_name, column.slot, dropped=True)
    trial.replace_column(table.id, gone)
    return [
        one
        for one in _list_plain_views(edit.catalog)
        if _becomes_invalid(one, edit.catalog, trial.catalog)
    ]


def _list_plain_views(catalog: Catalog) -> list[PlainView]:
    return [one for one in catalog.objects.values() if isinstance(one, PlainView)]


def _becomes_invalid(view: PlainView, before: Catalog, after: Catalog) -> bool:
    # A view that was invalid before does not block the change.
    return not _binds_under_catalog(view.id, after) and _binds_under_catalog(view.id, before)


def _binds_under_catalog(id_: int, catalog: Catalog) -> bool:
    """Whether the view, as the catalog has it, is valid in it; one that it does not have is no
    view that others broke."""
    view = catalog.get(id_)
    if not isinstance(view, PlainView):
        return False
    try:
        bind_statement(parse_script(view.definition)[0].tree, catalog)
    except (InvalidInput, Unsupported):
        return False
    return True
