"""Nodes of one row-atomic store, with the face of a Database, so that tests run on both
unchanged."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self, TypeVar

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import Edit
from belvedere.catalog.model import Index, State, Table
from belvedere.catalog.relation import CompiledTable, compiled_table
from belvedere.config import Config
from belvedere.database import participants
from belvedere.errors import Retry
from belvedere.kv.batch import Pair
from belvedere.kv.cell import CellStore
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.txn.border import (
    SNAPSHOT,
    Committed,
    Intent,
    Isolation,
    Participant,
    Reader,
    RowChange,
    Snapshot,
)
from belvedere.txn.locks import LockTable
from belvedere.txn.row.node import Settings
from belvedere.txn.row.protocol import RowCommit, require_supported
from belvedere.txn.row.reader import RowWriter
from belvedere.txn.schema import apply_edit
from belvedere.txn.transaction import Transaction
from belvedere.views.build import unfinished
from belvedere.views.rekey import RekeyParticipant, no_expressions

T = TypeVar("T")
DEFAULTS = Settings()


class _At:
    """A RowCommit whose snapshots hold at least a position."""

    def __init__(self, commits: RowCommit, at_least: int) -> None:
        self._commits = commits
        self._at_least = at_least
        self.reader = commits.reader
        self.release = commits.release
        self.require_unchanged = commits.require_unchanged

    def snapshot(self) -> Snapshot:
        return self._commits.snapshot(self._at_least)

    def commit(self, intent: Intent) -> Committed:
        return self._commits.commit(intent)


class _Store:
    """Looks at the newest rows as a batch store would show them."""

    def __init__(self, database: RowDatabase) -> None:
        self._database = database

    def scan(self, start: bytes, end: bytes) -> Iterator[list[Pair]]:
        snapshot = self._database.commits.snapshot(self._database.position)
        self._database.commits.release(snapshot)
        return self._database.commits.reader(snapshot).scan(start, end)


class _Visibility:
    """What the embedded engine keeps for open snapshots; here there is only the number of them."""

    undo: tuple[()] = ()

    def __init__(self, commits: RowCommit) -> None:
        self._commits = commits

    @property
    def open_count(self) -> int:
        return sum(self._commits.node.snapshots.values())


class RowDatabase:
    """One node on a CellStore."""

    def __init__(
        self,
        store: CellStore | None = None,
        settings: Settings = DEFAULTS,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.cells = store if store is not None else MemoryCells()
        self.config = Config(lock_wait_ms_max=5_000)
        self.locks = LockTable(self.config.lock_wait_ms_max)
        self.commits = RowCommit(
            self.cells,
            settings=settings,
            clock=clock,
            sleep=sleep,
            clock_us=lambda: time.time_ns() // 1000,
            participants_for=self.participants_for,
        )
        self.store = _Store(self)
        self.visibility = _Visibility(self.commits)
        self._suffix = os.urandom(4)
        self._numbers = itertools.count()

    def participants_for(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        return participants(catalog, relations, no_expressions)

    def begin(self, isolation: Isolation = SNAPSHOT, *, at_least: int = 0) -> Transaction:
        require_supported(isolation)
        suffix = self._suffix + next(self._numbers).to_bytes(4)
        protocol = _At(self.commits, at_least)
        return Transaction(protocol, self.locks, self.participants_for, suffix, isolation)

    def run(self, function: Callable[[Transaction], T], isolation: Isolation = SNAPSHOT) -> T:
        return self.run_committed(function, isolation)[0]

    def run_committed(
        self, function: Callable[[Transaction], T], isolation: Isolation = SNAPSHOT
    ) -> tuple[T, Committed]:
        at_least = 0
        for _ in range(self.config.statement_retries_max):
            transaction = self.begin(isolation, at_least=at_least)
            try:
                result = function(transaction)
                return result, transaction.commit()
            except Retry as lost:
                at_least = lost.lost_to
            finally:
                transaction.rollback()
        raise Retry("too many retries")

    @contextmanager
    def snapshot(self, at_least: int = 0) -> Iterator[Reader]:
        with self.begin(at_least=at_least) as transaction:
            yield transaction

    @property
    def catalog(self) -> Catalog:
        with self.begin() as transaction:
            return transaction.catalog

    @property
    def position(self) -> int:
        return self.commits.latest()

    def table(self, name: str, schema: str = "public") -> CompiledTable:
        catalog = self.catalog
        return compiled_table(catalog, catalog.expect(Table, name, schema).id)

    def change_schema(self, change: Callable[[Edit], T]) -> T:
        made: list[int] = []

        def apply(transaction: Transaction) -> T:
            edit = Edit(transaction.catalog)
            result = change(edit)
            made[:] = [i.id for i in unfinished(edit.catalog) if i.id >= edit.before.head.next_id]
            apply_edit(transaction, edit)
            return result

        result = self.run(apply)
        for id_ in made:
            self._fill(id_)
            self.change_schema(lambda edit, id_=id_: edit.set_state(id_, State.READY))
        return result

    def _fill(self, id_: int) -> None:
        """The barrier has been passed: a snapshot from now on holds all that older writers did."""
        with self.begin(at_least=self.commits.latest()) as snapshot:
            index = snapshot.catalog.get(id_)
            assert isinstance(index, Index)
            table = compiled_table(snapshot.catalog, index.table)
            participant = RekeyParticipant(snapshot.catalog, index, no_expressions)
            reader = self.commits.reader(snapshot.snapshot)
            for batch in reader.scan(table.start, table.end):
                writer = RowWriter(reader)  # type: ignore[arg-type]
                changes = [RowChange(key, None, value) for key, value in batch]
                participant.writes(changes, reader, writer)
                self.commits.fill(snapshot.position, writer.writes())

    def close(self) -> None:
        self.cells.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
