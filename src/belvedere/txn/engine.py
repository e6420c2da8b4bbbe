"""The transactional engine contract: a store with its log, its published state and its commits.

It has two implementations: `txn/batch_atomic/engine.py` for batch-atomic stores (memory, RocksDB),
`txn/row_atomic/engine.py` for row-atomic ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from belvedere.errors import Error
from belvedere.kv.batch import BatchStore, Pair
from belvedere.txn.cluster import NodeLock, NodeStatus, RegionStatus, StoredSample
from belvedere.txn.contracts import (
    ChangeLog,
    CommitProtocol,
    Identity,
    Isolation,
    PublishedState,
    Reader,
    SingleRowCommits,
    Snapshot,
)
from belvedere.txn.transaction.locks import RowLockTable
from belvedere.txn.transaction.transaction import Transaction


def read_clock_us() -> int:
    """The time that a commit notes in its record, in microseconds since 1970."""
    return time.time_ns() // 1000


class BeginTransaction(Protocol):
    """Starts a transaction that sees at least a position."""

    def __call__(self, *, at_least: int = 0) -> Transaction: ...


class SampleExchange(Protocol):
    """Samples that the processes of a store share: each writes its own, all read everybody's."""

    def read_samples(self, relation: int) -> Sequence[StoredSample]: ...

    def write_sample(
        self, relation: int, position: int, data: bytes, replaced: Iterable[StoredSample]
    ) -> None:
        """Write one of this process, and remove those that are replaced."""


class Engine(Protocol):
    row_atomic: bool

    @property
    def commits(self) -> CommitProtocol: ...

    @property
    def log(self) -> ChangeLog: ...

    @property
    def visibility(self) -> PublishedState: ...

    @property
    def store(self) -> BatchStore:
        """The store itself; Unsupported when it is not a batch store."""

    @property
    def identity(self) -> Identity: ...

    @property
    def incarnation(self) -> int: ...

    @property
    def node(self) -> int:
        """The number of this process among those that use the store; 0 when it is the only one."""

    @property
    def housekeeping_failure(self) -> Error | None:
        """What kept the last housekeeping (trimming the log, sweeping up after dead nodes) from
        ending; None: nothing did. It is tried again by itself."""

    @property
    def shared_samples(self) -> SampleExchange | None:
        """Samples of tables, where several processes share them."""

    def vacuum(self, through: int) -> int:
        """Forget versions of rows that only snapshots up to a position could see; returns the
        position reached, lower where somebody still needs them."""

    def list_nodes(self) -> Sequence[NodeStatus]:
        """The processes that use the store; none when it is the only one."""

    def list_node_locks(self) -> Sequence[NodeLock]:
        """The locks that these processes hold in the store."""

    def list_regions(self) -> Sequence[RegionStatus]:
        """The parts the store is made of, where it has parts."""

    def single_row_commits(
        self, locks: RowLockTable, suffixes: Iterator[bytes]
    ) -> SingleRowCommits | None:
        """The fast path of single-row commits, where the store has one."""

    def require_isolation(self, isolation: Isolation) -> None:
        """Unsupported, by name, when the commit protocol cannot give it."""

    @property
    def latest_position(self) -> int:
        """The newest position that is published anywhere; every later snapshot contains it."""

    def wait_for_position(self, at_least: int, wait_s: float) -> None:
        """Wait until every later snapshot contains this position. Unavailable (57014) when that
        takes longer than `wait_s`."""

    def outcome(self, transaction: bytes) -> int | None:
        """The position at which a transaction committed, or None when it did not. Unavailable
        (08007) when that can no longer be known."""

    def open_past_reader(
        self, position: int, begin: BeginTransaction
    ) -> AbstractContextManager[Reader]:
        """A reader of base tables at a past position."""

    def open_past_snapshot(self, position: int) -> Snapshot:
        """Open a snapshot as of a past position, of all that is stored; the caller gives it back
        with `CommitProtocol.release`. Unsupported on a store that keeps one version of it."""

    def dropped_version_floor(self) -> int | None:
        """The catalog version up to which what was dropped may be forgotten; None: nothing may."""

    def erase_range(self, start: bytes, end: bytes) -> None:
        """Remove every row of a range that has no readers left."""

    def ingest_pairs(self, pairs: Iterable[Pair]) -> bool:
        """Write rows that nobody reads yet, sorted by key, as a file that the store takes in whole.
        They survive a power cut, and so does all that was written before them. False: the store
        takes no files, and nothing was written."""

    def back_up(self, destination: Path) -> int: ...

    def close(self, join: Callable[[], None]) -> None:
        """Close the store cleanly. `join` waits for the threads that use it, and is called after
        all waiters for new commits were woken."""
