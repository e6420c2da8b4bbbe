"""A session: runs SQL text, in transactions, for one connection. It does not know its door.

    text -> cached plan, or parse and bind
         -> transaction: the open one, or one of its own (run again when it loses a race)
         -> rows, then the writes, then constraints that must hold at the end of a statement
         -> Result

A statement that fails has no effect: its own transaction is rolled back; inside an open transaction
its changes never commit, and the transaction is failed until ROLLBACK.
"""

from __future__ import annotations

import datetime
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO, Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_index
from belvedere.errors import Error, InvalidInput, Retry, Unsupported
from belvedere.execution.choose import Tier
from belvedere.execution.direct.compile import Wrap
from belvedere.execution.direct.points import PointRun
from belvedere.execution.memory import Memory
from belvedere.execution.run import Interrupt, Run
from belvedere.plan.functions.function import Environment
from belvedere.plan.nodes import Node
from belvedere.session import front, reading, short, utility, views
from belvedere.session.freshness import Freshness, FreshnessKind, parse_freshness
from belvedere.session.prepared import Prepared
from belvedere.session.result import Result
from belvedere.session.services import SessionServices
from belvedere.session.settings import Settings
from belvedere.session.shared import Shared
from belvedere.session.statistics import StatementRecord
from belvedere.session.transactions import TransactionState
from belvedere.session.virtual import VirtualTables
from belvedere.sql.bind.statement import TEXTS
from belvedere.sql.rules.context import Context
from belvedere.sql.rules.optimize import optimize
from belvedere.sql.statements import DataPlan, Prepare
from belvedere.txn.border import Isolation, LockRequest, RowChange
from belvedere.txn.constraints import ForeignKeyParticipant
from belvedere.txn.transaction import Transaction
from belvedere.types import Row
from belvedere.views.answer import answered

