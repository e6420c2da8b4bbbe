"""Log rows: one row a position, written once, with a record or with an abort marker.

A position is decided by a write-if-absent of its log row; the first write wins: the record of its
writer, or the abort marker of any other node. So every doubt is resolved in one way: write the
marker if absent, then read which one won. Abort markers are never removed: a writer may wake up
after any time and try.

Below the trim floor an empty log row proves nothing: the record may have been there. Then only the
outcome cell decides, and when that is removed too, the outcome is "unknown", never "aborted".
"""

from __future__ import annotations

from typing import NamedTuple

from belvedere.errors import Corruption, Unavailable
from belvedere.kv.cell import (
    BeginWork,
    Cells,
    CheckAndMutate,
    Get,
    Many,
    MultiGet,
    Mutate,
    Put,
    ReplyLost,
    Step,
    WorkExpired,
    value_of,
)
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import ABORT, Floors, Parts, Record
from belvedere.txn.row_atomic.log import record_parts
from belvedere.txn.row_atomic.node import Node


class LogEntry(NamedTuple):
    """A written log row: a record, or (None) an abort marker."""

    position: int
    owner: bytes
    record: Record | None
    applied: bool
    parts: Parts | None = None
    parts_applied: int = 0


class TrimmedPosition(NamedTuple):
    """A position at or below the trim floor: what was decided is applied, and no longer in the
    log."""

    position: int


def append_operation(node: Node, position: int, record: Record, value: bytes) -> CheckAndMutate:
    """The commit as one operation: our record in the log row, if that is still empty."""
    owner = Put(layout.OWNER, layout.ONLY, owner_of(record.attempt))
    puts = (owner, Put(layout.RECORD, layout.ONLY, value))
    return CheckAndMutate(layout.log_row(position, node.settings.lanes), layout.OWNER, None, puts)


def write_record(node: Node, position: int, record: Record, value: bytes) -> Step[bool]:
    """Commit: write our record to the log row. False when the position was closed before."""
    while True:
        yield BeginWork()
        try:
            won = yield append_operation(node, position, record, value)
        except WorkExpired:
            continue
        except ReplyLost:
            won = False
        return won or (yield from resolve_doubt(node, position, record))


def resolve_doubt(node: Node, position: int, record: Record) -> Step[bool]:
    """Whether our record is at its position, after a lost reply or False (which may be said
    although the write was applied). Unavailable when that cannot be known."""
    row = layout.log_row(position, node.settings.lanes)
    owner = owner_of(record.attempt)
    for _ in range(node.settings.tries_max):
        yield BeginWork()
        try:
            yield from _write_abort_marker(row)
            entry_cells, floor_cells, outcome_cells = yield MultiGet(
                (Get(row), Get(layout.FLOOR_ROW), Get(layout.outcome_row(record.transaction)))
            )
        except (ReplyLost, WorkExpired):
            continue
        entry = read_entry(node, position, entry_cells)
        if entry is not None and entry.owner == owner:
            return True
        if position > decode_floors(floor_cells).log:
            if entry is not None:
                return _is_ours(node, entry, owner)
        elif value_of(outcome_cells, layout.OUTCOME) is not None:
            return True
        else:
            raise unknown_outcome(record.transaction, position)
    raise unknown_outcome(record.transaction, position)


def decide_position(node: Node, position: int) -> Step[LogEntry | TrimmedPosition]:
    """What a position holds, closing it if it holds nothing."""
    row = layout.log_row(position, node.settings.lanes)
    while True:
        cells, floor_cells = yield MultiGet((Get(row), Get(layout.FLOOR_ROW)))
        if position <= decode_floors(floor_cells).log:
            return TrimmedPosition(position)
        entry = read_entry(node, position, cells)
        if entry is not None:
            return entry
        yield from _write_abort_marker(row)


def close_position(node: Node, position: int) -> Step[None]:
    """Write the abort marker to an empty position; a lost reply is resolved by reading."""
    node.counts["closed"] += 1
    try:
        yield from _write_abort_marker(layout.log_row(position, node.settings.lanes))
    except ReplyLost:
        node.counts["closing reply lost"] += 1


