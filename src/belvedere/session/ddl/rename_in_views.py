"""Rewriting of view definitions after a table, view or column that they read was renamed.

A definition stays as it was written, except where it names the table: there the new name gets the
old one as its alias, and after a column was renamed also the old column names.

    SELECT t.g, sum(v) FROM t GROUP BY 1
    SELECT t.g, sum(v) FROM public.sales AS t GROUP BY 1          t is sales now
    SELECT t.g, sum(v) FROM public.t AS t(id, g, v) GROUP BY 1    v is amount now
    SELECT t.g, sum(v) FROM public.t AS t(g, v) GROUP BY 1        id was dropped

The commit compiles every view again and refuses one that is not the same
(`views.registry.transitions`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import CatalogColumn, PlainView, Table, View, ViewKind
from belvedere.errors import InvalidInput
from belvedere.sql.parse.lexical.lexer import WORD, tokenize
from belvedere.sql.parse.lexical.render import quote
from belvedere.sql.parse.script import parse_script
from belvedere.sql.parse.tree import CteTree, TableRef

PUBLIC = "public"
Relation = Table | View | PlainView


def rewrite_dependent_definitions(edit: CatalogEdit, before: Relation) -> None:
    """Rewrite the definitions of views over a renamed relation, so that their meaning stays."""
    after = edit.catalog.get(before.id)
    assert isinstance(after, Table | View | PlainView)
    schema = next(s.name for s in edit.catalog.schemas if s.id == before.schema)
    for view in list(edit.catalog.objects.values()):
        if not isinstance(view, View | PlainView):
            continue
        width = None
        if isinstance(view, View) and before.id in view.inputs:
            width = view.widths[view.inputs.index(before.id)]
        text = _rewrite_definition_text(view.definition, width, before, after, schema)
        if text != view.definition:
            edit.put(msgspec.structs.replace(view, definition=text))


def rename_view_column(edit: CatalogEdit, view: View | PlainView, old: str, new: str) -> None:
    """Rename a column of a view, in the definitions of other views too."""
    names = [column.name for column in view.columns]
    if old not in names:
        raise InvalidInput("column does not exist", sqlstate="42703", name=old)
    if new in names:
        raise InvalidInput("column already exists", sqlstate="42701", name=new)
    renamed = msgspec.structs.replace(view, columns=_rename_listed_column(view, old, new))
    if isinstance(view, PlainView):  # its columns are those of its query
        listed = ", ".join(
            quote(one) + (f" AS {quote(new)}" if one == old else "") for one in names
        )
        text = f"SELECT {listed} FROM ({view.definition}) AS {quote(view.name)}"
        renamed = msgspec.structs.replace(renamed, definition=text)
    edit.put(renamed)
    rewrite_dependent_definitions(edit, view)
    for index in edit.catalog.views:
        if index.kind is ViewKind.INDEX and view.id in index.reads:
            edit.put(msgspec.structs.replace(index, columns=_rename_listed_column(index, old, new)))


def _rename_listed_column(view: View | PlainView, old: str, new: str) -> tuple[CatalogColumn, ...]:
    return tuple(
        msgspec.structs.replace(one, name=new) if one.name == old else one for one in view.columns
    )


def _rewrite_definition_text(
    text: str, width: int | None, before: Relation, after: Relation, schema: str
) -> str:
    """`width`: how many of the table's columns the definition sees; None: all."""
    old = _list_visible_columns(before, width)
    renamed = old != _list_visible_columns(after, width)
    name = f"{quote(schema)}.{quote(after.name)}"
    for place in _find_table_references(text, schema, before.name):
        start, end, alias_end = _locate_table_reference(text, place)
        alias = text[end:alias_end] if place.alias else f" AS {quote(before.name)}"
        listed = ", ".join(quote(column.name) for column in old)
        columns = f"({listed})" if renamed and not place.columns else ""
        text = f"{text[:start]}{name}{alias}{columns}{text[alias_end:]}"
    return text


def _find_table_references(text: str, schema: str, name: str) -> list[TableRef]:
    """Where a definition names the table, the last place first; nowhere, when the name means
    something else in places."""
    (parsed,) = parse_script(text)
    found = list(_walk_syntax_tree(parsed.tree))
    if any(isinstance(part, CteTree) and part.name == name for part in found):
        return []
    names = {(schema, name)} | ({(name,)} if schema == PUBLIC else set())
    places = [part for part in found if isinstance(part, TableRef) and part.name in names]
    return sorted(places, key=lambda part: -part.at)


def drop_column_aliases(edit: CatalogEdit, table: Table, column: CatalogColumn) -> None:
    """Take the alias of a dropped column out of the definitions that list aliases of all columns:
    the others stay the aliases of theirs."""
    schema = next(s.name for s in edit.catalog.schemas if s.id == table.schema)
    for view in list(edit.catalog.objects.values()):
        if not isinstance(view, View | PlainView):
            continue
        width = None
        if isinstance(view, View) and table.id in view.inputs:
            width = view.widths[view.inputs.index(table.id)]
        slots = [one.slot for one in _list_visible_columns(table, width)]
        text = view.definition
        for place in _find_table_references(text, schema, table.name):
            if column.slot in slots[: len(place.columns)]:
                text = _drop_listed_alias(text, place, slots.index(column.slot))
        if text != view.definition:
            edit.put(msgspec.structs.replace(view, definition=text))


def _drop_listed_alias(text: str, place: TableRef, number: int) -> str:
    _, _, start = _locate_table_reference(text, place)
    closing = next(token for token in tokenize(text) if token.start >= start and token.text == ")")
    left = [one for i, one in enumerate(place.columns) if i != number]
    listed = f"({', '.join(map(quote, left))})" if left else ""
    return f"{text[:start]}{listed}{text[closing.end :]}"


def _list_visible_columns(table: Relation, width: int | None) -> list[CatalogColumn]:
    """The columns that the view's definition sees, by their names."""
    shown = [column for column in table.columns[:width] if not column.dropped and not column.hidden]
    return [CatalogColumn(column.name, column.type_name, column.slot) for column in shown]


def _locate_table_reference(text: str, place: TableRef) -> tuple[int, int, int]:
    """The start and end offset of a table's name in the text, and the end of its alias."""
    tokens = tokenize(text)
    first = next(i for i, token in enumerate(tokens) if token.start == place.at)
    last = first + 2 * (len(place.name) - 1)
    end = tokens[last].end
    if place.alias is None:
        return place.at, end, end
    after = tokens[last + 1]
    has_as = after.kind == WORD and after.text == "as"
    return place.at, end, tokens[last + 2].end if has_as else after.end


def _walk_syntax_tree(part: Any) -> Iterator[Any]:
    if isinstance(part, msgspec.Struct):
        yield part
        for field in part.__struct_fields__:
            yield from _walk_syntax_tree(getattr(part, field))
    elif isinstance(part, tuple | list):
        for one in part:
            yield from _walk_syntax_tree(one)
