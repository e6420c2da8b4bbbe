"""Connections that take the same statements: Belvedere and sqlite3, durability off."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from belvedere.benchmarks.statements.kinds import ROW_TABLES, TABLES, insert_text, make_row
from belvedere.interfaces.dbapi import Connection, connect


class StatementPeer:
    """One connection, under autocommit outside of BEGIN."""

    def __init__(self, connection: Connection | sqlite3.Connection) -> None:
        self._connection = connection
        self.execute: Callable[..., Any] = connection.execute
        self.insert_many: Callable[..., Any] = connection.executemany

    def load_tables(self, rows: int) -> None:
        for statement in TABLES:
            self.execute(statement)
        self.execute("BEGIN")
        for table in ROW_TABLES:
            loaded = [make_row(number) for number in range(rows)]
            self.insert_many(insert_text(table, 1), loaded)
        self.execute("COMMIT")

    def fetch_rows(self, text: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return list(self.execute(text, values).fetchall())

    def close(self) -> None:
        self._connection.close()


def open_belvedere(path: Path) -> StatementPeer:
    return StatementPeer(connect(str(path), durability="off", autocommit=True))


def open_sqlite(path: Path) -> StatementPeer:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    return StatementPeer(connection)
