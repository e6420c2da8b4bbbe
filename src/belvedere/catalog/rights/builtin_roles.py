"""Roles that exist in every store: being a member of one is a right."""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import OWNER_ROLE, Role

OWNER_NAME = "belvedere"
READ_ALL_DATA = 20
WRITE_ALL_DATA = 21
MONITOR = 22
READ_SERVER_FILES = 23
WRITE_SERVER_FILES = 24
MAINTAIN = 25

OWNER = Role(id=OWNER_ROLE, name=OWNER_NAME, login=True, superuser=True, create_role=True)
PREDEFINED = {
    role.name: role
    for role in (
        Role(id=READ_ALL_DATA, name="pg_read_all_data"),
        Role(id=WRITE_ALL_DATA, name="pg_write_all_data"),
        Role(id=MONITOR, name="pg_monitor"),
        Role(id=READ_SERVER_FILES, name="pg_read_server_files"),
        Role(id=WRITE_SERVER_FILES, name="pg_write_server_files"),
        Role(id=MAINTAIN, name="pg_maintain"),
    )
}
_BY_ID = {role.id: role for role in (OWNER, *PREDEFINED.values())}


def find_role(catalog: Catalog, name: str) -> Role | None:
    """The role of that name: a stored one, a predefined one, or the owner of the database."""
    if name == OWNER_NAME:
        return OWNER
    return catalog.roles.get(name) or PREDEFINED.get(name)


def get_role(catalog: Catalog, id_: int) -> Role | None:
    """The role of that id; None: it was dropped."""
    if id_ in _BY_ID:
        return _BY_ID[id_]
    found = catalog.get(id_)
    return found if isinstance(found, Role) else None


def name_role(catalog: Catalog, id_: int) -> str:
    role = get_role(catalog, id_)
    return f"unknown ({id_})" if role is None else role.name
