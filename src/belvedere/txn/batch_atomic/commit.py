"""The batch-atomic commit: one short section, in position order, one batch per transaction.

    section   conflicts and catalog checked against the newest written state; participants check and
              derive their rows at p-1; log record, base rows and derived rows written as one batch
    group     (durability full) one sync and one anchor for all commits written before it began
    publish   readers see position p; then the commit is acknowledged

Invariants: positions are dense and taken only in the section; a transaction that fails in the
section leaves nothing; after a failed write or sync nothing more is written, and reads continue at
the published position.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.codec import keyspace
from belvedere.codec.record import encode_single_change
from belvedere.config import Config
from belvedere.errors import Error, InvalidInput, Retry, Unavailable
from belvedere.kv.batch import BatchStore, Write
from belvedere.txn.batch_atomic import log_chunks
from belvedere.txn.batch_atomic.created_objects import (
    CATALOG_PREFIX,
    decode_catalog_changes,
    derive_rows_and_backfill,
    merge_catalog_changes,
    redefines_written_table,
)
from belvedere.txn.batch_atomic.group_sync import GroupSync, unknown_outcome
from belvedere.txn.batch_atomic.participant_plan import (
    NO_PARTICIPANTS,
    ChangesByTable,
    ParticipantPlan,
    Prefixes,
    pair_with_changes,
    plan_participants,
)
from belvedere.txn.batch_atomic.visibility import Visibility
from belvedere.txn.contracts import (
    CommitResult,
    Get,
    Intent,
    KeyRange,
    MakeWrites,
    ParticipantsFor,
    Reader,
    RowChange,
    Rows,
    Snapshot,
    new_tuple,
)
from belvedere.txn.gc_pause import pause_cycle_collector
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.readers import NewestReader, OverlayReader, SnapshotReader

PREFIX = keyspace.ROW_PREFIX_BYTES
HOUSEKEEPING_EVERY = 4096
LOG_KEY = struct.Struct(">BQ")  # keyspace.log_key without its range check

Changes = tuple[RowChange, ...]
NO_ROWS: Rows = {}  # never added to


class BatchCommit:
    def __init__(
        self,
        store: BatchStore,
        visibility: Visibility,
        *,
        config: Config,
        clock_us: Callable[[], int],
        participants_for: ParticipantsFor,
        anchor: Callable[[int, int], None] | None,
        housekeeping: Callable[[], None] = lambda: None,
        failure: Unavailable | None = None,
    ) -> None:
        """`anchor` makes (position, hash) durable; None: durability off. `housekeeping` is called
        now and then, after a commit. `failure`: nothing can be written."""
        self._store = store
        self._visibility = visibility
        self._undo = visibility.undo.entries
        self._bare_get: Get = store.bare_get
        self._map_error = store.map_error
        self._clock_us = clock_us
        self._participants_for = participants_for
        self._housekeeping = housekeeping
        self.housekeeping_failure: Error | None = None
        self._section = threading.Lock()
        self._section_wait_s = config.section_wait_ms_max / 1000
        self._group = GroupSync(visibility, store.sync, anchor) if anchor else None
        self._failure = failure
        self._shut = False
        self._outcomes: dict[bytes, int] = {}
        self._outcomes_max = config.outcomes_kept
        self.open_snapshot = visibility.open_snapshot
        self.retain = visibility.retain
        self.release, self.is_newest = visibility.release, visibility.is_newest
        self.reader = partial(SnapshotReader, visibility)

    @property
    def newest_snapshot(self) -> Snapshot:
        return self._visibility.written

    def commit(self, intent: Intent) -> CommitResult:
        if failpoints.armed:
            failpoints.hit("commit.before_section")
        self._enter_section()
        try:
            catalog = self._visibility.written[2]
            if catalog is not intent[1][2]:
                intent = merge_catalog_changes(intent, self._visibility.written)
                self._require_same_objects(intent, catalog)
            if self._undo:
                self._require_no_conflict(intent)
            time = self._clock_us()
            append = self._append_transaction
            if len(intent[2]) >= log_chunks.COLUMNS_CHANGES_MIN:
                append = pause_cycle_collector()(append)
            batch, position = append(intent[0], intent[2], time, own=1)
        finally:
            self._section.release()
        self._wait_until_durable(batch, position)
        return new_tuple(CommitResult, (position, time))

    def commit_single_row(
        self, transaction: bytes, seen: Snapshot, change: RowChange
    ) -> int | None:
        """Commit the change of one row that was read when `seen` was the newest state, or after;
        the position. None: the row or the catalog is another one by now, and nothing happened."""
        if failpoints.armed:
            failpoints.hit("commit.before_section")
        self._enter_section()
        try:
            newest = self._visibility.written
            if newest is not seen:
                key, old, _, _ = change
                if newest[2] is not seen[2] or self._store.get(key) != old:
                    return None
            batch, position = self._append_transaction(
                transaction, (change,), self._clock_us(), own=0
            )
        finally:
            self._section.release()
        self._wait_until_durable(batch, position)
        return position

    def _wait_until_durable(self, batch: int, position: int) -> None:
        """Return when the batch may be acknowledged."""
        if self._group is not None:
            self._group.wait_durable(batch)
        if failpoints.armed:
            failpoints.hit("acknowledge.before")
        if not position % HOUSEKEEPING_EVERY:
            self._run_housekeeping()

    def _run_housekeeping(self) -> None:
        """The commit is done: a failure here is not reported to its client, which would run the
        transaction again."""
        excess = len(self._outcomes) - self._outcomes_max
        for transaction in list(islice(self._outcomes, max(excess, 0))):
            self._outcomes.pop(transaction, None)
        try:
            self._housekeeping()
            self.housekeeping_failure = None
        except Error as error:
            self.housekeeping_failure = error

    def outcome(self, transaction: bytes) -> int | None:
        """The position of a recent commit of this process."""
        return self._outcomes.get(transaction)

    @property
    def has_failed(self) -> bool:
        group = self._group
        return self._failure is not None or (group is not None and group.failure is not None)

    def publish_written(self) -> None:
        """Make everything written durable and visible: its writers may have been interrupted since,
        so that none is left to wait for it."""
        if self._group is not None:
            self._group.sync_pending()

    def shut_down(self) -> None:
        """Wait for the commits under way, and admit none after them."""
        with self._section:
            self._shut = True
        if self._group is not None and not self.has_failed:
            self._group.sync_pending()
        self._visibility.undo.close()

    def run_exclusively(self, action: Callable[[Snapshot], None]) -> None:
        """Run `action` in the section, when nothing is being written: checkpoints."""
        self._enter_section()
        try:
            action(self.newest_snapshot)
        finally:
            self._section.release()

    def newest_reader(self) -> Reader:
        """The newest written state, which may change at any time: only to be read."""
        last = self.newest_snapshot
        return NewestReader(self._store, last.position, last.catalog)

    clears_ranges = True

    def derive(
        self, make: MakeWrites, unread: Sequence[Write] = (), cleared: Sequence[KeyRange] = ()
    ) -> None:
        """Write rows that are not logged (views, watermarks, indexes) as one batch: `make` gets the
        newest state, which stays until they are written. `unread` ones get no before-images."""
        self._enter_section()
        try:
            last = self.newest_snapshot
            batch = make(NewestReader(self._store, last.position, last.catalog))
            if not batch and not unread:
                return
            if failpoints.armed:
                failpoints.hit("maintain.before_write")
            successor = last._replace(batch=last.batch + 1)
            rows = [*batch, *unread] if unread else batch
            self._write_batch(rows, successor, (), batch, 0, cleared)
            if failpoints.armed:
                failpoints.hit("maintain.after_write")
        finally:
            self._section.release()
        if self._group is not None:
            self._group.wait_durable(successor.batch)

    # -- inside the section -------------------------------------------------------------------

    def _enter_section(self) -> None:
        if not self._section.acquire(False):
            self._wait_for_section()
        group = self._group
        if (
            self._shut
            or self._failure is not None
            or (group is not None and group.failure is not None)
        ):
            self._section.release()
            if self._shut:
                raise Unavailable("the database is closed", sqlstate="08003")
            self.require_writable()

    def _wait_for_section(self) -> None:
        if not self._section.acquire(timeout=self._section_wait_s):
            raise Unavailable("commit section is busy", sqlstate="55P03")

    def require_writable(self) -> None:
        """Raise 25006 when a write or a sync has failed."""
        failure = self._failure or (self._group.failure if self._group else None)
        if failure is not None:
            raise Unavailable(
                "the store is read-only after a failure",
                sqlstate="25006",
                detail=failure.message,
                hint="reopen the store",
            ) from failure

    def _append_transaction(
        self, transaction: bytes, changes: Changes, time: int, own: int
    ) -> tuple[int, int]:
        """Write a transaction, which has `own` snapshots open; its batch number and position."""
        batch_number, position, before, last_hash = self._visibility.written
        batch_number += 1
        position += 1
        catalog = before
        if len(changes) == 1:  # every single-row commit: no sets, no comprehensions
            key, old, new, _ = changes[0]
            prefixes: Prefixes = key[:PREFIX]
            batch: list[Write] = [(key, new)]
            if prefixes == CATALOG_PREFIX:
                catalog = apply_catalog_changes(catalog, changes)
            record, digest = encode_single_change(
                position, last_hash, catalog.version, time, transaction, key, old, new
            )
        else:
            prefixes = frozenset([key[:PREFIX] for key, _, _, _ in changes])
            batch = [(key, new) for key, _, new, _ in changes]
            if CATALOG_PREFIX in prefixes:
                catalog = apply_catalog_changes(catalog, changes)
            record, digest = log_chunks.encode_changes(
                position, last_hash, catalog.version, time, transaction, changes
            )
        if len(record) > log_chunks.CHUNK_BYTES:
            batch += log_chunks.split_record(position, record)
        else:
            batch.append((LOG_KEY.pack(keyspace.LOG, position), record))
        cached: Any = catalog.derived_cache.get(prefixes)
        plan: ParticipantPlan = cached or self._plan_participants(catalog, prefixes)
        derived = NO_ROWS
        if plan is not NO_PARTICIPANTS:
            selected = plan.select_changes(changes) if plan[4] else None
            if plan[3] is not None:
                derived = {}
                self._derive_single_row(plan, changes, catalog, derived)
            else:
                derived = self._derive_rows(plan, changes, selected, catalog)
            if plan[2]:
                self._run_checks(plan, changes, selected, derived, catalog)
            batch += derived.items()
        successor = new_tuple(Snapshot, (batch_number, position, catalog, digest))
        if catalog is not before:
            self._write_schema(batch, successor, changes, derived)
        else:
            try:
                self._visibility.write_batch(batch, successor, changes, derived, own)
            except BaseException as error:
                self._stop_writing(error, batch)
                raise
        self._outcomes[transaction] = position
        return batch_number, position

    def _write_schema(
        self,
        batch: Sequence[Write],
        successor: Snapshot,
        changes: Sequence[RowChange],
        derived: Rows,
    ) -> None:
        self._write_batch(batch, successor, changes, derived, 1)
        self._visibility.record_catalog_version(successor)
        if failpoints.armed:
            failpoints.hit("catalog.after")

    def fetch_ahead(self, reader: Reader, keys: Iterable[bytes]) -> None:
        """Single reads are as quick."""

    def require_unchanged(self, key: bytes, snapshot: Snapshot) -> None:
        if key not in self._undo:
            return
        lost_to = self._visibility.undo.changed_after(key, snapshot.batch)
        if lost_to:
            raise _conflict_error(lost_to, "a row it wrote was changed by another transaction")

    def _plan_participants(self, catalog: Catalog, prefixes: Prefixes) -> ParticipantPlan:
        several = (prefixes,) if isinstance(prefixes, bytes) else prefixes
        relations = frozenset(int.from_bytes(prefix[1:]) for prefix in several)
        found = plan_participants(catalog, prefixes, self._participants_for(catalog, relations))
        catalog.derived_cache[prefixes] = found
        return found

    def _require_no_conflict(self, intent: Intent) -> None:
        """Raise Retry when a row that was written, or must be found unchanged, has changed."""
        entries = self._undo
        for key, _, _, seen in intent.changes:
            lost_to = self._visibility.undo.changed_after(key, seen) if key in entries else 0
            if lost_to:
                raise _conflict_error(lost_to, "a row it wrote was changed by another transaction")
        if intent.isolation.validates_reads:
            self._validate_reads(intent)

    def _validate_reads(self, intent: Intent) -> None:
        undo, batch = self._visibility.undo, intent.snapshot.batch
        for key in intent.reads:
            lost_to = undo.changed_after(key, batch)
            if lost_to:
                raise _conflict_error(lost_to, "a row it read was changed by another transaction")
        with self._visibility.latch:
            for start, end in intent.ranges:
                lost_to = undo.range_changed_after(start, end, batch)
                if lost_to:
                    raise _conflict_error(
                        lost_to, "a range it read was changed by another transaction"
                    )

    def _require_same_objects(self, intent: Intent, catalog: Catalog) -> None:
        """Raise Retry when a table that was written is not what it was."""
        if redefines_written_table(intent, catalog):
            raise _conflict_error(self.newest_snapshot.position, "a table it wrote was redefined")

    def _derive_single_row(
        self, plan: ParticipantPlan, changes: Changes, catalog: Catalog, derived: Rows
    ) -> None:
        """Derive rows by the fast path of a one-row commit: gets call the store with no Python
        frame in between."""
        _, old, new, _ = changes[0]
        get = self._bare_get
        try:
            for derive in plan[3]:  # type: ignore[union-attr]
                derive(old, new, get, derived)
        except InvalidInput:
            self._derive_rows(plan, changes, None, catalog)  # this one says what failed, and where
            raise
        except Exception as error:
            if type(error) is not Exception:  # the binding raises bare Exception
                raise
            raise self._map_error(error) from error

    def _derive_rows(
        self,
        plan: ParticipantPlan,
        changes: Changes,
        selected: ChangesByTable | None,
        catalog: Catalog,
    ) -> Rows:
        newest = self._visibility.written
        before = NewestReader(self._store, newest[1], catalog)
        if catalog is not newest[2]:
            rows = derive_rows_and_backfill(before, changes, plan[0], self._participants_for)
            if rows is not None:
                return rows
        writer = DerivedRows(before)
        paths = plan[5]
        for participant, own in pair_with_changes(plan[1], changes, selected):
            short = paths.get(id(participant)) if paths else None
            if short is None:
                participant.writes(own, before, writer)
                continue
            try:
                short(own[0].old, own[0].new, before.get, writer.rows)
            except InvalidInput:
                participant.writes(own, before, writer)  # this one says what failed, and where
                raise
        return writer.rows

    def _run_checks(
        self,
        plan: ParticipantPlan,
        changes: Changes,
        selected: ChangesByTable | None,
        derived: Rows,
        catalog: Catalog,
    ) -> None:
        shown = pair_with_changes(plan[2], changes, selected)
        if not shown:
            return
        before = NewestReader(self._store, self._visibility.written[1], catalog)
        overlay = {key: new for key, _, new, _ in changes}
        overlay.update(derived)
        after = OverlayReader(before, overlay, before.position + 1, catalog)
        for participant, own in shown:
            participant.check(own, after)

    def _write_batch(
        self,
        batch: Sequence[Write],
        successor: Snapshot,
        changes: Sequence[RowChange],
        derived: Rows | Sequence[Write],
        own: int,
        cleared: Sequence[KeyRange] = (),
    ) -> None:
        try:
            self._visibility.write_batch(batch, successor, changes, derived, own, cleared)
        except BaseException as error:
            self._stop_writing(error, batch)
            raise

    def _stop_writing(self, error: BaseException, batch: Sequence[Write]) -> None:
        """After a failed write. The position is not taken again: it may be taken already."""
        if isinstance(error, InvalidInput):
            return  # refused by the store: nothing happened
        self._failure = Unavailable("a commit was interrupted")
        if isinstance(error, Error):
            self._failure = Unavailable(
                "the store could not be written", sqlstate=error.sqlstate, detail=error.message
            )
        self._visibility.end_waits()
        if isinstance(error, Error) and self._may_be_written(batch[0]):
            raise unknown_outcome("the log could not be written", error) from error

    def _may_be_written(self, first: Write) -> bool:
        """Whether a failed batch, which begins with `first`, was written all the same."""
        try:
            return self._store.get(first[0]) == first[1]
        except Error:
            return True


def apply_catalog_changes(catalog: Catalog, changes: Sequence[RowChange]) -> Catalog:
    """The catalog after the catalog rows among these changes."""
    return catalog.with_objects(decode_catalog_changes(changes))


def _conflict_error(lost_to: int, detail: str) -> Retry:
    return Retry(
        "could not serialize access due to concurrent update",
        lost_to=lost_to,
        detail=detail,
        hint="run the transaction again",
    )