def mark_applied(node: Node, position: int) -> Mutate:
    """Note in the log row that all its cells are written. Like these it is sent by a node that
    began its work before a floor could be announced above the position, so it finds the row."""
    row = layout.log_row(position, node.settings.lanes)
    return Mutate(row, (Put(layout.APPLIED, layout.ONLY, layout.YES),))


def read_entry(node: Node, position: int, cells: Cells) -> LogEntry | None:
    """The entry in these cells of a log row. Corruption, naming the row, when it was altered."""
    owner = value_of(cells, layout.OWNER)
    if owner is None:
        return None
    applied = value_of(cells, layout.APPLIED) is not None
    if owner == ABORT:
        return LogEntry(position, owner, None, applied)
    row = layout.log_row(position, node.settings.lanes)
    value = value_of(cells, layout.RECORD)
    if value is None:
        raise Corruption("row was altered: log record is missing", row=row.hex())
    kind, payload = layout.unframe_payload(value, row)
    if kind == layout.IN_PARTS:
        parts = layout.decode(Parts, payload, row)
        body = b"elsewhere" if parts.changes else b""
        writes = (layout.CATALOG_WRITE,) if parts.catalog else ()
        stands_for = Record(parts.attempt, b"", 0, parts.count, writes, body)
        progress = record_parts.decode_progress(cells, row)
        return LogEntry(position, owner, stands_for, applied, parts, progress)
    record = layout.decode(Record, payload, row)
    if owner_of(record.attempt) != owner:
        raise Corruption("row was altered: log record of another owner", row=row.hex())
    return LogEntry(position, owner, record, applied)


def assemble_record(node: Node, entry: LogEntry) -> Step[Record | None]:
    """The complete record of an entry, assembled from its chunk rows when it was large."""
    if entry.record is None or entry.record.transaction:
        return entry.record
    if entry.parts is not None and entry.parts.writing:
        return (yield from record_parts.read_record(entry.parts))
    rows = [layout.chunk_row(entry.record.attempt, n) for n in range(entry.record.time)]
    found = yield MultiGet(tuple(Get(row) for row in rows))
    pieces = [record_parts.read_payload(row, cells) for row, cells in zip(rows, found)]
    return layout.decode(Record, b"".join(pieces), rows[0])


def encode_log_value(node: Node, record: Record) -> Step[bytes]:
    """The value for the log row; a record too large for a cell is written to chunk rows first."""
    if record_parts.is_large(record):
        stands_for = yield from record_parts.write_parts(node, record)
        return layout.frame_payload(layout.IN_PARTS, layout.encode(stands_for))
    payload = layout.encode(record)
    limit = node.settings.record_bytes_max
    if len(payload) <= limit:
        return layout.frame_payload(layout.UNSPLIT, payload)
    parts = [payload[at : at + limit] for at in range(0, len(payload), limit)]
    puts = tuple(
        Mutate(
            layout.chunk_row(record.attempt, number),
            (Put(layout.RECORD, layout.ONLY, layout.frame_payload(layout.UNSPLIT, part)),),
        )
        for number, part in enumerate(parts)
    )
    yield Many(puts)
    stands_for = Parts(
        record.attempt, len(parts), len(payload), bool(record.body), record.changes_catalog()
    )
    return layout.frame_payload(layout.IN_PARTS, layout.encode(stands_for))


def decode_floors(cells: Cells) -> Floors:
    value = value_of(cells, layout.FLOORS)
    return Floors() if value is None else layout.decode(Floors, value, layout.FLOOR_ROW)


def owner_of(attempt: int) -> bytes:
    return attempt.to_bytes(8)


def unknown_outcome(transaction: bytes, position: int) -> Unavailable:
    return Unavailable(
        "outcome of the transaction is unknown",
        sqlstate="08007",
        transaction=transaction.hex(),
        position=position,
    )


def _write_abort_marker(row: bytes) -> Step[None]:
    marker = (Put(layout.OWNER, layout.ONLY, ABORT),)
    yield CheckAndMutate(row, layout.OWNER, None, marker)


def _is_ours(node: Node, entry: LogEntry, owner: bytes) -> bool:
    if entry.owner not in (owner, ABORT):
        row = layout.log_row(entry.position, node.settings.lanes)
        raise Corruption("row was altered: position taken by somebody else", row=row.hex())
    return entry.owner == owner
