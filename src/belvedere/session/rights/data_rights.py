"""Rights on relations, columns, schemas, sequences and system tables that a plan needs."""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.rights.builtin_roles import MONITOR
from belvedere.catalog.rights.role_rights import RoleRights, find_role_rights
from belvedere.errors import InvalidInput
from belvedere.session.rights.denials import DENIED, permission_denied
from belvedere.sql.bind.required_rights import RelationUse, RequiredRights

SECRET_TABLES = frozenset({("pg_catalog", "pg_authid"), ("pg_catalog", "pg_shadow")})
"""What only superusers may read."""
MONITORED_TABLES = frozenset(
    ("belvedere", name)
    for name in (
        "auxiliary_views",
        "housekeeping",
        "locks",
        "log",
        "node_locks",
        "nodes",
        "regions",
        "statements",
        "statistics",
    )
)
"""What tells of other people's statements and rows: members of pg_monitor may read it."""
_SEQUENCE_LETTERS = {"nextval": "Uw", "currval": "Ur", "setval": "w"}


def require_data_rights(catalog: Catalog, rights: RoleRights, needed: RequiredRights) -> None:
    """42501 for the first thing that a role may not use."""

    def get_rights_of(role: int | None) -> RoleRights:
        return rights if role is None else find_role_rights(catalog, role)

    for schema in needed.schemas:
        require_schema_usage(catalog, get_rights_of(schema.role), schema.schema)
    for use in needed.relations:
        _require_relation_right(catalog, get_rights_of(use.role), use)
    for sequence in needed.sequences:
        item = catalog.objects[sequence.sequence]
        allowed = get_rights_of(sequence.role)
        require_schema_usage(catalog, allowed, item.schema)
        if not any(allowed.has(item, letter) for letter in _SEQUENCE_LETTERS[sequence.verb]):
            raise permission_denied(item)
    for table in needed.system_tables:
        _require_system_table_right(rights, table)


def require_schema_usage(catalog: Catalog, rights: RoleRights, schema: int) -> None:
    if not rights.uses_schema(schema):
        raise permission_denied(catalog.objects[schema])


def _require_relation_right(catalog: Catalog, rights: RoleRights, use: RelationUse) -> None:
    item = catalog.objects[use.relation]
    if rights.has(item, use.privilege):
        return
    if use.columns:
        if all(rights.has_on_column(item, use.privilege, slot) for slot in use.columns):
            return
    elif not use.always or rights.has_on_any_column(item, use.privilege):
        return
    raise permission_denied(item)


def _require_system_table_right(rights: RoleRights, table: tuple[str, str]) -> None:
    if rights.superuser:
        return
    if table in SECRET_TABLES or (table in MONITORED_TABLES and not rights.has_role(MONITOR)):
        hint = "GRANT pg_monitor TO .. lets a role read it" if table in MONITORED_TABLES else None
        raise InvalidInput(
            "permission denied for table", sqlstate=DENIED, name=".".join(table), hint=hint
        )
