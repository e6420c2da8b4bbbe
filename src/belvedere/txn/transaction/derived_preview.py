"""The rows that participants derive from a transaction's own writes, as its own reads see them.

Index entries and immediate views are made in the commit section, from the newest state. A
transaction that reads one of them before it commits sees a preview, which is made at the first such
read and brought up to later writes when they are read again.

An index that the transaction itself has created on a table that was there has no entries in the
store. All of them are in the preview, from the first read of that index on; until then it takes no
part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CATALOG_RELATION, Index, ObjectState
from belvedere.txn.contracts import (
    BackfillParticipant,
    ParticipantsFor,
    Reader,
    RowChange,
    Rows,
    Snapshot,
)
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.readers import OverlayReader
from belvedere.txn.transaction.changed_keys import ChangedKeys


def find_created_indexes(planned: Snapshot | None, now: Catalog) -> frozenset[int]:
    """The indexes that a transaction has created, and uses, on tables that were there before it.
    `planned` is of before its first change of the catalog; None: it made none."""
    if planned is None:
        return frozenset()
    before = planned.catalog
    return frozenset(
        [
            item.id
            for item in now.objects.values()
            if isinstance(item, Index)
            and item.state is ObjectState.READY
            and item.id not in before.objects
            and item.table in before.objects
        ]
    )


class DerivedPreview:
    __slots__ = ("_order", "_without_unbuilt", "pending", "rows", "unbuilt")

    def __init__(self, changes: Iterable[RowChange], unbuilt: frozenset[int]) -> None:
        self.rows: Rows = {}
        # Rows as they were before writes that are not in the preview yet.
        self.pending: Rows = {change.key: change.old for change in changes}
        self.unbuilt = unbuilt  # created indexes that were not read yet
        self._order: ChangedKeys | None = None
        self._without_unbuilt: Catalog | None = None

    def note_write(self, key: bytes, old: bytes | None) -> None:
        if key not in self.pending:
            self.pending[key] = old

    def find_range(
        self, start: bytes, end: bytes, reverse: bool, limit: int | None
    ) -> dict[bytes, bytes | None]:
        """Rows of the range (None: absent), in the order of a scan: all, or those that can be among
        its first `limit`."""
        if self._order is None:
            self._order = ChangedKeys(self.rows)
        keys = self._order.find_range(start, end)
        found: dict[bytes, bytes | None] = {}
        for key in reversed(keys) if reverse else keys:
            if limit == 0:
                break
            value = found[key] = self.rows[key]
            if limit is not None and value is not None:
                limit -= 1
        return found

    def derive_for(
        self,
        key: bytes,
        reader: Reader,
        read_row: Callable[[bytes], bytes | None],
        find: ParticipantsFor,
    ) -> None:
        """Make what is read at `key` ready. `reader` shows the transaction, preview included;
        `read_row` a row of a table as it is in it now."""
        if self.pending:
            self._derive_pending(reader, read_row, find)
        index = int.from_bytes(key[1:5])
        if index in self.unbuilt:
            self._backfill_index(index, reader, find)

    def _derive_pending(
        self, reader: Reader, read_row: Callable[[bytes], bytes | None], find: ParticipantsFor
    ) -> None:
        """Derive rows from the pending writes, on top of the preview so far."""
        pending, self.pending = self.pending, {}
        catalog = self._hide_unbuilt(reader.catalog)
        changes = [RowChange(key, old, read_row(key)) for key, old in pending.items()]
        changes = [change for change in changes if change.old != change.new]
        relations = frozenset(change.relation for change in changes)
        before = OverlayReader(reader, pending, reader.position, catalog)
        writer = DerivedRows(before)
        try:
            for participant in find(catalog, relations):
                participant.writes(changes, before, writer)
        except BaseException:
            self.pending = pending  # the next read tries again
            raise
        self._add_rows(writer.writes())

    def _backfill_index(self, index: int, reader: Reader, find: ParticipantsFor) -> None:
        for participant in find(reader.catalog, frozenset([CATALOG_RELATION])):
            if isinstance(participant, BackfillParticipant):
                self._add_rows(participant.backfill_created([index], reader).items())
        self.unbuilt -= {index}
        self._without_unbuilt = None

    def _add_rows(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        if self._order is not None:
            rows = list(rows)
            self._order.update([key for key, _ in rows if key not in self.rows])
        self.rows.update(rows)

    def _hide_unbuilt(self, catalog: Catalog) -> Catalog:
        """The catalog without created indexes that have no entries in the preview yet."""
        if not self.unbuilt:
            return catalog
        if self._without_unbuilt is None:
            self._without_unbuilt = catalog.with_objects(
                {
                    id_: msgspec.structs.replace(catalog.objects[id_], state=ObjectState.DROPPED)
                    for id_ in self.unbuilt
                }
            )
        return self._without_unbuilt
