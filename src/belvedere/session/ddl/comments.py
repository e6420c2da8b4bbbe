"""COMMENT ON as a change of the catalog."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.comments import put_comments
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import AnyObject, Comments, Index, PlainView, Sequence, Table, View
from belvedere.errors import InvalidInput
from belvedere.sql import definitions as d

_KINDS: dict[str, type[Any]] = {
    "table": Table,
    "index": Index,
    "sequence": Sequence,
    "view": PlainView,
    "materialized view": View,
    "constraint": Table,
}

Key = TypeVar("Key", int, str)


def set_comment(edit: CatalogEdit, statement: d.Comment) -> None:
    item = _find_commented_object(edit.catalog, statement)
    found = edit.catalog.comments.get(item.id) or Comments(id=0, name="", object=item.id)
    match statement.kind:
        case "column":
            slot = _find_column_slot(item, statement.part)
            found = replace(found, columns=_put_or_remove_text(found.columns, slot, statement.text))
        case "constraint":
            _require_constraint(edit.catalog, item, statement.part)
            texts = _put_or_remove_text(found.constraints, statement.part, statement.text)
            found = replace(found, constraints=texts)
        case _:
            found = replace(found, text=statement.text)
    put_comments(edit, found)


def _find_commented_object(catalog: Catalog, statement: d.Comment) -> AnyObject:
    name = statement.name
    if statement.kind == "schema":
        return catalog.objects[catalog.schema_id(name.name)]
    schema = name.schema or "public"
    if statement.kind in _KINDS:
        found: AnyObject = catalog.require_relation(_KINDS[statement.kind], name.name, schema)
        return found
    item = catalog.find_relation(name.name, schema)
    if item is None:
        raise InvalidInput("relation does not exist", sqlstate="42P01", name=name.name)
    return item


def _find_column_slot(item: AnyObject, name: str) -> int:
    if not isinstance(item, Table | PlainView | View):
        raise InvalidInput("relation has no columns of this kind", sqlstate="42809", column=name)
    for column in item.columns:
        if column.name == name and not column.dropped and not column.hidden:
            return column.slot
    raise InvalidInput("column does not exist", sqlstate="42703", column=name)


def _require_constraint(catalog: Catalog, item: AnyObject, name: str) -> None:
    assert isinstance(item, Table)
    names = {item.primary_key_name} if not _has_hidden_key(item) else set()
    names |= {check.name for check in item.checks} | {key.name for key in item.foreign_keys}
    names |= {one.name for one in catalog.table_indexes(item.id) if one.constraint}
    if name not in names:
        raise InvalidInput("constraint does not exist", sqlstate="42704", name=name)


def _has_hidden_key(table: Table) -> bool:
    return any(table.columns[slot].hidden for slot in table.primary_key)


def _put_or_remove_text(texts: dict[Key, str], key: Key, text: str | None) -> dict[Key, str]:
    rest = {other: one for other, one in texts.items() if other != key}
    return rest if text is None else {**rest, key: text}
