"""Foreign keys as a participant of every commit that touches one of their tables.

Checked in the commit section against the state after the changes, so the order of statements inside
a transaction does not matter, and a parent that another transaction deleted concurrently is
detected. Unique values are enforced by the indexes that hold them; primary keys by conflict
detection.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from belvedere import interrupts
from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.foreign_key_graph import child_foreign_keys, root_path
from belvedere.catalog.model import AnyObject, ForeignKey, ObjectState, Table
from belvedere.catalog.relation_codecs import compiled_index, compiled_table
from belvedere.errors import InvalidInput
from belvedere.txn.contracts import (
    Get,
    LockRequest,
    Reader,
    RowChange,
    Rows,
    SingleRowWrites,
    Writer,
)
from belvedere.txn.transaction.child_rows import child_range_finder
from belvedere.txn.transaction.root_keys import KeyInKey, find_parent_in_key, parent_key_finder
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

T = TypeVar("T")
TableAndKey = tuple[int, str]
"""The id of a table and the name of one of its foreign keys."""

BULK_PARENTS_MIN = 1_000
"""From so many parents on, they are looked up in batches."""

CHILDREN, PARENT = 1, 2
"""Sides of the guard on a parent row: only children and their parent exclude each other."""


def foreign_key_participants(
    catalog: Catalog, relations: frozenset[int]
) -> tuple[ForeignKeyParticipant, ...]:
    """One participant for every enforced foreign key from or to one of these tables."""
    found: dict[tuple[int, str], ForeignKeyParticipant] = {}
    for relation in relations:
        item = catalog.get(relation)
        if not isinstance(item, Table):
            continue
        mine = [(item, key) for key in item.foreign_keys if key.enforced]
        for table, key in (*mine, *child_foreign_keys(catalog, relation)):
            found[table.id, key.name] = ForeignKeyParticipant(catalog, table, key)
    return tuple(found.values())


def added_foreign_keys(
    before: Catalog, changed: Iterable[AnyObject | None]
) -> tuple[TableAndKey, ...]:
    """The enforced foreign keys that tables got, with this change, which may have rows."""
    tables = [item for item in changed if isinstance(item, Table) and not is_dropped(item)]
    return tuple(
        (table.id, key.name)
        for table in tables
        if isinstance(known := before.get(table.id), Table)
        for key in table.foreign_keys
        if key.enforced and key.name not in {k.name for k in known.foreign_keys}
    )


def require_parents(
    keys: Sequence[TableAndKey],
    begin: Callable[[], Transaction],
    change_schema: Callable[[Callable[[CatalogEdit], None]], None],
) -> None:
    """Check foreign keys against the rows that were there before them; 23503 when one is violated,
    and then the keys are dropped again. To be called once the keys are in the catalog: from then
    on every commit enforces them, so one check is enough."""
    if not keys:
        return
    try:
        with begin() as reader:
            for table, name in keys:
                child = reader.catalog.table(table)
                [key] = [key for key in child.foreign_keys if key.name == name]
                ForeignKeyParticipant(reader.catalog, child, key).check_all(reader)
    except BaseException:
        with interrupts.undo_statement():
            change_schema(lambda edit: _drop_foreign_keys(keys, edit))
        raise


def _drop_foreign_keys(keys: Sequence[TableAndKey], edit: CatalogEdit) -> None:
    for table, name in keys:
        edit.drop_foreign_key(table, name)


class ForeignKeyParticipant:
    checks, derives = True, False

    def __init__(self, catalog: Catalog, child: Table, key: ForeignKey) -> None:
        self._key = key
        self._child = compiled_table(catalog, child.id)
        self._parent = compiled_table(catalog, key.parent)
        self._parent_key = parent_key_finder(catalog, key)
        self._place = find_parent_in_key(catalog, child.id, key)
        self._children = None if key.index is None else compiled_index(catalog, key.index)
        self._child_range = child_range_finder(catalog, self._child, key)
        above = root_path(catalog, catalog.table(key.parent))
        self._guarded = root_path(catalog, child) != (key, *above)
        self.name, self.child = key.name, child.id
        self.deferrable = key.deferrable
        self.initially_deferred = key.initially_deferred

    @cached_property
    def _referring_values(self) -> Callable[[bytes], Row]:
        return self._child.layout.projector(self._key.columns)

    @cached_property
    def _referenced_values(self) -> Callable[[bytes], Row]:
        return self._parent.layout.projector(self._key.parent_columns)

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        """Children and their parent exclude each other: guards with two sides on the parent row.
        On the way to the root none is needed: parent and child have the same root lock."""
        for change in changes if self._guarded else ():
            if change.relation == self._child.table.id and change.new is not None:
                parent = self._parent_key(self._referring_values(change.new), reader)
                if parent is not None:
                    yield LockRequest("parent", parent, CHILDREN)
            if change.relation == self._key.parent and self._removes_referenced_key(change):
                yield LockRequest("parent", change.key, PARENT)

    def list_read_columns(self) -> dict[int, tuple[int, ...] | None]:
        """Columns of a primary key are not named: an update keeps them."""
        child, parent = self._child.table.id, self._key.parent
        referring = () if self._place is not None else self._key.columns
        referenced = () if self._key.parent_index is None else self._key.parent_columns
        if child == parent:
            return {child: (*referring, *referenced)}
        return {child: referring, parent: referenced}

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        if len(changes) == 1:
            self._check_change(changes[0], reader)
            return
        if self._place is not None:
            self._check_parents_in_keys(self._place, changes, reader)
        else:
            self._check_parents_of_rows(changes, reader)
        parent = self._parent.start
        for change in changes:
            if (
                change[1] is not None
                and change[0].startswith(parent)
                and self._removes_referenced_key(change)
            ):
                self._require_no_children(change, reader)

    def _check_change(self, change: RowChange, reader: Reader) -> None:
        """What `check` does, of one row: after most statements there is no more to check."""
        key, old, new, _ = change
        if new is not None and key.startswith(self._child.start):
            if self._place is None:
                values = self._find_added_reference(change)
                if values is not None:
                    self._require_parents((values,), reader)
            elif old is None:
                prefix, start, end = self._place
                if reader.get(prefix + key[start:end]) is None:
                    values = self._referring_values(new)
                    raise self._violation_error("the parent row does not exist", values)
        if (
            old is not None
            and key.startswith(self._parent.start)
            and self._removes_referenced_key(change)
        ):
            self._require_no_children(change, reader)

    def _check_parents_in_keys(
        self, place: KeyInKey, changes: Sequence[RowChange], reader: Reader
    ) -> None:
        """An update keeps its key, and with it the parent."""
        child, (prefix, start, end) = self._child.start, place
        parents = {
            prefix + key[start:end]: new
            for key, old, new, _ in changes
            if old is None and new is not None and key.startswith(child)
        }
        self._require_rows(parents, self._referring_values, reader)

    def _check_parents_of_rows(self, changes: Sequence[RowChange], reader: Reader) -> None:
        child = self._child.start
        added: dict[Row, None] = {}
        for change in changes:
            if change[0].startswith(child):
                values = self._find_added_reference(change)
                if values is not None:
                    added[values] = None
        if added:
            self._require_parents(added, reader)

    def _find_added_reference(self, change: RowChange) -> Row | None:
        """The values by which the row refers to a parent that it did not refer to before. One that
        it referred to is there: who takes a parent away looks for the rows that refer to it."""
        _, old, new, _ = change
        if new is None:
            return None
        values = self._referring_values(new)
        return None if old is not None and self._referring_values(old) == values else values

    def _require_parents(self, wanted: Collection[Row], reader: Reader) -> None:
        find = self._parent_key
        keys: dict[bytes, Row] = {}
        for values in wanted:
            if None in values:
                continue
            parent = find(values, reader)
            if parent is None:
                raise self._violation_error("the parent row does not exist", values)
            keys[parent] = values
        self._require_rows(keys, lambda values: values, reader)

    def _require_rows(
        self, parents: Mapping[bytes, T], values_of: Callable[[T], Row], reader: Reader
    ) -> None:
        """Each is looked up once, in batches when they are many. `values_of` makes what an error
        shows of what a key comes with."""
        if len(parents) < BULK_PARENTS_MIN:
            for key in parents:
                if reader.get(key) is None:
                    values = values_of(parents[key])
                    raise self._violation_error("the parent row does not exist", values)
            return
        keys = list(parents)
        for start in range(0, len(keys), BULK_PARENTS_MIN):
            batch = keys[start : start + BULK_PARENTS_MIN]
            for key, found in zip(batch, reader.multi_get(batch), strict=True):
                if found is None:
                    values = values_of(parents[key])
                    raise self._violation_error("the parent row does not exist", values)

    def check_all(self, reader: Reader) -> None:
        """Every row of the child's table has its parent."""
        for batch in reader.scan_values(self._child.start, self._child.end):
            interrupts.check_statement()
            self._require_parents(dict.fromkeys(map(self._referring_values, batch)), reader)

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        """A foreign key derives nothing."""

    def single_row_writes(self, prefix: bytes) -> SingleRowWrites:
        return _derive_nothing

    def _removes_referenced_key(self, change: RowChange) -> bool:
        """Whether the change takes away a key that children may refer to. Primary keys go with
        their rows only."""
        _, old, new, _ = change
        if old is None or new is None:
            return old is not None
        if self._key.parent_index is None:
            return False
        return self._referenced_values(old) != self._referenced_values(new)

    def _require_no_children(self, change: RowChange, reader: Reader) -> None:
        assert change.old is not None
        values = self._referenced_values(change.old)
        if None in values or self._has_other_parent(values, reader):
            return
        if self._has_children(values, reader):
            raise self._violation_error("the row is still referenced", values)

    def _has_children(self, values: tuple[object, ...], reader: Reader) -> bool:
        if self._children is not None and self._children.index.state is not ObjectState.READY:
            return self._has_children_in_table(values, reader)  # the index is incomplete
        start, end = self._child_range(values)
        return next(reader.scan(start, end, limit=1), None) is not None

    def _has_children_in_table(self, values: tuple[object, ...], reader: Reader) -> bool:
        child, slots = self._child, self._key.columns
        for batch in reader.scan_values(child.start, child.end):
            for row in map(child.decode, batch):
                if tuple([row[slot] for slot in slots]) == values:
                    return True
        return False

    def _has_other_parent(self, values: Row, reader: Reader) -> bool:
        """Whether another row carries the same referenced values now (only by a unique index)."""
        if self._key.parent_index is None:
            return False
        parent = self._parent_key(values, reader)
        return parent is not None and reader.get(parent) is not None

    def _violation_error(self, what: str, values: Sequence[object]) -> InvalidInput:
        names = [self._child.table.columns[slot].name for slot in self._key.columns]
        return InvalidInput(
            "foreign key constraint violated",
            sqlstate="23503",
            detail=f"{what}: ({', '.join(names)}) = ({', '.join(map(str, values))})",
            constraint=self._key.name,
            table=self._child.table.name,
        )


def _derive_nothing(old: bytes | None, new: bytes | None, get: Get, rows: Rows) -> None:
    """What a foreign key derives from a row."""
