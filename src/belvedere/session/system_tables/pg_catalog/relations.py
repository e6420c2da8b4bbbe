"""The relations of a catalog as PostgreSQL counts them: with an OID, a kind and numbered columns.

A primary key is an index of its own here, though it is stored as the table itself; the indexes that
the system makes for foreign keys and the auxiliary views are not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.model import (
    OWNER_ROLE,
    CatalogColumn,
    ForeignTable,
    Index,
    PlainView,
    Sequence,
    Table,
    TypeName,
    View,
    ViewKind,
)
from belvedere.catalog.rights.builtin_roles import name_role
from belvedere.catalog.rights.role_rights import find_object_owner
from belvedere.session.system_tables.pg_catalog.columns import load_catalog_tables
from belvedere.session.system_tables.pg_catalog.oids import (
    SYSTEM_SCHEMA_OIDS,
    find_object_oid,
    find_primary_key_oid,
    find_schema_oid,
)
from belvedere.types import BIGINT, BOOLEAN, SqlType

PUBLIC = "public"


class ShownColumn(NamedTuple):
    """A column under its number; `stored` is what the catalog has of it."""

    number: int
    name: str
    type: SqlType
    stored: CatalogColumn | None = None


class IndexKey(NamedTuple):
    """A column of an index: the number of the table's column, or 0 and an expression."""

    number: int
    text: str
    type: SqlType
    descending: bool = False
    nulls_first: bool = False


class IndexShape(NamedTuple):
    relation: int
    keys: tuple[IndexKey, ...]
    included: tuple[IndexKey, ...]
    unique: bool
    primary: bool = False
    constraint: bool = False
    nulls_distinct: bool = True
    where: str | None = None


class Relation(NamedTuple):
    oid: int
    name: str
    schema: str
    schema_oid: int
    kind: str  # PostgreSQL's letter: r, v, m, i, S, f
    item: Table | Index | Sequence | PlainView | ForeignTable | View | None
    columns: tuple[ShownColumn, ...]
    shape: IndexShape | None = None


class Relations:
    """The relations of one catalog, by OID and by name."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.schema_names = {schema.id: schema.name for schema in catalog.schemas}
        self.schemas = {find_schema_oid(id_): name for id_, name in self.schema_names.items()}
        self.schemas |= {oid: name for name, oid in SYSTEM_SCHEMA_OIDS.items()}

    @cached_property
    def every_relation(self) -> tuple[Relation, ...]:
        return (*self._list_stored_relations(), *self._list_system_tables())

    def find_owner(self, one: Relation) -> int:
        """The role that owns a relation; system tables are the owner's of the database."""
        return OWNER_ROLE if one.item is None else find_object_owner(self.catalog, one.item)

    def find_owner_name(self, one: Relation) -> str:
        return name_role(self.catalog, self.find_owner(one))

    @cached_property
    def by_oid(self) -> dict[int, Relation]:
        return {one.oid: one for one in self.every_relation}

    @cached_property
    def by_name(self) -> dict[tuple[str, str], Relation]:
        return {(one.schema, one.name): one for one in self.every_relation}

    @cached_property
    def indexes_by_relation(self) -> dict[int, list[Relation]]:
        found: dict[int, list[Relation]] = {}
        for one in self.every_relation:
            if one.shape is not None:
                found.setdefault(one.shape.relation, []).append(one)
        return found

    @cached_property
    def tables(self) -> tuple[tuple[Relation, Table], ...]:
        return tuple(
            [(one, one.item) for one in self.every_relation if isinstance(one.item, Table)]
        )

    def _list_stored_relations(self) -> Iterator[Relation]:
        for item in self.catalog.objects.values():
            if is_dropped(item):
                continue
            match item:
                case Table():
                    yield self._make_relation(item, "r", number_columns(item.columns))
                    if not has_hidden_row_id(item):
                        yield self._make_primary_key_relation(item)
                case Index() if not item.hidden:
                    yield self._make_index_relation(item)
                case Sequence():
                    yield self._make_relation(item, "S", _SEQUENCE_COLUMNS)
                case ForeignTable():
                    yield self._make_relation(item, "f", number_columns(item.columns))
                case PlainView():
                    yield self._make_relation(item, "v", number_columns(item.columns))
                case View() if item.kind is ViewKind.USER and item.replaces is None:
                    yield self._make_relation(item, "m", number_columns(item.columns))
                case View() if item.kind is ViewKind.INDEX and item.replaces is None:
                    yield self._make_view_index_relation(item)

    def _make_relation(
        self,
        item: Table | Index | Sequence | PlainView | ForeignTable | View,
        kind: str,
        columns: tuple[ShownColumn, ...],
        index: IndexShape | None = None,
    ) -> Relation:
        schema = self.schema_names[item.schema]
        schema_oid = find_schema_oid(item.schema)
        return Relation(
            find_object_oid(item), item.name, schema, schema_oid, kind, item, columns, index
        )

    def _make_primary_key_relation(self, table: Table) -> Relation:
        numbers = map_slots_to_numbers(table.columns)
        keys = tuple([_make_index_key(table, numbers, slot) for slot in table.primary_key])
        shape = IndexShape(find_object_oid(table), keys, (), True, True, True)
        made = self._make_relation(table, "i", _list_index_columns(shape), shape)
        oid = find_primary_key_oid(table)
        return made._replace(oid=oid, name=table.primary_key_name, item=None)

    def _make_index_relation(self, index: Index) -> Relation:
        table = self.catalog.table(index.table)
        numbers = map_slots_to_numbers(table.columns)
        keys = []
        for part in index.parts:
            first = part.descending if part.nulls_first is None else part.nulls_first
            if part.slot is not None:
                key = _make_index_key(table, numbers, part.slot)
            else:
                assert part.expression is not None
                assert part.type_name is not None
                key = IndexKey(0, part.expression, part.type_name.to_type())
            keys.append(key._replace(descending=part.descending, nulls_first=first))
        shape = IndexShape(
            find_object_oid(table),
            tuple(keys),
            tuple([_make_index_key(table, numbers, slot) for slot in index.include]),
            index.unique,
            False,
            index.constraint,
            index.nulls_distinct,
            index.where,
        )
        return self._make_relation(index, "i", _list_index_columns(shape), shape)

    def _make_view_index_relation(self, view: View) -> Relation:
        """An index that is stored as a view, over a view or a table."""
        read = self.catalog.objects[(view.reads or view.inputs)[0]]
        assert isinstance(read, View | Table)
        assert view.index is not None
        numbers = {column.name: column.number for column in number_columns(read.columns)}
        names = [column.name for column in view.columns[: view.index.key_count]]
        types = [column.type for column in view.columns]
        keys = tuple([IndexKey(numbers.get(a, 0), a, b) for a, b in zip(names, types)])
        shape = IndexShape(find_object_oid(read), keys, (), view.is_unique)
        return self._make_relation(view, "i", _list_index_columns(shape), shape)

    def _list_system_tables(self) -> Iterator[Relation]:
        for name, table in load_catalog_tables().items():
            columns = tuple(
                [ShownColumn(i, one.name, one.type) for i, one in enumerate(table.fields, 1)]
            )
            oid = SYSTEM_SCHEMA_OIDS["pg_catalog"]
            yield Relation(table.oid, name, "pg_catalog", oid, "r", None, columns)


