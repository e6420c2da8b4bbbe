"""The catalog at one version: an immutable index over its objects.

Readers hold one Catalog for as long as they need it; a committed change makes a new one that shares
every unchanged object. Names are looked up as (schema id, name); tables, indexes, sequences and
views share one name space per schema, as in PostgreSQL.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from belvedere.catalog.model import (
    FIRST_USER_ID,
    HEAD_ID,
    NAMELESS,
    OWNER_ROLE,
    AccessList,
    AnyObject,
    Comments,
    DefaultPrivileges,
    ForeignServer,
    ForeignTable,
    Head,
    Index,
    ObjectState,
    PlainView,
    Role,
    Schema,
    Sequence,
    Table,
    View,
)
from belvedere.errors import InvalidInput

PUBLIC_ID = 10

T = TypeVar("T", Table, Index, Sequence, PlainView, ForeignTable, View)

_KIND_NAMES = {
    Table: ("table", "42P01"),
    Index: ("index", "42704"),
    Sequence: ("sequence", "42P01"),
    PlainView: ("view", "42P01"),
    ForeignTable: ("foreign table", "42P01"),
    View: ("materialized view", "42P01"),
}


def empty_catalog() -> Catalog:
    """The catalog of a new store."""
    return Catalog(
        {
            HEAD_ID: Head(id=HEAD_ID, name="head", next_id=FIRST_USER_ID),
            PUBLIC_ID: Schema(id=PUBLIC_ID, name="public"),
        }
    )


class ReservedIds:
    """The ids given by transactions of this process that have not committed: one for all versions
    of a catalog."""

    def __init__(self) -> None:
        self.next_id = FIRST_USER_ID


class Catalog:
    """All objects at one version, by id, by name and by what they belong to."""

    def __init__(
        self, objects: Mapping[int, AnyObject], reserved_ids: ReservedIds | None = None
    ) -> None:
        self.objects = objects
        self.reserved_ids = reserved_ids or ReservedIds()
        self.version = objects[HEAD_ID].version
        self.compiled_relations: dict[int, object] = {}  # cache of compiled relations, by object id
        self.derived_cache: dict[
            object, object
        ] = {}  # cache of values derived from several objects
        self.root_key_cache: dict[int, Any] = {}  # cache of root-key functions, read on every write

    @property
    def head(self) -> Head:
        head = self.objects[HEAD_ID]
        assert isinstance(head, Head)
        return head

    def with_objects(self, changed: Mapping[int, AnyObject | None]) -> Catalog:
        """A new catalog with these objects added or replaced (None: removed)."""
        objects = dict(self.objects)
        for id_, item in changed.items():
            if item is None:
                objects.pop(id_, None)
            else:
                objects[id_] = item
        successor = Catalog(objects, self.reserved_ids)
        # Copied in one step: other threads may be compiling.
        kept = self.compiled_relations.copy()
        successor.compiled_relations = {k: v for k, v in kept.items() if k not in changed}
        return successor

    @cached_property
    def derived_ids(self) -> frozenset[bytes]:
        """The ids of indexes and views, as they stand in keys."""
        derived = [id_ for id_, item in self.objects.items() if isinstance(item, Index | View)]
        return frozenset([id_.to_bytes(4) for id_ in derived])

    # -- by id and name -----------------------------------------------------------------------

    def get(self, id_: int) -> AnyObject | None:
        return self.objects.get(id_)

    def table(self, id_: int) -> Table:
        item = self.objects.get(id_)
        if not isinstance(item, Table) or item.state is ObjectState.DROPPED:
            raise InvalidInput("table does not exist", sqlstate="42P01", id=id_)
        return item

    def schema_id(self, name: str) -> int:
        for item in self.schemas:
            if item.name == name:
                return item.id
        raise InvalidInput("schema does not exist", sqlstate="3F000", name=name)

    def find_relation(self, name: str, schema: str = "public") -> AnyObject | None:
        """The table, index, sequence or view of that name, or None."""
        return self._relations_by_name.get((self.schema_id(schema), name))

    def require_relation(self, kind: type[T], name: str, schema: str = "public") -> T:
        """The object of that kind and name; otherwise InvalidInput with the nearest names as
        hint."""
        item = self.find_relation(name, schema)
        if isinstance(item, kind):
            return item
        what, sqlstate = _KIND_NAMES[kind]
        if item is not None:
            raise InvalidInput(f"not a {what}", sqlstate="42809", name=name)
        names = [o.name for o in self._relations_by_name.values() if isinstance(o, kind)]
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else None
        raise InvalidInput(f"{what} does not exist", sqlstate=sqlstate, hint=hint, name=name)

    @cached_property
    def _relations_by_name(self) -> dict[tuple[int, str], AnyObject]:
        return {
            (item.schema, item.name): item
            for item in self.objects.values()
            if not isinstance(item, NAMELESS) and not is_dropped(item)
        }

    # -- lists --------------------------------------------------------------------------------

    @cached_property
    def schemas(self) -> tuple[Schema, ...]:
        return tuple(o for o in self.objects.values() if isinstance(o, Schema))

    @cached_property
    def roles(self) -> dict[str, Role]:
        """By name; roles have a name space of their own."""
        return {o.name: o for o in self.objects.values() if isinstance(o, Role)}

    @cached_property
    def foreign_servers(self) -> dict[str, ForeignServer]:
        """By name; servers have a name space of their own."""
        return {o.name: o for o in self.objects.values() if isinstance(o, ForeignServer)}

    @cached_property
    def access_lists(self) -> dict[int, AccessList]:
        """By the object that each is of."""
        return {o.object: o for o in self.objects.values() if isinstance(o, AccessList)}

    @cached_property
    def comments(self) -> dict[int, Comments]:
        """By the object that each is of."""
        return {o.object: o for o in self.objects.values() if isinstance(o, Comments)}

    @cached_property
    def default_privileges(self) -> tuple[DefaultPrivileges, ...]:
        return tuple(o for o in self.objects.values() if isinstance(o, DefaultPrivileges))

    def find_owner(self, id_: int) -> int:
        """The role that owns an object with an access list of its own kind."""
        found = self.access_lists.get(id_)
        return OWNER_ROLE if found is None else found.owner

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        return tuple(self._live_objects(Table))

    @cached_property
    def views(self) -> tuple[View, ...]:
        return tuple(self._live_objects(View))

    def _live_objects(self, kind: type[T]) -> Iterable[T]:
        return (o for o in self.objects.values() if isinstance(o, kind) and not is_dropped(o))

    @cached_property
    def _indexes_by_table(self) -> dict[int, tuple[Index, ...]]:
        found: dict[int, tuple[Index, ...]] = {}
        for index in self._live_objects(Index):
            found[index.table] = (*found.get(index.table, ()), index)
        return found

    def table_indexes(self, table: int) -> tuple[Index, ...]:
        """The table's indexes in every state but dropped, oldest first."""
        return self._indexes_by_table.get(table, ())

    @cached_property
    def _views_by_input(self) -> dict[int, tuple[View, ...]]:
        found: dict[int, tuple[View, ...]] = {}
        for view in self.views:
            for relation in (*view.inputs, *view.reads):
                found[relation] = (*found.get(relation, ()), view)
        return found

    def dependent_views(self, relation: int) -> tuple[View, ...]:
        """The materialized views whose definition reads this relation."""
        return self._views_by_input.get(relation, ())


def is_dropped(item: AnyObject) -> bool:
    return getattr(item, "state", None) is ObjectState.DROPPED
