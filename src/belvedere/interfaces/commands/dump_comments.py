"""Comments of objects as statements of a dump."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.model import (
    AnyObject,
    Comments,
    Index,
    PlainView,
    Schema,
    Sequence,
    Table,
    View,
    ViewKind,
)
from belvedere.sql.parse.lexical.render import quote
from belvedere.values.quoting import quote_literal


def dump_comments(catalog: Catalog) -> Iterator[str]:
    for comments in sorted(catalog.comments.values(), key=lambda one: one.object):
        item = catalog.objects.get(comments.object)
        if item is not None and not is_dropped(item):
            yield from _comment_object(catalog, item, comments)


def _comment_object(catalog: Catalog, item: AnyObject, comments: Comments) -> Iterator[str]:
    schemas = {schema.id: schema.name for schema in catalog.schemas}
    name = quote(item.name)
    if not isinstance(item, Schema):
        name = f"{quote(schemas[item.schema])}.{name}"
    if comments.text is not None:
        yield _format_comment(f"{_name_kind(item)} {name}", comments.text)
    if isinstance(item, Table | PlainView | View):
        for slot, text in sorted(comments.columns.items()):
            column = item.columns[slot]
            if not column.dropped:
                yield _format_comment(f"COLUMN {name}.{quote(column.name)}", text)
    for constraint, text in sorted(comments.constraints.items()):
        yield _format_comment(f"CONSTRAINT {quote(constraint)} ON {name}", text)


def _format_comment(what: str, text: str) -> str:
    return f"COMMENT ON {what} IS {quote_literal(text)};"


def _name_kind(item: AnyObject) -> str:
    match item:
        case View() if item.kind is ViewKind.INDEX:
            return "INDEX"
        case View():
            return "MATERIALIZED VIEW"
        case PlainView():
            return "VIEW"
        case Table() | Index() | Sequence() | Schema():
            return type(item).__name__.upper()
        case _:
            raise AssertionError(item)
