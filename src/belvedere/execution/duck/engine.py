"""The one DuckDB of a database: PostgreSQL-like settings, a cursor per statement, interrupts.

Nothing is stored in it. A statement's leaves are registered on its cursor, which other cursors do
not see; Python forms of functions are registered on the connection when first used.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from belvedere.errors import InvalidInput, Unavailable
from belvedere.execution.duck.types import NotExact
from belvedere.execution.run import Interrupt, interrupted
from belvedere.plan.functions import duckdb_udfs, sqlstate_of
from belvedere.plan.functions import udf as udfs

if TYPE_CHECKING:
    import pyarrow as pa

SETTINGS = (
    "integer_division = true",
    "default_null_order = 'nulls_last_on_asc_first_on_desc'",
    "ieee_floating_point_ops = false",
    "python_enable_replacements = false",
    "TimeZone = 'UTC'",
    "enable_external_access = false",
)


class DuckEngine:
    def __init__(self, memory_limit_mb: int = 1024, threads: int = 2) -> None:
        self._memory_limit_mb = memory_limit_mb
        self._threads = threads
        self._opening = threading.Lock()
        self._connection: Any = None
        self._registered: set[str] = set()

    def fetch(
        self,
        text: str,
        leaves: Mapping[str, pa.Table],
        functions: Iterable[str],
        interrupt: Interrupt,
    ) -> pa.Table:
        """The whole result. A statement DuckDB cannot plan is `NotExact`."""
        cursor = self._cursor(functions)
        stop = cursor.interrupt
        interrupt.add_hook(stop)
        try:
            interrupt.check()
            for name, table in leaves.items():
                cursor.register(name, table)
            return cursor.sql(text).to_arrow_table()
        except self._duckdb.Error as error:
            raise self._meaning(error, interrupt) from error
        finally:
            interrupt.remove_hook(stop)
            cursor.close()

    def _cursor(self, functions: Iterable[str]) -> Any:
        with self._opening:
            if self._connection is None:
                self._connection = self._open()
            missing = set(functions) - self._registered
            if missing:
                known = duckdb_udfs()
                udfs.register(self._connection, [known[name] for name in sorted(missing)])
                self._registered |= missing
            return self._connection.cursor()

    def _open(self) -> Any:
        import duckdb  # heavy

        self._duckdb = duckdb
        connection = duckdb.connect(":memory:", config={"threads": self._threads})
        connection.execute(f"SET GLOBAL memory_limit = '{self._memory_limit_mb}MB'")
        for setting in SETTINGS:
            connection.execute(f"SET GLOBAL {setting}")
        return connection

    def _meaning(self, error: Exception, interrupt: Interrupt) -> Exception:
        """What a DuckDB error is to the one who asked."""
        duckdb, text = self._duckdb, str(error)
        if interrupt.reason is not None or isinstance(error, duckdb.InterruptException):
            return interrupted(interrupt.reason or "interrupted")
        if isinstance(error, duckdb.OutOfMemoryException):
            return Unavailable("statement needs more memory than it may use", sqlstate="53200")
        if "More than one row returned by a subquery" in text:
            return InvalidInput(
                "more than one row returned by a subquery used as an expression", sqlstate="21000"
            )
        if isinstance(error, duckdb.BinderException | duckdb.NotImplementedException):
            return NotExact(f"DuckDB cannot plan it: {text.splitlines()[0]}")
        sqlstate = sqlstate_of(text)
        if sqlstate is not None:
            return InvalidInput("invalid value in an expression", sqlstate=sqlstate, detail=text)
        return NotExact(f"DuckDB failed: {text.splitlines()[0]}")

    def close(self) -> None:
        with self._opening:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
                self._registered.clear()
