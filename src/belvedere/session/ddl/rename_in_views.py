"""Rewriting of view definitions after a table or column that they read was renamed.

A definition stays as it was written, except where it names the table: there the new name gets the
old one as its alias, and after a column was renamed also the old column names.

    SELECT t.g, sum(v) FROM t GROUP BY 1
    SELECT t.g, sum(v) FROM public.sales AS t GROUP BY 1          t is sales now
    SELECT t.g, sum(v) FROM public.t AS t(id, g, v) GROUP BY 1    v is amount now

The commit compiles every view again and refuses one that is not the same
(`views.registry.transitions`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import CatalogColumn, Table, View
from belvedere.sql.parse.lexical.lexer import tokenize
from belvedere.sql.parse.lexical.render import quote
from belvedere.sql.parse.script import parse_script
from belvedere.sql.parse.tree import CteTree, TableRef

PUBLIC = "public"


def rewrite_dependent_definitions(edit: CatalogEdit, before: Table) -> None:
    """Rewrite the definitions of views over a renamed table, so that their meaning stays."""
    after = edit.catalog.table(before.id)
    schema = next(s.name for s in edit.catalog.schemas if s.id == before.schema)
    for view in edit.catalog.dependent_views(before.id):
        if before.id in view.inputs:
            text = _rewrite_definition_text(view, before, after, schema)
            if text != view.definition:
                edit.put(msgspec.structs.replace(view, definition=text))


def _rewrite_definition_text(view: View, before: Table, after: Table, schema: str) -> str:
    (parsed,) = parse_script(view.definition)
    found = list(_walk_syntax_tree(parsed.tree))
    if any(isinstance(part, CteTree) and part.name == before.name for part in found):
        return view.definition  # the name means something else in places
    names = {(schema, before.name)} | ({(before.name,)} if schema == PUBLIC else set())
    places = [part for part in found if isinstance(part, TableRef) and part.name in names]
    width = view.widths[view.inputs.index(before.id)]
    old = _list_visible_columns(before, width)
    renamed = old != _list_visible_columns(after, width)
    text = view.definition
    for place in sorted(places, key=lambda part: -part.at):
        start, end = _locate_table_name(text, place)
        text = (
            text[:start]
            + _format_table_reference(place, before, after, schema, old, renamed)
            + text[end:]
        )
    return text


def _format_table_reference(
    place: TableRef,
    before: Table,
    after: Table,
    schema: str,
    old: list[CatalogColumn],
    renamed: bool,
) -> str:
    """The text that replaces the table's name in the definition."""
    name = f"{quote(schema)}.{quote(after.name)}"
    if not renamed or place.columns:
        return name if place.alias else f"{name} AS {quote(before.name)}"
    listed = ", ".join(quote(column.name) for column in old)
    if place.alias is None:
        return f"{name} AS {quote(before.name)}({listed})"
    columns = {column.slot: column.name for column in after.columns}
    made = ", ".join(f"{quote(columns[c.slot])} AS {quote(c.name)}" for c in old)
    return f"(SELECT {made} FROM {name})"


def _list_visible_columns(table: Table, width: int) -> list[CatalogColumn]:
    """The columns that the view's definition sees, by their names."""
    shown = [column for column in table.columns[:width] if not column.dropped and not column.hidden]
    return [CatalogColumn(column.name, column.type_name, column.slot) for column in shown]


def _locate_table_name(text: str, place: TableRef) -> tuple[int, int]:
    """The start and end offset of a table's name in the text."""
    tokens = tokenize(text)
    first = next(i for i, token in enumerate(tokens) if token.start == place.at)
    return place.at, tokens[first + 2 * (len(place.name) - 1)].end


def _walk_syntax_tree(part: Any) -> Iterator[Any]:
    if isinstance(part, msgspec.Struct):
        yield part
        for field in part.__struct_fields__:
            yield from _walk_syntax_tree(getattr(part, field))
    elif isinstance(part, tuple | list):
        for one in part:
            yield from _walk_syntax_tree(one)
