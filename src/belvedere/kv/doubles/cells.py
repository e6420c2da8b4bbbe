"""A row-atomic store in memory, with exactly HBase's rules.

The rules are pure functions over immutable row states, so that the exhaustive explorer can keep and
compare entire stores; `MemoryCells` holds one such store behind a mutex. What real stores do now
and then, this one does whenever a test asks: a compaction, at any moment, of any row.

A row state is a tuple of (column, Versions), by column; `()` is no row.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from belvedere.errors import InvalidInput, Unavailable
from belvedere.kv.cell import (
    TIMESTAMP_MAX,
    Cell,
    Cells,
    CellScan,
    Change,
    CheckAndMutate,
    Get,
    Increment,
    Mutate,
    Put,
    SingleRow,
    perform_in_order,
)
from belvedere.kv.cell_checks import check_changes, check_expected
from belvedere.kv.cell_filter import passes_filter


class Versions(NamedTuple):
    """One column: (timestamp, value) newest first, and its tombstones."""

    cells: tuple[tuple[int, bytes], ...] = ()
    upto: int = -1
    exact: frozenset[int] = frozenset()

    def visible_cells(self, as_of: int | None) -> Iterator[tuple[int, bytes]]:
        for timestamp, value in self.cells:
            if timestamp > self.upto and timestamp not in self.exact:
                if as_of is None or timestamp <= as_of:
                    yield timestamp, value


RowState = tuple[tuple[bytes, Versions], ...]
_NO_VERSIONS = Versions()


def read_row(state: RowState, get: Get | CellScan) -> Cells:
    """What a get or scan shows of one row."""
    found: list[Cell] = []
    columns, every = get.columns, get.all_versions
    as_of = TIMESTAMP_MAX if get.as_of is None else get.as_of
    for column, (cells, upto, exact) in state:
        if columns is not None and column not in columns:
            continue
        for timestamp, value in cells:  # as Versions.visible says, without its generator
            if upto < timestamp <= as_of and timestamp not in exact:
                found.append(Cell(column, timestamp, value))
                if not every:
                    break
    return tuple(found)


def newest_value(state: RowState, column: bytes) -> bytes | None:
    for name, versions in state:
        if name == column:
            for _, value in versions.visible_cells(None):
                return value
    return None


def change_row(state: RowState, changes: tuple[Change, ...]) -> RowState:
    """The row after an atomic mutation. Deletes win over puts of the same mutation because a
    tombstone hides by timestamp, whatever came first."""
    columns = dict(state)
    for change in changes:
        old = columns.get(change.column, _NO_VERSIONS)
        if isinstance(change, Put):
            columns[change.column] = old._replace(cells=_put_cell(old.cells, change))
        elif change.exact:
            columns[change.column] = old._replace(exact=old.exact | {change.timestamp})
        else:
            columns[change.column] = old._replace(upto=max(old.upto, change.timestamp))
    return tuple(sorted(columns.items()))


def _put_cell(cells: tuple[tuple[int, bytes], ...], put: Put) -> tuple[tuple[int, bytes], ...]:
    kept = [cell for cell in cells if cell[0] != put.timestamp]
    kept.append((put.timestamp, put.value))
    return tuple(sorted(kept, reverse=True))


def compact_row(state: RowState) -> RowState:
    """Remove what is hidden, and the tombstones that hid it."""
    compacted = []
    for column, versions in state:
        cells = tuple(versions.visible_cells(None))
        if cells:
            compacted.append((column, Versions(cells)))
    return tuple(compacted)


def increment_cell(state: RowState, increment: Increment) -> tuple[RowState, int]:
    stored = newest_value(state, increment.column)
    if stored is not None and len(stored) != 8:
        raise InvalidInput("cell is not a counter", row=increment.row.hex())
    number = (int.from_bytes(stored, signed=True) if stored else 0) + increment.by
    put = Put(increment.column, 1, number.to_bytes(8, signed=True))
    return change_row(state, (put,)), number


def _passes(scan: CellScan, cells: Cells) -> bool:
    if scan.filter is None:
        return True
    return passes_filter(scan.filter, {cell.column: cell.value for cell in cells})


class MemoryCells:
    """A CellStore in this process. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._rows: dict[bytes, RowState] = {}
        self._order: list[bytes] = []
        self._closed = False

    def get(self, get: Get) -> Cells:
        with self._lock_if_open():
            return read_row(self._rows.get(get.row, ()), get)

    def multi_get(self, gets: tuple[Get, ...]) -> tuple[Cells, ...]:
        return tuple(self.get(get) for get in gets)

    def scan(self, scan: CellScan) -> tuple[tuple[bytes, Cells], ...]:
        found: list[tuple[bytes, Cells]] = []
        with self._lock_if_open():
            for row in self._rows_in_range(scan):
                cells = read_row(self._rows[row], scan)
                if cells and _passes(scan, cells):
                    found.append((row, cells))
                if scan.limit is not None and len(found) >= scan.limit:
                    break
        return tuple(found[: scan.limit])

    def mutate(self, mutate: Mutate) -> None:
        check_changes(mutate.changes)
        with self._lock_if_open():
            self._change_row(mutate.row, mutate.changes)

    def check_and_mutate(self, mutate: CheckAndMutate) -> bool:
        check_changes(mutate.changes)
        check_expected(mutate.expected)
        with self._lock_if_open():
            if newest_value(self._rows.get(mutate.row, ()), mutate.column) != mutate.expected:
                return False
            self._change_row(mutate.row, mutate.changes)
            return True

    def increment(self, increment: Increment) -> int:
        with self._lock_if_open():
            state, number = increment_cell(self._rows.get(increment.row, ()), increment)
            self._store_row(increment.row, state)
            return number

    def execute_many(self, operations: tuple[SingleRow, ...]) -> tuple[Any, ...]:
        return perform_in_order(self, operations)

    def close(self) -> None:
        self._closed = True

    def compact(self, row: bytes | None = None) -> None:
        """A major compaction of one row, or of all."""
        with self._lock_if_open():
            for each in list(self._rows) if row is None else [row]:
                if each in self._rows:
                    self._store_row(each, compact_row(self._rows[each]))

    def copy_rows(self) -> Mapping[bytes, RowState]:
        """A copy of everything, tombstones included."""
        with self._mutex:
            return dict(self._rows)

    def _lock_if_open(self) -> threading.RLock:
        if self._closed:
            raise Unavailable("store is closed")
        return self._mutex

    def _rows_in_range(self, scan: CellScan) -> list[bytes]:
        first = bisect_left(self._order, scan.start)
        last = len(self._order) if scan.end is None else bisect_left(self._order, scan.end)
        rows = self._order[first:last]
        return rows[::-1] if scan.reverse else rows

    def _change_row(self, row: bytes, changes: tuple[Change, ...]) -> None:
        self._store_row(row, change_row(self._rows.get(row, ()), changes))

    def _store_row(self, row: bytes, state: RowState) -> None:
        if row not in self._rows:
            insort(self._order, row)
        if state:
            self._rows[row] = state
        else:
            self._rows.pop(row, None)
            self._order.remove(row)
