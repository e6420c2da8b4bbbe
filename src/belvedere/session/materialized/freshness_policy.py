"""The freshness policy: how a statement reads deferred views.

    read       the stored rows, when they are fresh enough
    catch up   apply the pending log to the stored rows, for this read only
    wait       the worker is at the view right now: let it end, then apply the remaining log
    bypass     run the definition over the base tables instead

`latest` and a token require the transaction's position; `session` what the session has written and
read before, inside a transaction its snapshot; '250 ms' bounds the age of the oldest commit that is
not in the view, by the node's own samples (`views.deferred.lag`), and never reads behind what such
a read showed before, which may have been caught up; `any` requires nothing. A statement that reads
other relations together with such a view reads all of them at one position: the view is caught up
then. A view that is not fresh enough is read by the cheapest strategy; EXPLAIN shows all of them.

A statement that was rewritten to a view can run as it was written: that is its bypass, and what it
does when the view is not fresh enough. It is never caught up, because what its definition computes
may fail on a row that the statement would not fail on; nor is it read while the definition fails on
some row, or under SERIALIZABLE, where what was read of the tables has to be known.
"""

from __future__ import annotations

import enum
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.errors import InvalidInput
from belvedere.execution.choose_tier import Tier
from belvedere.execution.python.compile import Wrap
from belvedere.session.context.freshness import Freshness, FreshnessKind
from belvedere.session.context.statement_statistics import StatementRecord
from belvedere.sql.statements import DataPlan
from belvedere.txn.contracts import Reader
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.cost import cost_model
from belvedere.views.state.watermarks import require_applied_position

if TYPE_CHECKING:
    from belvedere.session.session import Session
    from belvedere.session.statement.compiled_statement import CompiledStatement

BYPASS_PENDING_MIN = 1_000
"""With fewer pending commits the view is always caught up."""


class ReadStrategy(enum.StrEnum):
    READ = "read as it is"
    CATCH_UP = "catch up"
    WAIT = "wait"
    BYPASS = "bypass"


class ReadDecision(NamedTuple):
    """`behind` counts commits, of any table, that the views lack; `costs_s` has the seconds of each
    strategy that is possible."""

    strategy: ReadStrategy
    behind: int
    costs_s: dict[ReadStrategy, float]
    age_s: float | None = None
    reason: str = ""


def choose_read_strategy(
    session: Session,
    catalog: Catalog,
    views: tuple[View, ...],
    marks: dict[int, int],
    position: int,
    *,
    alone: bool,
    seen: int | None = None,
) -> ReadDecision:
    """`alone`: the statement reads nothing but these views, which are at one position, and its
    transaction has written nothing, unless the freshness is `any`. `seen`: the position up to which
    the session has read and written before, where reading at that position is enough."""
    wanted: Freshness = session.required_freshness
    mark = min(marks.values())
    behind = max(0, position - mark)
    if not behind or (alone and wanted.kind is FreshnessKind.ANY):
        return ReadDecision(ReadStrategy.READ, behind, {})
    if wanted.kind is FreshnessKind.SESSION and alone and seen is not None and seen <= mark:
        return ReadDecision(ReadStrategy.READ, behind, {})
    age = None
    if wanted.kind is FreshnessKind.BOUNDED:
        deferred = session.host.views.deferred
        age = deferred.samples.max_commit_age_after(mark, deferred.clock())
        young = age is not None and age * 1e6 <= wanted.bound_us
        if alone and young and session.transactions.caught_up_position <= mark:
            return ReadDecision(ReadStrategy.READ, behind, {}, age)
    costs = _estimate_strategy_costs(session, catalog, views, marks, position)
    if behind < BYPASS_PENDING_MIN:
        few = f"fewer than {BYPASS_PENDING_MIN} commits are caught up with, whatever it costs"
        return ReadDecision(ReadStrategy.CATCH_UP, behind, costs, age, few)
    return ReadDecision(min(costs, key=lambda way: costs[way]), behind, costs, age)


def _estimate_strategy_costs(
    session: Session,
    catalog: Catalog,
    views: tuple[View, ...],
    marks: dict[int, int],
    position: int,
) -> dict[ReadStrategy, float]:
    deferred, size_of = session.host.views.deferred, session.shared.estimate_table_rows
    unmeasured = cost_model.UNMEASURED_CHANGE_S
    change_s = sum(
        deferred.get_maintenance_statistics(view).seconds_per_change or unmeasured for view in views
    )
    pending = max(position - mark for mark in marks.values())
    costs = {ReadStrategy.CATCH_UP: cost_model.estimate_read_catch_up_s(pending, change_s)}
    left = [deferred.estimate_busy_seconds_left(view.group) for view in views]
    if session.transactions.open is None and None not in left:
        costs[ReadStrategy.WAIT] = max((one for one in left if one is not None), default=0.0)
    rows = sum(size_of(relation) for view in views for relation in view.inputs)
    costs[ReadStrategy.BYPASS] = cost_model.estimate_view_bypass_s(rows)
    return costs


