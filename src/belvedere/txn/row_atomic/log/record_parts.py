"""Large records in parts: rows of their own, written before the log row that stands for them.

    part 0 .. w-1   the writes, each part a Record with some of them, complete by itself
    part w .. n-1   the body, cut into pieces

So a record of any size is written and applied in pieces of work that are short, and with memory for
one of them. The log row says how many parts are applied: the process that continues, after the
writer has died, begins there. Writing the cells of a part twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from belvedere.errors import Corruption
from belvedere.kv.cell import (
    BeginWork,
    CellDelete,
    Cells,
    CellScan,
    Get,
    Many,
    MultiGet,
    Mutate,
    Now,
    Put,
    ReplyLost,
    Step,
    value_of,
)
from belvedere.txn.row_atomic.cells import data_cells, layout
from belvedere.txn.row_atomic.cells.layout import Parts, Positions, Record, RowWrite
from belvedere.txn.row_atomic.node import Node, send_heartbeat

WRITES_IN_PART = 2048
WRITES_IN_ROW_MAX = 2 * WRITES_IN_PART
"""A record with more writes is one in parts, however small they are: applied whole it might take
longer than one piece of work may."""

PARTS_IN_TRIP = 4


def is_large(record: Record) -> bool:
    return len(record.writes) > WRITES_IN_ROW_MAX


def write_parts(node: Node, record: Record) -> Step[Parts]:
    """Write the parts of a record. ReplyLost when the store does not answer for long."""
    count = writing = 0
    batch: list[Mutate] = []
    for payload in _cut_record(record, node.settings.record_bytes_max):
        framed = layout.frame_payload(layout.UNSPLIT, payload[1])
        row = layout.chunk_row(record.attempt, count)
        batch.append(Mutate(row, (Put(layout.RECORD, layout.ONLY, framed),)))
        count, writing = count + 1, writing + payload[0]
        if len(batch) == PARTS_IN_TRIP:
            yield from _put_again_until_answered(node, batch)
            batch = []
    if batch:
        yield from _put_again_until_answered(node, batch)
    return Parts(
        record.attempt, count, 0, bool(record.body), record.changes_catalog(), writing=writing
    )


def _cut_record(record: Record, limit: int) -> Iterator[tuple[bool, bytes]]:
    """The payload of each part, and whether it holds writes."""
    empty = msgspec.structs.replace(record, writes=(), body=b"")
    for start in range(0, len(record.writes), WRITES_IN_PART):
        for payload in _cut_writes(empty, record.writes[start : start + WRITES_IN_PART], limit):
            empty = msgspec.structs.replace(empty, transaction=b"")  # one outcome cell is enough
            yield True, payload
    for start in range(0, len(record.body), limit):
        yield False, record.body[start : start + limit]


def _cut_writes(empty: Record, writes: tuple[RowWrite, ...], limit: int) -> Iterator[bytes]:
    """Halved until a part fits into a cell. One write always does: what a statement may write to
    one row is less than that."""
    payload = layout.encode(msgspec.structs.replace(empty, writes=writes))
    if len(payload) <= limit or len(writes) == 1:
        yield payload
        return
    half = len(writes) // 2
    yield from _cut_writes(empty, writes[:half], limit)
    rest = msgspec.structs.replace(empty, transaction=b"")
    yield from _cut_writes(rest, writes[half:], limit)


def _put_again_until_answered(node: Node, batch: list[Mutate]) -> Step[None]:
    for tries_left in reversed(range(node.settings.tries_max)):
        yield BeginWork()
        try:
            yield Many(tuple(batch))
            return
        except ReplyLost:
            if not tries_left:
                raise


def remove_parts(attempt: int) -> Step[None]:
    """Remove the parts of an attempt that is over and was not committed."""
    start, end = layout.chunk_row(attempt, 0), layout.chunk_row(attempt + 1, 0)
    while True:
        rows = yield CellScan(start, end, (layout.RECORD,), limit=PARTS_IN_TRIP)
        if not rows:
            return
        gone = (CellDelete(layout.RECORD, layout.ONLY),)
        yield BeginWork()
        yield Many(tuple(Mutate(row, gone) for row, _ in rows))


def read_record(parts: Parts) -> Step[Record]:
    """The complete record."""
    writes: list[RowWrite] = []
    body: list[bytes] = []
    first: Record | None = None
    for start in range(0, parts.count, PARTS_IN_TRIP):
        numbers = range(start, min(start + PARTS_IN_TRIP, parts.count))
        rows = [layout.chunk_row(parts.attempt, number) for number in numbers]
        for number, row, cells in zip(numbers, rows, (yield MultiGet(tuple(map(Get, rows))))):
            payload = read_payload(row, cells)
            if number < parts.writing:
                part = layout.decode(Record, payload, row)
                first = first or part
                writes += part.writes
            else:
                body.append(payload)
    assert first is not None
    return msgspec.structs.replace(first, writes=tuple(writes), body=b"".join(body))


def read_payload(row: bytes, cells: Cells) -> bytes:
    value = value_of(cells, layout.RECORD)
    if value is None:
        raise Corruption("row was altered: part of a log record is missing", row=row.hex())
    return layout.unframe_payload(value, row)[1]


def apply_parts(node: Node, position: int, parts: Parts, done: int) -> Step[bool]:
    """Write the cells of the parts after the first `done` ones. False when others have moved over
    the position meanwhile: then there is nothing left to do. The last piece of work that it began
    may be used to mark the record applied."""
    log_row = layout.log_row(position, node.settings.lanes)
    beaten = yield Now()
    for number in range(done, parts.writing):
        now = yield Now()
        if now - beaten > node.settings.lease_seconds / 5:  # this may be the thread that beats
            yield from send_heartbeat(node)
            beaten = now
        yield BeginWork()
        row = layout.chunk_row(parts.attempt, number)
        stored, cells = yield MultiGet((Get(layout.POSITION_ROW), Get(row)))
        if _read_applied(stored) >= position:
            return False
        part = layout.decode(Record, read_payload(row, cells), row)
        yield Many(tuple(data_cells.record_mutations(position, part)))
        progress = Put(layout.PROGRESS, layout.ONLY, (number + 1).to_bytes(4))
        yield Mutate(log_row, (progress,))
    return True


def _read_applied(cells: Cells) -> int:
    stored = value_of(cells, layout.POSITIONS)
    return 0 if stored is None else layout.decode(Positions, stored, layout.POSITION_ROW).applied


def decode_progress(cells: Cells, row: bytes) -> int:
    """How many parts the log row says are applied."""
    stored = value_of(cells, layout.PROGRESS)
    if stored is not None and len(stored) != 4:
        raise Corruption("row was altered: unknown form", row=row.hex(), form="progress")
    return 0 if stored is None else int.from_bytes(stored)
