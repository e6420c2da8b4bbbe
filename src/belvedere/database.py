"""A database: the only place where the parts are wired together.

    db = Database.open("shop.db")
    db.change_schema(lambda edit: edit.create_table(TableDefinition(..)))
    with db.begin() as txn:
        rows.insert(txn, db.find_table("orders"), (1, 7, ..))

One Database is one open store: its engine, log, locks, catalog and commit protocol, and its views
(`db.views`). Any number of threads may use it, each with transactions of its own. SQL comes with
`open_sql_database`, which also wires what its sessions share.
"""

from __future__ import annotations

import itertools
import os
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Self, TypedDict, TypeVar, Unpack

from belvedere import forks
from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.codec import keyspace
from belvedere.config import Config
from belvedere.errors import Error, Retry, Unavailable
from belvedere.kv.batch import BatchStore
from belvedere.kv.hbase.url import is_hbase_url
from belvedere.kv.memory import MemoryStore
from belvedere.session.context.shared_state import SharedState
from belvedere.session.materialized import replace
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.session import Session
from belvedere.session.statement.catalog_expressions import compile_row_expression
from belvedere.txn import token
from belvedere.txn.batch_atomic.backup import restore
from belvedere.txn.batch_atomic.engine import BatchAtomicEngine
from belvedere.txn.batch_atomic.recovery import (
    RecoveredStore,
    open_directory,
    open_memory,
    open_restored,
)
from belvedere.txn.contracts import (
    SNAPSHOT,
    CommitResult,
    Isolation,
    LockRequest,
    Participant,
    Reader,
)
from belvedere.txn.engine import Engine, read_clock_us
from belvedere.txn.row_atomic.engine import CellStoreSetup, RowAtomicEngine
from belvedere.txn.transaction import foreign_keys
from belvedere.txn.transaction.locks import RowLockTable
from belvedere.txn.transaction.retry_locks import acquire_first, locks_to_retry
from belvedere.txn.transaction.schema_change import edit_catalog
from belvedere.txn.transaction.sequences import Sequences
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.backfill.batch_atomic_backfill import BatchAtomicBackfill
from belvedere.views.backfill.contracts import HostDatabase, StoreBackfill
from belvedere.views.backfill.row_atomic_backfill import RowAtomicBackfill
from belvedere.views.compile.defined_view import NewView
from belvedere.views.indexes.entries import (
    CompileExpression,
    build_index_participants,
    refuse_index_expression,
)
from belvedere.views.indexes.participants import build_non_view_participants
from belvedere.views.registry.view_registry import Bind, ViewRegistry, refuse_view_definitions
from belvedere.views.service import ViewService
from belvedere.views.state.build_state import list_begun_builds

MEMORY = ":memory:"
_SUFFIX = struct.Struct(">Q")
T = TypeVar("T")


class SqlCompilers(TypedDict, total=False):
    """What makes SQL text of the catalog work."""

    compile_expression: CompileExpression
    bind: Bind


