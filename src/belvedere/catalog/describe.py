"""Relation descriptions from the catalog for the key-value printer: names, key codec, layout."""

from __future__ import annotations

import msgspec

from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.model import (
    CATALOG_RELATION,
    SEQUENCE_RELATION,
    ForeignTable,
    Index,
    PlainView,
    Sequence,
    Table,
    View,
    decode,
)
from belvedere.catalog.relation_codecs import compiled_index, compiled_table, compiled_view
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.keyspace import row_prefix
from belvedere.codec.printer import Describe, RelationDescription, print_bytes, print_name
from belvedere.codec.rows import RowLayout, Slot
from belvedere.types import BIGINT


def relation_describer(catalog: Catalog) -> Describe:
    """A function that describes the relations of this catalog; None for dropped ones."""

    def describe_relation(relation: int) -> RelationDescription | None:
        if relation in (CATALOG_RELATION, SEQUENCE_RELATION):
            return _describe_system_relation(relation)
        item = catalog.get(relation)
        if item is None or is_dropped(item):
            return None
        if isinstance(item, Table):
            return _describe_table(catalog, item)
        if isinstance(item, Index):
            return _describe_index(catalog, item)
        if isinstance(item, View):
            return _describe_view(catalog, item)
        return None

    return describe_relation


def _describe_system_relation(relation: int) -> RelationDescription:
    key = KeyCodec((KeyColumn(BIGINT),), row_prefix(relation))
    if relation == CATALOG_RELATION:
        return RelationDescription("belvedere.catalog", key, None, (), text=_format_object)
    layout = RowLayout((Slot(BIGINT, None),))
    return RelationDescription("belvedere.sequences", key, layout, ("reserved through",))


def _format_object(value: bytes) -> str:
    try:
        item = decode(value)
    except msgspec.DecodeError:
        return print_bytes(value)
    fields = [f"{type(item).__name__} {print_name(item.name)}", f"version {item.version}"]
    columns = getattr(item, "columns", ())
    if columns:
        fields.append("columns " + ", ".join(print_name(column.name) for column in columns))
    if getattr(item, "state", None) is not None:
        fields.append(str(item.state))  # type: ignore[union-attr]
    return "{" + "; ".join(fields) + "}"


def _describe_table(catalog: Catalog, table: Table) -> RelationDescription:
    compiled = compiled_table(catalog, table.id)
    names = tuple(None if column.dropped else column.name for column in table.columns)
    return RelationDescription(qualified_name(catalog, table), compiled.key, compiled.layout, names)


def _describe_index(catalog: Catalog, index: Index) -> RelationDescription:
    compiled = compiled_index(catalog, index.id)
    table = catalog.table(index.table)
    slots = [part.slot for part in index.parts] + [*table.primary_key, *index.include]
    names = tuple("expression" if s is None else table.columns[s].name for s in slots)
    name = qualified_name(catalog, index)
    if not index.unique:
        return RelationDescription(name, compiled.key, compiled.layout, names)
    return RelationDescription(
        name, compiled.unique_key, compiled.layout, names, longer=compiled.key
    )


def _describe_view(catalog: Catalog, view: View) -> RelationDescription:
    compiled = compiled_view(catalog, view.id)
    names = tuple(column.name.partition(" ")[2] for column in view.stored)
    return RelationDescription(
        qualified_name(catalog, view), compiled.key, compiled.payload, names, accumulates=True
    )


def qualified_name(
    catalog: Catalog, item: Table | Index | View | PlainView | ForeignTable | Sequence
) -> str:
    """The object's name, prefixed with its schema unless that is public."""
    schema = next(schema.name for schema in catalog.schemas if schema.id == item.schema)
    return item.name if schema == "public" else f"{schema}.{item.name}"
