"""Holds on tables: how a transaction of many rows keeps others out without a lock for each row.

A hold is written into the row of the catalog version, which every commit reads once it has its
locks: a commit that writes to a held table gives up its locks and waits. So after the hold is there
and everybody who had locks before it is over, nobody else changes these tables. That costs commits
that meet no hold nothing.

A hold belongs to an attempt and names its primary lock. As with locks, a process that finds the
attempt's node silent ends the attempt, and only then removes the hold; and, where the attempt was
not committed, the parts of the record that it had written. Whether it was says its outcome cell.
"""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.errors import Retry
from belvedere.kv.cell import (
    BeginWork,
    Cells,
    CheckAndMutate,
    Get,
    Now,
    Pause,
    Put,
    ReplyLost,
    Step,
    WorkExpired,
    value_of,
)
from belvedere.txn.row_atomic import locks
from belvedere.txn.row_atomic.cells import layout, placement
from belvedere.txn.row_atomic.cells.layout import Hold, Holds
from belvedere.txn.row_atomic.locks import AttemptLocks
from belvedere.txn.row_atomic.log import advance, record_parts
from belvedere.txn.row_atomic.node import Node


class TableHeld(Retry):
    """A table to be written is held by another transaction; nothing is held by this one."""

    def __init__(self, hold: Hold) -> None:
        super().__init__("table is held by a bulk load", relations=hold.relations)
        self.hold = hold


def require_not_held(cells: Cells, rows: Iterable[bytes], attempt: int) -> None:
    """TableHeld when one of these rows is in a table that another attempt holds, by the cells of
    the catalog row."""
    holds = _decode_holds(cells).holds
    if not holds:
        return
    relations = set(map(placement.relation_of, rows))
    for hold in holds:
        if hold.attempt != attempt and relations.intersection(hold.relations):
            raise TableHeld(hold)


def add_hold(
    node: Node, held: AttemptLocks, relations: Iterable[int], transaction: bytes
) -> Step[None]:
    """Hold these tables for an attempt that has its primary lock, when nobody else holds any."""
    mine = Hold(held.attempt, held.primary, tuple(sorted(relations)), transaction)
    while True:
        holds, stored = yield from read_holds()
        if mine in holds.holds:
            return
        others = [h for h in holds.holds if set(h.relations).intersection(mine.relations)]
        if others:
            yield from wait_for_hold(node, others[0])
        else:
            yield from _replace_holds(holds, stored, (*holds.holds, mine))


def remove_hold(attempt: int) -> Step[None]:
    """Remove the hold of an attempt that is over, or whose rows are all written."""
    while True:
        holds, stored = yield from read_holds()
        left = tuple(hold for hold in holds.holds if hold.attempt != attempt)
        if left == holds.holds:
            return
        yield from _replace_holds(holds, stored, left)


def wait_for_hold(node: Node, hold: Hold) -> Step[None]:
    """Until a hold is gone; it is removed when its attempt is over or its node silent."""
    started = yield Now()
    while True:
        holds, _ = yield from read_holds()
        if hold not in holds.holds or (yield from _end_silent_hold(node, hold)):
            return
        if (yield Now()) - started > node.settings.lock_wait_seconds_max:
            relations = hold.relations
            raise Retry("lock wait timed out", sqlstate="55P03", relations=relations)
        yield Pause(node.settings.lock_poll_seconds)


def end_silent_holds(node: Node) -> Step[None]:
    """What a sweep does about holds."""
    holds, _ = yield from read_holds()
    for hold in holds.holds:
        yield from _end_silent_hold(node, hold)


def _end_silent_hold(node: Node, hold: Hold) -> Step[bool]:
    seen = yield from locks.read_lock(hold.primary)
    holder = None if seen is None else locks.find_holder(seen, hold.attempt)
    if holder is not None:
        if not (yield from locks.is_expired(node, hold.primary, holder)):
            return False
        yield from locks.break_holder(node, hold.primary, holder, advance.finish_attempt)
    outcome = yield Get(layout.outcome_row(hold.transaction))
    if value_of(outcome, layout.OUTCOME) is None:
        yield from record_parts.remove_parts(hold.attempt)
    yield from remove_hold(hold.attempt)
    return True


def read_holds() -> Step[tuple[Holds, bytes | None]]:
    """The holds there are, and the stored bytes of them."""
    while True:
        try:
            cells = yield Get(layout.CATALOG_ROW, (layout.HOLDS,))
            return _decode_holds(cells), value_of(cells, layout.HOLDS)
        except ReplyLost:
            continue


def _decode_holds(cells: Cells) -> Holds:
    stored = value_of(cells, layout.HOLDS)
    return Holds() if stored is None else layout.decode(Holds, stored, layout.CATALOG_ROW)


def _replace_holds(seen: Holds, stored: bytes | None, new: tuple[Hold, ...]) -> Step[None]:
    """Compare-and-set; what came of it is read again. No value comes back: changes are counted."""
    put = Put(layout.HOLDS, layout.ONLY, layout.encode(Holds(seen.changes + 1, new)))
    yield BeginWork()
    try:
        yield CheckAndMutate(layout.CATALOG_ROW, layout.HOLDS, stored, (put,))
    except (ReplyLost, WorkExpired):
        return
