"""Vacuum: removal of old versions, old log records and old outcomes below announced floors.

A floor is announced a grace before it acts. Why this is safe: a node that writes a cell at position
p read, after its last `BeginWork`, that p is above `applied` (or wrote the record itself after it).
A floor is at most `applied`. So a node that begins after the announcement does not touch positions
up to the floor, and whatever was begun before has arrived, or never will, a grace later: work limit
plus operation timeout is less than the grace. Then nothing at or below the floor is ever written
again, and what no reader at or above the floor can see may be removed.

Abort markers are never removed: their writer may wake up at any time. Tombstones must outlive the
grace in the store's compactions.

Below the log floor only the outcome cell can tell a writer in doubt that it has committed. So a
trim leaves the outcomes of the records that it removes, and removes those of the trim before: they
are as old as the log then was long. An outcome cell is written with the cells of its record, so
what is said above holds for it too, and it never comes back.
"""

from __future__ import annotations

from belvedere.errors import Unavailable
from belvedere.kv.cell import (
    BeginWork,
    Cell,
    CellDelete,
    Cells,
    CellScan,
    Change,
    CheckAndMutate,
    Get,
    Many,
    MultiGet,
    Mutate,
    Now,
    Pause,
    Put,
    Step,
    value_of,
)
from belvedere.txn.row_atomic import locks
from belvedere.txn.row_atomic.cells import data_cells as data
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import ABORT, Floors, Heartbeat, Parts
from belvedere.txn.row_atomic.log import advance, log_rows
from belvedere.txn.row_atomic.node import Node

ROWS_IN_ONE_TRIP = 128


def announce_floors(node: Node, versions: int, log_floor: int) -> Step[Floors]:
    """Raise the floors, never above `applied` nor above what a live node reads at. They act a grace
    later: see `vacuum_and_trim`."""
    yield BeginWork()
    allowed = yield from _highest_floor(node)
    while True:
        cells = yield Get(layout.FLOOR_ROW)
        old = log_rows.decode_floors(cells)
        new = Floors(
            max(old.versions, min(versions, allowed)),
            max(old.log, min(log_floor, allowed)),
            old.trimmed,
        )
        if new == old or (yield _raise_floors(cells, new)):
            return new


def vacuum_and_trim(
    node: Node, start: bytes, end: bytes, versions: int, log_floor: int
) -> Step[Floors]:
    """Announce, wait out the grace, then remove versions of the rows in a range and log records."""
    floors = yield from announce_floors(node, versions, log_floor)
    yield Pause(node.settings.grace_seconds)
    yield from vacuum_rows(start, end, floors.versions)
    yield from trim_log(node, floors.log)
    return floors


def _highest_floor(node: Node) -> Step[int]:
    positions, _, _ = yield from advance.read_positions()
    allowed = positions.applied
    now = yield Now()
    for row, cells in (yield CellScan(layout.HEARTBEATS, layout.HEARTBEATS + b"\xff" * 9)):
        stored = value_of(cells, layout.BEAT)
        assert stored is not None
        beat = layout.decode(Heartbeat, stored, row)
        other = int.from_bytes(row[1:])
        if beat.snapshots_from >= 0 and not locks.is_heartbeat_stale(node, other, beat, now):
            allowed = min(allowed, beat.snapshots_from)
    return allowed


def _raise_floors(cells: Cells, new: Floors) -> CheckAndMutate:
    put = Put(layout.FLOORS, layout.ONLY, layout.encode(new))
    return CheckAndMutate(layout.FLOOR_ROW, layout.FLOORS, value_of(cells, layout.FLOORS), (put,))


def vacuum_rows(start: bytes, end: bytes, floor: int) -> Step[int]:
    """Remove what no reader at or above an announced floor, a grace old, can see. Returns
    rows changed."""
    changed = 0
    while True:
        rows = yield CellScan(start, end, as_of=floor, all_versions=True, limit=ROWS_IN_ONE_TRIP)
        found = [Mutate(row, gone) for row, cells in rows if (gone := _hidden_versions(row, cells))]
        if found:
            yield BeginWork()
            yield Many(tuple(found))
        changed += len(found)
        if len(rows) < ROWS_IN_ONE_TRIP:
            return changed
        start = rows[-1][0] + b"\x00"


