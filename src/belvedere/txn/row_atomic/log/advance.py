"""Advancing the decided and applied positions: done by any node that needs it, for all of them.

Positions are dense, so one multi-get reads the next ones. An empty one is waited for, then closed;
a record whose cells are not marked written is applied again, which changes nothing if they were. A
reader reads cells as of `applied` and therefore never sees half a transaction.

Nothing at or below `applied` is ever applied again, and a helper acts only on what it read within
the work limit: floors depend on this (see `txn.row_atomic.housekeeping.vacuum`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from belvedere.errors import Corruption, Unavailable
from belvedere.kv.cell import (
    BeginWork,
    Cells,
    CheckAndMutate,
    Get,
    Many,
    MultiGet,
    Mutate,
    Now,
    Pause,
    Put,
    ReplyLost,
    Step,
    WorkExpired,
    value_of,
)
from belvedere.txn.row_atomic.cells import data_cells as data
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import Positions, Record
from belvedere.txn.row_atomic.log import log_rows, record_parts
from belvedere.txn.row_atomic.log.log_rows import LogEntry, TrimmedPosition
from belvedere.txn.row_atomic.node import Node

WRITES_IN_ONE_TRIP = 256
_seconds = struct.Struct(">d")


def snapshot_position(node: Node, at_least: int = 0) -> Step[int]:
    """A position to read at: everything up to it is applied."""
    positions, _, _ = yield from read_positions()
    if positions.applied >= at_least:
        return positions.applied
    return (yield from apply_through(node, at_least))


def reach_positions(node: Node, at_least: int) -> Step[Positions]:
    """The positions of the store, once everything up to `at_least` is applied."""
    while True:
        positions, _, _ = yield from read_positions()
        if positions.applied >= at_least:
            return positions
        yield from apply_through(node, at_least)


def last_position_taken() -> Step[int]:
    """The last position that any attempt took."""
    return layout.read_number((yield Get(layout.COUNTER_ROW)), layout.NUMBER, layout.COUNTER_ROW)


def latest_position(node: Node) -> Step[int]:
    """A position not older than any commit acknowledged before this began."""
    return (yield from reach_latest(node)).applied


def reach_latest(node: Node) -> Step[Positions]:
    """The positions of the store, once everything is applied that was acknowledged before this
    began: one round trip when nobody writes."""
    read = yield MultiGet((Get(layout.POSITION_ROW), Get(layout.COUNTER_ROW)))
    positions, _, _ = decode_positions(read[0])
    counter = layout.read_number(read[1], layout.NUMBER, layout.COUNTER_ROW)
    if positions.applied > counter:  # both moved, between the two reads
        counter = yield from last_position_taken()
    if positions.applied > counter:
        raise Corruption(
            "row was altered: more was applied than handed out",
            row=layout.POSITION_ROW.hex(),
            applied=positions.applied,
            counter=counter,
        )
    if positions.applied == counter:
        return positions
    return (yield from reach_positions(node, counter))


def apply_open(node: Node) -> Step[None]:
    """Help with every position that was handed out, up to the first large record whose writer gets
    on by itself: that may take longer than a node may be silent."""
    yield from apply_through(node, (yield from last_position_taken()), waits=False)


def apply_through(node: Node, need: int, *, waits: bool = True) -> Step[int]:
    """Help until everything up to `need`, a position that was handed out, is applied. Many nodes
    wait for positions of each other, and one of them moves `applied` for all: who was late the last
    times looks again after a moment, and helps only when nobody gets on meanwhile."""
    failures, seen = 0, -1
    while True:
        yield BeginWork()
        try:
            reached, seen = yield from _help_apply(node, need, seen)
        except (ReplyLost, WorkExpired) as failure:
            failures += 1
            if failures > node.settings.tries_max:
                raise Unavailable("store does not answer", position=need) from failure
            continue
        if reached >= need or (node.progress and not waits):
            return reached


def _help_apply(node: Node, need: int, seen: int) -> Step[tuple[int, int]]:
    """What is applied as far as is known, and as what the next try should find it if nobody else
    helps; `seen`: that of the last try."""
    positions, stored, shared = yield from read_positions()
    node.forget_up_to(positions.applied)
    if positions.applied >= need:
        if seen >= 0:
            node.note_advanced_by_others()
        return positions.applied, positions.applied
    if positions.applied != seen and (wait := node.draw_advance_wait()):
        yield Pause(wait)
        return positions.applied, positions.applied
    wanted = node.choose_log_range(positions.applied, need)
    rows = tuple(Get(layout.log_row(p, node.settings.lanes)) for p in wanted)
    moved = positions
    for position, cells in zip(wanted, (yield MultiGet(rows))):
        entry = log_rows.read_entry(node, position, cells)
        if position > need and (entry is None or _is_unmarked(entry)):
            break  # nobody waits for it here
        if entry is None:
            yield from _wait_or_close(node, position, shared)
            break
        if _is_unmarked(entry) and node.note_unapplied(position) and node.closing_delay(shared) > 0:
            yield Pause(node.poll_delay(shared) / 2)
            break
        if (yield from _is_applied_by_another(node, entry)):
            yield Pause(node.settings.work_seconds_max / 20)
            break
        yield from apply_entry(node, entry)
        moved = moved.move_over(position, entry.record)
        if entry.parts is not None:
            break  # it took long: what was read before it is too old to act on
    if moved.applied > positions.applied:
        won = yield _move_operation(node, stored, moved, shared)
        node.note_advance(won=won)
        if won or moved.applied >= need:
            return moved.applied, moved.applied
    return positions.applied, positions.applied


def _wait_or_close(node: Node, position: int, shared: float) -> Step[None]:
    """An empty position: its writer is still at work, or dead. Time in which this process or the
    store stood still does not count: the writer could not have progressed either."""
    delay = node.closing_delay(shared)
    now = yield Now()
    waited, seen = node.holes.get(position, (0.0, now))
    waited += min(now - seen, 1.5 * max(delay / 4, 0.001))
    node.holes[position] = (waited, now)
    if waited >= delay:
        yield from log_rows.close_position(node, position)
    else:
        yield Pause(min(delay - waited, node.poll_delay(shared)))


def _is_unmarked(entry: LogEntry) -> bool:
    """A record whose cells are not marked written. When it is met for the first time, its writer
    is most likely writing them now, so it pays to read once more before helping."""
    return entry.record is not None and not entry.applied


def _is_applied_by_another(node: Node, entry: LogEntry) -> Step[bool]:
    """Whether a large record gets on without our help. Who writes its cells says so after every
    part; a part that takes longer than a piece of work may is one of a writer that is gone."""
    if entry.applied or entry.parts is None or not entry.parts.writing:
        return False
    now: float = yield Now()
    progress, since = node.progress.get(entry.position, (-1, now))
    if progress != entry.parts_applied:
        since = now
    node.progress[entry.position] = (entry.parts_applied, since)
    return now - since < node.settings.work_seconds_max


def apply_entry(node: Node, entry: LogEntry) -> Step[None]:
    """Write the cells of a record, unless they are marked as written."""
    if entry.record is None or entry.applied:
        return
    if entry.parts is not None and entry.parts.writing:
        at, done = entry.position, entry.parts_applied
        if (yield from record_parts.apply_parts(node, at, entry.parts, done)):
            yield log_rows.mark_applied(node, at)
        return
    try:
        record = yield from log_rows.assemble_record(node, entry)
    except Corruption:
        # A trim takes the parts away, long after others have moved over the record: whoever slept
        # since it read the log row finds none, and has nothing to do.
        positions, _, _ = yield from read_positions()
        if positions.applied < entry.position:
            raise
        return
    assert record is not None
    node.counts["records applied for others"] += 1
    yield from write_cells(entry.position, record)
    yield log_rows.mark_applied(node, entry.position)


def write_cells(position: int, record: Record) -> Step[None]:
    mutations = data.record_mutations(position, record)
    for start in range(0, len(mutations), WRITES_IN_ONE_TRIP):
        yield Many(tuple(mutations[start : start + WRITES_IN_ONE_TRIP]))


def write_cells_and_read_positions(mutations: list[Mutate]) -> Step[Cells]:
    """Write cells, and with the last of them read the position row."""
    last = max(0, len(mutations) - 1) // WRITES_IN_ONE_TRIP * WRITES_IN_ONE_TRIP
    for start in range(0, last, WRITES_IN_ONE_TRIP):
        yield Many(tuple(mutations[start : start + WRITES_IN_ONE_TRIP]))
    done = yield Many((*mutations[last:], Get(layout.POSITION_ROW)))
    cells: Cells = done[-1]
    return cells


def build_advance(
    node: Node, cells: Cells, records: Sequence[tuple[int, Record]]
) -> tuple[CheckAndMutate, Positions] | None:
    """The compare-and-set by which a writer that has written the cells of these records, by
    position, moves `applied` to the last of them, and what it moves it to. None when another
    position before them, or between them, is still open: then the process that needs them helps."""
    positions, stored, shared = decode_positions(cells)
    moved = positions
    for position, record in records:
        if position != moved.applied + 1:
            return None
        moved = moved.move_over(position, record)
    return _move_operation(node, stored, moved, shared), moved


def finish_attempt(node: Node, attempt: int, position: int) -> Step[None]:
    """Settle what a lock is stamped with: decide the position, apply its record if that is the
    attempt's. At or below `applied` there is nothing left to do."""
    entry = yield from log_rows.decide_position(node, position)
    if isinstance(entry, TrimmedPosition) or entry.owner != log_rows.owner_of(attempt):
        return
    positions, _, _ = yield from read_positions()
    if position > positions.applied:
        yield from apply_entry(node, entry)


