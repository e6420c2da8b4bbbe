"""Belvedere, by every path that a statement can take, and PostgreSQL, for the same scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg

import belvedere
from tests.consistency.isolation.stage import Answer
from tests.oracle.postgres import Postgres

SESSIONS = 4
"""Two with transactions that write; the statements of the others never wait while they hold a
lock."""

TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, grp int NOT NULL, v int NOT NULL)",
    "CREATE TABLE u (id int PRIMARY KEY, v int NOT NULL)",
    "CREATE INDEX t_grp ON t (grp, id)",
)
VIEW = "VIEW m AS SELECT grp, count(*) AS n, sum(v) AS s FROM t GROUP BY grp"
ROWS = (
    "INSERT INTO t VALUES (1, 1, 10), (2, 2, 20), (3, 1, 30), (4, 2, 40)",
    "INSERT INTO u VALUES (1, 100)",
)
FAST_PATHS = ("fast_read", "deferred_read", "fast_write", "single_row_commit")
"""Of a compiled statement; without them it goes the plain path."""


class BelvedereEngine:
    """`paths`: fast (as it is), plain (without fast paths), duckdb (queries go there)."""

    def __init__(self, connections: Sequence[belvedere.Connection], paths: str) -> None:
        self._connections = connections
        self._locks = connections[0]._session.host.locks
        self._paths = paths
        for statement in (*TABLES, f"CREATE MATERIALIZED {VIEW}"):
            connections[0].execute(statement)
        for statement in ROWS:
            connections[0].execute(statement)
        for connection in connections:
            connection.execute("SET default_transaction_isolation = 'read committed'")
            if paths == "duckdb":
                connection.execute("SET tier = 'duckdb'")

    def execute(self, who: int, text: str, parameters: tuple[Any, ...]) -> Answer:
        try:
            cursor = self._connections[who].execute(text, parameters)
        except belvedere.Error as error:
            return str(error.sqlstate)
        if cursor.description is not None:
            return tuple(tuple(row) for row in cursor.fetchall())
        return (cursor.rowcount,) if text[:6] in ("INSERT", "UPDATE", "DELETE") else ()

    def is_waiting(self, unfinished: Sequence[int]) -> bool:
        waiting = [lock for lock in self._locks.list_locks() if not lock.granted]
        return len(waiting) == len(unfinished)

    def reset(self) -> None:
        for connection in self._connections:
            connection.execute("ROLLBACK")
        first = self._connections[0]
        for statement in ("DELETE FROM t", "DELETE FROM u", *ROWS):
            first.execute(statement)

    def uses_fast_path(self, text: str) -> bool:
        """Whether the plan of a text has a fast path. A plan is made by a run, and dropped after a
        slow one: the statement runs until its plan is kept."""
        plans = self._connections[0]._session.shared.plans
        while (entry := plans.get(text)) is None:
            self.execute(0, text, (1,) * text.count("?"))
        return any(getattr(entry, name) is not None for name in FAST_PATHS)


@contextmanager
def open_belvedere(path: Path, paths: str, durability: str = "off") -> Iterator[BelvedereEngine]:
    with ExitStack() as stack:
        connections = [
            stack.enter_context(
                belvedere.connect(str(path), autocommit=True, durability=durability)
            )
            for _ in range(SESSIONS)
        ]
        if paths == "plain":
            plans = connections[0]._session.shared.plans
            stack.enter_context(patch.object(plans, "put", partial(_put_plain, plans.put)))
        yield BelvedereEngine(connections, paths)


def _put_plain(put: Callable[[Any, Any], None], key: Any, entry: Any) -> None:
    """Keep a plan without its fast paths: in one engine only, the others keep theirs."""
    for name in FAST_PATHS:
        setattr(entry, name, None)
    put(key, entry)


class PostgresEngine:
    """The same tables, with a plain view in place of the materialized one. Its plans read by index,
    so that rows are locked in the order of their keys, as Belvedere does."""

    def __init__(self, postgres: Postgres) -> None:
        for statement in ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", *TABLES, *ROWS):
            assert postgres.run(statement).sqlstate is None
        assert postgres.run(f"CREATE {VIEW}").sqlstate is None
        self._monitor = postgres.connection
        self._connections = [postgres.connect(autocommit=True) for _ in range(SESSIONS)]
        for connection in self._connections:
            connection.prepare_threshold = None
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET enable_bitmapscan = off")
            connection.execute("SET deadlock_timeout = '20ms'")
        self._pids = [connection.info.backend_pid for connection in self._connections]

    def execute(self, who: int, text: str, parameters: tuple[Any, ...]) -> Answer:
        try:
            cursor = self._connections[who].execute(text.replace("?", "%s"), parameters or None)
        except psycopg.Error as error:
            return str(error.sqlstate)
        if cursor.description is not None:
            return tuple(tuple(_plain(value) for value in row) for row in cursor.fetchall())
        return (cursor.rowcount,) if text[:6] in ("INSERT", "UPDATE", "DELETE") else ()

    def is_waiting(self, unfinished: Sequence[int]) -> bool:
        """For one of the sessions: not for autovacuum, which soon gives way."""
        pids = [self._pids[who] for who in unfinished]
        query = "SELECT bool_and(pg_blocking_pids(pid) && %s::int[]) FROM unnest(%s::int[]) pid"
        [(waiting,)] = self._monitor.execute(query, (self._pids, pids)).fetchall()
        return bool(waiting)

    def reset(self) -> None:
        for connection in self._connections:
            connection.execute("ROLLBACK")
        for statement in ("TRUNCATE t, u", *ROWS):
            self._connections[0].execute(statement)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def _plain(value: Any) -> Any:
    """PostgreSQL's sum of integers is a bigint or numeric: numbers are compared as numbers."""
    return int(value) if value is not None and value == int(value) else value
