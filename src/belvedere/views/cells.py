"""Immediate views on a row-atomic store: which locks their maintenance needs.

All state of a view is linear: additions commute, and nobody locks it. But a delta also
reads rows of other tables, or other rows of the same one, and what it reads must be as of p-1. So
what a delta reads is locked on one side, what a change writes on the other, and only the two
exclude each other (a hot product does not serialize its orders); who does both to one key has it
alone. What is read is found out by working out the delta on a reader that takes notes, first at
the snapshot and again under the locks. A lock covers the rows of a relation (a table by its key, or
an index) that have one value in their first key column, or all rows when a range is wider.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CATALOG_RELATION, Index, Maintenance, State, Table, View
from belvedere.catalog.relation import compiled_index, compiled_table, compiled_view
from belvedere.codec import keyspace
from belvedere.codec.keys import KeyCodec
from belvedere.errors import Corruption, InvalidInput, Unsupported
from belvedere.txn.border import ChangeLog, LockRequest, Participant, Reader, RowChange, Writer
from belvedere.txn.history.readers import ReaderWrapper
from belvedere.txn.row.reader import RowWriter
from belvedere.views.additions import Recorder
from belvedere.views.builders import note_builders
from belvedere.views.flip import Flip, changed_views, switch_stream
from belvedere.views.keep import Keeper
from belvedere.views.maintain import Maintainer
from belvedere.views.rekey import RekeyParticipant
from belvedere.views.unique import Unique

READS, WRITES = 1, 2
"""The two sides of a join-key lock."""


def cell_participants(
    keeper: Keeper, catalog: Catalog, relations: frozenset[int], log: ChangeLog, node: int
) -> tuple[Participant, ...]:
    """The immediate views over these relations, also those being built; and who sees to catalog
    changes. `node` is the number of this process on the store."""
    views = {
        view.id: view for relation in sorted(relations) for view in catalog.views_over(relation)
    }
    found: list[Participant] = [
        guarded(catalog, view, keeper)
        for view in views.values()
        if view.maintenance is Maintenance.IMMEDIATE and view.state in (State.READY, State.BUILDING)
    ]
    if CATALOG_RELATION in relations:
        found.append(CellFlip(keeper, log, node))
    return tuple(found)


class Guarded:
    """An immediate view as a participant that also requests join-key locks."""

    checks = False

    def __init__(self, maintainer: Maintainer, view: View, keeper: Keeper) -> None:
        self.maintainer = maintainer
        self._inputs = frozenset(view.inputs)
        self._building = view.state is State.BUILDING
        self._auxiliary = bool(view.part)
        self._keeper = keeper

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        if not self.maintainer.reads_state and not self._auxiliary:
            return ()
        notes, recorder = Notes(reader), Recorder()
        try:
            self.maintainer.writes(changes, notes, recorder)
        except (InvalidInput, Unsupported):
            pass  # the commit itself meets the error again, and reports it
        locks = {*notes.locks, *self._written(changes, reader.catalog)}
        if self._auxiliary:  # other views read its rows while they are maintained
            for key, _, _ in recorder.additions:
                locks.update(covering(reader.catalog, key, WRITES))
        return locks

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """A view refuses nothing."""

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        if self._building and not isinstance(writer, RowWriter):
            return  # a preview, of a view that may not be read yet
        self.maintainer.writes(changes, reader, writer)

    def _written(self, changes: Sequence[RowChange], catalog: Catalog) -> Iterator[LockRequest]:
        for change in changes:
            if change.relation not in self._inputs:
                continue
            yield from covering(catalog, change.key, WRITES)
            for participant in self._keeper.indexes(catalog, frozenset([change.relation])):
                if not isinstance(participant, RekeyParticipant):
                    continue  # an auxiliary view, which requests its own locks
                for value in (change.old, change.new):
                    entry = participant.entry(value)
                    if entry is not None:
                        yield from covering(catalog, entry[0], WRITES)


class GuardedUnique(Unique):
    """A unique index of a view. A transaction that changes how many rows a key has claims the key:
    then the newest of its rows are all there are, since a claim is held until they are written."""

    def __init__(self, catalog: Catalog, view: View, inner: Guarded) -> None:
        super().__init__(catalog, view, inner)
        self._maintainer = inner.maintainer
        self._building = view.state is State.BUILDING

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        recorder = Recorder()
        try:
            self._maintainer.writes(changes, reader, recorder)
        except (InvalidInput, Unsupported):
            pass  # the commit itself meets the error again, and reports it
        claims = [self.keys.claimed(payload) for _, payload, _ in recorder.additions]
        mine = {LockRequest("claim", key) for key in claims if key is not None}
        return mine.union(super().locks(changes, reader))

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        """Rows of an index being built are checked when it is ready; a preview holds no claim."""
        if self._building or not isinstance(writer, RowWriter):
            self.inner.writes(changes, reader, writer)
        else:
            super().writes(changes, reader, writer)


def guarded(catalog: Catalog, view: View, keeper: Keeper) -> Participant:
    inner = Guarded(keeper.maintainer(catalog, view), view, keeper)
    return GuardedUnique(catalog, view, inner) if view.is_unique else inner


class Notes(ReaderWrapper):
    """A reader that notes, as locks, what is read of tables and indexes through it."""

    def __init__(self, under: Reader) -> None:
        super().__init__(under)
        self.locks: set[LockRequest] = set()

    def get(self, key: bytes) -> bytes | None:
        self.locks.add(narrowest(self.catalog, key, key, READS))
        return super().get(key)

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.locks.update(narrowest(self.catalog, key, key, READS) for key in keys)
        return super().multi_get(keys)

    def _scanned_range(self, start: bytes, end: bytes) -> tuple[bytes, bytes]:
        self.locks.add(narrowest(self.catalog, start, end, READS))
        return start, end


def covering(catalog: Catalog, key: bytes, side: int) -> tuple[LockRequest, LockRequest]:
    """The locks of all readers of this key, by its first column or in a scan of the relation."""
    prefix = key[: keyspace.ROW_PREFIX_BYTES]
    return narrowest(catalog, key, key, side), LockRequest("join", prefix, side)


def narrowest(catalog: Catalog, start: bytes, end: bytes, side: int) -> LockRequest:
    """The narrowest lock that covers a range, or (start = end) a key."""
    prefix = start[: keyspace.ROW_PREFIX_BYTES]
    codec = _codec(catalog, int.from_bytes(prefix[1:]))
    if codec is not None and codec.columns:
        try:
            value = start[: codec.first_end(start)]
        except Corruption:
            return LockRequest("join", prefix, side)  # the first column is incomplete
        after = keyspace.next_prefix(value)
        if start == end or (after is not None and end <= after):
            return LockRequest("join", value, side)
    return LockRequest("join", prefix, side)


def _codec(catalog: Catalog, relation: int) -> KeyCodec | None:
    match catalog.get(relation):
        case Table():
            return compiled_table(catalog, relation).key
        case Index():
            return compiled_index(catalog, relation).key
        case View():
            return compiled_view(catalog, relation).key
        case _:
            return None


class CellFlip(Flip):
    """State transitions of views. An immediate view is never built from the log, so becoming ready
    applies nothing; a live switch would have to apply the log, and is refused."""

    def __init__(self, keeper: Keeper, log: ChangeLog, node: int) -> None:
        super().__init__(keeper, log)
        self._node = node

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        note_builders(changes, reader, writer, self._node)
        super().writes([c for c in changes if not _is_immediate(c)], reader, writer)
        for old, new in changed_views([c for c in changes if _is_immediate(c)]):
            assert new is not None
            switch_stream(old, new, reader, writer)


def _is_immediate(change: RowChange) -> bool:
    """Whether a change is one of an immediate view that stays. Unsupported: a live switch."""
    if change.relation != CATALOG_RELATION or change.new is None:
        return False
    new = model.decode(change.new)
    old = None if change.old is None else model.decode(change.old)
    if not isinstance(new, View) or new.state is State.DROPPED:
        return False
    if isinstance(old, View) and old.maintenance is not new.maintenance:
        raise Unsupported(
            "switching a view between immediate and deferred on a row-atomic store",
            hint="use ALTER MATERIALIZED VIEW, which makes it anew",
        )
    return new.maintenance is Maintenance.IMMEDIATE
