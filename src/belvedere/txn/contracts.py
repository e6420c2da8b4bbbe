"""Contracts of the transaction layer: readers, writers, participants, commit protocols, the log.

Code above transactions uses only these types, and both commit protocols implement them. Keys here
are full store keys: family, relation id, encoded key (codec.keyspace). They carry their relation in
bytes 1-5, so one argument identifies relation and row.

- `Reader`: rows at one position. A snapshot, a transaction (snapshot plus own writes), the newest
  state inside the commit section, and a past position all satisfy it.
- `Writer`: what a participant may do with the rows it derives.
- `Participant`: constraints, indexes and immediate views. `txn` knows no more of them than this.
- `Intent`: all that a commit protocol gets to see of a transaction.
- `SingleRowCommits`: commits of one row, where a store has a fast path for them.
- `CommitProtocol`: `txn.batch_atomic.commit` for batch-atomic stores,
  `txn.row_atomic.commit_protocol` for row-atomic ones.
- `ChangeLog` and `PublishedState`: the log and the newest state as both kinds of stores show them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import msgspec
import xxhash

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import AnyObject
from belvedere.codec.record import LogRecord
from belvedere.kv.batch import SCAN_BATCH_ROWS, Pair, Write

if TYPE_CHECKING:
    import pyarrow as pa

new_tuple = tuple.__new__
"""`new_tuple(RowChange, (key, old, new, seen))` builds a named tuple at half the cost of calling
its class. For the single-row fast path only, where these are a tenth of the time."""


class Isolation(NamedTuple):
    name: str
    snapshot_per_statement: bool = False
    validates_reads: bool = False


READ_UNCOMMITTED = Isolation("read uncommitted", snapshot_per_statement=True)
"""As in PostgreSQL the same as READ COMMITTED, under its own name."""
READ_COMMITTED = Isolation("read committed", snapshot_per_statement=True)
SNAPSHOT = Isolation("repeatable read")
SERIALIZABLE = Isolation("serializable", validates_reads=True)


class Snapshot(NamedTuple):
    """What a reader sees: everything up to `batch` (in memory, this process) = up to `position`.

    A maintenance batch moves `batch` but not `position`, so the two are counted apart."""

    batch: int
    position: int
    catalog: Catalog
    hash: int = 0  # of the record at `position`: what the next record is chained to


class RowChange(NamedTuple):
    """The net effect of a transaction on one row: `old` is what it saw at batch `seen`."""

    key: bytes
    old: bytes | None
    new: bytes | None
    seen: int = 0

    @property
    def relation(self) -> int:
        return int.from_bytes(self.key[1:5])


def collect_changes(
    keys: Sequence[bytes],
    olds: Sequence[bytes | None],
    news: Sequence[bytes | None],
    seen: int,
) -> Iterator[tuple[bytes, RowChange]]:
    """Keys with their changes, without a Python frame for each."""
    fields = zip(keys, olds, news, repeat(seen), strict=False)
    return zip(keys, map(new_tuple, repeat(RowChange), fields), strict=False)


class KeyRange(NamedTuple):
    """start <= key < end."""

    start: bytes
    end: bytes


class LockRequest(NamedTuple):
    """`kind` is counted and shown ('root', 'table', ...). Side 0 is exclusive; holders of one
    other side share the lock, and only different sides exclude each other."""

    kind: str
    key: bytes
    side: int = 0

    @property
    def is_shared(self) -> bool:
        return self.side != 0


ROOT = "root"

OwnedLock = bytes | LockRequest
"""What a transaction remembers of a lock it holds: an exclusive root lock by its bare key, since
nearly every lock is one."""


def request_of(lock: OwnedLock) -> LockRequest:
    return LockRequest(ROOT, lock) if isinstance(lock, bytes) else lock


def locked_resource(lock: OwnedLock) -> tuple[str, bytes]:
    """What is locked, whether shared or not."""
    return request_of(lock)[:2]


class TransactionSavepoint(NamedTuple):
    """How long the journal was, and how many locks were held, when it was set."""

    journal: int
    locks: int


class Reader(Protocol):
    """Rows of any relation by key, prefix or range, all at one position."""

    @property
    def position(self) -> int: ...

    @property
    def catalog(self) -> Catalog: ...

    def get(self, key: bytes) -> bytes | None: ...

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        """Pairs with start <= key < end in key order (or its reverse), in non-empty lists."""

    def scan_values(
        self, start: bytes, end: bytes, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        """Only the values, in key order."""


class Writer(Protocol):
    """Where a participant puts the rows it derives; they become visible with the transaction."""

    @property
    def shared_results(self) -> dict[object, object]:
        """Intermediate results that the participants of one commit share."""

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def add(self, key: bytes, payload: bytes, amounts: tuple[int, ...]) -> None:
        """Add to linear state (codec.accumulator): commutes with every other transaction's add, so
        it needs no lock and causes no conflict. The row appears with the first add and vanishes
        when its row count, amounts[0], returns to zero."""


class Participant(Protocol):
    """Gives a commit its locks, checks and writes. Holds no state between calls."""

    @property
    def checks(self) -> bool:
        """False: it refuses nothing, so that `check` need not be called."""

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        """Locks needed beyond root keys; only the row-atomic commit asks."""

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """Raise InvalidInput when the changes break a rule. `reader` shows position p: the state
        after the changes and every participant's writes."""

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        """Derived rows for these changes. `reader` shows p-1, the state before the changes. Called
        before `check`; may raise InvalidInput too."""


