"""GRANT, REVOKE, ALTER DEFAULT PRIVILEGES as changes of access lists.

A grant is recorded as given by the owner when the owner, a member of it or a superuser gives it;
otherwise by the role that holds the grant option. Who holds some of the options grants those and
gets a notice; who holds none is refused (42501), as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec.structs import replace

from belvedere.catalog.catalog import is_dropped
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import (
    HEAD_ID,
    PUBLIC_ROLE,
    AccessList,
    AnyObject,
    DefaultPrivileges,
    ForeignTable,
    Grant,
    PlainView,
    Table,
    View,
)
from belvedere.catalog.rights.grant import add_privileges, remove_privileges
from belvedere.catalog.rights.ownership import has_access_list, put_access_list
from belvedere.catalog.rights.privileges import (
    KINDS,
    LETTERS,
    classify_object,
    list_default_grants,
)
from belvedere.catalog.rights.role_rights import (
    RoleRights,
    find_object_owner,
    find_role_rights,
    list_grants,
)
from belvedere.errors import InvalidInput
from belvedere.session.rights.data_rights import require_schema_usage
from belvedere.session.rights.denials import permission_denied
from belvedere.session.rights.identity import SessionIdentity
from belvedere.sql import definitions as d

AddNotice = Callable[[str], None]


class Giver(NamedTuple):
    """Who grants: the session's identity and rights, and where its notices go."""

    identity: SessionIdentity
    rights: RoleRights
    add_notice: AddNotice


def change_privileges(
    edit: CatalogEdit,
    statement: d.GrantPrivileges,
    identity: SessionIdentity,
    add_notice: AddNotice,
) -> None:
    giver = Giver(identity, find_role_rights(edit.catalog, identity.role), add_notice)
    grantees = [find_grantee(edit, identity, name) for name in statement.roles]
    whole = [one for one in statement.privileges if not one.columns]
    for item in _find_named_objects(edit, statement):
        if statement.kind in ("table", "sequence"):
            require_schema_usage(edit.catalog, giver.rights, item.schema)
        if whole:
            letters = _collect_privilege_letters(whole, _classify_grantable(item), statement.kind)
            _change_object_grants(edit, giver, statement, item, grantees, letters)
        for clause in statement.privileges:
            for name in clause.columns:
                letters = _collect_privilege_letters([clause], "column", statement.kind)
                _change_column_grants(edit, giver, statement, (item, name), grantees, letters)


def find_grantee(edit: CatalogEdit, identity: SessionIdentity, name: str) -> int:
    return PUBLIC_ROLE if name == "public" else identity.find_role_id(edit.catalog, name)


def _classify_grantable(item: AnyObject) -> str:
    kind = classify_object(item)
    assert kind is not None
    return kind


def _find_named_objects(edit: CatalogEdit, statement: d.GrantPrivileges) -> list[AnyObject]:
    catalog = edit.catalog
    if statement.kind == "database":
        return [catalog.objects[HEAD_ID]]
    if statement.kind == "schema":
        return [catalog.objects[catalog.schema_id(name.name)] for name in statement.names]
    if statement.in_schemas:
        schemas = {catalog.schema_id(name.name) for name in statement.names}
        return [
            item
            for item in catalog.objects.values()
            if item.schema in schemas
            and classify_object(item) == statement.kind
            and has_access_list(item)
            and not is_dropped(item)
        ]
    return [_find_relation(edit, statement.kind, name) for name in statement.names]


def _find_relation(edit: CatalogEdit, kind: str, name: d.QualifiedName) -> AnyObject:
    item = edit.catalog.find_relation(name.name, name.schema or "public")
    found = None if item is None else classify_object(item)
    if item is None or found is None:
        raise InvalidInput("relation does not exist", sqlstate="42P01", name=name.name)
    if kind == "sequence" and found != "sequence":
        raise InvalidInput("not a sequence", sqlstate="42809", name=name.name)
    return item


def _collect_privilege_letters(clauses: Iterable[d.PrivilegeClause], kind: str, said: str) -> str:
    """The letters of privileges; 0LP01 for one that such an object does not have."""
    letters = ""
    for one in clauses:
        if one.name == "all":
            letters += KINDS[kind]
            continue
        letter = LETTERS.get(one.name)
        if letter is None:
            raise InvalidInput("unrecognized privilege type", sqlstate="42601", name=one.name)
        if letter not in KINDS[kind]:
            raise InvalidInput(
                f"invalid privilege type for {kind}", sqlstate="0LP01", privilege=one.name
            )
        letters += letter
    return letters


# -- one object ------------------------------------------------------------------------------------


def _change_object_grants(
    edit: CatalogEdit,
    giver: Giver,
    statement: d.GrantPrivileges,
    item: AnyObject,
    grantees: list[int],
    letters: str,
) -> None:
    grantor, allowed = _choose_grantor(edit, giver, statement, item, letters, None)
    grants = list_grants(edit.catalog, item)
    owner = find_object_owner(edit.catalog, item)
    grants = _grant_or_revoke_letters(grants, statement, grantor, grantees, allowed, owner)
    put_access_list(edit, _find_or_make_access_list(edit, item), grants)
    if statement.revokes and isinstance(item, Table | ForeignTable | View | PlainView):
        _revoke_from_columns(edit, statement, item, grantor, grantees, allowed)


