"""Databases with TPC-W in them that differ in views and locks, and PostgreSQL.

advised      the views that the advisor chooses, all writes under one root lock
no views     tables and indexes only
row locks    the advised views; each written row is locked by itself, and each entry of a view
workload     views chosen from the workload alone, many-to-many joins allowed
synergy      only the views that Synergy's mechanism selects
PostgreSQL   tables and indexes
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from belvedere.advisor.advise import Advice
from belvedere.benchmarks.report.postgres_peer import postgres_connection
from belvedere.benchmarks.tpcw.generate import TpcwSize, generate_tables
from belvedere.benchmarks.tpcw.schema import (
    ROOTS,
    TABLES,
    TOTALS,
    list_index_statements,
    list_table_statements,
)
from belvedere.codec.keyspace import ROW_PREFIX_BYTES, row_prefix
from belvedere.interfaces.advice import AdviceOptions, compute_advice
from belvedere.interfaces.dbapi import Connection, connect
from belvedere.session.session import Session
from belvedere.txn.contracts import LockRequest
from belvedere.txn.history.derived_rows import DerivedRows

ADVISED, PLAIN, ROW_LOCKS = "advised", "no views", "row locks"
WORKLOAD, SYNERGY, POSTGRES = "workload", "synergy", "PostgreSQL"
VARIANTS = (ADVISED, PLAIN, ROW_LOCKS, WORKLOAD, SYNERGY, POSTGRES)


class TpcwSystem(Protocol):
    """A database with the tables in it, whose statements commit one by one."""

    @property
    def is_server(self) -> bool: ...

    def run(self, sql: str, parameters: Sequence[Any]) -> object: ...

    def run_write(self, name: str, sql: str, parameters: Sequence[Any]) -> object: ...

    def measure_bytes(self) -> int | None: ...


class TpcwStore:
    def __init__(self, connection: Connection, path: Path | None) -> None:
        self.connection = connection
        self._path = path
        self._created: list[str] = []
        self.entries: dict[str, int] = {}
        """Entries of views that each write changes, where they are locked."""

    @property
    def is_server(self) -> bool:
        return False

    @property
    def session(self) -> Session:
        found = self.connection.session
        assert isinstance(found, Session), "a benchmark opens its store itself"
        return found

    def run(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql, parameters)
        return [] if cursor.description is None else cursor.fetchall()

    def run_write(self, name: str, sql: str, parameters: Sequence[Any]) -> object:
        return self.connection.execute(sql, parameters)

    def advise_views(self, workload: str, *, variant: str = ADVISED) -> Advice:
        """Create the views that the variant stands for, and set the roots of the paper."""
        options = AdviceOptions(
            workload,
            roots=ROOTS,
            schema_only=variant == SYNERGY,
            workload_only=variant == WORKLOAD,
        )
        advice = compute_advice(self.session.shared, options)
        for statement in (*advice.list_lock_ddl(), *advice.list_ddl()):
            self.connection.execute(statement)
        self._created += [
            f'{"INDEX" if one.candidate.is_index else "MATERIALIZED VIEW"} "{one.candidate.name}"'
            for one in advice.views
        ]
        return advice

    def drop_views(self) -> None:
        """Drop what was advised, for another variant in the same store."""
        for one in self._created:
            self.connection.execute(f"DROP {one}")
        self._created.clear()

    def count_locks(self, sql: str, parameters: Sequence[Any]) -> dict[str, int]:
        """The locks of a write by kind; the write is rolled back."""
        self.connection.execute("BEGIN")
        try:
            self.connection.execute(sql, parameters)
            transaction = self.session.transactions.open
            assert transaction is not None
            counts: dict[str, int] = {}
            for request in transaction.held_locks:
                counts[request.kind] = counts.get(request.kind, 0) + 1
            return counts
        finally:
            self.connection.execute("ROLLBACK")

    def measure_bytes(self) -> int | None:
        if self._path is None:
            return None
        return sum(file.stat().st_size for file in self._path.rglob("*") if file.is_file())


class RowLockSystem(TpcwStore):
    """A write locks its row by itself, and one lock more for each entry of a view it changes."""

    def prepare_locks(self) -> None:
        for table in TABLES:
            self.connection.execute(f"ALTER TABLE {table} SET (root = 'self')")

    def count_entries(self, name: str, sql: str, draws: Sequence[Sequence[Any]]) -> None:
        """Count the entries of views that the statement changes, the mean of these draws."""
        counts = [self._count_entries(sql, parameters) for parameters in draws]
        self.entries[name] = round(sum(counts) / len(counts))

    def _count_entries(self, sql: str, parameters: Sequence[Any]) -> int:
        """By the maintenance that a commit does; the write is rolled back."""
        self.connection.execute("BEGIN")
        try:
            self.connection.execute(sql, parameters)
            transaction = self.session.transactions.open
            assert transaction is not None
            changes = transaction.changes
        finally:
            self.connection.execute("ROLLBACK")
        host = self.session.host
        with host.begin() as before:
            relations = frozenset(change.relation for change in changes)
            writer = DerivedRows(before)
            for participant in host.participants_for(before.catalog, relations):
                participant.writes(changes, before, writer)
            views = {row_prefix(view.id) for view in before.catalog.views}
        return sum(key[:ROW_PREFIX_BYTES] in views for key in writer.rows)

    def run_write(self, name: str, sql: str, parameters: Sequence[Any]) -> object:
        self.connection.execute("BEGIN")
        found = self.connection.execute(sql, parameters)
        transaction = self.session.transactions.open
        assert transaction is not None
        for number in range(self.entries.get(name, 0)):
            transaction.acquire_lock(LockRequest("entry", b"%s/%d" % (name.encode(), number)))
        self.connection.execute("COMMIT")
        return found


class PostgresSystem:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def is_server(self) -> bool:
        return True

    def run(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(_mark_parameters(sql), parameters)
        return [] if cursor.description is None else cursor.fetchall()

    def run_write(self, name: str, sql: str, parameters: Sequence[Any]) -> object:
        return self._connection.execute(_mark_parameters(sql), parameters)

    def insert_rows(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        with self._connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def measure_bytes(self) -> int | None:
        rows = self.run("SELECT pg_database_size(current_database())", ())
        return int(rows[0][0])


def _mark_parameters(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


@contextmanager
def open_systems(
    size: TpcwSize, seed: int, variants: Sequence[str]
) -> Iterator[dict[str, TpcwSystem]]:
    """The systems, each with the same rows. PostgreSQL is left out where its wheel is not
    installed."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="belvedere-tpcw-")))
        systems: dict[str, TpcwSystem] = {}
        loaded = _load_directory(folder / "loaded", size, seed)
        for variant in variants:
            if variant == POSTGRES:
                systems |= stack.enter_context(open_postgres(size, seed))
                continue
            path = folder / variant.replace(" ", "_")
            shutil.copytree(loaded, path)
            made = connect(str(path), durability="off", autocommit=True)
            systems[variant] = choose_kind(variant)(made, path)
            stack.callback(made.close)
        yield systems


