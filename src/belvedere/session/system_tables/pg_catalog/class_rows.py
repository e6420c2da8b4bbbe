"""pg_class, pg_attribute, pg_attrdef, pg_index, pg_sequence: relations and their columns."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.model import ForeignTable, ObjectState, Sequence, Table, View
from belvedere.session.system_tables.pg_catalog import oids
from belvedere.session.system_tables.pg_catalog.columns import make_row_builder
from belvedere.session.system_tables.pg_catalog.definitions import describe_default
from belvedere.session.system_tables.pg_catalog.foreign_objects import format_foreign_options
from belvedere.session.system_tables.pg_catalog.privileges import format_grants
from belvedere.session.system_tables.pg_catalog.relations import (
    IndexKey,
    Relation,
    Relations,
    ShownColumn,
)
from belvedere.session.system_tables.pg_catalog.type_rows import (
    TYPES_BY_OID,
    find_operator_class_oid,
    find_storage_letter,
)
from belvedere.types import BIGINT, INTEGER, SMALLINT, Kind, Row, SqlType
from belvedere.values.arrays import Vector
from belvedere.values.type_oids import FIRST_OBJECT_OID, find_length, find_modifier, find_oid

_COLLATED = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR})


def list_classes(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_class")
    tables = [table for _, table in relations.tables]
    in_keys = {table.id for table in tables if table.foreign_keys}
    in_keys |= {key.parent for table in tables for key in table.foreign_keys}
    for one in relations.every_relation:
        is_table = isinstance(one.item, Table) and one.kind == "r"
        checks = len(one.item.checks) if is_table and isinstance(one.item, Table) else 0
        populated = not isinstance(one.item, View) or one.item.state is ObjectState.READY
        yield build(
            oid=one.oid,
            relname=one.name,
            relnamespace=one.schema_oid,
            reltype=one.oid if one.kind in "rvmf" else 0,
            relowner=oids.find_role_oid(relations.find_owner(one)),
            relam={"i": oids.BTREE_OID, "r": oids.HEAP_OID, "m": oids.HEAP_OID}.get(one.kind, 0),
            relfilenode=0 if one.kind in "vf" else one.oid,
            reltuples=-1.0,
            relhasindex=one.oid in relations.indexes_by_relation,
            relpersistence="p",
            relkind=one.kind,
            relnatts=len(one.columns),
            relchecks=checks,
            relhasrules=one.kind in "vm",
            relhastriggers=is_table and one.item is not None and one.item.id in in_keys,
            relispopulated=populated,
            relacl=_format_access_list(relations, one),
            relreplident="n" if one.kind in "iSvf" or one.schema == "pg_catalog" else "d",
        )


def _format_access_list(relations: Relations, one: Relation) -> list[str] | None:
    found = None if one.item is None else relations.catalog.access_lists.get(one.item.id)
    return format_grants(relations.catalog, None if found is None else found.grants)


def list_attributes(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_attribute")
    for one in relations.every_relation:
        for column in one.columns:
            yield build(**_collect_attribute_values(relations, one, column))


def _collect_attribute_values(
    relations: Relations, one: Relation, column: ShownColumn
) -> dict[str, object]:
    sql_type, stored = column.type, column.stored
    kind = (sql_type.element or sql_type).kind
    known = {
        "attrelid": one.oid,
        "attname": column.name,
        "atttypid": find_oid(sql_type),
        "attlen": find_length(sql_type),
        "attnum": column.number,
        "atttypmod": find_modifier(sql_type),
        "attndims": 0 if sql_type.element is None else 1,
        "attbyval": TYPES_BY_OID[find_oid(sql_type)].by_value,
        "attalign": "i",
        "attstorage": find_storage_letter(sql_type),
        "attstattarget": -1,
        "attislocal": True,
        "attcollation": oids.DEFAULT_COLLATION_OID if kind in _COLLATED else 0,
    }
    if stored is None:
        return known
    if stored.dropped:
        name = f"........pg.dropped.{column.number}........"
        return known | {"attname": name, "atttypid": 0, "attisdropped": True}
    if isinstance(one.item, ForeignTable):
        known["attfdwoptions"] = format_foreign_options(one.item.column_options[stored.slot])
    return known | {
        "attacl": _format_column_grants(relations, one, stored.slot),
        "attnotnull": stored.not_null,
        "atthasdef": describe_default(relations.catalog, stored) is not None,
        "attidentity": {"always": "a", "by default": "d"}.get(stored.identity or "", ""),
        "attgenerated": "s" if stored.generated is not None else "",
    }


def _format_column_grants(relations: Relations, one: Relation, slot: int) -> list[str] | None:
    found = None if one.item is None else relations.catalog.access_lists.get(one.item.id)
    grants = None if found is None else found.column_grants.get(slot)
    return format_grants(relations.catalog, grants)


def list_defaults(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_attrdef")
    for one, table in relations.tables:
        for column in one.columns:
            if column.stored is None or column.stored.dropped:
                continue
            text = describe_default(relations.catalog, column.stored)
            if text is not None:
                oid = oids.hash_part_oid(table, f"default {column.number}")
                yield build(oid=oid, adrelid=one.oid, adnum=column.number, adbin=text)


def list_indexes(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_index")
    for one in relations.every_relation:
        shape = one.shape
        if shape is None:
            continue
        columns = (*shape.keys, *shape.included)
        ready = getattr(one.item, "state", ObjectState.READY) is ObjectState.READY
        expressions = [key.text for key in shape.keys if not key.number]
        yield build(
            indexrelid=one.oid,
            indrelid=shape.relation,
            indnatts=len(columns),
            indnkeyatts=len(shape.keys),
            indisunique=shape.unique,
            indnullsnotdistinct=not shape.nulls_distinct,
            indisprimary=shape.primary,
            indimmediate=True,
            indisvalid=ready,
            indisready=True,
            indislive=True,
            indkey=Vector(key.number for key in columns),
            indcollation=Vector(_find_collation(key) for key in shape.keys),
            indclass=Vector(find_operator_class_oid(key.type) for key in shape.keys),
            indoption=Vector(key.descending + 2 * key.nulls_first for key in shape.keys),
            indexprs=", ".join(expressions) or None,
            indpred=shape.where,
        )


def _find_collation(key: IndexKey) -> int:
    return oids.DEFAULT_COLLATION_OID if key.type.kind in _COLLATED else 0


def find_sequence_type(sequence: Sequence) -> SqlType:
    """The smallest type that holds the sequence's numbers, which its column has."""
    for sql_type, bits in ((SMALLINT, 15), (INTEGER, 31)):
        if sequence.maximum < 1 << bits and sequence.minimum >= -(1 << bits):
            return sql_type
    return BIGINT


def list_sequences(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_sequence")
    for one in relations.every_relation:
        if isinstance(one.item, Sequence):
            sequence = one.item
            yield build(
                seqrelid=one.oid,
                seqtypid=find_oid(find_sequence_type(sequence)),
                seqstart=sequence.start,
                seqincrement=sequence.increment,
                seqmax=sequence.maximum,
                seqmin=sequence.minimum,
                seqcache=sequence.cache,
                seqcycle=sequence.cycle,
            )


def list_dependencies(relations: Relations) -> Iterator[Row]:
    """Of sequences on the columns that they feed; no other dependency is listed."""
    build = make_row_builder("pg_depend")
    for one, _ in relations.tables:
        for column in one.columns:
            if column.stored is None or column.stored.sequence is None:
                continue
            yield build(
                classid=oids.CLASS_OID,
                objid=FIRST_OBJECT_OID + column.stored.sequence,
                refclassid=oids.CLASS_OID,
                refobjid=one.oid,
                refobjsubid=column.number,
                deptype="a" if column.stored.identity is None else "i",
            )
