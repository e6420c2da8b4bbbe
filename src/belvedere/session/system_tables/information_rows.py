"""information_schema: columns, what constraints are about, and rights on tables.

Materialized views are shown beside the other relations, which PostgreSQL does not do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import (
    PUBLIC_ROLE,
    CatalogColumn,
    ForeignTable,
    Grant,
    PlainView,
    Table,
    View,
    ViewKind,
)
from belvedere.plan.fields import Field, Fields
from belvedere.session.system_tables.pg_catalog.columns import load_catalog_tables
from belvedere.session.system_tables.pg_catalog.constraint_rows import find_constraints
from belvedere.session.system_tables.pg_catalog.definitions import describe_default
from belvedere.session.system_tables.pg_catalog.relations import find_relations
from belvedere.session.system_tables.pg_catalog.type_rows import TYPES_BY_OID
from belvedere.types import INTEGER, SECOND_DIGITS_MAX, TEXT, TIMED_KINDS, Kind, Row, SqlType
from belvedere.values.type_oids import find_oid

if TYPE_CHECKING:
    from belvedere.session.session import Session

DATABASE = "belvedere"
_PRECISIONS = {
    Kind.SMALLINT: (16, 2, 0),
    Kind.INTEGER: (32, 2, 0),
    Kind.BIGINT: (64, 2, 0),
    Kind.REAL: (24, 2, None),
    Kind.DOUBLE: (53, 2, None),
}
"""Digits, in which base, and how many of them after the point."""
_LIMITS = {Kind.SMALLINT: 2**15 - 1, Kind.INTEGER: 2**31 - 1, Kind.BIGINT: 2**63 - 1}
_CHARACTER_BYTES = 4
_TEXT_BYTES = 2**30
_PRIVILEGES = {
    "a": "INSERT",
    "r": "SELECT",
    "w": "UPDATE",
    "d": "DELETE",
    "D": "TRUNCATE",
    "x": "REFERENCES",
    "t": "TRIGGER",
}

Shown = Table | ForeignTable | PlainView | View


def list_shown_relations(catalog: Catalog) -> Iterator[tuple[str, Shown]]:
    """The tables and views that users made, with the names of their schemas."""
    names = {schema.id: schema.name for schema in catalog.schemas}
    for item in catalog.objects.values():
        if isinstance(item, Shown) and getattr(item, "kind", ViewKind.USER) is ViewKind.USER:
            schema = names[item.schema]
            if catalog.find_relation(item.name, schema) is item:
                yield schema, item


# -- columns ---------------------------------------------------------------------------------------


def _list_columns(session: Session) -> Iterator[Row]:
    relations = find_relations(session.catalog)
    for schema, item in list_shown_relations(session.catalog):
        writable = "YES" if isinstance(item, Table) else "NO"
        numbers = {one.name: one.number for one in relations.by_name[schema, item.name].columns}
        for column in item.columns:
            if column.dropped or column.hidden:
                continue
            number = numbers[column.name]
            known = {
                "table_catalog": DATABASE,
                "table_schema": schema,
                "table_name": item.name,
                "ordinal_position": number,
                "dtd_identifier": str(number),
                "is_updatable": writable,
                **_describe_column(session.catalog, column),
                **_describe_type(column.type),
            }
            yield tuple([known.get(name) for name in _COLUMNS])


def _describe_column(catalog: Catalog, column: CatalogColumn) -> dict[str, Any]:
    identity = column.identity is not None
    limit = _LIMITS.get(column.type.kind)
    return {
        "column_name": column.name,
        "column_default": None if column.generated else describe_default(catalog, column),
        "is_nullable": "NO" if column.not_null else "YES",
        "is_self_referencing": "NO",
        "is_identity": "YES" if identity else "NO",
        "identity_generation": column.identity.upper() if column.identity else None,
        "identity_start": "1" if identity else None,
        "identity_increment": "1" if identity else None,
        "identity_minimum": "1" if identity else None,
        "identity_maximum": str(limit) if identity else None,
        "identity_cycle": "NO",
        "is_generated": "ALWAYS" if column.generated else "NEVER",
        "generation_expression": column.generated,
    }


def _describe_type(sql_type: SqlType) -> dict[str, Any]:
    kind = sql_type.kind
    precision, base, scale = _PRECISIONS.get(kind, (None, None, None))
    if kind is Kind.NUMERIC:
        precision, base, scale = sql_type.precision, 10, sql_type.scale
    known = TYPES_BY_OID.get(find_oid(sql_type))
    return {
        "data_type": kind.value,
        "character_maximum_length": sql_type.length,
        "character_octet_length": _find_octet_length(sql_type),
        "numeric_precision": precision,
        "numeric_precision_radix": base,
        "numeric_scale": scale,
        "datetime_precision": _find_datetime_precision(sql_type),
        "udt_catalog": DATABASE,
        "udt_schema": "pg_catalog",
        "udt_name": None if known is None else known.name,
    }


def _find_octet_length(sql_type: SqlType) -> int | None:
    if sql_type.kind is Kind.TEXT:
        return _TEXT_BYTES
    if sql_type.kind is Kind.VARCHAR and sql_type.length is None:
        return _TEXT_BYTES
    return None if sql_type.length is None else sql_type.length * _CHARACTER_BYTES


def _find_datetime_precision(sql_type: SqlType) -> int | None:
    if sql_type.kind is Kind.DATE:
        return 0
    if sql_type.kind not in TIMED_KINDS:
        return None
    return SECOND_DIGITS_MAX if sql_type.precision is None else sql_type.precision


# -- constraints -----------------------------------------------------------------------------------


def _list_constraint_columns(session: Session) -> Iterator[Row]:
    """The columns that a constraint refers to: of a foreign key those of its parent."""
    relations = find_relations(session.catalog)
    names = [field.name for field in load_catalog_tables()["pg_constraint"].fields]
    for one in find_constraints(relations).values():
        known = dict(zip(names, one.row))
        refers = known["contype"] == "f"
        table = relations.by_oid[known["confrelid"] if refers else known["conrelid"]]
        own = relations.by_oid[known["conrelid"]]
        for number in (known["confkey"] if refers else known["conkey"]) or ():
            column = table.columns[number - 1].name
            where = (DATABASE, table.schema, table.name, column)
            yield (*where, DATABASE, own.schema, known["conname"])


# -- rights ----------------------------------------------------------------------------------------


def _list_table_privileges(session: Session) -> Iterator[Row]:
    catalog, name = session.catalog, session.identity.name_role
    for schema, item in list_shown_relations(catalog):
        for grant in _list_grants(catalog, item):
            to = "PUBLIC" if grant.grantee == PUBLIC_ROLE else name(catalog, grant.grantee)
            for letter in grant.privileges:
                if letter in _PRIVILEGES:
                    where = (name(catalog, grant.grantor), to, DATABASE, schema, item.name)
                    option = "YES" if letter in grant.grantable else "NO"
                    yield *where, _PRIVILEGES[letter], option, "YES" if letter == "r" else "NO"


def _list_grants(catalog: Catalog, item: Shown) -> Iterable[Grant]:
    """What was granted; the owner may do everything, and pass it on."""
    found, owner = catalog.access_lists.get(item.id), catalog.find_owner(item.id)
    if found is not None and found.grants is not None:
        return found.grants
    letters = "".join(_PRIVILEGES)
    return (Grant(owner, letters, letters, owner),)


_COLUMNS = (
    "table_catalog table_schema table_name column_name ordinal_position column_default is_nullable "
    "data_type character_maximum_length character_octet_length numeric_precision "
    "numeric_precision_radix numeric_scale datetime_precision interval_type interval_precision "
    "character_set_catalog character_set_schema character_set_name collation_catalog "
    "collation_schema collation_name domain_catalog domain_schema domain_name udt_catalog "
    "udt_schema udt_name scope_catalog scope_schema scope_name maximum_cardinality dtd_identifier "
    "is_self_referencing is_identity identity_generation identity_start identity_increment "
    "identity_maximum identity_minimum identity_cycle is_generated generation_expression "
    "is_updatable"
).split()
_NUMBERS = frozenset(
    "ordinal_position character_maximum_length character_octet_length numeric_precision "
    "numeric_precision_radix numeric_scale datetime_precision interval_precision "
    "maximum_cardinality action_order".split()
)


def _make_fields(names: Iterable[str]) -> Fields:
    return tuple([Field(name, INTEGER if name in _NUMBERS else TEXT) for name in names])


_GRANTS = _make_fields(
    "grantor grantee table_catalog table_schema table_name privilege_type is_grantable "
    "with_hierarchy".split()
)
TABLES: dict[str, tuple[Fields, Callable[[Session], Iterable[Row]]]] = {
    "columns": (_make_fields(_COLUMNS), _list_columns),
    "constraint_column_usage": (
        _make_fields(
            "table_catalog table_schema table_name column_name constraint_catalog "
            "constraint_schema constraint_name".split()
        ),
        _list_constraint_columns,
    ),
    "table_privileges": (_GRANTS, _list_table_privileges),
    "role_table_grants": (_GRANTS, _list_table_privileges),
    "triggers": (
        _make_fields(
            "trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog "
            "event_object_schema event_object_table action_order action_condition "
            "action_statement action_orientation action_timing action_reference_old_table "
            "action_reference_new_table action_reference_old_row action_reference_new_row "
            "created".split()
        ),
        lambda session: (),
    ),
}
