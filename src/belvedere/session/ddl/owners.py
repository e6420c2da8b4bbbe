"""Owners of objects: OWNER TO, REASSIGN OWNED, DROP OWNED, and what keeps a role from being
dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from belvedere.catalog.catalog import is_dropped
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import (
    AccessList,
    AnyObject,
    Grant,
    Index,
    Schema,
    Sequence,
    Table,
    View,
    ViewKind,
)
from belvedere.catalog.rights.ownership import put_access_list
from belvedere.catalog.rights.role_rights import find_object_owner, find_role_rights
from belvedere.errors import InvalidInput, Unsupported
from belvedere.session.rights.denials import permission_denied
from belvedere.session.rights.identity import SessionIdentity
from belvedere.sql import definitions as d

DropObject = Callable[[CatalogEdit, Any, bool], None]


def change_owner(edit: CatalogEdit, statement: d.Alter, identity: SessionIdentity) -> None:
    """ALTER .. OWNER TO."""
    action = statement.actions[0]
    if len(statement.actions) > 1 or not isinstance(action, d.SetOwner):
        raise Unsupported("OWNER TO together with other actions", hint="use two statements")
    item = _find_altered_object(edit, statement)
    if item is None:
        return
    if isinstance(item, Sequence) and item.owner is not None:
        raise InvalidInput(
            "cannot change owner of a column's sequence", sqlstate="0A000", name=item.name
        )
    role = identity.find_role_id(edit.catalog, action.role)
    if identity.find_rights_unless_superuser(edit.catalog) is not None:
        _require_right_to_create(edit, item, role)
    _set_owner(edit, item, role)


def _find_altered_object(edit: CatalogEdit, statement: d.Alter) -> AnyObject | None:
    if statement.kind == "schema":
        return edit.catalog.objects[edit.catalog.schema_id(statement.name.name)]
    item = edit.catalog.find_relation(statement.name.name, statement.name.schema or "public")
    if item is None and not statement.if_exists:
        raise InvalidInput("relation does not exist", sqlstate="42P01", name=statement.name.name)
    if isinstance(item, Index) or (isinstance(item, View) and item.kind is not ViewKind.USER):
        raise InvalidInput(
            "cannot change owner of index",
            sqlstate="42809",
            hint="change the owner of its table",
            name=item.name,
        )
    return item


def _require_right_to_create(edit: CatalogEdit, item: AnyObject, role: int) -> None:
    """The new owner could have made the object there."""
    rights = find_role_rights(edit.catalog, role)
    if isinstance(item, Schema):
        if not rights.creates_in_database:
            raise permission_denied(edit.catalog.head)
    elif not rights.has(edit.catalog.objects[item.schema], "C"):
        raise permission_denied(edit.catalog.objects[item.schema])


def _set_owner(edit: CatalogEdit, item: AnyObject, role: int) -> None:
    """The new owner gets what the old one had; grants that the old one gave become his."""
    old = find_object_owner(edit.catalog, item)
    found = edit.catalog.access_lists.get(item.id)
    found = found or AccessList(id=0, name="", object=item.id, owner=old)
    grants = None if found.grants is None else _replace_role_in_grants(found.grants, old, role)
    columns = {k: _replace_role_in_grants(one, old, role) for k, one in found.column_grants.items()}
    put_access_list(edit, replace(found, owner=role, column_grants=columns), grants)


def _replace_role_in_grants(grants: tuple[Grant, ...], old: int, new: int) -> tuple[Grant, ...]:
    return tuple(
        Grant(
            new if one.grantee == old else one.grantee,
            one.privileges,
            one.grantable,
            new if one.grantor == old else one.grantor,
        )
        for one in grants
        if not (one.grantee == new and one.grantor == old)
    )


# -- all that a role has ---------------------------------------------------------------------------


def reassign_owned(
    edit: CatalogEdit, statement: d.ReassignOwned, identity: SessionIdentity
) -> None:
    new = identity.find_role_id(edit.catalog, statement.new_owner)
    for name in statement.roles:
        for item in list(list_owned_objects(edit, identity.find_role_id(edit.catalog, name))):
            _set_owner(edit, item, new)


def drop_owned(
    edit: CatalogEdit, statement: d.DropOwned, identity: SessionIdentity, drop: DropObject
) -> None:
    """Drop what roles own, and take away what they were granted."""
    for name in statement.roles:
        role = identity.find_role_id(edit.catalog, name)
        for item in sorted(list_owned_objects(edit, role), key=_rank_for_drop):
            current = edit.catalog.get(item.id)
            if current is not None and not is_dropped(current):
                drop(edit, current, statement.cascade)
        for found in list(edit.catalog.access_lists.values()):
            if _mentions_role(found, role):
                put_access_list(
                    edit,
                    _remove_column_grants_of_role(found, role),
                    _remove_grants_of_role(found.grants, role),
                )
        for one in edit.catalog.default_privileges:
            kept = _remove_grants_of_role(one.grants, role)
            if one.role == role or not kept:
                edit.remove_object(one.id)
            elif kept != one.grants:
                edit.put(replace(one, grants=kept))


def _rank_for_drop(item: AnyObject) -> int:
    """Views before tables, schemas last."""
    return 2 if isinstance(item, Schema) else 1 if isinstance(item, Table) else 0


def list_owned_objects(edit: CatalogEdit, role: int) -> Iterator[AnyObject]:
    """The live objects of a role."""
    for found in edit.catalog.access_lists.values():
        item = edit.catalog.get(found.object)
        if item is not None and not is_dropped(item):
            if found.owner == role and find_object_owner(edit.catalog, item) == role:
                yield item


def _remove_column_grants_of_role(found: AccessList, role: int) -> AccessList:
    columns = {k: _remove_grants_of_role(one, role) or () for k, one in found.column_grants.items()}
    return replace(found, column_grants={k: one for k, one in columns.items() if one})


def _remove_grants_of_role(grants: tuple[Grant, ...] | None, role: int) -> tuple[Grant, ...] | None:
    if grants is None:
        return None
    return tuple(one for one in grants if role not in (one.grantee, one.grantor))


def _mentions_role(found: AccessList, role: int) -> bool:
    every = [*(found.grants or ()), *(g for one in found.column_grants.values() for g in one)]
    return any(role in (one.grantee, one.grantor) for one in every)


def require_role_unused(edit: CatalogEdit, role: int, name: str) -> None:
    """2BP01 when a role owns something or has a right on something."""
    left = [f"owner of {item.name}" for item in list_owned_objects(edit, role)]
    for found in edit.catalog.access_lists.values():
        item = edit.catalog.get(found.object)
        if item is not None and not is_dropped(item) and _mentions_role(found, role):
            left.append(f"privileges for {item.name}")
    for one in edit.catalog.default_privileges:
        if one.role == role or any(role in (g.grantee, g.grantor) for g in one.grants):
            left.append("default privileges")
    if left:
        raise InvalidInput(
            "role cannot be dropped because some objects depend on it",
            sqlstate="2BP01",
            detail=", ".join(left),
            hint="REASSIGN OWNED and DROP OWNED take them away",
            name=name,
        )
