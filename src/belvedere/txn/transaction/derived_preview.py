"""The rows that participants derive from a transaction's own writes, as its own reads see them.

Index entries and immediate views are made in the commit section, from the newest state. A
transaction that reads one of them before it commits sees a preview, which is made at the first such
read and brought up to later writes when they are read again.
"""

from __future__ import annotations

from collections.abc import Callable

from belvedere.txn.contracts import ParticipantsFor, Reader, RowChange, Rows
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.readers import OverlayReader


class DerivedPreview:
    __slots__ = ("pending", "rows")

    def __init__(self, pending: Rows) -> None:
        self.rows: Rows = {}
        self.pending = pending  # rows as they were before writes that are not in the preview yet

    def note_write(self, key: bytes, old: bytes | None) -> None:
        if key not in self.pending:
            self.pending[key] = old

    def derive_pending(
        self, reader: Reader, read_row: Callable[[bytes], bytes | None], find: ParticipantsFor
    ) -> None:
        """Derive rows from the pending writes, on top of the preview so far. `reader` shows the
        transaction, preview included; `read_row` a row of a table as it is in it now."""
        pending, self.pending = self.pending, {}
        changes = [RowChange(key, old, read_row(key)) for key, old in pending.items()]
        changes = [change for change in changes if change.old != change.new]
        relations = frozenset(change.relation for change in changes)
        before = OverlayReader(reader, pending, reader.position, reader.catalog)
        writer = DerivedRows(before)
        try:
            for participant in find(reader.catalog, relations):
                participant.writes(changes, before, writer)
        except BaseException:
            self.pending = pending  # the next read tries again
            raise
        self.rows.update(writer.writes())
