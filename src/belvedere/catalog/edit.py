"""Catalog edits: a set of DDL changes that turns definitions into catalog objects with ids.

An edit starts from one catalog and ends as the objects that differ from it, none or the head among
them with the next version. So of two that started from the same catalog the second gets Retry and
starts over from the newer one, unless it only creates (`catalog.merge`).

An edit checks names and structure only; the code that applies it checks the data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import msgspec

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.definition_rules import (
    build_key_part,
    build_view_columns,
    column_slots,
    dependents_error,
    index_slots,
    list_user_views,
    name_index,
    require_column,
    require_matching_columns,
    require_name,
    require_root,
    require_sequence,
    truncate_name,
)
from belvedere.catalog.definitions import (
    CheckDefinition,
    ColumnDefinition,
    ForeignKeyDefinition,
    IndexDefinition,
    KeyPartDefinition,
    SequenceDefinition,
    TableDefinition,
    UniqueDefinition,
    ViewDefinition,
)
from belvedere.catalog.foreign_key_graph import leads_primary_key
from belvedere.catalog.model import Index, ObjectState, Table, View
from belvedere.catalog.relation_codecs import encode_missing_value
from belvedere.errors import InvalidInput
from belvedere.types import BIGINT, UNSTORED_KINDS

COLUMNS_MAX = 1600
KEY_COLUMNS_MAX = 32
ROW_ID = "belvedere_row_id"


class CatalogEdit:
    """Collects changes; `changed_objects()` is the result. Ids from `first_id` on are new."""

    def __init__(self, catalog: Catalog) -> None:
        self.before = catalog
        self.catalog = catalog
        self._head, reserved = catalog.head, catalog.reserved_ids
        self._next_id = self.first_id = max(self._head.next_id, reserved.next_id)
        self._version = catalog.version + 1
        self._changed: dict[int, model.AnyObject | None] = {}

    def changed_objects(self) -> dict[int, model.AnyObject | None]:
        """What differs from the catalog the edit started from, by id (None: removed)."""
        changed = {id_: item for id_, item in self._changed.items() if self._differs(id_, item)}
        new: dict[str, int] = {"version": self._version, "next_id": self._next_id}
        return changed and {**changed, model.HEAD_ID: msgspec.structs.replace(self._head, **new)}

    def _differs(self, id_: int, item: model.AnyObject | None) -> bool:
        old = self.before.objects.get(id_)
        same = item and old and msgspec.structs.replace(item, version=old.version) == old
        return item is not old and not same

    def allocate_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def put(self, item: model.AnyObject) -> None:
        item = msgspec.structs.replace(item, version=self._version)
        self._changed[item.id] = item
        self.catalog = self.catalog.with_objects({item.id: item})

    # -- schemas and sequences ----------------------------------------------------------------

    def create_schema(self, name: str) -> int:
        require_name(name)
        if any(schema.name == name for schema in self.catalog.schemas):
            raise InvalidInput("schema already exists", sqlstate="42P06", name=name)
        id_ = self.allocate_id()
        self.put(model.Schema(id=id_, name=name))
        return id_

    def drop_schema(self, id_: int) -> None:
        """Remove the schema at once: its objects are dropped already."""
        assert isinstance(self.catalog.get(id_), model.Schema)
        self.remove_object(id_)

    def create_sequence(self, wanted: SequenceDefinition, owner: int | None = None) -> int:
        schema = self._require_free_name(wanted.name, wanted.schema)
        require_sequence(wanted)
        id_ = self.allocate_id()
        self.put(
            model.Sequence(
                id=id_,
                name=wanted.name,
                schema=schema,
                start=wanted.start,
                increment=wanted.increment,
                minimum=wanted.minimum,
                maximum=wanted.maximum,
                cycle=wanted.cycle,
                owner=owner,
            )
        )
        return id_

    def drop_sequence(self, id_: int) -> None:
        """Remove the sequence at once: it has no rows of its own."""
        assert isinstance(self.catalog.get(id_), model.Sequence)
        self.remove_object(id_)

    def drop_plain_view(self, id_: int) -> None:
        """Remove the plain view at once: it is only its text."""
        assert isinstance(self.catalog.get(id_), model.PlainView)
        self.remove_object(id_)

    def remove_object(self, id_: int) -> None:
        self._changed[id_] = None
        self.catalog = self.catalog.with_objects({id_: None})

    # -- tables -------------------------------------------------------------------------------

    def create_table(self, wanted: TableDefinition) -> int:
        schema = self._require_free_name(wanted.name, wanted.schema)
        if len(wanted.columns) > COLUMNS_MAX:
            raise InvalidInput("too many columns", sqlstate="54011", limit=COLUMNS_MAX)
        if len(wanted.primary_key) > KEY_COLUMNS_MAX:
            raise InvalidInput("too many key columns", sqlstate="54011", limit=KEY_COLUMNS_MAX)
        id_ = self.allocate_id()
        columns, primary_key = self._build_columns(id_, wanted)
        table = Table(
            id=id_,
            name=wanted.name,
            schema=schema,
            columns=columns,
            primary_key=primary_key,
            primary_key_name=wanted.primary_key_name or truncate_name(wanted.name, "_pkey"),
            root=wanted.root,
            partitions=wanted.partitions,
            hashed=wanted.hashed,
        )
        self.put(table)
        for unique in wanted.uniques:
            self.add_unique(id_, unique)
        for check in wanted.checks:
            self.add_check(id_, check)
        for foreign_key in wanted.foreign_keys:
            self.add_foreign_key(id_, foreign_key)
        require_root(self.catalog.table(id_))
        return id_

    def set_root(self, table_id: int, root: str | None) -> None:
        """Set the table's root: 'self', the name of a foreign key, or None for the default rule."""
        table = msgspec.structs.replace(self.catalog.table(table_id), root=root)
        require_root(table)
        self.put(table)

    def _build_columns(
        self, table: int, wanted: TableDefinition
    ) -> tuple[tuple[model.CatalogColumn, ...], tuple[int, ...]]:
        named: dict[str, int] = {}
        columns: list[model.CatalogColumn] = []
        for definition in wanted.columns:
            if definition.name in named:
                raise InvalidInput("column is named twice", sqlstate="42701", name=definition.name)
            named[definition.name] = len(columns)
            is_key = definition.name in wanted.primary_key
            columns.append(self._build_column(table, definition, len(columns), wanted, is_key))
        if wanted.primary_key:
            return tuple(columns), column_slots(named, wanted.primary_key)
        hidden = model.CatalogColumn(
            ROW_ID, model.TypeName.from_type(BIGINT), len(columns), not_null=True, hidden=True
        )
        return (*columns, hidden), (len(columns),)

    def _build_column(
        self,
        table: int,
        wanted: ColumnDefinition,
        slot: int,
        owner: TableDefinition | Table,
        is_key: bool,
    ) -> model.CatalogColumn:
        require_name(wanted.name)
        if wanted.type.kind in UNSTORED_KINDS:
            raise InvalidInput(
                "a column cannot be of this type", sqlstate="42P16", type=str(wanted.type)
            )
        sequence = None
        if wanted.serial or wanted.identity:
            schema = owner.schema
            if isinstance(schema, int):
                schema = self._schema_name(schema)
            name = self.free_name(f"{owner.name}_{wanted.name}_seq", schema)
            numbers = wanted.numbers or SequenceDefinition(name)
            numbers = dataclasses.replace(numbers, name=name, schema=schema)
            sequence = self.create_sequence(numbers, owner=table)
        return model.CatalogColumn(
            wanted.name,
            model.TypeName.from_type(wanted.type),
            slot,
            not_null=wanted.not_null or is_key or wanted.serial or wanted.identity is not None,
            default=wanted.default,
            missing=encode_missing_value(wanted.type, wanted.missing),
            identity=wanted.identity,
            generated=wanted.generated,
            sequence=sequence,
        )

    def add_column(self, table_id: int, wanted: ColumnDefinition) -> None:
        table = self.catalog.table(table_id)
        if any(c.name == wanted.name and not c.dropped for c in table.columns):
            raise InvalidInput("column already exists", sqlstate="42701", name=wanted.name)
        column = self._build_column(table_id, wanted, len(table.columns), table, is_key=False)
        self.put(msgspec.structs.replace(table, columns=(*table.columns, column)))

    def replace_column(self, table_id: int, column: model.CatalogColumn) -> None:
        """Replace the column that has the same slot."""
        table = self.catalog.table(table_id)
        columns = tuple(column if c.slot == column.slot else c for c in table.columns)
        self.put(msgspec.structs.replace(table, columns=columns))

    def drop_column(self, table_id: int, name: str) -> None:
        table = self.catalog.table(table_id)
        column = require_column(table, name)
        if column.slot in table.primary_key:
            raise InvalidInput("column is part of the primary key", sqlstate="2BP01", name=name)
        for key in table.foreign_keys:
            if column.slot in key.columns:
                self.drop_foreign_key(table_id, key.name)
        for index in self.catalog.table_indexes(table_id):
            if column.slot in index_slots(index):
                self.drop_index(index.id)
        if column.sequence is not None:
            self.drop_sequence(column.sequence)
        dropped = model.CatalogColumn(
            f"dropped {column.slot}", column.type_name, column.slot, dropped=True
        )
        self.replace_column(table_id, dropped)

    def rename_relation(self, id_: int, name: str) -> None:
        item = self.catalog.get(id_)
        assert isinstance(item, Table | Index | model.Sequence | model.PlainView | View)
        self._require_free_name(name, self._schema_name(item.schema))
        self.put(msgspec.structs.replace(item, name=name))

    # -- constraints and indexes --------------------------------------------------------------

    def add_unique(self, table_id: int, wanted: UniqueDefinition) -> int:
        table = self.catalog.table(table_id)
        schema = self._schema_name(table.schema)
        made_up = f"{table.name}_{'_'.join(wanted.columns)}_key"
        definition = IndexDefinition(
            table.name,
            tuple(KeyPartDefinition(column) for column in wanted.columns),
            name=wanted.name or self.free_name(made_up, schema),
            schema=schema,
            unique=True,
            nulls_distinct=wanted.nulls_distinct,
        )
        return self.create_index(definition, constraint=True)

    def add_check(self, table_id: int, wanted: CheckDefinition) -> None:
        table = self.catalog.table(table_id)
        taken = {check.name for check in table.checks}
        numbers = ("", *range(1, len(taken) + 1))
        made_up = (truncate_name(table.name, f"_check{number}") for number in numbers)
        name = wanted.name or next(name for name in made_up if name not in taken)
        if name in taken:
            raise InvalidInput("constraint already exists", sqlstate="42710", name=name)
        check = model.CheckConstraint(name, wanted.expression)
        self.put(msgspec.structs.replace(table, checks=(*table.checks, check)))

    def create_index(
        self, wanted: IndexDefinition, *, constraint: bool = False, hidden: bool = False
    ) -> int:
        """Create an index; BUILDING when the table may have rows, READY when the table is new."""
        table = self.catalog.require_relation(Table, wanted.table, wanted.schema)
        if len(wanted.parts) > KEY_COLUMNS_MAX:
            raise InvalidInput("too many key columns", sqlstate="54011", limit=KEY_COLUMNS_MAX)
        name = wanted.name or self.free_name(name_index(table.name, wanted, hidden), wanted.schema)
        schema = self._require_free_name(name, wanted.schema)
        id_ = self.allocate_id()
        is_new = table.id not in self.before.objects
        self.put(
            Index(
                id=id_,
                name=name,
                schema=schema,
                table=table.id,
                parts=tuple(build_key_part(table, part) for part in wanted.parts),
                include=tuple(require_column(table, c).slot for c in wanted.include),
                unique=wanted.unique,
                nulls_distinct=wanted.nulls_distinct,
                where=wanted.where,
                constraint=constraint,
                hidden=hidden,
                state=ObjectState.READY if is_new else ObjectState.BUILDING,
                maintenance=wanted.maintenance,
                digests=True,
            )
        )
        return id_

    def add_foreign_key(self, table_id: int, wanted: ForeignKeyDefinition) -> None:
        table = self.catalog.table(table_id)
        parent = self.catalog.require_relation(Table, wanted.parent, wanted.parent_schema)
        columns = tuple(require_column(table, name).slot for name in wanted.columns)
        parent_columns = (
            tuple(require_column(parent, name).slot for name in wanted.parent_columns)
            or parent.primary_key
        )
        require_matching_columns(table, columns, parent, parent_columns)
        key = model.ForeignKey(
            name=wanted.name or truncate_name(f"{table.name}_{'_'.join(wanted.columns)}", "_fkey"),
            columns=columns,
            parent=parent.id,
            parent_columns=parent_columns,
            parent_index=self._find_parent_index(parent, parent_columns),
            index=self.ensure_child_index(table, columns) if wanted.enforced else None,
            on_delete=wanted.on_delete,
            on_update=wanted.on_update,
            enforced=wanted.enforced,
            deferrable=wanted.deferrable,
            initially_deferred=wanted.initially_deferred,
        )
        if any(known.name == key.name for known in table.foreign_keys):
            raise InvalidInput("constraint already exists", sqlstate="42710", name=key.name)
        table = self.catalog.table(table_id)
        self.put(msgspec.structs.replace(table, foreign_keys=(*table.foreign_keys, key)))

    def drop_foreign_key(self, table_id: int, name: str) -> None:
        """Drop the key and the index created for it, unless another foreign key uses that index."""
        table = self.catalog.table(table_id)
        gone = next((key for key in table.foreign_keys if key.name == name), None)
        if gone is None:
            raise InvalidInput("constraint does not exist", sqlstate="42704", name=name)
        root = None if table.root == name else table.root
        keys = tuple(key for key in table.foreign_keys if key is not gone)
        self.put(msgspec.structs.replace(table, foreign_keys=keys, root=root))
        index = self.catalog.get(gone.index) if gone.index is not None else None
        if isinstance(index, Index) and index.hidden and not self._referencing_keys(index.id):
            self.drop_index(index.id)

    def _referencing_keys(self, index: int) -> list[tuple[Table, model.ForeignKey]]:
        """The foreign keys that are checked through this index."""
        return [
            (table, key)
            for table in self.catalog.tables
            for key in table.foreign_keys
            if index in (key.index, key.parent_index)
        ]

    def _find_parent_index(self, parent: Table, slots: tuple[int, ...]) -> int | None:
        if set(slots) == set(parent.primary_key) and not parent.columns[slots[0]].hidden:
            return None
        for index in self.catalog.table_indexes(parent.id):
            plain = index.unique and index.where is None and index.state is ObjectState.READY
            if plain and {part.slot for part in index.parts} == set(slots):
                return index.id
        raise InvalidInput("no unique constraint matches the referenced columns", sqlstate="42830")

    def ensure_child_index(self, table: Table, slots: tuple[int, ...]) -> int | None:
        """The index that finds a parent's children, created when there is none; None when the
        primary key finds them."""
        if leads_primary_key(table, slots):
            return None
        for index in self.catalog.table_indexes(table.id):
            leading = tuple(part.slot for part in index.parts[: len(slots)])
            plain = index.where is None and not index.unique
            if plain and leading == slots and index.maintenance is model.Maintenance.IMMEDIATE:
                return index.id
        columns, schema = [table.columns[s].name for s in slots], self._schema_name(table.schema)
        name = self.free_name(f"{table.name}_{'_'.join(columns)}_children", schema)
        parts = tuple(KeyPartDefinition(column) for column in columns)
        definition = IndexDefinition(table.name, parts, name=name, schema=schema)
        return self.create_index(definition, hidden=True)

    def set_state(self, id_: int, state: ObjectState) -> None:
        item = self.catalog.get(id_)
        assert isinstance(item, Index | View)
        self.put(msgspec.structs.replace(item, state=state))

    def create_view(self, wanted: ViewDefinition) -> int:
        immediate = wanted.maintenance is model.Maintenance.IMMEDIATE
        id_ = self.allocate_id()
        self.put(
            View(
                id=id_,
                name=wanted.name,
                schema=self._require_free_name(wanted.name, wanted.schema),
                definition=wanted.definition,
                columns=build_view_columns(wanted.columns),
                inputs=wanted.inputs,
                widths=tuple(len(self.catalog.table(id_).columns) for id_ in wanted.inputs),
                reads=wanted.reads,
                stored=build_view_columns(wanted.stored),
                key_columns=wanted.key_columns,
                amounts=wanted.amounts,
                supporting_objects=wanted.supporting_objects,
                maintenance=wanted.maintenance,
                stored_options=wanted.stored_options,
                group=0 if immediate else self.allocate_id(),
                digests=True,
            )
        )
        return id_

    # -- dropping -----------------------------------------------------------------------------

    def drop_index(self, id_: int, *, cascade: bool = False) -> None:
        index = self.catalog.get(id_)
        assert isinstance(index, Index)
        users = self._referencing_keys(id_)
        if users and not cascade:
            raise dependents_error(index, [f"constraint {k.name} on {t.name}" for t, k in users])
        for table, key in users:
            self.drop_foreign_key(table.id, key.name)
        index = self.catalog.get(id_)
        assert isinstance(index, Index)
        if not is_dropped(index):
            self.mark_dropped(index)

    def drop_table(self, id_: int, *, cascade: bool = False) -> None:
        table = self.catalog.table(id_)
        self._require_unused(table, cascade)
        for index in self.catalog.table_indexes(id_):
            self.mark_dropped(index)
        for item in tuple(self.catalog.objects.values()):
            if isinstance(item, model.Sequence) and item.owner == id_:
                self.drop_sequence(item.id)
        self.mark_dropped(table)

    def _require_unused(self, table: Table, cascade: bool) -> None:
        users = [
            (other, key)
            for other in self.catalog.tables
            for key in other.foreign_keys
            if key.parent == table.id and other.id != table.id
        ]
        views = self.catalog.dependent_views(table.id)
        names = [f"constraint {k.name} on {t.name}" for t, k in users] + list_user_views(views)
        if names and not cascade:
            raise dependents_error(table, names)
        for other, key in users:
            self.drop_foreign_key(other.id, key.name)
        for view in views:
            if not is_dropped(self.catalog.objects[view.id]):  # dropped with a view it reads
                self.drop_view(view.id, cascade=True)

    def drop_view(self, id_: int, *, cascade: bool = False) -> None:
        view = self.catalog.get(id_)
        assert isinstance(view, View)
        users = self.catalog.dependent_views(id_)
        if (names := list_user_views(users)) and not cascade:
            raise dependents_error(view, names)
        for user in (one for one in users if not is_dropped(self.catalog.objects[one.id])):
            self.drop_view(user.id, cascade=True)
        self.mark_dropped(view)
        self._drop_supporting_objects(view)

    def _drop_supporting_objects(self, view: View) -> None:
        """Drop the indexes and auxiliary views that no other view uses."""
        used = {id_ for other in self.catalog.views for id_ in other.supporting_objects}
        for item in [self.catalog.get(id_) for id_ in view.supporting_objects if id_ not in used]:
            if isinstance(item, View) and not is_dropped(item):
                self.drop_view(item.id, cascade=True)
            elif (
                isinstance(item, Index)
                and not is_dropped(item)
                and not self._referencing_keys(item.id)
            ):
                self.mark_dropped(item)

    def mark_dropped(self, item: Table | Index | View) -> None:
        self.put(msgspec.structs.replace(item, state=ObjectState.DROPPED, dropped_at=self._version))

    def purge_dropped(self, ids: Iterable[int]) -> None:
        """Remove dropped objects from the catalog, once their rows are deleted."""
        for id_ in ids:
            item = self.catalog.get(id_)
            assert item is not None
            assert is_dropped(item)
            self._changed[id_] = None
            self.catalog = self.catalog.with_objects({id_: None})

    # -- names --------------------------------------------------------------------------------

    def _require_free_name(self, name: str, schema: str) -> int:
        require_name(name)
        if self.catalog.find_relation(name, schema) is not None:
            raise InvalidInput("relation already exists", sqlstate="42P07", name=name)
        return self.catalog.schema_id(schema)

    def free_name(self, wanted: str, schema: str) -> str:
        """The wanted name, with a number appended when an object in the schema has it."""
        name, number = truncate_name(wanted), 0
        while self.catalog.find_relation(name, schema) is not None:
            number += 1
            name = truncate_name(wanted, str(number))
        return name

    def _schema_name(self, id_: int) -> str:
        return next(schema.name for schema in self.catalog.schemas if schema.id == id_)
