"""Nodes with client threads on a simulated cluster: each transaction reads a row, locks it, and
commits with those of its node that came meanwhile. Every step is the protocol's own code; what is
written here is only what threads do between the steps (`txn.row_atomic.group_commit.GroupCommit`).
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from belvedere.benchmarks.scaling.cluster import ClusterShape, SimulatedCluster
from belvedere.benchmarks.scaling.service_times import ServiceTimes
from belvedere.errors import Error, Retry, Unavailable
from belvedere.kv.cell import Step
from belvedere.kv.doubles.cells_network import (
    NetworkFaults,
    NetworkSimulation,
    SimulatedMachine,
    SimulatedProcess,
)
from belvedere.txn.row_atomic import commit, group_commit, read_rows
from belvedere.txn.row_atomic import node as nodes
from belvedere.txn.row_atomic.cells import data_cells, layout
from belvedere.txn.row_atomic.cells.layout import Positions, Record
from belvedere.txn.row_atomic.group_commit import GroupMember
from belvedere.txn.row_atomic.locks import AttemptLocks, RowLock
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import Node, NodeSettings

TABLE = b"\x10\x00\x00\x00\x64"
VIEW = b"\x10\x00\x00\x00\x65"
REQUESTS_PER_COMMIT = 14
"""What a node sends for one transaction of one row, each part of a step counted, a multi-get as
one: its CPU time is spread over these."""

_AtSnapshot = Callable[[int], None]
"""What a client does once it has a snapshot."""

QUIET = NetworkFaults(
    parted=0.0,
    latency_seconds=0.0,
    timeout_seconds=20.0,
    grace_seconds=60.0,
    work_seconds_max=30.0,
)
SETTINGS = NodeSettings(
    grace_seconds=60.0,
    lease_seconds=90.0,
    work_seconds_max=30.0,
    snapshot_seconds_max=0.02,
)


@dataclass(frozen=True, slots=True)
class Load:
    """`skew`: of Zipf's law for the keys, 0: all alike. `groups`: of a view of sums that each
    transaction adds to, 0: without a view."""

    nodes: int
    threads: int
    keys: int = 100_000
    skew: float = 0.0
    groups: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has shown: commits a second, seconds to the acknowledgement (median and the worst
    of a hundred), transactions that were run again for each that committed, group size, and what
    was busiest."""

    commits: float
    latency: float
    latency_p99: float
    retries: float
    group: float
    busiest: tuple[tuple[str, float], ...]


def run_fleet(
    load: Load, shape: ClusterShape, times: ServiceTimes, seconds: float, seed: int
) -> Outcome:
    """The rates after a first quarter of the time, in which queues fill."""
    return Fleet(load, shape, times, seed).run(seconds)


