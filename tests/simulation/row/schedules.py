"""One seeded schedule: four nodes, their clients, and everything that goes wrong.

    python -m tests.simulation.row.schedules [--seeds 10000] [--from 0]

For some virtual seconds requests are lost, doubled and delayed, machines pause beyond their lease,
die and are replaced; then faults stop. Afterwards every client must have finished, every lock must
be free and every position decided, within the lease; and the history checker must find nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from belvedere.errors import Error, InvalidInput, Retry, Unavailable
from belvedere.kv.cell import Get, Pause, ReplyLost, Step, WorkExpired
from belvedere.kv.doubles.cells_network import (
    NO_NETWORK_FAULTS,
    NetworkFaults,
    NetworkSimulation,
    SimulatedMachine,
    SimulatedProcess,
)
from belvedere.txn.row_atomic import catalog_barrier, commit, read_rows
from belvedere.txn.row_atomic import node as nodes
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.housekeeping import fold, sweep, vacuum
from belvedere.txn.row_atomic.log import advance, log_rows
from belvedere.txn.row_atomic.node import Node, NodeSettings
from tests.simulation.row import workload
from tests.simulation.row.history import violations
from tests.simulation.row.workload import Kinds, Transaction

LEASE, GRACE, SWEEP = 2.0, 1.0, 0.5
STORM_SECONDS = 6.0
MACHINES, CLIENTS, TRANSACTIONS = 4, 3, 10
SETTINGS = NodeSettings(
    lanes=3,
    lease_seconds=LEASE,
    grace_seconds=GRACE,
    work_seconds_max=NO_NETWORK_FAULTS.work_seconds_max,
    lock_wait_seconds_max=6.0,
    lock_poll_seconds=0.01,
    close_seconds_min=0.02,
    log_batch=16,
    record_bytes_max=400,
)
STORM = NetworkFaults(
    request_lost=0.01,
    reply_lost=0.015,
    delayed=0.015,
    twice=0.02,
    answered_false=0.015,
    compacted=0.05,
)


@dataclass
class Result:
    seed: int
    wrong: list[str]
    counts: Counter[str]
    seconds: float = 0.0
    transactions: list[Transaction] = field(default_factory=list)


@dataclass(eq=False)
class Client:
    name: str
    machine: SimulatedMachine
    left: int
    over: bool = False
    current: Transaction | None = None


class Simulation:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.world = NetworkSimulation(Random(seed + 1), STORM)
        self.settings = SETTINGS
        self.history: list[Transaction] = []
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.running = 0
        self.storm = True
        self.machines: dict[SimulatedMachine, Node] = {}
        self.clients: list[Client] = []
        self.indexed: set[int] = set()
        self.outcomes: dict[str, int] = {}

    def run(self) -> Result:
        started = time.perf_counter()
        for number in range(MACHINES):
            self._boot(f"m{number}", TRANSACTIONS)
        for _ in range(self.random.randint(1, 4)):
            self.world.schedule_at(self.random.uniform(0.2, STORM_SECONDS), self._misfortune)
        self.world.schedule_at(STORM_SECONDS, self._calm)
        deadline = STORM_SECONDS + 60.0
        self.world.run_until(deadline, lambda: not self.storm and not self.running)
        if self.running:
            self.wrong.append(f"{self.running} clients have not finished: starved")
        self.world.run_until(self.world.now + LEASE + 2 * SWEEP + GRACE)
        self._check_free()
        self._check_history()
        return Result(
            self.seed,
            self.wrong,
            self.counts + self.world.counts,
            time.perf_counter() - started,
            self.history,
        )

    def _boot(self, name: str, transactions: int) -> None:
        machine = SimulatedMachine(name, clock_offset=self.random.uniform(0, 1000))
        self.running += 1

        def joined(node: Node | None, error: Error | None) -> None:
            self.running -= 1
            if node is None:
                self._boot(name + "'", transactions)
                return
            self.machines[machine] = node
            for number in range(CLIENTS):
                self._client(machine, node, f"{name}.{number}", transactions)
            for task in (self._heart, self._janitor, self._forgetter, self._folder, self._ddl):
                self._spawn(machine, task(node))

        self.world.start_process(SimulatedProcess(machine, nodes.join_store(self.settings), joined))

    def _spawn(self, machine: SimulatedMachine, step: Step[Any]) -> None:
        def ended(_: Any, error: Error | None) -> None:
            if error is not None:
                self.wrong.append(f"background work failed: {error}")

        self.world.start_process(SimulatedProcess(machine, step, ended))

    def _heart(self, node: Node) -> Step[None]:
        while True:
            try:
                yield from nodes.send_heartbeat(node)
            except (ReplyLost, WorkExpired):
                self.counts["beats lost"] += 1
            yield Pause(LEASE / 5)

    def _janitor(self, node: Node) -> Step[None]:
        while True:
            yield Pause(SWEEP * self.random.uniform(0.5, 1.0))
            yield from self._tolerant(sweep.sweep_locks(node))

    def _forgetter(self, node: Node) -> Step[None]:
        while True:
            yield Pause(self.random.uniform(0.5, 4.0))
            yield from self._tolerant(self._forget(node))

    def _forget(self, node: Node) -> Step[None]:
        positions, _, _ = yield from advance.read_positions()
        keep = self.random.choice((0, 0, 5, 20))
        below = max(0, positions.applied - keep)
        before = log_rows.decode_floors((yield Get(layout.FLOOR_ROW)))
        self._remember_outcomes()
        forgotten = yield from vacuum.forget_outcomes(before.trimmed)
        self.counts["outcomes forgotten"] += forgotten
        yield from vacuum.vacuum_and_trim(node, workload.TABLE, b"\x11", below, below)

    def _remember_outcomes(self) -> None:
        """The judge asks the store itself, before anything is forgotten."""
        stored = self.world.store.copy_rows()
        for transaction in self.history:
            state = stored.get(layout.outcome_row(transaction.name.encode()))
            if state and state[0][1].cells:
                self.outcomes[transaction.name] = int.from_bytes(state[0][1].cells[0][1])

    def _folder(self, node: Node) -> Step[None]:
        while True:
            yield Pause(self.random.uniform(0.2, 2.0))
            yield from self._tolerant(fold.fold_row(workload.row_key("s")))

    def _ddl(self, node: Node) -> Step[None]:
        while True:
            yield Pause(self.random.uniform(0.5, 6.0))
            yield from self._tolerant(self._create_index(node))

    def _create_index(self, node: Node) -> Step[None]:
        version, _ = yield from workload.create_index(node)
        self.indexed.add(version)
        at = yield from advance.latest_position(node)
        names = [f"l{n}" for n in range(workload.LISTS)]
        base = yield from read_rows.get_rows([workload.row_key(name) for name in names], at)
        index = yield from read_rows.get_rows(
            [workload.index_key(version, name) for name in names], at
        )
        yield from read_rows.require_above_floor(at)
        if (yield from catalog_barrier.read_version()) != version:
            return
        self.counts["indexes checked"] += 1
        for name, left, right in zip(names, base, index):
            if (left and left.columns) != (right and right.columns):
                self.wrong.append(f"index {version} of {name} differs at {at}")

    def _tolerant(self, step: Step[Any]) -> Step[None]:
        """Background work that gives up when the store does not answer, and is tried again
        later."""
        try:
            yield from step
        except (Retry, Unavailable):
            self.counts["background work given up"] += 1

    def _client(self, machine: SimulatedMachine, node: Node, name: str, transactions: int) -> None:
        client = Client(name, machine, transactions)
        self.clients.append(client)
        self.running += 1

        def ended(_: Any, error: Error | None) -> None:
            client.over = True
            self.running -= 1
            if error is not None:
                self.wrong.append(f"client {name} failed: {error}")

        def acknowledged(position: int) -> None:
            assert client.current is not None
            client.current.outcome, client.current.position = "committed", position

        self.world.start_process(
            SimulatedProcess(machine, self._session(node, client), ended, acknowledged)
        )

    def _session(self, node: Node, client: Client) -> Step[None]:
        kinds = Kinds(self.random)
        token = 0
        while client.left:
            client.left -= 1
            yield Pause(self.random.expovariate(1 / self.random.choice((0.01, 0.05, 0.5))))
            kind, at_least = kinds.pick(), token
            for attempt in range(300):
                transaction = Transaction(f"{client.name}-{client.left}.{attempt}", kind)
                transaction.token = at_least
                client.current = transaction
                self.history.append(transaction)
                lost_to = yield from self._attempt(node, transaction, kinds)
                client.current = None
                self.counts[transaction.outcome] += 1
                if transaction.outcome != "aborted":
                    break
                at_least = max(at_least, lost_to)
                yield Pause(self.random.uniform(0, 0.01 * min(attempt + 1, 20)))
            else:
                self.wrong.append(f"{transaction.name} starved")
            token = max(token, transaction.position, transaction.snapshot)

    def _attempt(self, node: Node, transaction: Transaction, kinds: Kinds) -> Step[int]:
        at = -1
        try:
            version = yield from catalog_barrier.read_version()
            if self.random.random() < 0.2:
                at = yield from advance.latest_position(node)
            else:
                at = yield from advance.snapshot_position(node, transaction.token)
            node.snapshots[at] += 1
            transaction.snapshot = at
            work = yield from kinds.body(node, transaction, version)
            yield from read_rows.require_above_floor(transaction.snapshot)
            if work is not None:
                yield from commit.commit_transaction(node, work)
            transaction.outcome = "committed"
        except Retry as retry:
            transaction.outcome = "aborted"
            return retry.lost_to
        except InvalidInput:
            transaction.outcome = "refused"
        except Unavailable as error:
            unknown = "unknown" in error.message
            transaction.outcome = "unknown" if unknown else "aborted"
            if not unknown:
                transaction.reads.clear()
        finally:
            if at >= 0:
                node.snapshots[at] -= 1
                node.snapshots += Counter()
        return 0

    def _misfortune(self) -> None:
        """A machine pauses, mostly beyond its lease, or dies and is replaced."""
        alive = [machine for machine in self.machines if machine.alive]
        if not alive:
            return
        machine = self.random.choice(alive)
        if self.random.random() < 0.6:
            self.counts["machines paused"] += 1
            length = self.random.choice((0.1, 0.6, 1.5, LEASE * 1.5, LEASE * 2.5))
            machine.paused_until = self.world.now + length
            return
        self.counts["machines killed"] += 1
        machine.alive = False
        left = 0
        for client in self.clients:
            if client.machine is machine and not client.over:
                client.over = True
                self.running -= 1
                left = max(left, client.left)
                if client.current is not None and not client.current.outcome:
                    client.current.outcome = "unknown"
        self._boot(machine.name + "'", left)

    def _calm(self) -> None:
        self.storm = False
        self.world.faults = NO_NETWORK_FAULTS

    def _look(self, step: Step[Any]) -> Any:
        """Run a step by itself, on a machine of its own, until it ends."""
        found: list[Any] = []

        def ended(result: Any, error: Error | None) -> None:
            found.append(error if error is not None else result)

        self.world.start_process(SimulatedProcess(SimulatedMachine("judge"), step, ended))
        self.world.run_until(self.world.now + 60.0, lambda: bool(found))
        if not found or isinstance(found[0], Error):
            self.wrong.append(f"final look failed: {found}")
            return None
        return found[0]

    def _check_free(self) -> None:
        held = self._look(sweep.held_locks())
        if held:
            self.wrong.append(f"locks still held: {held}")
        positions = self._look(advance.read_positions())
        counter = self._look(_counter())
        if positions is not None and positions[0].applied < (counter or 0):
            self.wrong.append(f"undecided: {positions[0]} of {counter}")

    def _check_history(self) -> None:
        judge = Node(10_000, self.settings)
        at = self._look(advance.latest_position(judge))
        names = [f"a{n}" for n in range(workload.ACCOUNTS)]
        names += [f"l{n}" for n in range(workload.LISTS)]
        rows = self._look(read_rows.get_rows([workload.row_key(name) for name in names], at)) or []
        final = {n: r.columns[workload.VALUE].decode() if r else None for n, r in zip(names, rows)}
        total = self._look(read_rows.get_row(workload.row_key("s"), at))
        final["s"] = str(total.sum.amounts[0]) if total and total.sum else None
        self._remember_outcomes()
        self.wrong += violations(self.history, self.outcomes, final)
        self._check_index(at, final)

    def _check_index(self, at: int, final: dict[str, str | None]) -> None:
        version = self._look(catalog_barrier.read_version())
        if version not in self.indexed:
            return
        self.counts["indexes checked"] += 1
        for n in range(workload.LISTS):
            row = self._look(read_rows.get_row(workload.index_key(version, f"l{n}"), at))
            value = row.columns[workload.VALUE].decode() if row else None
            if value != final[f"l{n}"]:
                self.wrong.append(f"index {version} of l{n}: {value!r}, base {final[f'l{n}']!r}")


def _counter() -> Step[int]:
    cells = yield Get(layout.COUNTER_ROW)
    return layout.read_number(cells, layout.NUMBER, layout.COUNTER_ROW)


def run_seed(seed: int) -> Result:
    return Simulation(seed).run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--from", dest="first", type=int, default=0)
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    failed = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        result = run_seed(seed)
        counts += result.counts
        if result.wrong:
            failed += 1
            print(f"seed {seed}: " + "; ".join(result.wrong[:5]))
    print(
        f"{arguments.seeds} schedules, {failed} with violations; "
        + ", ".join(
            f"{name or 'requests answered'} {count}" for name, count in sorted(counts.items())
        )
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
