"""Cache of columnar copies of the tables that large statements read.

A copy is built when a statement reads an entire table, from the rows that it scans, and cached
within a budget; the least recently read are evicted first. It is in effect a deferred projection in
memory: every statement first brings the copies it reads up to its own position by the log, then
reads them in a transaction of DuckDB, so that a later statement's changes do not show.

A copy starts as stored rows, whose columns are decoded when they are first read. It becomes a table
of DuckDB, read up to twice as fast and updated in place, when that will pay: a statement is
repeated, the columns have been read often, or many rows have changed.

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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import duckdb

from belvedere.catalog import model
from belvedere.catalog.relation import CompiledTable, compiled_table
from belvedere.codec import keyspace
from belvedere.codec.record import Change, Record
from belvedere.errors import InvalidInput, Unsupported
from belvedere.execution.duck import copy as copying
from belvedere.execution.duck.columns import Columns
from belvedere.execution.duck.copy import Copy, Filling, Images
from belvedere.execution.run import Run
from belvedere.kv.batch import BULK_BATCH_ROWS
from belvedere.txn.transaction import Transaction

SCAN_BATCH_ROWS = BULK_BATCH_ROWS
CATCH_UP_POSITIONS_MAX = 100_000
"""A copy that is further behind is rebuilt: a scan is faster than reading that much log."""

READS_MAX = 16
"""After this many reads per column, on average, a copy has cost as much as a DuckDB table."""

CHANGED_ROWS_MAX = 1_000
"""Up to this many changed rows are masked on read; beyond, the copy becomes a DuckDB table that
is updated in place."""

STATEMENTS_MAX = 10_000
PENDING_SHARE_MAX = 0.25
DEAD_ROWS_MIN = 10_000
DEAD_SHARE_MAX = 0.25
OWN_ROWS_MAX = 20_000


class Log(Protocol):
    def read(self, after: int, through: int | None = None) -> Iterator[Record]: ...


class Budget(NamedTuple):
    """`rows_min`: smaller tables are scanned for every statement."""

    bytes_max: int
    rows_min: int


class Copies:
    def __init__(self, log: Log, budget: Budget) -> None:
        self._log = log
        self._budget = budget
        self._mutex = threading.Lock()
        self._copies: OrderedDict[int, Copy] = OrderedDict()  # the least recently read first
        self._position = 0
        self._building: set[int] = set()
        self._refused: dict[int, int] = {}  # relation to the catalog version it was refused at
        self._statements: OrderedDict[int, None] = OrderedDict()  # hashes, the oldest first
        self._number = 0
        self._cursor: Any = None

    @property
    def bytes_max(self) -> int:
        return self._budget.bytes_max

    def attach(self, cursor: Any) -> None:
        """Use this cursor of DuckDB for the copies' own work; None: the engine is closed."""
        with self._mutex:
            self._cursor = cursor
            self._copies.clear()

    def __len__(self) -> int:
        return len(self._copies)

    @property
    def size_bytes(self) -> int:
        return sum(copy.size_bytes for copy in self._copies.values())

    def names(self) -> tuple[str, ...]:
        """The tables there are copies of, the least recently read first."""
        with self._mutex:
            return tuple(copy.compiled.table.name for copy in self._copies.values())

    def lend(
        self,
        cursor: Any,
        wanted: Mapping[int, Sequence[int]],
        run: Run,
        *,
        statement: str | None = None,
    ) -> dict[int, str]:
        """FROM items, in `cursor`, for the tables that have a copy, with at least the wanted slots;
        the other tables have to be scanned. `cursor` is in a transaction afterwards. Without a
        `statement`, the text that reads them, no copy is built."""
        reader = run.reader
        if not wanted or not isinstance(reader, Transaction) or not _is_plain(reader):
            return {}
        if statement is not None:
            for relation in wanted:
                self._build(relation, reader, run)
        with self._mutex:
            if not any(relation in self._copies for relation in wanted):
                return {}
            self._advance(reader.position)
            again = self._read_again(statement)
            found = [
                self._usable(relation, slots, reader, run, again=again)
                for relation, slots in wanted.items()
            ]
            usable = [copy for copy in found if copy is not None]
            try:
                past = _past(self._log, reader.position, self._position)
            except InvalidInput:  # trimmed
                return {}
            cursor.execute("BEGIN")
            for copy in usable:
                if copy.columns is None:
                    cursor.execute(f"SELECT 1 FROM {copy.name} LIMIT 0")  # takes the snapshot
                    break
            return self._lent_all(cursor, usable, wanted, reader, past)

    def _read_again(self, statement: str | None) -> bool:
        """Whether this statement was run before."""
        if statement is None:
            return False
        known = hash(statement) in self._statements
        self._statements[hash(statement)] = None
        if len(self._statements) > STATEMENTS_MAX:
            self._statements.popitem(last=False)
        return known

    def _usable(
        self, relation: int, slots: Sequence[int], reader: Transaction, run: Run, *, again: bool
    ) -> Copy | None:
        copy = self._copies.get(relation)
        if copy is None:
            return None
        table = reader.catalog.get(relation)
        if not isinstance(table, model.Table) or not copying.same_rows(table, copy.compiled.table):
            return None
        own = sum(1 for change in reader.changes if change.relation == relation)
        if own > OWN_ROWS_MAX:
            return None
        self._copies.move_to_end(relation)
        return copy if self._brought_up(copy, slots, run, again=again) else None

    def _lent_all(
        self,
        cursor: Any,
        copies: list[Copy],
        wanted: Mapping[int, Sequence[int]],
        reader: Transaction,
        past: dict[bytes, Images],
    ) -> dict[int, str]:
        lent = {}
        for copy in copies:
            slots = wanted[copy.relation]
            try:
                seen = _differences(copy, slots, reader, past)
                lent[copy.relation] = _lent(cursor, copy, slots, seen)
            except Unsupported:  # not representable in Arrow
                self._refuse(copy.compiled.table)
                self._drop(copy)
        self._shrink()
        return lent

    def note_of(self, relation: int) -> str | None:
        """A line about the copy of a table, for EXPLAIN."""
        with self._mutex:
            copy = self._copies.get(relation)
            if copy is None:
                return None
            made = "" if copy.columns is None else f", {copy.columns.made} columns so far"
            return f"columnar copy of {copy.rows} rows{made}, last at position {self._position}"

    # -- the log ------------------------------------------------------------------------------

    def _advance(self, position: int) -> None:
        """Reads the log up to `position` and records its changes as pending in every copy."""
        if position <= self._position:
            return
        try:
            if position - self._position > CATCH_UP_POSITIONS_MAX:
                self._drop_all()
            elif self._copies:
                for record in self._log.read(self._position, position):
                    for change in record.changes():
                        self._note(change, self._copies)
        except InvalidInput:  # trimmed
            self._drop_all()
        self._position = position

    def _note(self, change: Change, copies: dict[int, Copy] | OrderedDict[int, Copy]) -> None:
        relation = change.relation
        if relation == model.CATALOG_RELATION:
            self._note_definition(change, copies)
            return
        copy = copies.get(relation)
        if copy is not None:
            copy.note(keyspace.row_prefix(relation) + change.key, change.old, change.new)

    def _note_definition(
        self, change: Change, copies: dict[int, Copy] | OrderedDict[int, Copy]
    ) -> None:
        """Drops a copy when the definition of its table's rows changes."""
        stored = change.new if change.new is not None else change.old
        assert stored is not None
        found = model.decode(stored)
        copy = copies.get(found.id)
        if copy is None:
            return
        same = isinstance(found, model.Table) and copying.same_rows(found, copy.compiled.table)
        if change.new is None or not same:
            del copies[found.id]
            self._forget(copy)

    def _brought_up(self, copy: Copy, slots: Sequence[int], run: Run, *, again: bool) -> bool:
        """Converts the copy to a DuckDB table if that pays, and applies pending changes to a table
        if they affect these slots; False when the copy had to be dropped."""
        if len(copy.pending) > max(copy.rows * PENDING_SHARE_MAX, DEAD_ROWS_MIN):
            self._drop(copy)
            return False
        if copy.columns is not None and not again and not _is_worn(copy):
            return True
        try:
            if copy.columns is not None and not self._move(copy, copy.columns, run):
                return False
            if copy.concerns(slots):
                copying.apply(self._cursor, copy)
            if copy.dead > max(copy.rows * DEAD_SHARE_MAX, DEAD_ROWS_MIN):
                copying.compact(self._cursor, copy, self._name(copy.relation))
        except (Unsupported, duckdb.Error):  # not representable in Arrow, or out of memory
            self._refuse(copy.compiled.table)
            self._drop(copy)
            return False
        return True

    # -- making and dropping ------------------------------------------------------------------

    def _build(self, relation: int, reader: Transaction, run: Run) -> None:
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
            self._fill(compiled, reader, run)
        except (Unsupported, duckdb.Error):  # not representable in Arrow, or out of memory
            self._refuse(table)
        finally:
            self._building.discard(relation)

    def _fill(self, compiled: CompiledTable, reader: Transaction, run: Run) -> None:
        columns = Columns(compiled)
        if not self._scan(compiled, reader, run, columns):
            return
        relation = compiled.table.id
        with self._mutex:
            self._advance(reader.position)
            made = {relation: Copy(compiled, columns, columns.rows)}
            try:
                for record in self._log.read(reader.position, self._position):
                    for change in record.changes():
                        self._note(change, made)
            except InvalidInput:  # trimmed meanwhile: the log no longer has what happened since
                return
            if made and self._cursor is not None:
                self._copies[relation] = made[relation]
                self._shrink()

    def _scan(
        self, compiled: CompiledTable, reader: Transaction, run: Run, columns: Columns
    ) -> bool:
        """Scans all rows into `columns`; False when they are too few or too many."""
        scan = reader.scan_values(compiled.start, compiled.end, batch_rows=SCAN_BATCH_ROWS)
        for values in scan:
            run.interrupt.read(len(values))
            if not columns.rows and len(values) < min(self._budget.rows_min, SCAN_BATCH_ROWS):
                return False
            columns.add(list(values))
            if columns.size_bytes > self._budget.bytes_max:
                self._refuse(compiled.table)
                return False
        return columns.rows > 0

    def _move(self, copy: Copy, columns: Columns, run: Run) -> bool:
        """Converts a copy to a DuckDB table; False when it is too large and was dropped."""
        filling = Filling(self._cursor.cursor(), self._name(copy.relation))
        kept = False
        try:
            for batch in columns.batches(copying.live_slots(copy.compiled.table)):
                run.interrupt.check()
                filling.add(batch)
            filling.finish()
            kept = filling.size_bytes <= self._budget.bytes_max
        finally:
            try:
                if not kept:
                    filling.abandon()
            finally:
                filling.close()
        if not kept:
            self._refuse(copy.compiled.table)
            self._drop(copy)
            return False
        copy.name, copy.table_bytes, copy.columns = filling.name, filling.size_bytes, None
        return True

    def _shrink(self) -> None:
        for copy in self._copies.values():
            if self.size_bytes > self._budget.bytes_max and copy.columns is not None:
                copy.columns.forget()
        while self.size_bytes > self._budget.bytes_max and len(self._copies) > 1:
            self._drop(next(iter(self._copies.values())))

    def _name(self, relation: int) -> str:
        self._number += 1
        return f"copy_{relation}_{self._number}"

    def _refuse(self, table: model.Table) -> None:
        self._refused[table.id] = table.version

    def _drop(self, copy: Copy) -> None:
        self._copies.pop(copy.relation, None)
        self._forget(copy)

    def _drop_all(self) -> None:
        for copy in list(self._copies.values()):
            self._drop(copy)

    def _forget(self, copy: Copy) -> None:
        if self._cursor is not None and copy.name:
            self._cursor.execute(f"DROP TABLE IF EXISTS {copy.name}")