class Fleet:
    def __init__(self, load: Load, shape: ClusterShape, times: ServiceTimes, seed: int) -> None:
        self.load = load
        self.cluster = SimulatedCluster(shape, times)
        self.settings = replace(SETTINGS, lanes=shape.lanes)
        self.world = NetworkSimulation(Random(seed), QUIET, serve=self.cluster.serve)
        self.random = Random(seed + 1)
        self.cpu = times.commit_cpu / REQUESTS_PER_COMMIT
        self.done: list[tuple[float, float]] = []
        self.counts: Counter[str] = Counter()
        self.keys = _KeyChoice(load.keys, load.skew)

    def run(self, seconds: float) -> Outcome:
        for number in range(self.load.nodes):
            self.world.schedule_at(number * seconds / 8 / self.load.nodes, self._boot_node)
        begin = seconds / 4
        self.world.run_until(begin)
        self.cluster.forget_past()
        before = Counter(self.counts)
        self.world.run_until(seconds)
        taken = sorted(spent for at, spent in self.done if at >= begin)
        counts = self.counts - before
        commits = len(taken)
        return Outcome(
            commits / (seconds - begin),
            taken[commits // 2] if taken else 0.0,
            taken[commits * 99 // 100] if taken else 0.0,
            counts["retries"] / max(1, commits),
            counts["members"] / max(1, counts["groups"]),
            tuple(self.cluster.find_busiest(seconds - begin)[:5]),
        )

    def _boot_node(self) -> None:
        machine = SimulatedMachine("node", cpu_seconds=self.cpu)

        def start_clients(node: Node | None, error: Error | None) -> None:
            assert node is not None, error
            member = _FleetNode(self, node, machine)
            for _ in range(self.load.threads):
                member.start_client(Random(self.random.random()))

        step = nodes.join_store(self.settings)
        self.world.start_process(SimulatedProcess(machine, step, start_clients))


@dataclass(frozen=True, slots=True)
class _Client:
    """A thread in a transaction that writes this row."""

    random: Random
    row: bytes
    begun: float


class _FleetNode:
    """A node: its clients wait for the group they are in, groups follow each other, and what is
    committed is settled beside the next group."""

    def __init__(self, fleet: Fleet, node: Node, machine: SimulatedMachine) -> None:
        self.fleet = fleet
        self.node = node
        self.machine = machine
        self.waiting: list[tuple[_Client, GroupMember]] = []
        self.unsettled: list[GroupMember] = []
        self.leading = self.settling = False
        self.transactions = itertools.count(1)
        self.snapshot = (0, float("-inf"))
        self.read_at_least = 0
        self.under_way: list[GroupMember] = []
        self.waiting_settled: list[_AtSnapshot] = []
        self.waiting_looks: list[_AtSnapshot] = []
        self.looking = False

    def start(self, step: Step[Any], ended: Callable[[Any], None] | None = None) -> None:
        def end_process(result: Any, error: Error | None) -> None:
            if error is not None:
                raise error
            if ended is not None:
                ended(result)

        self.fleet.world.start_process(SimulatedProcess(self.machine, step, end_process))

    def start_client(self, random: Random) -> None:
        """A client thread: one transaction after the other."""
        row = TABLE + self.fleet.keys.choose(random).to_bytes(4)
        self._try_transaction(_Client(random, row, self.fleet.world.now))

    def _try_transaction(self, client: _Client) -> None:
        held = AttemptLocks(self.node.start_attempt(), 0)

        def join_group(record: Record | None) -> None:
            if record is None:
                self.node.end_attempt(held.attempt)
                self._end_attempt(client, committed=False)
                return
            member = GroupMember(held, record)
            self.waiting.append((client, member))
            if not self.leading:
                self.leading = True
                self.start(self._lead_groups())

        self._find_snapshot(lambda at: self.start(self._prepare(held, client, at), join_group))

    def _prepare(self, held: AttemptLocks, client: _Client, at: int) -> Step[Record | None]:
        try:
            yield from read_rows.get_row(client.row, at)
            return (yield from commit.prepare_commit(self.node, held, self._make_work(client, at)))
        except Retry as lost:
            self.read_at_least = max(self.read_at_least, lost.lost_to)
            return None

    def _end_attempt(self, client: _Client, *, committed: bool) -> None:
        now = self.fleet.world.now
        if not committed:
            self.fleet.counts["retries"] += 1
            self._try_transaction(client)
            return
        self.fleet.done.append((now, now - client.begun))
        self.start_client(client.random)

    def _make_work(self, client: _Client, at: int) -> commit.CommitRequest:
        row = client.row
        name = f"{self.node.id}.{next(self.transactions)}".encode()
        writes = [data_cells.put_row(row, {b"v": name})]
        groups = self.fleet.load.groups
        if groups:
            group = VIEW + client.random.randrange(groups).to_bytes(4)
            writes.append(data_cells.add_to_sum(group, b"g", (1, 1)))
        lock = RowLock(layout.lock_row("root", row))
        return commit.CommitRequest(name, at, 0, (lock,), tuple(writes), body=b"1")

    def _find_snapshot(self, go_on: _AtSnapshot) -> None:
        """A statement reads at a snapshot of a certain age that contains every commit of its node:
        it waits until they are settled, and then, with the other threads, for `applied`."""
        need = self.read_at_least
        if self.snapshot[0] < need:
            if self._is_unsettled(need):
                self.waiting_settled.append(go_on)
                return
            moved, when = self.node.moved
            if moved.applied >= need:
                self.snapshot = (moved.applied, when)
        at, taken = self.snapshot
        if at >= need and self.fleet.world.now - taken < SETTINGS.snapshot_seconds_max:
            go_on(at)
        else:
            self.waiting_looks.append(go_on)
            self._look_for_positions()

    def _look_for_positions(self) -> None:
        """Those who wait look together (`txn.row_atomic.log.shared_reach`)."""
        if self.looking or not self.waiting_looks:
            return
        waiting, self.waiting_looks = self.waiting_looks, []
        begun, self.looking = self.fleet.world.now, True
        self.fleet.counts["looks"] += 1

        def go_on_together(found: Positions) -> None:
            self.snapshot, self.looking = (found.applied, begun), False
            for go_on in waiting:
                go_on(found.applied)
            self._look_for_positions()

        self.start(advance.reach_positions(self.node, self.read_at_least), go_on_together)

    def _is_unsettled(self, position: int) -> bool:
        return any(member.position <= position for member in (*self.under_way, *self.unsettled))

    def _lead_groups(self) -> Step[None]:
        while self.waiting:
            waiting, self.waiting = self.waiting, []
            group = [member for _, member in waiting]
            done = yield from group_commit.append_group(self.node, group)
            self.fleet.counts["groups"] += 1
            self.fleet.counts["members"] += len(done)
            self.unsettled += done
            self.read_at_least = max([self.read_at_least, *(member.position for member in done)])
            for client, member in waiting:
                if not member.committed:
                    self.node.end_attempt(member.held.attempt)
                self._end_attempt(client, committed=member.committed)
            if self.unsettled and not self.settling:
                self.settling = True
                self.start(self._settle_members())
        self.leading = False

    def _settle_members(self) -> Step[None]:
        while self.unsettled:
            members, self.unsettled = self.unsettled, []
            members.sort(key=lambda member: member.position)
            self.under_way = members
            try:
                yield from group_commit.settle_members(self.node, members)
            except Unavailable:
                self.fleet.counts["settled by others"] += len(members)
            for member in members:
                self.node.end_attempt(member.held.attempt)
            self.under_way = []
            waiting, self.waiting_settled = self.waiting_settled, []
            for go_on in waiting:
                self._find_snapshot(go_on)
        self.settling = False


class _KeyChoice:
    """Keys by Zipf's law, or all alike."""

    def __init__(self, keys: int, skew: float) -> None:
        self._keys = keys
        weights = [1 / number**skew for number in range(1, keys + 1)] if skew else []
        self._sums = list(itertools.accumulate(weights))

    def choose(self, random: Random) -> int:
        if not self._sums:
            return random.randrange(self._keys)
        return min(bisect.bisect(self._sums, random.random() * self._sums[-1]), self._keys - 1)
