"""pg_type and what belongs to types: pg_collation, pg_am, pg_opclass, pg_language; their names."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from belvedere.plan.functions.core.function import NAMED_TYPES
from belvedere.session.system_tables.pg_catalog import oids
from belvedere.session.system_tables.pg_catalog.columns import make_row_builder
from belvedere.types import Kind, ObjectName, Row, SqlType, array_of, vector_of
from belvedere.values.type_oids import VECTOR_OIDS, WIRE_TYPES, find_length, read_type_oid

_SYSTEM = oids.SYSTEM_SCHEMA_OIDS["pg_catalog"]
_UNDERSCORED = frozenset("array date time timestamp timestamptz interval numeric uuid json".split())
"""Types whose functions have an underscore in their names."""
_OPERATOR_CLASS_OIDS = 10_000
_KNOWN_OPERATOR_CLASSES = {
    "date": 3122,
    "float8": 3123,
    "int2": 1979,
    "int4": 1978,
    "int8": 3124,
    "numeric": 3125,
    "text": 3126,
    "timestamp": 3128,
    "timestamptz": 3127,
}
"""Those whose numbers are the same in every PostgreSQL; the others are counted from the type's."""
_OPERATOR_FAMILIES = {
    **dict.fromkeys(("int2", "int4", "int8"), "integer_ops"),
    **dict.fromkeys(("float4", "float8"), "float_ops"),
    **dict.fromkeys(("text", "varchar"), "text_ops"),
    **dict.fromkeys(("date", "timestamp", "timestamptz"), "datetime_ops"),
}
"""By name of the type; every other has one of its own."""
_CATEGORY_OF_KIND = {
    Kind.BOOLEAN: "B",
    Kind.SMALLINT: "N",
    Kind.INTEGER: "N",
    Kind.BIGINT: "N",
    Kind.NUMERIC: "N",
    Kind.REAL: "N",
    Kind.DOUBLE: "N",
    Kind.OID: "N",
    Kind.REGCLASS: "N",
    Kind.REGTYPE: "N",
    Kind.REGNAMESPACE: "N",
    Kind.REGPROC: "N",
    Kind.CHAR: "S",
    Kind.VARCHAR: "S",
    Kind.TEXT: "S",
    Kind.DATE: "D",
    Kind.TIME: "D",
    Kind.TIMESTAMP: "D",
    Kind.TIMESTAMPTZ: "D",
    Kind.INTERVAL: "T",
}
_PREFERRED = frozenset({Kind.BOOLEAN, Kind.DOUBLE, Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL})
_COLLATED = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR})


class CatalogType(NamedTuple):
    oid: int
    name: str
    type: SqlType
    length: int
    element: int = 0
    array: int = 0

    @property
    def by_value(self) -> bool:
        return 0 < self.length <= 8

    @property
    def category(self) -> str:
        return "A" if self.element else _CATEGORY_OF_KIND.get(self.type.kind, "U")


def _list_types() -> Iterator[CatalogType]:
    for name, sql_type in NAMED_TYPES.items():
        if sql_type.kind is Kind.UNKNOWN:
            continue
        wire = WIRE_TYPES[sql_type.kind]
        yield CatalogType(wire.oid, name, sql_type, wire.length, 0, wire.array)
        yield CatalogType(wire.array, f"_{name}", array_of(sql_type), -1, wire.oid)
    for kind, oid in VECTOR_OIDS.items():
        vector = vector_of(SqlType(kind))
        yield CatalogType(oid, str(vector), vector, -1, WIRE_TYPES[kind].oid)


PSEUDO_TYPES = {
    "record": 2249,
    '"any"': 2276,
    "anyarray": 2277,
    "void": 2278,
    "trigger": 2279,
    "anyelement": 2283,
    "anynonarray": 2776,
    "event_trigger": 3838,
    "anycompatible": 5077,
    "anycompatiblearray": 5078,
    "anycompatiblenonarray": 5079,
}
"""Types that only functions have, by name."""
PSEUDO_NAMES = {oid: name for name, oid in PSEUDO_TYPES.items()}
NAME_OID, _NAME_BYTES, _NAMES_OID, _CHAR_OID = 19, 64, 1003, 18
TYPES_BY_OID = {one.oid: one for one in _list_types()}
_SPELLINGS = {one.name: one for one in TYPES_BY_OID.values()}
_SPELLINGS |= {str(one.type): one for one in TYPES_BY_OID.values()}
_SPELLINGS |= {
    word: _SPELLINGS[known]
    for word, known in (
        ("int", "int4"),
        ("decimal", "numeric"),
        ("char", "bpchar"),
        ("float", "float8"),
        ("name", "text"),
    )
}


def find_type_by_name(text: str) -> CatalogType | None:
    """The type of that name in any spelling, modifiers ignored."""
    plain = re.sub(r"\([^()]*\)", "", text.lower().strip().removeprefix("pg_catalog."))
    plain = re.sub(r"\s+", " ", plain).replace('"', "").strip()
    element, brackets, _ = plain.partition("[")
    found = _SPELLINGS.get(element.strip())
    if found is None or not brackets:
        return found
    return TYPES_BY_OID.get(found.array)


def format_type(oid: int | None, modifier: int | None) -> str | None:
    """The name of a type with its modifier."""
    if oid is None:
        return None
    if oid == 0:
        return "-"
    found = TYPES_BY_OID.get(oid)
    if found is None:
        return PSEUDO_NAMES.get(oid) or ("name" if oid == NAME_OID else "???")
    if found.type.kind is Kind.CHAR and modifier == -1:
        return "bpchar"
    return str(read_type_oid(oid, -1 if modifier is None else modifier))


