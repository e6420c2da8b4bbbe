"""Lock rows: one form for every kind, taken, stamped, released and broken by conditional writes.

    free           no cell
    held           LockValue: one holder of side 0, or any number of one other side
    primary        the first lock of an attempt (`layout.lock_order`), which others point to
    stamped        the primary names the position at which the attempt may commit

Why breaking is safe: an attempt commits only after it stamped its primary, and it stamps only the
exact value that it left there. A breaker first ends the attempt: it removes the unstamped primary,
or it decides the stamped position, applies the record if there is one, and then removes the
primary. Only an ended attempt loses its other locks. A secondary whose primary is gone belongs to
an ended attempt, because the primary is taken first.

A value never comes back (LockValue.changes, and the attempt id as timestamp), so a request that
arrives late or twice fails. Safety needs no clock; `is_expired` only says when to stop waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from belvedere.errors import Retry
from belvedere.kv.cell import (
    BeginWork,
    CellDelete,
    CheckAndMutate,
    Get,
    Many,
    Mutate,
    Now,
    Pause,
    Put,
    ReplyLost,
    Step,
    WorkExpired,
    value_of,
)
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import Heartbeat, Holder, LockValue
from belvedere.txn.row_atomic.node import Node, node_of

FinishAttempt = Callable[[Node, int, int], Step[None]]
"""Decide a position and, if that attempt's record is there, write its cells: (node, attempt,
position)."""


class RowLock(NamedTuple):
    row: bytes
    side: int = 0


@dataclass(slots=True)
class AttemptLocks:
    """The locks of one attempt, in the order taken; `values` is what each row held after us,
    `newest` the newest marker (position, row) among the rows to be written."""

    attempt: int
    version: int
    primary: bytes = b""
    values: dict[bytes, LockValue] = field(default_factory=dict)
    newest: tuple[int, bytes] = (0, b"")


def take_locks(
    node: Node, held: AttemptLocks, wanted: Sequence[RowLock], finish: FinishAttempt
) -> Step[None]:
    """Take every lock: the primary, then all others in one trip. Where one of them is held, those
    after it are given back and taken one by one in key order, so that nobody waits in a circle.
    Retry when one cannot be had in time; the caller releases."""
    sides: dict[bytes, int] = {}
    for lock in wanted:
        sides[lock.row] = lock.side if sides.get(lock.row, lock.side) == lock.side else 0
    assert sides, "a commit without a lock could not be broken"
    rows = sorted(sides, key=layout.lock_order)
    held.primary = rows[0]
    started = yield Now()
    holders = [Holder(held.attempt, held.primary, sides[row], held.version) for row in rows]
    yield from _take_lock(node, held, rows[0], holders[0], started, finish)
    if len(rows) > 2:
        yield from _try_free_locks(node, held, dict(zip(rows[1:], holders[1:])))
    for row, mine in zip(rows, holders):
        if row not in held.values:
            yield from _take_lock(node, held, row, mine, started, finish)


def _try_free_locks(node: Node, held: AttemptLocks, wanted: dict[bytes, Holder]) -> Step[None]:
    """Take those of the locks, in key order, that are free, up to the first that is not. What is
    given back leaves a tombstone, under which this attempt could not take the lock again: so these
    cells have a number of their own, which no attempt has, as timestamp."""
    made = node.draw_number()
    values = {row: LockValue(made, 0, (mine,)) for row, mine in wanted.items()}
    yield BeginWork()
    try:
        won = yield Many(tuple(_compare_and_set(row, None, values[row]) for row in values))
    except (ReplyLost, WorkExpired):
        won = [False] * len(values)
    first = next((number for number, mine in enumerate(won) if not mine), len(won))
    rows = list(values)
    held.values.update((row, values[row]) for row in rows[:first])
    # What was not won may be ours all the same: its answer was lost, or was no answer to us.
    for row in rows[first:]:
        if wanted[row].side:
            yield from remove_holder(row, held.attempt)
    gone = tuple(_give_back(row, values[row]) for row in rows[first:] if not wanted[row].side)
    if gone:
        yield Many(gone)


def _take_lock(
    node: Node, held: AttemptLocks, row: bytes, mine: Holder, started: float, finish: FinishAttempt
) -> Step[None]:
    seen: LockValue | None = None
    while True:
        value = _add_holder(seen, mine)
        yield BeginWork()
        try:
            won = yield _compare_and_set(row, seen, value)
        except (ReplyLost, WorkExpired):
            won = False
        if won:
            held.values[row] = value
            return
        seen = yield from read_lock(row)
        while seen is not None and (in_the_way := _blocking_holder(seen, mine)) is not None:
            yield from _wait_or_break(node, row, in_the_way, started, finish)
            seen = yield from read_lock(row)
        if seen is not None and find_holder(seen, mine.attempt) is not None:
            held.values[row] = seen
            return


def _blocking_holder(seen: LockValue, mine: Holder) -> Holder | None:
    if find_holder(seen, mine.attempt) is not None:
        return None
    return next((holder for holder in seen.holders if _excludes_holder(holder, mine)), None)


def _wait_or_break(
    node: Node, row: bytes, holder: Holder, started: float, finish: FinishAttempt
) -> Step[None]:
    node.counts["lock waits"] += 1
    if (yield from is_expired(node, row, holder)):
        yield from break_holder(node, row, holder, finish)
        return
    now = yield Now()
    if now - started > node.settings.lock_wait_seconds_max:
        raise Retry("lock wait timed out", sqlstate="55P03", row=row.hex())
    yield Pause(node.settings.lock_poll_seconds)


def stamp_operation(held: AttemptLocks, position: int) -> tuple[CheckAndMutate, LockValue]:
    """The stamp as one operation, and what the primary holds when it wins."""
    seen = held.values[held.primary]
    value = _with_stamp(seen, held.attempt, position)
    return _compare_and_set(held.primary, seen, value), value


def stamp_primary(node: Node, held: AttemptLocks, position: int) -> Step[None]:
    """Tie the attempt to a position: (me, -) or (me, old) -> (me, position), in the primary. Retry
    when another node has ended the attempt."""
    row = held.primary
    seen: LockValue | None = held.values[row]
    while seen is not None and (mine := find_holder(seen, held.attempt)) is not None:
        if mine.stamp == position:
            held.values[row] = seen
            return
        value = _with_stamp(seen, held.attempt, position)
        yield BeginWork()
        try:
            won = yield _compare_and_set(row, seen, value)
        except (ReplyLost, WorkExpired):
            won = False
        if won:
            held.values[row] = value
            return
        seen = yield from read_lock(row)
    raise Retry("lock was broken", row=row.hex())


def release_operations(held: AttemptLocks) -> tuple[CheckAndMutate | Mutate, ...]:
    """The writes that give back every lock. One of side 0 is a cell of its own, with a timestamp
    that nobody else has: it is removed whatever became of the row. Others are given back if they
    were not changed since; only these writes can answer False."""
    return tuple(
        _remove_operation(row, value, held.attempt)
        if value.holders[0].side
        else _give_back(row, value)
        for row, value in held.values.items()
    )


def is_given_back(answer: bool | None) -> bool:
    """Whether a write of `release_operations` did what it should."""
    return answer is not False


def release_locks(node: Node, held: AttemptLocks) -> Step[None]:
    """Release every lock. Only for attempts that are ended, or committed and applied. What cannot
    be released (replies stay lost) is left to breakers: the attempt is over, so they need not
    wait."""
    for _ in range(node.settings.tries_max):
        yield BeginWork()
        try:
            yield from _release_all(held)
            return
        except (ReplyLost, WorkExpired):
            continue
    node.counts["locks left to breakers"] += len(held.values)


def _release_all(held: AttemptLocks) -> Step[None]:
    if not held.values:
        return
    given = yield Many(release_operations(held))
    left = [row for row, done in zip(list(held.values), given) if not is_given_back(done)]
    for row in left:
        yield from remove_holder(row, held.attempt)


def remove_holder(row: bytes, attempt: int) -> Step[None]:
    """Take an attempt out of a lock row, whatever others do to the row concurrently."""
    while True:
        seen = yield from read_lock(row)
        if seen is None or find_holder(seen, attempt) is None:
            return
        if (yield _remove_operation(row, seen, attempt)):
            return


def break_holder(node: Node, row: bytes, holder: Holder, finish: FinishAttempt) -> Step[None]:
    """End the attempt of a holder, then take it out of this row."""
    node.counts["locks broken"] += 1
    while True:
        try:
            yield BeginWork()
            yield from _end_attempt(node, holder, finish)
            yield from remove_holder(row, holder.attempt)
            return
        except (ReplyLost, WorkExpired):
            continue


def _end_attempt(node: Node, holder: Holder, finish: FinishAttempt) -> Step[None]:
    """Make sure the attempt is either applied or can never commit: its primary is gone."""
    while True:
        seen = yield from read_lock(holder.primary)
        found = None if seen is None else find_holder(seen, holder.attempt)
        if seen is None or found is None:
            return
        if found.stamp:
            yield from finish(node, holder.attempt, found.stamp)
        if (yield _remove_operation(holder.primary, seen, holder.attempt)):
            return


def is_expired(node: Node, row: bytes, holder: Holder) -> Step[bool]:
    """Whether this holder can be broken: its attempt is over, or its node is silent."""
    heartbeat_row = layout.heartbeat_row(node_of(holder.attempt))
    if row != holder.primary:
        primary = yield from read_lock(holder.primary)
        if primary is None or find_holder(primary, holder.attempt) is None:
            return True
    stored = value_of((yield Get(heartbeat_row)), layout.BEAT)
    beat = None if stored is None else layout.decode(Heartbeat, stored, heartbeat_row)
    if beat is not None and holder.attempt < beat.attempts_from:
        return True
    now = yield Now()
    return is_heartbeat_stale(node, node_of(holder.attempt), beat, now)


def is_node_silent(node: Node, other: int) -> Step[bool]:
    """Whether another node is silent: it was heard before, and not for the lease."""
    row = layout.heartbeat_row(other)
    stored = value_of((yield Get(row)), layout.BEAT)
    beat = None if stored is None else layout.decode(Heartbeat, stored, row)
    return other != node.id and is_heartbeat_stale(node, other, beat, (yield Now()))


def is_heartbeat_stale(node: Node, other: int, beat: Heartbeat | None, now: float) -> bool:
    """Whether a node's heartbeat did not change for the lease, on our own clock or on that of
    another node, which has said so."""
    if beat == layout.GONE:
        return True
    heard = node.heard.get(other)
    if heard is None or heard[0] != beat:
        node.heard[other] = heard = (beat, now)
    return now - heard[1] >= node.settings.lease_seconds


def read_lock(row: bytes) -> Step[LockValue | None]:
    stored = value_of((yield Get(row, (layout.HOLDERS,))), layout.HOLDERS)
    return None if stored is None else layout.decode(LockValue, stored, row)


def find_holder(value: LockValue, attempt: int) -> Holder | None:
    return next((holder for holder in value.holders if holder.attempt == attempt), None)


def _excludes_holder(holder: Holder, mine: Holder) -> bool:
    return holder.side == 0 or mine.side == 0 or holder.side != mine.side


def _add_holder(seen: LockValue | None, mine: Holder) -> LockValue:
    if seen is None:
        return LockValue(mine.attempt, 0, (mine,))
    return _with_holders(seen, [*seen.holders, mine])


def _with_holders(seen: LockValue, holders: list[Holder]) -> LockValue:
    return LockValue(seen.made, seen.changes + 1, tuple(holders))


def _with_stamp(seen: LockValue, attempt: int, position: int) -> LockValue:
    holders = [
        Holder(h.attempt, h.primary, h.side, h.version, position) if h.attempt == attempt else h
        for h in seen.holders
    ]
    return _with_holders(seen, holders)


def _compare_and_set(row: bytes, seen: LockValue | None, value: LockValue) -> CheckAndMutate:
    expected = None if seen is None else layout.encode(seen)
    put = Put(layout.HOLDERS, value.made, layout.encode(value))
    return CheckAndMutate(row, layout.HOLDERS, expected, (put,))


def _give_back(row: bytes, value: LockValue) -> Mutate:
    return Mutate(row, (CellDelete(layout.HOLDERS, value.made, exact=True),))


def _remove_operation(row: bytes, seen: LockValue, attempt: int) -> CheckAndMutate:
    others = [holder for holder in seen.holders if holder.attempt != attempt]
    if others:
        return _compare_and_set(row, seen, _with_holders(seen, others))
    gone = CellDelete(layout.HOLDERS, seen.made, exact=True)
    return CheckAndMutate(row, layout.HOLDERS, layout.encode(seen), (gone,))
