"""The errors of what a role may not do: 42501, and what it is about."""

from __future__ import annotations

from belvedere.catalog.model import (
    AnyObject,
    ForeignTable,
    Head,
    Index,
    PlainView,
    Schema,
    Sequence,
    View,
    ViewKind,
)
from belvedere.errors import InvalidInput

DENIED = "42501"


def name_object_kind(item: AnyObject) -> str:
    match item:
        case View():
            return "materialized view" if item.kind is ViewKind.USER else "index"
        case PlainView():
            return "view"
        case ForeignTable():
            return "foreign table"
        case Index():
            return "index"
        case Sequence():
            return "sequence"
        case Schema():
            return "schema"
        case Head():
            return "database"
        case _:
            return "table"


def permission_denied(item: AnyObject) -> InvalidInput:
    kind = name_object_kind(item)
    name = "belvedere" if kind == "database" else item.name
    return InvalidInput(f"permission denied for {kind}", sqlstate=DENIED, name=name)


def not_the_owner(item: AnyObject) -> InvalidInput:
    return InvalidInput(
        f"must be owner of {name_object_kind(item)}", sqlstate=DENIED, name=item.name
    )


def not_allowed(what: str, hint: str | None = None) -> InvalidInput:
    return InvalidInput(f"permission denied to {what}", sqlstate=DENIED, hint=hint)
