"""A database: the only place where the parts are wired together.

    db = Database.open("shop.db")
    db.change_schema(lambda edit: edit.create_table(TableDefinition(..)))
    with db.begin() as txn:
        rows.insert(txn, db.table("orders"), (1, 7, ..))

One Database is one open store: its engine, log, locks, catalog and commit protocol. Any number of
threads may use it, each with transactions of its own.
"""

from __future__ import annotations

import itertools
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self, TypeVar

from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.edit import Edit
from belvedere.catalog.model import Index, State, Table, View
from belvedere.catalog.relation import CompiledTable, compiled_table
from belvedere.codec import keyspace
from belvedere.config import Config
from belvedere.errors import Error, Retry, Unavailable
from belvedere.kv.batch import BatchStore
from belvedere.kv.memory import MemoryStore
from belvedere.txn import constraints, token
from belvedere.txn.backup import restore
from belvedere.txn.border import SNAPSHOT, Committed, Isolation, LockRequest, Participant, Reader
from belvedere.txn.commit.engine import BatchEngine
from belvedere.txn.engine import Engine
from belvedere.txn.locks import LockTable
from belvedere.txn.recovery import OpenStore, open_directory, open_memory
from belvedere.txn.row.engine import CellEngine, Cells
from belvedere.txn.row.protocol import RowCommit
from belvedere.txn.schema import apply_edit
from belvedere.txn.sequences import Sequences
from belvedere.txn.transaction import Transaction
from belvedere.views.backfill import Build
from belvedere.views.build import STAGED, fill_index, gone_on_with, unfinished
from belvedere.views.builders import TAKEN_OVER, built_by_others, taken_over
from belvedere.views.cells import cell_participants, fill_on_cells
from belvedere.views.fill_place import listed_range
from belvedere.views.host import ViewHost
from belvedere.views.keep import Bind, Keeper, no_queries
from belvedere.views.participants import participants
from belvedere.views.rekey import CompileExpression, index_participants, no_expressions
from belvedere.views.worker import Worker

MEMORY = ":memory:"
_SUFFIX = struct.Struct(">Q")
T = TypeVar("T")


