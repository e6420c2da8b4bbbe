"""A compiled data statement: parameter converter, compiled plan, single-row fast paths, tier."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.execution.choose_tier import (
    ExecutionChoice,
    Tier,
    choose_tier,
    compile_for_tier,
)
from belvedere.execution.python.compile import Wrap
from belvedere.execution.python.few_rows_read import (
    compile_bounded_read,
    compile_few_rows_read,
    needs_snapshot,
)
from belvedere.execution.python.statements.few_rows_writes import compile_few_rows_write
from belvedere.execution.python.statements.many_rows_insert import (
    ManyRowsInsert,
    compile_many_rows_insert,
)
from belvedere.execution.python.statements.page_reads import compile_page_read
from belvedere.execution.python.statements.point_statements import (
    FastPathCommit,
    FastPathRead,
    FastPathWrite,
    compile_fast_read,
)
from belvedere.execution.python.statements.point_writes import (
    compile_fast_commit,
    compile_fast_write,
)
from belvedere.execution.run import Rows
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Function
from belvedere.plan.plan_items import walk_plan_items
from belvedere.session.context.shared_state import SharedState
from belvedere.session.context.statement_statistics import StatementRecord
from belvedere.session.statement.immediate_checks import ImmediateChecks, find_statement_checks
from belvedere.session.statement.parameters import make_exact_converter
from belvedere.sql.statements import DataPlan
from belvedere.types import Kind, Row
from belvedere.views.read.reading_errors import name_views_in_read_errors, name_views_in_row_errors
from belvedere.views.rewrite.planner import RewriteChoice


class CompiledStatement:
    """One statement, compiled for one catalog and one tier setting: the entry of the plan cache."""

    __slots__ = (
        "bypass",
        "catalog",
        "checks",
        "choice",
        "convert",
        "data",
        "deferred",
        "deferred_read",
        "estimated",
        "fast_read",
        "fast_write",
        "is_point_read",
        "many_rows_insert",
        "needs_environment",
        "needs_snapshot",
        "plain",
        "position",
        "record",
        "rewriting",
        "rows",
        "single_row_commit",
        "target",
        "text",
        "tier",
        "verb",
    )

    def __init__(
        self,
        catalog: Catalog,
        data: DataPlan,
        tier: Tier,
        shared: SharedState,
        record: StatementRecord,
        wrap: Wrap | None = None,
        deferred: tuple[View, ...] = (),
    ) -> None:
        """`deferred` are the deferred views the plan reads."""
        self.deferred = deferred
        self.bypass: Callable[[Any], CompiledStatement] | None = None  # of a session
        self.rewriting: RewriteChoice | None = None
        self.catalog = catalog
        self.data = data
        self.tier = tier
        self.position = shared.host.visibility.published_snapshot.position
        self.record = record
        self.verb = data.verb.upper()
        self.text = record.text
        self.convert: Callable[[Sequence[Any]], Row] = make_exact_converter(
            data.parameters, data.zone
        )
        self.needs_environment = _calls_environment_functions(data.plan)
        kinds = {(field.type.element or field.type).kind for field in data.plan.fields}
        self.plain = kinds.isdisjoint((Kind.INTERVAL, Kind.REAL))
        if data.zone is not datetime.UTC and Kind.TIMESTAMPTZ in kinds:
            self.plain = False
        self.fast_read: FastPathRead | None = None
        self.deferred_read: FastPathRead | None = None  # of its one deferred view, as stored
        self.fast_write: FastPathWrite | None = None
        self.single_row_commit: FastPathCommit | None = None
        self.many_rows_insert: ManyRowsInsert | None = None  # see `find_many_rows_insert`
        self.target = _strip_with_clauses(data.plan)
        self.is_point_read, self.estimated, self.needs_snapshot = False, True, False
        if wrap is None and tier is not Tier.DUCKDB:
            self._compile_fast_paths(shared)
        self.checks: ImmediateChecks | None = (
            None
            if self.fast_write is None
            else find_statement_checks(shared.host, catalog, self.target)
        )
        self.choice: ExecutionChoice = choose_tier(
            data.plan, tier, shared.estimate_table_rows, shared.make_row_estimator(catalog)
        )
        if wrap is None and self.choice.free and self.choice.tier is Tier.DIRECT:
            self._find_bounded_read(shared)
        rows = compile_for_tier(catalog, data.plan, self.choice, shared.engine, wrap)
        self.rows: Rows = name_views_in_row_errors(
            shared.host.views.registry, catalog, data.plan, rows
        )
        record.tier = self.choice.tier.value

    def _compile_fast_paths(self, shared: SharedState) -> None:
        catalog, data, registry = self.catalog, self.data, shared.host.views.registry
        few_rows = shared.host.single_row_commits is not None
        if len(self.deferred) == len(data.relations) == 1 and few_rows and not data.changes:
            read = compile_few_rows_read(catalog, data.plan)
            self.deferred_read = name_views_in_read_errors(registry, catalog, data.plan, read)
        if self.deferred:
            return
        if not data.changes:
            point = compile_fast_read(catalog, data.plan)
            self.is_point_read = point is not None and _reads_local_tables(shared, data)
            read = point or _compile_fast_scan_read(catalog, data.plan, shared)
            self.fast_read = name_views_in_read_errors(registry, catalog, data.plan, read)
            self.needs_snapshot = read is not None and needs_snapshot(data.plan)
        elif not data.returns:
            self.fast_write = compile_fast_write(catalog, data.plan)
            self.estimated = self.fast_write is None
            if self.fast_write is None and few_rows:
                self.fast_write = compile_few_rows_write(catalog, data.plan)
            if few_rows:
                self.single_row_commit = compile_fast_commit(catalog, data.plan)

    def _find_bounded_read(self, shared: SharedState) -> None:
        """The fast path of a query for few rows that has none yet."""
        few_rows = shared.host.single_row_commits is not None
        if self.fast_read is not None or self.deferred or self.data.changes or not few_rows:
            return
        catalog, plan = self.catalog, self.data.plan
        read = compile_bounded_read(catalog, plan)
        registry = shared.host.views.registry
        self.fast_read = name_views_in_read_errors(registry, catalog, plan, read)
        self.needs_snapshot = True

    def find_many_rows_insert(self) -> ManyRowsInsert | None:
        """What inserts many rows at once; compiled when it is first asked for."""
        if self.fast_write is not None and self.many_rows_insert is None:
            self.many_rows_insert = compile_many_rows_insert(self.catalog, self.data.plan)
        return self.many_rows_insert

    def has_stale_estimates(self, position: int) -> bool:
        """Whether a plan for few rows was made from row counts that may be out of date. That of
        one row by its key, or of a list of VALUES, was made from none: it may be slow because a
        sync is, or because the list is long, and is kept."""
        chosen = self.tier is Tier.AUTO and self.choice.tier is Tier.DIRECT
        if not chosen or not self.estimated or position <= self.position:
            return False
        return any(isinstance(item, n.Scan) for item in walk_plan_items(self.data.plan))


def _reads_local_tables(shared: SharedState, data: DataPlan) -> bool:
    """Whether it reads a table, and not over a network, as that of a row-atomic store does."""
    return bool(data.relations) and shared.host.single_row_commits is not None


def _compile_fast_scan_read(
    catalog: Catalog, plan: n.Node, shared: SharedState
) -> FastPathRead | None:
    """On a batch-atomic store one scan is consistent without a snapshot."""
    if shared.host.single_row_commits is None:
        return None
    return compile_page_read(catalog, plan) or compile_few_rows_read(catalog, plan)


def _strip_with_clauses(node: n.Node) -> n.Node:
    """The node whose changes the statement counts as affected rows."""
    while isinstance(node, n.With):
        node = node.body
    return node


def _calls_environment_functions(node: n.Node) -> bool:
    for item in walk_plan_items(node):
        for part in _list_called_functions(item):
            if part.environment:
                return True
    return False


def _list_called_functions(item: Any) -> tuple[Function, ...]:
    match item:
        case e.Call() | e.Cast() | e.AggregateCall() | e.WindowCall() | n.TableCall():
            return (item.function,)
        case _:
            return ()