def find_storage_letter(sql_type: SqlType) -> str:
    """How PostgreSQL would store values: plain, main or extended."""
    if sql_type.element is not None or find_length(sql_type) < 0:
        return "m" if sql_type.kind is Kind.NUMERIC else "x"
    return "p"


def name_type_function(one: CatalogType, what: str) -> ObjectName:
    """The function that reads or writes values of a type; what: in, out, recv or send."""
    prefix = "array" if one.element else one.name
    return _make_function_name(f"{prefix}_{what}" if prefix in _UNDERSCORED else f"{prefix}{what}")


def _make_function_name(name: str) -> ObjectName:
    return ObjectName(oids.hash_name_oid(name), name)


@functools.cache
def find_type_functions() -> dict[str, ObjectName]:
    named = [
        name_type_function(one, what)
        for one in TYPES_BY_OID.values()
        for what in ("in", "out", "recv", "send")
    ]
    return {one.text: one for one in named}


def list_types() -> Iterator[Row]:
    yield from _list_other_types()
    build = make_row_builder("pg_type")
    for one in TYPES_BY_OID.values():
        yield build(
            oid=one.oid,
            typname=one.name,
            typnamespace=_SYSTEM,
            typowner=oids.OWNER_OID,
            typlen=one.length,
            typbyval=one.by_value,
            typtype="b",
            typcategory=one.category,
            typispreferred=not one.element and one.type.kind in _PREFERRED,
            typisdefined=True,
            typdelim=",",
            typelem=one.element,
            typarray=one.array,
            typinput=name_type_function(one, "in"),
            typoutput=name_type_function(one, "out"),
            typreceive=name_type_function(one, "recv"),
            typsend=name_type_function(one, "send"),
            typalign="i",
            typstorage=find_storage_letter(one.type),
            typtypmod=-1,
            typcollation=(
                oids.DEFAULT_COLLATION_OID
                if (one.type.element or one.type).kind in _COLLATED
                else 0
            ),
        )


def _list_other_types() -> Iterator[Row]:
    """Types that no value has here: that of names, which are text, and those of functions only."""
    build = make_row_builder("pg_type")
    yield build(
        oid=NAME_OID,
        typname="name",
        typnamespace=_SYSTEM,
        typowner=oids.OWNER_OID,
        typlen=_NAME_BYTES,
        typtype="b",
        typcategory="S",
        typisdefined=True,
        typdelim=",",
        typarray=_NAMES_OID,
        typelem=_CHAR_OID,
        typalign="c",
        typstorage="p",
        typtypmod=-1,
    )
    for name, oid in PSEUDO_TYPES.items():
        yield build(
            oid=oid,
            typname=name.strip('"'),
            typnamespace=_SYSTEM,
            typowner=oids.OWNER_OID,
            typlen=-1 if "array" in name or name == "record" else 4,
            typtype="p",
            typcategory="P",
            typisdefined=True,
            typdelim=",",
            typalign="i",
            typstorage="p",
            typtypmod=-1,
        )


def list_collations() -> Iterator[Row]:
    build = make_row_builder("pg_collation")
    for oid, name in ((oids.DEFAULT_COLLATION_OID, "default"), (950, "C"), (951, "POSIX")):
        yield build(
            oid=oid,
            collname=name,
            collnamespace=_SYSTEM,
            collowner=oids.OWNER_OID,
            collprovider="d" if name == "default" else "c",
            collisdeterministic=True,
            collencoding=-1,
            collcollate=None if name == "default" else name,
            collctype=None if name == "default" else name,
        )


def list_access_methods() -> Iterator[Row]:
    build = make_row_builder("pg_am")
    heap, btree = _make_function_name("heap_tableam_handler"), _make_function_name("bthandler")
    yield build(oid=oids.HEAP_OID, amname="heap", amhandler=heap, amtype="t")
    yield build(oid=oids.BTREE_OID, amname="btree", amhandler=btree, amtype="i")


def find_operator_class_oid(sql_type: SqlType) -> int:
    return _number_operator_class(TYPES_BY_OID[WIRE_TYPES[(sql_type.element or sql_type).kind].oid])


def _number_operator_class(one: CatalogType) -> int:
    return _KNOWN_OPERATOR_CLASSES.get(one.name, _OPERATOR_CLASS_OIDS + one.oid)


def _list_ordered_types() -> list[CatalogType]:
    return [one for one in TYPES_BY_OID.values() if not one.element]


def list_operator_classes() -> Iterator[Row]:
    build = make_row_builder("pg_opclass")
    for one in _list_ordered_types():
        yield build(
            oid=_number_operator_class(one),
            opcmethod=oids.BTREE_OID,
            opcname=f"{one.name}_ops",
            opcnamespace=_SYSTEM,
            opcowner=oids.OWNER_OID,
            opcfamily=oids.hash_name_oid(f"family {_name_operator_family(one)}"),
            opcintype=one.oid,
            opcdefault=True,
        )


def _name_operator_family(one: CatalogType) -> str:
    return _OPERATOR_FAMILIES.get(one.name, f"{one.name}_ops")


def list_operator_families() -> Iterator[Row]:
    build = make_row_builder("pg_opfamily")
    for name in sorted({_name_operator_family(one) for one in _list_ordered_types()}):
        yield build(
            oid=oids.hash_name_oid(f"family {name}"),
            opfmethod=oids.BTREE_OID,
            opfname=name,
            opfnamespace=_SYSTEM,
            opfowner=oids.OWNER_OID,
        )


def list_languages() -> Iterator[Row]:
    build = make_row_builder("pg_language")
    yield build(oid=oids.INTERNAL_LANGUAGE_OID, lanname="internal", lanowner=oids.OWNER_OID)