def _revoke_from_columns(
    edit: CatalogEdit,
    statement: d.GrantPrivileges,
    item: Table | ForeignTable | View | PlainView,
    grantor: int,
    grantees: list[int],
    letters: str,
) -> None:
    """REVOKE of a table's privilege takes it from the columns, too."""
    found = _find_or_make_access_list(edit, item)
    if not found.column_grants:
        return
    changed = {
        slot: _grant_or_revoke_letters(grants, statement, grantor, grantees, letters, found.owner)
        for slot, grants in found.column_grants.items()
    }
    kept = {slot: grants for slot, grants in changed.items() if grants}
    put_access_list(edit, replace(found, column_grants=kept), found.grants)


def _change_column_grants(
    edit: CatalogEdit,
    giver: Giver,
    statement: d.GrantPrivileges,
    target: tuple[AnyObject, str],
    grantees: list[int],
    letters: str,
) -> None:
    item, name = target
    if not isinstance(item, Table | ForeignTable | View | PlainView):
        raise InvalidInput("column privileges are only of tables and views", sqlstate="0LP01")
    slots = [c.slot for c in item.columns if c.name == name and not c.dropped and not c.hidden]
    if not slots:
        raise InvalidInput("column does not exist", sqlstate="42703", column=name)
    grantor, allowed = _choose_grantor(edit, giver, statement, item, letters, slots[0])
    found = _find_or_make_access_list(edit, item)
    grants = found.column_grants.get(slots[0], ())
    grants = _grant_or_revoke_letters(grants, statement, grantor, grantees, allowed, found.owner)
    columns = {**found.column_grants, slots[0]: grants}
    kept = {slot: one for slot, one in columns.items() if one}
    put_access_list(edit, replace(found, column_grants=kept), found.grants)


def _find_or_make_access_list(edit: CatalogEdit, item: AnyObject) -> AccessList:
    """The list of an object; a new one has no id yet."""
    found = edit.catalog.access_lists.get(item.id)
    owner = find_object_owner(edit.catalog, item)
    return found or AccessList(id=0, name="", object=item.id, owner=owner)


def _choose_grantor(
    edit: CatalogEdit,
    giver: Giver,
    statement: d.GrantPrivileges,
    item: AnyObject,
    letters: str,
    slot: int | None,
) -> tuple[int, str]:
    """Who is recorded as giving, and what of the privileges he may give."""
    if giver.rights.owns(item):
        return find_object_owner(edit.catalog, item), letters
    options = giver.rights.find_grantable(item, slot)
    allowed = "".join(letter for letter in letters if letter in options)
    if not allowed:
        if not giver.rights.find_letters(item, slot):
            raise permission_denied(item)
        verb = "revoked" if statement.revokes else "granted"
        giver.add_notice(f'no privileges were {verb} for "{item.name}"')
    elif set(allowed) != set(letters):
        verb = "revoked" if statement.revokes else "granted"
        giver.add_notice(f'not all privileges were {verb} for "{item.name}"')
    return _find_grant_option_holder(edit, giver, item, allowed, slot), allowed


def _find_grant_option_holder(
    edit: CatalogEdit, giver: Giver, item: AnyObject, letters: str, slot: int | None
) -> int:
    """The role, of those whose rights the session has, that holds the grant options."""
    grants = list_grants(edit.catalog, item)
    found = edit.catalog.access_lists.get(item.id)
    if slot is not None and found is not None:
        grants += found.column_grants.get(slot, ())
    for one in grants:
        if one.grantee in giver.rights.roles and set(letters) <= set(one.grantable):
            return one.grantee
    return giver.rights.id


def _grant_or_revoke_letters(
    grants: tuple[Grant, ...],
    statement: d.GrantPrivileges,
    grantor: int,
    grantees: list[int],
    letters: str,
    owner: int,
) -> tuple[Grant, ...]:
    if not letters:
        return grants
    for grantee in grantees:
        if statement.revokes:
            grants = remove_privileges(
                grants,
                grantor,
                grantee,
                letters,
                only_option=statement.option,
                cascade=statement.cascade,
                owner=owner,
            )
        else:
            grants = add_privileges(
                grants, grantor, grantee, letters, grantable=statement.option, owner=owner
            )
    return grants


# -- default privileges ----------------------------------------------------------------------------


def change_default_privileges(
    edit: CatalogEdit, statement: d.AlterDefaultPrivileges, identity: SessionIdentity
) -> None:
    names = statement.roles or ("current_role",)
    schemas = [edit.catalog.schema_id(name) for name in statement.schemas] or [0]
    kind = statement.grant.kind
    if kind == "schema" and statement.schemas:
        raise InvalidInput("cannot use IN SCHEMA with SCHEMAS", sqlstate="0LP01")
    grantees = [find_grantee(edit, identity, name) for name in statement.grant.roles]
    letters = _collect_privilege_letters(statement.grant.privileges, kind, kind)
    for name in names:
        role = identity.find_role_id(edit.catalog, name)
        for schema in schemas:
            _change_default_grants(edit, statement.grant, (role, kind, schema), grantees, letters)


def _change_default_grants(
    edit: CatalogEdit,
    grant: d.GrantPrivileges,
    key: tuple[int, str, int],
    grantees: list[int],
    letters: str,
) -> None:
    role, kind, schema = key
    usual = list_default_grants(kind, role, -1) if schema == 0 else ()
    for one in edit.catalog.default_privileges:
        if (one.role, one.objects, one.in_schema) == key:
            found = one
            break
    else:
        found = DefaultPrivileges(
            id=0, name="", role=role, objects=kind, in_schema=schema, grants=usual
        )
    grants = _grant_or_revoke_letters(found.grants, grant, role, grantees, letters, role)
    if set(grants) == set(usual):
        if found.id:
            edit.remove_object(found.id)
        return
    edit.put(replace(found, id=found.id or edit.allocate_id(), grants=grants))
