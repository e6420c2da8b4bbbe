"""Replacement of a view: CREATE OR REPLACE, and a maintenance switch on a row-atomic store.

The new view is backfilled under a staged name while the old one serves reads; then its indexes are;
then one change of the catalog drops the old ones and gives the new ones their names. Until then
no statement sees them, and a crash leaves nothing of them, unless the new view is resumable.

    switch      where a commit cannot apply the log (a row-atomic store), ALTER .. SET (maintenance)
                builds the same view again with the other maintenance; views over it then read the
                new one. Its changefeed starts again with it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.comments import move_comments
from belvedere.catalog.definition_rules import dependents_error
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import ObjectState, View, ViewKind
from belvedere.catalog.rights.ownership import move_access_list
from belvedere.catalog.view_options import Backfill, encode_options
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan.fields import Fields
from belvedere.session.context.result import Result
from belvedere.session.materialized import create, view_indexes
from belvedere.sql import definitions as d
from belvedere.views.compile.defined_view import NewView

if TYPE_CHECKING:
    from belvedere.session.session import Session


class _Replacement(NamedTuple):
    """An old view and the staged name of its successor."""

    old: View
    staged: str
    definition: str  # of the successor, under its final name


def create_or_replace_view(session: Session, statement: d.CreateMaterializedView) -> Result:
    """CREATE [OR REPLACE] MATERIALIZED VIEW."""
    name, schema = statement.name.name, statement.name.schema or "public"
    replaces = statement.or_replace and not statement.if_not_exists
    if not replaces or session.catalog.find_relation(name, schema) is None:
        return create.create_materialized_view(session, statement)
    old = session.catalog.require_relation(View, name, schema)
    _require_no_dependents(session.catalog, old)
    staged = _make_staged_name(session, name)
    named = msgspec.structs.replace(statement, name=d.QualifiedName(schema, staged))
    pair = _Replacement(old, staged, statement.query)
    create.require_maintainable_view(session, statement)
    if session.transactions.has_transaction_to_keep:
        create.change_catalog_in_transaction(
            session, lambda edit: _replace_view_in_edit(session, edit, named, pair)
        )
    else:
        _build_and_publish_replacement(
            session, pair, lambda: create.create_view_online(session, named, replaces=old.id)
        )
    create.add_notice_of_untracked_dependency(session, statement)
    return Result("CREATE MATERIALIZED VIEW")


def resume_replacements(session: Session) -> None:
    """Finish replacements WITH (backfill = 'resumable') that a crash interrupted; the staged views
    are backfilled by now."""
    for new in session.host.catalog.views:
        if new.replaces is None or new.options.backfill is not Backfill.RESUMABLE:
            continue
        old = session.host.catalog.get(new.replaces)
        if isinstance(old, View) and old.state is ObjectState.READY:
            _build_and_publish_replacement(
                session, _Replacement(old, new.name, new.definition), lambda: None
            )
        else:
            session.host.change_schema(partial(_drop_view_cascade, id_=new.id))


def _drop_view_cascade(edit: CatalogEdit, id_: int) -> None:
    edit.drop_view(id_, cascade=True)


def alter_needs_view_rebuild(session: Session, statement: d.Alter) -> bool:
    """Whether an ALTER has to build its view again: it asks for the other maintenance, and a commit
    of this store cannot bring the state to its position."""
    if not session.host.row_atomic:
        return False
    found = session.catalog.find_relation(statement.name.name, statement.name.schema or "public")
    if not isinstance(found, View) or len(statement.actions) != 1:
        return False
    (action,) = statement.actions
    if not isinstance(action, d.SetOptions | d.ResetOptions):
        return False
    wanted = create.merge_and_check_alter_options(session, found, action)
    return wanted.maintenance is not found.maintenance


def switch_maintenance_by_rebuild(session: Session, statement: d.Alter) -> Result:
    schema = statement.name.schema or "public"
    old = session.catalog.require_relation(View, statement.name.name, schema)
    (action,) = statement.actions
    assert isinstance(action, d.SetOptions | d.ResetOptions)
    session.transactions.require_nothing_open("alter materialized view")
    options = create.merge_and_check_alter_options(session, old, action)
    if [field.type for field in _bind_definition_fields(session.catalog, old)] != [
        c.type for c in old.columns
    ]:
        raise Unsupported(
            "switching a view whose tables have other columns now, on a row-atomic store",
            hint="use CREATE OR REPLACE MATERIALIZED VIEW",
        )
    staged = _make_staged_name(session, old.name)

    def build_staged_view() -> None:
        new = NewView(
            staged,
            old.definition,
            options.maintenance,
            schema,
            options,
            columns=tuple(column.name for column in old.columns),
            reads=old.reads,
            replaces=old.id,
        )
        session.host.views.create_views([new])

    session.transactions.end_transaction_that_only_read()
    _build_and_publish_replacement(
        session, _Replacement(old, staged, old.definition), build_staged_view
    )
    return Result("ALTER")


def _bind_definition_fields(catalog: Catalog, view: View) -> Fields:
    try:
        return create.bind_simplified_definition(catalog, view.definition).fields
    except InvalidInput:
        return ()


def _make_staged_name(session: Session, name: str) -> str:
    return f"{name} (new {session.host.position})"


def _require_no_dependents(catalog: Catalog, view: View) -> None:
    """2BP01 when another view reads this one, whose columns may change."""
    others = [one for one in catalog.dependent_views(view.id) if not _is_index_of_view(one, view)]
    users = [f"view {one.name}" for one in others if not one.part]
    if users:
        raise dependents_error(view, users)


def _is_index_of_view(one: View, view: View) -> bool:
    return one.kind is ViewKind.INDEX and one.reads == (view.id,)


# -- replacement -----------------------------------------------------------------------------------


def _build_and_publish_replacement(
    session: Session,
    pair: _Replacement,
    make: Callable[[], None],
) -> None:
    """`make` creates the new view under its staged name."""
    catalog = session.catalog
    schema = _find_schema_name(catalog, pair.old)
    indexes = [
        one for one in catalog.dependent_views(pair.old.id) if _is_index_of_view(one, pair.old)
    ]
    pairs: list[_Replacement] = []
    make()
    try:
        for index in indexes:
            staged = _make_staged_name(session, index.name)
            pairs.append(_Replacement(index, staged, ""))
            new = session.host.catalog.require_relation(View, pair.staged, schema)
            pairs[-1] = pairs[-1]._replace(
                definition=view_indexes.copy_index_to_new_view(
                    session, index, new, staged, pair.old.name
                )
            )
        session.host.change_schema(lambda edit: _publish_replacement(edit, schema, pair, pairs))
    except BaseException:
        names = [one.staged for one in (*reversed(pairs), pair)]
        session.host.change_schema(lambda edit: _drop_staged_views(edit, schema, names))
        raise


def _replace_view_in_edit(
    session: Session, edit: CatalogEdit, statement: d.CreateMaterializedView, pair: _Replacement
) -> None:
    """The same in one change of the catalog, a part of a transaction. `statement` has the staged
    name."""
    schema, views = _find_schema_name(edit.catalog, pair.old), session.host.views
    indexes = view_indexes.list_view_indexes(edit.catalog, pair.old)
    views.create_view_in_edit(edit, create.bind_new_view(session, statement))
    new = edit.catalog.require_relation(View, pair.staged, schema)
    pairs = []
    for index in indexes:
        copy, definition = view_indexes.define_index_copy(
            edit.catalog, index, new, _make_staged_name(session, index.name), pair.old.name
        )
        views.create_view_in_edit(edit, copy)
        pairs.append(_Replacement(index, copy.name, definition))
    _publish_replacement(edit, schema, pair, pairs)


def _publish_replacement(
    edit: CatalogEdit, schema: str, pair: _Replacement, indexes: Sequence[_Replacement]
) -> None:
    new = edit.catalog.require_relation(View, pair.staged, schema)
    for one in indexes:
        edit.drop_view(one.old.id)
    for user in edit.catalog.dependent_views(pair.old.id):
        if user.replaces is None:
            reads = tuple(new.id if id_ == pair.old.id else id_ for id_ in user.reads)
            edit.put(msgspec.structs.replace(user, reads=reads))
    edit.drop_view(pair.old.id)
    move_access_list(edit, pair.old, new)
    move_comments(edit, pair.old, new)
    for one in (pair, *indexes):
        _rename_staged_view(edit, edit.catalog.require_relation(View, one.staged, schema), one)


def _rename_staged_view(edit: CatalogEdit, made: View, pair: _Replacement) -> None:
    """Give a view its name, and with it the auxiliary views that were made for it."""
    stored = encode_options(made.options, made.index)
    renamed = msgspec.structs.replace(
        made, name=pair.old.name, stored_options=stored, definition=pair.definition
    )
    edit.put(renamed)
    for one in [edit.catalog.get(id_) for id_ in made.auxiliary_views]:
        if isinstance(one, View) and one.definition == made.definition:
            name = one.name.replace(pair.staged, pair.old.name)
            free = edit.catalog.find_relation(name, _find_schema_name(edit.catalog, one)) is None
            edit.put(
                msgspec.structs.replace(
                    one, name=name if free else one.name, definition=pair.definition
                )
            )


def _find_schema_name(catalog: Catalog, view: View) -> str:
    return next(one.name for one in catalog.schemas if one.id == view.schema)


def _drop_staged_views(edit: CatalogEdit, schema: str, names: Sequence[str]) -> None:
    for name in names:
        found = edit.catalog.find_relation(name, schema)
        if isinstance(found, View):
            edit.drop_view(found.id, cascade=True)
