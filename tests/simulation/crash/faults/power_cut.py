"""Power cuts, simulated: a store in memory that forgets what was not synced, a real anchor file.

What was written to the anchor since its last sync may be torn by a power cut. Some clients may be
in the middle of a commit when the power goes; any number of their batches may survive.
"""

from __future__ import annotations

import itertools
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path

from belvedere import failpoints
from belvedere.catalog.definitions import ColumnDefinition, TableDefinition, UniqueDefinition
from belvedere.codec.keyspace import STORE_FORMAT
from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import Error
from belvedere.kv.batch import BatchStore
from belvedere.kv.doubles.power_loss import PowerStore
from belvedere.kv.memory import MemoryStore
from belvedere.txn.batch_atomic.anchor import SLOT_BYTES, SLOTS, Anchor
from belvedere.txn.batch_atomic.recovery import RecoveredStore, open_anchored
from belvedere.txn.contracts import Identity
from belvedere.txn.transaction import table_rows
from belvedere.types import BIGINT, TEXT
from tests.simulation.crash.report import Harness

PEOPLE = TableDefinition(
    "people",
    (ColumnDefinition("id", BIGINT), ColumnDefinition("name", TEXT)),
    ("id",),
    uniques=(UniqueDefinition(("name",)),),
)


class PowerIsGone(Exception):
    """What happens to a thread of a machine without power."""


@dataclass(slots=True)
class Machine:
    """A store with a plug."""

    directory: Path
    rng: random.Random
    identity: Identity = field(init=False)
    store: PowerStore = field(init=False)
    database: Database = field(init=False)
    anchor: Anchor = field(init=False)
    acknowledged: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.identity = Identity(STORE_FORMAT, b"i" * 16, b"s" * 32)
        Anchor.create(self.directory / "anchor", self.identity.store_id).close()
        self._start(MemoryStore())
        self.database.change_schema(lambda edit: edit.create_table(PEOPLE))

    def _start(self, memory: MemoryStore) -> None:
        self.store = PowerStore(memory)
        self.database = Database(self._open(self.store), Config())

    def _open(self, store: BatchStore) -> RecoveredStore:
        self.anchor = Anchor.open(self.directory / "anchor")
        return open_anchored(store, self.anchor, self.identity, Config(), self.rng.randbytes)

    def insert(self, id_: int) -> None:
        with self.database.begin() as transaction:
            table_rows.insert_row(
                transaction, self.database.get_compiled_table("people"), (id_, f"name {id_}")
            )
            position = transaction.commit().position
        self.acknowledged[id_] = position

    def cut(self) -> list[str]:
        """Pull the plug, start again, and say what is wrong."""
        kept = self.rng.randint(0, self.store.unsynced_batches)
        left = self.store.cut_power(kept_batches=kept)
        self._tear_anchor()
        try:
            self._start(left)
        except Error as error:
            return [f"the store does not start: {error}"]
        return self._missing()

    def _tear_anchor(self) -> None:
        """Damage what a sync of the anchor has not made durable, or some of it."""
        path = self.directory / "anchor"
        content = bytearray(path.read_bytes())
        for slot in range(SLOTS):
            if slot != self.anchor._durable_slot and self.rng.random() < 0.7:
                torn = self.rng.randint(1, SLOT_BYTES)
                content[slot * SLOT_BYTES : slot * SLOT_BYTES + torn] = bytes(torn)
        path.write_bytes(content)

    def _missing(self) -> list[str]:
        problems, table = [], self.database.get_compiled_table("people")
        with self.database.open_newest_reader() as reader:
            for id_, position in self.acknowledged.items():
                if reader.get(table.key.encode_first(id_)) is None or position > reader.position:
                    problems.append(f"{id_}, acknowledged at {position}, is gone")
            count = sum(len(batch) for batch in reader.scan(table.start, table.end))
            index = self.database.catalog.table_indexes(table.table.id)[0].id
            prefix = b"\x10" + index.to_bytes(4)
            entries = sum(len(batch) for batch in reader.scan(prefix, prefix + b"\xff"))
        if entries != count:
            problems.append(f"{count} rows, but {entries} entries of their index")
        return problems


def write_and_cut(
    machine: Machine, transactions: int, at_sync: int | None, first: int = 0
) -> list[str]:
    """Commit from two threads; from the nth sync on there is no power."""
    syncs = itertools.count(1)

    def sync() -> None:
        if at_sync is not None and next(syncs) >= at_sync:
            raise PowerIsGone

    failpoints.arm("sync.before", "call", call=sync)

    def work(start: int) -> None:
        for number in range(transactions):
            try:
                machine.insert(start + number)
            except (PowerIsGone, Error):
                return

    threads = [threading.Thread(target=work, args=(first + n * 1000,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failpoints.arm("sync.before", "call", call=lambda: None)
    return machine.cut()


def cuts(harness: Harness, directory: Path, runs: int) -> None:
    """Power cuts at random syncs, several in the life of one machine."""
    rng = harness.rng
    for number in range(runs):
        machine = Machine(directory / str(number), random.Random(rng.random()))
        for life in range(3):
            at_sync = rng.choice([None, rng.randint(1, 12)])
            problems = write_and_cut(machine, 8, at_sync, first=life * 10_000)
            harness.count("power cut", f"at sync {at_sync}", problems)
            if problems:
                break
    failpoints.disarm_all()
