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
from typing import Any

from belvedere.errors import Error, Retry
from belvedere.kv.cell import (
    Acknowledge,
    BeginWork,
    CheckAndMutate,
    Increment,
    Many,
    Now,
    ReplyLost,
    Step,
    WorkExpired,
)
from belvedere.txn.row_atomic import commit, locks
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import Record
from belvedere.txn.row_atomic.locks import AttemptLocks
from belvedere.txn.row_atomic.log import log_rows, record_parts
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
    done = yield from append_group(node, members)
    for member in done:
        yield Acknowledge(member.position)
    if done:
        yield from settle_members(node, done)


def append_group(node: Node, members: Sequence[GroupMember]) -> Step[list[GroupMember]]:
    """Steps 2 to 4: the members that are committed, by position; the others have their error."""
    if len(members) > 1:
        yield from _append_together(node, members)
    for member in members:
        if not member.committed and member.error is None:
            yield from _append_member(node, member)
    return sorted((m for m in members if m.committed), key=lambda member: member.position)


def _append_together(node: Node, members: Sequence[GroupMember]) -> Step[None]:
    """Those whose position was closed meanwhile have neither committed nor failed after it."""
    try:
        yield BeginWork()
        for member in members:
            member.value = yield from log_rows.encode_log_value(node, member.record)
        started = yield Now()
        last = yield Increment(layout.COUNTER_ROW, layout.NUMBER, len(members))
    except (ReplyLost, WorkExpired):
        return
    for number, member in enumerate(members):
        member.position = last - len(members) + 1 + number
    stamped = yield from _stamp_primaries(node, members)
    yield from _write_records(node, stamped)
    if any(member.committed for member in stamped):
        node.observe_commit((yield Now()) - started)


def _append_member(node: Node, member: GroupMember) -> Step[None]:
    try:
        member.position = yield from commit.append_record(node, member.held, member.record)
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


def settle_members(node: Node, members: Sequence[GroupMember]) -> Step[None]:
    """Step 5, for committed members, by position: they stand whatever happens here."""
    if any(record_parts.is_large(member.record) for member in members):
        yield from _settle_one_by_one(node, members)
        return
    try:
        changed = yield from commit.apply_records(
            node, [(member.held, member.position, member.record) for member in members]
        )
        if not changed:
            return
    except (ReplyLost, WorkExpired):
        node.counts["groups settled again"] += 1
    yield from _settle_one_by_one(node, members)


def _settle_one_by_one(node: Node, members: Sequence[GroupMember]) -> Step[None]:
    for member in members:
        yield from commit.apply_and_release_again(node, member.held, member.position)


class GroupCommit:
    """Lets threads commit together: the first leads; threads that arrive meanwhile form the next
    group. Members are answered when their records are in the log. What is left, the settling, is
    done by a thread of its own while the next group commits; without such a thread, by the
    leader, before it answers."""

    def __init__(
        self,
        run: Callable[[Step[Any]], Any],
        node: Node,
        run_settling: Callable[[Step[Any]], Any] | None = None,
    ) -> None:
        """`run_settling`: drives the steps of the thread that settles, if there is to be one."""
        self._run = run
        self._run_settling = run_settling or run
        self._node = node
        self._mutex = threading.Lock()
        self._waiting: list[GroupMember] = []
        self._leading = False
        self._settler = SettlerThread(self._settle) if run_settling is not None else None

    def complete_commit(self, held: AttemptLocks, record: Record) -> int:
        """The position of the commit; raises what it failed with. It ends the attempt."""
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

    def wait_settled(self, position: int) -> None:
        """Until no commit of this node up to this position is left to be settled."""
        if self._settler is not None:
            self._settler.wait_for(position)

    def close(self) -> None:
        if self._settler is not None:
            self._settler.stop()

    def _lead_groups(self) -> None:
        """Commit groups until no member waits. Whatever happens, no member is left waiting."""
        while True:
            with self._mutex:
                group, self._waiting = self._waiting, []
                if not group:
                    self._leading = False
                    return
            try:
                done: list[GroupMember] = self._run(append_group(self._node, group))
                if self._settler is not None:
                    self._settler.hand_over(done)
                else:
                    self._settle(done)
            except BaseException:
                with self._mutex:
                    group += self._waiting
                    self._waiting, self._leading = [], False
                raise
            finally:
                for member in group:
                    self._end_member(member)

    def _settle(self, members: Sequence[GroupMember]) -> None:
        try:
            if members:
                self._run_settling(settle_members(self._node, members))
        finally:
            for member in members:
                self._node.end_attempt(member.held.attempt)

    def _end_member(self, member: GroupMember) -> None:
        if not member.committed:
            self._node.end_attempt(member.held.attempt)
            if member.error is None:
                member.error = log_rows.unknown_outcome(member.record.transaction, member.position)
        member.ended.set()


class SettlerThread:
    """Settles what is handed over, all that has come in meanwhile together."""

    def __init__(self, settle: Callable[[Sequence[GroupMember]], None]) -> None:
        self._settle = settle
        self._changed = threading.Condition()
        self._pending: list[GroupMember] = []
        self._under_way: list[GroupMember] = []
        self._stopped = False
        self.failures = 0
        self._thread = threading.Thread(
            target=self._settle_until_stopped, name="belvedere settler", daemon=True
        )
        self._thread.start()

    def hand_over(self, members: Sequence[GroupMember]) -> None:
        with self._changed:
            self._pending += members
            self._changed.notify_all()

    def wait_for(self, position: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_open(position))

    def _is_open(self, position: int) -> bool:
        return any(m.position <= position for m in (*self._under_way, *self._pending))

    def stop(self) -> None:
        """Settle what is there, and end the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join()

    def _settle_until_stopped(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._stopped)
                if not self._pending:
                    return
                self._under_way, self._pending = self._pending, []
                self._under_way.sort(key=lambda member: member.position)
            try:
                self._settle(self._under_way)
            except Error:
                # The commits stand. The next process that meets them
                # does the rest, and is told what is wrong with them.
                self.failures += 1
            finally:
                with self._changed:
                    self._under_way = []
                    self._changed.notify_all()
