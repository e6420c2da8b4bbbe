"""Schedules of whole databases: four nodes with tables, foreign keys, indexes and views.

    python -m tests.simulation.row.databases [--seeds 200] [--from 0]

Clients transfer between accounts, insert and delete orders and products, bring a deferred view
along, make an index and views, and adopt builds; requests are lost, delayed and repeated, nodes die
and pause beyond their lease. Then faults stop, a node that knows nothing sweeps up, and everything
must be right: nothing half built, the
total of the accounts, every order that was acknowledged, no order without its product, indexes and
views equal to what their tables give, every lock free, every position decided.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from belvedere.catalog.definitions import IndexDefinition, KeyPartDefinition
from belvedere.catalog.model import Maintenance, ObjectState, Table
from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import Corruption, InvalidInput, Retry, Unavailable
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.kv.doubles.cells_faults import FaultyCells
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.row_atomic.commit_protocol import RowCommit
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import NodeSettings
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import TEXT
from belvedere.views.registry.view_registry import EmptyReader
from belvedere.views.state.additions import compute_correcting_additions
from belvedere.views.state.build_state import list_unfinished_builds
from tests.simulation.row.turns import Actor, TurnedCells, Turns
from tests.txn.shop import (
    column,
    delete,
    entries,
    foreign_key,
    get,
    insert,
    scan,
    table_of,
    update,
)

NODES, TRANSACTIONS, ACCOUNTS, PRODUCTS, BALANCE = 4, 6, 4, 3, 100
LEASE = 4.0
SETTINGS = NodeSettings(
    lanes=3,
    lease_seconds=LEASE,
    grace_seconds=2.0,
    work_seconds_max=1.0,
    lock_wait_seconds_max=12.0,
    lock_poll_seconds=0.02,
    close_seconds_min=0.05,
)
VIEWS = {
    "pairs": "SELECT o.id AS o, p.name AS p FROM orders o JOIN product p ON p.id = o.product",
    "totals": "SELECT product, count(*) AS n, sum(amount) AS s FROM orders GROUP BY product",
    "greatest": "SELECT product, max(amount) AS m FROM orders GROUP BY product",
}
LATE = "SELECT product, count(*) AS n FROM orders GROUP BY product"


def commits(node: Database) -> RowCommit:
    assert isinstance(node.commits, RowCommit)
    return node.commits


def open_node(cells: CellStoreSetup, random: Random) -> Database:
    """A node whose deferred views move when its client says so: it has no thread but that one."""
    config = Config(statement_retries_max=30)
    node = Database(cells, config, bind=bind_simplified_definition, random=random.randbytes)
    node.views.start_or_wake_worker = lambda: None  # type: ignore[method-assign]
    return node


def create(node: Database) -> None:
    def tables(edit: Any) -> None:
        edit.create_table(table_of("account", column("id"), column("balance")))
        edit.create_table(table_of("product", column("id"), column("name", TEXT)))
        edit.create_table(
            table_of(
                "orders",
                column("id"),
                column("product"),
                column("amount"),
                foreign_keys=(foreign_key("product", "product"),),
            )
        )

    node.change_schema(tables)
    for name, query in VIEWS.items():
        node.views.create_view(name, query)
    node.views.create_view("late", LATE, Maintenance.DEFERRED)
    node.run_transaction(
        lambda txn: insert(txn, "account", *[(n, BALANCE) for n in range(ACCOUNTS)])
    )
    node.run_transaction(
        lambda txn: insert(txn, "product", *[(n, f"p{n}") for n in range(PRODUCTS)])
    )


class Schedule:
    def __init__(self, seed: int, settings: NodeSettings = SETTINGS) -> None:
        self.settings = settings
        self.random = Random(seed)
        self.turns = Turns(Random(seed + 1))
        self.store = FaultyCells(MemoryCells(), seed + 2, share=0.0)
        self.counts: Counter[str] = Counter()
        self.inserted: set[int] = set()
        self.unsure: set[int] = set()  # of which nobody knows whether they were made
        self.cancelled: set[int] = set()  # of which nobody knows whether they are still there

    def run(self) -> list[str]:
        """What is wrong in the end."""
        cells = CellStoreSetup(self.store, self.settings, sends_heartbeats=False)
        create(open_node(cells, self.random))
        self.store.share = 0.01
        for number in range(NODES):
            self._add(f"n{number}", self.random.randrange(60, 900) if number % 2 else -1)
        try:
            self.turns.run(self._misfortune)
            self.store.share = 0.0
            self.counts += self.turns.counts + self.store.counts
            return self._judge()
        except Corruption as error:
            return [f"met by a client: {error}"]

    def _add(self, name: str, dies_in: int) -> None:
        seed = self.random.random()

        def program(actor: Actor) -> None:
            actor.dies_in = dies_in
            Client(self, actor, Random(seed)).run()

        self.turns.add(name, program)

    def _misfortune(self) -> None:
        if self.random.random() < 0.0005:
            living = [actor for actor in self.turns.actors if not actor.over]
            self.turns.pause(self.random.choice(living), LEASE * self.random.uniform(0.5, 2.0))

    # -- the end ------------------------------------------------------------------------------

    def _judge(self) -> list[str]:
        clock = [1_000_000.0]
        sleep: Callable[[float], None] = lambda seconds: clock.__setitem__(0, clock[0] + seconds)  # noqa: E731
        cells = CellStoreSetup(
            self.store, self.settings, lambda: clock[0], sleep, sends_heartbeats=False
        )
        judge = open_node(cells, self.random)
        protocol = commits(judge)
        protocol.sweep_locks()
        clock[0] += LEASE
        protocol.sweep_locks()
        judge.views.backfills.adopt_orphaned_builds()
        clock[0] += LEASE
        self.counts["builds adopted"] += judge.views.backfills.adopt_orphaned_builds()
        wrong = [f"lock left: {row.hex()}" for row, _ in protocol.run_step(sweep.held_locks())]
        wrong += [f"left unbuilt: {item.name}" for item in list_unfinished_builds(judge.catalog)]
        taken = protocol.run_step(advance.last_position_taken())
        applied = protocol.run_step(advance.reach_positions(protocol.node, taken)).applied
        if applied != taken:
            wrong.append(f"{taken} positions, {applied} applied")
        with judge.begin(at_least=judge.position) as reader:
            wrong += self._check_rows(reader)
            for view in reader.catalog.views:
                tables, _ = judge.views.open_tables_at_watermark(reader, view)
                made = DerivedRows(EmptyReader(reader.catalog))
                judge.views.registry.get_view_maintainer(reader.catalog, view).backfill_state(
                    tables, made
                )
                found = list(compute_correcting_additions(reader, view, dict(made.writes())))
                wrong += [f"view {view.name}: {found}"] if found else []
        return wrong

    def _check_rows(self, reader: Transaction) -> list[str]:
        wrong = []
        total = sum(balance for _, balance in scan(reader, "account"))
        if total != ACCOUNTS * BALANCE:
            wrong.append(f"total is {total}")
        orders = {row[0]: row for row in scan(reader, "orders")}
        products = {row[0] for row in scan(reader, "product")}
        lost = self.inserted - self.cancelled - orders.keys()
        extra = orders.keys() - self.inserted - self.unsure
        wrong += [f"lost orders {lost}"] if lost else []
        wrong += [f"orders nobody made {extra}"] if extra else []
        orphans = [row for row in orders.values() if row[1] not in products]
        wrong += [f"orders without product {orphans}"] if orphans else []
        if _has_index(reader):
            found = sorted((entry[1], entry[0]) for entry in entries(reader, "by_amount"))
            if found != sorted((row[0], row[2]) for row in orders.values()):
                wrong.append(f"index has {found}")
        return wrong


class Client:
    """One node and what it does."""

    def __init__(self, schedule: Schedule, actor: Actor, random: Random) -> None:
        self._schedule = schedule
        self._actor = actor
        self._random = random
        self._number = 0

    def run(self) -> None:
        node = self._join()
        kinds = (self._transfer, self._order, self._order, self._cancel, self._product, self._late)
        for number in range(TRANSACTIONS):
            action = self._random.choice(kinds)
            if number == 3 and self._actor.name == "n0":
                action = self._index
            elif number in (1, 3) and self._actor.name == "n1":
                action = self._view
            elif number == 4:
                action = self._adopt
            try:
                commits(node).send_heartbeat()
                action(node)
                self._schedule.counts["done"] += 1
            except (Retry, InvalidInput) as error:
                self._schedule.counts[f"refused: {error.message}"] += 1
            except Unavailable:
                self._schedule.counts["unavailable"] += 1

    def _join(self) -> Database:
        schedule, actor = self._schedule, self._actor
        cells = CellStoreSetup(
            TurnedCells(schedule.store, schedule.turns, actor, self._random),
            schedule.settings,
            lambda: schedule.turns.now,
            lambda seconds: schedule.turns.stop(actor, seconds),
            sends_heartbeats=False,
        )
        while True:
            try:
                return open_node(cells, self._random)
            except Unavailable:
                continue

    def _transfer(self, node: Database) -> None:
        left, right = self._random.sample(range(ACCOUNTS), 2)

        def act(txn: Transaction) -> None:
            one, two = get(txn, "account", left), get(txn, "account", right)
            assert one is not None
            assert two is not None
            update(txn, "account", (left, one[1] - 1))
            update(txn, "account", (right, two[1] + 1))

        node.run_transaction(act)

    def _order(self, node: Database) -> None:
        self._number += 1
        id_ = int(self._actor.name[1:]) * 1000 + self._number
        row = (id_, self._random.randrange(PRODUCTS), self._random.randrange(10))
        self._schedule.unsure.add(id_)
        node.run_transaction(lambda txn: insert(txn, "orders", row))
        self._schedule.inserted.add(id_)
        self._schedule.unsure.discard(id_)

    def _cancel(self, node: Database) -> None:
        """Take an order away."""
        with node.begin() as reader:
            there = [row[0] for row in scan(reader, "orders")]
        if there:
            id_ = self._random.choice(there)
            self._schedule.cancelled.add(id_)
            node.run_transaction(lambda txn: _delete_if_there(txn, "orders", id_))

    def _product(self, node: Database) -> None:
        """Rename a product, or take it away and bring it back: orders must not be left alone."""
        id_ = self._random.randrange(PRODUCTS)
        if self._random.random() < 0.5:
            name = f"p{self._random.randrange(100)}"
            node.run_transaction(lambda txn: _put_product(txn, (id_, name)))
        else:
            node.run_transaction(lambda txn: _delete_if_there(txn, "product", id_))

    def _late(self, node: Database) -> None:
        view = next(view for view in node.catalog.views if view.name == "late")
        node.views.catch_up_view(view)

    def _index(self, node: Database) -> None:
        wanted = IndexDefinition("orders", (KeyPartDefinition("amount"),), name="by_amount")
        node.change_schema(lambda edit: edit.create_index(wanted))

    def _view(self, node: Database) -> None:
        """Make a view; every second one is gone on with when this node dies."""
        self._number += 1
        name, resumable = f"made {self._number}", self._random.random() < 0.5
        options = {"backfill": "resumable"} if resumable else {}
        deferred = self._random.random() < 0.3
        maintenance = Maintenance.DEFERRED if deferred else Maintenance.IMMEDIATE
        node.views.create_view(
            name, self._random.choice([*VIEWS.values()]), maintenance, options=options
        )

    def _adopt(self, node: Database) -> None:
        """Look after builds of nodes that seem to be dead."""
        self._schedule.counts["builds adopted"] += node.views.backfills.adopt_orphaned_builds()


def _has_index(reader: Transaction) -> bool:
    orders = reader.catalog.require_relation(Table, "orders").id
    indexes = reader.catalog.table_indexes(orders)
    return any(i.name == "by_amount" and i.state is ObjectState.READY for i in indexes)


def _delete_if_there(txn: Transaction, name: str, id_: int) -> None:
    if get(txn, name, id_) is not None:
        delete(txn, name, id_)


def _put_product(txn: Transaction, row: tuple[int, str]) -> None:
    if get(txn, "product", row[0]) is None:
        insert(txn, "product", row)
    else:
        update(txn, "product", row)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--from", dest="first", type=int, default=0)
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    failed = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        schedule = Schedule(seed)
        wrong = schedule.run()
        counts += schedule.counts
        if wrong:
            failed += 1
            print(f"seed {seed}: " + "; ".join(wrong[:5]))
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(f"{arguments.seeds} schedules of databases, {failed} with violations; {told}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
