"""The commit protocol of a row-atomic store.

One RowCommit is one node: it may be used from any thread, holds no state that must survive, and may
die at any moment. Participants request locks at the snapshot and again once the locks are held (a
key that is not held: all are released and taken together with it), then derive and check at the
newest rows, which under their locks are those of p-1.

A snapshot's `batch` is the position its cells are read as of; its `position` the last one at or
below it that changed a table: batches of view maintenance take positions of the log too, but do not
count as change.

A catalog change is a transaction that writes rows of the catalog relation, and then waits for
`catalog_barrier`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.errors import Corruption, Retry, Unavailable
from belvedere.kv.batch import Write
from belvedere.kv.cell import BeginWork, CellStore, Driver, ReplyLost, Step, WorkExpired
from belvedere.txn.batch_atomic.commit import apply_catalog_changes
from belvedere.txn.contracts import (
    CommitResult,
    Intent,
    KeyRange,
    LockRequest,
    MakeWrites,
    Participant,
    ParticipantsFor,
    Reader,
    Snapshot,
)
from belvedere.txn.row_atomic import bulk_commit, catalog_barrier, commit, locks, read_rows
from belvedere.txn.row_atomic import node as nodes
from belvedere.txn.row_atomic.catalog_barrier import CatalogCache
from belvedere.txn.row_atomic.cells import data_cells
from belvedere.txn.row_atomic.cells.layout import Positions, Record, RowWrite
from belvedere.txn.row_atomic.cells.placement import key_of, list_row_ranges
from belvedere.txn.row_atomic.commit import CommitRequest
from belvedere.txn.row_atomic.group_commit import GroupCommit
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.isolation import require_supported_isolation
from belvedere.txn.row_atomic.load_holds import TableHeld, wait_for_hold
from belvedere.txn.row_atomic.locks import AttemptLocks
from belvedere.txn.row_atomic.log import advance, log_rows
from belvedere.txn.row_atomic.log.shared_reach import SharedReach
from belvedere.txn.row_atomic.node import NodeSettings
from belvedere.txn.row_atomic.reader import (
    Result,
    RowReader,
    derived_writes,
    place_writes,
    single_cell_write,
)
from belvedere.txn.row_atomic.required_locks import (
    MAINTENANCE,
    build_request,
    derive_rows,
    lock_rows,
    required_locks,
)

LOCK_ROUNDS_MAX = 8
DERIVE_ROUNDS_MAX = 64
RECENT_ROWS_MAX = 10_000

Addition = tuple[bytes, bytes, tuple[int, ...]]
"""Key of a sum, its payload, what is added to its amounts."""


class RowCommit:
    """The commit protocol of one node on a row-atomic store."""

    def __init__(
        self,
        store: CellStore,
        *,
        settings: NodeSettings,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        clock_us: Callable[[], int],
        participants_for: ParticipantsFor,
        settles_in_background: bool = False,
    ) -> None:
        """`clock` is monotonic and this process's own; `clock_us` only dates the records.
        `settles_in_background`: commits are acknowledged when they are in the log."""
        self._store = store
        self._clock = clock
        self._sleep = sleep
        self._clock_us = clock_us
        self._participants_for = participants_for
        self._settings = settings
        self._catalogs = CatalogCache(self.run_repeatable)
        self._read_at_least = 0
        self._last_snapshot: tuple[Snapshot | None, float] = (None, 0.0)
        self._shut = False
        self.has_failed = False  # never for good: another try, or another node, may always succeed
        self.on_commit: Callable[[], None] = lambda: None
        self._recent: dict[bytes, int] = {}
        self._mutex = threading.Lock()
        self.round_trips = 0
        self.settling_round_trips = 0
        self.node = self.run_repeatable(lambda: nodes.join_store(settings))
        settling = self._run_settling if settles_in_background else None
        self._reads_ahead = settles_in_background
        self._group = GroupCommit(self.run_step, self.node, settling)
        self._shared_reach = SharedReach(self._reach_positions)

    def run_step(self, step: Step[Result]) -> Result:
        """Drive a step on the store, in the calling thread."""
        driver = Driver(self._store, self._clock, self._sleep, self._settings.work_seconds_max)
        try:
            return driver.run_step(step)
        finally:
            self.round_trips += driver.round_trips

    def _run_settling(self, step: Step[Result]) -> Result:
        """The same for what is left of commits after their acknowledgement."""
        driver = Driver(self._store, self._clock, self._sleep, self._settings.work_seconds_max)
        try:
            return driver.run_step(step)
        finally:
            self.settling_round_trips += driver.round_trips

    def wait_settled(self) -> None:
        """Until nothing is left to do for the commits of this node."""
        self._group.wait_settled(self._read_at_least)

    def run_repeatable(self, make: Callable[[], Step[Result]]) -> Result:
        """Drive a step that may be repeated; after a lost reply its outcome is unknown, so it is
        run again."""
        for _ in range(self._settings.tries_max):
            try:
                return self.run_step(make())
            except (ReplyLost, WorkExpired):
                continue
        raise Unavailable("the store does not answer", sqlstate="08006")

    def send_heartbeat(self) -> None:
        """Let other nodes see this one alive: at least every fifth of the lease."""
        self.run_step(nodes.send_heartbeat(self.node))

    def leave_store(self) -> None:
        """Tell the other nodes that this one is gone; else they find out by the lease."""
        try:
            self.run_step(nodes.leave_store(self.node))
        except (Unavailable, Corruption):
            self.node.counts["leaving not noted"] += 1

    def sweep_locks(self) -> int:
        """Finish what dead nodes began; returns the number of locks broken."""
        return self.run_step(sweep.sweep_locks(self.node))

    def is_silent(self, other: int) -> bool:
        """Whether the heartbeat of another node did not change for the lease, as seen from here."""
        return self.run_repeatable(lambda: locks.is_node_silent(self.node, other))

    # -- reading ------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Admit no further commit, and settle the last ones."""
        self._shut = True
        self._group.close()

    def _require_open(self) -> None:
        if self._shut:
            raise Unavailable("the database is closed", sqlstate="08003")

    def ensure_position(self, at_least: int) -> bool:
        """Make sure that every later snapshot contains this position; False when it is not taken
        yet."""
        if at_least > self._read_at_least:
            if at_least > self.run_repeatable(advance.last_position_taken):
                return False
            self._raise_read_position(at_least)
        return True

    def open_snapshot(self) -> Snapshot:
        """Open a snapshot that contains every commit of this node, and every position given to
        `ensure_position`."""
        found = self._known_snapshot() or self.published_snapshot()
        self.node.open_snapshot(found.batch)
        return found

    @property
    def recent_snapshot(self) -> Snapshot:
        """What statements of this node read at: it contains every commit of this node, and those
        of others but for the last moments (`NodeSettings.snapshot_seconds_max`)."""
        if self._settings.snapshot_seconds_max <= 0:
            return self.newest_snapshot
        return self._known_snapshot() or self.published_snapshot()

    def _known_snapshot(self) -> Snapshot | None:
        """The last snapshot, while it is young enough and contains all it has to."""
        known, taken = self._last_snapshot
        if known is None or known.batch < self._read_at_least:
            self._group.wait_settled(self._read_at_least)
            moved, taken = self.node.moved
            if moved.applied < self._read_at_least or not self._catalogs.knows_catalog(moved):
                return None
            known = self._remember_snapshot(moved, taken)
        return known if self._clock() - taken < self._settings.snapshot_seconds_max else None

    def published_snapshot(self) -> Snapshot:
        """What a snapshot would show now."""
        need = self._read_at_least
        self._group.wait_settled(need)
        return self._remember_snapshot(*self._shared_reach.reach_position(need))

    @property
    def newest_snapshot(self) -> Snapshot:
        """Not older than any commit acknowledged anywhere before this call."""
        self._group.wait_settled(self._read_at_least)
        started = self._clock()
        latest = self.run_repeatable(lambda: advance.reach_latest(self.node))
        found = self._remember_snapshot(latest, started)
        self._raise_read_position(found.batch)
        return found

    def _reach_positions(self, at_least: int) -> tuple[Positions, float]:
        started = self._clock()
        return self.run_repeatable(lambda: advance.reach_positions(self.node, at_least)), started

    def _remember_snapshot(self, at: Positions, started: float) -> Snapshot:
        """The snapshot at these positions, read not before `started`."""
        catalog = self._catalogs.catalog_of(at)
        found = Snapshot(at.applied, at.changed, catalog)
        with self._mutex:
            known = self._last_snapshot[0]
            if known is None or known.batch <= found.batch:
                self._last_snapshot = (found, started)
        return found

    def _raise_read_position(self, position: int) -> None:
        """Every later snapshot contains this position."""
        with self._mutex:
            self._read_at_least = max(self._read_at_least, position)

    def retain(self, snapshot: Snapshot) -> None:
        self.node.open_snapshot(snapshot.batch)

    def release(self, snapshot: Snapshot) -> None:
        self.node.close_snapshot(snapshot.batch)

    def reader(self, snapshot: Snapshot) -> RowReader:
        opened, at = self._clock(), snapshot.batch

        def check_age() -> None:
            if self._clock() - opened > self._settings.grace_seconds / 2:
                self.run_repeatable(lambda: read_rows.require_above_floor(at))

        more = (check_age, self._reads_ahead)
        return RowReader(self.run_repeatable, at, snapshot.position, snapshot.catalog, *more)

    def fetch_ahead(self, reader: Reader, keys: Iterable[bytes]) -> None:
        if isinstance(reader, RowReader):
            reader.fetch_ahead(keys)

    def is_newest(self, snapshot: Snapshot) -> bool:
        return False  # other nodes commit too

    def require_unchanged(self, key: bytes, snapshot: Snapshot) -> None:
        """Only this node's own recent commits are known before the locks are held."""
        changed = self._recent.get(key, 0)
        if changed > snapshot.batch:
            raise Retry("row was changed", lost_to=changed, row=key.hex())

    def latest_position(self) -> int:
        """A position not older than any commit acknowledged anywhere before this call."""
        return self.run_repeatable(lambda: advance.latest_position(self.node))

    def outcome(self, transaction: bytes) -> int | None:
        """The position a transaction committed at; None when that is not known."""
        return self.run_repeatable(lambda: commit.read_outcome(self.node, transaction))

    def catalog_at(self, at: int) -> Catalog:
        """The catalog as of a position; one object for each version."""
        return self._catalogs.catalog_at(at)

    # -- committing ---------------------------------------------------------------------------

    def commit(self, intent: Intent) -> CommitResult:
        require_supported_isolation(intent.isolation)
        self._require_open()
        time = self._clock_us()
        try:
            position = self._commit_with_locks(intent, time)
        except Retry as retry:
            if retry.message == "catalog changed":
                self._raise_read_position(self.latest_position())
            self._raise_read_position(retry.lost_to)
            raise
        self._raise_read_position(position)
        self._remember_changes(intent, position)
        changed = [c for c in intent.changes if c.relation == model.CATALOG_RELATION]
        if changed:
            self._publish_catalog(intent, position)
        self.on_commit()
        return CommitResult(position, time)

    def _remember_changes(self, intent: Intent, position: int) -> None:
        for change in intent.changes[:RECENT_ROWS_MAX]:
            self._recent[change.key] = position
        if len(self._recent) > RECENT_ROWS_MAX:
            self._recent = {}

    def _publish_catalog(self, intent: Intent, position: int) -> None:
        """Write the version of a committed catalog change and wait until no node works under an
        older one. When this node dies here, the next one that reads the new catalog writes it; a
        backfill that was to follow the barrier is then unfinished, and dropped."""
        try:
            self._group.wait_settled(position)
            self.run_repeatable(lambda: advance.apply_through(self.node, position))
            version = self.catalog_at(position).version
            self.run_repeatable(lambda: catalog_barrier.raise_version(version))
            while not self._try_barrier(version):
                self.node.counts["barrier waits"] += 1
        except Unavailable as error:
            raise log_rows.unknown_outcome(intent.transaction, position) from error

    def _try_barrier(self, version: int) -> bool:
        """The change is committed: a lock held for long is a reason to keep waiting, not to
        fail."""
        try:
            at = self.run_repeatable(
                lambda: catalog_barrier.wait_for_older_locks(self.node, version)
            )
        except Retry:
            return False
        self._raise_read_position(at)
        return True

    def wait_for_lock_holders(self) -> None:
        """Wait until every transaction that holds locks now is over: then a snapshot of this node
        contains all transactions that did not see what was written before this call."""
        version = self.newest_snapshot.catalog.version + 1
        while not self._try_barrier(version):
            self.node.counts["barrier waits"] += 1

    def _commit_with_locks(self, intent: Intent, time: int) -> int:
        relations = frozenset(change.relation for change in intent.changes)
        catalog = intent.snapshot.catalog
        self._require_newest_catalog(catalog)
        if model.CATALOG_RELATION in relations:
            catalog = apply_catalog_changes(catalog, intent.changes)
        participants = self._participants_for(catalog, relations)
        if bulk_commit.is_bulk(intent, relations):
            newest = self._reader_at(None, intent, catalog)
            commit_bulk = partial(bulk_commit.commit_bulk, self.run_step, self.node)
            derive = partial(derive_rows, intent, participants, newest)
            return commit_bulk(intent, catalog, time, derive)
        seen = self._reader_at(intent.snapshot.batch, intent, catalog)
        wanted = required_locks(intent, catalog, participants, seen)
        for _ in range(LOCK_ROUNDS_MAX):
            held = AttemptLocks(self.node.start_attempt(), intent.snapshot.catalog.version)
            record = None
            try:
                record, more = self._prepare_record(
                    intent, catalog, participants, wanted, held, time
                )
                if record is None:
                    self.run_step(locks.release_locks(self.node, held))
                    wanted |= more
            except TableHeld as found:
                hold = found.hold
                self.run_repeatable(lambda hold=hold: wait_for_hold(self.node, hold))  # type: ignore[misc]
            finally:
                if record is None:
                    self.node.end_attempt(held.attempt)
            if record is not None:
                return self._group.complete_commit(held, record)
        raise Retry("locks needed keep changing")

    def _require_newest_catalog(self, catalog: Catalog) -> None:
        """A commit under an older catalog than this node has seen is bound to fail, and its later
        statements may have written rows that the older one cannot read."""
        newest = self._last_snapshot[0]
        if newest is not None and newest.catalog.version > catalog.version:
            raise Retry("catalog changed", seen=catalog.version, found=newest.catalog.version)

    def _reader_at(self, as_of: int | None, intent: Intent, catalog: Catalog) -> RowReader:
        return RowReader(self.run_repeatable, as_of, intent.snapshot.position, catalog)

    def _prepare_record(
        self,
        intent: Intent,
        catalog: Catalog,
        participants: Sequence[Participant],
        wanted: frozenset[LockRequest],
        held: AttemptLocks,
        time: int,
    ) -> tuple[Record | None, frozenset[LockRequest]]:
        """The record to commit, with every lock held; or the locks that turned out to be
        missing."""
        work = build_request(intent, catalog, wanted, time)
        record = self.run_step(commit.prepare_commit(self.node, held, work))
        newest = self._reader_at(None, intent, catalog)
        try:
            more = required_locks(intent, catalog, participants, newest)
            if not more <= wanted:
                return None, more
            return derive_rows(intent, participants, newest, record), more
        except BaseException:
            self.run_step(locks.release_locks(self.node, held))
            raise

    # -- rows that are no changes -------------------------------------------------------------

    clears_ranges = False  # rows are deleted one by one

    def derive(
        self, make: MakeWrites, unread: Sequence[Write] = (), cleared: Sequence[KeyRange] = ()
    ) -> None:
        """One record of the log without changes, under the lock of view maintenance. State of views
        is written as additions, which commute with those of other transactions."""
        assert not cleared
        self._commit_derived(lambda reader: derived_writes([*make(reader), *unread], reader))

    def write_additions(
        self, make: Callable[[Reader], tuple[Sequence[Write], Sequence[Addition]]]
    ) -> None:
        """The same with the additions themselves: for a view that is being built, the state of
        which is not complete yet."""

        def build_writes(reader: RowReader) -> tuple[RowWrite, ...]:
            rows, additions = make(reader)
            sums = [data_cells.add_to_sum(*addition) for addition in additions]
            puts = [single_cell_write(key, value) for key, value in rows]
            return (*puts, *place_writes(reader.catalog, sums))

        self._commit_derived(build_writes)

    def _commit_derived(self, make: Callable[[RowReader], tuple[RowWrite, ...]]) -> None:
        for _ in range(DERIVE_ROUNDS_MAX):
            self._require_open()
            before = self.newest_snapshot
            held = AttemptLocks(self.node.start_attempt(), before.catalog.version)
            record = None
            try:
                record = self._prepare_derived(held, before.catalog, make)
                if record is not None:
                    self._raise_read_position(self._group.complete_commit(held, record))
                    self.on_commit()
                return
            except Retry as retry:
                self.node.counts["maintenance tried again"] += 1
                self._raise_read_position(retry.lost_to)
            finally:
                if record is None:
                    self.node.end_attempt(held.attempt)
        raise Unavailable("maintenance of views is kept from writing", sqlstate="55P03")

    def _prepare_derived(
        self,
        held: AttemptLocks,
        catalog: Catalog,
        make: Callable[[RowReader], tuple[RowWrite, ...]],
    ) -> Record | None:
        taken = lock_rows([MAINTENANCE])
        transaction = held.attempt.to_bytes(16)
        work = CommitRequest(transaction, self._read_at_least, catalog.version, taken, ())
        record = self.run_step(commit.prepare_commit(self.node, held, work))
        try:
            now = self.newest_snapshot
            writes = make(RowReader(self.run_repeatable, now.batch, now.position, catalog))
            if not writes:
                self.run_step(locks.release_locks(self.node, held))
                return None
            return msgspec.structs.replace(record, writes=writes, time=self._clock_us())
        except BaseException:
            self.run_step(locks.release_locks(self.node, held))
            raise

    def read_sums(
        self, start: bytes, end: bytes, at: int
    ) -> dict[bytes, tuple[bytes, tuple[int, ...]]]:
        """Payload and amounts of every sum in a range as of a position, zero ones too."""
        found: dict[bytes, tuple[bytes, tuple[int, ...]]] = {}
        for low, high in list_row_ranges(self.newest_snapshot.catalog, start, end):
            sums = self.run_repeatable(partial(read_rows.scan_sums, low, high, at))
            found |= {key_of(row): (total.payload, total.amounts) for row, total in sums}
        return found

    def write_backfill(self, at: int, writes: Sequence[RowWrite]) -> None:
        """Write derived rows, given by their keys, as of a snapshot: a backfill without readers."""
        record = Record(0, b"", 0, 0, place_writes(self.catalog_at(at), writes))
        self.run_repeatable(lambda: _write_backfill(at, record))


def _write_backfill(at: int, record: Record) -> Step[None]:
    yield BeginWork()
    yield from advance.write_cells(at, record)
