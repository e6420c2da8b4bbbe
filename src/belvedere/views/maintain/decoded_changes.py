"""The changes of a step as decoded rows, shared by all views that are maintained from them.

They are grouped by table, and deleted and inserted rows are decoded once for all views that use the
same columns of a table. An update is a deleted and an inserted row.
"""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.codec import keyspace
from belvedere.codec.rows import RowLayout
from belvedere.txn.contracts import RowChange, Writer
from belvedere.types import Row
from belvedere.views.codegen.lookup_chain import LookupChain

PREFIX = keyspace.ROW_PREFIX_BYTES

DeletedAndInserted = tuple[list[Row], list[Row]]
"""Deleted rows, and inserted rows."""


class DecodedChanges:
    """The changes of a step as rows of their tables, for all views maintained from them."""

    def __init__(self, changes: Sequence[RowChange]) -> None:
        self.changes = changes
        self.tables = frozenset([change[0][:PREFIX] for change in changes])
        self._by_table: dict[bytes, list[RowChange]] = {}
        self._sides: dict[tuple[bytes, tuple[int, ...]], tuple[RowLayout, DeletedAndInserted]] = {}

    def project_deleted_and_inserted(self, prefix: bytes, leg: LookupChain) -> DeletedAndInserted:
        """The deleted and inserted rows, projected to the columns that a look-up chain of this
        table uses; changes of other columns are left out."""
        key = prefix, leg.slots
        known = self._sides.get(key)
        if known is None or not _has_same_layout(known[0], leg.layout):
            known = self._sides[key] = (
                leg.layout,
                _split_and_project_changes(self._list_table_changes(prefix), leg),
            )
        return known[1]

    def _list_table_changes(self, prefix: bytes) -> Sequence[RowChange]:
        if len(self.tables) == 1:
            return self.changes
        if not self._by_table:
            for change in self.changes:
                self._by_table.setdefault(change[0][:PREFIX], []).append(change)
        return self._by_table[prefix]


def get_shared_decoded_changes(changes: Sequence[RowChange], writer: Writer) -> DecodedChanges:
    """These changes decoded, one object for all participants of one step."""
    key = (DecodedChanges, id(changes))
    known = writer.shared_results.get(key)
    if isinstance(known, DecodedChanges) and known.changes is changes:
        return known
    made = writer.shared_results[key] = DecodedChanges(changes)
    return made


def _has_same_layout(one: RowLayout, other: RowLayout) -> bool:
    """Whether two layouts, compiled at different times, decode a row alike."""
    return one is other or one.slots == other.slots


def _split_and_project_changes(
    changes: Sequence[RowChange], leg: LookupChain
) -> DeletedAndInserted:
    project, varying = leg.project, leg.varying_representation
    went: list[Row] = []
    came: list[Row] = []
    for _, old, new, _ in changes:
        if new is None:
            if old is not None:
                went.append(project(old))
        elif old is None:
            came.append(project(new))
        else:
            before, after = project(old), project(new)
            if before != after or (varying and repr(before) != repr(after)):
                went.append(before)
                came.append(after)
    return went, came
