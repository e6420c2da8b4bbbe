"""Cache of columnar copies of the tables that large statements read.

A copy is built when a statement reads an entire table, from the rows that it scans, and cached
within a budget; the least recently read are evicted first. It is in effect a deferred projection in
memory: every statement first brings the copies it reads up to its own position by the log, then
reads them in a transaction of DuckDB, so that a later statement's changes do not show.

A copy starts as stored rows, whose columns are decoded when they are first read, or, from a store
that sends single columns, as those that were read, and others are fetched when they are. It becomes
a table of DuckDB, read up to twice as fast and updated in place, when that will pay: a statement is
repeated, the columns have been read often, or many rows have changed. For that alone no column is
fetched: where some are missing, many changed rows make it begin again.

    position   how far the log has been read, the same for all copies
    pending    the changes up to that position that a copy does not contain yet

Invariants
- A copy without pending changes is the table exactly at `position`.
- A reader at an older position, or with writes of its own, reads the copy with the differing rows
  masked and replaced.
- What cannot be read exactly from a copy (a trimmed log, another definition of the table, values
  that Arrow cannot represent) is read from the table itself, as if there were no copies.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import duckdb

from belvedere.catalog import model
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.codec import keyspace
from belvedere.codec.record import Change, LogRecord
from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.execution.duckdb import columnar_copy as copying
from belvedere.execution.duckdb.columnar_copy import ColumnarCopy, CopyTableWriter, RowImages
from belvedere.execution.duckdb.columns import TableColumns
from belvedere.execution.duckdb.fetched_columns import FetchedColumns
from belvedere.execution.run import Run
from belvedere.kv.batch import BULK_BATCH_ROWS
from belvedere.txn.scan_request import ScanRequest, narrow_scans
from belvedere.txn.transaction.transaction import Transaction

SCAN_BATCH_ROWS = BULK_BATCH_ROWS
CATCH_UP_POSITIONS_MAX = 100_000
"""A copy that is further behind is rebuilt: a scan is faster than reading that much log."""

READS_MAX = 16
"""After this many reads per column, on average, a copy has cost as much as a DuckDB table."""

CHANGED_ROWS_MAX = 1_000
"""Up to this many changed rows are masked on read; beyond, the copy becomes a DuckDB table that
is updated in place."""

SNAPSHOT_TOO_OLD = "72000"
STATEMENTS_MAX = 10_000
PENDING_SHARE_MAX = 0.25
DEAD_ROWS_MIN = 10_000
DEAD_SHARE_MAX = 0.25
OWN_ROWS_MAX = 20_000


class LogRecords(Protocol):
    def read(self, after: int, through: int | None = None) -> Iterator[LogRecord]: ...


class CacheBudget(NamedTuple):
    """`rows_min`: smaller tables are scanned for every statement."""

    bytes_max: int
    rows_min: int


class ColumnarCache:
    def __init__(self, log: LogRecords, budget: CacheBudget) -> None:
        self._log = log
        self._budget = budget
        self._mutex = threading.Lock()
        self._copies: OrderedDict[int, ColumnarCopy] = (
            OrderedDict()
        )  # the least recently read first
        self._position = 0
        self._building: set[int] = set()
        self._refused: dict[int, int] = {}  # relation to the catalog version it was refused at
        self._statements: OrderedDict[int, None] = OrderedDict()  # hashes, the oldest first
        self._number = 0
        self._cursor: Any = None

    @property
    def bytes_max(self) -> int:
        return self._budget.bytes_max

    def attach_cursor(self, cursor: Any) -> None:
        """Use this cursor of DuckDB for the copies' own work; None: the engine is closed."""
        with self._mutex:
            self._cursor = cursor
            self._copies.clear()

    def __len__(self) -> int:
        return len(self._copies)

    @property
    def size_bytes(self) -> int:
        return sum(copy.size_bytes for copy in self._copies.values())

    def table_names(self) -> tuple[str, ...]:
        """The tables there are copies of, the least recently read first."""
        with self._mutex:
            return tuple(copy.compiled.table.name for copy in self._copies.values())

    def lend_copies(
        self,
        cursor: Any,
        wanted: Mapping[int, Sequence[int]],
        run: Run,
        *,
        statement: str | None = None,
        unbuilt: Collection[int | None] = (),
    ) -> dict[int, str]:
        """FROM items, in `cursor`, for the tables that have a copy, with at least the wanted slots;
        the other tables have to be scanned. `cursor` is in a transaction afterwards. Without a
        `statement`, the text that reads them, no copy is built; nor of `unbuilt`, of which the
        store sends less than all rows."""
        reader = run.reader
        if not wanted or not isinstance(reader, Transaction) or not _is_plain(reader):
            return {}
        if statement is not None:
            for relation, slots in wanted.items():
                if relation not in unbuilt:
                    self._build_copy(relation, slots, reader, run)
                    self._fetch_columns(relation, slots, reader, run)
        with self._mutex:
            if not any(relation in self._copies for relation in wanted):
                return {}
            self._advance_position(reader.position)
            again = self._is_repeated(statement)
            found = [
                self._find_usable(relation, slots, reader, run, again=again)
                for relation, slots in wanted.items()
            ]
            usable = [copy for copy in found if copy is not None]
            try:
                past = _changes_since(self._log, reader.position, self._position)
            except InvalidInput:  # trimmed
                return {}
            cursor.execute("BEGIN")
            for copy in usable:
                if copy.columns is None:
                    cursor.execute(f"SELECT 1 FROM {copy.name} LIMIT 0")  # takes the snapshot
                    break
            return self._lend_usable(cursor, usable, wanted, reader, past)

    def _is_repeated(self, statement: str | None) -> bool:
        """Whether this statement was run before."""
        if statement is None:
            return False
        known = hash(statement) in self._statements
        self._statements[hash(statement)] = None
        if len(self._statements) > STATEMENTS_MAX:
            self._statements.popitem(last=False)
        return known

    def _find_usable(
        self, relation: int, slots: Sequence[int], reader: Transaction, run: Run, *, again: bool
    ) -> ColumnarCopy | None:
        copy = self._copies.get(relation)
        if copy is None:
            return None
        table = reader.catalog.get(relation)
        if not isinstance(table, model.Table) or not copying.has_same_layout(
            table, copy.compiled.table
        ):
            return None
        own = sum(1 for change in reader.changes if change.relation == relation)
        if own > OWN_ROWS_MAX:
            return None
        if isinstance(copy.columns, FetchedColumns):
            if not copy.columns.has_slots([*table.primary_key, *slots]):
                return None
        self._copies.move_to_end(relation)
        return copy if self._bring_up_to_date(copy, slots, run, again=again) else None

    def _lend_usable(
        self,
        cursor: Any,
        copies: list[ColumnarCopy],
        wanted: Mapping[int, Sequence[int]],
        reader: Transaction,
        past: dict[bytes, RowImages],
    ) -> dict[int, str]:
        lent = {}
        for copy in copies:
            slots = wanted[copy.relation]
            try:
                seen = _find_differences(copy, slots, reader, past)
                lent[copy.relation] = _register_copy(cursor, copy, slots, seen)
            except Unsupported:  # not representable in Arrow
                self._refuse_table(copy.compiled.table)
                self._drop_copy(copy)
        self._shrink_to_budget()
        return lent

    def describe_copy(self, relation: int) -> str | None:
        """A line about the copy of a table, for EXPLAIN."""
        with self._mutex:
            copy = self._copies.get(relation)
            if copy is None:
                return None
            made = "" if copy.columns is None else f", {copy.columns.decoded_count} columns so far"
            return f"columnar copy of {copy.rows} rows{made}, last at position {self._position}"

    # -- the log ------------------------------------------------------------------------------

    def _advance_position(self, position: int) -> None:
        """Reads the log up to `position` and records its changes as pending in every copy."""
        if position <= self._position:
            return
        try:
            if position - self._position > CATCH_UP_POSITIONS_MAX:
                self._drop_all_copies()
            elif self._copies:
                for record in self._log.read(self._position, position):
                    for change in record.changes():
                        self._record_change(change, self._copies)
        except InvalidInput:  # trimmed
            self._drop_all_copies()
        self._position = position

    def _record_change(
        self, change: Change, copies: dict[int, ColumnarCopy] | OrderedDict[int, ColumnarCopy]
    ) -> None:
        relation = change.relation
        if relation == model.CATALOG_RELATION:
            self._record_definition(change, copies)
            return
        copy = copies.get(relation)
        if copy is not None:
            copy.add_change(keyspace.row_prefix(relation) + change.key, change.old, change.new)

    def _record_definition(
        self, change: Change, copies: dict[int, ColumnarCopy] | OrderedDict[int, ColumnarCopy]
    ) -> None:
        """Drops a copy when the definition of its table's rows changes."""
        stored = change.new if change.new is not None else change.old
        assert stored is not None
        found = model.decode(stored)
        copy = copies.get(found.id)
        if copy is None:
            return
        same = isinstance(found, model.Table) and copying.has_same_layout(
            found, copy.compiled.table
        )
        if change.new is None or not same:
            del copies[found.id]
            self._drop_table(copy)

    def _bring_up_to_date(
        self, copy: ColumnarCopy, slots: Sequence[int], run: Run, *, again: bool
    ) -> bool:
        """Converts the copy to a DuckDB table if that pays, and applies pending changes to a table
        if they affect these slots; False when the copy had to be dropped."""
        if len(copy.pending) > max(copy.rows * PENDING_SHARE_MAX, DEAD_ROWS_MIN):
            self._drop_copy(copy)
            return False
        if copy.columns is not None:
            if not copy.has_all_columns and len(copy.pending) > CHANGED_ROWS_MAX:
                self._drop_copy(copy)
                return False
            if not copy.has_all_columns or not (again or _is_worn(copy)):
                return True
        try:
            if copy.columns is not None and not self._move_to_table(copy, copy.columns, run):
                return False
            if copy.affects_slots(slots):
                copying.apply_pending(self._cursor, copy)
            if copy.dead > max(copy.rows * DEAD_SHARE_MAX, DEAD_ROWS_MIN):
                copying.compact_table(self._cursor, copy, self._next_name(copy.relation))
        except (Unsupported, duckdb.Error):  # not representable in Arrow, or out of memory
            self._refuse_table(copy.compiled.table)
            self._drop_copy(copy)
            return False
        return True

    # -- making and dropping ------------------------------------------------------------------

    def _build_copy(
        self, relation: int, slots: Sequence[int], reader: Transaction, run: Run
    ) -> None:
        """Builds a copy of the table as this reader sees it, unless it exists or was refused."""
        table = reader.catalog.table(relation)
        with self._mutex:
            if relation in self._copies or relation in self._building:
                return
            if reader.position < self._position or self._refused.get(relation) == table.version:
                return
            if any(change.relation == relation for change in reader.changes):
                return
            self._building.add(relation)
        try:
            compiled = compiled_table(reader.catalog, relation)
            columns = self._read_columns(compiled, slots, reader, run)
            if columns is not None:
                self._add_copy(compiled, columns, reader.position)
        except (Unsupported, duckdb.Error):  # not representable in Arrow, or out of memory
            self._refuse_table(table)
        finally:
            self._building.discard(relation)

    def _fetch_columns(
        self, relation: int, slots: Sequence[int], reader: Transaction, run: Run
    ) -> None:
        """Fetches what a copy of fetched columns has not of these slots; drops the copy where that
        cannot be."""
        with self._mutex:
            copy = self._copies.get(relation)
        if copy is None or not isinstance(copy.columns, FetchedColumns):
            return
        if not copying.has_same_layout(reader.catalog.table(relation), copy.compiled.table):
            return
        try:
            if copy.columns.fetch_slots(slots, run, self._budget.bytes_max):
                return
            refused = True
        except Unsupported:  # not representable in Arrow
            refused = True
        except Unavailable as error:
            if error.sqlstate != SNAPSHOT_TOO_OLD:
                raise
            refused = False
        with self._mutex:
            if refused:
                self._refuse_table(copy.compiled.table)
            if self._copies.get(relation) is copy:
                self._drop_copy(copy)

    def _add_copy(
        self, compiled: CompiledTable, columns: TableColumns | FetchedColumns, position: int
    ) -> None:
        """Keeps the columns as of a position as a copy."""
        relation = compiled.table.id
        with self._mutex:
            self._advance_position(position)
            made = {relation: ColumnarCopy(compiled, columns, columns.rows)}
            try:
                for record in self._log.read(position, self._position):
                    for change in record.changes():
                        self._record_change(change, made)
            except InvalidInput:  # trimmed meanwhile: the log no longer has what happened since
                return
            if made and self._cursor is not None:
                self._copies[relation] = made[relation]
                self._shrink_to_budget()

    def _read_columns(
        self, compiled: CompiledTable, slots: Sequence[int], reader: Transaction, run: Run
    ) -> TableColumns | FetchedColumns | None:
        """All rows, with at least these slots; None when they are too few or too many."""
        under = reader.plain_reader
        if under is not None and narrow_scans(under, ScanRequest(compiled.table.id, ())):
            fetched = FetchedColumns(compiled, under)
            if not fetched.fetch_slots(slots, run, self._budget.bytes_max):
                self._refuse_table(compiled.table)
                return None
            return fetched if fetched.rows >= max(self._budget.rows_min, 1) else None
        columns = TableColumns(compiled)
        return columns if self._scan_rows(compiled, reader, run, columns) else None

    def _scan_rows(
        self, compiled: CompiledTable, reader: Transaction, run: Run, columns: TableColumns
    ) -> bool:
        """Scans all rows into `columns`; False when they are too few or too many."""
        scan = reader.scan_values(compiled.start, compiled.end, batch_rows=SCAN_BATCH_ROWS)
        for values in scan:
            run.interrupt.count_rows(len(values))
            if not columns.rows and len(values) < min(self._budget.rows_min, SCAN_BATCH_ROWS):
                return False
            columns.add_rows(list(values))
            if columns.size_bytes > self._budget.bytes_max:
                self._refuse_table(compiled.table)
                return False
        return columns.rows > 0

    def _move_to_table(
        self, copy: ColumnarCopy, columns: TableColumns | FetchedColumns, run: Run
    ) -> bool:
        """Converts a copy to a DuckDB table; False when it is too large and was dropped."""
        filling = CopyTableWriter(self._cursor.cursor(), self._next_name(copy.relation))
        kept = False
        try:
            for batch in columns.decode_batches(copying.live_slots(copy.compiled.table)):
                run.interrupt.check()
                filling.add_batch(batch)
            filling.finish()
            kept = filling.size_bytes <= self._budget.bytes_max
        finally:
            try:
                if not kept:
                    filling.abandon()
            finally:
                filling.close()
        if not kept:
            self._refuse_table(copy.compiled.table)
            self._drop_copy(copy)
            return False
        copy.name, copy.table_bytes, copy.columns = filling.name, filling.size_bytes, None
        return True

    def _shrink_to_budget(self) -> None:
        for copy in self._copies.values():
            if self.size_bytes > self._budget.bytes_max and copy.columns is not None:
                copy.columns.drop_columns()
        while self.size_bytes > self._budget.bytes_max and len(self._copies) > 1:
            self._drop_copy(next(iter(self._copies.values())))

    def _next_name(self, relation: int) -> str:
        self._number += 1
        return f"copy_{relation}_{self._number}"

    def _refuse_table(self, table: model.Table) -> None:
        self._refused[table.id] = table.version

    def _drop_copy(self, copy: ColumnarCopy) -> None:
        self._copies.pop(copy.relation, None)
        self._drop_table(copy)

    def _drop_all_copies(self) -> None:
        for copy in list(self._copies.values()):
            self._drop_copy(copy)

    def _drop_table(self, copy: ColumnarCopy) -> None:
        if self._cursor is not None and copy.name:
            self._cursor.execute(f"DROP TABLE IF EXISTS {copy.name}")


