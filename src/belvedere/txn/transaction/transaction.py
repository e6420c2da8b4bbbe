"""A transaction: a snapshot, its own writes on top, locks, savepoints, and one commit.

It satisfies `Reader`: who can read a snapshot can read a transaction, and sees its own writes too.
Rows that participants derive from those are previewed for its reads (`derived_preview`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Self

from belvedere.catalog.catalog import Catalog
from belvedere.kv.batch import SCAN_BATCH_ROWS, Pair
from belvedere.txn.contracts import (
    ROOT,
    SNAPSHOT,
    CommitProtocol,
    CommitResult,
    Intent,
    Isolation,
    KeyRange,
    LockRequest,
    OwnedLock,
    ParticipantsFor,
    Reader,
    RowChange,
    Snapshot,
    TransactionSavepoint,
    collect_changes,
    locked_resource,
    new_tuple,
    request_of,
)
from belvedere.txn.history.merge_scan import merge_scan, overlay_pairs, take_changed_rows
from belvedere.txn.history.readers import SnapshotReader, values_only
from belvedere.txn.transaction.changed_keys import ChangedKeys, find_changes_since, find_no_rows
from belvedere.txn.transaction.derived_preview import DerivedPreview, find_created_indexes
from belvedere.txn.transaction.ended_reader import ENDED_READER, ended_error
from belvedere.txn.transaction.locks import RowLockTable

NO_READS: frozenset[bytes] = frozenset()
_NO_CHANGES: dict[bytes, RowChange] = {}  # these are shared and never added to
_NO_RANGES: list[KeyRange] = []


class Transaction:
    __slots__ = (
        "_carried",
        "_changes",
        "_earliest",
        "_held",
        "_journal",
        "_locks",
        "_order",
        "_participants_for",
        "_planned",
        "_preview",
        "_protocol",
        "_ranges",
        "_reader",
        "_reads",
        "_stale",
        "begun",
        "ended",
        "id",
        "isolation",
        "lock_wait_ms",
        "snapshot",
    )

    def __init__(
        self,
        protocol: CommitProtocol,
        locks: RowLockTable,
        participants_for: ParticipantsFor,
        suffix: bytes,
        isolation: Isolation = SNAPSHOT,
        snapshot: Snapshot | None = None,
    ) -> None:
        """`suffix`, 8 bytes, makes the id unique; it starts with the snapshot's position, where a
        search of the log for its outcome begins. `snapshot`: opened for it, or else the newest."""
        self._protocol, self._locks = protocol, locks
        self._participants_for = participants_for
        self.isolation = isolation
        self.snapshot = snapshot = snapshot or protocol.open_snapshot()
        self._reader: Reader = protocol.reader(snapshot)
        self.id = snapshot[1].to_bytes(8) + suffix
        self._earliest: Snapshot | None = None  # of the first statement that wrote, if replaced
        self._stale = isolation.snapshot_per_statement  # the next statement takes a new snapshot
        self.begun = False  # a statement has begun
        self.lock_wait_ms: int | None = None  # None: as long as the store allows
        self._planned: Snapshot | None = None  # before the first own change of the catalog
        self._changes: dict[bytes, RowChange] = {}
        self._journal: list[tuple[bytes, RowChange | None]] | None = None
        self._held: dict[OwnedLock, None] = {}
        self._carried: dict[OwnedLock, None] | None = None  # see `restart_statement`
        self._order: ChangedKeys | None = None
        self._preview: DerivedPreview | None = None  # None: nothing derived was read yet
        self._reads: set[bytes] | None = None
        self._ranges: list[KeyRange] = _NO_RANGES
        if isolation.validates_reads:
            self._reads, self._ranges = set(), []
        self.ended = False

    @property
    def position(self) -> int:
        return self.snapshot.position

    @property
    def catalog(self) -> Catalog:
        return self.snapshot.catalog

    @property
    def changes(self) -> tuple[RowChange, ...]:  # in the order their rows were first touched
        return tuple(self._changes.values())

    @property
    def changes_catalog(self) -> bool:
        return self._planned is not None

    @property
    def plain_reader(self) -> Reader | None:
        """The reader of its snapshot, while its reads are simply those."""
        return None if self._changes or self._reads is not None else self._reader

    @property
    def held_locks(self) -> tuple[LockRequest, ...]:
        return tuple([request_of(lock) for lock in self._held])

    # -- reading ------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        if self._changes:
            change = self._changes.get(key)
            if change is not None:
                return change[2]
            preview = self._find_preview(key)
            if preview is not None and key in preview.rows:
                return preview.rows[key]
        if self._reads is not None:
            self._reads.add(key)
        return self._reader.get(key)

    def get_row(self, key: bytes) -> bytes | None:
        """`get` of a row of a table, which is not derived."""
        change = self._changes.get(key)
        if change is not None:
            return change[2]
        if self._reads is not None:
            self._reads.add(key)
        return self._reader.get(key)

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if self._changes or self._reads is not None:
            return [self.get(key) for key in keys]
        return self._reader.multi_get(keys)

    def has_no_rows(self, keys: Sequence[bytes], end: bytes) -> bool:
        """Whether `find_no_rows` says so."""
        return find_no_rows(self._changes, self._reads, self._reader, keys, end)

    def fetch_ahead(self, keys: Iterable[bytes]) -> None:
        """Have rows at hand that are read next, one by one: one round trip for all of them."""
        wanted = (key for key in keys if key not in self._changes)
        self._protocol.fetch_ahead(self._reader, wanted)

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        if self._reads is not None:
            self._ranges.append(KeyRange(start, end))
        overlay = self._own_rows(start, end, reverse, limit) if self._changes else {}
        # Each own row hides one other row at most.
        enough = None if limit is None else limit + len(overlay)
        batches = self._reader.scan(
            start, end, reverse=reverse, limit=enough, batch_rows=batch_rows
        )
        return merge_scan(batches, overlay, reverse=reverse, limit=limit) if overlay else batches

    def fetch_range(
        self, start: bytes, end: bytes, limit: int, *, reverse: bool = False
    ) -> list[Pair]:
        """The first pairs of a range at once, at most `limit`: for ranges of a few rows."""
        reader = self._reader
        if self._reads is not None or not isinstance(reader, SnapshotReader):
            return list(chain.from_iterable(self.scan(start, end, reverse=reverse, limit=limit)))
        own = self._own_rows(start, end, reverse, limit) if self._changes else {}
        found = reader.fetch_range(start, end, limit + len(own), reverse=reverse)
        return overlay_pairs(found, list(own), own, reverse)[:limit] if own else found

    def scan_values(
        self, start: bytes, end: bytes, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        if self._changes or self._reads is not None:
            return values_only(self.scan(start, end, batch_rows=batch_rows))
        return self._reader.scan_values(start, end, batch_rows=batch_rows)

    def _own_rows(
        self, start: bytes, end: bytes, reverse: bool, limit: int | None
    ) -> dict[bytes, bytes | None]:
        """Own rows of the range (None: absent), in the order of the scan."""
        preview = self._find_preview(start)
        if preview is not None:
            return preview.find_range(start, end, reverse, limit)
        if self._order is None:
            self._order = ChangedKeys(self._changes)
        if not (keys := self._order.find_range(start, end)):
            return {}
        each = reversed(keys) if reverse else iter(keys)
        return take_changed_rows(self._changes, each, limit)

    # -- derived rows of own writes -----------------------------------------------------------

    def _find_preview(self, key: bytes) -> DerivedPreview | None:
        """The preview, brought up to own writes, where the key's relation is derived."""
        if key[1:5] not in self.snapshot[2].derived_ids:
            return None
        preview = self._preview
        if preview is None:
            created = find_created_indexes(self._planned, self.catalog)
            preview = self._preview = DerivedPreview(self._changes.values(), created)
        if preview.pending or preview.unbuilt:
            preview.derive_for(key, self, self.get_row, self._participants_for)
        return preview

    # -- writing ------------------------------------------------------------------------------

    def acquire_lock(self, request: LockRequest, wait_ms: int | None = None) -> None:
        """Hold this lock to the end of the transaction; 55P03 after `wait_ms`, `lock_wait_ms`."""
        lock: OwnedLock = request.key if request.kind == ROOT and not request.side else request
        if lock not in self._held:
            if self.ended:
                raise ended_error()
            if not self._is_carried(lock):
                wait_ms = self.lock_wait_ms if wait_ms is None else wait_ms
                self._locks.acquire(self.id, request, wait_ms)
            self._held[lock] = None

    def lock_root(self, key: bytes) -> None:
        """Hold the lock of this root key to the end of the transaction."""
        if key not in self._held:
            if self.ended:
                raise ended_error()
            if self._carried is None or not self._is_carried(key):
                self._locks.acquire_root(self.id, key, self.lock_wait_ms)
            self._held[key] = None

    def lock_roots(self, roots: Sequence[bytes], before_wait: Callable[[int], None]) -> None:
        if self.ended or self._carried is not None:
            for place, root in enumerate(roots):
                before_wait(place)
                self.lock_root(root)
        else:
            self._locks.acquire_roots(self.id, roots, self._held, before_wait, self.lock_wait_ms)

    def _is_carried(self, lock: OwnedLock) -> bool:
        """Whether an earlier attempt of the statement has taken this lock: it is then held."""
        if self._carried is None or lock not in self._carried:
            return False
        del self._carried[lock]
        return True

    @property
    def lock_count(self) -> int:
        return len(self._held) + len(self._carried or ())

    def require_unchanged(self, key: bytes) -> None:
        """Raise Retry when others changed a row, locked but not written, since the snapshot."""
        if key not in self._changes:
            self._protocol.require_unchanged(key, self.snapshot)

    def write(self, key: bytes, old: bytes | None, new: bytes | None) -> None:
        """Replace `old`, which the caller read by this transaction, by `new` (None: absent)."""
        if self.ended:
            raise ended_error()
        known = self._changes.get(key)
        if known is None and new is None and old is None:
            return
        if self._journal is not None:
            self._journal.append((key, known))
        if self._preview is not None:
            self._preview.note_write(key, old)
        if known is None:
            self._protocol.require_unchanged(key, self.snapshot)
            self._changes[key] = new_tuple(RowChange, (key, old, new, self.snapshot.batch))
            if self._order is not None:
                self._order.add(key)
        elif known.old == new:
            del self._changes[key]
            if self._order is not None:
                self._order.remove(key)
        else:
            self._changes[key] = RowChange(key, known.old, new, known.seen)

    def write_under(self, root: bytes, key: bytes, old: bytes | None, new: bytes | None) -> None:
        """`write` of a row, with the lock of its root."""
        if root not in self._held:
            if self.ended or self._carried is not None:
                self.lock_root(root)
            else:
                self._locks.acquire_root(self.id, root, self.lock_wait_ms)
                self._held[root] = None
        self.write(key, old, new)

    def write_many(
        self, keys: Sequence[bytes], olds: Sequence[bytes | None], news: Sequence[bytes | None]
    ) -> None:
        """`write` of many rows, no key twice, each with an old or a new row."""
        if self.ended or self._preview is not None or not self._changes.keys().isdisjoint(keys):
            for change in zip(keys, olds, news, strict=True):
                self.write(*change)
            return
        for key in keys:
            self._protocol.require_unchanged(key, self.snapshot)
        self._changes.update(collect_changes(keys, olds, news, self.snapshot.batch))
        if self._journal is not None:
            self._journal += zip(keys, repeat(None))
        if self._order is not None:
            self._order.update(keys)

    def require_stable(self, start: bytes, end: bytes) -> None:
        """Let the commit fail with Retry when another one changes something in the range."""
        self.isolation = self.isolation._replace(validates_reads=True)
        self._ranges = [*self._ranges, KeyRange(start, end)]

    # -- statements and savepoints ------------------------------------------------------------

    def set_isolation(self, isolation: Isolation) -> None:
        """Change the level before the first statement."""
        assert not self.begun
        self.isolation, self._stale = isolation, True
        self._reads, self._ranges = (set(), []) if isolation.validates_reads else (None, _NO_RANGES)

    def postpone_snapshot(self) -> None:
        """Let the first statement take the snapshot: BEGIN, or a lock taken first, sees nothing."""
        self._stale = True

    def begin_statement(self) -> None:
        """Take the snapshot of a statement: of each under READ COMMITTED, else of the first."""
        if self.ended:
            raise ended_error()
        if self._stale:
            if not self._protocol.is_newest(self.snapshot):
                self.renew_snapshot()
            self._stale = self.isolation.snapshot_per_statement
        self.begun = True

    def begin_first_statement(self) -> None:
        """The same for a statement with which the transaction itself began just now."""
        self._stale = self.isolation.snapshot_per_statement
        self.begun = True

    def renew_snapshot(self) -> None:
        """See what is published now. The oldest change's snapshot stays open, for the commit."""
        fresh = self._protocol.open_snapshot()
        if self._planned is not None:
            fresh = fresh._replace(catalog=self.snapshot.catalog)
        if self._earliest is None and (self._changes or self._journal):
            self._earliest = self.snapshot
        else:
            self._protocol.release(self.snapshot)
        self.snapshot = fresh
        self._reader = self._protocol.reader(fresh)
        self._preview = None

    def restart_statement(self, savepoint: TransactionSavepoint) -> None:
        """Go back to the savepoint, of before the statement, and see what is published now. Locks
        are carried over to the next attempt; `end_restarts` releases those it does not need."""
        if self._journal is not None:
            self.rollback_to(savepoint)
        else:
            self._changes, self._order = {}, None
        taken = list(self._held)[savepoint.locks :]
        for lock in taken:
            del self._held[lock]
        self._carried = (self._carried or {}) | dict.fromkeys(taken)
        self.renew_snapshot()

    def end_restarts(self) -> None:
        """The statement has ended, one way or another."""
        carried, self._carried = self._carried, None
        if carried:
            self._release_unless_held(carried)

    def use_catalog(self, catalog: Catalog) -> None:
        """Use a catalog that this transaction itself changed from now on."""
        if self._planned is None:
            self._planned = self._earliest or self.snapshot
        self.snapshot = self.snapshot._replace(catalog=catalog)
        self._preview = None  # entries are derived again, for new indexes

    def set_savepoint(self) -> TransactionSavepoint:
        if self.ended:
            raise ended_error()
        if self._journal is None:
            self._journal = []
        return new_tuple(TransactionSavepoint, (len(self._journal), len(self._held)))

    def changes_since(self, savepoint: TransactionSavepoint) -> tuple[RowChange, ...]:
        """The net changes of the rows that were written after it."""
        assert self._journal is not None
        return find_changes_since(self._changes, self._journal, savepoint[0])

    def rollback_to(self, savepoint: TransactionSavepoint) -> None:
        """Take back the changes since; what was read stays, and locks (`release_locks_since`)."""
        assert self._journal is not None
        while len(self._journal) > savepoint.journal:
            key, known = self._journal.pop()
            if known is None:
                self._changes.pop(key, None)
            else:
                self._changes[key] = known
        self._order = None
        self._preview = None

    def release_locks_since(self, savepoint: TransactionSavepoint) -> None:
        """Release the locks taken after it, once the changes under them are taken back."""
        taken = list(self._held)[savepoint.locks :]
        for lock in taken:
            del self._held[lock]
        if taken:
            self._release_unless_held(taken)

    def _release_unless_held(self, locks: Iterable[OwnedLock]) -> None:
        held = {locked_resource(lock) for lock in self._held}  # perhaps in another mode
        self._locks.release(self.id, [one for one in locks if locked_resource(one) not in held])

    def fork_for_reading(self) -> Transaction:
        """A transaction that keeps showing what this one shows now. It writes nothing, and the
        caller rolls it back. What it reads counts as read by this one."""
        fork = Transaction.__new__(Transaction)
        for name in Transaction.__slots__:
            setattr(fork, name, getattr(self, name))
        self._protocol.retain(self.snapshot)
        fork._changes, fork._held = dict(self._changes), {}
        fork._earliest = fork._journal = fork._order = fork._carried = fork._preview = None
        return fork

    # -- the end ------------------------------------------------------------------------------

    def commit(self) -> CommitResult:
        """Make the changes visible and durable, all or none; the transaction ends either way."""
        if self.ended:
            raise ended_error()
        try:
            if not self._changes:
                return CommitResult(self.snapshot.position, 0)
            intent = new_tuple(
                Intent,
                (
                    self.id,
                    self._planned or self._earliest or self.snapshot,
                    tuple(self._changes.values()),
                    frozenset(self._reads) if self._reads else NO_READS,
                    tuple(self._ranges) if self._ranges else (),
                    tuple(self._held),
                    self.isolation,
                ),
            )
            return self._protocol.commit(intent)
        finally:
            self._end_transaction()

    def rollback(self) -> None:
        """Forget everything; harmless when the transaction has ended."""
        if not self.ended:
            self._end_transaction()

    def _end_transaction(self) -> None:
        self.ended = True
        self._reader, self._changes = ENDED_READER, _NO_CHANGES
        try:
            self._protocol.release(self.snapshot)
            if self._earliest is not None:
                self._protocol.release(self._earliest)
        finally:
            if self._carried:
                self._held.update(self._carried)
                self._carried = None
            if self._held:
                self._locks.release(self.id, self._held)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit on a normal end, roll back on an exception, nothing if already ended."""
        if self.ended:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()