class Database:
    """One open store. Make it with `open`."""

    def __init__(
        self,
        opened: RecoveredStore | CellStoreSetup,
        config: Config,
        *,
        random: Callable[[int], bytes] = os.urandom,
        clock_us: Callable[[], int] = read_clock_us,
        compile_expression: CompileExpression = refuse_index_expression,
        bind: Bind = refuse_view_definitions,
    ) -> None:
        """`compile_expression` and `bind` compile SQL text of the catalog: index expressions and
        view definitions."""
        self.config = config
        self._compile_expression = compile_expression
        self._shared: SharedState | None = None
        self._closing = threading.Lock()
        self._closed = False
        self.engine, backfill = self._build_engine_and_backfill(opened, clock_us, random)
        self.commits = self.engine.commits
        self.log = self.engine.log
        self.visibility = self.engine.visibility
        self.locks = RowLockTable(config.lock_wait_ms_max)
        self.sequences = Sequences(self.run_transaction)
        # A transaction id is unique by a count from a random start, which never wraps.
        self._suffixes = map(_SUFFIX.pack, itertools.count(int.from_bytes(random(8)) >> 1))
        self.single_row_commits = self.engine.single_row_commits(self.locks, self._suffixes)
        self.views = ViewService(
            self._build_view_host(ViewRegistry(bind, self._build_index_participants)), backfill
        )
        for part in (self, self.engine, self.commits, self.log, self.visibility, self.locks):
            forks.track_handle(part)

    @staticmethod
    def open(
        path: str | Path,
        config: Config | None = None,
        *,
        create: bool = True,
        accept_data_loss: bool = False,
        random: Callable[[int], bytes] = os.urandom,
        compile_expression: CompileExpression = refuse_index_expression,
        bind: Bind = refuse_view_definitions,
    ) -> Database:
        """Open the store at `path`, a directory or ':memory:'; create it when there is none."""
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
        if opened.failure is None:  # otherwise for reading only
            db.views.backfills.resume_or_drop_builds(compiled=bind is not refuse_view_definitions)
            db.views.start_or_wake_worker()
        return db

    @staticmethod
    def on_cells(
        cells: CellStoreSetup,
        config: Config | None = None,
        *,
        random: Callable[[int], bytes] = os.urandom,
        **compilers: Unpack[SqlCompilers],
    ) -> Database:
        """A node on a row-atomic store, which any number of nodes may use at the same time."""
        db = Database(cells, config or Config(), random=random, **compilers)
        if not cells.is_guest:
            db.views.start_or_wake_worker()
        return db

    # -- transactions -------------------------------------------------------------------------

    def begin(
        self, isolation: Isolation = SNAPSHOT, *, at_least: int = 0, wait_s: float = 30.0
    ) -> Transaction:
        """A transaction that sees at least position `at_least`."""
        if self._closed:
            raise Unavailable("the database is closed", sqlstate="08003")
        if at_least:
            self.engine.wait_for_position(at_least, wait_s)
        if isolation.validates_reads:
            self.engine.require_isolation(isolation)
        return Transaction(
            self.commits, self.locks, self.participants_for, next(self._suffixes), isolation
        )

    def begin_at(self, position: int) -> Transaction:
        """A transaction that reads all that is stored as of a past position, where that is kept."""
        given = (self.commits, self.locks, self.participants_for, next(self._suffixes))
        return Transaction(*given, snapshot=self.engine.open_past_snapshot(position))

    def run_transaction(
        self, function: Callable[[Transaction], T], isolation: Isolation = SNAPSHOT
    ) -> T:
        """Run `function` in a transaction and commit it; retry when it loses a race."""
        return self.run_and_get_commit(function, isolation)[0]

    def run_and_get_commit(
        self, function: Callable[[Transaction], T], isolation: Isolation = SNAPSHOT
    ) -> tuple[T, CommitResult]:
        at_least = 0
        locks: tuple[LockRequest, ...] = ()
        for attempt in range(self.config.statement_retries_max, -1, -1):
            transaction = self.begin(isolation, at_least=at_least)
            try:
                acquire_first(transaction, locks)
                result = function(transaction)
                return result, transaction.commit()
            except Retry as lost:
                if not attempt:
                    raise
                at_least, locks = lost.lost_to, locks_to_retry(transaction, lost)
            finally:
                transaction.rollback()
        raise AssertionError("unreachable")

    @contextmanager
    def open_newest_reader(self, at_least: int = 0) -> Iterator[Reader]:
        """A reader of what is published now."""
        with self.begin(at_least=at_least) as transaction:
            yield transaction

    def participants_for(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        return (
            *build_non_view_participants(catalog, relations, self._compile_expression),
            *self.views.list_view_participants(catalog, relations),
        )

    def _build_index_participants(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        return build_index_participants(catalog, relations, self._compile_expression)

    # -- catalog ------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The newest published catalog."""
        return self.visibility.published_snapshot.catalog

    def change_schema(self, change: Callable[[CatalogEdit], T]) -> T:
        """Apply a change of the catalog as one transaction, with retries. Returns when the indexes
        and views it created are backfilled; when that fails, they are dropped again."""
        result, edit, changed = self.run_transaction(partial(edit_catalog, change))
        keys = foreign_keys.added_foreign_keys(edit.before, changed.values())
        self.views.backfills.backfill_and_mark_ready(list_begun_builds(changed, edit.first_id))
        if keys:
            foreign_keys.require_parents(keys, self.begin, self.change_schema)
        self.views.start_or_wake_worker()
        return result

    def create_views(self, wanted: Sequence[NewView]) -> list[int]:
        """Define several views in one step; one scan backfills those that read the same table."""
        return self.views.create_views(wanted)

    def get_compiled_table(self, name: str, schema: str = "public") -> CompiledTable:
        catalog = self.catalog
        return compiled_table(catalog, catalog.require_relation(Table, name, schema).id)

    @property
    def store(self) -> BatchStore:
        return self.engine.store

    @property
    def row_atomic(self) -> bool:
        """Whether only one row of the store is written at a time."""
        return self.engine.row_atomic

    @property
    def housekeeping_failure(self) -> Error | None:
        return self.engine.housekeeping_failure

    # -- positions, tokens, outcomes ----------------------------------------------------------

    @property
    def position(self) -> int:
        """The newest published position."""
        return self.engine.latest_position

    @property
    def incarnation(self) -> int:
        return self.engine.incarnation

    @property
    def store_id(self) -> bytes:
        return self.engine.identity.store_id

    def position_to_token(self, position: int) -> str:
        """What a client shows elsewhere to see at least `position`."""
        identity = self.engine.identity
        return token.issue_token(
            token.PositionToken(identity.store_id, self.incarnation, position), identity.secret
        )

    def token_to_position(self, text: str) -> int:
        """The position a token stands for; refused when another store or incarnation issued it."""
        identity = self.engine.identity
        expected = token.PositionToken(identity.store_id, self.incarnation, self.position)
        return token.verify_token(text, expected, identity.secret)

    def outcome(self, transaction: bytes) -> int | None:
        """The position at which a transaction committed, or None when it did not. Unavailable
        (08007) when the log does not reach back to where it began."""
        return self.engine.outcome(transaction)

    # -- the past -----------------------------------------------------------------------------

    def open_past_reader(self, position: int) -> AbstractContextManager[Reader]:
        """A reader of base tables at a past position that the log still reaches."""
        return self.engine.open_past_reader(position, self.begin)

    def trim(self, through: int | None = None) -> int:
        """Delete the log up to `through`, by default all but the retention minimum; then the rows
        of tables and indexes whose drop is older than the log. Returns the position trimmed
        through."""
        if through is None:
            through = self.position - self.config.log_retention_records_min
        kept = self.views.find_first_retained_log_position()
        trimmed = self.log.trim(through if kept is None else min(through, kept))
        self._erase_dropped_relations()
        return trimmed

    def _trim_log_and_changefeeds(self) -> None:
        """Trim when the log is twice as long as required, so that trimming stays rare."""
        if self.position - self.log.first_position > 2 * self.config.log_retention_records_min:
            self.trim()
        self.views.trim_changefeeds()

    def _erase_dropped_relations(self) -> None:
        floor = self.engine.dropped_version_floor()
        if floor is None:
            return
        gone = [
            item.id
            for item in self.catalog.objects.values()
            if is_dropped(item) and item.version <= floor
        ]
        # Rows first: after a crash in between, the next trim finds the object and repeats this.
        for id_ in gone:
            self.engine.erase_range(*keyspace.relation_range(id_))
        if gone:
            self.change_schema(
                lambda edit: edit.purge_dropped(
                    id_ for id_ in gone if edit.catalog.get(id_) is not None
                )
            )

    def back_up(self, destination: Path) -> int:
        """Copy the store, while it is in use, to a new directory; returns the copy's position."""
        return self.engine.back_up(destination)

    # -- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Leave the store in order. Open transactions are lost; idempotent."""
        self.close_shared_state()
        with self._closing:
            if self._closed:
                return
            self.sequences.return_reserved()
            self._closed = True
        self.engine.close(self.views.join_worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- wiring -------------------------------------------------------------------------------

    def _build_engine_and_backfill(
        self,
        opened: RecoveredStore | CellStoreSetup,
        clock_us: Callable[[], int],
        random: Callable[[int], bytes],
    ) -> tuple[Engine, Callable[[HostDatabase], StoreBackfill]]:
        """The engine for this kind of store, and the constructor of its backfills."""
        config, participants_for = self.config, self.participants_for
        if isinstance(opened, CellStoreSetup):
            cells = RowAtomicEngine(
                opened,
                config,
                clock_us=clock_us,
                participants_for=participants_for,
                random=random,
                tend=lambda: self.views.backfills.adopt_orphans_until_closed(),  # noqa: PLW0108
            )
            return cells, partial(RowAtomicBackfill, cells.commits)
        batches = BatchAtomicEngine(
            opened,
            config,
            clock_us=clock_us,
            participants_for=participants_for,
            housekeeping=self._trim_log_and_changefeeds,
        )
        return batches, BatchAtomicBackfill

    def _build_view_host(self, registry: ViewRegistry) -> HostDatabase:
        """This database as its views see it."""
        return HostDatabase(
            engine=self.engine,
            registry=registry,
            begin=self.begin,
            change_schema=self.change_schema,
            compile_expression=self._compile_expression,
            is_closed=lambda: self._closed,
            resume_builds=self.config.resume_builds,
        )

    def open_shared_state(self, memory_limit_mb: int = 1024) -> SharedState:
        """What the SQL sessions of this database share. Its DuckDB also works out large batches of
        view maintenance. It is closed with the database, or by `close_shared_state`."""
        assert self._shared is None, "a database has one set of sessions"
        shared = SharedState(self, memory_limit_mb)
        self.views.registry.tiers.attach_duckdb(
            shared.engine,
            shared.table_statistics.count_rows_now,
            shared.table_statistics.distinct_count,
        )
        tiers = self.views.registry.tiers
        tiers.counts_waits = self.single_row_commits is None
        tiers.replaces_state = self.commits.clears_ranges
        tiers.costs.restore_kept_costs(self.commits.reader(self.commits.newest_snapshot))
        self._shared = shared
        return shared

    def close_shared_state(self) -> None:
        """Use DuckDB no more; idempotent."""
        with self._closing:
            shared, self._shared = self._shared, None
        if shared is not None:
            self.views.registry.tiers.detach_duckdb()
            shared.close()


SQL_COMPILERS = SqlCompilers(
    compile_expression=compile_row_expression, bind=bind_simplified_definition
)


def open_sql_database(
    path: str | Path,
    config: Config | None = None,
    *,
    create: bool = True,
    accept_data_loss: bool = False,
    memory_limit_mb: int = 1024,
    is_guest: bool = False,
) -> tuple[Database, SharedState]:
    """Open a store for SQL, `path` or on HBase, and what its sessions share. Views whose
    replacement was unfinished when the process died are replaced now; not on HBase, where other
    nodes live on, and where a guest only reads."""
    if is_hbase_url(path):
        from belvedere.txn.row_atomic.hbase_setup import open_hbase  # heavy

        cells = open_hbase(str(path), create=create, is_guest=is_guest)
        database = Database.on_cells(cells, config, **SQL_COMPILERS)
        return database, database.open_shared_state(memory_limit_mb)
    database = Database.open(
        path, config, create=create, accept_data_loss=accept_data_loss, **SQL_COMPILERS
    )
    shared = database.open_shared_state(memory_limit_mb)
    replace.resume_replacements(Session(shared))
    return database, shared


def restore_backup(
    backup: Path,
    destination: Path,
    position: int | None = None,
    *,
    random: Callable[[int], bytes] = os.urandom,
    compile_expression: CompileExpression = refuse_index_expression,
    bind: Bind = refuse_view_definitions,
) -> int:
    """Create a store at `destination` from a backup; returns its position. Rows of views are not
    logged, so a restore to an earlier position rebuilds them."""

    def rebuild_views() -> None:
        config = Config()
        with Database(
            open_restored(destination, config, random),
            config,
            random=random,
            compile_expression=compile_expression,
            bind=bind,
        ) as db:
            db.views.backfills.resume_or_drop_builds(compiled=bind is not refuse_view_definitions)
            db.views.backfills.rebuild_all_views()

    return restore(
        backup,
        destination,
        random,
        lambda catalog, relations: build_non_view_participants(
            catalog, relations, compile_expression
        ),
        rebuild_views,
        position,
    )