def _is_plain(reader: Transaction) -> bool:
    """Whether its reads are not validated at commit, and its catalog is a committed one."""
    changes = reader.changes
    own_catalog = any(change.relation == model.CATALOG_RELATION for change in changes)
    return not reader.isolation.validates_reads and not own_catalog


def _is_worn(copy: ColumnarCopy) -> bool:
    """Whether reading it as columns has cost, or will cost, more than a DuckDB table."""
    columns_read = copy.reads / len(copying.live_slots(copy.compiled.table))
    return columns_read > READS_MAX or len(copy.pending) > CHANGED_ROWS_MAX


def _find_differences(
    copy: ColumnarCopy, slots: Sequence[int], reader: Transaction, past: dict[bytes, RowImages]
) -> dict[bytes, RowImages]:
    """For every row that differs between the copy and this reader of these slots: the row in the
    copy, and the row the reader sees."""
    prefix, pending = keyspace.row_prefix(copy.relation), copy.pending
    seen = dict(pending) if copy.affects_slots(slots) else {}
    for key, image in past.items():
        if key.startswith(prefix):
            before = pending[key].before if key in pending else image.before
            seen[key] = RowImages(before, image.after)
    for change in reader.changes:
        key = change.key
        if change.relation == copy.relation:
            known = seen.get(key) or pending.get(key)
            seen[key] = RowImages(change.old if known is None else known.before, change.new)
    return seen


def _register_copy(
    cursor: Any, copy: ColumnarCopy, wanted: Sequence[int], differences: dict[bytes, RowImages]
) -> str:
    """The FROM item for one copy, registered on the cursor."""
    if copy.columns is None:
        source, slots = copy.name, list(copying.live_slots(copy.compiled.table))
    else:
        key = copy.compiled.table.primary_key
        slots = list(dict.fromkeys([*wanted, *key] if differences or not wanted else wanted))
        source = f"held_{copy.relation}"
        cursor.register(source, copy.columns.arrow_table(slots))
        copy.reads += len(slots)
    return (
        copying.source_with_differences(cursor, copy, source, slots, differences)
        if differences
        else source
    )


def _changes_since(log: LogRecords, position: int, reached: int) -> dict[bytes, RowImages]:
    """For every key changed after `position`: its row at `reached`, and its row at `position`."""
    seen: dict[bytes, RowImages] = {}
    if position == reached:
        return seen
    for record in log.read(position, reached):
        for relation, key, old, new in record.changes():
            whole = keyspace.row_prefix(relation) + key
            known = seen.get(whole)
            seen[whole] = RowImages(new, old if known is None else known.after)
    return seen
