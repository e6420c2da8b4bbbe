"""The in-memory state of one node. It is only a cache: a node that loses all of it loses only time.

Safety never rests on a clock. Clocks decide when to stop waiting: a lock is expired when the
heartbeat of its node did not change for the lease, on the clock of the node that reads it; a
position is closed when it stayed empty for the closing delay.
"""

from __future__ import annotations

import threading
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace

from belvedere.errors import InvalidInput
from belvedere.kv.cell import (
    BeginWork,
    CellDelete,
    CheckAndMutate,
    Get,
    Increment,
    MultiGet,
    Mutate,
    Put,
    Step,
    value_of,
)
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import (
    ATTEMPTS_PER_NODE,
    Heartbeat,
    Positions,
    StoredSettings,
)

ADVANCE_WAIT_MIN, ADVANCE_WAIT_MAX = 0.001, 0.016
"""Seconds."""

WORK_SHARE = 0.4
"""The part of the grace in which a node may act on what it read; the rest is for its requests."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Equal on all nodes of a store, which keeps them (`agree_on_settings`): a node that counted
    with a shorter lease than the others would take them for dead, and one with a shorter grace
    remove tombstones that their late requests still need. Work limit + operation timeout < grace <
    lease."""

    lanes: int = 16
    lease_seconds: float = 10.0
    grace_seconds: float = 5.0
    work_seconds_max: float = 2.0
    lock_wait_seconds_max: float = 30.0
    lock_poll_seconds: float = 0.02
    close_seconds_min: float = 0.05
    close_multiple: float = 8.0
    delay_decay: float = 0.99
    log_batch: int = 64
    tries_max: int = 8
    record_bytes_max: int = 4 * 1024 * 1024
    snapshot_seconds_max: float = 0.0
    """How long a node may go on reading at a snapshot it has: so much later it may notice commits
    of other nodes, unless it is asked for the latest. 0: every snapshot is a new one."""


@dataclass(slots=True)
class Node:
    """One process's memory of the protocol."""

    id: int
    settings: NodeSettings = NodeSettings()
    attempt_last: int = 0
    beat: int = 0
    live: set[int] = field(default_factory=set)
    snapshots: Counter[int] = field(default_factory=Counter)
    heard: dict[int, tuple[Heartbeat | None, float]] = field(default_factory=dict)
    holes: dict[int, tuple[float, float]] = field(default_factory=dict)
    met: set[int] = field(default_factory=set)
    progress: dict[int, tuple[int, float]] = field(default_factory=dict)
    moved: tuple[Positions, float] = (Positions(), float("-inf"))
    """Where this node itself has moved the positions of the store last, and when it began to."""
    commit_seconds: float = 0.0
    advance_wait: float = 0.0
    """How long to wait at most for other nodes to move the positions of the store: longer after
    another one was faster, nothing where nobody else is about."""
    draws: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def start_attempt(self) -> int:
        with self.mutex:
            self.attempt_last += 1
            attempt = self.id * ATTEMPTS_PER_NODE + self.attempt_last
            self.live.add(attempt)
        return attempt

    def draw_number(self) -> int:
        """A number like that of an attempt, which no attempt has."""
        with self.mutex:
            self.attempt_last += 1
            return self.id * ATTEMPTS_PER_NODE + self.attempt_last

    def end_attempt(self, attempt: int) -> None:
        with self.mutex:
            self.live.discard(attempt)

    def note_unapplied(self, position: int) -> bool:
        """Whether an unapplied record at this position is met for the first time."""
        news = position not in self.met
        self.met.add(position)
        return news

    def forget_up_to(self, applied: int) -> None:
        """Drop what is known of holes and records at or below `applied`, which are final."""
        if self.progress:
            self.progress = {p: seen for p, seen in tuple(self.progress.items()) if p > applied}
        if len(self.holes) + len(self.met) > 256:
            # Copied in one step: other threads of the process keep adding.
            self.holes = {p: seen for p, seen in tuple(self.holes.items()) if p > applied}
            self.met = {p for p in tuple(self.met) if p > applied}

    def open_snapshot(self, position: int) -> None:
        with self.mutex:
            self.snapshots[position] += 1

    def close_snapshot(self, position: int) -> None:
        with self.mutex:
            self.snapshots[position] -= 1
            if self.snapshots[position] <= 0:
                del self.snapshots[position]

    def note_advance(self, *, won: bool) -> None:
        """Learn from an attempt to move the positions of the store whether others do the same."""
        if won:
            self._shorten_advance_wait(0.5)
        else:
            longer = max(ADVANCE_WAIT_MIN, 2 * self.advance_wait)
            self.advance_wait = min(longer, ADVANCE_WAIT_MAX)

    def note_advanced_by_others(self) -> None:
        """A wait was long enough: try a shorter one, so that few nodes do not wait like many."""
        self._shorten_advance_wait(0.8)

    def _shorten_advance_wait(self, factor: float) -> None:
        shorter = self.advance_wait * factor
        self.advance_wait = shorter if shorter >= ADVANCE_WAIT_MIN else 0.0

    def draw_advance_wait(self) -> float:
        """A time up to that, another one for every node and time: 0 where nobody else is about."""
        if not self.advance_wait:
            return 0.0
        self.draws += 1
        drawn = zlib.crc32(b"%d %d" % (self.id, self.draws)) / 2**32
        return self.advance_wait * (1 + drawn) / 2

    def choose_log_range(self, applied: int, need: int) -> range:
        """The positions to look at so that `need` is applied. Where other nodes wait too, those
        after it are moved over with it, as far as they are applied."""
        last = applied + self.settings.log_batch
        return range(applied + 1, (last if self.advance_wait else min(need, last)) + 1)

    def note_positions(self, moved: Positions, started: float) -> None:
        with self.mutex:
            if moved.applied > self.moved[0].applied:
                self.moved = (moved, started)

    def observe_commit(self, seconds: float) -> None:
        """Learn how long a live writer takes from its position to its log row."""
        self.commit_seconds += (seconds - self.commit_seconds) * 0.2

    def closing_delay(self, shared_seconds: float) -> float:
        """How long a position may stay empty. Grows with every live writer that was hit (shared),
        and is capped by the lease: a fixed delay collapses under load."""
        settings = self.settings
        wanted = settings.close_multiple * self.commit_seconds
        return min(max(wanted, shared_seconds, settings.close_seconds_min), settings.lease_seconds)

    def poll_delay(self, shared_seconds: float) -> float:
        """How long to wait before looking again at what a writer has not done yet. It follows the
        time that writers take, not the closing delay, which may be that of the slowest ever."""
        usual = max(self.commit_seconds, self.settings.close_seconds_min / 4)
        return max(min(self.closing_delay(shared_seconds) / 4, usual), 0.001)


