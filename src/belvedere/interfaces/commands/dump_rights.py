"""Roles and rights as statements of a dump.

Roles come first, with the verifiers of their passwords; owners, access lists and default privileges
when all objects are there. A grant that a role passed on is made in that role's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.model import (
    HEAD_ID,
    OWNER_ROLE,
    PUBLIC_ROLE,
    AccessList,
    AnyObject,
    DefaultPrivileges,
    ForeignTable,
    Grant,
    PlainView,
    Role,
    Schema,
    Sequence,
    Table,
    View,
)
from belvedere.catalog.rights.builtin_roles import name_role
from belvedere.catalog.rights.privileges import (
    KINDS,
    NAMES,
    classify_object,
    list_default_grants,
)
from belvedere.sql.parse.lexical.render import quote
from belvedere.values.quoting import quote_literal


def dump_roles(catalog: Catalog) -> Iterator[str]:
    roles = sorted(catalog.roles.values(), key=lambda one: one.id)
    for role in roles:
        yield f"CREATE ROLE {quote(role.name)}{_list_attributes(role)};"
        for name, value in role.settings.items():
            yield f"ALTER ROLE {quote(role.name)} SET {name} = {quote_literal(value)};"
    for role in roles:
        for one in role.memberships:
            options = f"ADMIN {one.admin}, INHERIT {one.inherits}, SET {one.sets}".upper()
            group = quote(name_role(catalog, one.role))
            text = f"GRANT {group} TO {quote(role.name)} WITH {options};"
            yield from _in_name_of(catalog, one.grantor, OWNER_ROLE, text)


def _list_attributes(role: Role) -> str:
    words = ["SUPERUSER"] if role.superuser else []
    words += ["CREATEROLE"] if role.create_role else []
    words += [] if role.inherit else ["NOINHERIT"]
    words += ["LOGIN"] if role.login else []
    words += [] if role.connection_limit < 0 else [f"CONNECTION LIMIT {role.connection_limit}"]
    words += [] if role.verifier is None else [f"PASSWORD {quote_literal(role.verifier)}"]
    words += [] if role.valid_until is None else [f"VALID UNTIL {quote_literal(role.valid_until)}"]
    return "".join(f" {word}" for word in words)


def dump_rights(catalog: Catalog) -> Iterator[str]:
    for access in sorted(catalog.access_lists.values(), key=lambda one: one.object):
        item = catalog.objects.get(access.object)
        if item is not None and not is_dropped(item):
            yield from _list_rights(catalog, item, access)
    for item in sorted(catalog.objects.values(), key=lambda one: one.id):
        if isinstance(item, DefaultPrivileges):
            yield from _list_default_privileges(catalog, item)


def _list_rights(catalog: Catalog, item: AnyObject, access: AccessList) -> Iterator[str]:
    kind = classify_object(item)
    place = _name_object(catalog, item)
    if kind is None or place is None:
        return
    alter, on = place
    owner = access.owner
    if owner != OWNER_ROLE and item.id != HEAD_ID:
        yield f"ALTER {alter} OWNER TO {quote(name_role(catalog, owner))};"
    if access.grants is not None:
        usual = list_default_grants(kind, owner, item.id)
        for grantee in dict.fromkeys(grant.grantee for grant in usual):
            yield f"REVOKE ALL ON {on} FROM {_name_grantee(catalog, grantee)};"
        yield from _list_grants(catalog, access.grants, owner, on, "")
    columns = item.columns if isinstance(item, Table | View | PlainView | ForeignTable) else ()
    for slot, grants in sorted(access.column_grants.items()):
        yield from _list_grants(catalog, grants, owner, on, f" ({quote(columns[slot].name)})")


def _list_grants(
    catalog: Catalog, grants: Iterable[Grant], owner: int, on: str, columns: str
) -> Iterator[str]:
    """Each after the grant that lets its grantor pass privileges on."""
    waiting, able = list(grants), {owner}
    while waiting:
        ready = [one for one in waiting if one.grantor in able] or waiting
        for one in ready:
            waiting.remove(one)
            able.add(one.grantee)
            grantee = _name_grantee(catalog, one.grantee)
            plain = [letter for letter in one.privileges if letter not in one.grantable]
            for letters, option in ((plain, ""), (one.grantable, " WITH GRANT OPTION")):
                if letters:
                    names = ", ".join(f"{NAMES[letter].upper()}{columns}" for letter in letters)
                    text = f"GRANT {names} ON {on} TO {grantee}{option};"
                    yield from _in_name_of(catalog, one.grantor, owner, text)


def _in_name_of(catalog: Catalog, grantor: int, usual: int, text: str) -> Iterator[str]:
    if grantor in (usual, OWNER_ROLE):
        yield text
    else:
        yield f"SET SESSION AUTHORIZATION {quote(name_role(catalog, grantor))};"
        yield text
        yield "RESET SESSION AUTHORIZATION;"


def _list_default_privileges(catalog: Catalog, item: DefaultPrivileges) -> Iterator[str]:
    role = quote(name_role(catalog, item.role))
    head = f"ALTER DEFAULT PRIVILEGES FOR ROLE {role}"
    if item.in_schema:
        name = next(one.name for one in catalog.schemas if one.id == item.in_schema)
        head += f" IN SCHEMA {quote(name)}"
    on = f"{item.objects.upper()}S"
    if not item.in_schema:
        yield f"{head} REVOKE ALL ON {on} FROM {role};"
    for grant in item.grants:
        grantee = _name_grantee(catalog, grant.grantee)
        plain = [letter for letter in grant.privileges if letter not in grant.grantable]
        for letters, option in ((plain, ""), (grant.grantable, " WITH GRANT OPTION")):
            if letters:
                every = set(letters) == set(KINDS[item.objects])
                names = "ALL" if every else ", ".join(NAMES[letter].upper() for letter in letters)
                yield f"{head} GRANT {names} ON {on} TO {grantee}{option};"


def _name_grantee(catalog: Catalog, role: int) -> str:
    return "PUBLIC" if role == PUBLIC_ROLE else quote(name_role(catalog, role))


def _name_object(catalog: Catalog, item: AnyObject) -> tuple[str, str] | None:
    """What ALTER .. OWNER and GRANT .. ON call an object; None: a part of another one."""
    if item.id == HEAD_ID:
        return "DATABASE belvedere", "DATABASE belvedere"
    if isinstance(item, Schema):
        return (f"SCHEMA {quote(item.name)}",) * 2
    schemas = {schema.id: schema.name for schema in catalog.schemas}
    name = f"{quote(schemas[item.schema])}.{quote(item.name)}"
    match item:
        case Sequence():
            return (f"SEQUENCE {name}",) * 2
        case View() if item.index is not None or item.part:
            return None
        case View():
            return f"MATERIALIZED VIEW {name}", f"TABLE {name}"
        case PlainView():
            return f"VIEW {name}", f"TABLE {name}"
        case ForeignTable():
            return f"FOREIGN TABLE {name}", f"TABLE {name}"
        case _:
            return (f"TABLE {name}",) * 2
