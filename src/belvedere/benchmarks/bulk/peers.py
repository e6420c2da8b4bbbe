"""Connections that take the same bulk statements, and the CPU time they spend."""

from __future__ import annotations

import csv
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from belvedere.interfaces.dbapi import connect

if TYPE_CHECKING:
    import psycopg

Rows = Sequence[tuple[Any, ...]]


class BulkPeer(Protocol):
    """One connection under autocommit. `?` marks a parameter."""

    name: str

    def execute(self, sql: str) -> Any: ...

    def insert_many(self, sql: str, rows: Rows) -> None:
        """One transaction."""

    def copy_file(self, table: str, path: Path) -> None:
        """Load a file of comma-separated values."""

    def cpu_seconds(self) -> float:
        """What client and server have spent so far."""

    def close(self) -> None: ...


class BelvedereBulk:
    name = "belvedere"

    def __init__(self, path: Path) -> None:
        self._connection = connect(str(path), durability="off", autocommit=True)
        self.execute = self._connection.execute
        self.close = self._connection.close

    def insert_many(self, sql: str, rows: Rows) -> None:
        self._connection.executemany(sql, rows)

    def copy_file(self, table: str, path: Path) -> None:
        self.execute(f"COPY {table} FROM '{path}' WITH (FORMAT csv)")

    def cpu_seconds(self) -> float:
        return time.process_time()


class SqliteBulk:
    name = "sqlite3"

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self.execute = self._connection.execute
        self.close = self._connection.close
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("PRAGMA synchronous = OFF")

    def insert_many(self, sql: str, rows: Rows) -> None:
        self.execute("BEGIN")
        self._connection.executemany(sql, rows)
        self.execute("COMMIT")

    def copy_file(self, table: str, path: Path) -> None:
        """sqlite3 has no COPY: Python reads the file for it."""
        with path.open(newline="") as lines:
            self.execute("BEGIN")
            self._connection.executemany(
                f"INSERT INTO {table} VALUES (?, ?, ?, ?)", csv.reader(lines)
            )
            self.execute("COMMIT")

    def cpu_seconds(self) -> float:
        return time.process_time()


class DuckdbBulk:
    name = "DuckDB"

    def __init__(self, path: Path) -> None:
        import duckdb  # heavy

        self._connection = duckdb.connect(str(path), config={"threads": 1})
        self.execute = self._connection.execute
        self.close = self._connection.close

    def insert_many(self, sql: str, rows: Rows) -> None:
        self.execute("BEGIN")
        self._connection.executemany(sql, rows)
        self.execute("COMMIT")

    def copy_file(self, table: str, path: Path) -> None:
        self.execute(f"COPY {table} FROM '{path}' (FORMAT csv)")

    def cpu_seconds(self) -> float:
        return time.process_time()


class PostgresBulk:
    name = "PostgreSQL"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        [(pid,)] = connection.execute("SELECT pg_backend_pid()").fetchall()
        self._statistics = Path(f"/proc/{pid}/stat")
        self.close = connection.close

    def execute(self, sql: str) -> Any:
        return self._connection.execute(sql)

    def insert_many(self, sql: str, rows: Rows) -> None:
        with self._connection.transaction():
            self._connection.cursor().executemany(sql.replace("?", "%s"), rows)

    def copy_file(self, table: str, path: Path) -> None:
        self.execute(f"COPY {table} FROM '{path}' WITH (FORMAT csv)")

    def cpu_seconds(self) -> float:
        """Of this process and of the server's process for this connection."""
        fields = self._statistics.read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")
