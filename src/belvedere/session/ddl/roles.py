"""CREATE, ALTER and DROP ROLE, and membership: users and groups, passwords and first settings."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import msgspec

from belvedere.catalog.definition_rules import require_name
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import OWNER_ROLE, Membership, Role
from belvedere.catalog.rights.builtin_roles import OWNER_NAME, find_role, get_role
from belvedere.catalog.rights.role_rights import find_memberships
from belvedere.errors import InvalidInput
from belvedere.session.context.settings import require_setting
from belvedere.session.ddl.owners import require_role_unused
from belvedere.session.rights.identity import SessionIdentity
from belvedere.sql import definitions as d
from belvedere.values.datetime_text import parse_timestamptz
from belvedere.values.scram import SALT_BYTES, make_verifier

RoleStatement = d.CreateRole | d.AlterRole | d.DropRole | d.GrantRoles
RESERVED = frozenset({"public", "none", "current_role", "current_user", "session_user", OWNER_NAME})


def make_role_change(
    statement: RoleStatement, identity: SessionIdentity
) -> tuple[str, Callable[[CatalogEdit], None]]:
    """The tag of the statement, and what it does to the catalog."""
    match statement:
        case d.CreateRole():
            return "CREATE ROLE", lambda edit: _create_role(edit, statement, identity)
        case d.AlterRole():
            return "ALTER ROLE", lambda edit: _alter_role(edit, statement, identity)
        case d.DropRole():
            return "DROP ROLE", lambda edit: _drop_roles(edit, statement, identity)
        case d.GrantRoles():
            tag = "REVOKE ROLE" if statement.revokes else "GRANT ROLE"
            return tag, lambda edit: _change_memberships(edit, statement, identity)


def _create_role(edit: CatalogEdit, statement: d.CreateRole, identity: SessionIdentity) -> None:
    _require_free_role_name(edit, statement.name)
    role = Role(id=edit.allocate_id(), name=statement.name)
    edit.put(_apply_role_options(role, statement.options))
    for name in statement.member_of:
        _add_member(edit, find_role(edit.catalog, name), name, statement.name, identity, ())
    for name, admin in statement.members:
        options = (("admin", True),) if admin else ()
        _add_member(edit, edit.catalog.roles[statement.name], "", name, identity, options)
    creator = edit.catalog.get(identity.role)
    if isinstance(creator, Role) and not creator.superuser:
        made = Membership(role.id, admin=True, inherits=False, sets=False, grantor=OWNER_ROLE)
        edit.put(msgspec.structs.replace(creator, memberships=(*creator.memberships, made)))


def _alter_role(edit: CatalogEdit, statement: d.AlterRole, identity: SessionIdentity) -> None:
    role = _require_changeable_role(edit, statement.name, identity)
    if statement.new_name is not None:
        _require_free_role_name(edit, statement.new_name)
        role = msgspec.structs.replace(role, name=statement.new_name)
    if statement.setting is not None:
        role = msgspec.structs.replace(role, settings=_change_role_settings(role, statement))
    edit.put(_apply_role_options(role, statement.options))


def _change_role_settings(role: Role, statement: d.AlterRole) -> dict[str, str]:
    assert statement.setting is not None
    if statement.setting == "all":
        return {}
    setting = require_setting(statement.setting)
    if setting.fixed:
        raise InvalidInput("setting cannot be changed", sqlstate="55P02", name=setting.name)
    others = {name: text for name, text in role.settings.items() if name != setting.name}
    if statement.value is None:
        return others
    setting.parse(statement.value)
    return {**others, setting.name: statement.value}


def _drop_roles(edit: CatalogEdit, statement: d.DropRole, identity: SessionIdentity) -> None:
    for name in statement.names:
        if name in edit.catalog.roles or not statement.if_exists:
            role = _require_changeable_role(edit, name, identity)
            if role.id in (identity.role, identity.authorization, identity.login):
                raise InvalidInput("current user cannot be dropped", sqlstate="55006", name=name)
            require_role_unused(edit, role.id, name)
            edit.remove_object(role.id)
            for other in list(edit.catalog.roles.values()):
                kept = tuple(one for one in other.memberships if one.role != role.id)
                if kept != other.memberships:
                    edit.put(msgspec.structs.replace(other, memberships=kept))


def _apply_role_options(role: Role, options: d.RoleOptions) -> Role:
    names = ("login", "superuser", "create_role", "inherit", "connection_limit", "valid_until")
    changed = {name: value for name in names if (value := getattr(options, name)) is not None}
    if options.valid_until is not None:
        parse_timestamptz(options.valid_until)
    if options.password is not None:
        salt = secrets.token_bytes(SALT_BYTES)
        changed["verifier"] = make_verifier(options.password, salt) if options.password else None
    return msgspec.structs.replace(role, **changed)


# -- membership ------------------------------------------------------------------------------------


def _change_memberships(
    edit: CatalogEdit, statement: d.GrantRoles, identity: SessionIdentity
) -> None:
    for name in statement.roles:
        role = find_role(edit.catalog, name)
        for member in statement.members:
            if statement.revokes:
                _remove_member(edit, role, name, member, identity, statement.options)
            else:
                _add_member(edit, role, name, member, identity, statement.options)


def _add_member(
    edit: CatalogEdit,
    role: Role | None,
    name: str,
    member: str,
    identity: SessionIdentity,
    options: tuple[tuple[str, bool], ...],
) -> None:
    holder = _require_changeable_role(edit, member, identity)
    if role is None or role.id == OWNER_ROLE:
        raise InvalidInput("role does not exist", sqlstate="42704", name=name)
    if role.id == holder.id or holder.id in find_memberships(
        edit.catalog, role.id, lambda one: True
    ):
        raise InvalidInput(
            "role is a member of role", sqlstate="0LP01", role=role.name, member=holder.name
        )
    known = {one.role: one for one in holder.memberships}
    old = known.get(role.id, Membership(role.id, inherits=holder.inherit, grantor=identity.role))
    known[role.id] = _apply_membership_options(old, options)
    edit.put(msgspec.structs.replace(holder, memberships=tuple(known.values())))


def _apply_membership_options(
    membership: Membership, options: tuple[tuple[str, bool], ...]
) -> Membership:
    fields = {"admin": "admin", "inherit": "inherits", "set": "sets"}
    changed = {fields[name]: value for name, value in options}
    return msgspec.structs.replace(membership, **changed)


def _remove_member(
    edit: CatalogEdit,
    role: Role | None,
    name: str,
    member: str,
    identity: SessionIdentity,
    options: tuple[tuple[str, bool], ...],
) -> None:
    if role is None:
        raise InvalidInput("role does not exist", sqlstate="42704", name=name)
    holder = _require_changeable_role(edit, member, identity)
    known = {one.role: one for one in holder.memberships}
    if role.id not in known:
        return  # PostgreSQL warns
    if options:
        known[role.id] = _apply_membership_options(known[role.id], options)
    else:
        del known[role.id]
    edit.put(msgspec.structs.replace(holder, memberships=tuple(known.values())))


def _require_changeable_role(edit: CatalogEdit, name: str, identity: SessionIdentity) -> Role:
    """A stored role: the owner of the database and predefined roles are as they are."""
    id_ = identity.find_role_id(edit.catalog, name)
    role = get_role(edit.catalog, id_)
    if role is None or edit.catalog.get(id_) is not role:
        raise InvalidInput("role cannot be changed", sqlstate="42939", name=name)
    return role


def _require_free_role_name(edit: CatalogEdit, name: str) -> None:
    require_name(name)
    if name in RESERVED or name.startswith("pg_"):
        raise InvalidInput("role name is reserved", sqlstate="42939", name=name)
    if name in edit.catalog.roles:
        raise InvalidInput("role already exists", sqlstate="42710", name=name)
