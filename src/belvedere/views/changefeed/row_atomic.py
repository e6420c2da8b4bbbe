"""The changefeed of an immediate view on a row-atomic store, read from the change log.

A commit gets its position last, so it cannot write an entry under that
(`views.changefeed.entries`). But its record in the log holds every cell it writes, with what it
adds to views; so do the records of repairs. The entries of an immediate view are computed from
these when a subscriber reads, nothing more is written, and the log is retained for as long as the
changes are.
"""

from __future__ import annotations

from belvedere.catalog.model import Maintenance, View
from belvedere.codec import keyspace
from belvedere.txn.contracts import AdditionLog, ChangeLog
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.changefeed import entries
from belvedere.views.changefeed.entries import ChangefeedEntry


def find_addition_log(log: ChangeLog, view: View) -> AdditionLog | None:
    """The log that has the entries of a view; None: they are kept by themselves."""
    return log.additions if view.maintenance is Maintenance.IMMEDIATE else None


def find_retention_start(log: ChangeLog, reader: Transaction, view: View) -> int | None:
    """The position after which the view's changes are retained; None: they are not."""
    first, cells = entries.read_retention_start(reader, view.id), find_addition_log(log, view)
    return first if first is None or cells is None else max(first, cells.first_position - 1)


def read_logged_or_stored_entries(
    log: ChangeLog, reader: Transaction, view: View, after: int
) -> list[ChangefeedEntry]:
    """The additions after a position, one entry for each position, in order."""
    cells = find_addition_log(log, view)
    if cells is None:
        return entries.read_stored_entries(reader, view.id, after)
    start, end = keyspace.relation_range(view.id)
    found = cells.read_additions(start, end, after, reader.snapshot.batch)
    return [ChangefeedEntry(position, additions) for position, additions in found]


def find_shown_position(log: ChangeLog, reader: Transaction, view: View) -> int:
    """The position up to which the reader shows an immediate view's changes."""
    return reader.position if find_addition_log(log, view) is None else reader.snapshot.batch
