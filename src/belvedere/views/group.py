"""Maintenance groups of deferred views: the watermark, catching up, and the worker.

A group moves from its watermark to a later position by reading the log between, consolidating the
changes per row, and writing state rows and watermark as one batch. The watermark is looked at again
inside the section, so a stretch of the log is applied exactly once, whoever tries.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_view
from belvedere.codec import accumulator, keyspace
from belvedere.codec.record import Record
from belvedere.kv.batch import Write
from belvedere.txn.border import (
    ChangeLog,
    CommitProtocol,
    ParticipantsFor,
    Published,
    Reader,
    RowChange,
    Writer,
)
from belvedere.txn.commit.batch import DerivedRows
from belvedere.txn.history.readers import OverlayReader
from belvedere.views.maintain import Maintainer

_POSITION = struct.Struct(">Q")


def watermark(reader: Reader, group: int) -> int | None:
    """The position the group has applied, at this reader; None before its backfill."""
    value = reader.get(keyspace.watermark_key(group))
    return None if value is None else int(_POSITION.unpack(value)[0])


def watermark_write(group: int, position: int | None) -> Write:
    """Sets the watermark; None removes it."""
    key = keyspace.watermark_key(group)
    return key, None if position is None else _POSITION.pack(position)


def put_watermark(writer: Writer, group: int, position: int) -> None:
    writer.put(keyspace.watermark_key(group), _POSITION.pack(position))


def consolidated(records: Iterable[Record], relations: frozenset[int]) -> list[RowChange]:
    """The net change of every row of these relations over the records, in order."""
    first: dict[bytes, bytes | None] = {}
    last: dict[bytes, bytes | None] = {}
    for record in records:
        for relation, key, old, new in record.changes():
            if relation in relations:
                whole = keyspace.row_prefix(relation) + key
                first.setdefault(whole, old)
                last[whole] = new
    return [RowChange(key, old, last[key]) for key, old in first.items() if old != last[key]]


def state_before(reader: Reader, changes: Sequence[RowChange], indexes: ParticipantsFor) -> Reader:
    """The tables and their indexes as they were before these changes, which `reader` shows done."""
    overlay: dict[bytes, bytes | None] = {change.key: change.old for change in changes}
    undone = [RowChange(change.key, change.new, change.old) for change in changes]
    writer = DerivedRows(reader)
    for participant in indexes(reader.catalog, frozenset(c.relation for c in undone)):
        participant.writes(undone, reader, writer)
    overlay.update(writer.writes())
    return OverlayReader(reader, overlay, reader.position, reader.catalog)


class Recorder:
    """A Writer that remembers additions, to be made later."""

    def __init__(self) -> None:
        self.additions: list[tuple[bytes, bytes, tuple[int, ...]]] = []

    def put(self, key: bytes, value: bytes) -> None:
        raise AssertionError("a view only adds")

    def delete(self, key: bytes) -> None:
        raise AssertionError("a view only adds")

    def add(self, key: bytes, payload: bytes, amounts: tuple[int, ...]) -> None:
        self.additions.append((key, payload, amounts))


def differences(
    reader: Reader, view: View, wanted: dict[bytes, bytes | None]
) -> Iterator[tuple[bytes, bytes, tuple[int, ...]]]:
    """What has to be added to the stored state of a view to make it the wanted one."""
    stored = compiled_view(reader.catalog, view.id)
    for batch in reader.scan(stored.start, stored.end):
        for key, value in batch:
            payload, there = accumulator.decode(value)
            state = wanted.pop(key, None)
            goal = (0,) * len(there) if state is None else accumulator.decode(state)[1]
            if goal != there:
                yield key, payload, tuple([new - old for new, old in zip(goal, there)])
    for key, state in wanted.items():
        if state is not None:
            yield key, *accumulator.decode(state)


def catch_up(
    commits: CommitProtocol,
    log: ChangeLog,
    group: int,
    relations: frozenset[int],
    maintainers_of: Callable[[Catalog], Sequence[Maintainer]],
    indexes: ParticipantsFor,
) -> int | None:
    """Bring the group to what is published now; returns where it is then, None when there is no
    such group. The work is done at a snapshot, outside of the section; only the additions are made
    inside."""
    snapshot = commits.snapshot()
    try:
        reader: Reader = commits.reader(snapshot)
        start = watermark(reader, group)
        if start is None or start >= snapshot.position:
            return start
        changes = consolidated(log.read(start, snapshot.position), relations)
        recorder = Recorder()
        if changes:
            maintainers = maintainers_of(snapshot.catalog)
            if any(maintainer.reads_state for maintainer in maintainers):
                reader = state_before(reader, changes, indexes)
            for maintainer in maintainers:
                maintainer.writes(changes, reader, recorder)
        return apply_batch(commits, group, recorder, start, snapshot.position)
    finally:
        commits.release(snapshot)


def apply_batch(
    commits: CommitProtocol, group: int, recorder: Recorder, start: int, end: int
) -> int | None:
    reached: list[int | None] = [end]

    def make(reader: Reader) -> list[Write]:
        now = watermark(reader, group)
        planted = failpoints.armed and failpoints.planted("view_batch_twice")
        if now != start and not planted:
            reached[0] = now
            return []
        writer = DerivedRows(reader)
        for addition in recorder.additions:
            writer.add(*addition)
        return [*writer.writes(), watermark_write(group, end)]

    commits.derive(make)
    return reached[0]


class Worker:
    """A thread that keeps deferred groups close to the log's end."""

    def __init__(
        self,
        visibility: Published,
        step: Callable[[], None],
    ) -> None:
        """`step` brings every group to what is published, and deals with what fails."""
        self._visibility = visibility
        self._step = step
        self._thread = threading.Thread(target=self._work, name="belvedere views", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        seen = -1
        while self._visibility.wait_past(seen, None):
            seen = self._visibility.published.position
            self._step()

    def join(self) -> None:
        """Wait for the end; `Published.end_waits` brings it about."""
        self._thread.join()
