"""A stretch of the log, read and decoded once for all the views that need it.

A window holds the changes of the wanted relations between two positions. `stretch` consolidates
them: the net change of every row, from any position in the window on. Views that are at the same
position share one stretch, and views over the same tables share the very list of changes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from belvedere.codec import keyspace
from belvedere.codec.record import Record
from belvedere.txn.border import ParticipantsFor, Reader, RowChange, make
from belvedere.txn.commit.batch import DerivedRows
from belvedere.txn.history.readers import OverlayReader

_Logged = tuple[bytes, bytes | None, bytes | None]


class Window:
    """The changes after `after`, through `through`. Not for several threads at once."""

    def __init__(
        self, records: Iterable[Record], after: int, through: int, relations: frozenset[int]
    ) -> None:
        self.after = after
        self.through = through
        self._positions: list[int] = []
        self._changes: list[_Logged] = []
        self._stretches: dict[tuple[int, int], Stretch] = {}
        prefixes = {relation: keyspace.row_prefix(relation) for relation in relations}
        positions, changes = self._positions, self._changes
        for record in records:
            position = record.position
            for relation, key, old, new in record.changes():
                prefix = prefixes.get(relation)
                if prefix is not None:
                    positions.append(position)
                    changes.append((prefix + key, old, new))

    def stretch(self, start: int, end: int | None = None) -> Stretch:
        """What changed in start < position <= end (None: to the end of the window)."""
        end = self.through if end is None else end
        assert self.after <= start
        assert end <= self.through
        known = self._stretches.get((start, end))
        if known is None:
            low = bisect_right(self._positions, start)
            high = bisect_right(self._positions, end)
            known = Stretch(start, end, _net(self._changes[low:high]), high - low)
            self._stretches[start, end] = known
        return known


def _net(changes: Sequence[_Logged]) -> list[RowChange]:
    first: dict[bytes, bytes | None] = {}
    last: dict[bytes, bytes | None] = {}
    for key, old, new in changes:
        if key not in first:
            first[key] = old
        last[key] = new
    return [make(RowChange, (k, old, last[k], 0)) for k, old in first.items() if old != last[k]]


class Stretch:
    """The net change of every row between two positions; `logged` counts what the log said."""

    def __init__(self, start: int, end: int, changes: list[RowChange], logged: int) -> None:
        self.start = start
        self.end = end
        self.logged = logged
        self._by_relation: dict[int, list[RowChange]] = {}
        for change in changes:
            self._by_relation.setdefault(change.relation, []).append(change)
        self._of: dict[frozenset[int], list[RowChange]] = {}

    def of(self, relations: frozenset[int]) -> list[RowChange]:
        """The changes of these relations, the same list whoever asks."""
        known = self._of.get(relations)
        if known is None:
            there = [r for r in self._by_relation if r in relations]
            if len(there) == 1:
                known = self._by_relation[there[0]]
            else:
                known = [change for r in there for change in self._by_relation[r]]
            self._of[relations] = known
        return known


def consolidated(records: Iterable[Record], relations: frozenset[int]) -> list[RowChange]:
    """The net change of every row of these relations over the records."""
    window = Window(records, 0, keyspace.POSITION_MAX, relations)
    return window.stretch(0).of(relations)


def state_before(reader: Reader, changes: Sequence[RowChange], indexes: ParticipantsFor) -> Reader:
    """The tables and their indexes as they were before these changes, which `reader` shows done."""
    overlay: dict[bytes, bytes | None] = {change.key: change.old for change in changes}
    undone = [RowChange(change.key, change.new, change.old) for change in changes]
    writer = DerivedRows(reader)
    for participant in indexes(reader.catalog, frozenset(c.relation for c in undone)):
        participant.writes(undone, reader, writer)
    overlay.update(writer.writes())
    return OverlayReader(reader, overlay, reader.position, reader.catalog)
