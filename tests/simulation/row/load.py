"""Closing under load: many writers on a store of limited speed that stalls now and then.

Each writer commits one-lock transactions back to back, at snapshots that hold its own writes or the
very latest ones, so it has to wait for others, to help, and to close what stays empty. What must
not happen: live writers being closed so often that they only take new positions and nobody commits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from belvedere.errors import Error, Retry, Unavailable
from belvedere.kv.cell import Pause, Step
from belvedere.kv.doubles.cells_network import (
    NetworkFaults,
    NetworkSimulation,
    SimulatedMachine,
    SimulatedProcess,
)
from belvedere.txn.row_atomic import commit
from belvedere.txn.row_atomic import node as nodes
from belvedere.txn.row_atomic.cells import data_cells, layout
from belvedere.txn.row_atomic.locks import RowLock
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import Node, NodeSettings

TABLE = b"\x10\x00\x00\x00\x64"
NODES = 8
WRITER_SECONDS = 0.03
"""A writer's machine is busy: so long between an answer and the next request, on average."""
SPEED = NetworkFaults(
    parted=0.0,
    operations_per_second=3000.0,
    latency_seconds=0.0005,
    timeout_seconds=2.0,
    grace_seconds=5.0,
    work_seconds_max=2.5,
)


@dataclass
class Load:
    writers: int
    seconds: float
    commits: int
    closed_live: int
    per_second: list[int]
    counts: Counter[str]

    @property
    def share(self) -> float:
        return self.closed_live / max(1, self.commits + self.closed_live)

    def summary(self) -> str:
        rate = self.commits / self.seconds
        return (
            f"{self.writers} writers: {rate:.0f} commits/s, {self.closed_live} closed while alive "
            f"({100 * self.share:.2f}%), worst second {min(self.per_second)}"
        )


class Fleet:
    def __init__(self, writers: int, seed: int, settings: NodeSettings) -> None:
        self.world = NetworkSimulation(Random(seed), SPEED)
        self.random = Random(seed + 1)
        self.settings = replace(settings, work_seconds_max=SPEED.work_seconds_max)
        self.writers = writers // NODES
        self.members: list[Node] = []
        self.machines: list[SimulatedMachine] = []
        self.done: list[float] = []

    def run(self, seconds: float) -> Load:
        for _ in range(NODES):
            self._boot()
        self._boot_reader()
        moment = 1.0
        while moment < seconds:
            self.world.schedule_at(
                moment, lambda: self.world.stall_store(self.random.uniform(0.2, 1.0))
            )
            self.world.schedule_at(moment + 0.7, self._pause_one)
            self.world.schedule_at(moment + 1.1, self._kill_one)
            moment += self.random.uniform(1.5, 3.0)
        self.world.run_until(seconds)
        counts = sum((member.counts for member in self.members), Counter())
        per_second = Counter(int(time) for time in self.done)
        rates = [per_second[n] for n in range(1, int(seconds))]
        closed = counts["live writers closed"]
        return Load(self.writers * NODES, seconds, len(self.done), closed, rates, counts)

    def _boot(self) -> None:
        machine = SimulatedMachine(f"m{len(self.machines)}", step_seconds=WRITER_SECONDS)
        self.machines.append(machine)

        def joined(node: Node | None, error: Error | None) -> None:
            assert node is not None, error
            self.members.append(node)
            for writer in range(self.writers):
                name = f"{machine.name}.{writer}"
                step = _writer(node, Random(self.random.random()), name)
                ack = self._acknowledged
                self.world.start_process(SimulatedProcess(machine, step, _never, ack))
            self.world.start_process(SimulatedProcess(machine, _heart(node), _never))

        self.world.start_process(SimulatedProcess(machine, nodes.join_store(self.settings), joined))

    def _boot_reader(self) -> None:
        """A quick machine that always wants the latest, and never commits itself."""

        def joined(node: Node | None, error: Error | None) -> None:
            assert node is not None, error
            self.members.append(node)
            for _ in range(4):
                self.world.start_process(
                    SimulatedProcess(SimulatedMachine("reader"), _reader(node), _never)
                )

        self.world.start_process(
            SimulatedProcess(SimulatedMachine("reader"), nodes.join_store(self.settings), joined)
        )

    def _acknowledged(self, position: int) -> None:
        self.done.append(self.world.now)

    def _one(self) -> SimulatedMachine:
        return self.random.choice([machine for machine in self.machines if machine.alive])

    def _pause_one(self) -> None:
        self._one().paused_until = self.world.now + self.random.uniform(0.1, 0.8)

    def _kill_one(self) -> None:
        self._one().alive = False
        self._boot()


def run(writers: int, seconds: float, seed: int, settings: NodeSettings) -> Load:
    return Fleet(writers, seed, settings).run(seconds)


def _never(result: Any, error: Error | None) -> None:
    raise AssertionError(f"writer ended: {result!r} {error!r}")


def _heart(node: Node) -> Step[None]:
    while True:
        yield from nodes.send_heartbeat(node)
        yield Pause(1.0)


def _reader(node: Node) -> Step[None]:
    while True:
        try:
            yield from advance.latest_position(node)
        except Unavailable:
            node.counts["unanswered"] += 1
        yield Pause(0.01)


def _writer(node: Node, random: Random, name: str) -> Step[None]:
    token = number = 0
    while True:
        number += 1
        row = TABLE + str(random.randrange(2000)).encode()
        try:
            if random.random() < 0.5:
                at = yield from advance.latest_position(node)
            else:
                at = yield from advance.snapshot_position(node, token)
            lock = RowLock(layout.lock_row("root", row))
            write = data_cells.put_row(row, {b"v": name.encode()})
            work = commit.CommitRequest(f"{name}.{number}".encode(), at, 0, (lock,), (write,))
            token = yield from commit.commit_transaction(node, work)
        except Retry as retry:
            token = max(token, retry.lost_to)
        except Unavailable:
            node.counts["unknown"] += 1
