"""Immediate views on a row-atomic store: which locks their maintenance needs.

All state of a view is linear: additions commute, and no transaction locks it. But a delta also
reads rows of other tables, or other rows of the same one, and what it reads must be as of p-1. So
what a delta reads is locked on one side, what a change writes on the other, and only the two sides
exclude each other (a hot product does not serialize its orders); a transaction that does both to
one key holds it exclusively. The reads are found by computing the delta on a reader that records
them (`LockRecordingReader`), first at the snapshot and again under the locks. A lock covers the
rows of a relation (a table by its key, or an index) that have one value in their first key column,
or all rows when a range is wider.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CATALOG_RELATION, Index, Maintenance, ObjectState, Table, View
from belvedere.catalog.relation_codecs import compiled_index, compiled_table, compiled_view
from belvedere.codec import keyspace
from belvedere.codec.keys import KeyCodec
from belvedere.errors import Corruption, InvalidInput, Unsupported
from belvedere.txn.contracts import (
    ChangeLog,
    LockRequest,
    Participant,
    Reader,
    RowChange,
    Writer,
)
from belvedere.txn.history.readers import ReaderWrapper
from belvedere.txn.row_atomic.reader import RowWriter
from belvedere.views.indexes.entries import IndexParticipant
from belvedere.views.indexes.unique_view_index import UniqueViewIndexParticipant
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.registry.transitions import (
    ViewTransitionParticipant,
    decode_changed_views,
    start_or_end_changefeed,
)
from belvedere.views.registry.view_registry import ViewRegistry
from belvedere.views.state.additions import AdditionRecorder
from belvedere.views.state.build_state import waits_for_backfill_command
from belvedere.views.state.builder_node import record_builder_changes

READ_SIDE, WRITE_SIDE = 1, 2
"""The two sides of a join-key lock."""


def build_row_atomic_participants(
    registry: ViewRegistry, catalog: Catalog, relations: frozenset[int], log: ChangeLog, node: int
) -> tuple[Participant, ...]:
    """The immediate views over these relations, also those being built; and the participant for
    catalog changes. `node` is the number of this process on the store."""
    views = {
        view.id: view
        for relation in sorted(relations)
        for view in catalog.dependent_views(relation)
    }
    found: list[Participant] = [
        build_locking_participant(catalog, view, registry)
        for view in views.values()
        if view.maintenance is Maintenance.IMMEDIATE
        and view.state in (ObjectState.READY, ObjectState.BUILDING)
    ]
    if CATALOG_RELATION in relations:
        found.append(RowAtomicViewTransition(registry, log, node))
    return tuple(found)


class LockingViewParticipant:
    """An immediate view as a participant that also requests join-key locks."""

    checks = False

    def __init__(self, maintainer: ViewMaintainer, view: View, registry: ViewRegistry) -> None:
        self.maintainer = maintainer
        self._inputs = frozenset(view.inputs)
        self._building = view.state is ObjectState.BUILDING
        self._auxiliary = bool(view.part)
        self._registry = registry

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        if not self.maintainer.reads_unchanged_rows and not self._auxiliary:
            return ()
        notes, recorder = LockRecordingReader(reader), AdditionRecorder()
        try:
            self.maintainer.writes(changes, notes, recorder)
        except (InvalidInput, Unsupported):
            pass  # the commit itself meets the error again, and reports it
        locks = {*notes.locks, *self._list_write_side_locks(changes, reader.catalog)}
        if self._auxiliary:  # other views read its rows while they are maintained
            for key, _, _ in recorder.additions:
                locks.update(build_covering_locks(reader.catalog, key, WRITE_SIDE))
        return locks

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """A view refuses nothing."""

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        if self._building and not isinstance(writer, RowWriter):
            return  # a preview, of a view that may not be read yet
        self.maintainer.writes(changes, reader, writer)

    def _list_write_side_locks(
        self, changes: Sequence[RowChange], catalog: Catalog
    ) -> Iterator[LockRequest]:
        for change in changes:
            if change.relation not in self._inputs:
                continue
            yield from build_covering_locks(catalog, change.key, WRITE_SIDE)
            for participant in self._registry.indexes(catalog, frozenset([change.relation])):
                if not isinstance(participant, IndexParticipant):
                    continue  # an auxiliary view, which requests its own locks
                for value in (change.old, change.new):
                    entry = participant.build_index_entry(value)
                    if entry is not None:
                        yield from build_covering_locks(catalog, entry[0], WRITE_SIDE)


class LockingUniqueViewIndex(UniqueViewIndexParticipant):
    """A unique index of a view. A transaction that changes how many rows a key has claims the key:
    then the newest of its rows are all there are, since a claim is held until they are written."""

    def __init__(self, catalog: Catalog, view: View, inner: LockingViewParticipant) -> None:
        super().__init__(catalog, view, inner)
        self._maintainer = inner.maintainer
        self._building = view.state is ObjectState.BUILDING

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        recorder = AdditionRecorder()
        try:
            self._maintainer.writes(changes, reader, recorder)
        except (InvalidInput, Unsupported):
            pass  # the commit itself meets the error again, and reports it
        claims = [self.keys.encode_claimed_key(payload) for _, payload, _ in recorder.additions]
        mine = {LockRequest("claim", key) for key in claims if key is not None}
        return mine.union(super().locks(changes, reader))

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        """Rows of an index being built are checked when it is ready; a preview holds no claim."""
        if self._building or not isinstance(writer, RowWriter):
            self.inner.writes(changes, reader, writer)
        else:
            super().writes(changes, reader, writer)


def build_locking_participant(catalog: Catalog, view: View, registry: ViewRegistry) -> Participant:
    inner = LockingViewParticipant(registry.get_view_maintainer(catalog, view), view, registry)
    return LockingUniqueViewIndex(catalog, view, inner) if view.is_unique else inner


class LockRecordingReader(ReaderWrapper):
    """A reader that notes, as locks, what is read of tables and indexes through it."""

    def __init__(self, under: Reader) -> None:
        super().__init__(under)
        self.locks: set[LockRequest] = set()

    def get(self, key: bytes) -> bytes | None:
        self.locks.add(build_narrowest_lock(self.catalog, key, key, READ_SIDE))
        return super().get(key)

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.locks.update(build_narrowest_lock(self.catalog, key, key, READ_SIDE) for key in keys)
        return super().multi_get(keys)

    def _scanned_range(self, start: bytes, end: bytes) -> tuple[bytes, bytes]:
        self.locks.add(build_narrowest_lock(self.catalog, start, end, READ_SIDE))
        return start, end


def build_covering_locks(
    catalog: Catalog, key: bytes, side: int
) -> tuple[LockRequest, LockRequest]:
    """The locks of all readers of this key, by its first column or in a scan of the relation."""
    prefix = key[: keyspace.ROW_PREFIX_BYTES]
    return build_narrowest_lock(catalog, key, key, side), LockRequest("join", prefix, side)


def build_narrowest_lock(catalog: Catalog, start: bytes, end: bytes, side: int) -> LockRequest:
    """The narrowest lock that covers a range, or (start = end) a key."""
    prefix = start[: keyspace.ROW_PREFIX_BYTES]
    codec = _get_relation_key_codec(catalog, int.from_bytes(prefix[1:]))
    if codec is not None and codec.columns:
        try:
            value = start[: codec.first_column_end(start)]
        except Corruption:
            return LockRequest("join", prefix, side)  # the first column is incomplete
        after = keyspace.next_prefix(value)
        if start == end or (after is not None and end <= after):
            return LockRequest("join", value, side)
    return LockRequest("join", prefix, side)


def _get_relation_key_codec(catalog: Catalog, relation: int) -> KeyCodec | None:
    match catalog.get(relation):
        case Table():
            return compiled_table(catalog, relation).key
        case Index():
            return compiled_index(catalog, relation).key
        case View():
            return compiled_view(catalog, relation).key
        case _:
            return None


class RowAtomicViewTransition(ViewTransitionParticipant):
    """State transitions of views. An immediate view is never built from the log, so becoming ready
    applies nothing; a live switch would have to apply the log, and is refused."""

    def __init__(self, registry: ViewRegistry, log: ChangeLog, node: int) -> None:
        super().__init__(registry, log)
        self._node = node

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        record_builder_changes(changes, reader, writer, self._node)
        super().writes([c for c in changes if not _is_immediate_view_change(c)], reader, writer)
        for old, new in decode_changed_views([c for c in changes if _is_immediate_view_change(c)]):
            assert new is not None
            start_or_end_changefeed(old, new, reader, writer)
            if waits_for_backfill_command(old) and new.state is ObjectState.READY:
                writer.delete(keyspace.watermark_key(new.id))  # the job's, which held the log


def _is_immediate_view_change(change: RowChange) -> bool:
    """Whether a change is one of an immediate view that stays. Unsupported: a live switch."""
    if change.relation != CATALOG_RELATION or change.new is None:
        return False
    new = model.decode(change.new)
    old = None if change.old is None else model.decode(change.old)
    if not isinstance(new, View) or new.state is ObjectState.DROPPED:
        return False
    if isinstance(old, View) and old.maintenance is not new.maintenance:
        raise Unsupported(
            "switching a view between immediate and deferred on a row-atomic store",
            hint="use ALTER MATERIALIZED VIEW, which makes it anew",
        )
    return new.maintenance is Maintenance.IMMEDIATE
