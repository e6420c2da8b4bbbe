"""Owners of new objects, and access lists that follow an object."""

from __future__ import annotations

from msgspec.structs import replace

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import (
    OWNER_ROLE,
    AccessList,
    AnyObject,
    Grant,
    View,
    ViewKind,
    match_slots_by_name,
)
from belvedere.catalog.rights.grant import add_privileges
from belvedere.catalog.rights.privileges import classify_object, list_default_grants


def assign_owner(edit: CatalogEdit, role: int) -> None:
    """Make a role the owner of what the edit has made, with its default privileges."""
    if role == OWNER_ROLE and not edit.before.default_privileges:
        return
    for id_, item in edit.changed_objects().items():
        if item is None or id_ < edit.first_id or not has_access_list(item):
            continue
        if id_ not in edit.catalog.access_lists:
            grants = find_default_privileges(edit.catalog, role, item)
            if role != OWNER_ROLE or grants is not None:
                put_access_list(edit, AccessList(id=0, name="", object=id_, owner=role), grants)


def has_access_list(item: AnyObject) -> bool:
    """Whether an object has an owner of its own: an index and an auxiliary view have none."""
    if isinstance(item, View) and item.kind is not ViewKind.USER:
        return False
    return classify_object(item) is not None


def find_default_privileges(
    catalog: Catalog, role: int, item: AnyObject
) -> tuple[Grant, ...] | None:
    """What ALTER DEFAULT PRIVILEGES says of a new object; None: nothing."""
    kind = classify_object(item)
    fitting = [
        one
        for one in catalog.default_privileges
        if one.role == role and one.objects == kind and one.in_schema in (0, item.schema)
    ]
    if kind is None or not fitting:
        return None
    grants = list_default_grants(kind, role, item.id)
    for one in fitting:
        if one.in_schema == 0:
            grants = one.grants
    for one in fitting:
        if one.in_schema != 0:
            for grant in one.grants:
                grants = add_privileges(
                    grants, grant.grantor, grant.grantee, grant.privileges, grantable=False
                )
                grants = add_privileges(
                    grants, grant.grantor, grant.grantee, grant.grantable, grantable=True
                )
    return grants


def put_access_list(edit: CatalogEdit, found: AccessList, grants: tuple[Grant, ...] | None) -> None:
    """Store a list; one with id 0 is new."""
    id_ = found.id or edit.allocate_id()
    edit.put(replace(found, id=id_, grants=grants))


def move_access_list(edit: CatalogEdit, old: AnyObject, new: AnyObject) -> None:
    """Give the object that replaces another its owner and grants, by the names of columns."""
    found = edit.catalog.access_lists.get(old.id)
    own = edit.catalog.access_lists.get(new.id)
    if own is not None:
        edit.remove_object(own.id)
    if found is None:
        return
    slots = match_slots_by_name(old, new)
    columns = {slots[slot]: kept for slot, kept in found.column_grants.items() if slot in slots}
    edit.put(replace(found, object=new.id, column_grants=columns))
