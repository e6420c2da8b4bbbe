"""CREATE [UNIQUE] INDEX .. ON a materialized view.

An index of a view is a view of its own: all columns of the view, those of the index first, stored
in their order. It is maintained like its view, from the base tables, also after that view is
switched, unless its options say otherwise; a unique one is always immediate, so that the
transaction that violates it is the one that fails.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Maintenance, View, ViewKind
from belvedere.catalog.view_options import (
    SCHEDULE_NAMES,
    IndexColumns,
    ViewOptions,
    check_options,
    parse_options,
)
from belvedere.errors import InvalidInput, Unsupported
from belvedere.session.context.result import Result
from belvedere.session.materialized.create import create_index_stored_as_view
from belvedere.session.materialized.table_index_views import require_known_index_options
from belvedere.sql import definitions as d
from belvedere.values.quoting import quote_identifier
from belvedere.views.compile.defined_view import NewView
from belvedere.views.indexes.unique_view_index import require_unique_index_rows
from belvedere.views.registry.transitions import edit_view_maintenance

if TYPE_CHECKING:
    from belvedere.session.session import Session

_INHERITED_OPTIONS = ("maintenance", "strict", *SCHEDULE_NAMES)


def find_indexed_view(catalog: Catalog, statement: d.CreateIndex) -> View | None:
    """The view that the statement indexes; None when it indexes something else."""
    found = catalog.find_relation(statement.table.name, statement.table.schema or "public")
    return found if isinstance(found, View) else None


def create_view_index(session: Session, statement: d.CreateIndex, view: View) -> Result:
    names = _check_and_list_index_columns(statement, view)
    schema = statement.table.schema or "public"
    name = statement.name or f"{view.name}_{'_'.join(names)}_idx"
    if session.catalog.find_relation(name, schema) is not None and statement.if_not_exists:
        return Result("CREATE INDEX")
    every = [column.name for column in view.columns]
    columns = [*names, *(column for column in every if column not in names)]
    options = _merge_index_options(statement, view)
    slots = tuple(every.index(column) for column in columns)
    new = NewView(
        name,
        _format_index_query(schema, view.name, columns),
        options.maintenance,
        schema,
        options,
        reads=(view.id,),
        index=IndexColumns(slots, len(names), len(names) if statement.unique else None),
    )
    begun = (
        session.transactions.has_transaction_to_keep
    )  # then the rows are checked where they are made
    create_index_stored_as_view(session, new)
    if statement.unique and not begun:
        _drop_index_if_not_unique(session, name, schema)
    return Result("CREATE INDEX")


def copy_index_to_new_view(session: Session, index: View, view: View, name: str, final: str) -> str:
    """Create on `view`, which will replace another view, an index like `index` of that other view;
    returns its definition for when the view is called `final`. 2BP01 when the view lacks a key
    column of the index."""
    new, definition = define_index_copy(session.host.catalog, index, view, name, final)
    session.host.views.create_views([replace(new, replaces=index.id)])
    if index.is_unique:
        _drop_index_if_not_unique(session, name, new.schema)
    return definition


def define_index_copy(
    catalog: Catalog, index: View, view: View, name: str, final: str
) -> tuple[NewView, str]:
    """The same index of another view, and its definition for when that is called `final`."""
    schema = next(one.name for one in catalog.schemas if one.id == view.schema)
    every = [column.name for column in view.columns]
    known = [column.name for column in index.columns]
    assert index.index is not None
    keys = known[: index.index.key_count]
    lost = [column for column in keys if column not in every]
    if lost:
        raise InvalidInput(
            "an index of the view needs a column that it no longer has",
            sqlstate="2BP01",
            hint="drop the index first",
            index=index.name,
            column=lost[0],
        )
    columns = [*keys, *(column for column in every if column not in keys)]
    options = _choose_inherited_options(catalog, index, view)
    new = NewView(
        name,
        _format_index_query(schema, view.name, columns),
        options.maintenance,
        schema,
        options,
        reads=(view.id,),
        index=index.index._replace(slots=tuple(every.index(column) for column in columns)),
    )
    return new, _format_index_query(schema, final, columns)


def _format_index_query(schema: str, view: str, columns: list[str]) -> str:
    listed = ", ".join(map(quote_identifier, columns))
    return f"SELECT {listed} FROM {quote_identifier(schema, view)}"


def _merge_index_options(statement: d.CreateIndex, view: View) -> ViewOptions:
    given = dict(statement.options)
    if statement.unique:
        if given.get("maintenance", "immediate").lower() != "immediate" or "placement" in given:
            raise Unsupported("a unique index that is not immediate and remote")
        given = {**view.options.select_texts(["strict"]), **given}
    else:
        own = given.keys() & {"maintenance", *SCHEDULE_NAMES}
        inherited = [k for k in _INHERITED_OPTIONS if not (own and k in SCHEDULE_NAMES)]
        given = {**view.options.select_texts(inherited), **given}
    options = check_options(given)
    return options.with_text("maintenance", options.maintenance.value)


def _check_and_list_index_columns(statement: d.CreateIndex, view: View) -> list[str]:
    require_known_index_options(statement)
    if statement.where is not None or any(part.column is None for part in statement.parts):
        raise Unsupported(
            "a condition or an expression in an index of a view",
            hint="put it into the view, or make a view of the view",
        )
    if not statement.nulls_distinct:
        raise Unsupported("NULLS NOT DISTINCT in an index of a view")
    known = {column.name for column in view.columns}
    names = [part.column for part in statement.parts if part.column is not None]
    for name in (*names, *statement.include):
        if name not in known:
            raise InvalidInput("column does not exist", sqlstate="42703", column=name)
    return list(dict.fromkeys(names))


def _drop_index_if_not_unique(session: Session, name: str, schema: str) -> None:
    """Drop the new index when existing rows have equal keys; from its creation on no commit adds
    such rows."""
    index = session.host.catalog.require_relation(View, name, schema)
    try:
        with session.host.begin() as reader:
            require_unique_index_rows(reader, index)
    except BaseException:
        session.host.change_schema(lambda edit: edit.drop_view(index.id))
        raise


# -- following the indexed view --------------------------------------------------------------------


def list_view_indexes(catalog: Catalog, view: View) -> list[View]:
    """The indexes of a view."""
    users = catalog.dependent_views(view.id)
    return [user for user in users if user.kind is ViewKind.INDEX and user.reads == (view.id,)]


def drop_view_indexes(edit: CatalogEdit, view: View) -> None:
    """Drop the indexes of a view, before the view itself is dropped."""
    for index in list_view_indexes(edit.catalog, view):
        edit.drop_view(index.id)


def refresh_view_and_indexes(session: Session, view: View) -> None:
    """Bring a deferred view and its indexes to the newest position."""
    for one in (view, *list_view_indexes(session.catalog, view)):
        if one.maintenance is Maintenance.DEFERRED:
            session.host.views.catch_up_view(one)


def switch_index_maintenance(
    session: Session, before: Catalog, edit: CatalogEdit, id_: int
) -> None:
    """Switch the maintenance of a view's indexes to what the view has now."""
    view = _require_view(edit.catalog, id_)
    for index in list_view_indexes(edit.catalog, view):
        options = _choose_inherited_options(before, index, view)
        maintenance = options.maintenance
        if options != index.options:
            if index.maintenance is not maintenance is Maintenance.IMMEDIATE:
                session.host.views.catch_up_view(index)
            edit_view_maintenance(edit, index, maintenance, options)


def _choose_inherited_options(before: Catalog, index: View, new: View) -> ViewOptions:
    """The options of an index beside the view as it is now: those of the view, unless it was not
    kept like the view before."""
    old = _require_view(before, index.reads[0])
    alike = index.options.schedule == old.options.schedule
    if index.is_unique or index.maintenance is not old.maintenance or not alike:
        return index.options
    own = {k: text for k, text in index.options.texts.items() if k not in SCHEDULE_NAMES}
    schedule = new.options.select_texts(SCHEDULE_NAMES)
    return parse_options(own | schedule | {"maintenance": new.maintenance.value})


def _require_view(catalog: Catalog, id_: int) -> View:
    found = catalog.get(id_)
    assert isinstance(found, View)
    return found
