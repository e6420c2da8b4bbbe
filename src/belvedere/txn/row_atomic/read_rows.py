"""Reads of rows as of a position, and of the newest rows under a lock.

`advance.snapshot` gives a position to read at: everything up to it is applied and never changes,
until a floor passes it. Floors are announced a grace before they act, so a reader younger than the
grace needs no check; an older one reads the floor after its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from belvedere.errors import Unavailable
from belvedere.kv.cell import Cells, CellScan, Get, Many, MultiGet, Step
from belvedere.txn.row_atomic.cells import data_cells as data
from belvedere.txn.row_atomic.cells import layout, placement
from belvedere.txn.row_atomic.cells.data_cells import CellRow, Sum
from belvedere.txn.row_atomic.cells.narrow_reader import CellFetch
from belvedere.txn.row_atomic.cells.placement import Page, Spread
from belvedere.txn.row_atomic.log import log_rows

ROWS_AT_ONCE = 128


def get_rows(keys: Sequence[bytes], as_of: int | None) -> Step[list[CellRow | None]]:
    """The rows of these keys, in order."""
    found = yield MultiGet(tuple(Get(key, as_of=as_of) for key in keys))
    return (yield from _assemble_rows(list(zip(keys, found)), as_of))


def get_row(key: bytes, as_of: int | None) -> Step[CellRow | None]:
    cells = yield Get(key, as_of=as_of)
    return (yield from _assemble_rows([(key, cells)], as_of))[0]


def scan_rows(
    start: bytes,
    end: bytes,
    as_of: int | None,
    *,
    limit: int,
    reverse: bool,
    spread: Spread | None = None,
) -> Step[tuple[list[tuple[bytes, CellRow]], bytes | None]]:
    """Up to `limit` stored rows of a range of keys: those that exist as of the position, and the
    last key looked at (None at the end of the range). Rows deleted by then are looked at and left
    out."""
    wanted = CellScan(start, end, as_of=as_of, limit=limit, reverse=reverse)
    found, last = yield from _scan_page(wanted, limit, spread)
    completed = yield from _assemble_rows(found, as_of, spread)
    return [(key, row) for (key, _), row in zip(found, completed) if row is not None], last


def scan_cells(
    start: bytes,
    end: bytes,
    as_of: int | None,
    fetch: CellFetch,
    *,
    limit: int,
    reverse: bool,
    packed: bool = False,
    spread: Spread | None = None,
) -> Step[Page]:
    """The same for rows of a table, as cells: those that are asked for, deleted rows included."""
    names, condition = fetch.names, fetch.filter
    wanted = CellScan(
        start, end, names, as_of, limit=limit, reverse=reverse, filter=condition, packed=packed
    )
    return (yield from _scan_page(wanted, limit, spread))


def _scan_page(scan: CellScan, limit: int, spread: Spread | None) -> Step[Page]:
    """Rows by key. Of a spread table those of all slots, which are asked side by side."""
    if spread is None:
        found = yield scan
        return found, found[-1][0] if len(found) >= limit else None
    assert scan.end is not None
    ranges = spread.list_ranges(scan.start, scan.end)
    asked = placement.choose_page(limit, len(ranges))
    scans = [replace(scan, start=start, end=end, limit=asked) for start, end in ranges]
    pages = yield Many(tuple(scans))
    return placement.merge_pages(pages, asked, limit, reverse=scan.reverse)


def _assemble_rows(
    found: Sequence[tuple[bytes, Cells]], as_of: int | None, spread: Spread | None = None
) -> Step[list[CellRow | None]]:
    """Rows, by their keys, that have delta cells need every version of them: one more trip, for all
    of them together."""
    summed = [key for key, cells in found if data.has_deltas(cells)]
    deltas: dict[bytes, Cells] = {}
    if summed:
        rows = summed if spread is None else map(spread.row_of, summed)
        gets = (Get(row, None, as_of, all_versions=True) for row in rows)
        deltas = dict(zip(summed, (yield MultiGet(tuple(gets)))))
    if not summed:
        return [data.read_row(key, cells) for key, cells in found]
    completed: list[CellRow | None] = []
    for key, cells in found:
        versions = deltas.get(key, ())
        every = [cell for cell in versions if cell.column == data.DELTA]
        completed.append(data.read_row(key, versions or cells, every))
    return completed


def scan_sums(start: bytes, end: bytes, as_of: int) -> Step[list[tuple[bytes, Sum]]]:
    """Every sum of a range, also those with a row count of zero or below."""
    found: list[tuple[bytes, Sum]] = []
    while True:
        rows = yield CellScan(start, end, as_of=as_of, all_versions=True, limit=ROWS_AT_ONCE)
        for key, cells in rows:
            total = data.total_sum(key, cells)
            found += [] if total is None else [(key, total)]
        if len(rows) < ROWS_AT_ONCE:
            return found
        start = rows[-1][0] + b"\x00"


def require_above_floor(as_of: int) -> Step[None]:
    """For readers older than the grace, after they read. Unavailable when the snapshot is too
    old."""
    floor = log_rows.decode_floors((yield Get(layout.FLOOR_ROW))).versions
    if as_of < floor:
        raise Unavailable("snapshot too old", sqlstate="72000", snapshot=as_of, floor=floor)
