"""Maintenance of index entries: an index is a projection of its table under another key.

State: one entry per row (per row that satisfies the index's condition). A change costs one delete
and one put at most, and nothing when no indexed column changed. A unique index also reads the one
entry that the new key would collide with, at p-1, in the commit section.

    change   (7, 'ann') -> (7, 'bob')      of people(id, name), index on name
    writes   delete ('ann', 7)   put ('bob', 7)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, Maintenance, ObjectState, Table
from belvedere.catalog.relation_codecs import compiled_index, compiled_table
from belvedere.codec import keyspace
from belvedere.codec.arrow.exact_kinds import EXACT_KINDS
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan.representation import python_equal_may_differ
from belvedere.txn.contracts import (
    Get,
    LockRequest,
    Reader,
    RowChange,
    Rows,
    SingleRowWrites,
    Writer,
)
from belvedere.types import Row

if TYPE_CHECKING:
    import pyarrow as pa

EvaluateRow = Callable[[Row], Any]
"""An index expression or condition, compiled."""

COLUMNS_ROWS_MIN = 1_000
"""Entries of fewer rows are built one by one."""

CompileExpression = Callable[[Catalog, Table, str], EvaluateRow]


def refuse_index_expression(catalog: Catalog, table: Table, text: str) -> EvaluateRow:
    """The compiler of index expressions where the SQL part is absent: refuses them."""
    raise Unsupported("index expression without the SQL part", expression=text)


def build_index_participants(
    catalog: Catalog, relations: frozenset[int], compile_expression: CompileExpression
) -> tuple[IndexParticipant, ...]:
    """One participant for every immediate index of these tables, ready or being built."""
    return tuple(
        IndexParticipant(catalog, index, compile_expression)
        for relation in sorted(relations)
        for index in catalog.table_indexes(relation)
        if index.maintenance is Maintenance.IMMEDIATE
        and index.state in (ObjectState.READY, ObjectState.BUILDING)
    )


class IndexParticipant:
    checks, derives = False, True  # `writes` checks uniqueness

    def __init__(
        self, catalog: Catalog, index: Index, compile_expression: CompileExpression
    ) -> None:
        self._index = compiled_index(catalog, index.id)
        self._table = compiled_table(catalog, index.table)
        table = self._table.table
        self._prefix = keyspace.row_prefix(table.id)
        self._values = [
            _make_column_getter(part.slot)
            if part.slot is not None
            else compile_expression(catalog, table, part.expression or "")
            for part in index.parts
        ]
        self._rest = (*table.primary_key, *index.include)
        self._where = compile_expression(catalog, table, index.where) if index.where else None
        types = [table.columns[slot].type for slot in self._rest] + list(self._index.key.types)
        self._varying_representation = any(map(python_equal_may_differ, types))
        self.unique = index.unique
        self.index_id = index.id
        self.table_id = table.id
        self._key_width = len(self._index.key.columns)
        slots = [part.slot for part in index.parts if part.slot is not None]
        self._project: Callable[[bytes], Row] | None = None
        self._slots = (*slots, *self._rest)
        if len(slots) == len(index.parts) and self._where is None:
            self._project = self._table.layout.projector(self._slots)

    def list_read_columns(self) -> dict[int, tuple[int, ...] | None]:
        by_value = self._project is not None and not self._varying_representation
        return {self.table_id: self._slots if by_value else None}

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        """Claims of unique values, for protocols without a commit section to check them in."""
        if not self._index.index.unique:
            return
        for change in changes:
            if change.relation != self._table.table.id:
                continue
            keys = [self._build_claimed_key(value) for value in (change.old, change.new)]
            if keys[0] != keys[1]:
                yield from (LockRequest("claim", key) for key in keys if key is not None)

    def _build_claimed_key(self, value: bytes | None) -> bytes | None:
        """The key that no other row may have; NULLs that are distinct collide with nothing."""
        entry = self.build_index_entry(value)
        if entry is None or not self._index.index.nulls_distinct:
            return None if entry is None else entry[0]
        parts = self._index.layout.decode(entry[1])[: self._index.part_count]
        return None if None in parts else entry[0]

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """Nothing: `writes` has checked uniqueness."""

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        if len(changes) >= COLUMNS_ROWS_MIN and not self.unique:
            self._replace_many_entries(changes, writer)
            return
        removed: set[bytes] = set()
        added: list[tuple[bytes, bytes]] = []
        prefix = self._prefix
        for change in changes:
            if not change.key.startswith(prefix):
                continue
            if self._has_equal_index_columns(change.old, change.new):
                continue
            old, new = self.build_index_entry(change.old), self.build_index_entry(change.new)
            if old == new:
                continue
            if old is not None:
                removed.add(old[0])
                writer.delete(old[0])
            if new is not None:
                added.append(new)
        if self.unique:
            self._require_unique_keys(added, removed, reader)
        for key, value in added:
            writer.put(key, value)

    def _replace_many_entries(self, changes: Sequence[RowChange], writer: Writer) -> None:
        """`writes` of an index that is not unique, of many changes: entries by columns."""
        own = [
            change
            for change in changes
            if change[0].startswith(self._prefix)
            and not self._has_equal_index_columns(change[1], change[2])
        ]
        before = dict(self.build_index_entries([old for _, old, _, _ in own if old is not None]))
        after = dict(self.build_index_entries([new for _, _, new, _ in own if new is not None]))
        for key in before:
            if key not in after:
                writer.delete(key)
        for key, value in after.items():
            if before.get(key) != value:
                writer.put(key, value)

    def single_row_writes(self, prefix: bytes) -> SingleRowWrites | None:
        if prefix != self._prefix:
            return None
        entry, unique = self.build_index_entry, self.unique
        project = None if self._varying_representation else self._project

        def replace_index_entry(old: bytes | None, new: bytes | None, get: Get, rows: Rows) -> None:
            if project is not None and old is not None and new is not None:
                if project(old) == project(new):
                    return
            before, after = entry(old), entry(new)
            if before == after:
                return
            if before is not None:
                rows[before[0]] = None
            if after is not None:
                key, value = after
                if unique and (before is None or key != before[0]) and get(key) is not None:
                    raise self.duplicate_key_error(value)
                rows[key] = value

        return replace_index_entry

    def _has_equal_index_columns(self, old: bytes | None, new: bytes | None) -> bool:
        """Whether no column of the index changed; False when in doubt."""
        project = self._project
        if project is None or old is None or new is None:
            return False
        return project(old) == project(new) and not self._varying_representation

    def build_index_entry(self, value: bytes | None) -> tuple[bytes, bytes] | None:
        """The index entry (key, value) of a stored row; None when it has none."""
        if value is None:
            return None
        if self._project is not None:
            stored = self._project(value)  # only the index's columns are decoded
        else:
            row = self._table.decode(value)
            if self._where is not None and self._where(row) is not True:
                return None
            parts = tuple([pick(row) for pick in self._values])
            stored = parts + tuple([row[slot] for slot in self._rest])
        index = self._index
        if self.unique:
            parts = stored[: index.part_count]
            if not (index.index.nulls_distinct and None in parts):
                return index.unique_key.encode(parts), index.layout.encode(stored)
        return index.key.encode(stored[: self._key_width]), index.layout.encode(stored)

    def build_index_entries(self, values: list[bytes]) -> list[tuple[bytes, bytes]]:
        """The index entries of many stored rows, by columns where that is possible."""
        if len(values) >= COLUMNS_ROWS_MIN:
            found = self._try_build_entries_by_columns(values)
            if found is not None:
                return found
        return [entry for value in values if (entry := self.build_index_entry(value)) is not None]

    def _try_build_entries_by_columns(
        self, values: list[bytes]
    ) -> list[tuple[bytes, bytes]] | None:
        from belvedere.codec.arrow.arrow_to_rows import split_binary  # heavy

        found = self.try_encode_entries_by_columns(values)
        return None if found is None else list(zip(*map(split_binary, found), strict=True))

    def try_encode_entries_by_columns(
        self, values: list[bytes]
    ) -> tuple[pa.Array, pa.Array] | None:
        """Keys and values of the index entries of stored rows as binary arrays; None where they
        have to be built one by one."""
        from belvedere.codec.arrow import arrow_to_state as form  # heavy
        from belvedere.codec.arrow.arrow_to_rows import arrow_to_row_array  # heavy
        from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow  # heavy

        index, layout = self._index, self._table.layout
        exact = all(layout.types[slot].kind in EXACT_KINDS for slot in self._slots)
        if self._project is None or self.unique or not exact:
            return None
        names = [str(at) for at in range(len(self._slots))]
        batch = rows_to_arrow(layout, values, self._slots, names)
        keys = form.arrow_to_keys(index.key, batch.columns[: self._key_width])
        if keys is None:
            return None
        return keys, arrow_to_row_array(index.layout, batch)

    def _require_unique_keys(
        self, added: list[tuple[bytes, bytes]], removed: set[bytes], reader: Reader
    ) -> None:
        seen: set[bytes] = set()
        for key, value in added:
            taken = key in seen or (key not in removed and reader.get(key) is not None)
            if taken:
                raise self.duplicate_key_error(value)
            seen.add(key)

    def duplicate_key_error(self, value: bytes) -> InvalidInput:
        """The error for an entry whose key is taken."""
        index, table = self._index.index, self._table.table
        values = self._index.layout.decode(value)[: len(index.parts)]
        names = [
            table.columns[part.slot].name if part.slot is not None else part.expression or ""
            for part in index.parts
        ]
        return InvalidInput(
            "duplicate key value violates unique constraint",
            sqlstate="23505",
            detail=f"key ({', '.join(names)}) = ({', '.join(map(str, values))}) already exists",
            constraint=index.name,
        )


def _make_column_getter(slot: int) -> EvaluateRow:
    return lambda row: row[slot]
