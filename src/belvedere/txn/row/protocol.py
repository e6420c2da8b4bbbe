"""The commit protocol of a row-atomic store, as `txn/commit/batch.py` is that of batch-atomic ones.

One RowCommit is one node: it may be used from any thread, holds no state that must survive, and may
die at any moment. Participants are asked for locks at the snapshot and again once the locks are
held (a key that is not held: all are released and taken together with it), then derive and check at
the newest rows, which under their locks are those of p-1.

A snapshot's `batch` is the position its cells are read as of; its `position` the last one at or
below it that changed a table: batches of view maintenance take positions of the log too, but do not
count as change.

A catalog change is a transaction that writes rows of the catalog relation. When it is committed its
version is written and the barrier waited for: after that no node commits under an older catalog,
and what the change adds can be backfilled from a snapshot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

import msgspec

from belvedere.catalog import catalog as catalogs
from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.codec import keyspace
from belvedere.codec.record import encode_record
from belvedere.errors import Retry, Unavailable, Unsupported
from belvedere.kv.batch import Write
from belvedere.kv.cell import Begin, CellStore, Driver, ReplyLost, Step, WorkExpired
from belvedere.txn.border import (
    SERIALIZABLE,
    Committed,
    Intent,
    Isolation,
    LockRequest,
    Participant,
    ParticipantsFor,
    Reader,
    Snapshot,
)
from belvedere.txn.commit.batch import changed_catalog
from belvedere.txn.history.readers import OverlayReader
from belvedere.txn.row import advance, barrier, cells, commit, layout, locks, log, read, sweep
from belvedere.txn.row import node as nodes
from belvedere.txn.row.commit import Work
from belvedere.txn.row.group import GroupCommit
from belvedere.txn.row.layout import Record, RowWrite
from belvedere.txn.row.locks import Held, Lock
from belvedere.txn.row.node import Settings
from belvedere.txn.row.reader import (
    Result,
    RowReader,
    RowWriter,
    derived_writes,
    row_write,
    whole,
)
from belvedere.txn.row.wanted import MAINTENANCE, wanted_locks
from belvedere.txn.schema import CATALOG_KEY

PREFIX = keyspace.ROW_PREFIX_BYTES
LOCK_ROUNDS_MAX = 8
DERIVE_ROUNDS_MAX = 64
RECENT_ROWS_MAX = 10_000
CATALOGS_KEPT = 8

Addition = tuple[bytes, bytes, tuple[int, ...]]
"""Key of a sum, its payload, what is added to its amounts."""


class RowCommit:
    """The commit protocol of one node on a row-atomic store."""

    def __init__(
        self,
        store: CellStore,
        *,
        settings: Settings,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        clock_us: Callable[[], int],
        participants_for: ParticipantsFor,
    ) -> None:
        """`clock` is monotonic and this process's own; `clock_us` only dates the records."""
        self._store = store
        self._clock = clock
        self._sleep = sleep
        self._clock_us = clock_us
        self._participants_for = participants_for
        self._settings = settings
        self._catalogs: dict[int, Catalog] = {}
        self._read_at_least = 0
        self._shut = False
        self.failed = False  # never for good: another try, or another node, may always succeed
        self.moved: Callable[[], None] = lambda: None
        self._recent: dict[bytes, int] = {}
        self._mutex = threading.Lock()
        self.round_trips = 0
        self.node = self.run(nodes.join(settings))
        self._group = GroupCommit(self.run, self.node)

    def run(self, step: Step[Result]) -> Result:
        """Drive a step on the store, in the calling thread."""
        driver = Driver(self._store, self._clock, self._sleep, self._settings.work_seconds_max)
        try:
            return driver.run(step)
        finally:
            self.round_trips += driver.round_trips

    def look(self, make: Callable[[], Step[Result]]) -> Result:
        """Drive a step that may be repeated; after a lost reply its outcome is unknown, so it is
        run again."""
        for _ in range(self._settings.tries_max):
            try:
                return self.run(make())
            except (ReplyLost, WorkExpired):
                continue
        raise Unavailable("the store does not answer", sqlstate="08006")

    def beat(self) -> None:
        """Send a heartbeat, so that other nodes see this one alive: at least every fifth of the
        lease."""
        self.run(nodes.beat(self.node))

    def sweep(self) -> int:
        """Finish what dead nodes began; returns the number of locks broken."""
        return self.run(sweep.sweep(self.node))

    def is_silent(self, other: int) -> bool:
        """Whether the heartbeat of another node did not change for the lease, as seen from here."""
        return self.look(lambda: locks.is_silent(self.node, other))

    # -- reading ------------------------------------------------------------------------------

    def shut(self) -> None:
        """Admit no further commit."""
        self._shut = True

    def _require_open(self) -> None:
        if self._shut:
            raise Unavailable("the database is closed", sqlstate="08003")

    def reach(self, at_least: int) -> bool:
        """Make sure that every later snapshot contains this position; False when it is not taken
        yet."""
        if at_least > self._read_at_least:
            if at_least > self.look(advance.handed_out):
                return False
            self._hold(at_least)
        return True

    def snapshot(self) -> Snapshot:
        """Open a snapshot that contains every commit of this node, and every position given to
        `reach`."""
        found = self.published()
        self.node.open_snapshot(found.batch)
        return found

    def published(self) -> Snapshot:
        """What a snapshot would show now."""
        need = self._read_at_least
        at = self.look(lambda: advance.positions_from(self.node, need))
        return Snapshot(at.applied, at.changed, self.catalog_at(at.applied))

    @property
    def newest(self) -> Snapshot:
        """Not older than any commit acknowledged anywhere before this call."""
        self._hold(self.latest())
        return self.published()

    def _hold(self, position: int) -> None:
        """Every later snapshot contains this position."""
        with self._mutex:
            self._read_at_least = max(self._read_at_least, position)

    def release(self, snapshot: Snapshot) -> None:
        self.node.close_snapshot(snapshot.batch)

    def reader(self, snapshot: Snapshot) -> RowReader:
        opened, at = self._clock(), snapshot.batch

        def check_age() -> None:
            if self._clock() - opened > self._settings.grace_seconds / 2:
                self.look(lambda: read.check_floor(at))

        return RowReader(self.look, at, snapshot.position, snapshot.catalog, check_age)

    def require_unchanged(self, key: bytes, snapshot: Snapshot) -> None:
        """Only this node's own recent commits are known before the locks are held."""
        changed = self._recent.get(key, 0)
        if changed > snapshot.batch:
            raise _conflict(changed, key)

    def latest(self) -> int:
        """A position not older than any commit acknowledged anywhere before this call."""
        return self.look(lambda: advance.latest(self.node))

    def outcome(self, transaction: bytes) -> int | None:
        """The position a transaction committed at; None when that is not known."""
        return self.look(lambda: commit.outcome(self.node, transaction))

    def catalog_at(self, at: int) -> Catalog:
        """The catalog as of a position; one object for each version."""
        reader = RowReader(self.look, at, at, catalogs.empty())
        head = reader.get(CATALOG_KEY.encode((model.HEAD_ID,)))
        version = 0 if head is None else model.decode(head).version
        known = self._catalogs.get(version)
        if known is not None:
            return known
        found = dict(catalogs.empty().objects)
        for batch in reader.scan(*keyspace.relation_range(model.CATALOG_RELATION)):
            for _, value in batch:
                item = model.decode(value)
                found[item.id] = item
        loaded = Catalog(found)
        if head is not None:
            self.run(barrier.raise_version(loaded.version))
        return self._remember_catalog(version, loaded)

    def _remember_catalog(self, version: int, loaded: Catalog) -> Catalog:
        with self._mutex:
            kept = self._catalogs.setdefault(version, loaded)
            for old in sorted(self._catalogs)[:-CATALOGS_KEPT]:
                if old != version:
                    del self._catalogs[old]
        return kept

    # -- committing ---------------------------------------------------------------------------

    def commit(self, intent: Intent) -> Committed:
        require_supported(intent.isolation)
        self._require_open()
        time = self._clock_us()
        try:
            position = self._commit(intent, time)
        except Retry as retry:
            if retry.message == "catalog changed":
                self._hold(self.latest())
            self._hold(retry.lost_to)
            raise
        self._hold(position)
        self._remember(intent, position)
        changed = [c for c in intent.changes if c.relation == model.CATALOG_RELATION]
        if changed:
            self._publish_catalog(intent, position)
        self.moved()
        return Committed(position, time)

    def _remember(self, intent: Intent, position: int) -> None:
        for change in intent.changes[:RECENT_ROWS_MAX]:
            self._recent[change.key] = position
        if len(self._recent) > RECENT_ROWS_MAX:
            self._recent = {}

    def _publish_catalog(self, intent: Intent, position: int) -> None:
        """Write the version of a committed catalog change and wait until no node works under an
        older one. When this node dies here, the next one that reads the new catalog writes it; a
        backfill that was to follow the barrier is then unfinished, and dropped."""
        try:
            self.look(lambda: advance.apply_through(self.node, position))
            version = self.catalog_at(position).version
            self.look(lambda: barrier.raise_version(version))
            while not self._passed_barrier(version):
                self.node.counts["barrier waits"] += 1
        except Unavailable as error:
            raise log.unknown_outcome(intent.transaction, position) from error

    def _passed_barrier(self, version: int) -> bool:
        """The change is committed: a lock held for long is a reason to keep waiting, not to
        fail."""
        try:
            at = self.look(lambda: barrier.barrier(self.node, version))
        except Retry:
            return False
        self._hold(at)
        return True

    def outlast(self) -> None:
        """Wait until every transaction that holds locks now is over: then a snapshot of this node
        contains all transactions that did not see what was written before this call."""
        version = self.newest.catalog.version + 1
        while not self._passed_barrier(version):
            self.node.counts["barrier waits"] += 1

    def _commit(self, intent: Intent, time: int) -> int:
        relations = frozenset(change.relation for change in intent.changes)
        catalog = intent.snapshot.catalog
        if model.CATALOG_RELATION in relations:
            catalog = changed_catalog(catalog, intent.changes)
        participants = self._participants_for(catalog, relations)
        seen = self._showing(intent.snapshot.batch, intent, catalog)
        wanted = wanted_locks(intent, catalog, participants, seen)
        for _ in range(LOCK_ROUNDS_MAX):
            held = Held(self.node.start_attempt(), intent.snapshot.catalog.version)
            try:
                record, more = self._prepare(intent, catalog, participants, wanted, held, time)
                if record is not None:
                    return self._group.complete(held, record)
                self.run(locks.release(self.node, held))
                wanted |= more
            finally:
                self.node.end_attempt(held.attempt)
        raise Retry("locks needed keep changing")

    def _showing(self, as_of: int | None, intent: Intent, catalog: Catalog) -> RowReader:
        return RowReader(self.look, as_of, intent.snapshot.position, catalog)

    def _prepare(
        self,
        intent: Intent,
        catalog: Catalog,
        participants: Sequence[Participant],
        wanted: frozenset[LockRequest],
        held: Held,
        time: int,
    ) -> tuple[Record | None, frozenset[LockRequest]]:
        """The record to commit, with every lock held; or the locks that turned out to be
        missing."""
        work = self._work(intent, catalog, wanted, time)
        record = self.run(commit.prepare(self.node, held, work))
        newest = self._showing(None, intent, catalog)
        try:
            more = wanted_locks(intent, catalog, participants, newest)
            if not more <= wanted:
                return None, more
            return self._derive(intent, participants, newest, record), more
        except BaseException:
            self.run(locks.release(self.node, held))
            raise

    def _work(
        self, intent: Intent, catalog: Catalog, wanted: Iterable[LockRequest], time: int
    ) -> Work:
        logged = [(c.relation, c.key[PREFIX:], c.old, c.new) for c in intent.changes]
        body = encode_record(0, 0, catalog.version, time, intent.transaction, logged)
        return Work(
            intent.transaction,
            intent.snapshot.batch,
            intent.snapshot.catalog.version,
            _lock_rows(wanted),
            tuple(row_write(catalog, c.key, c.old, c.new) for c in intent.changes),
            body=body,
            time=time,
            seen={change.key: change.seen for change in intent.changes},
        )

    def _derive(
        self,
        intent: Intent,
        participants: Sequence[Participant],
        newest: RowReader,
        record: Record,
    ) -> Record:
        writer = RowWriter(newest)
        for participant in participants:
            participant.writes(intent.changes, newest, writer)
        overlay = {change.key: change.new for change in intent.changes}
        overlay.update(writer.rows())
        after = OverlayReader(newest, overlay, newest.position + 1, newest.catalog)
        for participant in participants:
            if participant.checks:
                participant.check(intent.changes, after)
        return msgspec.structs.replace(record, writes=record.writes + writer.writes())

    # -- rows that are no changes -------------------------------------------------------------

    def derive(self, make: Callable[[Reader], Sequence[Write]]) -> None:
        """One record of the log without changes, under the lock of view maintenance. State of views
        is written as additions, which commute with those of other transactions."""
        self._derived(lambda reader: derived_writes(make(reader), reader))

    def add(self, make: Callable[[Reader], tuple[Sequence[Write], Sequence[Addition]]]) -> None:
        """The same with the additions themselves: for a view that is being built, the state of
        which is not complete yet."""

        def made(reader: RowReader) -> tuple[RowWrite, ...]:
            rows, additions = make(reader)
            return (
                *(whole(key, value) for key, value in rows),
                *(cells.add(*addition) for addition in additions),
            )

        self._derived(made)

    def _derived(self, make: Callable[[RowReader], tuple[RowWrite, ...]]) -> None:
        for _ in range(DERIVE_ROUNDS_MAX):
            self._require_open()
            before = self.newest
            held = Held(self.node.start_attempt(), before.catalog.version)
            try:
                record = self._derived_record(held, before.catalog, make)
                if record is None:
                    return
                self._hold(self._group.complete(held, record))
                self.moved()
                return
            except Retry as retry:
                self.node.counts["maintenance tried again"] += 1
                self._hold(retry.lost_to)
            finally:
                self.node.end_attempt(held.attempt)
        raise Unavailable("maintenance of views is kept from writing", sqlstate="55P03")

    def _derived_record(
        self, held: Held, catalog: Catalog, make: Callable[[RowReader], tuple[RowWrite, ...]]
    ) -> Record | None:
        taken = _lock_rows([MAINTENANCE])
        transaction = held.attempt.to_bytes(16)
        work = Work(transaction, self._read_at_least, catalog.version, taken, ())
        record = self.run(commit.prepare(self.node, held, work))
        try:
            now = self.newest
            writes = make(RowReader(self.look, now.batch, now.position, catalog))
            if not writes:
                self.run(locks.release(self.node, held))
                return None
            return msgspec.structs.replace(record, writes=writes, time=self._clock_us())
        except BaseException:
            self.run(locks.release(self.node, held))
            raise

    def sums(self, start: bytes, end: bytes, at: int) -> dict[bytes, tuple[bytes, tuple[int, ...]]]:
        """Payload and amounts of every sum in a range as of a position, also of sums that are
        zero."""
        found: dict[bytes, tuple[bytes, tuple[int, ...]]] = {}
        for key, total in self.look(lambda: read.sums(start, end, at)):
            found[key] = (total.payload, total.amounts)
        return found

    def fill(self, at: int, writes: Sequence[RowWrite]) -> None:
        """Write derived rows as of a snapshot, for a relation without readers yet: a backfill."""
        record = Record(0, b"", 0, 0, tuple(writes))
        self.look(lambda: _fill(at, record))


def _fill(at: int, record: Record) -> Step[None]:
    yield Begin()
    yield from advance.write_cells(at, record)


def _lock_rows(wanted: Iterable[LockRequest]) -> tuple[Lock, ...]:
    return tuple(Lock(layout.lock_row(each.kind, each.key), each.side) for each in wanted)


def _conflict(lost_to: int, key: bytes) -> Retry:
    return Retry("row was changed", lost_to=lost_to, row=key.hex())


def require_supported(isolation: Isolation) -> None:
    """SERIALIZABLE is refused by name until it is modelled; and so is what needs a range to stay as
    it was read."""
    if not isolation.validates_reads:
        return
    if isolation.name != SERIALIZABLE.name:
        raise Unsupported(
            "a statement that writes every row of a table on a row-atomic store",
            hint="make a new table, and copy the rows",
        )
    raise Unsupported(
        "serializable isolation is not supported on a row-atomic store",
        hint="use repeatable read",
        isolation=isolation.name,
    )
