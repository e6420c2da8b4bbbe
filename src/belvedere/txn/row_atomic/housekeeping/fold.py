"""Folding of delta cells: one cell with the sum of all of them up to a position.

A fold cell's timestamp is the position it is folded through. It is at most `applied`, below which
no delta can appear any more, so two nodes that fold at one position write the same cell, and a fold
at any position is correct by itself. A reader takes the newest fold at or below its snapshot and
adds the deltas after it. The deltas stay until the vacuum removes them below the floor.
"""

from __future__ import annotations

from belvedere.codec import accumulator
from belvedere.kv.cell import BeginWork, Get, Mutate, Put, Step
from belvedere.txn.row_atomic.cells import data_cells as data
from belvedere.txn.row_atomic.log import advance


def fold_row(row: bytes) -> Step[int]:
    """Fold one row as of `applied`; returns that position (0 when there was nothing to fold)."""
    yield BeginWork()
    positions, _, _ = yield from advance.read_positions()
    as_of = positions.applied
    cells = yield Get(row, None, as_of, all_versions=True)
    deltas = [cell for cell in cells if cell.column == data.DELTA]
    if not deltas:
        return 0
    marker = max((c.timestamp for c in cells if c.column == data.MARKER), default=-1)
    folds = [c for c in cells if c.column == data.FOLD]
    base = folds[0].timestamp if folds else -1
    if marker > base or deltas[0].timestamp <= base:
        return 0
    total = data.decode_sum(row, folds[0]) if folds else None
    for cell in reversed(deltas):
        if cell.timestamp > base:
            total = data.add_sums(total, data.decode_sum(row, cell))
    assert total is not None
    yield Mutate(row, (Put(data.FOLD, as_of, accumulator.encode(*total)),))
    return as_of