def read_positions() -> Step[tuple[Positions, bytes | None, float]]:
    """(decided, applied), the stored bytes of it, and the shared closing delay."""
    cells = yield Get(layout.POSITION_ROW)
    return decode_positions(cells)


def decode_positions(cells: Cells) -> tuple[Positions, bytes | None, float]:
    stored = value_of(cells, layout.POSITIONS)
    shared = value_of(cells, layout.DELAY)
    positions = Positions()
    if stored is not None:
        positions = layout.decode(Positions, stored, layout.POSITION_ROW)
    try:
        seconds = 0.0 if shared is None else float(_seconds.unpack(shared)[0])
    except struct.error as error:
        row = layout.POSITION_ROW.hex()
        raise Corruption("row was altered: unknown form", row=row, form="delay") from error
    return positions, stored, seconds


def _move_operation(
    node: Node, stored: bytes | None, moved: Positions, shared: float
) -> CheckAndMutate:
    """Compare-and-set; losing only means that another node was faster. The shared closing delay
    shrinks a little with every step, in the same write."""
    puts = [Put(layout.POSITIONS, layout.ONLY, layout.encode(moved))]
    if shared > 0:
        puts.append(closing_delay_put(shared * node.settings.delay_decay))
    return CheckAndMutate(layout.POSITION_ROW, layout.POSITIONS, stored, tuple(puts))


def closing_delay_put(seconds: float) -> Put:
    return Put(layout.DELAY, layout.ONLY, _seconds.pack(seconds))
