"""CREATE, ALTER and DROP SCHEMA, and SET SCHEMA, which moves a relation to another schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import (
    ForeignTable,
    Head,
    Index,
    PlainView,
    Role,
    Schema,
    Sequence,
    Table,
    View,
)
from belvedere.errors import InvalidInput, Unsupported
from belvedere.sql import definitions as d

DropObject = Callable[[CatalogEdit, Any, bool], None]
"""Drop one object, with CASCADE or without."""

replace = msgspec.structs.replace


def create_schema(edit: CatalogEdit, statement: d.CreateSchema) -> None:
    if statement.if_not_exists and any(s.name == statement.name for s in edit.catalog.schemas):
        return
    edit.create_schema(statement.name)


def drop_schema(
    edit: CatalogEdit, name: str, *, if_exists: bool, cascade: bool, drop: DropObject
) -> None:
    known = any(one.name == name for one in edit.catalog.schemas)
    if not known and if_exists:
        return
    id_ = edit.catalog.schema_id(name)
    inside = _list_schema_objects(edit.catalog, id_)
    if inside and not cascade:
        raise InvalidInput(
            "other objects depend on it",
            sqlstate="2BP01",
            detail=", ".join(item.name for item in inside),
            hint="drop them first, or use CASCADE",
            name=name,
        )
    # Views are dropped before the tables they read, so that each is dropped once.
    for item in sorted(inside, key=lambda item: isinstance(item, Table | ForeignTable)):
        current = edit.catalog.get(item.id)
        if current is not None and not is_dropped(current):
            drop(edit, current, True)
    edit.drop_schema(id_)


def _list_schema_objects(
    catalog: Catalog, schema: int
) -> list[Table | ForeignTable | View | PlainView | Sequence]:
    """The objects of a schema, without indexes and column sequences, which follow their tables."""
    fed = {c.sequence for table in catalog.tables for c in table.columns if not c.dropped}
    return [
        item
        for item in catalog.objects.values()
        if isinstance(item, Table | ForeignTable | View | PlainView | Sequence)
        and item.schema == schema
        and not is_dropped(item)
        and item.id not in fed
    ]


def rename_schema(edit: CatalogEdit, statement: d.Alter) -> None:
    """RENAME TO; objects refer to their schema by id, but views name it in their text."""
    id_ = edit.catalog.schema_id(statement.name.name)
    for action in statement.actions:
        if not isinstance(action, d.Rename) or action.what != "table":
            raise Unsupported("ALTER SCHEMA", action=type(action).__name__)
        if any(one.name == action.new for one in edit.catalog.schemas):
            raise InvalidInput("schema already exists", sqlstate="42P06", name=action.new)
        schema = edit.catalog.get(id_)
        assert isinstance(schema, Schema)
        edit.put(replace(schema, name=action.new))


def move_relation_to_schema(
    edit: CatalogEdit, item: Table | PlainView | View | Sequence, name: str
) -> None:
    """Move an object to a schema, a table with its indexes and column sequences."""
    schema = edit.catalog.schema_id(name)
    moved: list[Any] = [item]
    if isinstance(item, Table):
        moved += edit.catalog.table_indexes(item.id)
        fed = [c.sequence for c in item.columns if c.sequence is not None and not c.dropped]
        moved += [edit.catalog.objects[id_] for id_ in fed]
    for one in moved:
        assert not isinstance(one, Head | Schema | Role)
        assert isinstance(one, Table | Index | PlainView | View | Sequence)
        if one.schema != schema and edit.catalog.find_relation(one.name, name) is not None:
            raise InvalidInput("relation already exists", sqlstate="42P07", name=one.name)
        edit.put(replace(one, schema=schema))