Get = Callable[[bytes], bytes | None]
Rows = dict[bytes, bytes | None]
SingleRowWrites = Callable[[bytes | None, bytes | None, Get, Rows], None]
"""`writes` of a commit that changes one row: called with its old and new bytes, a get of the state
before, and the rows derived so far, to which it adds its own."""


@runtime_checkable
class SingleRowParticipant(Protocol):
    """A Participant that may have a fast path for a commit of one row."""

    def single_row_writes(self, prefix: bytes) -> SingleRowWrites | None:
        """The fast path for a row of the table with this prefix; None: there is none."""


@runtime_checkable
class TableParticipant(Protocol):
    """A Participant that reads nothing of a change but some columns of some tables: changes of
    others are not shown to it. `derives`: it has writes."""

    derives: bool

    def list_read_columns(self) -> dict[int, tuple[int, ...] | None]:
        """The slots that it reads of each table, by the id of the table; None: any, or values
        whose representation matters beyond their equality."""


@runtime_checkable
class BackfillParticipant(Protocol):
    """A Participant that fills the indexes and views which the commit itself creates. Its `writes`
    finds them in `Writer.shared_results` under this class."""

    def find_created(self, changes: Sequence[RowChange]) -> dict[int, AnyObject]:
        """What these changes create and nobody else fills, as it is while it is built."""

    def backfill_created(self, created: Collection[int], after: Reader) -> Rows:
        """All rows of these indexes and views. `after` shows the state after the changes."""


ParticipantsFor = Callable[[Catalog, frozenset[int]], tuple[Participant, ...]]
"""The participants concerned by changes of these relations: wired in by the database."""


class Intent(NamedTuple):
    """All that a commit protocol reads of a transaction."""

    transaction: bytes
    snapshot: Snapshot
    changes: tuple[RowChange, ...]
    reads: frozenset[bytes] = frozenset()
    ranges: tuple[KeyRange, ...] = ()
    owned_locks: tuple[OwnedLock, ...] = ()
    isolation: Isolation = SNAPSHOT

    @property
    def locks(self) -> tuple[LockRequest, ...]:
        return tuple([request_of(lock) for lock in self.owned_locks])


class CommitResult(NamedTuple):
    position: int
    time: int


MakeWrites = Callable[[Reader], Sequence[Write]]
"""The rows to write, from the newest state."""


class CommitProtocol(Protocol):
    """One transaction's changes become visible, all or none, at one new position.

    Raises Retry (lost a race; nothing happened), InvalidInput (a participant refused; nothing
    happened), Unavailable (08007: outcome unknown; ask `outcome` after reopening).
    """

    def commit(self, intent: Intent) -> CommitResult: ...

    def open_snapshot(self) -> Snapshot:
        """Open a snapshot at the published position; the caller gives it back with `release`."""

    def retain(self, snapshot: Snapshot) -> None:
        """Keep an open snapshot for one more `release`."""

    def release(self, snapshot: Snapshot) -> None: ...

    def reader(self, snapshot: Snapshot) -> Reader: ...

    def fetch_ahead(self, reader: Reader, keys: Iterable[bytes]) -> None:
        """Let a reader of this protocol have these rows at hand, where a single read takes a round
        trip: they are read next, one by one."""

    def is_newest(self, snapshot: Snapshot) -> bool:
        """Whether it shows all that is published; False also when that takes a look at the
        store."""

    def require_unchanged(self, key: bytes, snapshot: Snapshot) -> None:
        """Raise Retry when a commit after the snapshot is already known to have changed `key`."""

    clears_ranges: bool
    """Whether `derive` can empty ranges of keys."""

    def derive(
        self, make: MakeWrites, unread: Sequence[Write] = (), cleared: Sequence[KeyRange] = ()
    ) -> None:
        """Write rows that are not logged as changes (state of deferred views, watermarks, claims),
        all or none: `make` gets the newest state, of which those rows cannot change until its own
        are written. It may be called more than once. `unread` rows are written with them; nobody
        but the caller reads them before a later commit says so (a view that is being built). The
        `cleared` ranges, of rows that only `make` knows, are emptied with them and before them,
        unless `make` has nothing to write."""

    @property
    def newest_snapshot(self) -> Snapshot:
        """The newest state, published or not; only for reading."""

    def outcome(self, transaction: bytes) -> int | None:
        """The position at which a transaction committed; None when that is not known."""


