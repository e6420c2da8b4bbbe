"""What the child process does until it is killed: write, from several threads, all kinds of things.

Tables of a small shop: customers with a unique e-mail address, their orders (foreign key), the
order's items (compound key, foreign key), events without a primary key, and tables that come and
go. Transactions change several rows of several tables; now and then the catalog changes, the log is
trimmed, a backup is taken, the store is closed and opened again. A deferred count of orders per
customer is kept from the log, each batch with its watermark.

Everything a client is told goes to the ack file before it goes on (`acks`).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belvedere.catalog.definitions import (
    ColumnDefinition,
    ForeignKeyDefinition,
    IndexDefinition,
    KeyPartDefinition,
    TableDefinition,
    UniqueDefinition,
)
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Index, ObjectState
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.codec import keyspace
from belvedere.config import Config, Durability
from belvedere.database import Database, restore_backup
from belvedere.errors import Error, InvalidInput, Retry, Unavailable
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.schema_change import apply_edit
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import BIGINT, INTEGER, TEXT
from tests.simulation.crash.acks import AckFile

CUSTOMERS = 12
ORDERS = 60
COUNT_RELATION = 3_000_000_000
COUNT_GROUP = 9
CONSUMER = "counts"

_Net = tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]
"""A row before and after a transaction, as far as the client can tell."""

SHOP = (
    TableDefinition(
        "customer",
        (
            ColumnDefinition("id", BIGINT),
            ColumnDefinition("email", TEXT),
            ColumnDefinition("region", INTEGER, not_null=True),
        ),
        ("id",),
        uniques=(UniqueDefinition(("email",)),),
    ),
    TableDefinition(
        "orders",
        (
            ColumnDefinition("id", BIGINT),
            ColumnDefinition("customer", BIGINT, not_null=True),
            ColumnDefinition("total", BIGINT),
            ColumnDefinition("note", TEXT),
        ),
        ("id",),
        foreign_keys=(ForeignKeyDefinition(("customer",), "customer"),),
    ),
    TableDefinition(
        "item",
        (
            ColumnDefinition("order_id", BIGINT),
            ColumnDefinition("line", INTEGER),
            ColumnDefinition("sku", TEXT, not_null=True),
        ),
        ("order_id", "line"),
        foreign_keys=(ForeignKeyDefinition(("order_id",), "orders"),),
    ),
    TableDefinition("event", (ColumnDefinition("what", TEXT),)),
)
BY_TOTAL = IndexDefinition("orders", (KeyPartDefinition("total"),), include=("note",))


@dataclass(frozen=True, slots=True)
class Plan:
    """What one child does. `trim_through`: the position up to which somebody has a copy."""

    directory: Path
    acks: Path
    seed: int
    durability: str = "full"
    threads: int = 3
    rounds: int | None = None
    transactions: int = 8
    trim_through: int = 0
    accept_data_loss: bool = False


def run(plan: Plan) -> None:
    """Open, write, close; again until killed, or for so many rounds."""
    acks = AckFile(plan.acks)
    number = 0
    while plan.rounds is None or number < plan.rounds:
        number += 1
        database = open_store(plan, acks)
        _round(plan, database, acks, random.Random(f"{plan.seed}/{number}"))
        acks.note("closing")
        database.close()
        acks.note("close")
    acks.close()


def open_store(plan: Plan, acks: AckFile) -> Database:
    config = Config(durability=Durability(plan.durability))
    acks.note("opening", durability=plan.durability)
    database = Database.open(plan.directory, config, accept_data_loss=plan.accept_data_loss)
    acks.note(
        "open",
        incarnation=database.incarnation,
        position=database.position,
        durability=plan.durability,
    )
    return database


def _round(plan: Plan, database: Database, acks: AckFile, rng: random.Random) -> None:
    if database.catalog.find_relation("customer") is None:
        create_shop(Writer(plan, database, acks, rng))
    writers = [
        Writer(plan, database, acks, random.Random(rng.random())) for _ in range(plan.threads)
    ]
    failures: list[BaseException] = []

    def work(writer: Writer) -> None:
        try:
            for _ in range(plan.transactions):
                writer.step()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class Writer:
    """One client."""

    def __init__(self, plan: Plan, database: Database, acks: AckFile, rng: random.Random) -> None:
        self.plan = plan
        self.database = database
        self.acks = acks
        self.rng = rng
        self._effect: dict[tuple[str, tuple[Any, ...]], _Net] = {}

    @staticmethod
    def die() -> None:
        """Die here, with everything acknowledged and nothing closed."""
        os.kill(os.getpid(), signal.SIGKILL)

    def step(self) -> None:
        """One thing at random."""
        weights: dict[Callable[[], None], int] = {
            self._shopping: 60,
            self.change_catalog: 6,
            self._trim: 5,
            self.toggle_index: 3,
            self._count: 10,
            self.back_up: 2,
        }
        self.rng.choices(list(weights), list(weights.values()))[0]()

    # -- transactions -------------------------------------------------------------------------

    def commit(self, change: Callable[[Transaction], None]) -> bool:
        """Run one transaction to its end, telling the ack file; again when it loses a race."""
        while True:
            transaction = self.database.begin()
            self._effect = {}
            try:
                change(transaction)
            except (Retry, InvalidInput) as error:
                transaction.rollback()
                if isinstance(error, Retry):
                    continue
                return False
            if not transaction.changes:
                transaction.rollback()
                return False
            try:
                self._commit(transaction)
                return True
            except Retry:
                continue
            except InvalidInput:
                return False

    def _commit(self, transaction: Transaction) -> None:
        name = transaction.id.hex()
        effect = [
            [table, key, row] for (table, key), (old, row) in self._effect.items() if row != old
        ]
        self.acks.note("try", transaction=name, effect=effect)
        try:
            committed = transaction.commit()
        except Error as error:
            self.acks.note("fail", transaction=name, failed=error.sqlstate)
            raise
        database = self.database
        self.acks.note(
            "ack",
            transaction=name,
            position=committed.position,
            token=database.position_to_token(committed.position),
            incarnation=database.incarnation,
        )

    def _shopping(self) -> None:
        statements = self.rng.choices(
            [self.buy, self.change_email, self.swap_emails, self.cancel, self.log_event],
            [5, 3, 1, 3, 2],
            k=self.rng.randint(1, 3),
        )

        def change(transaction: Transaction) -> None:
            for statement in statements:
                statement(transaction)
            if self.rng.random() < 0.2:
                self._take_back(transaction)

        self.commit(change)

    def _take_back(self, transaction: Transaction) -> None:
        effect, savepoint = dict(self._effect), transaction.set_savepoint()
        self.buy(transaction)
        transaction.rollback_to(savepoint)
        self._effect = effect

    def buy(self, transaction: Transaction) -> None:
        customer, order = self.rng.randrange(CUSTOMERS), self.rng.randrange(ORDERS)
        if self._get(transaction, "customer", (customer,)) is None:
            self._put(transaction, "customer", (customer, self._email(), self.rng.randrange(5)))
        note = self.rng.choice([None, "", "gift", "x" * self.rng.randrange(300), "\u00e9\0\u4e2d"])
        self._put(transaction, "orders", (order, customer, self.rng.randrange(1000), note))
        for line in range(self.rng.randrange(4)):
            self._put(transaction, "item", (order, line, f"sku{self.rng.randrange(50)}"))

    def change_email(self, transaction: Transaction) -> None:
        row = self._get(transaction, "customer", (self.rng.randrange(CUSTOMERS),))
        if row is not None:
            self._put(transaction, "customer", (row[0], self._email(), row[2]))

    def swap_emails(self, transaction: Transaction) -> None:
        one, other = (
            self._get(transaction, "customer", (self.rng.randrange(CUSTOMERS),)) for _ in "ab"
        )
        if one is not None and other is not None and one[0] != other[0]:
            self._put(transaction, "customer", (one[0], other[1], one[2]))
            self._put(transaction, "customer", (other[0], one[1], other[2]))

    def cancel(self, transaction: Transaction) -> None:
        order = self.rng.randrange(ORDERS)
        for line in range(4):
            self._put(transaction, "item", None, (order, line))
        if self.rng.random() < 0.8:
            self._put(transaction, "orders", None, (order,))

    def log_event(self, transaction: Transaction) -> None:
        table = self._table(transaction, "event")
        row = (f"event {self.rng.random()}", self.database.sequences.next_row_id(table.table.id))
        table_rows.insert_row(transaction, table, row)
        self._effect["event", row[1:]] = None, row

    def _email(self) -> str | None:
        return self.rng.choice([None, f"{self.rng.randrange(3 * CUSTOMERS)}@example.org"])

    # -- rows ---------------------------------------------------------------------------------

    def _table(self, transaction: Transaction, name: str) -> CompiledTable:
        item = transaction.catalog.find_relation(name)
        if item is None:
            raise InvalidInput("table does not exist", sqlstate="42P01")
        return compiled_table(transaction.catalog, item.id)

    def _get(
        self, transaction: Transaction, name: str, key: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        table = self._table(transaction, name)
        value = transaction.get(table.key.encode(key))
        return None if value is None else table.decode(value)

    def _put(
        self,
        transaction: Transaction,
        name: str,
        row: tuple[Any, ...] | None,
        key: tuple[Any, ...] | None = None,
    ) -> None:
        """Insert, replace or (row None) delete, whichever it takes."""
        table = self._table(transaction, name)
        if key is None:
            assert row is not None
            key = tuple(row[slot] for slot in table.table.primary_key)
        old = self._get(transaction, name, key)
        if row is None and old is None:
            return
        if row is None:
            assert old is not None
            table_rows.delete_row(transaction, table, old)
        elif old is None:
            table_rows.insert_row(transaction, table, row)
        else:
            table_rows.update_row(transaction, table, old, row)
        first, _ = self._effect.get((name, key), (old, None))
        self._effect[name, key] = first, row

    # -- everything else ----------------------------------------------------------------------

    def change_catalog(self) -> None:
        """Make, widen or drop a table."""
        name = f"extra{self.rng.randrange(3)}"

        def change(transaction: Transaction) -> None:
            edit = CatalogEdit(transaction.catalog)
            found = transaction.catalog.find_relation(name)
            if found is None:
                edit.create_table(_extra(name))
            elif self.rng.random() < 0.5:
                edit.add_column(found.id, ColumnDefinition(f"c{self.rng.random()}", INTEGER))
            else:
                edit.drop_table(found.id)
            apply_edit(transaction, edit)

        self.commit(change)
        self.commit(lambda txn: self._fill_extra(txn, name))

    def _fill_extra(self, transaction: Transaction, name: str) -> None:
        table = self._table(transaction, name)
        for number in range(self.rng.randint(1, 3)):
            value = f"{name}/{self.rng.randrange(1000)}"
            padding = [None] * (len(table.table.columns) - 2)
            self._put(transaction, name, (number, value, *padding))

    def toggle_index(self) -> None:
        """Build an index over a table that has rows, or drop it; a unique one may be refused."""
        columns = self.rng.choice([("customer", "region"), ("orders", "note"), ("item", "sku")])
        unique = self.rng.random() < 0.3
        name = f"{columns[0]}_built"

        def change(edit: CatalogEdit) -> None:
            found = edit.catalog.find_relation(name)
            if isinstance(found, Index) and found.state is ObjectState.READY:
                edit.drop_index(found.id)
            elif found is None:
                parts = (KeyPartDefinition(columns[1]),)
                edit.create_index(IndexDefinition(columns[0], parts, name, unique=unique))

        try:
            self.database.change_schema(change)
        except InvalidInput:
            return

    def _trim(self) -> None:
        through = min(self.plan.trim_through, self.database.position - 5)
        if through > 0:
            self.acks.note("trim", through=through)
            self.database.trim(through)

    def back_up(self) -> None:
        """Take one, make a store of it at an earlier position, and throw both away."""
        name = f"{self.plan.directory.name}.backup{self.rng.randrange(10**9)}"
        beside = self.plan.directory.with_name(name)
        restored = beside.with_name(name + ".restored")
        position = self.database.back_up(beside)
        first = max(self.database.log.first_position - 1, position - 3, 0)
        if first < position:
            restore_backup(beside, restored, first)
            shutil.rmtree(restored)
        shutil.rmtree(beside)

    def _count(self) -> None:
        """Bring the count of orders per customer up to the newest position, exactly once."""
        with _counting:
            maintain_counts(self.database)


_counting = threading.Lock()


def maintain_counts(database: Database) -> None:
    watermark = keyspace.watermark_key(COUNT_GROUP)
    stored = database.store.get(watermark)
    applied = int.from_bytes(stored) if stored else 0
    orders = database.catalog.find_relation("orders")
    newest = database.position
    if orders is None or newest == applied:
        return
    decode = compiled_table(database.catalog, orders.id).decode
    delta: dict[int, int] = {}
    for record in database.log.read(applied, newest):
        for change in record.changes():
            if change.relation == orders.id:
                for value, weight in ((change.old, -1), (change.new, 1)):
                    if value is not None:
                        customer = decode(value)[1]
                        delta[customer] = delta.get(customer, 0) + weight
    batch: list[tuple[bytes, bytes | None]] = [(watermark, newest.to_bytes(8))]
    for customer, weight in delta.items():
        key = keyspace.row_prefix(COUNT_RELATION) + customer.to_bytes(8)
        count = int.from_bytes(database.store.get(key) or b"") + weight
        batch.append((key, count.to_bytes(8) if count else None))
    database.commits.derive(lambda reader: batch)
    database.log.advance_consumer(CONSUMER, newest)


def _extra(name: str) -> TableDefinition:
    return TableDefinition(
        name,
        (ColumnDefinition("id", BIGINT), ColumnDefinition("value", TEXT)),
        ("id",),
        uniques=(UniqueDefinition(("value",)),),
    )


def create_shop(writer: Writer) -> None:
    def change(transaction: Transaction) -> None:
        edit = CatalogEdit(transaction.catalog)
        for table in SHOP:
            edit.create_table(table)
        edit.create_index(BY_TOTAL)
        apply_edit(transaction, edit)

    writer.commit(change)
    writer.database.log.advance_consumer(CONSUMER, 0)
    if writer.database.catalog.find_relation("customer") is None:
        raise Unavailable("the tables could not be made")