CANCELED = "canceled by the user"
TIMED_OUT = "statement timeout"
REPLAN_AFTER_US = 20_000
"""A plan for few rows that takes longer is compiled again when the data has changed since."""


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class Session:
    """One thread at a time may use it, which its door ensures. `cancel` may come from any."""

    def __init__(
        self,
        shared: Shared,
        *,
        autocommit: bool = True,
        clock: Callable[[], datetime.datetime] = _now,
        seed: int | None = None,
    ) -> None:
        self.shared = shared
        self.host = shared.host
        self.autocommit = autocommit
        self.settings = Settings()
        self.transactions = TransactionState(shared.host, self.settings)
        self.prepared: dict[str, Prepare] = {}
        self.clock = clock
        self.random = random.Random(seed)
        self.virtual = VirtualTables(self)
        self.services = SessionServices(shared.host, lambda: self.catalog, self.virtual.rows)
        self.interrupt = Interrupt()
        self._plans: Callable[[str], Any] = shared.plans.get
        self.settings.when_zone_changes = self._use_zone
        self._running = False
        self._statement_freshness: Freshness | None = None
        self._transaction_time: datetime.datetime | None = None
        self.copy_input: IO[str] | None = None
        self.copy_output: IO[str] | None = None
        self.on_progress: Callable[[str, int, float], None] | None = None
        self.closed = False

    @property
    def catalog(self) -> Catalog:
        """The catalog that the next statement sees."""
        transaction = self.transactions.open
        return self.host.catalog if transaction is None else transaction.catalog

    @property
    def token(self) -> str:
        """With it another connection reads at least what this session has read and written."""
        return self.host.token(self.transactions.seen or self.host.position)

    # -- the door's verbs ---------------------------------------------------------------------

    def execute(
        self, text: str, parameters: Sequence[Any] = (), freshness: str | None = None
    ) -> Result:
        """Run every statement of the text; the result is the last one's."""
        entry = self._plans(text)
        if freshness is not None:
            return self.guarded(lambda: self._as_fresh(freshness, entry, text, parameters))
        if entry is None or entry.tier is not self.settings.tier:
            return self.guarded(lambda: self._uncached(text, parameters))
        if not self.transactions.failed:
            if entry.point_read is not None:
                return short.read_point(self, entry, entry.point_read, parameters)
            if entry.point_write is not None and self.autocommit:
                if self.transactions.open is None:
                    if entry.point_swap is not None:
                        return short.swap_point(self, entry, entry.point_swap, parameters)
                    return short.write_point(self, entry, entry.point_write, parameters)
        return self.guarded(lambda: self.cached(entry, parameters))

    @property
    def isolation(self) -> Isolation:
        level: Isolation = self.settings.get("default_transaction_isolation")
        return level

    def commit(self) -> None:
        self.transactions.commit()

    def rollback(self) -> None:
        self.transactions.rollback()

    def cancel(self) -> None:
        """Stop the running statement, if there is one; from any thread."""
        if self._running:
            self.interrupt.stop(CANCELED)

    def close(self) -> None:
        self.closed = True
        self.transactions.rollback()

    def _use_zone(self, zone: datetime.tzinfo) -> None:
        """Constants and functions are bound under the zone, so plans are cached by it."""
        get = self.shared.plans.get
        self._plans = get if zone is datetime.UTC else lambda text: get((zone, text))

    # -- one text -----------------------------------------------------------------------------

    def guarded(self, action: Callable[[], Result]) -> Result:
        """Run an action under the statement timeout, open to `cancel`."""
        timeout_ms = self.settings.get("statement_timeout")
        timer = None
        self.interrupt.clear()
        self._running = True
        if timeout_ms:
            seconds = min(timeout_ms / 1000, threading.TIMEOUT_MAX)
            timer = threading.Timer(seconds, self.interrupt.stop, (TIMED_OUT,))
            timer.daemon = True
            timer.start()
        try:
            return action()
        except RecursionError:
            raise InvalidInput("statement is too complex", sqlstate="54001") from None
        finally:
            self._running = False
            if timer is not None:
                timer.cancel()

    def cached(self, entry: Prepared, parameters: Sequence[Any]) -> Result:
        if entry.catalog is not self.catalog:
            return self._uncached(entry.text, parameters)
        return self.run_data(entry, parameters)

    def _as_fresh(
        self, freshness: str, entry: Prepared | None, text: str, parameters: Sequence[Any]
    ) -> Result:
        """Run a text with a freshness of its own. Plans are the same for every freshness."""
        self._statement_freshness = self._floored(freshness)
        try:
            if entry is None or entry.tier is not self.settings.tier:
                return self._uncached(text, parameters)
            return self.cached(entry, parameters)
        finally:
            self._statement_freshness = None

    def _uncached(self, text: str, parameters: Sequence[Any]) -> Result:
        found = self._parsed(text)
        result = Result("")
        for parsed in found:
            alone = len(found) == 1
            result = self._run_statement(text, parsed, parameters if alone else (), keep=alone)
        return result

    def _parsed(self, text: str) -> Sequence[Any]:
        try:
            return front.parse(text)
        except Error:
            self.failed_statement()
            raise

    @property
    def freshness(self) -> Freshness:
        """The freshness that the running statement requires of views."""
        if self._statement_freshness is not None:
            return self._statement_freshness
        wanted: Freshness = self.settings.get("freshness")
        return wanted

    def _floored(self, text: str) -> Freshness:
        """Parse a freshness; a token also becomes the floor of the next snapshot. Base tables are
        otherwise always read at the newest position."""
        wanted = parse_freshness(text)
        if wanted.kind is FreshnessKind.TOKEN:
            position = self.host.position_of(wanted.token)
            self.transactions.floor = max(self.transactions.floor, position)
        return wanted

    def _run_statement(
        self, text: str, parsed: Any, parameters: Sequence[Any], *, keep: bool
    ) -> Result:
        try:
            statement, general = front.bind(self, parsed, parameters)
            if isinstance(statement, DataPlan):
                entry = self.prepare(statement, text[parsed.start : parsed.end])
        except Error:
            self.transactions.require_usable()
            self.failed_statement()
            raise
        if isinstance(statement, DataPlan):
            if keep and general:
                zone = self.settings.zone
                self.shared.plans.put(text if zone is datetime.UTC else (zone, text), entry)
                entry.text = text
            return self.run_data(entry, parameters)
        try:
            return utility.run(self, statement, parameters)
        except Error:
            self.failed_statement()
            raise

    def planned(self, plan: Node, *, bypass: bool = False) -> Node:
        """The optimized plan, with views read from their state; `bypass`: deferred views are
        computed from their base tables."""
        catalog = self.catalog
        over = views.bypassing_plan if bypass else views.readable_plan
        readable = over(self, catalog, plan)
        return optimize(readable, Context(catalog, TEXTS, self.shared.table_statistics))

    def prepare(
        self, data: DataPlan, text: str, tier: Tier | None = None, wrap: Wrap | None = None
    ) -> Prepared:
        record = self.shared.statistics.record_for(text)
        if self.shared.answering and self.catalog.views:
            plan = answered(data.plan, self.catalog, self.shared.answering)
            data = replace(data, plan=plan)
        deferred = views.deferred_in(self.catalog, data.plan)
        entry = self.prepared_as(data, self.planned(data.plan), record, tier, wrap, deferred)
        if deferred:
            entry.bypass = reading.Bypass(data, record, tier)
        return entry

    def prepared_as(
        self,
        data: DataPlan,
        plan: Node,
        record: StatementRecord,
        tier: Tier | None,
        wrap: Wrap | None = None,
        deferred: tuple[View, ...] = (),
    ) -> Prepared:
        return Prepared(
            self.catalog,
            replace(data, plan=plan),
            tier or self.settings.tier,
            self.shared,
            record,
            wrap,
            deferred=deferred,
        )

    def door_input(self) -> IO[str]:
        if self.copy_input is None:
            raise Unsupported("COPY FROM STDIN", hint="name a file, or use \\copy in the shell")
        return self.copy_input

    def door_output(self) -> IO[str]:
        if self.copy_output is None:
            raise Unsupported("COPY TO STDOUT", hint="name a file, or use \\copy in the shell")
        return self.copy_output

    # -- data statements ----------------------------------------------------------------------

    def run_data(self, entry: Prepared, parameters: Sequence[Any]) -> Result:
        self.transactions.require_usable()
        started = time.perf_counter()
        record = entry.record
        try:
            values = entry.convert(parameters)
            if entry.deferred and self.transactions.open is None:
                reading.wait_if_cheapest(self, entry)
            result = self.in_transaction(
                entry.data.changes, lambda t: run_plan(self, t, entry, values)
            )
        except BaseException:
            record.errors += 1
            raise
        spent = (time.perf_counter() - started) * 1e6
        record.calls += 1
        record.rows += max(result.affected, 0)
        record.total_us += spent
        record.max_us = max(record.max_us, spent)
        if spent > REPLAN_AFTER_US and entry.is_outgrown(self.host.position):
            self.shared.replan(entry)
        return result

    def in_transaction(self, changes: bool, action: Callable[[Transaction], Result]) -> Result:
        state = self.transactions
        if state.open is None:
            return self._alone(changes, action)
        state.require_usable()
        return self._inside(state.open, changes, action)

    def _alone(self, changes: bool, action: Callable[[Transaction], Result]) -> Result:
        """Run in a transaction of its own. When that loses a race, no result was returned yet and
        the action runs again."""
        state = self.transactions
        attempts = self.host.config.statement_retries_max
        locks: tuple[LockRequest, ...] = ()
        while True:
            transaction = self.begin_implicit()
            try:
                transaction.hold_first(locks)
                result = self._inside(transaction, changes, action)
                if self.autocommit:
                    state.commit()
                return result
            except Retry as lost:
                state.rollback()
                attempts -= 1
                if attempts < 0:
                    raise
                state.floor = max(state.floor, lost.lost_to)
                locks = transaction.locks_to_retry(lost)
            except BaseException:
                if self.autocommit:
                    state.rollback()
                raise

    def _inside(
        self, transaction: Transaction, changes: bool, action: Callable[[Transaction], Result]
    ) -> Result:
        state = self.transactions
        if changes and state.read_only:
            self.failed_statement()
            raise InvalidInput("cannot change data in a read-only transaction", sqlstate="25006")
        transaction.begin_statement()
        self.services.transaction = transaction
        single = self.autocommit and not state.explicit
        savepoint = transaction.savepoint() if changes and not single else None
        try:
            result = action(transaction)
            if savepoint is not None:
                self.check_constraints(transaction, transaction.changes_since(savepoint))
            return result
        except BaseException:
            self.failed_statement()  # ROLLBACK or ROLLBACK TO discards its changes
            raise

    def check_constraints(self, transaction: Transaction, changes: tuple[RowChange, ...]) -> None:
        """Constraints that must hold at the end of every statement, not only at commit."""
        relations = frozenset([change.relation for change in changes])
        catalog = transaction.catalog
        for relation in relations:
            for index in catalog.indexes_of(relation):
                if index.unique:
                    transaction.get(compiled_index(catalog, index.id).start)  # makes its entries
                    break
        for participant in self.host.participants_for(catalog, relations):
            if isinstance(participant, ForeignKeyParticipant):
                deferred = participant.initially_deferred
                if participant.deferrable:
                    deferred = self.transactions.defers(participant.name, deferred)
                if not deferred:
                    participant.check(changes, transaction)

    def failed_statement(self) -> None:
        if self.transactions.open is not None:
            self.transactions.failed = True

    def begin_implicit(self) -> Transaction:
        self._transaction_time = None
        return self.transactions.begin(explicit=False)

    def begin_explicit(self, isolation: Any = None) -> Transaction:
        self._transaction_time = None
        return self.transactions.begin(explicit=True, isolation=isolation)

    def environment(self) -> Environment:
        now = self.clock()
        if self._transaction_time is None:
            self._transaction_time = now
        schema = front.current_schema(self)
        return Environment(self._transaction_time, now, self.clock, self.random, schema=schema)

    def new_run(self, reader: Any, parameters: Row, *, environment: bool = True) -> Run:
        return Run(
            reader,
            parameters,
            self.environment() if environment else None,  # type: ignore[arg-type]
            self.services,
            self.interrupt,
            Memory(self.shared.memory_limit_bytes),
        )


def run_plan(session: Session, transaction: Transaction, entry: Prepared, values: Row) -> Result:
    """Read everything, then write everything."""
    data = entry.data
    if entry.point_write is not None:
        affected = entry.point_write(transaction, PointRun(values, session.services))
        return Result(data.verb.upper(), None, None, affected)
    entry, reader = reading.ready_to_read(session, transaction, entry)
    run = session.new_run(reader, values, environment=entry.needs_environment)
    found = entry.rows(run)
    table = getattr(found, "table", None)
    rows = [] if table is not None else run.memory.hold(found)
    affected = len(rows) if table is None else table.num_rows
    for write in run.changes:
        write.apply(transaction)
        if write.node is entry.target:
            affected = write.affected
    if not data.returns:
        return Result(data.verb.upper(), None, None, affected)
    return Result(data.verb.upper(), data.plan.fields, rows, affected, table)
