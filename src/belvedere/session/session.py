"""A session: runs SQL text, in transactions, for one connection. It does not know its door.

    text -> cached plan, or parse and bind
         -> transaction: the open one, or one of its own (run again when it loses a race)
         -> rows, then the writes, then constraints that must hold at the end of a statement
         -> Result

A statement that fails has no effect: its own transaction is rolled back; inside an open transaction
its changes never commit, and the transaction is failed until ROLLBACK.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from belvedere import forks, interrupts
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.errors import Error, InvalidInput
from belvedere.execution.choose_tier import Tier
from belvedere.execution.memory_limit import Memory, over_limit
from belvedere.execution.python.compile import Wrap
from belvedere.execution.python.statements.point_statements import FastPathRun
from belvedere.execution.run import Interrupt, Run
from belvedere.plan.functions.core.function import Environment
from belvedere.plan.nodes import Node
from belvedere.session import dispatch
from belvedere.session.context.activity import SessionActivity
from belvedere.session.context.copy_streams import CopyStreams
from belvedere.session.context.freshness import Freshness
from belvedere.session.context.notices import Notices
from belvedere.session.context.notifications import SessionNotifications
from belvedere.session.context.result import Result
from belvedere.session.context.sequences_and_locks import SessionServices
from belvedere.session.context.settings import SessionSettings
from belvedere.session.context.shared_state import SharedState
from belvedere.session.context.statement_statistics import StatementRecord
from belvedere.session.context.transactions import TransactionState
from belvedere.session.cursors import SqlCursors
from belvedere.session.materialized import create, freshness_policy, query_rewrite
from belvedere.session.query_stream import run_plan_and_apply_writes
from belvedere.session.rights.identity import SessionIdentity
from belvedere.session.statement import (
    attempts,
    bind,
    cached_plans,
    fast_path,
    freshness_reads,
    literal_plans,
    many_rows,
)
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.session.statement.parameters import ParameterTypesDiffer
from belvedere.session.system_tables.tables import SystemTables
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.optimize import optimize
from belvedere.sql.statements import DataPlan, Prepare
from belvedere.txn.contracts import Isolation
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row
from belvedere.values.failures import out_of_range
from belvedere.values.value_size import limit_value_size
from belvedere.views.read.rewrite_rules import apply_rewrite_rules

T = TypeVar("T")
CANCELED = "canceled by the user"
TIMED_OUT = "statement timeout"
REPLAN_AFTER_US = 20_000
"""A plan for few rows that computes longer is compiled again when the data has changed since."""
_utc_now = partial(datetime.datetime.now, datetime.UTC)


class Session:
    """One thread at a time may use it, which its door ensures. `cancel` may come from any."""

    def __init__(
        self,
        shared: SharedState,
        *,
        autocommit: bool = True,
        read_only: bool = False,
        identity: SessionIdentity | None = None,
        clock: Callable[[], datetime.datetime] = _utc_now,
        seed: int | None = None,
    ) -> None:
        self.shared = shared
        self.host = shared.host
        self.autocommit = autocommit
        self.settings = SessionSettings()
        self.notifications = SessionNotifications(shared.notifications)
        self.transactions = TransactionState(shared.host, self.settings, self.notifications)
        self.transactions.always_read_only = read_only
        self.prepared: dict[str, Prepare] = {}
        self.clock = clock
        self.random = random.Random(seed)
        self.virtual = SystemTables(self)
        self.services = SessionServices(
            shared.host,
            lambda: self.catalog,
            self.virtual.read_table_rows,
            self.transactions.require_writable,
        )
        self.fast_path_run = FastPathRun((), self.services)  # of one statement after the other
        self.interrupt = Interrupt()
        self.identity = identity or SessionIdentity()
        self.identity.follow_settings(
            self.settings, lambda: self.catalog, self._select_plans_by_settings
        )
        self.plan_variant = cached_plans.get_plan_variant(self)
        self._plans: Callable[[str], Any] = cached_plans.make_plan_finder(self)
        for name in ("timezone", "rewrite", "freshness", "search_path"):
            self.settings.watchers[name] = self._select_plans_by_settings
        self.settings.watchers["lock_timeout"] = self._apply_lock_timeout
        self._running = False
        self._statement_freshness: Freshness | None = None
        self._transaction_time: datetime.datetime | None = None
        self.copy_streams = CopyStreams()
        self.sends_streams = False
        """Whether the door takes results whose rows are computed as they are sent."""
        self.on_progress: Callable[[str, int, float], None] | None = None
        self.cursors = SqlCursors()
        self.streams: set[Any] = set()  # open ones, which end with it
        self.closed = False
        self.activity = SessionActivity()
        shared.sessions.add_session(self)
        forks.track_handle(self)
        interrupts.wrap_handlers()

    @property
    def catalog(self) -> Catalog:
        """The catalog that the next statement sees."""
        source = self.transactions.open or self.host.visibility.published_snapshot
        return source.catalog

    @property
    def notices(self) -> Notices:
        return self.services.notices

    @property
    def freshness_token(self) -> str:
        """With it another connection reads at least what this session has read and written."""
        return self.host.position_to_token(
            self.transactions.newest_seen_position or self.host.position
        )

    # -- the door's verbs ---------------------------------------------------------------------

    def execute(
        self, text: str, parameters: Sequence[Any] = (), freshness: str | None = None
    ) -> Result:
        """Run every statement of the text; the result is the last one's."""
        entry = self._plans(text)
        if freshness is not None:
            return freshness_reads.run_at_freshness(self, entry, text, parameters, freshness)
        if entry is None:
            if parameters:
                entry = cached_plans.find_plan_for_types(self, text, parameters)
            if not entry and (result := literal_plans.try_run_by_shape(self, text, parameters)):
                return result
        if entry is None or entry.tier is not self.settings.tier:
            return self.run_with_timeout(lambda: self.run_script_text(text, parameters))
        try:
            if entry.fast_read is not None and not self.transactions.failed:
                return fast_path.run_fast_read(self, entry, entry.fast_read, parameters)
            return fast_path.run_by_fastest_path(self, entry, parameters)
        except ParameterTypesDiffer:
            entry = cached_plans.find_plan_for_types(self, text, parameters)
        if entry is None or entry.tier is not self.settings.tier:
            return self.run_with_timeout(lambda: self.run_script_text(text, parameters))
        return fast_path.run_by_fastest_path(self, entry, parameters)

    def insert_rows(self, text: str, given: Sequence[Sequence[Any]]) -> int | None:
        """Run an INSERT that has run before for many rows of parameters: `many_rows`."""
        return many_rows.insert_parameter_rows(self, self._plans(text), given)

    @property
    def default_isolation(self) -> Isolation:
        level: Isolation = self.settings.get("default_transaction_isolation")
        return level

    def show_setting(self, name: str) -> str:
        """The text of a setting; those of a transaction are the open one's, or the next one's."""
        transaction, state = self.transactions.open, self.transactions
        if name.lower() == "transaction_isolation":
            return (transaction.isolation if transaction else self.default_isolation).name
        if name.lower() == "transaction_read_only":
            only = state.read_only if transaction else state.is_read_only_by_default
            return "on" if only else "off"
        return self.settings.get_shown_text(name)

    def commit(self) -> None:
        self.transactions.commit()

    def rollback(self) -> None:
        self.transactions.rollback()

    def cancel(self) -> None:
        """Stop the running statement, if there is one; from any thread."""
        if self._running:
            self.interrupt.stop(CANCELED)

    @property
    def is_running(self) -> bool:
        return self._running

    def close(self) -> None:
        self.closed = True
        self.shared.sessions.remove_session(self)
        for stream in list(self.streams):
            stream.close()
        self.transactions.rollback()
        self.notifications.close()

    def _select_plans_by_settings(self, _: object) -> None:
        self.plan_variant = cached_plans.get_plan_variant(self)
        self._plans = cached_plans.make_plan_finder(self)

    def _apply_lock_timeout(self, wait_ms: int) -> None:
        self.services.lock_wait_ms = self.transactions.lock_wait_ms = wait_ms or None
        if self.transactions.open is not None:
            self.transactions.open.lock_wait_ms = wait_ms or None

    # -- one text -----------------------------------------------------------------------------

    @interrupts.canceled_by_interrupt
    def run_with_timeout(self, action: Callable[[], T]) -> T:
        """Run an action under the statement timeout, open to `cancel`."""
        timeout_ms = self.settings.get("statement_timeout")
        timer = None
        self.interrupt.clear()
        interrupts.begin_statement(self.interrupt.check)
        self._running = True
        if timeout_ms:
            seconds = min(timeout_ms / 1000, threading.TIMEOUT_MAX)
            timer = threading.Timer(seconds, self.interrupt.stop, (TIMED_OUT,))
            timer.daemon = True
            timer.start()
        try:
            limit_value_size(self.shared.memory_limit_bytes // 4)
            return action()
        except RecursionError:
            raise InvalidInput("statement is too complex", sqlstate="54001") from None
        except decimal.Overflow:
            raise out_of_range("numeric") from None
        except MemoryError:
            raise over_limit(self.shared.memory_limit_bytes) from None
        finally:
            self._running = False
            interrupts.running.check = None
            if timer is not None:
                timer.cancel()
            if interrupts.pending is not None:
                self.transactions.fail()
                interrupts.deliver_pending()

    def run_cached_statement(self, entry: CompiledStatement, parameters: Sequence[Any]) -> Result:
        self.activity.note_statement(entry.text)
        self.begin_statement()
        if entry.catalog is not self.catalog:
            if isinstance(parameters, literal_plans.LiteralValues):
                return self.run_script_text(parameters.text, ())
            return self.run_script_text(entry.text, parameters)
        return self.run_and_record_statement(entry, parameters)

    @contextlib.contextmanager
    def hold_freshness(self, freshness: str | None) -> Iterator[None]:
        """Require this freshness of views inside; None: that of the settings."""
        if freshness is not None:
            self._statement_freshness = self.transactions.raise_floor_for_freshness(freshness)
        try:
            yield
        finally:
            self._statement_freshness = None

    def run_script_text(self, text: str, parameters: Sequence[Any]) -> Result:
        self.activity.note_statement(text)
        found = self.parse_or_mark_failed(text)
        result = Result("")
        for parsed in found:
            alone = len(found) == 1
            result = self._bind_and_run_statement(
                text, parsed, parameters if alone else (), keep=alone
            )
        return result

    def parse_or_mark_failed(self, text: str) -> Sequence[Any]:
        try:
            return bind.parse_statements(text)
        except Error:
            self.transactions.fail()
            raise

    @property
    def required_freshness(self) -> Freshness:
        """The freshness that the running statement requires of views."""
        if self._statement_freshness is not None:
            return self._statement_freshness
        wanted: Freshness = self.settings.get("freshness")
        return wanted

    def _bind_and_run_statement(
        self, text: str, parsed: Any, parameters: Sequence[Any], *, keep: bool
    ) -> Result:
        try:
            if not isinstance(parsed.tree, dispatch.WITHOUT_SNAPSHOT):
                self.begin_statement()
            statement, signature = bind.bind_inferring_parameter_types(self, parsed, parameters)
            if isinstance(statement, DataPlan):
                entry = self.compile_statement(statement, text[parsed.start : parsed.end])
        except Error:
            self.transactions.require_not_failed()
            self.transactions.fail()
            raise
        if isinstance(statement, DataPlan):
            if keep:
                cached_plans.keep_plan(self, text, signature, entry)
                if not parameters:
                    literal_plans.learn_shape(self, text, parsed, entry)
            return self.run_and_record_statement(entry, parameters)
        try:
            return dispatch.dispatch_statement(self, statement, parameters)
        except Error:
            self.transactions.fail()
            raise

    def expand_views_and_optimize(self, plan: Node, *, bypass: bool = False) -> Node:
        """The optimized plan, with views read from their state; `bypass`: deferred views are
        computed from their base tables."""
        catalog = self.catalog
        plan = create.expand_views_of_transaction(self, plan) if catalog.views else plan
        over = create.expand_deferred_to_definitions if bypass else create.expand_views_to_state
        readable = over(self, catalog, plan)
        return optimize(
            readable, OptimizerContext(catalog, STORED_EXPRESSIONS, self.shared.table_statistics)
        )

    def compile_statement(
        self, data: DataPlan, text: str, tier: Tier | None = None, wrap: Wrap | None = None
    ) -> CompiledStatement:
        """`text` is what its statistics are kept by; empty: there are none."""
        record = self.shared.statistics.get_or_add_record(text) if text else StatementRecord(text)
        original, optimized, rewriting = data, None, None
        if self.catalog.views:
            own = create.expand_views_of_transaction(self, data.plan)
            original = data = replace(data, plan=own)
            rewriting = query_rewrite.find_rewriting(self, data)
            if rewriting is not None:
                original, data = query_rewrite.make_rewritten_statement(data, rewriting)
                optimized = rewriting.optimized
            elif self.shared.rewrite_rules:
                plan = apply_rewrite_rules(data.plan, self.catalog, self.shared.rewrite_rules)
                original = data = replace(data, plan=plan)
        deferred = create.list_deferred_views_of_plan(self.catalog, data.plan)
        if optimized is None:
            optimized = self.expand_views_and_optimize(data.plan)
        entry = self.compile_optimized_plan(data, optimized, record, tier, wrap, deferred)
        entry.rewriting = rewriting
        if deferred:
            entry.bypass = freshness_policy.BypassCompiler(original, record, tier, wrap)
        return entry

    def compile_optimized_plan(
        self,
        data: DataPlan,
        plan: Node,
        record: StatementRecord,
        tier: Tier | None,
        wrap: Wrap | None = None,
        deferred: tuple[View, ...] = (),
    ) -> CompiledStatement:
        return CompiledStatement(
            self.catalog,
            replace(data, plan=plan),
            tier or self.settings.tier,
            self.shared,
            record,
            wrap,
            deferred=deferred,
        )

    # -- data statements ----------------------------------------------------------------------

    def run_and_record_statement(
        self, entry: CompiledStatement, parameters: Sequence[Any]
    ) -> Result:
        self.transactions.require_not_failed()
        started, busy = time.perf_counter(), time.thread_time()
        record, values = entry.record, self.convert_parameters(entry, parameters)
        try:
            if entry.deferred and self.transactions.open is None:
                freshness_policy.wait_for_batch_if_cheapest(self, entry)
            result = attempts.run_in_transaction(
                self,
                entry.data.changes,
                lambda t: run_plan_and_apply_writes(self, t, entry, values),
                restarts=True,
                repeats=True,
            )
        except BaseException:
            record.errors += 1
            raise
        spent = (time.perf_counter() - started) * 1e6
        record.calls += 1
        record.rows += max(result.affected, 0)
        record.total_us += spent
        record.max_us = max(record.max_us, spent)
        busy_us = (time.thread_time() - busy) * 1e6  # a busy machine makes no plan worse
        newest = self.host.visibility.published_snapshot.position
        if busy_us > REPLAN_AFTER_US and entry.has_stale_estimates(newest):
            self.shared.drop_plan_and_samples(entry)
        return result

    def convert_parameters(self, entry: CompiledStatement, parameters: Sequence[Any]) -> Row:
        try:
            return entry.convert(parameters)
        except Error:
            entry.record.errors += 1
            self.transactions.fail()
            raise

    def run_in_transaction(
        self,
        changes: bool,
        action: Callable[[Transaction], Result],
        *,
        restarts: bool = False,
        repeats: bool = True,
    ) -> Result:
        return attempts.run_in_transaction(
            self, changes, action, restarts=restarts, repeats=repeats
        )

    def begin_statement(self) -> None:
        """Give the next statement of an open transaction the snapshot that its level says."""
        state = self.transactions
        if state.open is not None and not state.failed:
            state.open.begin_statement()

    def begin_implicit_transaction(self) -> Transaction:
        self._transaction_time = None
        return self.transactions.begin(explicit=False)

    def begin_explicit_transaction(self, isolation: Any = None) -> Transaction:
        self._transaction_time = None
        transaction = self.transactions.begin(explicit=True, isolation=isolation)
        transaction.postpone_snapshot()
        return transaction

    def begin_unless_autocommit(self) -> None:
        """Without autocommit every statement is in a transaction, and the first one begins it."""
        if self.transactions.open is None and not self.autocommit:
            self.begin_implicit_transaction().postpone_snapshot()

    def make_function_environment(self) -> Environment:
        now = self.clock()
        if self._transaction_time is None:
            self._transaction_time = now
        identity, schema = self.identity, bind.find_current_schema(self)
        return Environment(
            self._transaction_time,
            now,
            self.clock,
            self.random,
            identity.name_role(self.catalog, identity.role),
            identity.name_role(self.catalog, identity.authorization),
            identity.database,
            schema=schema,
            ask_catalog=self.virtual.ask_catalog,
        )

    def make_run_context(self, reader: Any, parameters: Row, *, environment: bool = True) -> Run:
        limit = self.shared.memory_limit_bytes
        return Run(
            reader,
            parameters,
            self.make_function_environment() if environment else None,  # type: ignore[arg-type]
            self.services,
            self.interrupt,
            Memory(limit, result_bytes_max=limit),
        )
