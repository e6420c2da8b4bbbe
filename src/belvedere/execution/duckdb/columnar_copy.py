"""The columnar copy of one table: its rows at a position, first in stored form with the columns
decoded so far, or as the columns fetched so far (`columns`), later as a table of DuckDB.

    held_17                     relation 17: Arrow columns, registered for one statement
    copy_17_3 (s0, s1, s4)      third table of it; a column for every live slot

Changed rows of a table are deleted by primary key and added at the end, so a copy has no order.
Arrow columns never change. A reader at another position than the copy's, or with writes of its own,
masks the differing rows and adds its own:

    copy_17_3 without the keys of mask_17, and extra_17
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow
from belvedere.execution.duckdb.columns import TableColumns
from belvedere.execution.duckdb.fetched_columns import FetchedColumns

COMPARED_ROWS_MAX = 200
"""Up to this many pending changes are tracked by slot; more affect every reader."""

FILL_ROWS = 60_000
"""Number of scanned rows passed to DuckDB at a time."""


ROWS = -1
"""Among touched slots: rows were inserted or deleted."""


class RowImages(NamedTuple):
    """A row of the table before and after changes; None: absent."""

    before: bytes | None
    after: bytes | None


@dataclass(slots=True)
class ColumnarCopy:
    """`columns` until it is a table of DuckDB, which then has `name` and `table_bytes`. `pending`
    are the changes since that are in neither yet, by key, and `touched` the slots that differ by
    them. `reads` counts the columns that statements have read of `columns`."""

    compiled: CompiledTable
    columns: TableColumns | FetchedColumns | None
    rows: int
    name: str = ""
    table_bytes: int = 0
    reads: int = 0
    dead: int = 0
    pending: dict[bytes, RowImages] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)

    @property
    def relation(self) -> int:
        return self.compiled.table.id

    @property
    def size_bytes(self) -> int:
        return self.table_bytes if self.columns is None else self.columns.size_bytes

    @property
    def has_all_columns(self) -> bool:
        """Whether nothing has to be fetched to make a table of it."""
        columns, slots = self.columns, live_slots(self.compiled.table)
        return not isinstance(columns, FetchedColumns) or columns.has_slots(slots)

    def add_change(self, key: bytes, old: bytes | None, new: bytes | None) -> None:
        known = self.pending.get(key)
        self.pending[key] = RowImages(old if known is None else known.before, new)
        if len(self.pending) <= COMPARED_ROWS_MAX:
            self.touched |= _changed_slots(self.compiled, old, new)

    def affects_slots(self, slots: Iterable[int]) -> bool:
        """Whether pending changes affect these slots, or insert or delete rows."""
        if not self.pending:
            return False
        return len(self.pending) > COMPARED_ROWS_MAX or not self.touched.isdisjoint((*slots, ROWS))


def _changed_slots(compiled: CompiledTable, old: bytes | None, new: bytes | None) -> set[int]:
    """The slots a change touches. Values are compared by representation: 1.0 differs from 1.00."""
    if old is None or new is None:
        return {ROWS}
    pairs = zip(compiled.decode(old), compiled.decode(new))
    return {slot for slot, (one, other) in enumerate(pairs) if repr(one) != repr(other)}


def live_slots(table: Table) -> tuple[int, ...]:
    return tuple(column.slot for column in table.columns if not column.dropped)


def has_same_layout(one: Table, other: Table) -> bool:
    """Whether rows mean the same to both definitions: names and constraints do not matter."""
    if one is other:
        return True
    shapes = [
        [(c.slot, c.type_name, c.missing, c.dropped) for c in table.columns]
        for table in (one, other)
    ]
    return shapes[0] == shapes[1] and one.primary_key == other.primary_key


def arrow_columns(compiled: CompiledTable, values: list[bytes], slots: Sequence[int]) -> Any:
    names = [f"s{slot}" for slot in slots]
    return pa.Table.from_batches([rows_to_arrow(compiled.layout, values, slots, names)])


# -- keeping it up to date -------------------------------------------------------------------------


class CopyTableWriter:
    """Writes the DuckDB table of a copy: DuckDB loads each batch in a separate thread while the
    next batch is prepared."""

    def __init__(self, cursor: Any, name: str) -> None:
        self._cursor = cursor
        self.name = name
        self._waiting: list[pa.RecordBatch] = []
        self._pool: ThreadPoolExecutor | None = None
        self._begun: Future[None] | None = None
        self._made = False
        self.rows = self.size_bytes = 0

    def add_batch(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self.rows += batch.num_rows
        self.size_bytes += batch.nbytes
        if sum(one.num_rows for one in self._waiting) >= FILL_ROWS:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "belvedere-copy")
            self._wait_for_load()
            taken, self._waiting = self._waiting, []
            self._begun = self._pool.submit(self._load_batches, taken)

    def finish(self) -> None:
        self._wait_for_load()
        if self._waiting:
            self._load_batches(self._waiting)

    def abandon(self) -> None:
        try:
            self._wait_for_load()
        finally:
            self._cursor.execute(f"DROP TABLE IF EXISTS {self.name}")

    def _wait_for_load(self) -> None:
        """Waits for the load in progress, and raises its error."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.result()

    def _load_batches(self, batches: list[pa.RecordBatch]) -> None:
        verb = f"INSERT INTO {self.name}" if self._made else f"CREATE TABLE {self.name} AS"
        self._cursor.register("made", pa.Table.from_batches(batches))
        try:
            self._cursor.execute(f"{verb} SELECT * FROM made")
        finally:
            self._cursor.unregister("made")
        self._made = True

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        self._cursor.close()


