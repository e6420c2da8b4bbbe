"""A query whose rows are computed as they are fetched.

It reads through a fork of its transaction, so it keeps showing what the statement saw at its
beginning, while the session runs other statements, commits or rolls back. Its snapshot is kept
until it has ended or is closed.

Scans, filters, projections, limits, look-up joins, UNION ALL and calls of table functions run as
Python generators: the first row is there before the last is computed, and no more rows are held
than are fetched at a time. Any other plan is computed whole at the first fetch, within the memory
limit, by the tier that EXPLAIN names; its rows are made from Arrow columns as they are fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from belvedere.errors import Error, InvalidInput, Unsupported
from belvedere.execution.choose_tier import Tier, changes_data
from belvedere.execution.duckdb.rows import rows_of
from belvedere.execution.python.compile import compile_plan
from belvedere.plan import nodes as n
from belvedere.session.materialized import freshness_policy
from belvedere.session.statement import bind
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.sql.statements import DataPlan
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row
from belvedere.views.read.reading_errors import name_views_in_row_errors

if TYPE_CHECKING:
    from belvedere.session.session import Session

ARROW_ROWS = 2_000
"""How many rows are made from Arrow columns at a time."""


class QueryStream:
    """Created by `open_query_stream`; used by one thread at a time, as its session."""

    def __init__(
        self, session: Session, transaction: Transaction, data: DataPlan, rows: Iterator[Row]
    ) -> None:
        self.fields = data.plan.fields
        self.origins = data.origins
        self.abandoned = False
        """Nobody will fetch from it again; the session closes it when it opens the next one."""
        self._session = session
        self._transaction = transaction
        self._rows = rows
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

    def close(self) -> None:
        """Let go of the snapshot; idempotent."""
        self._rows = iter(())
        self._transaction.rollback()
        self._session.streams.discard(self)

    def abandon(self) -> None:
        """Only note that it is over: called by the garbage collector, in the midst of anything."""
        self.abandoned = True


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
        rows = _iterate_rows(session, entry, run)
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


def _iterate_rows(session: Session, entry: CompiledStatement, run: Any) -> Iterator[Row]:
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
