"""The tables of pg_catalog: what lists the rows of each.

Rows that follow from the catalog alone are made once for each version of it. A table of PostgreSQL
that has no entry in `ROWS` lists objects that do not exist here (triggers, policies, extensions):
it is empty. Those about what happens now are in `system_tables.activity_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from belvedere.session.system_tables.pg_catalog import (
    class_rows,
    comment_rows,
    foreign_objects,
    function_rows,
    listing_rows,
    privileges,
    shared_rows,
    type_rows,
)
from belvedere.session.system_tables.pg_catalog.columns import load_catalog_tables
from belvedere.session.system_tables.pg_catalog.constraint_rows import find_constraints
from belvedere.session.system_tables.pg_catalog.relations import Relations, find_relations
from belvedere.types import Row

if TYPE_CHECKING:
    from belvedere.session.session import Session

SCHEMA = "pg_catalog"


def _list_constraint_rows(relations: Relations) -> list[Row]:
    return [one.row for one in find_constraints(relations).values()]


ROWS: dict[str, Callable[[Relations], Iterable[Row]]] = {
    "pg_aggregate": lambda relations: function_rows.list_aggregates(),
    "pg_am": lambda relations: type_rows.list_access_methods(),
    "pg_attrdef": class_rows.list_defaults,
    "pg_attribute": class_rows.list_attributes,
    "pg_authid": lambda relations: shared_rows.list_roles(relations.catalog, "pg_authid"),
    "pg_cast": lambda relations: function_rows.list_casts(),
    "pg_class": class_rows.list_classes,
    "pg_collation": lambda relations: type_rows.list_collations(),
    "pg_constraint": _list_constraint_rows,
    "pg_auth_members": privileges.list_memberships,
    "pg_default_acl": privileges.list_default_acls,
    "pg_depend": class_rows.list_dependencies,
    "pg_description": comment_rows.list_descriptions,
    **foreign_objects.CATALOG_ROWS,
    "pg_index": class_rows.list_indexes,
    "pg_indexes": listing_rows.list_named_indexes,
    "pg_language": lambda relations: type_rows.list_languages(),
    "pg_matviews": listing_rows.list_materialized_views,
    "pg_namespace": shared_rows.list_namespaces,
    "pg_opclass": lambda relations: type_rows.list_operator_classes(),
    "pg_operator": lambda relations: function_rows.list_operators(),
    "pg_opfamily": lambda relations: type_rows.list_operator_families(),
    "pg_proc": lambda relations: function_rows.list_functions(),
    "pg_roles": lambda relations: shared_rows.list_roles(relations.catalog, "pg_roles"),
    "pg_sequence": class_rows.list_sequences,
    "pg_sequences": listing_rows.list_named_sequences,
    "pg_shadow": lambda relations: shared_rows.list_users(relations.catalog, "pg_shadow"),
    "pg_tables": listing_rows.list_tables,
    "pg_tablespace": lambda relations: shared_rows.list_tablespaces(),
    "pg_type": lambda relations: type_rows.list_types(),
    "pg_user": lambda relations: shared_rows.list_users(relations.catalog, "pg_user"),
    "pg_views": listing_rows.list_views,
}


def read_catalog_rows(session: Session, name: str) -> Iterable[Row]:
    """The rows of a table of pg_catalog."""
    if name == "pg_settings":
        return listing_rows.list_settings(session)
    if name == "pg_database":
        return shared_rows.list_databases(session.catalog, session.identity.database)
    catalog, key = session.catalog, (SCHEMA, name)
    found = catalog.derived_cache.get(key)
    if not isinstance(found, list):
        listed = ROWS.get(name)
        found = [] if listed is None else list(listed(find_relations(catalog)))
        catalog.derived_cache[key] = found
    return found


def is_catalog_table(name: str) -> bool:
    return name in load_catalog_tables()
