"""Validation rules for single definitions, and default names of objects defined without a name."""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.catalog import model
from belvedere.catalog.definitions import (
    IndexDefinition,
    KeyPartDefinition,
    SequenceDefinition,
)
from belvedere.catalog.model import AnyObject, Index, Table, TypeName, View, ViewKind
from belvedere.errors import InvalidInput
from belvedere.types import Kind, SqlType

NAME_BYTES_MAX = 63


def require_column(table: Table, name: str) -> model.CatalogColumn:
    for column in table.columns:
        if column.name == name and not column.dropped and not column.hidden:
            return column
    raise InvalidInput("column does not exist", sqlstate="42703", table=table.name, name=name)


def index_slots(index: Index) -> frozenset[int]:
    return frozenset(part.slot for part in index.parts if part.slot is not None) | frozenset(
        index.include
    )


def build_view_columns(wanted: tuple[tuple[str, SqlType], ...]) -> tuple[model.CatalogColumn, ...]:
    return tuple(
        model.CatalogColumn(name, TypeName.from_type(type_), slot)
        for slot, (name, type_) in enumerate(wanted)
    )


def require_name(name: str) -> None:
    if not name or len(name.encode()) > NAME_BYTES_MAX or "\0" in name:
        raise InvalidInput("not a valid name", sqlstate="42602", name=name[:80])


def column_slots(named: dict[str, int], wanted: tuple[str, ...]) -> tuple[int, ...]:
    for name in wanted:
        if name not in named:
            raise InvalidInput("column does not exist", sqlstate="42703", name=name)
    if len(set(wanted)) != len(wanted):
        raise InvalidInput("column is named twice", sqlstate="42701")
    return tuple(named[name] for name in wanted)


def build_key_part(table: Table, wanted: KeyPartDefinition) -> model.KeyPart:
    if wanted.column is not None:
        slot = require_column(table, wanted.column).slot
        return model.KeyPart(
            slot=slot, descending=wanted.descending, nulls_first=wanted.nulls_first
        )
    assert wanted.type is not None
    return model.KeyPart(
        expression=wanted.expression,
        type_name=TypeName.from_type(wanted.type),
        descending=wanted.descending,
        nulls_first=wanted.nulls_first,
    )


def name_index(table: str, wanted: IndexDefinition, hidden: bool) -> str:
    """PostgreSQL's name; for a hidden index one that takes none from the user."""
    columns = [part.column or "expr" for part in wanted.parts]
    if hidden:
        return f"{table} ({', '.join(columns)})"
    return f"{table}_{'_'.join(columns)}_idx"


def require_matching_columns(
    child: Table, columns: tuple[int, ...], parent: Table, parent_columns: tuple[int, ...]
) -> None:
    if len(columns) != len(parent_columns):
        raise InvalidInput("foreign key has the wrong number of columns", sqlstate="42830")
    for mine, theirs in zip(columns, parent_columns, strict=True):
        left, right = child.columns[mine].type, parent.columns[theirs].type
        if _key_family(left.kind) != _key_family(right.kind):
            raise InvalidInput(
                "foreign key types do not match",
                sqlstate="42804",
                child=str(left),
                parent=str(right),
            )


def _key_family(kind: Kind) -> str:
    """The name of the class of types whose equal values encode to equal keys."""
    if kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
        return "integer"
    if kind in (Kind.VARCHAR, Kind.TEXT):
        return "text"
    if kind in (Kind.REAL, Kind.DOUBLE):
        return "float"
    return kind.value


def truncate_name(name: str, suffix: str = "") -> str:
    """A generated name, cut to the longest that is allowed; the suffix is never cut."""
    room = NAME_BYTES_MAX - len(suffix.encode())
    return name.encode()[:room].decode(errors="ignore") + suffix


def require_sequence(wanted: SequenceDefinition) -> None:
    if wanted.increment == 0:
        raise InvalidInput("a sequence cannot stand still", sqlstate="22023", name=wanted.name)
    if not -(2**63) <= wanted.minimum <= wanted.start <= wanted.maximum < 2**63:
        raise InvalidInput(
            "a sequence must start within its bounds",
            sqlstate="22023",
            name=wanted.name,
            minimum=wanted.minimum,
            start=wanted.start,
            maximum=wanted.maximum,
        )


def require_root(table: Table) -> None:
    """Check that the foreign key that `root` names exists, is enforced and is NOT NULL."""
    if table.root in (None, "self"):
        return
    not_null = {column.slot for column in table.columns if column.not_null}
    for key in table.foreign_keys:
        if key.name == table.root and key.enforced and not_null.issuperset(key.columns):
            return
    raise InvalidInput(
        "root must be 'self' or an enforced foreign key that is not null",
        sqlstate="42704",
        table=table.name,
        root=table.root,
    )


def list_user_views(views: Iterable[View]) -> list[str]:
    """Those that nobody drops with what they read, unlike indexes and auxiliary views."""
    return [view.noun_and_name for view in views if view.kind is ViewKind.USER]


def dependents_error(item: AnyObject, users: list[str]) -> InvalidInput:
    """The error 2BP01: other objects depend on this one, and CASCADE was not given."""
    return InvalidInput(
        "other objects depend on it",
        sqlstate="2BP01",
        detail=", ".join(users),
        hint="drop them first, or use CASCADE",
        name=item.name,
    )
