"""What belongs to no relation: pg_namespace, pg_database, pg_roles and relatives, pg_proc."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Role
from belvedere.plan.functions import FunctionKind, functions_by_name
from belvedere.plan.functions.core.function import Function, Parameter, PseudoType
from belvedere.plan.functions.registry import is_operator
from belvedere.session.system_tables.pg_catalog import oids
from belvedere.session.system_tables.pg_catalog.columns import make_row_builder
from belvedere.session.system_tables.pg_catalog.relations import Relations
from belvedere.types import Row
from belvedere.values.arrays import Vector
from belvedere.values.datetime_text import parse_timestamptz
from belvedere.values.type_oids import find_oid

OWNER = "belvedere"
"""The role that has everything; the embedded door is its session."""
DATABASE = "belvedere"
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
    for oid, name in relations.schemas.items():
        yield build(oid=oid, nspname=name, nspowner=oids.OWNER_OID)


def list_databases() -> Iterator[Row]:
    yield make_row_builder("pg_database")(
        oid=oids.DATABASE_OID,
        datname=DATABASE,
        datdba=oids.OWNER_OID,
        encoding=UTF8,
        datlocprovider="c",
        datallowconn=True,
        datconnlimit=-1,
        dattablespace=oids.DEFAULT_TABLESPACE_OID,
        datcollate="C",
        datctype="C",
    )


def list_tablespaces() -> Iterator[Row]:
    oid = oids.DEFAULT_TABLESPACE_OID
    yield make_row_builder("pg_tablespace")(oid=oid, spcname="pg_default", spcowner=oids.OWNER_OID)


# -- roles -----------------------------------------------------------------------------------------


def find_role_names(catalog: Catalog) -> dict[int, str]:
    """The roles by OID."""
    named = {oids.find_object_oid(role): role.name for role in catalog.roles.values()}
    return {oids.OWNER_OID: OWNER} | named


def list_roles(catalog: Catalog, table: str) -> Iterator[Row]:
    """pg_roles and pg_authid; verifiers of passwords are not shown in either."""
    build = make_row_builder(table)
    owner = Role(id=0, name=OWNER, login=True, superuser=True, create_role=True)
    roles: list[tuple[int, Role]] = [(oids.OWNER_OID, owner)]
    roles += [(oids.find_object_oid(role), role) for role in catalog.roles.values()]
    for oid, role in roles:
        known: dict[str, Any] = {
            "oid": oid,
            "rolname": role.name,
            "rolsuper": role.superuser,
            "rolinherit": True,
            "rolcreaterole": role.create_role or role.superuser,
            "rolcreatedb": False,
            "rolcanlogin": role.login,
            "rolconnlimit": -1,
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
    yield build(usename=OWNER, usesysid=oids.OWNER_OID, usecreatedb=False, usesuper=True)
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
