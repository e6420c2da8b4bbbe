"""What belongs to no relation: pg_namespace, pg_database, pg_roles and relatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import HEAD_ID
from belvedere.catalog.rights.builtin_roles import OWNER, PREDEFINED
from belvedere.session.system_tables.pg_catalog import oids
from belvedere.session.system_tables.pg_catalog.columns import make_row_builder
from belvedere.session.system_tables.pg_catalog.privileges import format_grants
from belvedere.session.system_tables.pg_catalog.relations import Relations
from belvedere.types import Row
from belvedere.values.datetime_text import parse_timestamptz

UTF8 = 6


def list_namespaces(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_namespace")
    catalog = relations.catalog
    ids = {schema.name: schema.id for schema in catalog.schemas}
    for oid, name in relations.schemas.items():
        found = catalog.access_lists.get(ids.get(name, -1))
        yield build(
            oid=oid,
            nspname=name,
            nspowner=oids.OWNER_OID if found is None else oids.find_role_oid(found.owner),
            nspacl=None if found is None else format_grants(catalog, found.grants),
        )


def list_databases(catalog: Catalog, name: str) -> Iterator[Row]:
    """The one database there is, by the name that the session knows it by."""
    found = catalog.access_lists.get(HEAD_ID)
    yield make_row_builder("pg_database")(
        oid=oids.DATABASE_OID,
        datname=name,
        datdba=oids.OWNER_OID,
        encoding=UTF8,
        datlocprovider="c",
        datallowconn=True,
        datconnlimit=-1,
        dattablespace=oids.DEFAULT_TABLESPACE_OID,
        datcollate="C",
        datctype="C",
        datacl=None if found is None else format_grants(catalog, found.grants),
    )


def list_tablespaces() -> Iterator[Row]:
    oid = oids.DEFAULT_TABLESPACE_OID
    yield make_row_builder("pg_tablespace")(oid=oid, spcname="pg_default", spcowner=oids.OWNER_OID)


# -- roles -----------------------------------------------------------------------------------------


def find_role_names(catalog: Catalog) -> dict[int, str]:
    """The roles by OID."""
    roles = (OWNER, *PREDEFINED.values(), *catalog.roles.values())
    return {oids.find_role_oid(role.id): role.name for role in roles}


def list_roles(catalog: Catalog, table: str) -> Iterator[Row]:
    """pg_roles and pg_authid; verifiers of passwords are not shown in either."""
    build = make_row_builder(table)
    for role in (OWNER, *PREDEFINED.values(), *catalog.roles.values()):
        known: dict[str, Any] = {
            "oid": oids.find_role_oid(role.id),
            "rolname": role.name,
            "rolsuper": role.superuser,
            "rolinherit": role.inherit,
            "rolcreaterole": role.create_role or role.superuser,
            "rolcreatedb": False,
            "rolcanlogin": role.login,
            "rolconnlimit": role.connection_limit,
            "rolpassword": None if role.verifier is None else "********",
            "rolvaliduntil": (
                None if role.valid_until is None else parse_timestamptz(role.valid_until)
            ),
            "rolbypassrls": role.superuser,
        }
        if table == "pg_roles":
            known["rolconfig"] = [f"{k}={v}" for k, v in role.settings.items()] or None
        yield build(**known)


def list_users(catalog: Catalog, table: str) -> Iterator[Row]:
    """pg_user and pg_shadow."""
    build = make_row_builder(table)
    yield build(usename=OWNER.name, usesysid=oids.OWNER_OID, usecreatedb=False, usesuper=True)
    for role in catalog.roles.values():
        if role.login:
            oid = oids.find_object_oid(role)
            yield build(usename=role.name, usesysid=oid, usesuper=role.superuser)