class Database(ViewHost):
    """One open store. Make it with `open`."""

    def __init__(
        self,
        opened: OpenStore | Cells,
        config: Config,
        *,
        random: Callable[[int], bytes] = os.urandom,
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        compile_expression: CompileExpression = no_expressions,
        bind: Bind = no_queries,
    ) -> None:
        """`compile_expression` and `bind` make SQL text of the catalog work: index expressions and
        view definitions."""
        self.config = config
        self._compile_expression = compile_expression
        self.keeper = Keeper(bind, self._index_participants)
        self.view_errors: dict[int, Error] = {}
        self._worker: Worker | None = None
        self._adopting: threading.Thread | None = None
        self._closing = threading.Lock()
        self._closed = False
        self.engine = self._engine(opened, clock_us, random)
        self.commits = self.engine.commits
        self.log = self.engine.log
        self.visibility = self.engine.visibility
        self.locks = LockTable(config.lock_wait_ms_max)
        self.sequences = Sequences(self.run)
        # What makes a transaction id unique: a count from a random start, which never wraps.
        self._suffixes = map(_SUFFIX.pack, itertools.count(int.from_bytes(random(8)) >> 1))
        self.swaps = self.engine.swaps(self.locks, self._suffixes)

    @staticmethod
    def open(
        path: str | Path,
        config: Config | None = None,
        *,
        create: bool = True,
        accept_data_loss: bool = False,
        random: Callable[[int], bytes] = os.urandom,
        compile_expression: CompileExpression = no_expressions,
        bind: Bind = no_queries,
    ) -> Database:
        """Open the store at `path`, a directory or ':memory:', making it when there is none."""
        config = config or Config()
        if str(path) == MEMORY:
            opened = open_memory(MemoryStore(), random)
        else:
            opened = open_directory(
                Path(path), config, random, create=create, accept_data_loss=accept_data_loss
            )
        db = Database(
            opened, config, random=random, compile_expression=compile_expression, bind=bind
        )
        left = unfinished(db.catalog)
        kept = gone_on_with(left, every=config.resume_builds)
        if len(kept) < len(left):
            db._drop_unfinished([item.id for item in left if item not in kept])
        if bind is not no_queries:  # who cannot read definitions leaves them for who can
            for item in kept:
                db._finish(item.id, [one.id for one in kept if one.version == item.version])
        db._start_worker()
        return db

    @staticmethod
    def on_cells(
        cells: Cells,
        config: Config | None = None,
        *,
        random: Callable[[int], bytes] = os.urandom,
        compile_expression: CompileExpression = no_expressions,
        bind: Bind = no_queries,
    ) -> Database:
        """A node on a row-atomic store, which any number of others may use at the same time. The
        store is not closed with it."""
        db = Database(
            cells,
            config or Config(),
            random=random,
            compile_expression=compile_expression,
            bind=bind,
        )
        db._start_worker()
        return db

    # -- transactions -------------------------------------------------------------------------

    def begin(
        self, isolation: Isolation = SNAPSHOT, *, at_least: int = 0, wait_s: float = 30.0
    ) -> Transaction:
        """A transaction that sees at least position `at_least`."""
        if self._closed:
            raise Unavailable("the database is closed", sqlstate="08003")
        if at_least:
            self.engine.reach(at_least, wait_s)
        if isolation.validates_reads:
            self.engine.require_isolation(isolation)
        return Transaction(
            self.commits, self.locks, self.participants_for, next(self._suffixes), isolation
        )

    def run(self, function: Callable[[Transaction], T], isolation: Isolation = SNAPSHOT) -> T:
        """Run `function` in a transaction and commit it; again when it loses a race."""
        return self.run_committed(function, isolation)[0]

    def run_committed(
        self, function: Callable[[Transaction], T], isolation: Isolation = SNAPSHOT
    ) -> tuple[T, Committed]:
        at_least = 0
        locks: tuple[LockRequest, ...] = ()
        for attempt in range(self.config.statement_retries_max, -1, -1):
            transaction = self.begin(isolation, at_least=at_least)
            try:
                transaction.hold_first(locks)
                result = function(transaction)
                return result, transaction.commit()
            except Retry as lost:
                if not attempt:
                    raise
                at_least, locks = lost.lost_to, transaction.locks_to_retry(lost)
            finally:
                transaction.rollback()
        raise AssertionError("unreachable")

    @contextmanager
    def snapshot(self, at_least: int = 0) -> Iterator[Reader]:
        """A reader of what is published now."""
        with self.begin(at_least=at_least) as transaction:
            yield transaction

    def participants_for(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        views_of = cell_participants if self.engine.row_atomic else Keeper.participants
        views = views_of(self.keeper, catalog, relations, self.log)
        return (*participants(catalog, relations, self._compile_expression), *views)

    def _index_participants(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        return index_participants(catalog, relations, self._compile_expression)

    # -- catalog ------------------------------------------------------------------------------

    def change_schema(self, change: Callable[[Edit], T]) -> T:
        """Apply a change of the catalog as one transaction; again when another one was first.
        Returns when the indexes and views it made are filled; when that fails, they are gone
        again."""
        made: list[int] = []
        keys: list[tuple[int, str]] = []

        def apply(transaction: Transaction) -> T:
            edit = Edit(transaction.catalog)
            result = change(edit)
            made[:] = [i.id for i in unfinished(edit.catalog) if i.id >= edit.before.head.next_id]
            keys[:] = constraints.added_foreign_keys(edit.before, edit.catalog)
            apply_edit(transaction, edit)
            return result

        result = self.run(apply)
        for id_ in made:
            self._finish(id_, made)
        constraints.require_parents(keys, self.begin, self.change_schema)
        self._start_worker()
        return result

    def _finish(self, id_: int, made: list[int]) -> None:
        """Fill an index or view and let it be read; on failure drop all that were made with it."""
        try:
            item = self.catalog.get(id_)
            if not isinstance(item, Index | View) or item.state is not State.BUILDING:
                return
            self._fill(item)
            self.change_schema(lambda edit: self._let_be_read(edit, id_))
        except BaseException as error:
            if not (isinstance(error, Unavailable) and error.message == TAKEN_OVER):
                self._drop_unfinished(made)
            raise

    @staticmethod
    def _let_be_read(edit: Edit, id_: int) -> None:
        item = edit.catalog.get(id_)
        if not isinstance(item, Index | View) or item.state is not State.BUILDING:
            raise Unavailable(TAKEN_OVER, sqlstate="55006")
        edit.set_state(id_, State.READY)

    def _drop_unfinished(self, ids: list[int]) -> None:
        if isinstance(self.commits, RowCommit):
            with self.begin(at_least=self.position) as reader:
                if built_by_others(reader, ids, self.commits.node.id):
                    return

        def drop(edit: Edit) -> None:
            for id_ in ids:
                item = edit.catalog.get(id_)
                if isinstance(item, Index) and item.state is not State.DROPPED:
                    edit.drop_index(id_, cascade=True)
                elif isinstance(item, View) and item.state is not State.DROPPED:
                    edit.drop_view(id_, cascade=True)

        self.change_schema(drop)
        if not self.row_atomic:
            for id_ in ids:
                self.engine.erase(*listed_range(id_))

    def _tend(self) -> None:
        """Adopt builds in a thread of its own, so that this node beats on meanwhile."""
        if self._closed:
            return
        if self._adopting is None or not self._adopting.is_alive():
            self._adopting = threading.Thread(
                target=self._adopt_by_itself, name="belvedere builds", daemon=True
            )
            self._adopting.start()

    def _adopt_by_itself(self) -> None:
        assert isinstance(self.commits, RowCommit)
        try:
            with self.watched(Build(check=self._require_open)):
                self.adopt_builds()
        except Error:
            # What failed is taken away, or left to the next try, here or on another node.
            self.commits.node.counts["adoptions failed"] += 1

    def _require_open(self) -> None:
        if self._closed:
            raise Unavailable("the database is closed", sqlstate="08003")

    def adopt_builds(self) -> int:
        """On a row-atomic store: finish, or take away, what nodes that died were building. Returns
        how many indexes and views that were. A node calls it by itself from time to time."""
        if not isinstance(self.commits, RowCommit):
            return 0
        with self.begin(at_least=self.position) as reader:
            taken = taken_over(self.commits, reader.catalog, reader)
        kept = [
            item
            for item in gone_on_with(taken, every=self.config.resume_builds)
            if not isinstance(item, View) or STAGED not in item.options
        ]
        if len(kept) < len(taken):
            self._drop_unfinished([item.id for item in taken if item not in kept])
        for item in kept:
            self._finish(item.id, [one.id for one in kept if one.version == item.version])
        return len(taken)

    def table(self, name: str, schema: str = "public") -> CompiledTable:
        catalog = self.catalog
        return compiled_table(catalog, catalog.expect(Table, name, schema).id)

    @property
    def store(self) -> BatchStore:  # type: ignore[override]
        return self.engine.store

    # -- positions, tokens, outcomes ----------------------------------------------------------

    @property
    def incarnation(self) -> int:
        return self.engine.incarnation

    @property
    def store_id(self) -> bytes:
        return self.engine.identity.store_id

    def token(self, position: int) -> str:
        """What a client shows elsewhere to see at least `position`."""
        identity = self.engine.identity
        return token.issue(
            token.Token(identity.store_id, self.incarnation, position), identity.secret
        )

    def position_of(self, text: str) -> int:
        """The position a token stands for; refused when it is not one of ours."""
        identity = self.engine.identity
        expected = token.Token(identity.store_id, self.incarnation, self.position)
        return token.accept(text, expected, identity.secret)

    def outcome(self, transaction: bytes) -> int | None:
        """The position at which a transaction committed, or None when it did not. Unavailable
        (08007) when the log does not reach back to where it began."""
        return self.engine.outcome(transaction)

    # -- the past -----------------------------------------------------------------------------

    def as_of(self, position: int) -> AbstractContextManager[Reader]:
        """A reader of base tables at a past position that the log still reaches."""
        return self.engine.as_of(position, self.begin)

    def trim(self, through: int | None = None) -> int:
        """Forget the log up to `through`, by default all but the retention minimum; then the rows
        of tables and indexes whose drop it no longer remembers. Returns the position trimmed
        through."""
        if through is None:
            through = self.position - self.config.log_retention_records_min
        kept = self.kept_in_log()
        trimmed = self.log.trim(through if kept is None else min(through, kept))
        self._forget_dropped()
        return trimmed

    def _trim_by_itself(self) -> None:
        """Trim when the log is twice as long as it has to be, so that trimming stays rare."""
        if self.position - self.log.first > 2 * self.config.log_retention_records_min:
            self.trim()
        self.trim_streams()

    def _forget_dropped(self) -> None:
        floor = self.engine.dropped_floor()
        if floor is None:
            return
        gone = [
            item.id
            for item in self.catalog.objects.values()
            if is_dropped(item) and item.version <= floor
        ]
        # Rows first: after a crash in between, the next trim finds the object and does it again.
        for id_ in gone:
            self.engine.erase(*keyspace.relation_range(id_))
        if gone:
            self.change_schema(
                lambda edit: edit.remove(id_ for id_ in gone if edit.catalog.get(id_) is not None)
            )

    def back_up(self, destination: Path) -> int:
        """Copy the store, while it is in use, to a new directory; returns the copy's position."""
        return self.engine.back_up(destination)

    # -- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Leave the store in order. Open transactions are lost; idempotent."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self.engine.close(self._join)

    def _join(self) -> None:
        """Wait for the threads that use the store."""
        if self._worker is not None:
            self._worker.join()
        if self._adopting is not None:
            self._adopting.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- wiring -------------------------------------------------------------------------------

    def _engine(
        self, opened: OpenStore | Cells, clock_us: Callable[[], int], random: Callable[[int], bytes]
    ) -> Engine:
        config, participants_for = self.config, self.participants_for
        if isinstance(opened, Cells):
            return CellEngine(
                opened,
                config,
                clock_us=clock_us,
                participants_for=participants_for,
                random=random,
                tend=self._tend,
            )
        return BatchEngine(
            opened,
            config,
            clock_us=clock_us,
            participants_for=participants_for,
            housekeeping=self._trim_by_itself,
        )

    def _fill(self, item: Index | View) -> None:
        commits = self.commits
        if isinstance(commits, RowCommit):
            left = gone_on_with(unfinished(self.catalog), every=self.config.resume_builds)
            resumable = self.as_of if item.id in [one.id for one in left] else None
            compile_, build = self._compile_expression, self._build()
            fill_on_cells(commits, self.begin, self.keeper, item, compile_, build, resumable)
        elif isinstance(item, Index):
            fill_index(commits, self.catalog, item, self._compile_expression)
        else:
            self._fill_view(item)


def restore_backup(
    backup: Path,
    destination: Path,
    position: int | None = None,
    *,
    random: Callable[[int], bytes] = os.urandom,
    compile_expression: CompileExpression = no_expressions,
    bind: Bind = no_queries,
) -> int:
    """Make a store at `destination` from a backup; returns the position it is at. Rows of views are
    not logged, so a restore to an earlier position makes them again."""
    reached = restore(
        backup,
        destination,
        random,
        lambda catalog, relations: participants(catalog, relations, compile_expression),
        position,
    )
    if position is not None:
        with Database.open(
            destination, random=random, compile_expression=compile_expression, bind=bind
        ) as db:
            db.rebuild_views()
    return reached
