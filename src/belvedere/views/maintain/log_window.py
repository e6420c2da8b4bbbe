"""A window of the log, read, decoded and consolidated once for all views that need it.

The window consolidates the changes of the wanted relations while it reads them: the net change of
every row. It is split at the watermarks of the units, so that each unit gets the log range after
its own; units at one position share one range, and views over the same tables one list of changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

from belvedere.codec import keyspace
from belvedere.codec.record import PlainChange, change_count, decode_record, record_position
from belvedere.codec.single_change_record import single_change
from belvedere.txn.contracts import ParticipantsFor, Reader, RowChange, new_tuple
from belvedere.views.operators.operator import DerivationCache

PEEKED_BYTES_MAX = 256 * 2**20
"""The most log bytes that are read ahead to count changes before they are decoded."""

_NetChanges = dict[int, dict[bytes, RowChange]]
"""By relation and full store key. A row that was changed back to its old value is still in it."""


class LogWindow:
    """The changes after each of `starts`, through `through`. Not thread-safe."""

    def __init__(
        self,
        batches: Iterable[list[bytes]],
        starts: Iterable[int],
        through: int,
        relations: frozenset[int],
    ) -> None:
        """`batches` are the log's records after the first of `starts`, encoded."""
        self.through = through
        self._starts = sorted(set(starts))
        self._nets: list[_NetChanges] = [{r: {} for r in relations} for _ in self._starts]
        self._counts = [0] * len(self._starts)
        self._moves = [False] * len(self._starts)
        self._ranges: dict[int, LogRange] = {}
        self._consolidate_records(batches, {r: keyspace.row_prefix(r) for r in relations})

    def _consolidate_records(
        self, batches: Iterable[list[bytes]], prefixes: dict[int, bytes]
    ) -> None:
        ends, at = [*self._starts[1:], keyspace.POSITION_MAX], 0
        net, end, count, moves = self._nets[0], ends[0], 0, self._moves
        for batch in batches:
            for data in batch:
                position, changes = _decode_record_changes(data)
                while position > end:
                    self._counts[at], count, at = count, 0, at + 1
                    net, end = self._nets[at], ends[at]
                for relation, key, old, new in changes:
                    moves[at] = True
                    rows = net.get(relation)
                    if rows is None:
                        continue
                    count += 1
                    key = prefixes[relation] + key
                    known = rows.get(key)
                    if known is not None:
                        old = known[1]
                    rows[key] = new_tuple(RowChange, (key, old, new, 0))
        self._counts[at] = count

    def has_changes_after(self, start: int) -> bool:
        """Whether any row changed after `start`; maintenance itself may write records without
        changes."""
        return any(self._moves[self._starts.index(start) :])

    def get_log_range_after(self, start: int) -> LogRange:
        """The net changes in start < position <= through."""
        known = self._ranges.get(start)
        if known is None:
            at = self._starts.index(start)
            nets = self._nets[at:]
            net = nets[0] if len(nets) == 1 else _merge_net_changes(nets)
            logged = sum(self._counts[at:])
            known = self._ranges[start] = LogRange(net, logged)
        return known


class RecordLookahead:
    """Log records with look-ahead: the head of a record tells its number of changes, so that
    changes can be counted before any record is decoded."""

    def __init__(self, batches: Iterable[list[bytes]], known_changes: int | None = None) -> None:
        """`known_changes`: how many there are, where somebody has counted them before."""
        self._batches = iter(batches)
        self._buffered: list[list[bytes]] = []
        self._is_counted = known_changes is not None
        self.counted_changes = known_changes or 0

    def has_at_least_changes(self, changes: float) -> bool:
        """Whether there are at least so many changes. Reads no more than needed to know."""
        if changes == math.inf or self._is_counted:
            return self.counted_changes >= changes
        size = 0
        while self.counted_changes < changes and size < PEEKED_BYTES_MAX:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._buffered.append(batch)
            self.counted_changes += sum(map(change_count, batch))
            size += sum(map(len, batch))
        return self.counted_changes >= changes

    def try_buffer_until(self, position: int) -> bool:
        """Read ahead to a position; False when that is more than is read ahead."""
        size = sum(len(data) for batch in self._buffered for data in batch)
        while not self._buffered or record_position(self._buffered[-1][-1]) < position:
            if size >= PEEKED_BYTES_MAX:
                return False
            batch = next(self._batches, None)
            if batch is None:
                break
            self._buffered.append(batch)
            size += sum(map(len, batch))
        return True

    def read_batches_until(self, position: int) -> Iterator[list[bytes]]:
        """All the records up to a position."""
        for batch in itertools.chain(self._buffered, self._batches):
            if record_position(batch[-1]) <= position:
                yield batch
                continue
            yield [data for data in batch if record_position(data) <= position]
            return


def _decode_record_changes(data: bytes) -> tuple[int, Iterable[PlainChange]]:
    """The position of an encoded record, and its changes."""
    found = single_change(data)
    if found is not None:
        return found[0], (found[1:],)
    record = decode_record(data)
    return record.position, record.list_changes()


def _merge_net_changes(nets: Sequence[_NetChanges]) -> _NetChanges:
    found: _NetChanges = {}
    for net in nets:
        for relation, rows in net.items():
            mine = found.setdefault(relation, {})
            for key, change in rows.items():
                known = mine.get(key)
                old = change.old if known is None else known.old
                mine[key] = new_tuple(RowChange, (key, old, change.new, 0))
    return found


class LogRange:
    """The net change of every row between two positions. `logged` counts the logged changes, and
    `shared` caches what the views maintained from this range compute once for all of them."""

    def __init__(self, net: _NetChanges, logged: int) -> None:
        self.logged = logged
        self.shared: dict[object, object] = {}
        self._by_relation = {
            relation: [change for change in rows.values() if change[1] != change[2]]
            for relation, rows in net.items()
        }
        self.relations = self._by_relation.keys()
        self._of: dict[frozenset[int], list[RowChange]] = {}

    def get_changes_of_relations(self, relations: frozenset[int]) -> list[RowChange]:
        """The changes of these relations, the same list at every call."""
        known = self._of.get(relations)
        if known is None:
            there = [r for r in self._by_relation if r in relations]
            if len(there) == 1:
                known = self._by_relation[there[0]]
            else:
                known = [change for r in there for change in self._by_relation[r]]
            self._of[relations] = known
        return known


def consolidate_net_changes(
    batches: Iterable[list[bytes]], after: int, relations: frozenset[int]
) -> list[RowChange]:
    """The net change of every row of these relations over the log after a position."""
    return (
        LogWindow(batches, (after,), keyspace.POSITION_MAX, relations)
        .get_log_range_after(after)
        .get_changes_of_relations(relations)
    )


def build_reader_before_changes(
    reader: Reader, changes: Sequence[RowChange], indexes: ParticipantsFor
) -> Reader:
    """The tables and their indexes before these changes, which are already visible at `reader`."""
    undone = [RowChange(change.key, change.new, change.old) for change in changes]
    return DerivationCache(undone, reader).build_state_after(indexes)