def _hidden_versions(row: bytes, cells: Cells) -> tuple[Change, ...]:
    """Deletes for the versions that are hidden as of the newest of these cells."""
    columns: dict[bytes, list[Cell]] = {}
    for cell in cells:
        columns.setdefault(cell.column, []).append(cell)
    changes: list[Change] = []
    born: int | None = 0
    marker_at = -1
    if data.MARKER in columns:
        marker = columns[data.MARKER][0]
        marker_at = marker.timestamp
        born = data.born_of(row, marker.value)
    for column, versions in columns.items():
        if column == data.DELTA:
            continue
        upto = _hidden_upto(column, versions, born, marker_at)
        if upto >= versions[-1].timestamp:
            changes.append(CellDelete(column, upto))
    changes += _folded_deltas(columns, marker_at)
    return tuple(changes)


def _hidden_upto(column: bytes, versions: list[Cell], born: int | None, marker_at: int) -> int:
    newest = versions[0]
    if column == data.FOLD:
        return newest.timestamp if newest.timestamp <= marker_at else newest.timestamp - 1
    if born is None:
        return marker_at
    dead = newest.timestamp < born or (column != data.MARKER and newest.value == data.NULL_CELL)
    return newest.timestamp if dead else newest.timestamp - 1


def _folded_deltas(columns: dict[bytes, list[Cell]], marker_at: int) -> list[Change]:
    """Deltas that a fold or a put contains."""
    deltas = columns.get(data.DELTA)
    folds = columns.get(data.FOLD)
    base = max(folds[0].timestamp if folds else -1, marker_at)
    if not deltas or deltas[-1].timestamp > base:
        return []
    return [CellDelete(data.DELTA, base)]


def trim_log(node: Node, floor: int) -> Step[int]:
    """Remove log records up to an announced floor, a grace old; abort markers stay."""
    removed = 0
    while True:
        yield BeginWork()
        cells = yield Get(layout.FLOOR_ROW)
        floors = log_rows.decode_floors(cells)
        if floors.log < floor:
            raise Unavailable("floor was not announced", floor=floor, announced=floors.log)
        if floors.trimmed >= floor:
            return removed
        upto = min(floor, floors.trimmed + ROWS_IN_ONE_TRIP)
        removed += yield from _trim_positions(node, range(floors.trimmed + 1, upto + 1))
        yield _raise_floors(cells, Floors(floors.versions, floors.log, upto))


def _trim_positions(node: Node, positions: range) -> Step[int]:
    rows = [layout.log_row(position, node.settings.lanes) for position in positions]
    gone: list[Mutate] = []
    for row, cells in zip(rows, (yield MultiGet(tuple(Get(row) for row in rows)))):
        owner = value_of(cells, layout.OWNER)
        if owner is None or owner == ABORT:
            continue
        value = value_of(cells, layout.RECORD)
        if value is not None:
            kind, payload = layout.unframe_payload(value, row)
            if kind == layout.IN_PARTS:
                parts = layout.decode(Parts, payload, row)
                gone += [
                    Mutate(
                        layout.chunk_row(parts.attempt, n),
                        (CellDelete(layout.RECORD, layout.ONLY),),
                    )
                    for n in range(parts.count)
                ]
        gone.append(Mutate(row, tuple(CellDelete(cell.column, layout.ONLY) for cell in cells)))
    if gone:
        yield BeginWork()
        yield Many(tuple(gone))
    return len(gone)


def forget_outcomes(trimmed: int) -> Step[int]:
    """Remove outcome cells of commits up to a position whose log records are gone already: their
    outcome is "unknown" after this. Returns the number of removed cells."""
    removed, start = 0, layout.OUTCOMES
    while True:
        rows = yield CellScan(start, layout.HEARTBEATS, limit=ROWS_IN_ONE_TRIP)
        gone = [
            Mutate(row, (CellDelete(layout.OUTCOME, layout.ONLY),))
            for row, cells in rows
            if layout.read_number(cells, layout.OUTCOME, row) <= trimmed
        ]
        if gone:
            yield BeginWork()
            yield Many(tuple(gone))
        removed += len(gone)
        if len(rows) < ROWS_IN_ONE_TRIP:
            return removed
        start = rows[-1][0] + b"\x00"
