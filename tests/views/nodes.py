"""Nodes on one row-atomic store, for tests of views."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from belvedere.codec import accumulator, keyspace
from belvedere.config import Config
from belvedere.database import Database
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.statement.catalog_expressions import compile_row_expression
from belvedere.txn.row_atomic.commit_protocol import RowCommit
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.node import NodeSettings
from belvedere.views.service import ViewService
from tests.unrewritten import make_unrewritten_session

SETTINGS = NodeSettings(grace_seconds=0.0, lease_seconds=300.0, work_seconds_max=60.0)
IMPATIENT = NodeSettings(
    grace_seconds=0.0, lease_seconds=300.0, work_seconds_max=60.0, lock_wait_seconds_max=0.0
)
TABLES = (
    "CREATE TABLE product (id int PRIMARY KEY, name text)",
    "CREATE TABLE orders (id int PRIMARY KEY, product int, amount int)",
)
PAIRS = "SELECT o.id AS o, p.name AS p FROM orders o JOIN product p ON p.id = o.product"
GREATEST = "SELECT product, max(amount) AS m FROM orders GROUP BY product"
TOTALS = "SELECT product, count(*) AS n, sum(amount) AS s FROM orders GROUP BY product"


class Node:
    """A database on a shared store, with one session."""

    def __init__(
        self,
        store: MemoryCells,
        settings: NodeSettings = SETTINGS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        with mock.patch.object(ViewService, "start_or_wake_worker", return_value=None):
            self.db = Database.on_cells(
                CellStoreSetup(store, settings, clock, sends_heartbeats=False),
                Config(statement_retries_max=0),
                compile_expression=compile_row_expression,
                bind=bind_simplified_definition,
            )
        self.db.views.start_or_wake_worker = lambda: None  # type: ignore[method-assign]
        self.session = make_unrewritten_session(self.db.open_shared_state())
        self.session.execute("SET freshness = 'latest'")

    @property
    def commits(self) -> RowCommit:
        assert isinstance(self.db.commits, RowCommit)
        return self.db.commits

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        self.db.begin(at_least=self.commits.latest_position()).rollback()
        for statement in statements:
            rows = [tuple(row) for row in self.session.execute(statement).rows or ()]
        return rows

    def close(self) -> None:
        self.db.close()


@contextmanager
def nodes(
    count: int,
    settings: NodeSettings = SETTINGS,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[list[Node]]:
    store = MemoryCells()
    made = [Node(store, clock=clock)] + [Node(store, settings, clock) for _ in range(count - 1)]
    made[0].run(*TABLES)
    try:
        yield made
    finally:
        for node in made:
            node.close()


def before_the_log_row(node: Node, action: Callable[[], None]) -> Any:
    """Run `action` when the node's next commit has derived its rows and holds its locks."""
    complete, done = node.commits._group.complete_commit, []

    def late(*arguments: Any) -> int:
        if not done:
            done.append(True)
            action()
        return complete(*arguments)

    return mock.patch.object(node.commits._group, "complete_commit", late)


def agrees(node: Node, view: str, query: str) -> bool:
    return sorted(node.run(f"SELECT * FROM {view}")) == sorted(node.run(query))


def racing(node: Node, other: Callable[[], object]) -> Callable[..., None]:
    """Another node does something between this one's snapshot and its batch."""
    derive, done = node.commits.derive, []

    def late(make: Any, **options: Any) -> None:
        if not done:
            done.append(True)
            other()
        derive(make, **options)

    return late


def damage(node: Node, view: Any) -> None:
    """Add a row that is not there to the first group of a view."""

    def make(reader: Any) -> list[tuple[bytes, bytes | None]]:
        ((key, state), *_) = next(reader.scan(*keyspace.relation_range(view.id)))
        payload, amounts = accumulator.decode(state)
        return [(key, accumulator.add(state, payload, tuple(1 for _ in amounts)))]

    node.commits.derive(make)
