"""What belongs to no relation: pg_namespace, pg_database, pg_roles and relatives, pg_proc."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import HEAD_ID
from belvedere.catalog.rights.builtin_roles import OWNER, PREDEFINED
from belvedere.plan.functions import FunctionKind, functions_by_name
from belvedere.plan.functions.core.function import Function, Parameter, PseudoType
from belvedere.plan.functions.registry import is_operator
from belvedere.session.system_tables.pg_catalog import oids
from belvedere.session.system_tables.pg_catalog.columns import make_row_builder
from belvedere.session.system_tables.pg_catalog.privileges import print_grants
from belvedere.session.system_tables.pg_catalog.relations import Relations
from belvedere.types import Row
from belvedere.values.arrays import Vector
from belvedere.values.datetime_text import parse_timestamptz
from belvedere.values.type_oids import find_oid

UTF8 = 6
_FUNCTION_OIDS = 20_000_000
_PSEUDO_TYPE_OIDS = {
    PseudoType.ANY: 2276,
    PseudoType.ANYELEMENT: 2283,
    PseudoType.ANYNONARRAY: 2776,
    PseudoType.ANYARRAY: 2277,
    PseudoType.ANYCOMPATIBLE: 5077,
    PseudoType.ANYCOMPATIBLENONARRAY: 5079,
    PseudoType.ANYCOMPATIBLEARRAY: 5078,
}
_KIND_LETTERS = {FunctionKind.AGGREGATE: "a", FunctionKind.WINDOW: "w"}


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
            nspacl=None if found is None else print_grants(catalog, found.grants),
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
        datacl=None if found is None else print_grants(catalog, found.grants),
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


# -- functions -------------------------------------------------------------------------------------


@functools.cache
def list_functions() -> list[Row]:
    build = make_row_builder("pg_proc")
    functions = [
        function
        for name, overloads in sorted(functions_by_name().items())
        if not is_operator(name) and " " not in name
        for function in overloads
    ]
    return [build(**_describe_function(i, one)) for i, one in enumerate(functions)]


def _describe_function(number: int, function: Function) -> dict[str, Any]:
    arguments = [_find_parameter_oid(one) for one in function.arguments]
    return {
        "oid": _FUNCTION_OIDS + number,
        "proname": function.name,
        "pronamespace": oids.SYSTEM_SCHEMA_OIDS["pg_catalog"],
        "proowner": oids.OWNER_OID,
        "prolang": oids.INTERNAL_LANGUAGE_OID,
        "procost": 1.0,
        "prorows": 1000.0 if function.kind is FunctionKind.SET else 0.0,
        "provariadic": arguments[-1] if function.variadic else 0,
        "prokind": _KIND_LETTERS.get(function.kind, "f"),
        "proisstrict": function.strict,
        "proretset": function.kind is FunctionKind.SET,
        "provolatile": function.volatility.value[0],
        "proparallel": "s",
        "pronargs": len(arguments),
        "prorettype": _find_parameter_oid(function.result),
        "proargtypes": Vector(arguments),
        "prosrc": function.name,
    }


def _find_parameter_oid(parameter: Parameter) -> int:
    if isinstance(parameter, PseudoType):
        return _PSEUDO_TYPE_OIDS[parameter]
    return find_oid(parameter)