# -- applying a strategy ---------------------------------------------------------------------------


def choose_statement_and_reader(
    session: Session, transaction: Transaction, entry: CompiledStatement
) -> tuple[CompiledStatement, Reader]:
    """The statement to run and the reader to run it on, so that views are as fresh as required."""
    views = entry.deferred
    if not views:
        return entry, transaction
    if _must_run_as_written(session, transaction, entry) and entry.bypass is not None:
        return entry.bypass(session), transaction
    if _reads_single_relation_at_any_freshness(session, entry):
        _require_no_view_errors(session, views)
        return entry, transaction
    session.host.views.deferred.sample_published_position()
    state, at = session.transactions, _collect_read_situation(session, entry, transaction)
    decision = _choose_strategy_in_transaction(session, entry, transaction, at)
    if decision.strategy is ReadStrategy.READ:
        if decision.behind:
            _require_no_view_errors(session, views)
        if at.seen is not None and session.required_freshness.kind is FreshnessKind.SESSION:
            state.shown_position = max(at.seen, min(at.marks.values()))
        return entry, transaction
    if session.required_freshness.kind is FreshnessKind.BOUNDED:
        state.caught_up_position = max(state.caught_up_position, transaction.position)
    if decision.strategy is ReadStrategy.BYPASS and entry.bypass is not None:
        return entry.bypass(session), transaction
    return entry, session.host.views.open_caught_up_reader(transaction, views)


def _must_run_as_written(
    session: Session, transaction: Transaction, entry: CompiledStatement
) -> bool:
    """Whether a rewritten statement must not read its deferred views now."""
    if not is_rewritten(entry):
        return False
    errors = session.host.views.errors
    return transaction.isolation.validates_reads or any(v.id in errors for v in entry.deferred)


def is_rewritten(entry: CompiledStatement) -> bool:
    return entry.rewriting is not None and bool(entry.rewriting.answers)


def _require_no_view_errors(session: Session, views: tuple[View, ...]) -> None:
    """A view whose definition fails on a row has no correct state: reading its stored rows raises
    that error until the row is deleted."""
    for view in views:
        error = session.host.views.errors.get(view.id)
        if isinstance(error, InvalidInput):
            raise InvalidInput(
                error.message,
                sqlstate=error.sqlstate,
                detail=error.detail,
                hint="the view shows rows again when the row that it fails on is gone",
                view=view.name,
            )


class BypassCompiler:
    """Compiles a statement over the base tables of its deferred views, when first needed."""

    def __init__(
        self, data: DataPlan, record: StatementRecord, tier: Tier | None, wrap: Wrap | None
    ) -> None:
        self._data = data
        self._record = record
        self._tier = tier
        self._wrap = wrap
        self._compiled: CompiledStatement | None = None

    def __call__(self, session: Session) -> CompiledStatement:
        if self._compiled is None:
            plan = session.expand_views_and_optimize(self._data.plan, bypass=True)
            self._compiled = session.compile_optimized_plan(
                self._data, plan, self._record, self._tier, self._wrap
            )
        return self._compiled


def wait_for_batch_if_cheapest(session: Session, entry: CompiledStatement) -> None:
    """Before a statement's own transaction begins: wait for the worker's running batch, if that is
    the cheapest strategy."""
    views = entry.deferred
    if session.required_freshness.kind is FreshnessKind.ANY:
        return
    deferred = session.host.views.deferred
    seen = deferred.moves
    if not any(deferred.estimate_busy_seconds_left(view.group) is not None for view in views):
        return
    decision = _choose_strategy_now(session, entry)
    if decision is not None and decision.strategy is ReadStrategy.WAIT:
        deferred.wait_for_batch(seen, 2 * decision.costs_s[ReadStrategy.WAIT])


