"""One way to two databases: a URL opens PostgreSQL, any other name an embedded Belvedere store.

Both speak DB-API, take `$1` parameters and give errors with an SQLSTATE, so the service does not
know which one it runs on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import belvedere

Answer = TypeVar("Answer")
AGAIN = frozenset(
    {"40001", "40P01", "55P03"}
)  # serialization failure, deadlock, lock not available
TRIES_MAX = 50


class Result(Protocol):
    rowcount: int

    def fetchall(self) -> list[tuple[Any, ...]]: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...


class Connection(Protocol):
    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Result: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


def open_database(name: str, *, serializable: bool = True) -> Connection:
    """A connection whose transactions are serializable, unless the caller wants the default."""
    connection: Connection = _connect(name)
    if serializable:
        connection.execute(
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE"
        )
        connection.commit()
    return connection


def _connect(name: str) -> Any:
    if not is_postgres(name):
        return belvedere.connect(name)
    import psycopg

    return psycopg.connect(name, cursor_factory=psycopg.RawCursor)


def is_postgres(name: str) -> bool:
    return name.startswith(("postgresql://", "postgres://"))


def run_transaction(connection: Connection, work: Callable[[Connection], Answer]) -> Answer:
    """Run the work and commit; run it again when the database says that another one was first."""
    for attempt in range(1, TRIES_MAX + 1):
        try:
            answer = work(connection)
            connection.commit()
            return answer
        except Exception as error:
            connection.rollback()
            if getattr(error, "sqlstate", None) not in AGAIN or attempt == TRIES_MAX:
                raise
            time.sleep(random.uniform(0, 0.002 * attempt))
    raise AssertionError("the loop returns or raises")
