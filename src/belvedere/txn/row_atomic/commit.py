"""The commit of one transaction, step by step.

    1  take the locks, primary first; then re-read catalog version, floors and every row to write
    2  only then take a position from the counter
    3  stamp the primary lock with it: fails if another node broke the lock
    4  write the log row: this is the commit. If it was closed before: keep the locks, go to 2
    -  acknowledge
    5  write the cells and the outcome cell; mark the record applied, release the locks, and move
       `applied` on if it was just before this position

With one lock: five sequential round trips before the acknowledgement, two after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from belvedere.errors import Corruption, Error, Retry
from belvedere.kv.cell import (
    Acknowledge,
    BeginWork,
    Cells,
    CellScan,
    Get,
    Increment,
    Many,
    MultiGet,
    Mutate,
    Now,
    ReplyLost,
    Step,
    WorkExpired,
)
from belvedere.txn.row_atomic import load_holds, locks
from belvedere.txn.row_atomic.cells import data_cells, layout
from belvedere.txn.row_atomic.cells.layout import ADD, PUT, Record, RowWrite
from belvedere.txn.row_atomic.locks import AttemptLocks, RowLock
from belvedere.txn.row_atomic.log import advance, log_rows, record_parts
from belvedere.txn.row_atomic.node import Node

ROWS_IN_ONE_TRIP = 2048


@dataclass(frozen=True, slots=True)
class RowExpectation:
    """A row that must (or must not) exist when the locks are held."""

    row: bytes
    present: bool
    otherwise: Error


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """All that a commit needs to know of a transaction. `derive` runs once the locks are held:
    writes to rows that others may have changed since the snapshot, computed from the newest rows.
    `seen`: rows that were read at a later position than `snapshot`."""

    transaction: bytes
    snapshot: int
    version: int
    locks: tuple[RowLock, ...]
    writes: tuple[RowWrite, ...]
    expects: tuple[RowExpectation, ...] = ()
    derive: Callable[[], Step[tuple[RowWrite, ...]]] | None = None
    body: bytes = b""
    time: int = 0
    seen: Mapping[bytes, int] = field(default_factory=dict)


def commit_transaction(node: Node, work: CommitRequest) -> Step[int]:
    """The position of the commit. Retry: nothing happened, run the transaction again. Unavailable
    08007: the outcome is unknown."""
    held = AttemptLocks(node.start_attempt(), work.version)
    try:
        record = yield from prepare_commit(node, held, work)
        return (yield from complete_commit(node, held, record))
    finally:
        node.end_attempt(held.attempt)


def prepare_commit(node: Node, held: AttemptLocks, work: CommitRequest) -> Step[Record]:
    """Step 1. Every lock is held and everything seen is still so; otherwise nothing is held."""
    try:
        yield from locks.take_locks(node, held, work.locks, advance.finish_attempt)
        writes = yield from verify_rows(node, held, work)
        if work.derive is not None:
            writes += yield from work.derive()
    except (ReplyLost, WorkExpired) as lost:
        yield from locks.release_locks(node, held)
        raise Retry("store does not answer") from lost
    except Error:
        yield from locks.release_locks(node, held)
        raise
    return Record(held.attempt, work.transaction, work.version, work.time, writes, work.body)


def verify_rows(node: Node, held: AttemptLocks, work: CommitRequest) -> Step[tuple[RowWrite, ...]]:
    """The writes, completed with what the stored rows say, if nothing moved since the snapshot."""
    rows = {write.row: None for write in work.writes if write.kind != ADD}
    rows.update((expect.row, None) for expect in work.expects)
    few = list(rows) if len(rows) <= ROWS_IN_ONE_TRIP else []
    gets = [Get(layout.CATALOG_ROW), Get(layout.FLOOR_ROW)]
    found = yield from _read_cells(node, gets + [Get(row, (data_cells.MARKER,)) for row in few])
    _check_catalog_and_floor(work, found[0], found[1])
    load_holds.require_not_held(found[0], rows, held.attempt)
    markers = dict(zip(few, found[2:]))
    if len(markers) < len(rows):
        markers = yield from _read_many_markers(node, sorted(rows))
    for row, marker in markers.items():
        if marker and marker[0].timestamp > held.newest[0]:
            held.newest = (marker[0].timestamp, row)
    for expect in work.expects:
        if _is_alive(expect.row, markers[expect.row]) != expect.present:
            raise expect.otherwise
    return tuple(_complete_write(work, write, markers.get(write.row, ())) for write in work.writes)


def _read_many_markers(node: Node, rows: list[bytes]) -> Step[dict[bytes, Cells]]:
    """The markers of rows in tables that are held. Nearly always they are new rows, in ranges where
    there are none: to see that, one row is asked for."""
    markers: dict[bytes, Cells] = {}
    for start in range(0, len(rows), ROWS_IN_ONE_TRIP):
        some = rows[start : start + ROWS_IN_ONE_TRIP]
        between = CellScan(some[0], some[-1] + b"\x00", (data_cells.MARKER,), limit=1)
        if (yield from _read_again_until_answered(node, between)):
            gets = [Get(row, (data_cells.MARKER,)) for row in some]
            markers.update(zip(some, (yield from _read_cells(node, gets))))
        else:
            markers.update((row, ()) for row in some)
    return markers


def _read_cells(node: Node, gets: list[Get]) -> Step[tuple[Cells, ...]]:
    found: tuple[Cells, ...] = yield from _read_again_until_answered(node, MultiGet(tuple(gets)))
    return found


def _read_again_until_answered(node: Node, wanted: MultiGet | CellScan) -> Step[Any]:
    for _ in range(node.settings.tries_max):
        try:
            return (yield wanted)
        except ReplyLost:
            continue
    raise Retry("store does not answer")


def _check_catalog_and_floor(work: CommitRequest, catalog: Cells, floor_cells: Cells) -> None:
    version = layout.read_number(catalog, layout.VERSION, layout.CATALOG_ROW)
    if version != work.version:
        raise Retry("catalog changed", seen=work.version, found=version)
    floor = log_rows.decode_floors(floor_cells).versions
    if work.snapshot < floor:
        raise Retry("snapshot too old", lost_to=floor, snapshot=work.snapshot, floor=floor)


def _complete_write(work: CommitRequest, write: RowWrite, marker: Cells) -> RowWrite:
    if not marker or write.kind == ADD:
        return write
    if marker[0].timestamp > work.seen.get(write.row, work.snapshot):
        raise Retry("row was changed", lost_to=marker[0].timestamp, row=write.row.hex())
    born = data_cells.born_of(write.row, marker[0].value)
    if write.kind != PUT or born is None:
        return write
    return RowWrite(write.row, PUT, write.cells, born)


def _is_alive(row: bytes, marker: Cells) -> bool:
    return bool(marker) and data_cells.born_of(row, marker[0].value) is not None


def complete_commit(node: Node, held: AttemptLocks, record: Record) -> Step[int]:
    """Steps 2 to 5: the position of the commit."""
    position = yield from append_record(node, held, record)
    yield Acknowledge(position)
    yield from _apply_and_release(node, held, record, position)
    return position


def append_record(node: Node, held: AttemptLocks, record: Record) -> Step[int]:
    """Steps 2 to 4: the position of the commit, which stands from here on. When the outcome is
    unknown the locks stay: a node that needs them resolves it. A lost reply that arrives here was
    not that of the commit."""
    try:
        value = yield from _encode_record(node, record)
        return (yield from _append_to_log(node, held, record, value))
    except (ReplyLost, WorkExpired) as lost:
        yield from locks.release_locks(node, held)
        raise Retry("store does not answer") from lost
    except (Retry, Corruption):
        yield from locks.release_locks(node, held)
        raise


def _encode_record(node: Node, record: Record) -> Step[bytes]:
    yield BeginWork()
    try:
        return (yield from log_rows.encode_log_value(node, record))
    except (ReplyLost, WorkExpired) as lost:
        raise Retry("store does not answer") from lost


def _append_to_log(node: Node, held: AttemptLocks, record: Record, value: bytes) -> Step[int]:
    while True:
        started = yield Now()
        position = yield from take_position(node)
        if held.newest[0] >= position:
            row = held.newest[1].hex()
            raise Corruption("row was altered: cell newer than the counter", row=row)
        yield from locks.stamp_primary(node, held, position)
        committed = yield from log_rows.write_record(node, position, record, value)
        seconds = (yield Now()) - started
        if committed:
            node.observe_commit(seconds)
            return position
        yield from _raise_closing_delay(node, seconds)


def take_position(node: Node) -> Step[int]:
    """A position of this attempt only. One that is lost with a reply stays empty until it is
    closed."""
    for _ in range(node.settings.tries_max):
        yield BeginWork()
        try:
            position: int = yield Increment(layout.COUNTER_ROW, layout.NUMBER)
            return position
        except (ReplyLost, WorkExpired):
            continue
    raise Retry("store does not answer")


def _raise_closing_delay(node: Node, seconds: float) -> Step[None]:
    """A live writer was closed: raise the shared closing delay above the time this took."""
    node.counts["live writers closed"] += 1
    _, _, shared = yield from advance.read_positions()
    longer = min(max(2 * shared, 2 * seconds), node.settings.lease_seconds)
    if longer > shared:
        try:
            yield Mutate(layout.POSITION_ROW, (advance.closing_delay_put(longer),))
        except (ReplyLost, WorkExpired):
            node.counts["delay hint lost"] += 1


def _apply_and_release(node: Node, held: AttemptLocks, record: Record, position: int) -> Step[None]:
    """Step 5. The commit stands whatever happens here; other nodes do what is left undone."""
    if record_parts.is_large(record):
        yield from apply_and_release_again(node, held, position)
        return
    try:
        released = yield from apply_records(node, [(held, position, record)])
        for row in released:
            yield from locks.remove_holder(row, held.attempt)
    except (ReplyLost, WorkExpired):
        yield from apply_and_release_again(node, held, position)


def apply_records(
    node: Node, done: Sequence[tuple[AttemptLocks, int, Record]]
) -> Step[list[bytes]]:
    """Write the cells of committed records, by position; then mark them applied, release their
    locks and move `applied` on. Returns the lock rows that others have changed meanwhile."""
    mutations = [
        m for _, position, record in done for m in data_cells.record_mutations(position, record)
    ]
    cells = yield from advance.write_cells_and_read_positions(mutations)
    move = advance.build_advance(node, cells, [(position, record) for _, position, record in done])
    marks = [log_rows.mark_applied(node, position) for _, position, _ in done]
    releases = [each for held, _, _ in done for each in locks.release_operations(held)]
    rows = [row for held, _, _ in done for row in held.values]
    started = yield Now()
    answers = yield Many((*marks, *releases, *((move[0],) if move is not None else ())))
    if move is not None and answers[-1]:
        node.note_positions(move[1], started)
    given = answers[len(marks) : len(marks) + len(rows)]
    return [row for row, answer in zip(rows, given) if not locks.is_given_back(answer)]


def apply_and_release_again(node: Node, held: AttemptLocks, position: int) -> Step[bool]:
    """Step 5 after a lost reply, or of a large record: read what is there, and do the rest. False
    when it is left to others."""
    for _ in range(node.settings.tries_max):
        yield BeginWork()
        try:
            yield from advance.finish_attempt(node, held.attempt, position)
            yield from locks.release_locks(node, held)
            return True
        except (ReplyLost, WorkExpired):
            continue
    node.counts["commits left to others"] += 1
    return False


def read_outcome(node: Node, transaction: bytes) -> Step[int | None]:
    """The position a transaction committed at; None when that is not known (never: "aborted")."""
    yield from advance.latest_position(node)
    row = layout.outcome_row(transaction)
    found = layout.read_number((yield Get(row)), layout.OUTCOME, row)
    return found or None
