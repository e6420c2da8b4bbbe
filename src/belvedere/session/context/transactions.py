"""The transaction state of a session: the open transaction, its failure, its savepoints.

    none ----begin----> open ----error----> failed ----rollback----> none
      ^                  |  ^                  |
      +--commit/rollback-+  +--rollback to-----+

A failed transaction accepts only ROLLBACK and ROLLBACK TO (else 25P02); its COMMIT rolls back, as
in PostgreSQL.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Index, ObjectState, View
from belvedere.errors import InvalidInput, Unsupported
from belvedere.session.context.database_contract import DatabaseContract
from belvedere.session.context.freshness import Freshness, FreshnessKind, parse_freshness
from belvedere.session.context.notifications import NotificationMark, SessionNotifications
from belvedere.session.context.settings import SessionSettings
from belvedere.txn.contracts import Isolation, Reader, TransactionSavepoint
from belvedere.txn.transaction.schema_change import apply_edit
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.registry.created_objects import compute_created_rows
from belvedere.views.state.build_state import select_unfinished_builds


class NamedSavepoint(NamedTuple):
    name: str
    savepoint: TransactionSavepoint
    catalog: Catalog
    notified: NotificationMark


class CursorsOfTransaction(Protocol):
    """The cursors of a session, as far as a transaction has to know of them."""

    @property
    def transaction_cursor_count(self) -> int: ...

    def end_transaction(self, *, committed: bool) -> None: ...


class TransactionState:
    MEASURED_WRITES_MIN = 100_000
    """Transactions of fewer writes are small."""

    __slots__ = (
        "_before",
        "_host",
        "_savepoints",
        "_settings",
        "always_read_only",
        "caught_up_position",
        "cursors",
        "deferred",
        "deferred_names",
        "explicit",
        "failed",
        "floor",
        "last_reader",
        "lock_wait_ms",
        "measure_size_at",
        "notifications",
        "open",
        "position",
        "read_only",
        "shown_position",
    )

    def __init__(
        self,
        host: DatabaseContract,
        settings: SessionSettings,
        notifications: SessionNotifications,
    ) -> None:
        self._host = host
        self._settings = settings
        self.notifications = notifications  # which its end delivers or takes back
        self.open: Transaction | None = None
        self.explicit = False
        self.failed = False
        self.read_only = False
        self.cursors: CursorsOfTransaction | None = None  # once one was declared
        self.lock_wait_ms: int | None = None  # None: as long as the store allows
        self.measure_size_at = self.MEASURED_WRITES_MIN  # so many writes of the open transaction
        self.always_read_only = False  # the connection is: nothing in a session undoes it
        self.deferred: bool | None = None  # SET CONSTRAINTS ALL; None: as each constraint says
        self.deferred_names: dict[str, bool] = {}  # SET CONSTRAINTS of single names, since then
        self.floor = 0  # the next snapshot is at least this position
        self.position = 0  # of the last commit or snapshot
        self.last_reader: Reader | None = None  # of the last read without a transaction
        self.caught_up_position = 0  # the newest position at which a bounded read caught up views
        self.shown_position: int | None = (
            None  # the open transaction read views at this older position
        )
        self._before = 0  # the position before the open transaction
        self._savepoints: list[NamedSavepoint] = []

    def begin(self, *, explicit: bool, isolation: Isolation | None = None) -> Transaction:
        level = isolation or self._settings.get("default_transaction_isolation")
        self.open = self._host.begin(level, at_least=self.floor)
        self.open.lock_wait_ms = self.lock_wait_ms
        self._before, self.shown_position = self.newest_seen_position, None
        self.position = max(self._before, self.open.position)
        self.explicit = explicit
        self.failed = False
        self.measure_size_at = self.MEASURED_WRITES_MIN
        self.read_only = self.is_read_only_by_default
        return self.open

    def raise_floor_for_freshness(self, text: str) -> Freshness:
        """Parse a freshness; the next snapshot contains what it asks for of base tables: a token's
        position, or, where other processes commit too, the newest."""
        wanted = parse_freshness(text)
        if wanted.kind is FreshnessKind.TOKEN:
            self.floor = max(self.floor, self._host.token_to_position(wanted.token))
        elif wanted.wants_newest and self._host.row_atomic:
            self.raise_floor_to_latest()
        return wanted

    def raise_floor_to_latest(self) -> int:
        """The next snapshot contains everything that was committed anywhere before this."""
        self.floor = max(self.floor, self._host.position)
        return self.floor

    @property
    def newest_seen_position(self) -> int:
        """The newest position the session has written or read; it never reads an older one."""
        return (
            self.position
            if self.last_reader is None
            else max(self.position, self.last_reader.position)
        )

    @property
    def newest_seen_before_open(self) -> int:
        """The same, as of before the open transaction."""
        return self.newest_seen_position if self.open is None else self._before

    def advance_position(self, position: int) -> None:
        """Note that the session has committed something outside of its transactions, up to here."""
        if self.open is None:
            self.position = max(self.position, position)

    @property
    def is_read_only_by_default(self) -> bool:
        return self.always_read_only or bool(self._settings.get("default_transaction_read_only"))

    def set_read_only(self, read_only: bool) -> None:
        if self.always_read_only and not read_only:
            raise InvalidInput(
                "cannot set transaction read-write mode on a read-only connection",
                sqlstate="25006",
            )
        self.read_only = read_only

    def require_writable(self, what: str) -> None:
        """Refuse what would change the store in a read-only transaction, open or to be begun."""
        if self.is_read_only_by_default if self.open is None else self.read_only:
            raise InvalidInput(f"cannot {what} in a read-only transaction", sqlstate="25006")

    def require_not_failed(self) -> None:
        if self.failed:
            raise InvalidInput(
                "current transaction is aborted",
                sqlstate="25P02",
                hint="end it with ROLLBACK, or go back with ROLLBACK TO",
            )

    def fail(self) -> None:
        """Refuse statements until ROLLBACK or ROLLBACK TO. What they will take back is given up
        now: others need not wait for its locks."""
        if self.open is None:
            return
        self.failed = True
        if self._savepoints:
            self._undo_since(self._savepoints[-1].savepoint)
        else:
            self.open.rollback()

    def _undo_since(self, savepoint: TransactionSavepoint) -> None:
        assert self.open is not None
        self.open.rollback_to(savepoint)
        self.open.release_locks_since(savepoint)

    def commit(self) -> bool:
        """Commit; False when the transaction had failed, and was rolled back instead."""
        transaction, failed = self.open, self.failed
        if transaction is None:
            return True
        if failed:
            self.rollback()
            return False
        self._clear_open_transaction(committed=True)
        try:
            if self.notifications.has_changes:
                self.notifications.require_queue_room()
            shown = None if transaction.changes else self.shown_position
            reached = transaction.commit().position
            self.position = max(self.position, reached) if shown is None else shown
            self.floor = max(self.floor, self.position)
        except BaseException:
            self.notifications.forget_changes()
            self._settings.restore_after_transaction(committed=False)
            raise
        if self.notifications.has_changes:
            self.notifications.publish_changes()
        self._settings.restore_after_transaction(committed=True)
        if transaction.changes_catalog:
            self._host.views.start_or_wake_worker()
        return True

    def rollback(self) -> None:
        transaction = self.open
        self._clear_open_transaction(committed=False)
        self.notifications.forget_changes()
        if transaction is not None:
            transaction.rollback()
            self._settings.restore_after_transaction(committed=False)

    def _clear_open_transaction(self, *, committed: bool) -> None:
        if self.open is not None and self.cursors is not None:
            self.cursors.end_transaction(committed=committed)
        self.open, self.explicit, self.failed, self.deferred = None, False, False, None
        self.deferred_names = {}
        self._savepoints.clear()

    def is_constraint_deferred(self, name: str, initially: bool) -> bool:
        """Whether a deferrable constraint is currently checked only at commit."""
        known = self.deferred_names.get(name, self.deferred)
        return initially if known is None else known

    # -- savepoints ---------------------------------------------------------------------------

    def create_savepoint(self, name: str) -> None:
        transaction = self._require_open_transaction("SAVEPOINT")
        self._savepoints.append(
            NamedSavepoint(
                name,
                transaction.set_savepoint(),
                transaction.catalog,
                self.notifications.make_mark(),
            )
        )

    def rollback_to_savepoint(self, name: str) -> None:
        self._require_open_transaction("ROLLBACK TO SAVEPOINT")
        at = self._find_savepoint_index(name)
        self._undo_since(self._savepoints[at].savepoint)
        self.set_transaction_catalog(self._savepoints[at].catalog)
        self.notifications.go_back_to_mark(self._savepoints[at].notified)
        del self._savepoints[at + 1 :]
        self.failed = False

    def release_savepoint(self, name: str) -> None:
        self._require_open_transaction("RELEASE SAVEPOINT")
        self.require_not_failed()
        del self._savepoints[self._find_savepoint_index(name) :]

    def _require_open_transaction(self, what: str) -> Transaction:
        if self.open is None:
            raise InvalidInput(f"{what} can only be used in transaction blocks", sqlstate="25P01")
        return self.open

    def set_isolation(self, wanted: Isolation) -> None:
        """Change the level of the open transaction, of which no statement has run."""
        transaction = self._require_open_transaction("SET TRANSACTION")
        if wanted is transaction.isolation:
            return
        if transaction.begun or self._savepoints:
            raise InvalidInput(
                "isolation level must be set before any statement and any savepoint",
                sqlstate="25001",
            )
        if wanted.validates_reads:
            self._host.engine.require_isolation(wanted)
        transaction.set_isolation(wanted)

    def _find_savepoint_index(self, name: str) -> int:
        for at in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[at].name == name:
                return at
        raise InvalidInput("savepoint does not exist", sqlstate="3B001", name=name)

    # -- the catalog inside a transaction -----------------------------------------------------

    @property
    def has_transaction_to_keep(self) -> bool:
        """Whether a transaction is open that was begun by BEGIN, or that has something to lose:
        what commits by itself must neither lose nor commit it."""
        return self.explicit or (self.open is not None and self._has_more_than_read(self.open))

    def _has_more_than_read(self, transaction: Transaction) -> bool:
        """Whether its end would be noticed: it has changes, locks, savepoints, cursors, settings or
        a snapshot of its own."""
        return bool(
            transaction.changes
            or transaction.lock_count
            or not transaction.isolation.snapshot_per_statement
            or self._savepoints
            or (self.cursors is not None and self.cursors.transaction_cursor_count)
            or self._settings.has_local_settings
            or self.deferred is not None
            or self.deferred_names
            or self.read_only != self.is_read_only_by_default
            or self.notifications.has_changes
        )

    def end_transaction_that_only_read(self) -> None:
        """End a transaction that has only read, before a statement that commits by itself."""
        assert not self.has_transaction_to_keep
        self.commit()

    def require_nothing_open(self, what: str) -> None:
        """Unsupported for what commits by itself, in a transaction that has begun."""
        if self.has_transaction_to_keep:
            self.fail()
            raise Unsupported(f"{what} inside a transaction", hint="commit first")

    def apply_catalog_edit(self, edit: CatalogEdit) -> None:
        """Make a catalog change part of the open transaction, which sees it from now on. Views that
        it creates are ready when it commits; indexes, for this transaction, at once. The commit
        fills both."""
        transaction = self.open
        assert transaction is not None
        before = transaction.catalog
        builds = select_unfinished_builds(edit.changed_objects().values())
        for item in builds:
            edit.set_state(item.id, ObjectState.READY)
        created = [item for item in builds if not self._is_filled_by_changes(item)]
        if created and self._host.row_atomic:
            raise Unsupported(
                "filling indexes and views inside of a transaction, on a row-atomic store,",
                hint="commit first",
            )
        changed = apply_edit(transaction, edit)
        if not changed:
            return
        ready = edit.before.with_objects(changed)
        views = {item.id: item for item in created if isinstance(item, View)}
        self.set_transaction_catalog(ready.with_objects(views))
        new = [item.id for item in created if before.get(item.id) is None]
        compute_created_rows(self._host.views.registry, ready, new, transaction)

    def _is_filled_by_changes(self, item: Index | View) -> bool:
        """Whether every row of an index's table is a change of this transaction."""
        return isinstance(item, Index) and item.table not in self._host.catalog.objects

    def set_transaction_catalog(self, catalog: Catalog) -> None:
        assert self.open is not None
        self.open.use_catalog(catalog)