def node_of(attempt: int) -> int:
    return attempt // ATTEMPTS_PER_NODE


def join_store(settings: NodeSettings) -> Step[Node]:
    """A node with an id that is used once for ever, known to the others by its heartbeat."""
    yield BeginWork()
    id_ = yield Increment(layout.NODES_ROW, layout.NUMBER)
    node = Node(id_, settings)
    yield from send_heartbeat(node)
    return node


def send_heartbeat(node: Node) -> Step[None]:
    """Write the heartbeat: this node is alive, and which attempts and snapshots it has ended."""
    with node.mutex:
        node.beat += 1
        next_attempt = node.id * ATTEMPTS_PER_NODE + node.attempt_last + 1
        oldest = min(node.live, default=next_attempt)
        value = Heartbeat(node.beat, oldest, min(node.snapshots, default=-1))
    yield BeginWork()
    put = Put(layout.BEAT, layout.ONLY, layout.encode(value))
    yield Mutate(layout.heartbeat_row(node.id), (put,))


def leave_store(node: Node) -> Step[None]:
    """Remove the heartbeat of a node that has nothing left to do. Its id is not used again."""
    yield BeginWork()
    gone = CellDelete(layout.BEAT, layout.ONLY)
    yield Mutate(layout.heartbeat_row(node.id), (gone,))


def agree_on_settings(
    defaults: NodeSettings, lease_ms: int | None, grace_ms: int | None
) -> Step[NodeSettings]:
    """The settings of the store: those that are kept in it, or, where it is new, the wanted ones,
    which are then kept. InvalidInput when others are wanted than those that it has."""
    usual = StoredSettings(
        defaults.lanes,
        round(defaults.lease_seconds * 1000),
        round(defaults.grace_seconds * 1000),
    )
    wanted = StoredSettings(usual.lanes, lease_ms or usual.lease_ms, grace_ms or usual.grace_ms)
    while True:
        rows = yield MultiGet((Get(layout.SETTINGS_ROW), Get(layout.IDENTITY_ROW)))
        stored = value_of(rows[0], layout.SETTINGS)
        if stored is not None:
            found = layout.decode(StoredSettings, stored, layout.SETTINGS_ROW)
            _require_same(found, lease_ms, grace_ms)
            return _apply_settings(defaults, found)
        if value_of(rows[1], layout.IDENTITY) is not None:
            # Made before settings were kept: everybody on it counts with the usual ones.
            _require_same(usual, lease_ms, grace_ms)
            wanted = usual
        _require_lease_above_grace(wanted)
        yield BeginWork()
        put = Put(layout.SETTINGS, layout.ONLY, layout.encode(wanted))
        yield CheckAndMutate(layout.SETTINGS_ROW, layout.SETTINGS, None, (put,))


def _apply_settings(defaults: NodeSettings, found: StoredSettings) -> NodeSettings:
    grace = found.grace_ms / 1000
    return replace(
        defaults,
        lanes=found.lanes,
        lease_seconds=found.lease_ms / 1000,
        grace_seconds=grace,
        work_seconds_max=grace * WORK_SHARE,
    )


def _require_same(found: StoredSettings, lease_ms: int | None, grace_ms: int | None) -> None:
    if lease_ms in (None, found.lease_ms) and grace_ms in (None, found.grace_ms):
        return
    raise InvalidInput(
        "the database has another lease or grace",
        sqlstate="22023",
        hint="they are chosen when it is made: leave them out of the URL",
        lease_ms=found.lease_ms,
        grace_ms=found.grace_ms,
    )


def _require_lease_above_grace(wanted: StoredSettings) -> None:
    if wanted.lease_ms <= wanted.grace_ms:
        raise InvalidInput(
            "the lease has to be longer than the grace",
            sqlstate="22023",
            lease_ms=wanted.lease_ms,
            grace_ms=wanted.grace_ms,
        )
