"""Connections that take the same statements: Belvedere, sqlite3, PostgreSQL."""

from __future__ import annotations

import functools
import random
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from belvedere.benchmarks.tpcc.generate import TpccSize, generate_tables
from belvedere.benchmarks.tpcc.schema import TABLES
from belvedere.errors import Retry
from belvedere.interfaces.dbapi import OperationalError, connect

if TYPE_CHECKING:
    import psycopg

Rows = list[tuple[Any, ...]]
Fetch = Callable[[str, Sequence[Any]], Rows]
Change = Callable[[str, Sequence[Any]], object]


class TransactionPeer(Protocol):
    """One connection. `?` marks a parameter; a transaction begins by itself."""

    @property
    def fetch_rows(self) -> Fetch: ...

    @property
    def change_rows(self) -> Change: ...

    def insert_many(self, sql: str, rows: Rows) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    def is_conflict(self, error: Exception) -> bool:
        """Whether the transaction may succeed when it is run again."""


class BelvederePeer:
    def __init__(self, path: Path, durability: str) -> None:
        self._connection = connect(str(path), durability=durability)
        self._execute = self._connection.execute
        self.change_rows: Change = self._execute
        self.commit = self._connection.commit
        self.rollback = self._connection.rollback
        self.close = self._connection.close

    def fetch_rows(self, sql: str, parameters: Sequence[Any]) -> Rows:
        return self._execute(sql, parameters).fetchall()

    def insert_many(self, sql: str, rows: Rows) -> None:
        self._connection.executemany(sql, rows)

    def is_conflict(self, error: Exception) -> bool:
        return isinstance(error, Retry | OperationalError) and getattr(error, "sqlstate", "") in (
            "40001",
            "40P01",
            "55P03",
        )


class SqlitePeer:
    def __init__(self, path: Path, durability: str) -> None:
        self._connection = sqlite3.connect(path, timeout=60, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        level = "FULL" if durability == "full" else "OFF"
        self._connection.execute(f"PRAGMA synchronous = {level}")
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._execute = self._connection.execute
        self.change_rows: Change = self._execute
        self.commit = self._connection.commit
        self.rollback = self._connection.rollback
        self.close = self._connection.close

    def fetch_rows(self, sql: str, parameters: Sequence[Any]) -> Rows:
        return self._execute(sql, parameters).fetchall()

    def insert_many(self, sql: str, rows: Rows) -> None:
        self._connection.executemany(sql, rows)

    def is_conflict(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


class PostgresPeer:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        connection.autocommit = False
        self._connection = connection
        self._cursor = connection.cursor()
        self.commit = connection.commit
        self.rollback = connection.rollback
        self.close = connection.close

    def fetch_rows(self, sql: str, parameters: Sequence[Any]) -> Rows:
        return self._cursor.execute(_mark_parameters(sql), parameters).fetchall()

    def change_rows(self, sql: str, parameters: Sequence[Any]) -> object:
        return self._cursor.execute(_mark_parameters(sql), parameters)

    def insert_many(self, sql: str, rows: Rows) -> None:
        self._cursor.executemany(_mark_parameters(sql), rows)

    def is_conflict(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", "") in ("40001", "40P01")


@functools.cache
def _mark_parameters(sql: str) -> Any:
    """The statement with psycopg's marks; statements of TPC-C hold no other `?` or `%`."""
    return sql.replace("?", "%s")


def load_tables(peer: TransactionPeer, size: TpccSize, seed: int) -> None:
    for statement in TABLES:
        peer.change_rows(statement, ())
    peer.commit()
    for table, rows in generate_tables(size, random.Random(seed)):
        marks = ", ".join("?" * len(rows[0]))
        peer.insert_many(f"INSERT INTO {table} VALUES ({marks})", rows)
        peer.commit()
