"""State shared by all sessions of an open store: DuckDB engine, plan cache, statistics.

`DatabaseContract` is the contract between sessions and the database; the database satisfies it
without knowing sessions.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.config import Config
from belvedere.errors import Error
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.plan.nodes import Node
from belvedere.session.context.statement_statistics import StatementStatistics
from belvedere.session.context.table_statistics import TableStatistics
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import estimate_rows
from belvedere.txn.contracts import (
    SNAPSHOT,
    ChangeLog,
    Isolation,
    Participant,
    PublishedState,
    Reader,
    SingleRowCommits,
)
from belvedere.txn.transaction.locks import RowLockTable
from belvedere.txn.transaction.sequences import Sequences
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.read.rewrite_rules import RewriteRule
from belvedere.views.read.rewrite_to_index import rewrite_to_index_views
from belvedere.views.rewrite.planner import RewritePlanner
from belvedere.views.service import ViewService

if TYPE_CHECKING:
    from belvedere.execution.duckdb.columnar_cache import ColumnarCache
    from belvedere.session.statement.compiled_statement import CompiledStatement

PLANS_MAX = 2_000
PLAN_CHARACTERS_MAX = 2_000_000


class DatabaseContract(Protocol):
    """An open store, as sessions use it."""

    config: Config
    sequences: Sequences
    visibility: PublishedState
    locks: RowLockTable
    log: ChangeLog
    single_row_commits: SingleRowCommits | None

    @property
    def catalog(self) -> Catalog: ...

    @property
    def position(self) -> int: ...

    def begin(
        self, isolation: Isolation = SNAPSHOT, *, at_least: int = 0, wait_s: float = 30.0
    ) -> Transaction: ...

    def change_schema(self, change: Callable[[CatalogEdit], Any]) -> Any: ...

    def participants_for(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]: ...

    views: ViewService

    @property
    def row_atomic(self) -> bool: ...

    @property
    def housekeeping_failure(self) -> Error | None: ...

    def position_to_token(self, position: int) -> str: ...

    def token_to_position(self, text: str) -> int: ...


class SharedState:
    def __init__(self, host: DatabaseContract, memory_limit_mb: int = 1024) -> None:
        self.host = host
        self.memory_limit_bytes = memory_limit_mb * 2**20
        copies = self._create_columnar_cache if host.config.columnar_bytes_max else None
        self.engine = DuckEngine(memory_limit_mb, make_copies=copies)
        self.statistics = StatementStatistics()
        self.plans = PlanCache(PLANS_MAX)
        self.rewrite_rules: tuple[RewriteRule, ...] = (
            rewrite_to_index_views,
        )  # rules by which views answer queries
        self._published: tuple[object, Reader] | None = None
        self.table_statistics = TableStatistics(host, self.get_published_reader)
        self.rewrites = RewritePlanner(host.views.registry, self.table_statistics)

    def _create_columnar_cache(self) -> ColumnarCache:
        from belvedere.execution.duckdb.columnar_cache import CacheBudget, ColumnarCache  # heavy

        config = self.host.config
        return ColumnarCache(
            self.host.log, CacheBudget(config.columnar_bytes_max, config.columnar_rows_min)
        )

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


class PlanCache:
    """Compiled statements by text; the oldest are evicted first. A plan is of one catalog.

    The memory of a plan grows with its text, some 50 bytes for each character, so the cache bounds
    the total length of texts as well as their number: long lists of constants do not exhaust it.
    """

    def __init__(self, size: int, characters: int = PLAN_CHARACTERS_MAX) -> None:
        self._size = size
        self._characters = characters
        self._mutex = threading.Lock()
        self._entries: OrderedDict[Any, Any] = OrderedDict()
        self._character_count = 0  # characters
        self.get = self._entries.get  # without the lock: a dict read is atomic

    def put(self, key: Any, entry: Any) -> None:
        with self._mutex:
            if key in self._entries:
                self._remove_key(key)
            self._entries[key] = entry
            self._character_count += _key_text_length(key)
            while len(self._entries) > self._size or self._character_count > self._characters:
                self._remove_key(next(iter(self._entries)))

    def drop_entry(self, entry: Any) -> None:
        with self._mutex:
            for key in [key for key, known in self._entries.items() if known is entry]:
                self._remove_key(key)

    def _remove_key(self, key: Any) -> None:
        del self._entries[key]
        self._character_count -= _key_text_length(key)

    def clear(self) -> None:
        with self._mutex:
            self._entries.clear()
            self._character_count = 0

    def __len__(self) -> int:
        return len(self._entries)


def _key_text_length(key: Any) -> int:
    """A key is a text, or the settings of a plan and a text."""
    return len(key[1] if isinstance(key, tuple) else key)
