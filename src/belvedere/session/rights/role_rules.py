"""What a role may do to roles, as in PostgreSQL.

CREATEROLE   makes roles, and is the administrator of those; none of them a superuser
ADMIN        of a role: may change and drop it (with CREATEROLE), and grant it to others
itself       may change its own password and settings
"""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Role
from belvedere.catalog.rights.builtin_roles import find_role
from belvedere.catalog.rights.role_rights import RoleRights
from belvedere.session.rights.denials import not_allowed
from belvedere.sql import definitions as d


def require_right_to_create_role(
    catalog: Catalog, rights: RoleRights, statement: d.CreateRole
) -> None:
    if not rights.creates_roles:
        raise not_allowed("create role", hint="only a role with CREATEROLE may")
    _require_no_superuser(statement.options)
    for name in statement.member_of:
        _require_admin_option(catalog, rights, name)


def require_right_to_alter_role(
    catalog: Catalog, rights: RoleRights, statement: d.AlterRole, own_names: tuple[str, ...]
) -> None:
    role = find_role(catalog, statement.name)
    own = statement.name in own_names or (role is not None and role.id == rights.id)
    said = {
        name for name in statement.options.__struct_fields__ if _is_option_given(statement, name)
    }
    if own and said <= {"password"} and statement.new_name is None:
        return
    if role is None and not own:
        return  # the statement says that there is none
    _require_no_superuser(statement.options)
    _require_role_administered(rights, role)


def require_right_to_drop_role(catalog: Catalog, rights: RoleRights, statement: d.DropRole) -> None:
    for name in statement.names:
        role = find_role(catalog, name)
        if role is not None:
            _require_role_administered(rights, role)


def require_right_to_grant_roles(
    catalog: Catalog, rights: RoleRights, statement: d.GrantRoles
) -> None:
    for name in statement.roles:
        _require_admin_option(catalog, rights, name)


def _is_option_given(statement: d.AlterRole, name: str) -> bool:
    return getattr(statement.options, name) is not None


def _require_no_superuser(options: d.RoleOptions) -> None:
    if options.superuser is not None:
        raise not_allowed("give or take SUPERUSER", hint="only a superuser may")


def _require_role_administered(rights: RoleRights, role: Role | None) -> None:
    if role is None or role.superuser or not (rights.creates_roles and rights.administers(role.id)):
        raise not_allowed("change role", hint="it needs CREATEROLE and ADMIN of that role")


def _require_admin_option(catalog: Catalog, rights: RoleRights, name: str) -> None:
    role = find_role(catalog, name)
    if role is not None and (role.superuser or not rights.administers(role.id)):
        raise not_allowed("grant role", hint="it needs ADMIN of that role")
