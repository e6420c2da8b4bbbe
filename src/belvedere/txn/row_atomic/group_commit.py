"""Group commit of a node: several transactions take steps 2 to 5 together, one trip a step.

Every member holds all its locks before the positions are taken, by one increment, so none is taken
in advance. From the stamp on each member is independent: one that was broken or closed fails, or is
completed individually when the others are done. `GroupCommit` makes the groups: threads that arrive
while a group is under way form the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from belvedere.errors import Error, Retry
from belvedere.kv.cell import (
    Acknowledge,
    BeginWork,
    Cells,
    CheckAndMutate,
    Increment,
    Many,
    ReplyLost,
    Step,
    WorkExpired,
)
from belvedere.txn.row_atomic import advance, commit, locks, log_rows
from belvedere.txn.row_atomic.cells import data_cells, layout
from belvedere.txn.row_atomic.cells.layout import Record
from belvedere.txn.row_atomic.locks import AttemptLocks
from belvedere.txn.row_atomic.node import Node


@dataclass(eq=False, slots=True)
class GroupMember:
    """A transaction that holds all its locks; ends with a position or an error."""

    held: AttemptLocks
    record: Record
    value: bytes = b""
    position: int = 0
    committed: bool = False
    error: Error | None = None
    ended: threading.Event = field(default_factory=threading.Event)


def complete_group(node: Node, members: Sequence[GroupMember]) -> Step[None]:
    """Commit every member; each then has its position or its error."""
    if len(members) == 1:
        yield from _complete_member(node, members[0])
        return
    try:
        yield BeginWork()
        for member in members:
            member.value = yield from log_rows.encode_log_value(node, member.record)
        last = yield Increment(layout.COUNTER_ROW, layout.NUMBER, len(members))
    except (ReplyLost, WorkExpired):
        for member in members:
            yield from _complete_member(node, member)
        return
    for number, member in enumerate(members):
        member.position = last - len(members) + 1 + number
    stamped = yield from _stamp_primaries(node, members)
    yield from _write_records(node, stamped)
    done = [member for member in stamped if member.committed]
    for member in done:
        yield Acknowledge(member.position)
    if done:
        yield from _apply_and_release(node, done)
    for member in done:
        member.ended.set()
    for member in stamped:
        if not member.committed and member.error is None:
            yield from _complete_member(node, member)


def _complete_member(node: Node, member: GroupMember) -> Step[None]:
    try:
        member.position = yield from commit.complete_commit(node, member.held, member.record)
        member.committed = True
    except Error as error:
        member.error = error


def _stamp_primaries(node: Node, members: Sequence[GroupMember]) -> Step[list[GroupMember]]:
    """The members whose primary lock carries their position; the others have failed."""
    stamps = [locks.stamp_operation(member.held, member.position) for member in members]
    won = yield from _try_all([operation for operation, _ in stamps])
    stamped = []
    for member, (_, value), mine in zip(members, stamps, won):
        try:
            if mine:
                member.held.values[member.held.primary] = value
            else:
                yield from locks.stamp_primary(node, member.held, member.position)
            stamped.append(member)
        except (ReplyLost, WorkExpired, Retry) as error:
            yield from locks.release_locks(node, member.held)
            member.error = error if isinstance(error, Retry) else Retry("store does not answer")
    return stamped


def _write_records(node: Node, members: Sequence[GroupMember]) -> Step[None]:
    """Write every member's log row; doubts are resolved one by one."""
    writes = [log_rows.append_operation(node, m.position, m.record, m.value) for m in members]
    for member, won in zip(members, (yield from _try_all(writes))):
        try:
            member.committed = won or (
                yield from log_rows.resolve_doubt(node, member.position, member.record)
            )
        except Error as error:
            member.error = error


def _try_all(operations: list[CheckAndMutate]) -> Step[list[bool]]:
    """The answers; all False when one of them, or all, are not known."""
    if not operations:
        return []
    yield BeginWork()
    try:
        return list((yield Many(tuple(operations))))
    except (ReplyLost, WorkExpired):
        return [False] * len(operations)


def _apply_and_release(node: Node, members: Sequence[GroupMember]) -> Step[None]:
    writes = [
        m for member in members for m in data_cells.record_mutations(member.position, member.record)
    ]
    try:
        cells = yield from advance.write_cells_and_read_positions(writes)
        ends: list[CheckAndMutate] = []
        for member in members:
            ends.append(log_rows.mark_applied(node, member.position, member.record.attempt))
            ends += locks.release_operations(member.held)
        done = yield Many((*ends, *_advance_operations(node, cells, members)))
        if all(done[: len(ends)]):
            return
    except (ReplyLost, WorkExpired):
        node.counts["groups settled again"] += 1
    for member in members:
        yield from commit.apply_and_release_again(node, member.held, member.position)


def _advance_operations(
    node: Node, cells: Cells, members: Sequence[GroupMember]
) -> tuple[CheckAndMutate, ...]:
    """Move `applied` over the members, if every position between them is one of theirs."""
    taken = sorted(member.position for member in members)
    if taken[-1] - taken[0] >= len(taken):
        return ()
    changed = max((m.position for m in members if m.record.body), default=0)
    return advance.advance_operations(node, cells, taken[0], taken[-1], changed)


class GroupCommit:
    """Lets threads commit together: the first leads; threads that arrive meanwhile form the next
    group."""

    def __init__(self, run: Callable[[Step[None]], None], node: Node) -> None:
        self._run = run
        self._node = node
        self._mutex = threading.Lock()
        self._waiting: list[GroupMember] = []
        self._leading = False

    def complete_commit(self, held: AttemptLocks, record: Record) -> int:
        """The position of the commit; raises what it failed with."""
        member = GroupMember(held, record)
        with self._mutex:
            self._waiting.append(member)
            lead = not self._leading
            self._leading = True
        if lead:
            self._lead_groups()
        member.ended.wait()
        if member.error is not None:
            raise member.error
        return member.position

    def _lead_groups(self) -> None:
        """Commit groups until no member waits. Whatever happens, no member is left waiting."""
        while True:
            with self._mutex:
                group, self._waiting = self._waiting, []
                if not group:
                    self._leading = False
                    return
            try:
                self._run(complete_group(self._node, group))
            except BaseException:
                with self._mutex:
                    group += self._waiting
                    self._waiting, self._leading = [], False
                raise
            finally:
                for member in group:
                    self._end_member(member)

    def _end_member(self, member: GroupMember) -> None:
        if not member.committed and member.error is None:
            member.error = log_rows.unknown_outcome(member.record.transaction, member.position)
        member.ended.set()
