"""The row-atomic store contract: rows of columns with timestamped cells, one row atomic, no more.

Engines: HBase, and the memory double `doubles.cells` with its faults. All pass the one conformance
suite in tests/kv/cells. Rules, as HBase has them, that everything above must live with:

    a cell is (column, timestamp, value); the caller chooses every timestamp; values are not empty
    the same timestamp twice: the last put wins
    a delete leaves a tombstone, of one timestamp (`exact`) or of all timestamps up to one
    a tombstone also hides what is put under it LATER, until a compaction removes the tombstone
    a delete and a put of one cell in one mutation: the delete wins
    a tombstone hides from every reader, also from one that reads as of an earlier timestamp
    a mutation of one row, with or without a check of one cell, is atomic; two rows never are
    a request may be carried out and its answer lost, arrive late (at most the grace), arrive twice,
    and a conditional mutation may answer False although its own write was applied

Code above this contract is written as steps: generators that yield the operations below and are
sent the results, with no I/O of their own. One `run_step` drives a step on a store; a simulation or
an exhaustive explorer drives the same generators on a double. Results are immutable and hashable.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from belvedere.errors import Unavailable
from belvedere.kv.cell_filter import CellFilter

TIMESTAMP_MAX = 2**62
"""Timestamps are 0 to this, exclusive."""

CELL_BYTES_MAX = 8 * 1024 * 1024
"""An engine takes at least this much in one cell (HBase: 10 MiB with its overhead)."""


class ReplyLost(Unavailable):
    """The store may or may not have carried out the operation; it may still do so within the
    grace."""

    default_sqlstate = "08007"


class WorkExpired(Unavailable):
    """Too long since the last `BeginWork`: what was read then must be read again before anything is
    sent."""

    default_sqlstate = "08006"


class Cell(NamedTuple):
    column: bytes
    timestamp: int
    value: bytes


Cells = tuple[Cell, ...]
"""The cells of one row, by column, newest first; empty when there is no row."""


@dataclass(frozen=True, slots=True)
class Put:
    column: bytes
    timestamp: int
    value: bytes


@dataclass(frozen=True, slots=True)
class CellDelete:
    """Hide the versions of a column at or below a timestamp, or exactly the one at it."""

    column: bytes
    timestamp: int
    exact: bool = False


Change = Put | CellDelete


@dataclass(frozen=True, slots=True)
class Get:
    """Result: Cells. The newest version of each column at or below `as_of` (None: the newest of
    all), or every such version; all columns unless some are named."""

    row: bytes
    columns: tuple[bytes, ...] | None = None
    as_of: int | None = None
    all_versions: bool = False


@dataclass(frozen=True, slots=True)
class MultiGet:
    """Result: a tuple of Cells, one for each get, in order; each read at a moment of its own."""

    gets: tuple[Get, ...]


@dataclass(frozen=True, slots=True)
class CellScan:
    """Result: a tuple of (row, Cells) with start <= row < end, in order or its reverse, rows
    without a visible cell left out, and those that do not pass the filter. Each row is read at a
    moment of its own. `filter`: not with `all_versions`. `packed`: where the store can, the rows
    are `packed_rows.PackedRows`."""

    start: bytes
    end: bytes | None
    columns: tuple[bytes, ...] | None = None
    as_of: int | None = None
    all_versions: bool = False
    limit: int | None = None
    reverse: bool = False
    filter: CellFilter | None = None
    packed: bool = False


@dataclass(frozen=True, slots=True)
class Mutate:
    """Result: None. Apply the changes to one row, atomically."""

    row: bytes
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class CheckAndMutate:
    """Result: bool. If the newest visible version of `column` has exactly this value (None: if
    there is none), apply the changes to the same row, atomically."""

    row: bytes
    column: bytes
    expected: bytes | None
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Increment:
    """Result: int, the new value. The cell is eight bytes, big-endian, signed; absent counts as
    0."""

    row: bytes
    column: bytes
    by: int = 1


@dataclass(frozen=True, slots=True)
class Many:
    """Result: a tuple of results, in order. Independent operations sent side by side, one round
    trip.

    When one fails the others are still tried; then the first failure is raised."""

    operations: tuple[Get | CellScan | Mutate | CheckAndMutate | Increment, ...]


@dataclass(frozen=True, slots=True)
class Now:
    """Result: float, seconds on this process's monotonic clock. Never compared between
    processes."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Result: None, after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class BeginWork:
    """Result: None. What is read after this may be acted upon for the work limit; mutations sent
    later are refused with WorkExpired. Work limit plus operation timeout is less than the grace, so
    that nothing decided before a floor was announced can arrive after the floor acts."""


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Result: None. The outcome is decided: the caller may answer its client before the step
    ends."""

    position: int


SingleRow = Get | CellScan | Mutate | CheckAndMutate | Increment
Operation = SingleRow | MultiGet | Many | Now | Pause | BeginWork | Acknowledge

Result = TypeVar("Result")
Step = Generator[Operation, Any, Result]
"""A step of the protocol: yields operations, is sent results, returns what it found."""


class CellStore(Protocol):
    """Every method may raise Unavailable (ReplyLost when it may have been done), never a bare
    error."""

    def get(self, get: Get) -> Cells: ...

    def multi_get(self, gets: tuple[Get, ...]) -> tuple[Cells, ...]: ...

    def scan(self, scan: CellScan) -> Sequence[tuple[bytes, Cells]]: ...

    def mutate(self, mutate: Mutate) -> None: ...

    def check_and_mutate(self, mutate: CheckAndMutate) -> bool: ...

    def increment(self, increment: Increment) -> int: ...

    def execute_many(self, operations: tuple[SingleRow, ...]) -> tuple[Any, ...]:
        """The results of `Many`: independent operations, side by side where the engine can."""

    def close(self) -> None:
        """Release everything; idempotent. Any later call raises Unavailable."""


@dataclass(slots=True)
class Driver:
    """Runs steps on a store, one operation after the other, in the calling thread.

    `clock` and `sleep` are passed in; `work_seconds_max` is the work limit of `BeginWork`. Every
    operation counts one round trip, whatever it holds."""

    store: CellStore
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    work_seconds_max: float
    round_trips: int = 0
    _begun: float = field(default=0.0)

    def run_step(
        self, step: Step[Result], acknowledge: Callable[[int], None] | None = None
    ) -> Result:
        """Drive a step to its end and return its result; its exceptions pass through."""
        sent: Any = None
        failure: BaseException | None = None
        self._begun = self.clock()
        while True:
            try:
                operation = step.throw(failure) if failure is not None else step.send(sent)
            except StopIteration as stop:
                result: Result = stop.value
                return result
            sent, failure = None, None
            if isinstance(operation, Acknowledge):
                if acknowledge is not None:
                    acknowledge(operation.position)
                continue
            try:
                sent = self._perform_operation(operation)
            except Unavailable as unavailable:
                failure = unavailable

    def _perform_operation(self, operation: Operation) -> Any:
        match operation:
            case Now():
                return self.clock()
            case Pause(seconds):
                return self.sleep(seconds)
            case BeginWork():
                self._begun = self.clock()
                return None
        if is_mutation(operation) and self.clock() - self._begun > self.work_seconds_max:
            raise WorkExpired("too long since the work began", limit=self.work_seconds_max)
        self.round_trips += 1
        return execute_operation(self.store, operation)


def is_mutation(operation: Operation) -> bool:
    """Whether an operation can alter the store."""
    if isinstance(operation, Many):
        return any(is_mutation(each) for each in operation.operations)
    return isinstance(operation, Mutate | CheckAndMutate | Increment)


def execute_operation(store: CellStore, operation: Operation) -> Any:
    """Carry out one store operation by the store's own methods."""
    match operation:
        case Get():
            return store.get(operation)
        case MultiGet(gets):
            return store.multi_get(gets)
        case CellScan():
            return store.scan(operation)
        case Mutate():
            return store.mutate(operation)
        case CheckAndMutate():
            return store.check_and_mutate(operation)
        case Increment():
            return store.increment(operation)
        case Many(operations):
            return store.execute_many(operations)
        case _:
            raise TypeError(f"not a store operation: {operation!r}")


def perform_in_order(store: CellStore, operations: tuple[SingleRow, ...]) -> tuple[Any, ...]:
    """`Many` on an engine that has no better way: one operation after the other."""
    results: list[Any] = []
    failure: Unavailable | None = None
    for operation in operations:
        try:
            results.append(execute_operation(store, operation))
        except Unavailable as unavailable:
            failure = failure or unavailable
    if failure is not None:
        raise failure
    return tuple(results)


def value_of(cells: Cells, column: bytes) -> bytes | None:
    """The newest value of a column among these cells, or None."""
    for cell in cells:
        if cell.column == column:
            return cell.value
    return None
