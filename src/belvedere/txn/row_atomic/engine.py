"""The row-atomic engine: one stateless node on a store that makes single rows atomic.

Any number of nodes may share one store. Each sends heartbeats to the others, and from time to time
finishes what dead ones left. No state is lost with the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from belvedere.codec.keyspace import STORE_FORMAT
from belvedere.config import Config
from belvedere.errors import Corruption, Error, InvalidInput, Unavailable, Unsupported
from belvedere.kv.batch import BatchStore, Pair
from belvedere.kv.cell import (
    BeginWork,
    CellDelete,
    CellScan,
    CellStore,
    CheckAndMutate,
    Get,
    Many,
    Mutate,
    Put,
    Step,
    value_of,
)
from belvedere.txn import engine
from belvedere.txn.cluster import NodeLock, NodeStatus, RegionStatus
from belvedere.txn.contracts import Identity, Isolation, ParticipantsFor, Reader, Snapshot
from belvedere.txn.row_atomic import node_lists, read_rows
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.placement import list_row_ranges, relation_of
from belvedere.txn.row_atomic.change_log import CellChangeLog
from belvedere.txn.row_atomic.commit_protocol import RowCommit
from belvedere.txn.row_atomic.housekeeping.table_samples import NodeSamples
from belvedere.txn.row_atomic.isolation import require_supported_isolation
from belvedere.txn.row_atomic.node import NodeSettings
from belvedere.txn.row_atomic.reader import RowReader
from belvedere.txn.transaction.locks import RowLockTable

POLL_SECONDS = 0.1
"""How often a waiter polls for commits of other nodes."""

BEATS_PER_SWEEP = 5
DEFAULTS = NodeSettings()
_ROWS_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class CellStoreSetup:
    """A row-atomic store to open a database on. `sends_heartbeats` starts the threads of the
    node: one sends its heartbeats, one settles its commits; simulations do that themselves.
    `close` is called when the node is closed, for a store that belongs to it alone.
    `is_guest`: a process that only reads, under positions that another one holds. It has no
    heartbeat, so that it holds nothing itself and nobody has to note its end.
    `list_regions`: table, first key, end and server of each region, where the store has such."""

    store: CellStore
    settings: NodeSettings = DEFAULTS
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    sends_heartbeats: bool = True
    is_guest: bool = False
    close: Callable[[], None] = lambda: None
    list_regions: Callable[[], list[tuple[str, bytes, bytes, str]]] = list


class RowAtomicEngine:
    row_atomic = True

    def __init__(
        self,
        opened: CellStoreSetup,
        config: Config,
        *,
        clock_us: Callable[[], int],
        participants_for: ParticipantsFor,
        random: Callable[[int], bytes],
        tend: Callable[[], None],
    ) -> None:
        """`tend` is called after every sweep, in a thread of its own, so that the node beats on
        meanwhile: what dead nodes left may be more than locks."""
        self._opened = opened
        self.commits = RowCommit(
            opened.store,
            settings=opened.settings,
            clock=opened.clock,
            sleep=opened.sleep,
            clock_us=clock_us,
            participants_for=participants_for,
            settles_in_background=opened.sends_heartbeats,
        )
        self.identity = self.commits.run_repeatable(lambda: _load_identity(random(16), random(32)))
        self.incarnation = 1
        self.visibility = PublishedWatcher(self.commits)
        self.log = CellChangeLog(self.commits, self.visibility, config.log_retention_records_max)
        self.shared_samples = NodeSamples(self.commits.run_repeatable, self.commits.node)
        self.chores = Chores(self.commits, tend)
        self._heart: HeartbeatThread | None = None
        if opened.is_guest:
            self.commits.leave_store()
        elif opened.sends_heartbeats:
            self._heart = HeartbeatThread(self.commits, opened.settings, self.chores.start_run)

    @property
    def node(self) -> int:
        return self.commits.node.id

    @property
    def store(self) -> BatchStore:
        raise Unsupported("a batch of rows on a row-atomic store", hint="use a transaction")

    @property
    def housekeeping_failure(self) -> Error | None:
        return None if self._heart is None else self._heart.failure

    def single_row_commits(self, locks: RowLockTable, suffixes: Iterator[bytes]) -> None:
        """There is no fast path: every commit takes all steps."""

    def require_isolation(self, isolation: Isolation) -> None:
        require_supported_isolation(isolation)

    def list_nodes(self) -> list[NodeStatus]:
        return self.commits.run_repeatable(lambda: node_lists.list_nodes(self.commits.node))

    def list_node_locks(self) -> list[NodeLock]:
        return self.commits.run_repeatable(node_lists.list_locks)

    def list_regions(self) -> list[RegionStatus]:
        return [RegionStatus(*region) for region in self._opened.list_regions()]

    @property
    def latest_position(self) -> int:
        return self.commits.newest_snapshot.position

    def wait_for_position(self, at_least: int, wait_s: float) -> None:
        deadline = time.monotonic() + wait_s
        while not self.commits.ensure_position(at_least):
            left = deadline - time.monotonic()
            if left <= 0 or not self.visibility.wait_past(at_least - 1, left):
                raise Unavailable("the position did not come in time", sqlstate="57014")

    def outcome(self, transaction: bytes) -> int | None:
        """Never "it did not commit": without an outcome cell that cannot be known."""
        if len(transaction) != 16:
            raise InvalidInput("not a transaction id", sqlstate="22023")
        return self.commits.outcome(transaction)

    @contextmanager
    def open_past_reader(self, position: int, begin: engine.BeginTransaction) -> Iterator[Reader]:
        self.wait_for_position(position, 0.0)
        pin = self.log.pin(position)
        try:
            self.commits.run_repeatable(lambda: read_rows.require_above_floor(position))
            catalog = self.commits.catalog_at(position)
            yield RowReader(self.commits.run_repeatable, position, position, catalog)
        finally:
            self.log.unpin(pin)

    def open_past_snapshot(self, position: int) -> Snapshot:
        commits, newest = self.commits, self.latest_position
        if not 0 <= position <= newest:
            raise InvalidInput(
                "position is not in the log",
                sqlstate="22023",
                position_wanted=position,
                newest=newest,
            )
        commits.node.open_snapshot(position)
        try:
            if self._heart is not None:
                commits.send_heartbeat()  # the others learn of it before they move a floor
            commits.run_repeatable(lambda: read_rows.require_above_floor(position))
            return Snapshot(position, position, commits.catalog_at(position))
        except BaseException:
            commits.node.close_snapshot(position)
            raise

    def dropped_version_floor(self) -> int | None:
        floor = self.log.first_position - 1
        return self.commits.catalog_at(floor).version if floor else None

    def erase_range(self, start: bytes, end: bytes) -> None:
        """All keys are of one relation, which the newest catalog has."""
        for low, high in list_row_ranges(self.commits.newest_snapshot.catalog, start, end):
            self.commits.run_repeatable(partial(_erase_rows, low, high))
        self.shared_samples.remove_samples(relation_of(start))

    def ingest_pairs(self, pairs: Iterable[Pair]) -> bool:
        return False

    def vacuum(self, through: int) -> int:
        return self.log.vacuum(through)

    def back_up(self, destination: Path) -> int:
        raise Unsupported(
            "backup of a row-atomic store to a directory", hint="use the store's own backup"
        )

    def close(self, join: Callable[[], None]) -> None:
        self.visibility.end_waits()
        join()
        self.chores.end_runs()
        self.commits.shut_down()
        if self._heart is not None:
            self._heart.stop()
            self.commits.leave_store()
        self._opened.close()


class PublishedWatcher:
    """The published state over all nodes. Waiters are woken by commits of this node, and poll for
    those of others."""

    def __init__(self, commits: RowCommit) -> None:
        self._commits = commits
        self._moved = threading.Condition()
        self._ended = False
        self.reader = commits.reader
        commits.on_commit = self._notify_waiters

    @property
    def published_snapshot(self) -> Snapshot:
        return self._commits.recent_snapshot

    @property
    def open_count(self) -> int:
        return sum(self._commits.node.snapshots.values())

    def wait_past(self, position: int, timeout_s: float | None) -> bool:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._ended:
            if self._newest_position() > position:
                return True
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            with self._moved:
                if not self._ended:
                    self._moved.wait(POLL_SECONDS if left is None else min(left, POLL_SECONDS))
        return False

    def end_waits(self) -> None:
        with self._moved:
            self._ended = True
            self._moved.notify_all()

    def _newest_position(self) -> int:
        try:
            return self._commits.newest_snapshot.position
        except Unavailable:
            # The waiter keeps waiting: the store may answer again.
            self._commits.node.counts["looks without an answer"] += 1
            return -1

    def _notify_waiters(self) -> None:
        with self._moved:
            self._moved.notify_all()


class Chores:
    """What is done now and then about dead nodes, one run of it at a time."""

    def __init__(self, commits: RowCommit, tend: Callable[[], None]) -> None:
        self._commits = commits
        self._tend = tend
        self._mutex = threading.Lock()
        self._ended = False
        self.thread: threading.Thread | None = None

    def start_run(self) -> None:
        """Begin a run, unless one is in progress."""
        with self._mutex:
            if self._ended or (self.thread is not None and self.thread.is_alive()):
                return
            self.thread = threading.Thread(target=self._run, name="belvedere builds", daemon=True)
            self.thread.start()

    def _run(self) -> None:
        try:
            self._tend()
        except Error:
            # What failed is taken away, or left to the next try, here or on another node.
            self._commits.node.counts["adoptions failed"] += 1

    def end_runs(self) -> None:
        """Begin no more runs, and wait for the last."""
        with self._mutex:
            self._ended = True
        if self.thread is not None:
            self.thread.join()


class HeartbeatThread:
    """A thread that sends heartbeats and, every few of them, sweeps the locks of dead nodes."""

    def __init__(
        self, commits: RowCommit, settings: NodeSettings, tend: Callable[[], None]
    ) -> None:
        self._commits = commits
        self._tend = tend
        self._seconds = settings.lease_seconds / 5
        self.failure: Error | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._beat_until_stopped, name="belvedere node", daemon=True
        )
        self._thread.start()

    def _beat_until_stopped(self) -> None:
        beats = 0
        while not self._stopped.wait(self._seconds):
            beats += 1
            try:
                self._commits.send_heartbeat()
                if beats % BEATS_PER_SWEEP == 0:
                    self._commits.sweep_locks()
                    self._tend()
                self.failure = None
            except (Unavailable, Corruption) as error:
                # A statement that meets the error reports it; here it is recorded, and retried.
                self._commits.node.counts["beats failed"] += 1
                self.failure = error

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


def _load_identity(store_id: bytes, secret: bytes) -> Step[Identity]:
    """The identity of the store, written by the first node that opens it."""
    row = layout.IDENTITY_ROW
    while True:
        stored = value_of((yield Get(row)), layout.IDENTITY)
        if stored is not None:
            return _read_identity(stored, row)
        made = Identity(STORE_FORMAT, store_id, secret)
        made = msgspec.structs.replace(made, checksum=made.compute_checksum())
        put = Put(layout.IDENTITY, layout.ONLY, msgspec.msgpack.encode(made))
        yield BeginWork()
        yield CheckAndMutate(row, layout.IDENTITY, None, (put,))


def _read_identity(stored: bytes, row: bytes) -> Identity:
    found = layout.decode(Identity, stored, row)
    if found.checksum != found.compute_checksum():
        raise Corruption("row was altered: bad checksum", row=row.hex())
    if found.format > STORE_FORMAT:
        raise Unsupported(
            "store format is newer than this program",
            hint="open it with a newer release of belvedere",
            found=found.format,
            known=STORE_FORMAT,
        )
    return found


def _erase_rows(start: bytes, end: bytes) -> Step[None]:
    while True:
        rows = yield CellScan(start, end, limit=_ROWS_AT_ONCE)
        if not rows:
            return
        yield BeginWork()
        gone = [
            Mutate(row, tuple(CellDelete(cell.column, cell.timestamp) for cell in cells))
            for row, cells in rows
        ]
        yield Many(tuple(gone))