def _is_plain(reader: Transaction) -> bool:
    """Whether its reads are not validated at commit, and its catalog is a committed one."""
    changes = reader.changes
    own_catalog = any(change.relation == model.CATALOG_RELATION for change in changes)
    return not reader.isolation.validates_reads and not own_catalog


def _is_worn(copy: Copy) -> bool:
    """Whether reading it as columns has cost, or will cost, more than a DuckDB table."""
    columns_read = copy.reads / len(copying.live_slots(copy.compiled.table))
    return columns_read > READS_MAX or len(copy.pending) > CHANGED_ROWS_MAX


def _differences(
    copy: Copy, slots: Sequence[int], reader: Transaction, past: dict[bytes, Images]
) -> dict[bytes, Images]:
    """For every row that differs between the copy and this reader of these slots: the row in the
    copy, and the row the reader sees."""
    prefix, pending = keyspace.row_prefix(copy.relation), copy.pending
    seen = dict(pending) if copy.concerns(slots) else {}
    for key, image in past.items():
        if key.startswith(prefix):
            before = pending[key].before if key in pending else image.before
            seen[key] = Images(before, image.after)
    for change in reader.changes:
        key = change.key
        if change.relation == copy.relation:
            known = seen.get(key) or pending.get(key)
            seen[key] = Images(change.old if known is None else known.before, change.new)
    return seen


def _lent(cursor: Any, copy: Copy, wanted: Sequence[int], differences: dict[bytes, Images]) -> str:
    """The FROM item for one copy, registered on the cursor."""
    if copy.columns is None:
        source, slots = copy.name, list(copying.live_slots(copy.compiled.table))
    else:
        key = copy.compiled.table.primary_key
        slots = list(dict.fromkeys([*wanted, *key] if differences or not wanted else wanted))
        source = f"held_{copy.relation}"
        cursor.register(source, copy.columns.table(slots))
        copy.reads += len(slots)
    return copying.around(cursor, copy, source, slots, differences) if differences else source


def _past(log: Log, position: int, reached: int) -> dict[bytes, Images]:
    """For every key changed after `position`: its row at `reached`, and its row at `position`."""
    seen: dict[bytes, Images] = {}
    if position == reached:
        return seen
    for record in log.read(position, reached):
        for relation, key, old, new in record.changes():
            whole = keyspace.row_prefix(relation) + key
            known = seen.get(whole)
            seen[whole] = Images(new, old if known is None else known.after)
    return seen