def number_columns(columns: tuple[CatalogColumn, ...]) -> tuple[ShownColumn, ...]:
    """The columns under their numbers; dropped ones keep theirs."""
    shown = [column for column in columns if not column.hidden]
    return tuple([ShownColumn(i, c.name, c.type, c) for i, c in enumerate(shown, 1)])


def map_slots_to_numbers(columns: tuple[CatalogColumn, ...]) -> dict[int, int]:
    shown = [column.slot for column in columns if not column.hidden]
    return {slot: i for i, slot in enumerate(shown, 1)}


def has_hidden_row_id(table: Table) -> bool:
    return any(table.columns[slot].hidden for slot in table.primary_key)


def _make_index_key(table: Table, numbers: dict[int, int], slot: int) -> IndexKey:
    column = table.columns[slot]
    return IndexKey(numbers[slot], column.name, column.type)


def _list_index_columns(shape: IndexShape) -> tuple[ShownColumn, ...]:
    keys = enumerate((*shape.keys, *shape.included), 1)
    return tuple([ShownColumn(i, _name_index_column(key), key.type) for i, key in keys])


def _name_index_column(key: IndexKey) -> str:
    """The column's name, or that of the function which an expression calls."""
    if key.number:
        return key.text
    called = re.match(r"([a-z_]\w*)\(", key.text)
    return called[1] if called else "expr"


def _make_sequence_column(number: int, name: str, sql_type: SqlType) -> ShownColumn:
    stored = CatalogColumn(name, TypeName.from_type(sql_type), number - 1, not_null=True)
    return ShownColumn(number, name, sql_type, stored)


_SEQUENCE_COLUMNS = (
    _make_sequence_column(1, "last_value", BIGINT),
    _make_sequence_column(2, "log_cnt", BIGINT),
    _make_sequence_column(3, "is_called", BOOLEAN),
)


def find_relations(catalog: Catalog) -> Relations:
    """Those of the catalog, computed once for each version of it."""
    found = catalog.derived_cache.get(Relations)
    if not isinstance(found, Relations):
        found = Relations(catalog)
        catalog.derived_cache[Relations] = found
    return found
