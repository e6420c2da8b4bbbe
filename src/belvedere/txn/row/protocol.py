"""The row-atomic commit behind the border: what `txn/commit/batch.py` is for batch-atomic stores.

One RowCommit is one node: it may be used from any thread, holds nothing that matters, and may die
at any moment. Participants are asked for locks at the snapshot and again once the locks are held (a
key that is not held: all are released and taken together with it), then derive and check at the
newest rows, which under their locks are those of p-1.

A catalog change is a transaction that writes rows of the catalog relation. When it is committed its
version is written and the barrier waited for: after that nobody commits under an older catalog, and
what the change adds can be filled from a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from belvedere.catalog import catalog as catalogs
from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.codec import keyspace
from belvedere.codec.record import encode_record
from belvedere.errors import Retry, Unavailable, Unsupported
from belvedere.kv.cell import Begin, CellStore, Driver, ReplyLost, Step, WorkExpired
from belvedere.txn.border import (
    Committed,
    Intent,
    Isolation,
    LockRequest,
    Participant,
    ParticipantsFor,
    Reader,
    Snapshot,
)
from belvedere.txn.history.readers import OverlayReader
from belvedere.txn.row import advance, barrier, commit, layout, locks, log, read, sweep
from belvedere.txn.row import node as nodes
from belvedere.txn.row.commit import Work
from belvedere.txn.row.group import GroupCommit
from belvedere.txn.row.layout import Record, RowWrite
from belvedere.txn.row.locks import Held, Lock
from belvedere.txn.row.node import Settings
from belvedere.txn.row.reader import Result, RowReader, RowWriter, row_write
from belvedere.txn.schema import CATALOG_KEY

PREFIX = keyspace.ROW_PREFIX_BYTES
LOCK_ROUNDS_MAX = 8
RECENT_ROWS_MAX = 10_000


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
        self._catalog = catalogs.empty()
        self._read_at_least = 0
        self._want_latest = False
        self._recent: dict[bytes, int] = {}
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
        """Drive a step that may be repeated at will; a lost reply says nothing, so it is made
        again."""
        for _ in range(self._settings.tries_max):
            try:
                return self.run(make())
            except (ReplyLost, WorkExpired):
                continue
        raise Unavailable("the store does not answer", sqlstate="08006")

    def beat(self) -> None:
        """Tell the other nodes that this one lives: at least every fifth of the lease."""
        self.run(nodes.beat(self.node))

    def sweep(self) -> int:
        """Finish what dead nodes began; returns the number of locks broken."""
        return self.run(sweep.sweep(self.node))

    # -- reading ------------------------------------------------------------------------------

    def snapshot(self, at_least: int = 0) -> Snapshot:
        """Open a snapshot that holds every commit of this node, and `at_least` that position."""
        if self._want_latest:
            at = self.look(lambda: advance.latest(self.node))
            self._want_latest = False
        else:
            need = max(at_least, self._read_at_least)
            at = self.look(lambda: advance.snapshot(self.node, need))
        self.node.open_snapshot(at)
        try:
            return Snapshot(at, at, self._catalog_at(at))
        except BaseException:
            self.node.close_snapshot(at)
            raise

    def release(self, snapshot: Snapshot) -> None:
        self.node.close_snapshot(snapshot.position)

    def reader(self, snapshot: Snapshot) -> Reader:
        opened, at = self._clock(), snapshot.position

        def check_age() -> None:
            if self._clock() - opened > self._settings.grace_seconds / 2:
                self.look(lambda: read.check_floor(at))

        return RowReader(self.look, at, at, snapshot.catalog, check_age)

    def require_unchanged(self, key: bytes, snapshot: Snapshot) -> None:
        """Only this node's own recent commits are known before the locks are held."""
        changed = self._recent.get(key, 0)
        if changed > snapshot.position:
            raise Retry("row was changed", lost_to=changed, row=key.hex())

    def latest(self) -> int:
        """A position not older than any commit acknowledged anywhere before this call."""
        return self.look(lambda: advance.latest(self.node))

    def outcome(self, transaction: bytes) -> int | None:
        """The position a transaction committed at; None when that is not known."""
        return self.look(lambda: commit.outcome(self.node, transaction))

    def _catalog_at(self, at: int) -> Catalog:
        start, end = keyspace.relation_range(model.CATALOG_RELATION)
        reader = RowReader(self.look, at, at, self._catalog)
        head = reader.get(CATALOG_KEY.encode((model.HEAD_ID,)))
        if head is None or model.decode(head).version == self._catalog.version:
            return self._catalog if head is not None else catalogs.empty()
        found = dict(catalogs.empty().objects)
        for batch in reader.scan(start, end):
            for _, value in batch:
                item = model.decode(value)
                found[item.id] = item
        loaded = Catalog(found)
        self.run(barrier.raise_version(loaded.version))
        self._catalog = loaded
        return loaded

    # -- committing ---------------------------------------------------------------------------

    def commit(self, intent: Intent) -> Committed:
        require_supported(intent.isolation)
        time = self._clock_us()
        try:
            position = self._commit(intent, time)
        except Retry as retry:
            self._read_at_least = max(self._read_at_least, retry.lost_to)
            self._want_latest = self._want_latest or retry.message == "catalog changed"
            raise
        self._read_at_least = max(self._read_at_least, position)
        self._remember(intent, position)
        changed = [c for c in intent.changes if c.relation == model.CATALOG_RELATION]
        if changed:
            self._publish_catalog(intent, position)
        return Committed(position, time)

    def _remember(self, intent: Intent, position: int) -> None:
        for change in intent.changes[:RECENT_ROWS_MAX]:
            self._recent[change.key] = position
        if len(self._recent) > RECENT_ROWS_MAX:
            self._recent = {}

    def _publish_catalog(self, intent: Intent, position: int) -> None:
        """Write the version of a committed catalog change and wait until nobody works under an
        older one. When this node dies here, the next one that reads the new catalog writes it; what
        was to be filled after the barrier is then unfinished, and dropped."""
        try:
            self.look(lambda: advance.apply_through(self.node, position))
            version = self._catalog_at(position).version
            self.look(lambda: barrier.raise_version(version))
            while not self._passed_barrier(version):
                self.node.counts["barrier waits"] += 1
        except Unavailable as error:
            raise log.unknown_outcome(intent.transaction, position) from error

    def _passed_barrier(self, version: int) -> bool:
        """The change is committed: a lock held for long is a reason to wait on, not to fail."""
        try:
            self.look(lambda: barrier.barrier(self.node, version))
        except Retry:
            return False
        return True

    def _commit(self, intent: Intent, time: int) -> int:
        relations = frozenset(change.relation for change in intent.changes)
        participants = self._participants_for(intent.snapshot.catalog, relations)
        wanted = self._wanted(intent, participants, self.reader(intent.snapshot))
        for _ in range(LOCK_ROUNDS_MAX):
            held = Held(self.node.start_attempt(), intent.snapshot.catalog.version)
            try:
                record, more = self._prepare(intent, participants, wanted, held, time)
                if record is not None:
                    return self._group.complete(held, record)
                self.run(locks.release(self.node, held))
                wanted |= more
            finally:
                self.node.end_attempt(held.attempt)
        raise Retry("locks needed keep changing")

    def _prepare(
        self,
        intent: Intent,
        participants: Sequence[Participant],
        wanted: frozenset[LockRequest],
        held: Held,
        time: int,
    ) -> tuple[Record | None, frozenset[LockRequest]]:
        """The record to commit, with every lock held; or the locks that turned out to be
        missing."""
        record = self.run(commit.prepare(self.node, held, self._work(intent, wanted, time)))
        newest = RowReader(self.look, None, intent.snapshot.position, intent.snapshot.catalog)
        try:
            more = self._wanted(intent, participants, newest)
            if not more <= wanted:
                return None, more
            return self._derive(intent, participants, newest, record), more
        except BaseException:
            self.run(locks.release(self.node, held))
            raise

    def _wanted(
        self, intent: Intent, participants: Sequence[Participant], reader: Reader
    ) -> frozenset[LockRequest]:
        """Every lock needed: roots, the catalog, claims of primary keys that no root implies, and
        what participants ask for."""
        found = set(intent.locks)
        roots = {request.key for request in found if request.kind == "root"}
        for change in intent.changes:
            if change.relation == model.CATALOG_RELATION:
                found.add(LockRequest("catalog", b""))
            elif change.key not in roots and (change.old is None or change.new is None):
                found.add(LockRequest("claim", change.key))
        for participant in participants:
            for request in participant.locks(intent.changes, reader):
                if request.kind != "parent" or request.key not in roots:
                    found.add(request)
        if not found:
            found = {LockRequest("claim", change.key) for change in intent.changes}
        return frozenset(found)

    def _work(self, intent: Intent, wanted: Iterable[LockRequest], time: int) -> Work:
        catalog = intent.snapshot.catalog
        logged = [(c.relation, c.key[PREFIX:], c.old, c.new) for c in intent.changes]
        body = encode_record(0, 0, catalog.version, time, intent.transaction, logged)
        taken = [
            Lock(layout.lock_row(request.kind, request.key), 1 if request.shared else 0)
            for request in wanted
        ]
        return Work(
            intent.transaction,
            intent.snapshot.position,
            catalog.version,
            tuple(taken),
            tuple(row_write(change.key, change.new) for change in intent.changes),
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
            participant.check(intent.changes, after)
        return msgspec.structs.replace(record, writes=record.writes + writer.writes())

    def fill(self, at: int, writes: Sequence[RowWrite]) -> None:
        """Write derived rows as of a snapshot, for something that nobody reads yet: a backfill."""
        record = Record(0, b"", 0, 0, tuple(writes))
        self.look(lambda: _fill(at, record))


def _fill(at: int, record: Record) -> Step[None]:
    yield Begin()
    yield from advance.write_cells(at, record)


def require_supported(isolation: Isolation) -> None:
    """SERIALIZABLE is refused by name until it is modelled."""
    if isolation.validates_reads:
        raise Unsupported(
            "serializable isolation is not supported on a row-atomic store",
            hint="use repeatable read",
            isolation=isolation.name,
        )
