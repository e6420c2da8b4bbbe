"""Columnar copies of the tables that large statements read, and who may read them.

A copy is made when a whole table is read, from the rows that statement scans, and kept within a
budget; the least recently read go first. It is in effect a deferred projection in memory: every
statement first brings the copies it reads up to its own position by the log, then reads them in a
transaction of DuckDB, so that a later statement's changes do not show.

    position   how far the log has been read, for all copies alike
    pending    what each copy still lacks of that

Invariants
- A copy without pending changes is the table exactly at `position`.
- Who reads at an older position, or has written, reads the copy around the difference.
- What cannot be done exactly (a trimmed log, another shape of the table, values that Arrow has no
  place for) is read from the table itself, as if there were no copies.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import duckdb

from belvedere.catalog import model
from belvedere.catalog.relation import CompiledTable, compiled_table
from belvedere.codec import keyspace
from belvedere.codec.arrow import rows_to_arrow
from belvedere.codec.record import Change, Record
from belvedere.errors import InvalidInput, Unsupported
from belvedere.execution.duck import copy as copying
from belvedere.execution.duck.copy import Copy, Filling, Images
from belvedere.execution.run import Run
from belvedere.txn.transaction import Transaction

SCAN_BATCH_ROWS = 20_000
CATCH_UP_POSITIONS_MAX = 100_000
"""A copy that is further behind is made anew: a scan is quicker than so much of the log."""

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
        self, cursor: Any, relations: Iterable[int], run: Run, *, build: bool = True
    ) -> dict[int, str]:
        """What stands in FROM for the tables that have a copy, in `cursor`, which is in a
        transaction afterwards; the others have to be scanned."""
        reader, wanted = run.reader, dict.fromkeys(relations)
        if not wanted or not isinstance(reader, Transaction) or not _is_plain(reader):
            return {}
        if build:
            for relation in wanted:
                self._build(relation, reader, run)
        with self._mutex:
            if not any(relation in self._copies for relation in wanted):
                return {}
            self._advance(reader.position)
            usable = [copy for one in wanted if (copy := self._usable(one, reader)) is not None]
            if not usable:
                return {}
            try:
                past = _past(self._log, reader.position, self._position)
            except InvalidInput:  # trimmed
                return {}
            cursor.execute("BEGIN")
            cursor.execute(f"SELECT 1 FROM {usable[0].name} LIMIT 0")  # the snapshot is taken here
            return {copy.relation: self._lent(cursor, copy, reader, past) for copy in usable}

    def _usable(self, relation: int, reader: Transaction) -> Copy | None:
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
        return copy if self._brought_up(copy) else None

    def _lent(self, cursor: Any, copy: Copy, reader: Transaction, past: dict[bytes, Images]) -> str:
        prefix = keyspace.row_prefix(copy.relation)
        seen = {key: image for key, image in past.items() if key.startswith(prefix)}
        for change in reader.changes:
            if change.relation == copy.relation:
                before = seen[change.key].before if change.key in seen else change.old
                seen[change.key] = Images(before, change.new)
        return copying.around(cursor, copy, seen) if seen else copy.name

    def note_of(self, relation: int) -> str | None:
        """A line about the copy of a table, for EXPLAIN."""
        with self._mutex:
            copy = self._copies.get(relation)
            if copy is None:
                return None
            return f"columnar copy of {copy.rows} rows, last at position {self._position}"

    # -- the log ------------------------------------------------------------------------------

    def _advance(self, position: int) -> None:
        """Note what the log says up to `position` for every copy."""
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
        """A copy ends with the shape of its table."""
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

    def _brought_up(self, copy: Copy) -> bool:
        """Apply what is pending; False when the copy had to be given up."""
        if not copy.pending:
            return True
        if len(copy.pending) > max(copy.rows * PENDING_SHARE_MAX, DEAD_ROWS_MIN):
            self._drop(copy)
            return False
        try:
            copying.apply(self._cursor, copy)
            if copy.dead > max(copy.rows * DEAD_SHARE_MAX, DEAD_ROWS_MIN):
                copying.compact(self._cursor, copy, self._name(copy.relation))
        except (Unsupported, duckdb.Error):  # no place in Arrow, or in memory
            self._refuse(copy.compiled.table)
            self._drop(copy)
            return False
        return True

    # -- making and dropping ------------------------------------------------------------------

    def _build(self, relation: int, reader: Transaction, run: Run) -> None:
        """Make a copy of the table as this reader sees it, unless there is a reason not to."""
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
        except (Unsupported, duckdb.Error):  # no place in Arrow, or in memory
            self._refuse(table)
        finally:
            self._building.discard(relation)

    def _fill(self, compiled: CompiledTable, reader: Transaction, run: Run) -> None:
        with self._mutex:
            if self._cursor is None:
                return
            filling = Filling(self._cursor.cursor(), self._name(compiled.table.id))
        kept = False
        try:
            if self._scan(compiled, reader, run, filling):
                filling.finish()
                kept = self._keep(compiled, filling, reader)
        finally:
            try:
                if not kept:
                    filling.abandon()
            finally:
                filling.close()

    def _scan(
        self, compiled: CompiledTable, reader: Transaction, run: Run, filling: Filling
    ) -> bool:
        """All rows; False when they are too few or too many."""
        slots = copying.live_slots(compiled.table)
        names = [f"s{slot}" for slot in slots]
        scan = reader.scan_values(compiled.start, compiled.end, batch_rows=SCAN_BATCH_ROWS)
        for values in scan:
            run.interrupt.read(len(values))
            if not filling.rows and len(values) < min(self._budget.rows_min, SCAN_BATCH_ROWS):
                return False
            filling.add(rows_to_arrow(compiled.layout, list(values), slots, names))
            if filling.size_bytes > self._budget.bytes_max:
                self._refuse(compiled.table)
                return False
        return filling.rows > 0

    def _keep(self, compiled: CompiledTable, filling: Filling, reader: Transaction) -> bool:
        """Whether it could be kept: the log still has what happened since."""
        relation = compiled.table.id
        with self._mutex:
            self._advance(reader.position)
            version = reader.catalog.version
            copy = Copy(compiled, filling.name, filling.rows, filling.size_bytes, version)
            made = {relation: copy}
            try:
                for record in self._log.read(reader.position, self._position):
                    for change in record.changes():
                        self._note(change, made)
            except InvalidInput:  # trimmed meanwhile
                return False
            if not made or self._cursor is None:
                return False
            self._copies[relation] = copy
            self._shrink()
            return True

    def _shrink(self) -> None:
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
        if self._cursor is not None:
            self._cursor.execute(f"DROP TABLE IF EXISTS {copy.name}")


def _is_plain(reader: Transaction) -> bool:
    """Whether its reads need not be remembered, and its catalog is a committed one."""
    changes = reader.changes
    own_catalog = any(change.relation == model.CATALOG_RELATION for change in changes)
    return not reader.isolation.validates_reads and not own_catalog


def _past(log: Log, position: int, reached: int) -> dict[bytes, Images]:
    """For every key changed after `position`: what it is at `reached`, and what it was."""
    seen: dict[bytes, Images] = {}
    if position == reached:
        return seen
    for record in log.read(position, reached):
        for relation, key, old, new in record.changes():
            whole = keyspace.row_prefix(relation) + key
            known = seen.get(whole)
            seen[whole] = Images(new, old if known is None else known.after)
    return seen
