"""State shared by all sessions of an open store: DuckDB engine, plan cache, statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.plan.nodes import Node
from belvedere.session.context.activity import OpenSessions
from belvedere.session.context.database_contract import DatabaseContract
from belvedere.session.context.notifications import NotificationHub
from belvedere.session.context.plan_cache import PlanCache
from belvedere.session.context.statement_statistics import StatementStatistics
from belvedere.session.context.table_statistics import TableStatistics
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import estimate_rows
from belvedere.txn.contracts import Reader
from belvedere.views.read.rewrite_rules import RewriteRule
from belvedere.views.read.rewrite_to_index import rewrite_to_index_views
from belvedere.views.rewrite.planner import RewritePlanner

if TYPE_CHECKING:
    from belvedere.execution.duckdb.columnar_cache import ColumnarCache
    from belvedere.session.statement.compiled_statement import CompiledStatement

PLANS_MAX = 2_000


class SharedState:
    def __init__(self, host: DatabaseContract, memory_limit_mb: int = 1024) -> None:
        self.host = host
        self.memory_limit_bytes = memory_limit_mb * 2**20
        copies = self._create_columnar_cache if host.config.columnar_bytes_max else None
        self.engine = DuckEngine(memory_limit_mb, make_copies=copies)
        self.statistics = StatementStatistics()
        self.notifications = NotificationHub()
        self.sessions = OpenSessions()
        self.plans = PlanCache(PLANS_MAX)
        self.shapes = PlanCache(PLANS_MAX)  # of texts without parameters
        self.rewrite_rules: tuple[RewriteRule, ...] = (
            rewrite_to_index_views,
        )  # rules by which views answer queries
        self._published: tuple[object, Reader] | None = None
        self.table_statistics = TableStatistics(
            host, self.get_published_reader, host.engine.shared_samples
        )
        self.rewrites = RewritePlanner(host.views.registry, self.table_statistics)

    def describe_store_settings(self) -> dict[str, Any]:
        """What all connections to the open store have in common, by the names of options."""
        limit_mb = self.memory_limit_bytes // 2**20
        return {**asdict(self.host.config), "memory_limit_mb": limit_mb}

    def _create_columnar_cache(self) -> ColumnarCache:
        from belvedere.execution.duckdb.columnar_cache import CacheBudget, ColumnarCache  # heavy

        config = self.host.config
        bytes_max = min(config.columnar_bytes_max, self.memory_limit_bytes)
        return ColumnarCache(self.host.log, CacheBudget(bytes_max, config.columnar_rows_min))

    def get_published_reader(self) -> Reader:
        """A reader of what is published now, for one get: it holds no snapshot, so a second read
        may see more than the first."""
        published = self.host.visibility.published_snapshot
        known = self._published
        if known is not None and known[0] is published:
            return known[1]
        reader = self.host.visibility.reader(published)
        self._published = (published, reader)
        return reader

    def estimate_table_rows(self, relation: int) -> float:
        """The estimated number of rows of a table."""
        return self.table_statistics.row_count(relation)

    def make_row_estimator(self, catalog: Catalog) -> Callable[[Node], float]:
        context = OptimizerContext(catalog, STORED_EXPRESSIONS, self.table_statistics)
        return lambda node: estimate_rows(node, context)

    def drop_plan_and_samples(self, entry: CompiledStatement) -> None:
        """Drop a statement's plan and the samples of its tables; its next run compiles it."""
        for relation in entry.data.relations:
            self.table_statistics.forget_sample(relation)
        self.plans.drop_entry(entry)

    def close(self) -> None:
        self.engine.close()
