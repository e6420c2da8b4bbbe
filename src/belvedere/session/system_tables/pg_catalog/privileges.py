"""Rights in the system catalogs: has_table_privilege and its relatives, access lists as text,
pg_auth_members and pg_default_acl."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import HEAD_ID, PUBLIC_ROLE, AnyObject, Grant
from belvedere.catalog.rights.builtin_roles import PREDEFINED, name_role
from belvedere.catalog.rights.privileges import LETTERS, print_grant
from belvedere.catalog.rights.role_rights import RoleRights, find_role_rights
from belvedere.errors import InvalidInput
from belvedere.session.rights.data_rights import MONITORED_TABLES, SECRET_TABLES
from belvedere.session.system_tables.pg_catalog import oids
from belvedere.session.system_tables.pg_catalog.columns import make_row_builder
from belvedere.session.system_tables.pg_catalog.relations import Relation, Relations, find_relations
from belvedere.types import Row

if TYPE_CHECKING:
    from belvedere.session.session import Session

FindRelation = Callable[["Session", str], Relation | None]
_OBJECT_LETTERS = {"table": "r", "sequence": "S", "schema": "n"}


def format_grants(catalog: Catalog, grants: Iterable[Grant] | None) -> list[str] | None:
    """An access list as PostgreSQL's catalogs have it; None: nothing was granted."""
    if grants is None:
        return None
    return [print_grant(one, lambda id_: name_role(catalog, id_)) for one in grants]


def find_role_id(session: Session, role: int | str) -> int:
    """A role by its name or OID; 'public' is everybody."""
    if isinstance(role, str):
        if role == "public":
            return PUBLIC_ROLE
        return session.identity.find_role_id(session.catalog, role)
    known = [0, *(one.id for one in PREDEFINED.values())]
    known += [one.id for one in session.catalog.roles.values()]
    for id_ in known:
        if oids.find_role_oid(id_) == role:
            return id_
    return int(role)


def _find_asked_role_rights(session: Session, arguments: tuple[Any, ...], count: int) -> RoleRights:
    """The rights of the role that the first of `count` + 1 arguments names, or of one's own."""
    role = find_role_id(session, arguments[0]) if len(arguments) > count else session.identity.role
    return find_role_rights(session.catalog, role)


def _parse_privileges(text: str) -> Iterator[tuple[str, bool]]:
    """The letters of a list such as 'SELECT, UPDATE WITH GRANT OPTION', and whether each is about
    the option."""
    for one in text.split(","):
        name = one.strip().lower()
        option = name.endswith(" with grant option")
        letter = LETTERS.get(name.removesuffix(" with grant option").strip())
        if letter is None:
            raise InvalidInput("unrecognized privilege type", sqlstate="22023", name=one.strip())
        yield letter, option


def _has_any_privilege(
    rights: RoleRights, item: AnyObject, text: str, slot: int | None = None
) -> bool:
    return any(
        letter in rights.find_grantable(item, slot)
        if option
        else letter in rights.find_letters(item, slot)
        for letter, option in _parse_privileges(text)
    )


def _has_privilege_on_system_table(rights: RoleRights, relation: Relation, text: str) -> bool:
    """Everybody may read the system's tables, but for some."""
    if rights.superuser:
        return True
    hidden = (relation.schema, relation.name) in SECRET_TABLES | MONITORED_TABLES
    return not hidden and any(letter == "r" for letter, _ in _parse_privileges(text))


def make_relation_privilege_function(
    find: FindRelation, *, columns: bool = False
) -> Callable[..., Any]:
    """The answer of has_table_privilege, has_sequence_privilege and, with `columns`, of
    has_any_column_privilege."""

    def has_privilege(session: Session, *arguments: Any) -> bool | None:
        rights = _find_asked_role_rights(session, arguments, 2)
        relation = _find_relation(session, find, arguments[-2])
        if relation is None:
            return None
        item, text = relation.item, arguments[-1]
        if item is None:
            return _has_privilege_on_system_table(rights, relation, text)
        slots = rights.list_granted_columns(item) if columns else ()
        return _has_any_privilege(rights, item, text) or any(
            _has_any_privilege(rights, item, text, slot) for slot in slots
        )

    return has_privilege