@contextmanager
def open_postgres(size: TpcwSize, seed: int) -> Iterator[dict[str, TpcwSystem]]:
    """PostgreSQL with the rows, by its name; nothing where its wheel is not installed."""
    with postgres_connection() as connection:
        if connection is None:
            yield {}
        else:
            yield {POSTGRES: _load_postgres(PostgresSystem(connection), size, seed)}


def choose_kind(variant: str) -> type[TpcwStore]:
    return RowLockSystem if variant == ROW_LOCKS else TpcwStore


def _load_directory(path: Path, size: TpcwSize, seed: int) -> Path:
    """A store with the tables in it, to be copied for each variant."""
    connection = connect(str(path), durability="off", autocommit=True)
    load_tables(connection, size, seed)
    connection.close()
    return path


def load_tables(connection: Connection, size: TpcwSize, seed: int) -> None:
    for statement in (*list_table_statements(), *list_index_statements()):
        connection.execute(statement)
    for table, rows in generate_tables(size, seed):
        marks = ", ".join("?" * len(rows[0]))
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        connection.execute("COMMIT")
    for statement in TOTALS:
        connection.execute(statement)


def _load_postgres(system: PostgresSystem, size: TpcwSize, seed: int) -> PostgresSystem:
    for statement in list_table_statements():
        system.run(statement, ())
    for table, rows in generate_tables(size, seed):
        system.insert_rows(table, rows)
    for statement in (*list_index_statements(), "ANALYZE"):
        system.run(statement, ())
    return system