def _choose_strategy_now(session: Session, entry: CompiledStatement) -> ReadDecision | None:
    """The decision for the open transaction, or for one that would begin at this moment."""
    with ExitStack() as stack:
        transaction = session.transactions.open or stack.enter_context(session.host.begin())
        if any(transaction.catalog.get(view.id) is not view for view in entry.deferred):
            return None  # planned again first
        at = _collect_read_situation(session, entry, transaction)
        decision = _choose_strategy_in_transaction(session, entry, transaction, at)
        if _must_run_as_written(session, transaction, entry):
            return decision._replace(strategy=ReadStrategy.BYPASS, costs_s={}, reason="")
        return decision


class _ReadSituation(NamedTuple):
    """What a decision rests on, besides the freshness: see `choose_read_strategy`."""

    marks: dict[int, int]
    alone: bool
    seen: int | None


def _collect_read_situation(
    session: Session, entry: CompiledStatement, transaction: Transaction
) -> _ReadSituation:
    marks = {view.id: require_applied_position(transaction, view) for view in entry.deferred}
    any_ = session.required_freshness.kind is FreshnessKind.ANY
    alone = _reads_single_relation_at_any_freshness(session, entry) or (
        _reads_only_views_at_one_position(entry, marks) and (any_ or not transaction.changes)
    )
    state = session.transactions
    single = session.autocommit and not state.explicit and not entry.data.changes
    return _ReadSituation(marks, alone, state.newest_seen_before_open if single else None)


def _choose_strategy_in_transaction(
    session: Session, entry: CompiledStatement, transaction: Transaction, at: _ReadSituation
) -> ReadDecision:
    decision = choose_read_strategy(
        session,
        transaction.catalog,
        entry.deferred,
        at.marks,
        transaction.position,
        alone=at.alone,
        seen=at.seen,
    )
    if decision.strategy is ReadStrategy.READ and transaction.changes and not at.alone:
        decision = decision._replace(
            strategy=ReadStrategy.CATCH_UP
        )  # with what the transaction itself has changed
    if is_rewritten(entry) and (
        decision.strategy is not ReadStrategy.READ or _is_too_old_for_tables(session, decision)
    ):
        return decision._replace(strategy=ReadStrategy.BYPASS, costs_s={}, reason="")
    return decision


def _is_too_old_for_tables(session: Session, decision: ReadDecision) -> bool:
    """Whether a statement that names only tables would show less than they hold: it may do so only
    when its reader allows an age."""
    allowed = session.required_freshness.kind in (FreshnessKind.ANY, FreshnessKind.BOUNDED)
    return bool(decision.behind) and not allowed


def _reads_single_relation_at_any_freshness(session: Session, entry: CompiledStatement) -> bool:
    """Whether the statement reads one relation, at freshness `any`; also through an index."""
    return session.required_freshness.kind is FreshnessKind.ANY and len(entry.data.relations) == 1


def _reads_only_views_at_one_position(entry: CompiledStatement, marks: dict[int, int]) -> bool:
    return len(set(marks.values())) == 1 and set(entry.data.relations) == marks.keys()


class DeferredReads(NamedTuple):
    """What EXPLAIN tells of deferred views: the statement that runs now, which is another one than
    was compiled when views are bypassed, and how they are read, with the cost of each strategy."""

    runs: CompiledStatement
    lines: list[str]


def describe_deferred_reads(session: Session, entry: CompiledStatement) -> DeferredReads:
    if not entry.deferred:
        return DeferredReads(entry, [])
    session.host.views.deferred.sample_published_position()
    decision = _choose_strategy_now(session, entry)
    if decision is None:
        return DeferredReads(entry, [])
    lines = _describe_decision(entry, decision)
    if decision.strategy is ReadStrategy.BYPASS and entry.bypass is not None:
        if is_rewritten(entry):
            lines[0] += ": it runs over tables, as it was written"
        return DeferredReads(entry.bypass(session), lines)
    return DeferredReads(entry, lines)


def _describe_decision(entry: CompiledStatement, decision: ReadDecision) -> list[str]:
    names = ", ".join(view.name for view in entry.deferred)
    behind = f"{decision.behind} commit{'' if decision.behind == 1 else 's'} behind"
    lines = [f"deferred {names}: {decision.strategy} ({behind})"]
    if decision.age_s is not None:
        lines[0] += f", nothing it lacks is older than {decision.age_s * 1000:.1f} ms"
    shown = [f"{way} {cost * 1000:.3f} ms" for way, cost in decision.costs_s.items()]
    costs = "cost: " + ", ".join(shown)
    if decision.reason and min(decision.costs_s.values()) < decision.costs_s[decision.strategy]:
        costs += f"; {decision.reason}"
    return [*lines, costs] if shown else lines
