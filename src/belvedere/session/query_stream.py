"""A query whose rows are computed as they are fetched, and one whose rows are computed at once.

A stream reads through a fork of its transaction, so it keeps showing what the statement saw at
its beginning, while the session runs other statements, commits or rolls back. Its snapshot is kept
until it has ended or is closed.

Scans, filters, projections, limits, look-up joins, UNION ALL and calls of table functions run as
Python generators: the first row is there before the last is computed, and no more rows are held
than are fetched at a time. Any other plan is computed whole at the first fetch, within the memory
limit, by the tier that EXPLAIN names; its rows are made from Arrow columns as they are fetched.

A door that sends rows (`Session.sends_streams`) gets a stream as the result of a query that only
reads a large table from its beginning, as columns where the rows are not computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from belvedere.errors import Error, InvalidInput, Unsupported
from belvedere.execution.choose_tier import Tier, changes_data
from belvedere.execution.duckdb.rows import rows_of
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.statements.point_statements import FastPathRun
from belvedere.execution.run import Run
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.plan_items import SUBQUERIES, walk_plan_items
from belvedere.session.context.result import Result
from belvedere.session.materialized import freshness_policy
from belvedere.session.statement import bind
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.sql.statements import DataPlan
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row
from belvedere.views.read.reading_errors import name_views_in_row_errors

if TYPE_CHECKING:
    import pyarrow as pa

    from belvedere.session.session import Session

Part: TypeAlias = "pa.Table | list[Row]"
ARROW_ROWS = 2_000
"""How many rows are made from Arrow columns at a time."""
PART_ROWS = 2_000
STREAM_WORK = 100_000
"""From how many rows of work on a result is a stream."""


class QueryStream:
    """Created by `open_query_stream` and `run_plan_and_apply_writes`; used by one thread at a time,
    as its session."""

    def __init__(
        self,
        session: Session,
        transaction: Transaction,
        data: DataPlan,
        rows: Iterator[Row],
        parts: Iterator[Part] | None = None,
    ) -> None:
        """`parts` are the same rows, where they are computed in parts."""
        self.fields = data.plan.fields
        self.origins = data.origins
        self.abandoned = False
        """Nobody will fetch from it again; the session closes it when it opens the next one."""
        self._session = session
        self._transaction = transaction
        self._rows = rows
        self._parts = parts or iter(lambda: list(islice(rows, PART_ROWS)), [])
        session.streams.add(self)

    def fetch_rows(self, count: int) -> list[Row]:
        """At most `count` rows; none when it has ended. Open to `cancel` and the statement timeout,
        as a statement is."""
        try:
            found = self._session.run_with_timeout(lambda: list(islice(self._rows, count)))
        except BaseException:
            self.close()
            raise
        if len(found) < count:
            self.close()
        return found

    def send_parts(self, send: Callable[[Part], int]) -> int:
        """Send everything, as it is computed, of a stream that nothing was fetched from; returns
        the sum of what `send` returned."""
        try:
            return self._session.run_with_timeout(lambda: sum(map(send, self._parts)))
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the snapshot; idempotent."""
        self._rows, self._parts = iter(()), iter(())
        self._transaction.rollback()
        self._session.streams.discard(self)

    def abandon(self) -> None:
        """Only note that it is over: called by the garbage collector, in the midst of anything."""
        self.abandoned = True


# -- a stream --------------------------------------------------------------------------------------


def open_query_stream(
    session: Session, text: str, parameters: Sequence[Any], freshness: str | None = None
) -> QueryStream:
    for other in [one for one in session.streams if one.abandoned]:
        other.close()
    with session.hold_freshness(freshness):
        session.transactions.require_not_failed()
        try:
            return session.run_with_timeout(lambda: _begin_stream(session, text, parameters))
        except Error:
            session.transactions.fail()
            raise


def _begin_stream(session: Session, text: str, parameters: Sequence[Any]) -> QueryStream:
    entry, values = _compile_query(session, text, parameters)
    transaction = _fork_transaction(session)
    try:
        if entry.catalog is not transaction.catalog:
            transaction.rollback()
            return _begin_stream(session, text, parameters)
        entry, reader = freshness_policy.choose_statement_and_reader(session, transaction, entry)
        run = session.make_run_context(reader, values, environment=entry.needs_environment)
        rows = iterate_rows(session, entry, run)
        return QueryStream(session, transaction, entry.data, rows)
    except BaseException:
        transaction.rollback()
        raise


def _compile_query(
    session: Session, text: str, parameters: Sequence[Any]
) -> tuple[CompiledStatement, Row]:
    parsed = bind.parse_statements(text)
    if len(parsed) != 1:
        raise InvalidInput("a stream is of one statement", sqlstate="42601", found=len(parsed))
    data, _ = bind.bind_inferring_parameter_types(session, parsed[0], parameters)
    if not isinstance(data, DataPlan) or not data.returns or changes_data(data.plan):
        raise Unsupported("stream of a statement that is not a query", hint="use execute")
    entry = session.compile_statement(data, text)
    return entry, entry.convert(parameters)