def make_column_privilege_function(find: FindRelation) -> Callable[..., Any]:
    def has_privilege(session: Session, *arguments: Any) -> bool | None:
        rights = _find_asked_role_rights(session, arguments, 3)
        relation = _find_relation(session, find, arguments[-3])
        if relation is None:
            return None
        item, wanted, text = relation.item, arguments[-2], arguments[-1]
        if item is None:
            return _has_privilege_on_system_table(rights, relation, text)
        for column in relation.columns:
            if wanted in (column.name, column.number):
                slot = -1 if column.stored is None else column.stored.slot
                return _has_any_privilege(rights, item, text, slot)
        raise InvalidInput("column does not exist", sqlstate="42703", column=str(wanted))

    return has_privilege


def _find_relation(session: Session, find: FindRelation, named: int | str) -> Relation | None:
    if isinstance(named, str):
        found = find(session, named)
        if found is None:
            raise InvalidInput("relation does not exist", sqlstate="42P01", name=named)
        return found
    return find_relations(session.catalog).by_oid.get(named)


def has_schema_privilege(session: Session, *arguments: Any) -> bool | None:
    rights, named = _find_asked_role_rights(session, arguments, 2), arguments[-2]
    for oid, name in find_relations(session.catalog).schemas.items():
        if named in (oid, name):
            if name in oids.SYSTEM_SCHEMA_OIDS:
                wanted = [letter for letter, _ in _parse_privileges(arguments[-1])]
                return rights.superuser or "U" in wanted
            item = session.catalog.objects[session.catalog.schema_id(name)]
            return _has_any_privilege(rights, item, arguments[-1])
    if isinstance(named, str):
        raise InvalidInput("schema does not exist", sqlstate="3F000", name=named)
    return None


def has_database_privilege(session: Session, *arguments: Any) -> bool:
    rights = _find_asked_role_rights(session, arguments, 2)
    return _has_any_privilege(rights, session.catalog.objects[HEAD_ID], arguments[-1])


def has_role_privilege(session: Session, *arguments: Any) -> bool:
    """pg_has_role: USAGE is about rights, MEMBER about membership, SET about SET ROLE."""
    rights = _find_asked_role_rights(session, arguments, 2)
    role, text = find_role_id(session, arguments[-2]), arguments[-1].lower()
    if text.endswith(("with admin option", "with grant option")):
        return rights.administers(role)
    questions = {"usage": rights.has_role, "member": rights.is_member, "set": rights.can_set_role}
    if text not in questions:
        raise InvalidInput("unrecognized privilege type", sqlstate="22023", name=arguments[-1])
    return questions[text](role)


# -- rows ------------------------------------------------------------------------------------------


def list_memberships(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_auth_members")
    for role in relations.catalog.roles.values():
        for one in role.memberships:
            yield build(
                oid=oids.hash_name_oid(f"member {role.id} {one.role}"),
                roleid=oids.find_role_oid(one.role),
                member=oids.find_role_oid(role.id),
                grantor=oids.find_role_oid(one.grantor),
                admin_option=one.admin,
                inherit_option=one.inherits,
                set_option=one.sets,
            )


def list_default_acls(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_default_acl")
    for one in relations.catalog.default_privileges:
        yield build(
            oid=oids.find_object_oid(one),
            defaclrole=oids.find_role_oid(one.role),
            defaclnamespace=oids.find_schema_oid(one.in_schema) if one.in_schema else 0,
            defaclobjtype=_OBJECT_LETTERS[one.objects],
            defaclacl=format_grants(relations.catalog, one.grants),
        )


def can_see_relation(session: Session, schema: str, name: str) -> bool:
    """Whether information_schema shows a relation: its role has some right on it."""
    rights = session.identity.find_rights_unless_superuser(session.catalog)
    if rights is None:
        return True
    found = find_relations(session.catalog).by_name.get((schema, name))
    if found is None or found.item is None:
        return (schema, name) not in MONITORED_TABLES
    return rights.has_any(found.item)
