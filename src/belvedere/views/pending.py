"""Catch-up on read: the pending log of deferred views applied in memory, for one statement.

The same maintenance as the worker's, not written. Stored rows and pending log are read at one
snapshot, so there is no gap between them. The log is read once for all the views of a statement.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from belvedere.catalog.model import Maintenance, View
from belvedere.errors import Unavailable
from belvedere.txn.border import ChangeLog, Reader, RowChange
from belvedere.txn.commit.derived import DerivedRows
from belvedere.txn.history.readers import OverlayReader
from belvedere.txn.transaction import Transaction
from belvedere.views.maintainers import Maintainers
from belvedere.views.watermarks import position_of
from belvedere.views.window import Window, state_before


def with_pending(
    keeper: Maintainers, log: ChangeLog, transaction: Transaction, views: Sequence[View]
) -> Reader:
    """The transaction, with these deferred views brought to its position and its own writes."""
    marks = {view.id: required_position(transaction, view) for view in views}
    if not views:
        return transaction
    window = _window(log, transaction, marks.values(), views)
    writer = DerivedRows(transaction)
    for view in views:
        logged = window.stretch(marks[view.id]).of(frozenset(view.inputs))
        changes = _with_own(logged, transaction, frozenset(view.inputs))
        if changes:
            maintainer = keeper.maintainer(transaction.catalog, view)
            before = state_before(transaction, changes, maintainer.indexes)
            maintainer.writes(changes, before, writer, after=transaction)
    overlay = dict(writer.writes())
    return OverlayReader(transaction, overlay, transaction.position, transaction.catalog)


def at_watermark(
    keeper: Maintainers, log: ChangeLog, transaction: Transaction, view: View
) -> tuple[Reader, int]:
    """The view's tables as of the view's watermark, and that position."""
    if view.maintenance is Maintenance.IMMEDIATE:
        return transaction, transaction.position
    mark = required_position(transaction, view)
    window = _window(log, transaction, (mark,), (view,))
    changes = window.stretch(mark).of(frozenset(view.inputs))
    return state_before(transaction, changes, keeper.indexes), mark


def required_position(reader: Reader, view: View) -> int:
    mark = position_of(reader, view)
    if mark is None:
        raise Unavailable("view has no watermark", sqlstate="XX000", name=view.name)
    return mark


def _window(
    log: ChangeLog, reader: Reader, starts: Collection[int], views: Sequence[View]
) -> Window:
    relations = frozenset(r for view in views for r in view.inputs)
    records = log.read_bytes(min(starts), reader.position)
    return Window(records, starts, reader.position, relations)


def _with_own(
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