def _fork_transaction(session: Session) -> Transaction:
    state = session.transactions
    if state.open is None and session.autocommit:
        transaction = session.host.begin(at_least=state.floor)
        state.last_reader = transaction
        return transaction
    transaction = state.open or session.begin_implicit_transaction()
    transaction.begin_statement()
    return transaction.fork_for_reading()


def iterate_rows(session: Session, entry: CompiledStatement, run: Run) -> Iterator[Row]:
    """The rows of a query, as they are computed where they can be."""
    plan = entry.data.plan
    if entry.tier is not Tier.DUCKDB and _streams_rows_lazily(plan):
        rows = compile_plan(entry.catalog, plan)
        yield from name_views_in_row_errors(session.host.views.registry, entry.catalog, plan, rows)(
            run
        )
        return
    found = entry.rows(run)
    table = getattr(found, "table", None)
    if table is None:
        yield from found
        return
    types = tuple(field.type for field in plan.fields)
    for at in range(0, table.num_rows, ARROW_ROWS):
        yield from rows_of(table.slice(at, ARROW_ROWS), types)


def _streams_rows_lazily(node: n.Node) -> bool:
    """Whether Python computes each row of the plan when it is fetched, holding no others."""
    match node:
        case n.Scan() | n.Values() | n.TableFunction() | n.VirtualScan() | n.ForeignScan():
            return True
        case n.Filter() | n.Project() | n.Limit():
            return _streams_rows_lazily(node.input)
        case n.Join() if node.lookup is not None:
            return _streams_rows_lazily(node.left)
        case n.SetOperation() if node.kind is n.SetKind.UNION and node.all:
            return _streams_rows_lazily(node.left) and _streams_rows_lazily(node.right)
        case _:
            return False


# -- a statement -----------------------------------------------------------------------------------


def run_plan_and_apply_writes(
    session: Session, transaction: Transaction, entry: CompiledStatement, values: Row
) -> Result:
    """Read everything, then write everything; or begin to read, if the door takes streams."""
    data = entry.data
    if entry.fast_write is not None:
        written = entry.fast_write(transaction, FastPathRun(values, session.services))
        if written is not None:
            return Result(entry.verb, None, None, written)
    if session.sends_streams and _returns_large_table(entry):
        stream = _open_result_stream(session, transaction.fork_for_reading(), entry, values)
        return Result("SELECT", data.plan.fields, stream=stream, origins=data.origins)
    entry, reader = freshness_policy.choose_statement_and_reader(session, transaction, entry)
    run = session.make_run_context(reader, values, environment=entry.needs_environment)
    found = entry.rows(run)
    table = getattr(found, "table", None)
    rows = [] if table is not None else run.memory.hold_rows(found)
    affected = len(rows) if table is None else table.num_rows
    for write in run.changes:
        write.apply(transaction)
        if write.node is entry.target:
            affected = write.affected
    if not data.returns:
        return Result(data.verb.upper(), None, None, affected)
    return Result(data.verb.upper(), data.plan.fields, rows, affected, table, origins=data.origins)


def _returns_large_table(entry: CompiledStatement) -> bool:
    """Whether it returns all rows of a large table or range: one that also filters may read many
    for few, which DuckDB does faster."""
    if entry.deferred or entry.data.changes or entry.tier is Tier.DUCKDB:
        return False
    large = entry.tier is Tier.DIRECT or entry.choice.work > STREAM_WORK
    return large and _passes_rows_on(entry.data.plan) and not _computes_more(entry.data.plan)


def _computes_more(node: n.Node) -> bool:
    return any(isinstance(item, (*SUBQUERIES, e.SequenceCall)) for item in walk_plan_items(node))


def _passes_rows_on(node: n.Node) -> bool:
    match node:
        case n.Scan():
            return node.residual is None and bool(node.slots)
        case n.Project() | n.Limit():
            return _passes_rows_on(node.input)
        case n.SetOperation() if node.kind is n.SetKind.UNION and node.all:
            return _passes_rows_on(node.left) and _passes_rows_on(node.right)
        case _:
            return False


def _open_result_stream(
    session: Session, transaction: Transaction, entry: CompiledStatement, values: Row
) -> QueryStream:
    run = session.make_run_context(transaction, values, environment=entry.needs_environment)
    plan, parts = entry.data.plan, None
    if isinstance(plan, n.Scan):
        from belvedere.execution.split_tiers import iterate_scan_parts  # heavy

        parts = iterate_scan_parts(entry.catalog, plan, run)
    if parts is None:
        rows = iterate_rows(session, entry, run)
        return QueryStream(session, transaction, entry.data, rows)
    types = tuple(field.type for field in plan.fields)
    each = (one if isinstance(one, list) else rows_of(one, types) for one in parts)
    return QueryStream(session, transaction, entry.data, chain.from_iterable(each), parts)
