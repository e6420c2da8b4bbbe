"""CREATE, ALTER and DROP ROLE: users and groups, their passwords and first settings."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import msgspec

from belvedere.catalog.definition_rules import require_name
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Role
from belvedere.errors import InvalidInput
from belvedere.session.context.settings import require_setting
from belvedere.sql import definitions as d
from belvedere.values.datetime_text import parse_timestamptz
from belvedere.values.scram import SALT_BYTES, make_verifier

RoleStatement = d.CreateRole | d.AlterRole | d.DropRole
RESERVED = frozenset({"public", "none", "current_role", "current_user", "session_user"})


def change_roles(statement: RoleStatement) -> tuple[str, Callable[[CatalogEdit], None]]:
    """The tag of the statement, and what it does to the catalog."""
    match statement:
        case d.CreateRole():
            return "CREATE ROLE", lambda edit: _create_role(edit, statement)
        case d.AlterRole():
            return "ALTER ROLE", lambda edit: _alter_role(edit, statement)
        case d.DropRole():
            return "DROP ROLE", lambda edit: _drop_roles(edit, statement)


def _create_role(edit: CatalogEdit, statement: d.CreateRole) -> None:
    _require_free_name(edit, statement.name)
    role = Role(id=edit.allocate_id(), name=statement.name)
    edit.put(_apply_options(role, statement.options))


def _alter_role(edit: CatalogEdit, statement: d.AlterRole) -> None:
    role = _require_role(edit, statement.name)
    if statement.new_name is not None:
        _require_free_name(edit, statement.new_name)
        role = msgspec.structs.replace(role, name=statement.new_name)
    if statement.setting is not None:
        role = msgspec.structs.replace(role, settings=_change_settings(role, statement))
    edit.put(_apply_options(role, statement.options))


def _change_settings(role: Role, statement: d.AlterRole) -> dict[str, str]:
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


def _drop_roles(edit: CatalogEdit, statement: d.DropRole) -> None:
    for name in statement.names:
        if name in edit.catalog.roles or not statement.if_exists:
            edit.remove_object(_require_role(edit, name).id)


def _apply_options(role: Role, options: d.RoleOptions) -> Role:
    changed = {
        name: value
        for name in ("login", "superuser", "create_role", "valid_until")
        if (value := getattr(options, name)) is not None
    }
    if options.valid_until is not None:
        parse_timestamptz(options.valid_until)
    if options.password is not None:
        salt = secrets.token_bytes(SALT_BYTES)
        changed["verifier"] = make_verifier(options.password, salt) if options.password else None
    return msgspec.structs.replace(role, **changed)


def _require_role(edit: CatalogEdit, name: str) -> Role:
    role = edit.catalog.roles.get(name)
    if role is None:
        raise InvalidInput("role does not exist", sqlstate="42704", name=name)
    return role


def _require_free_name(edit: CatalogEdit, name: str) -> None:
    require_name(name)
    if name in RESERVED or name.startswith("pg_"):
        raise InvalidInput("role name is reserved", sqlstate="42939", name=name)
    if name in edit.catalog.roles:
        raise InvalidInput("role already exists", sqlstate="42710", name=name)
