"""Definitions of tables, indexes, sequences and views without ids: the input of `catalog.edit`.

The SQL binder fills these from text; a Python program may build them by hand. Names are plain
(already case-folded, unquoted); expressions are normalised SQL text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belvedere.catalog.model import Maintenance, ReferentialAction
from belvedere.catalog.view_options import (
    NO_OPTIONS,
    IndexColumns,
    ViewOptions,
    encode_options,
)
from belvedere.types import SqlType


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """`missing` is the value of an added column in rows older than it; `numbers` are the options of
    the sequence of a serial or identity column, whose name is generated."""

    name: str
    type: SqlType
    not_null: bool = False
    default: str | None = None
    missing: Any = None
    identity: str | None = None  # 'always' or 'by default'
    serial: bool = False
    generated: str | None = None
    numbers: SequenceDefinition | None = None


@dataclass(frozen=True, slots=True)
class KeyPartDefinition:
    """A column by name, or an expression with its type."""

    column: str | None = None
    expression: str | None = None
    type: SqlType | None = None
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class UniqueDefinition:
    columns: tuple[str, ...]
    name: str | None = None
    nulls_distinct: bool = True


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    expression: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignKeyDefinition:
    """Without `parent_columns` the parent's primary key is meant."""

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...] = ()
    parent_schema: str = "public"
    name: str | None = None
    on_delete: ReferentialAction = ReferentialAction.NO_ACTION
    on_update: ReferentialAction = ReferentialAction.NO_ACTION
    enforced: bool = True
    deferrable: bool = False
    initially_deferred: bool = False


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """Without `primary_key` the table gets a hidden row id."""

    name: str
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...] = ()
    primary_key_name: str | None = None
    schema: str = "public"
    uniques: tuple[UniqueDefinition, ...] = ()
    checks: tuple[CheckDefinition, ...] = ()
    foreign_keys: tuple[ForeignKeyDefinition, ...] = ()
    root: str | None = None
    partitions: int = 1
    hashed: bool = False


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    table: str
    parts: tuple[KeyPartDefinition, ...]
    name: str | None = None
    schema: str = "public"
    include: tuple[str, ...] = ()
    unique: bool = False
    nulls_distinct: bool = True
    where: str | None = None
    maintenance: Maintenance = Maintenance.IMMEDIATE


@dataclass(frozen=True, slots=True)
class SequenceDefinition:
    name: str
    schema: str = "public"
    start: int = 1
    increment: int = 1
    minimum: int = 1
    maximum: int = 2**63 - 1
    cycle: bool = False


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view: `columns` are (name, type) of its query, `inputs` the tables it is made of, `reads`
    the views it names; `stored`, `key_columns` and `amounts` say how it is kept, the other fields
    are those of catalog.model.View."""

    name: str
    definition: str
    columns: tuple[tuple[str, SqlType], ...]
    inputs: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    stored: tuple[tuple[str, SqlType], ...] = ()
    key_columns: int = 0
    amounts: int = 1
    supporting_objects: tuple[int, ...] = ()
    schema: str = "public"
    maintenance: Maintenance = Maintenance.IMMEDIATE
    options: ViewOptions = NO_OPTIONS
    index: IndexColumns | None = None
    replaces: int | None = None

    @property
    def stored_options(self) -> dict[str, str]:
        return encode_options(self.options, self.index, self.replaces)
