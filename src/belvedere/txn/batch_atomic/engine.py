"""The batch-atomic engine: an open store with undo index, log, commit section and anchor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from belvedere import interrupts
from belvedere.catalog.model import CATALOG_RELATION
from belvedere.config import Config, Durability
from belvedere.errors import Error, InvalidInput, Unavailable, Unsupported
from belvedere.kv.batch import BatchStore, Pair
from belvedere.kv.files import map_os_errors
from belvedere.kv.memory import MemoryStore
from belvedere.kv.rocksdb import RocksStore
from belvedere.txn.batch_atomic.backup import back_up
from belvedere.txn.batch_atomic.change_log import BatchChangeLog
from belvedere.txn.batch_atomic.commit import BatchCommit
from belvedere.txn.batch_atomic.directory import SCRATCH_DIRECTORY, SORTED_DIRECTORY
from belvedere.txn.batch_atomic.recovery import RecoveredStore
from belvedere.txn.batch_atomic.single_row import BatchSingleRowCommits
from belvedere.txn.batch_atomic.visibility import Visibility
from belvedere.txn.cluster import NodeLock, NodeStatus, RegionStatus
from belvedere.txn.contracts import Identity, Isolation, ParticipantsFor, Reader, Snapshot
from belvedere.txn.engine import BeginTransaction
from belvedere.txn.history.past_reader import PastReader
from belvedere.txn.history.undo_index import UndoIndex
from belvedere.txn.transaction.locks import RowLockTable


class BatchAtomicEngine:
    row_atomic = False
    shared_samples = None
    node = 0

    def __init__(
        self,
        opened: RecoveredStore,
        config: Config,
        *,
        clock_us: Callable[[], int],
        participants_for: ParticipantsFor,
        housekeeping: Callable[[], None],
    ) -> None:
        self._opened = opened
        self._file_numbers = count()
        self.store: BatchStore = opened.store
        synced = opened.anchor is not None and config.durability is Durability.FULL
        undo = UndoIndex(config.undo_bytes_in_memory_max, _scratch_opener(opened))
        self.visibility = Visibility(opened.store, undo, opened.written, hold=synced)
        self.log = BatchChangeLog(opened.store, self.visibility, config.log_retention_records_max)
        self.commits = BatchCommit(
            opened.store,
            self.visibility,
            config=config,
            clock_us=clock_us,
            participants_for=participants_for,
            anchor=opened.write_anchor_of_commits if synced else None,
            housekeeping=housekeeping,
            failure=opened.failure,
        )

    @property
    def housekeeping_failure(self) -> Error | None:
        return self.commits.housekeeping_failure

    def single_row_commits(
        self, locks: RowLockTable, suffixes: Iterator[bytes]
    ) -> BatchSingleRowCommits:
        return BatchSingleRowCommits(self.commits, self.visibility, locks, suffixes)

    @property
    def identity(self) -> Identity:
        return self._opened.identity

    @property
    def incarnation(self) -> int:
        return self._opened.incarnation

    def require_isolation(self, isolation: Isolation) -> None:
        """Every one is supported."""

    def vacuum(self, through: int) -> int:
        return through  # older versions of rows are in memory only, and go by themselves

    def list_nodes(self) -> tuple[NodeStatus, ...]:
        return ()

    def list_node_locks(self) -> tuple[NodeLock, ...]:
        return ()

    def list_regions(self) -> tuple[RegionStatus, ...]:
        return ()

    @property
    def latest_position(self) -> int:
        return self.visibility.published_snapshot.position

    def wait_for_position(self, at_least: int, wait_s: float) -> None:
        if at_least <= self.visibility.published_snapshot.position:
            return
        if at_least <= self.visibility.written.position:
            self.commits.publish_written()
        if not self._wait_until_published(at_least, wait_s):
            self.commits.require_writable()  # what was written before a failure never shows
            raise Unavailable("the position did not come in time", sqlstate="57014")

    def _wait_until_published(self, position: int, wait_s: float) -> bool:
        deadline = time.monotonic() + wait_s
        while wait_s > 0 and not self.visibility.has_ended:
            if self.visibility.wait_past(position - 1, min(wait_s, interrupts.POLL_S)):
                return True
            interrupts.check_statement()
            wait_s = deadline - time.monotonic()
        return False

    def outcome(self, transaction: bytes) -> int | None:
        published = self.visibility.published_snapshot.position
        known = self.commits.outcome(transaction)
        if known is not None and known > published:
            raise Unavailable("outcome is unknown: not durable yet", sqlstate="08007")
        if known is not None:
            return known
        if len(transaction) != 16:
            raise InvalidInput("not a transaction id", sqlstate="22023")
        began = int.from_bytes(transaction[:8])
        if began > published:
            return None
        if began + 1 < self.log.first_position:
            raise Unavailable("outcome is unknown: the log was trimmed past it", sqlstate="08007")
        for record in self.log.read(began):
            if record.transaction == transaction:
                return record.position
        return None

    @contextmanager
    def open_past_reader(self, position: int, begin: BeginTransaction) -> Iterator[Reader]:
        pin = self.log.pin(position)
        try:
            with begin(at_least=position) as newest:
                records = self.log.read(position, newest.position)
                yield PastReader(newest, records, position)
        finally:
            self.log.unpin(pin)

    def open_past_snapshot(self, position: int) -> Snapshot:
        raise Unsupported("a snapshot in the past", hint="read base tables at the position")

    def dropped_version_floor(self) -> int | None:
        oldest = next(
            iter(self.log.read(self.log.first_position - 1, self.log.first_position)), None
        )
        if oldest is None:
            return None
        reached = oldest.catalog_version
        if any(change.relation == CATALOG_RELATION for change in oldest.changes()):
            reached -= 1  # the state before the oldest record can be read too
        return min(reached, self.visibility.oldest_catalog_version)

    def erase_range(self, start: bytes, end: bytes) -> None:
        self.store.delete_range(start, end)

    def ingest_pairs(self, pairs: Iterable[Pair]) -> bool:
        if self._opened.directory is None:
            return False
        self.commits.require_writable()
        directory = self._opened.directory / SORTED_DIRECTORY
        with map_os_errors(directory):
            directory.mkdir(mode=0o700, exist_ok=True)
        path = directory / f"{next(self._file_numbers)}.pairs"
        try:
            writer = self.store.sorted_file_writer(path)
            writer.put_pairs(pairs)
            if writer.finish() is not None:
                self.store.sync()  # what the rows belong to must not be lost without them
                self.store.ingest([path])
        finally:
            with map_os_errors(path):
                path.unlink(missing_ok=True)
        return True

    def back_up(self, destination: Path) -> int:
        return back_up(self._opened, self.commits, destination)

    def close(self, join: Callable[[], None]) -> None:
        self.visibility.end_waits()
        join()
        self.commits.shut_down()
        self._opened.close(self.commits.newest_snapshot, failed=self.commits.has_failed)


def _scratch_opener(opened: RecoveredStore) -> Callable[[], BatchStore]:
    directory = opened.directory
    if directory is None:
        return MemoryStore
    return lambda: RocksStore.open(directory / SCRATCH_DIRECTORY, create=True)
