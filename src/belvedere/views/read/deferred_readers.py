"""Catch-up on read: the pending log of deferred views applied in memory, for one statement.

The same maintenance as the worker's, not written. Stored rows and pending log are read at one
snapshot, so there is no gap between them. The log is read once for all the views of a statement.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from belvedere.catalog.model import Maintenance, View
from belvedere.txn.contracts import ChangeLog, Reader, RowChange
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.readers import OverlayReader
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.maintain.log_window import LogWindow, build_reader_before_changes
from belvedere.views.registry.maintainer_provider import MaintainerProvider
from belvedere.views.state.watermarks import require_applied_position


def build_caught_up_reader(
    registry: MaintainerProvider, log: ChangeLog, transaction: Transaction, views: Sequence[View]
) -> Reader:
    """The transaction, with these deferred views brought to its position and its own writes."""
    marks = {view.id: require_applied_position(transaction, view) for view in views}
    if not views:
        return transaction
    window = _read_log_window(log, transaction, marks.values(), views)
    writer = DerivedRows(transaction)
    for view in views:
        logged = window.get_log_range_after(marks[view.id]).get_changes_of_relations(
            frozenset(view.inputs)
        )
        changes = _merge_own_changes(logged, transaction, frozenset(view.inputs))
        if changes:
            maintainer = registry.get_view_maintainer(transaction.catalog, view)
            before = build_reader_before_changes(transaction, changes, maintainer.indexes)
            maintainer.writes(changes, before, writer, after=transaction)
    overlay = dict(writer.writes())
    return OverlayReader(transaction, overlay, transaction.position, transaction.catalog)


def build_tables_at_watermark(
    registry: MaintainerProvider, log: ChangeLog, transaction: Transaction, view: View
) -> tuple[Reader, int]:
    """The view's tables as of the view's watermark, and that position."""
    if view.maintenance is Maintenance.IMMEDIATE:
        return transaction, transaction.position
    mark = require_applied_position(transaction, view)
    window = _read_log_window(log, transaction, (mark,), (view,))
    changes = window.get_log_range_after(mark).get_changes_of_relations(frozenset(view.inputs))
    return build_reader_before_changes(transaction, changes, registry.indexes), mark


def _read_log_window(
    log: ChangeLog, reader: Reader, starts: Collection[int], views: Sequence[View]
) -> LogWindow:
    relations = frozenset(r for view in views for r in view.inputs)
    records = log.read_bytes(min(starts), reader.position)
    return LogWindow(records, starts, reader.position, relations)


def _merge_own_changes(
    logged: list[RowChange], transaction: Transaction, relations: frozenset[int]
) -> list[RowChange]:
    """All pending changes: the log after the watermark, then the transaction's own changes."""
    own = [change for change in transaction.changes if change.relation in relations]
    if not own:
        return logged
    merged = {change.key: change for change in logged}
    for change in own:
        known = merged.get(change.key)
        old = change.old if known is None else known.old
        merged[change.key] = RowChange(change.key, old, change.new)
    return [change for change in merged.values() if change.old != change.new]
