"""The state of one execution of a plan: reader, parameters, outer rows, and cancellation.

One `Run` per execution of a plan. A sub-query or the right side of a lateral join runs in a Run of
its own whose `outer` is the row around it; `OuterColumn(2, i)` is thus `run.parent.outer[i]`.
Results that do not depend on the outer row are cached in the `cache` of the Run they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from belvedere import interrupts
from belvedere.errors import Error, InvalidInput, Unavailable
from belvedere.execution.memory_limit import Memory
from belvedere.plan.functions.core.function import Environment
from belvedere.txn.contracts import Reader
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

CANCELED = "57014"
"""The SQLSTATE of a statement that was canceled, or ran out of its time."""

Rows = Callable[["Run"], Iterator[Row]]
"""A compiled plan: a generator of its rows."""


class Interrupt:
    """Cancels a running statement: set from another thread, checked between batches of rows."""

    __slots__ = ("_hooks", "progress", "reason", "rows")

    def __init__(self) -> None:
        """`progress` is called with the rows read so far, between batches of rows and, about ten
        times a second, while DuckDB runs; it may stop the statement."""
        self.reason: str | None = None
        self.progress: Callable[[int], None] | None = None
        self.rows = 0
        self._hooks: list[Callable[[], None]] = []

    def stop(self, reason: str) -> None:
        self.reason = reason
        for hook in list(self._hooks):
            hook()

    def clear(self) -> None:
        self.reason = None
        self.rows = 0

    def add_hook(self, hook: Callable[[], None]) -> None:
        """Also call `hook` on stop, for engines with an interrupt of their own."""
        self._hooks.append(hook)

    def remove_hook(self, hook: Callable[[], None]) -> None:
        self._hooks.remove(hook)

    def check(self) -> None:
        if self.reason is not None:
            raise cancel_error(self.reason)

    def check_rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, with a check before each: for what takes longer than to read it."""
        for row in rows:
            if self.reason is not None:
                raise cancel_error(self.reason)
            yield row

    def count_rows(self, count: int) -> None:
        """Counts a batch of rows that was read, reports progress and checks for cancellation."""
        if self.progress is not None:
            self.rows += count
            self.progress(self.rows)
        if self.reason is not None:
            raise cancel_error(self.reason)


def make_checked_interrupt(check: Callable[[], None]) -> Interrupt:
    """One that stops, also while DuckDB runs, when `check` raises."""
    interrupt = Interrupt()

    def stop_with_check(_rows: int) -> None:
        if interrupt.reason is None:
            try:
                check()
            except Error as error:
                interrupt.stop(error.detail or error.message)

    interrupt.progress = stop_with_check
    return interrupt


def make_statement_interrupt() -> Interrupt:
    """For work that the statement of this thread has asked for, if there is one: stops with it."""
    check = interrupts.running.check
    return Interrupt() if check is None else make_checked_interrupt(check)


def cancel_error(reason: str) -> Unavailable:
    return Unavailable("canceling statement", sqlstate=CANCELED, detail=reason)


class Services(Protocol):
    """The services of the session that plans use."""

    lock_wait_ms: int | None
    """How long a lock may be waited for; None: as long as the store allows."""

    def next_value(self, sequence: int) -> int: ...

    def current_value(self, sequence: int) -> int: ...

    def last_value(self) -> int: ...

    def set_value(self, sequence: int, value: int, called: bool) -> int: ...

    def row_id(self, relation: int) -> int:
        """A number no row of the table has had: the key of a table without a primary key."""

    def virtual_rows(self, schema: str, name: str) -> Iterable[Row]: ...

    def lock_rows(self, relation: int, keys: list[Row], strength: str, wait: str) -> list[bool]:
        """Lock rows by primary key; False where the row is locked and was to be skipped."""


class PendingWrite(NamedTuple):
    """The pending writes of an Insert, Update or Delete, applied after the statement's reads."""

    node: object
    affected: int
    apply: Callable[[Transaction], None]


class Run:
    __slots__ = (
        "cache",
        "changes",
        "ctes",
        "deltas",
        "environment",
        "interrupt",
        "memory",
        "outer",
        "parameters",
        "parent",
        "reader",
        "services",
        "wanted",
    )

    def __init__(
        self,
        reader: Reader,
        parameters: Row,
        environment: Environment,
        services: Services,
        interrupt: Interrupt,
        memory: Memory | None = None,
    ) -> None:
        self.reader = reader
        self.parameters = parameters
        self.environment = environment
        self.services = services
        self.interrupt = interrupt
        self.memory = memory or Memory()
        self.outer: Row = ()
        self.parent: Run | None = None
        self.cache: dict[int, Any] = {}
        self.ctes: dict[int, CteRows] = {}
        self.wanted = 0  # how many rows a limit above needs; only a hint
        self.changes: list[PendingWrite] = []  # applied after all reads
        self.deltas: Mapping[int, Sequence[Row]] = {}  # rows of Changes leaves, by relation

    def nested_run(self, outer: Row) -> Run:
        """The Run of a query nested in this one, for one outer row."""
        run = self._copy_shared()
        run.memory = self.memory.for_subquery()
        run.outer = outer
        run.parent = self
        return run

    def with_ctes(self, ctes: dict[int, CteRows]) -> Run:
        """A Run of the same query with more CTEs visible."""
        run = self._copy_shared()
        run.outer = self.outer
        run.parent = self.parent
        run.ctes = self.ctes | ctes
        return run

    def _copy_shared(self) -> Run:
        run = Run.__new__(Run)
        run.reader = self.reader
        run.parameters = self.parameters
        run.environment = self.environment
        run.services = self.services
        run.interrupt = self.interrupt
        run.memory = self.memory
        run.cache = {}
        run.wanted = 0
        run.ctes = self.ctes
        run.changes = self.changes
        run.deltas = self.deltas
        return run

    def outer_run(self, levels: int) -> Run:
        """The Run this many queries further out, at most the outermost."""
        run = self
        while levels and run.parent is not None:
            run, levels = run.parent, levels - 1
        return run


class CteRows:
    """Rows of a CTE, computed once and only as far as they are read."""

    __slots__ = ("_rest", "_rows")

    def __init__(self, rows: Iterator[Row] | list[Row]) -> None:
        self._rows: list[Row] = rows if isinstance(rows, list) else []
        self._rest: Iterator[Row] = iter(()) if isinstance(rows, list) else rows

    def __iter__(self) -> Iterator[Row]:
        at = 0
        rows = self._rows
        while True:
            if at < len(rows):
                yield rows[at]
            else:
                row = next(self._rest, None)
                if row is None:
                    return
                rows.append(row)
                yield row
            at += 1

    def read_all(self) -> list[Row]:
        self._rows.extend(self._rest)
        return self._rows


def scalar_value(rows: Iterator[Row]) -> Any:
    """The value of a scalar sub-query."""
    first = next(rows, None)
    if first is None:
        return None
    if next(rows, None) is not None:
        raise InvalidInput(
            "more than one row returned by a subquery used as an expression", sqlstate="21000"
        )
    return first[0]