class SingleRowCommits(Protocol):
    """Commits of one row, replaced or inserted by its key, as a transaction of its own."""

    def replace_row(
        self,
        key: bytes,
        catalog: Catalog,
        change: Callable[[bytes], bytes],
        wait_ms: int | None = None,
    ) -> int | None:
        """Replace the row under `key` by the result of `change`, and return the position. None:
        nothing was done, since the row does not exist, or the catalog has changed. Its lock is
        waited for as long as `wait_ms` says; None: as long as the store allows."""

    def insert_row(
        self, key: bytes, catalog: Catalog, value: bytes, wait_ms: int | None = None
    ) -> int | None:
        """Insert a row, and return the position. None: nothing was done, since the key exists, or
        the catalog has changed."""


class PublishedState(Protocol):
    """The newest state that may be read, and waiting for it to move."""

    @property
    def published_snapshot(self) -> Snapshot:
        """What statements read at: it contains every commit of this process. Where others commit
        too, theirs may come a moment later."""

    def reader(self, snapshot: Snapshot) -> Reader: ...

    def wait_past(self, position: int, timeout_s: float | None) -> bool:
        """Block until a position after `position` is published; False at the timeout, or when
        nothing more will be published."""

    def end_waits(self) -> None:
        """Wake all waiters: nothing more will be published."""

    @property
    def open_count(self) -> int:
        """The number of snapshots that are open in this process."""


RecordAdditions = tuple[tuple[bytes, bytes, tuple[int, ...]], ...]
"""What one record adds to sums: keys, payloads and amounts."""


class AdditionLog(Protocol):
    """A log whose records hold what commits added to sums."""

    @property
    def first_position(self) -> int: ...

    def read_additions(
        self, start: bytes, end: bytes, after: int, through: int
    ) -> Iterator[tuple[int, RecordAdditions]]:
        """The additions of each record after a position to the sums of a range of keys. Records
        that changed no table are included."""


class ChangeLog(Protocol):
    """Every commit, in one order, with old and new rows."""

    @property
    def additions(self) -> AdditionLog | None:
        """The same log, for the additions of commits to sums; None: its records do not hold
        them."""

    @property
    def consumers(self) -> dict[str, int]:
        """By name, the position each has applied."""

    @property
    def lost_consumers(self) -> set[str]:
        """Consumers that would have retained more than the cap allows, and were cut off."""

    @property
    def last_position(self) -> int:
        """The newest published position."""

    @property
    def first_position(self) -> int:
        """The oldest position still in the log; last + 1 when the log is empty."""

    def read_bytes(
        self, after: int, through: int | None = None, *, batch_rows: int = 1024
    ) -> Iterator[list[bytes]]:
        """Encoded records with after < position <= through (None: what is published now)."""

    def read(self, after: int, through: int | None = None) -> Iterator[LogRecord]: ...

    def read_written(self, after: int, through: int) -> Iterator[LogRecord]:
        """Like `read`, but also what is not published yet: inside a commit only."""

    def read_arrow(
        self, after: int, through: int | None = None, *, batch_rows: int = 8192
    ) -> Iterator[pa.RecordBatch]: ...

    def tail(self, after: int, timeout_s: float | None = None) -> Iterator[LogRecord]: ...

    def advance_consumer(self, name: str, position: int) -> None: ...

    def remove_consumer(self, name: str) -> None: ...

    def pin(self, position: int) -> int: ...

    def unpin(self, pin: int) -> None: ...

    def trim(self, through: int) -> int: ...


class Identity(msgspec.Struct, frozen=True):
    """The identity of a store: tokens are signed with it and checked against it."""

    format: int
    store_id: bytes
    secret: bytes
    checksum: int = 0

    def compute_checksum(self) -> int:
        return xxhash.xxh3_64_intdigest(self.store_id + self.secret + str(self.format).encode())
