"""Scan of a view in parts.

The stored state is scanned by key range where each stored row yields its view rows independently; a
view whose rows combine several stored rows is read in one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Maintenance, View
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.execution.python.compile import compile_plan
from belvedere.interfaces.verbs.leases import SnapshotLease
from belvedere.interfaces.verbs.peer import Peer
from belvedere.interfaces.verbs.read import queries
from belvedere.interfaces.verbs.read.relations import NamedRelation
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.plan_items import walk_plan_items
from belvedere.session.session import Session
from belvedere.txn.contracts import Reader
from belvedere.txn.history.readers import ReaderWrapper
from belvedere.views.read.expand_views import require_readable_view

KeyRange = tuple[bytes, bytes]
BATCH_ROWS = 20_000


def view_range(peer: Peer, held: SnapshotLease, view: View) -> KeyRange | None:
    """The key range of the view's state, if it can be read in parts."""
    catalog = held.reader.catalog
    if held.transaction is None or not _is_row_by_row(peer, catalog, view):
        return None
    compiled = compiled_view(catalog, view.id)
    return compiled.start, compiled.end


def _is_row_by_row(peer: Peer, catalog: Catalog, view: View) -> bool:
    require_readable_view(view)
    nodes = list(walk_plan_items(peer.database.views.registry.build_reading_plan(catalog, view)))
    plain = all(
        isinstance(node, n.Project | n.Filter | n.Scan)
        for node in nodes
        if isinstance(node, n.Node)
    )
    scans = [node for node in nodes if isinstance(node, n.Scan)]
    return plain and len(scans) == 1 and scans[0].relation == view.id


def view_rows(
    peer: Peer, held: SnapshotLease, found: NamedRelation, ranges: Sequence[KeyRange]
) -> Iterator[pa.RecordBatch]:
    """The rows of the view from these key ranges of its state."""
    view, catalog = found.item, held.reader.catalog
    assert isinstance(view, View)
    plan = _project_columns(peer.database.views.registry.build_reading_plan(catalog, view), found)
    rows = compile_plan(catalog, plan)
    session, reader = Session(peer.served_store.shared), _current_reader(peer, held, view)
    for start, end in ranges:
        part = rows(session.make_run_context(RangeReader(reader, view.id, start, end), ()))
        while chunk := [row for row, _ in zip(part, range(BATCH_ROWS))]:
            yield from queries.rows_to_table(plan.fields, iter(chunk)).to_batches()


def _project_columns(plan: n.Node, found: NamedRelation) -> n.Node:
    by_name = {column.name: i for i, column in enumerate(found.item.columns)}
    fields = tuple(plan.fields[by_name[name]]._replace(name=name) for name in found.column_names)
    columns = tuple(e.Column(by_name[field.name], field.type, field.name) for field in fields)
    return n.Project(plan, columns, fields)


def _current_reader(peer: Peer, held: SnapshotLease, view: View) -> Reader:
    """The leased snapshot, with pending log changes applied for a deferred view."""
    assert held.transaction is not None
    if view.maintenance is Maintenance.IMMEDIATE:
        return held.transaction
    return peer.database.views.open_caught_up_reader(held.transaction, (view,))


class RangeReader(ReaderWrapper):
    """A reader that shows one range of a relation's keys."""

    def __init__(self, under: Reader, relation: int, start: bytes, end: bytes) -> None:
        super().__init__(under)
        self._relation = relation
        self._start = start
        self._end = end

    def _scanned_range(self, start: bytes, end: bytes) -> KeyRange:
        if int.from_bytes(start[1:5]) != self._relation:
            return start, end
        low = max(start, self._start)
        return low, max(low, min(end, self._end))
