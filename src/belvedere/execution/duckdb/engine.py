"""The DuckDB instance of a database: PostgreSQL-like settings, a cursor per statement, interrupts.

A statement's leaves are registered on its cursor, invisible to other cursors, or read from the
columnar copies, the only data stored here. Python forms of functions are registered on the
connection when first used.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belvedere import forks
from belvedere.errors import InvalidInput
from belvedere.execution.duckdb import python_division
from belvedere.execution.duckdb.types import NotExact, leaf_placeholder
from belvedere.execution.memory_limit import over_limit
from belvedere.execution.run import Interrupt, Run, cancel_error
from belvedere.plan.functions import duckdb_udfs, sqlstate_of
from belvedere.plan.functions.core import duckdb_udf as udfs

if TYPE_CHECKING:
    import pyarrow as pa

    from belvedere.execution.duckdb.columnar_cache import ColumnarCache
    from belvedere.execution.duckdb.leaves import DuckLeaf

PROGRESS_S = 0.1
RESULT_BATCH_ROWS = 10_240
MEMORY_MB_MIN = 64
"""With less DuckDB cannot join two small tables."""
VECTOR_SHARE = 4
"""Values of a vector that Python makes take at most one part in so many of the memory: several
threads may each have one, and DuckDB copies it."""
SETTINGS = (
    "integer_division = true",
    "default_null_order = 'nulls_last_on_asc_first_on_desc'",
    "ieee_floating_point_ops = false",
    "python_enable_replacements = false",
    "TimeZone = 'UTC'",
    "enable_external_access = false",
)


class DuckEngine:
    def __init__(
        self,
        memory_limit_mb: int = 1024,
        threads: int = 2,
        make_copies: Callable[[], ColumnarCache] | None = None,
    ) -> None:
        """`memory_limit_mb` is for statements; the copies have a budget of their own."""
        self._memory_limit_mb = memory_limit_mb
        self._threads = threads
        self._opening = threading.Lock()
        self._connection: Any = None
        self._spills: Path | None = None
        self._registered: set[str] = set()
        self._running: list[Interrupt] = []
        self._make_copies = make_copies
        self.copies: ColumnarCache | None = None
        forks.track_handle(self)

    def abandon_after_fork(self) -> None:
        forks.keep_forever(self._connection)

    def fetch(
        self,
        text: str,
        leaves: Sequence[DuckLeaf],
        functions: Iterable[str],
        run: Run,
        *,
        few: bool = False,
    ) -> pa.Table:
        """The entire result. A statement DuckDB cannot plan is `NotExact`.

        `few`: the result is small, and is stored in a table of DuckDB first. A relation is planned
        twice, when it is created and when it is read, which can take longer than the statement."""
        cursor, interrupt = self._open_cursor(functions), run.interrupt
        stop = cursor.interrupt
        interrupt.add_hook(stop)
        self._running.append(interrupt)
        try:
            interrupt.check()
            sources = self._leaf_sources(cursor, leaves, run, text)
            interrupt.count_rows(0)
            for number, source in enumerate(sources):
                text = text.replace(leaf_placeholder(number), source)
            with _report_progress(interrupt):
                if few:
                    cursor.execute(f"CREATE TEMP TABLE result AS {text}")
                    text = "FROM result"
                return self._read_result(cursor.sql(text), run.memory.result_bytes_max)
        except self._duckdb.Error as error:
            raise self._translate_error(error, interrupt) from error
        finally:
            self._running.remove(interrupt)
            interrupt.remove_hook(stop)
            cursor.close()

    def _check_running(self) -> None:
        """Raise when all statements that run have to stop. Functions in Python call it, which do
        not know whose they are."""
        running = list(self._running)
        if running and all(interrupt.reason is not None for interrupt in running):
            running[0].check()

    def _read_result(self, relation: Any, bytes_max: int | None) -> pa.Table:
        """The entire result; 53200 as soon as it is larger than it may be."""
        if bytes_max is None:
            return relation.to_arrow_table()
        import pyarrow as pa  # heavy

        reader = relation.to_arrow_reader(RESULT_BATCH_ROWS)
        batches, size = [], 0
        try:
            for batch in reader:
                size += batch.nbytes
                if size > bytes_max:
                    raise over_limit(self._memory_limit_mb * 2**20)
                batches.append(batch)
        except (pa.ArrowException, OSError) as error:  # what DuckDB raises while it is read
            raise self._duckdb.Error(str(error)) from error
        return pa.Table.from_batches(batches, reader.schema)

    def read_copy(self, leaf: DuckLeaf, run: Run) -> pa.Table | None:
        """An entire table from its columnar copy, if there is one."""
        if self.copies is None or leaf.relation is None or not len(self.copies):
            return None
        cursor, interrupt = self._open_cursor(()), run.interrupt
        stop = cursor.interrupt
        interrupt.add_hook(stop)
        try:
            lent = self.copies.lend_copies(cursor, {leaf.relation: leaf.slots}, run)
            if not lent:
                return None
            source = _leaf_select(leaf, lent[leaf.relation])
            return cursor.sql(f"SELECT * FROM {source}").to_arrow_table()
        except self._duckdb.Error as error:
            raise self._translate_error(error, interrupt) from error
        finally:
            interrupt.remove_hook(stop)
            cursor.close()

    def describe_source(self, leaf: DuckLeaf) -> str:
        """What a leaf is read from, for EXPLAIN."""
        if self.copies is not None and leaf.relation is not None:
            return self.copies.describe_copy(leaf.relation) or "scan"
        return "scan"

    def _leaf_sources(
        self, cursor: Any, leaves: Sequence[DuckLeaf], run: Run, text: str
    ) -> list[str]:
        """The FROM item of each leaf."""
        lent: dict[int, str] = {}
        if self.copies is not None:
            wanted: dict[int, list[int]] = {}
            for leaf in leaves:
                if leaf.relation is not None:
                    wanted.setdefault(leaf.relation, []).extend(leaf.slots)
            unbuilt = {
                leaf.relation for leaf in leaves if leaf.narrow is not None and leaf.narrow(run)
            }
            lent = self.copies.lend_copies(cursor, wanted, run, statement=text, unbuilt=unbuilt)
        sources = []
        tables: dict[tuple[int, tuple[int, ...]], str] = {}  # those that are read once for all
        for number, leaf in enumerate(leaves):
            found = None if leaf.relation is None else lent.get(leaf.relation)
            if found is not None:
                sources.append(_leaf_select(leaf, found))
                continue
            name = f"leaf_{number}"
            if leaf.relation is not None and leaf.narrow is None:
                name = tables.setdefault((leaf.relation, leaf.slots), name)
            if name not in sources:
                cursor.register(name, self._read_leaf(leaf, run))
            sources.append(name)
        return sources

    def _read_leaf(self, leaf: DuckLeaf, run: Run) -> pa.Table:
        return leaf.read(run)

    def _open_cursor(self, functions: Iterable[str]) -> Any:
        with self._opening:
            if self._connection is None:
                self._connection = self._open_connection()
            missing = set(functions) - self._registered
            if missing:
                known = duckdb_udfs()
                if python_division.QUOTIENT_FUNCTION in missing:
                    python_division.register_quotient(self._connection)
                others = sorted(missing - {python_division.QUOTIENT_FUNCTION})
                bytes_max = self._memory_limit_mb * 2**20 // VECTOR_SHARE
                forms = [known[name] for name in others]
                udfs.register_udfs(self._connection, forms, bytes_max, self._check_running)
                self._registered |= missing
            return self._connection.cursor()

    def _open_connection(self) -> Any:
        import duckdb  # heavy

        self._duckdb = duckdb
        connection = duckdb.connect(":memory:", config={"threads": self._threads})
        limit = max(self._memory_limit_mb, MEMORY_MB_MIN)
        if self._make_copies is not None:
            self.copies = self._make_copies()
            self.copies.attach_cursor(connection.cursor())
            limit += self.copies.bytes_max // 2**20
        connection.execute(f"SET GLOBAL memory_limit = '{limit}MB'")
        self._spills = Path(tempfile.mkdtemp(prefix="belvedere-"))  # its owner's alone
        connection.execute("SET GLOBAL temp_directory = ?", [str(self._spills)])
        for setting in SETTINGS:
            connection.execute(f"SET GLOBAL {setting}")
        return connection

    def _translate_error(self, error: Exception, interrupt: Interrupt) -> Exception:
        """The error of ours that a DuckDB error means."""
        duckdb, text = self._duckdb, str(error)
        if interrupt.reason is not None or isinstance(error, duckdb.InterruptException):
            return cancel_error(interrupt.reason or "interrupted")
        if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in text:
            return over_limit(self._memory_limit_mb * 2**20)
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
            if self.copies is not None:
                self.copies.attach_cursor(None)
                self.copies = None
            if self._connection is not None:
                self._connection.close()
                self._connection = None
                self._registered.clear()
            if self._spills is not None:
                shutil.rmtree(self._spills, ignore_errors=True)
                self._spills = None


@contextmanager
def _report_progress(interrupt: Interrupt) -> Iterator[None]:
    """Reports progress from another thread while DuckDB blocks this one."""
    progress = interrupt.progress
    if progress is None:
        yield
        return
    ended = threading.Event()

    def report_rows() -> None:
        while not ended.wait(PROGRESS_S):
            progress(interrupt.rows)

    thread = threading.Thread(target=report_rows, name="belvedere-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _leaf_select(leaf: DuckLeaf, source: str) -> str:
    columns = ", ".join(f"s{slot} AS c{i}" for i, slot in enumerate(leaf.slots))
    return f"(SELECT {columns or '1 AS nothing'} FROM {source})"