def apply_pending(cursor: Any, copy: ColumnarCopy) -> None:
    """Applies the pending changes to DuckDB's table in one of its transactions."""
    gone = [image.before for image in copy.pending.values() if image.before is not None]
    come = [image.after for image in copy.pending.values() if image.after is not None]
    cursor.execute("BEGIN")
    try:
        if gone:
            _delete_rows(cursor, copy, gone)
        if come:
            _insert_rows(cursor, copy, come)
    except BaseException:
        cursor.execute("ROLLBACK")
        raise
    cursor.execute("COMMIT")
    copy.pending.clear()
    copy.touched.clear()
    copy.dead += len(gone)
    copy.rows += len(come) - len(gone)


def _delete_rows(cursor: Any, copy: ColumnarCopy, rows: list[bytes]) -> None:
    slots = copy.compiled.table.primary_key
    cursor.register("gone", arrow_columns(copy.compiled, rows, slots))
    try:
        cursor.execute(f"DELETE FROM {copy.name} AS k USING gone AS m WHERE {_same_key(slots)}")
    finally:
        cursor.unregister("gone")


def _insert_rows(cursor: Any, copy: ColumnarCopy, rows: list[bytes]) -> None:
    slots = live_slots(copy.compiled.table)
    cursor.register("come", arrow_columns(copy.compiled, rows, slots))
    try:
        cursor.execute(f"INSERT INTO {copy.name} SELECT * FROM come")
    finally:
        cursor.unregister("come")


def compact_table(cursor: Any, copy: ColumnarCopy, name: str) -> None:
    """Rebuilds the table without the space of deleted rows."""
    cursor.execute(f"CREATE TABLE {name} AS SELECT * FROM {copy.name}")
    cursor.execute(f"DROP TABLE {copy.name}")
    copy.name, copy.dead = name, 0


def _same_key(slots: Iterable[int]) -> str:
    return " AND ".join(f"k.s{slot} = m.s{slot}" for slot in slots)


# -- reads with differences ------------------------------------------------------------------------


def source_with_differences(
    cursor: Any,
    copy: ColumnarCopy,
    source: str,
    slots: Sequence[int],
    differences: Mapping[bytes, RowImages],
) -> str:
    """The FROM item for a reader whose rows differ in part: `before` is the row in the source,
    `after` the row the reader sees."""
    hidden = [image.before for image in differences.values() if image.before is not None]
    added = [image.after for image in differences.values() if image.after is not None]
    key = copy.compiled.table.primary_key
    columns = ", ".join(f"s{slot}" for slot in slots)
    text = f"SELECT {columns} FROM {source} AS k"
    if hidden:
        cursor.register(f"mask_{copy.relation}", arrow_columns(copy.compiled, hidden, key))
        text += f" ANTI JOIN mask_{copy.relation} AS m ON {_same_key(key)}"
    if added:
        cursor.register(f"extra_{copy.relation}", arrow_columns(copy.compiled, added, slots))
        text += f" UNION ALL SELECT {columns} FROM extra_{copy.relation}"
    return f"({text})"
