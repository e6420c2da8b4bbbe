"""The change log of a row-atomic store: reading, consumers and trimming.

Records are assembled from log rows, in position order over all lanes; positions that were closed
and records that changed no table (batches of view maintenance) are left out. Trimming is
`remove_consumer`: floors are announced, the grace is waited out, and then they act.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

from belvedere.codec import accumulator, keyspace
from belvedere.codec.record import HASH_BYTES, LogRecord, decode_record
from belvedere.errors import InvalidInput
from belvedere.kv.cell import BeginWork, CellDelete, CellScan, Get, MultiGet, Mutate, Put, Step
from belvedere.txn.contracts import PublishedState, RecordAdditions
from belvedere.txn.history.log_reads import arrow_batches, follow_log, require_in_log
from belvedere.txn.row_atomic.cells import data_cells as data
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import Floors
from belvedere.txn.row_atomic.cells.placement import key_of
from belvedere.txn.row_atomic.commit_protocol import RowCommit
from belvedere.txn.row_atomic.housekeeping import fold, vacuum
from belvedere.txn.row_atomic.log import log_rows
from belvedere.txn.row_atomic.node import Node

if TYPE_CHECKING:
    import pyarrow as pa

_CONSUMER = "consumer/"
_DATA_START, _DATA_END = b"\x03", b"\x12"
_ROWS_AT_ONCE = 128
_POSITION_AT = 12
_position = struct.Struct("<Q")
_hash = struct.Struct("<Q")


class CellChangeLog:
    def __init__(self, commits: RowCommit, visibility: PublishedState, retention_max: int) -> None:
        self._commits = commits
        self._visibility = visibility
        self._retention_max = retention_max
        self._mutex = threading.Lock()
        self._pins: dict[int, int] = {}
        self._pin_number = 0
        self.lost_consumers: set[str] = set()

    @property
    def additions(self) -> CellChangeLog:
        """Records hold every cell that their commits write."""
        return self

    @property
    def last_position(self) -> int:
        return self._commits.newest_snapshot.position

    @property
    def first_position(self) -> int:
        return self._current_floors().log + 1

    def _current_floors(self) -> Floors:
        return self._commits.run_repeatable(_read_floors)

    # -- reading ------------------------------------------------------------------------------

    def read(self, after: int, through: int | None = None) -> Iterator[LogRecord]:
        """The records themselves; each is verified."""
        last = self._commits.newest_snapshot.position
        through = last if through is None else min(through, last)
        self._require_available(after, through)
        node = self._commits.node
        while after < through:
            upto = min(through, after + node.settings.log_batch)
            wanted = range(after + 1, upto + 1)
            found = self._commits.run_repeatable(lambda wanted=wanted: _read_bodies(node, wanted))  # type: ignore[misc]
            self._require_available(after, upto)  # what was trimmed in between was not seen
            for position, record in found:
                yield _with_position(position, record)
            after = upto

    read_written = read

    def read_bytes(
        self, after: int, through: int | None = None, *, batch_rows: int = 1024
    ) -> Iterator[list[bytes]]:
        batch: list[bytes] = []
        for record in self.read(after, through):
            batch.append(record.data)
            if len(batch) >= batch_rows:
                yield batch
                batch = []
        if batch:
            yield batch

    def read_additions(
        self, start: bytes, end: bytes, after: int, through: int
    ) -> Iterator[tuple[int, RecordAdditions]]:
        """What each record after a position has added to the sums of a range of keys: (key,
        payload, amounts). Records that changed no table are among them."""
        self._require_available(after, through)
        node = self._commits.node
        while after < through:
            upto = min(through, after + node.settings.log_batch)
            wanted = range(after + 1, upto + 1)
            found = self._commits.run_repeatable(lambda wanted=wanted: _read_records(node, wanted))  # type: ignore[misc]
            self._require_available(after, upto)
            for position, record in found:
                added = [(key_of(w.row), w) for w in record.writes if w.kind == layout.ADD]
                mine = [(key, w) for key, w in added if start <= key < end]
                if mine:
                    yield position, tuple([(key, *accumulator.decode(w.sum)) for key, w in mine])
            after = upto

    def read_arrow(
        self, after: int, through: int | None = None, *, batch_rows: int = 8192
    ) -> Iterator[pa.RecordBatch]:
        """One row a change: position, time, transaction, relation, kind, key, old, new."""
        return arrow_batches(self.read_bytes(after, through, batch_rows=batch_rows))

    def tail(self, after: int, timeout_s: float | None = None) -> Iterator[LogRecord]:
        """The records after `after`, waiting for one when there is none yet; ends when nothing came
        for `timeout_s`."""
        return follow_log(self, self._visibility, after, timeout_s)

    def _require_available(self, after: int, through: int) -> None:
        require_in_log(after, through, self.first_position)

    # -- consumers and trimming ---------------------------------------------------------------

    @property
    def consumers(self) -> dict[str, int]:
        return self._commits.run_repeatable(_read_consumers)

    def advance_consumer(self, name: str, position: int) -> None:
        """Remember that consumer `name` has applied everything up to `position`."""
        with self._mutex:
            known = self.consumers.get(name, 0)
            if position < known:
                raise InvalidInput("a consumer cannot go back", name=name, at=known)
            put = Put(layout.CONSUMED, layout.ONLY, position.to_bytes(8))
            self._commits.run_repeatable(lambda: _mutate_row(_consumer_row(name), put))

    def remove_consumer(self, name: str) -> None:
        with self._mutex:
            gone = CellDelete(layout.CONSUMED, layout.ONLY)
            self._commits.run_repeatable(lambda: _mutate_row(_consumer_row(name), gone))
            self.lost_consumers.discard(name)

    def pin(self, position: int) -> int:
        """Keep everything after `position` while this process lives; give back with `unpin`."""
        with self._mutex:
            if position < self.last_position:
                self._require_available(position, self.last_position)
            self._pin_number += 1
            self._pins[self._pin_number] = position
        self._commits.node.open_snapshot(position)
        self._commits.send_heartbeat()  # the others learn of it before they move a floor
        return self._pin_number

    def unpin(self, pin: int) -> None:
        with self._mutex:
            position = self._pins.pop(pin)
        self._commits.node.close_snapshot(position)

    def trim(self, through: int) -> int:
        """Forget records, and versions of rows, up to `through`, but nothing that a consumer, a
        watermark or an open snapshot still needs, and the outcomes of what was trimmed before;
        returns the position trimmed through. Takes the grace."""
        floor = min([through, self.last_position - 1, *self._retained_positions(through)])
        if floor >= self.first_position:
            node, before = self._commits.node, self._current_floors()
            self._commits.run_repeatable(lambda: vacuum.forget_outcomes(before.trimmed))
            self._commits.send_heartbeat()
            self._fold_sums()
            self._commits.run_repeatable(
                lambda: vacuum.vacuum_and_trim(node, _DATA_START, _DATA_END, floor, floor)
            )
        return self.first_position - 1

    def vacuum(self, through: int) -> int:
        """Fold sums, then forget versions of rows that only snapshots up to `through` could see,
        but none that a consumer, a watermark or an open snapshot still needs. The log stays.
        Returns the position reached; takes the grace."""
        floor = min([through, self.last_position - 1, *self._retained_positions(through)])
        if floor <= self._current_floors().versions:
            return floor
        node = self._commits.node
        self._commits.send_heartbeat()
        self._fold_sums()
        self._commits.run_repeatable(
            lambda: vacuum.vacuum_and_trim(node, _DATA_START, _DATA_END, floor, 0)
        )
        return floor

    def _retained_positions(self, through: int) -> list[int]:
        cap = self.last_position - self._retention_max
        consumers = self.consumers
        self.lost_consumers |= {name for name, at in consumers.items() if at < min(cap, through)}
        held = [at for name, at in consumers.items() if name not in self.lost_consumers]
        snapshot = self._commits.published_snapshot()
        reader = self._commits.reader(snapshot)
        for values in reader.scan_values(*keyspace.watermark_range()):
            held += [int.from_bytes(value) for value in values]
        return held

    def _fold_sums(self) -> None:
        """Fold every sum that has delta cells, so that the deltas can be removed."""
        start = keyspace.row_prefix(keyspace.USER_RELATIONS_FROM)
        for row in self._commits.run_repeatable(lambda: _rows_with_deltas(start, _DATA_END)):
            self._commits.run_repeatable(lambda row=row: fold.fold_row(row))  # type: ignore[misc]


def _read_floors() -> Step[Floors]:
    return log_rows.decode_floors((yield Get(layout.FLOOR_ROW)))


def _read_bodies(node: Node, positions: range) -> Step[list[tuple[int, bytes]]]:
    rows = tuple(Get(layout.log_row(p, node.settings.lanes)) for p in positions)
    found = []
    for position, cells in zip(positions, (yield MultiGet(rows))):
        entry = log_rows.read_entry(node, position, cells)
        if entry is not None and entry.record is not None and entry.record.body:
            record = yield from log_rows.assemble_record(node, entry)
            assert record is not None
            found.append((position, record.body))
    return found


def _read_records(node: Node, positions: range) -> Step[list[tuple[int, layout.Record]]]:
    """The records at these positions, with all they write."""
    rows = tuple(Get(layout.log_row(p, node.settings.lanes)) for p in positions)
    found = []
    for position, cells in zip(positions, (yield MultiGet(rows))):
        entry = log_rows.read_entry(node, position, cells)
        record = None if entry is None else (yield from log_rows.assemble_record(node, entry))
        if record is not None:
            found.append((position, record))
    return found


def _with_position(position: int, body: bytes) -> LogRecord:
    """The record with its position written into its header, which was not known when it was encoded
    (`codec.record` has the offset)."""
    decode_record(body)  # as it was written
    told = body[HASH_BYTES:_POSITION_AT] + _position.pack(position) + body[_POSITION_AT + 8 :]
    return decode_record(_hash.pack(xxh3_64_intdigest(told)) + told)


def _read_consumers() -> Step[dict[str, int]]:
    start = keyspace.meta_key(_CONSUMER)
    found = {}
    for row, cells in (yield CellScan(start, keyspace.next_prefix(start), (layout.CONSUMED,))):
        name = row[len(start) :].decode()
        found[name] = layout.read_number(cells, layout.CONSUMED, row)
    return found


def _consumer_row(name: str) -> bytes:
    return keyspace.meta_key(_CONSUMER + name)


def _mutate_row(row: bytes, change: Put | CellDelete) -> Step[None]:
    yield BeginWork()
    yield Mutate(row, (change,))


def _rows_with_deltas(start: bytes, end: bytes) -> Step[list[bytes]]:
    """The rows of a range that have delta cells."""
    found: list[bytes] = []
    while True:
        rows = yield CellScan(start, end, (data.DELTA,), limit=_ROWS_AT_ONCE)
        found += [row for row, _ in rows]
        if len(rows) < _ROWS_AT_ONCE:
            return found
        start = rows[-1][0] + b"\x00"
