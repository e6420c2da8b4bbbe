"""Leaves of DuckDB statements: rows of the store through the same access paths, as Arrow tables.

Scans of the primary key turn encoded rows into columns without a Python loop; everything else
(index look-ups, table functions, system tables) is run by the direct tier and converted row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import compiled_table, compiled_view
from belvedere.codec.arrow.rows_to_arrow import arrow_type, rows_to_arrow
from belvedere.codec.arrow.state_to_arrow import states_to_arrow
from belvedere.codec.rows import RowLayout
from belvedere.errors import Unsupported
from belvedere.execution.duckdb.types import NotExact
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.operators.access import compile_ranges
from belvedere.execution.python.operators.scan_requests import (
    Narrow,
    compile_narrowing,
    has_store_condition,
)
from belvedere.execution.run import Run
from belvedere.plan import access as paths
from belvedere.plan import nodes as n
from belvedere.types import Kind, Row, SqlType

SCAN_BATCH_ROWS = 20_000
GIVEN_BATCH_ROWS = 100_000

Read = Callable[[Run], pa.Table]


@dataclass(frozen=True, slots=True)
class DuckLeaf:
    """`read` returns columns c0.. ; `relation` is the table whose columnar copy, with these slots,
    can be read instead. `narrow`: how a store that can filter reads it for its condition."""

    name: str
    read: Read
    relation: int | None = None
    slots: tuple[int, ...] = ()
    narrow: Narrow | None = None


def compile_leaf(catalog: Catalog, node: n.Node) -> DuckLeaf:
    name = getattr(node, "name", type(node).__name__)
    if isinstance(node, n.Scan) and node.access.index is None:
        if node.access.kind is not paths.AccessKind.KEY:
            if isinstance(catalog.get(node.relation), Table):
                whole = node.access.kind is paths.AccessKind.FULL and not node.access.ordered
                relation = node.relation if whole and not node.access.reverse else None
                narrow = compile_narrowing(node, node.filter)
                filtered = narrow if has_store_condition(node, node.filter) else None
                read = _compile_scan(catalog, node, narrow)
                return DuckLeaf(name, read, relation, node.slots, filtered)
            if not node.access.reverse:
                return DuckLeaf(name, _compile_state_scan(catalog, node))
    types = [field.type for field in node.fields]
    if isinstance(node, n.Changes):
        return DuckLeaf(name, lambda run: _delta_table(run.deltas[node.relation], types))
    rows = compile_plan(catalog, node)
    return DuckLeaf(name, lambda run: _convert_rows(run.memory.hold_rows(rows(run)), types))


@dataclass(frozen=True, slots=True)
class StoredDelta(Sequence[Any]):
    """Rows for a Changes leaf in stored form: they are decoded to columns without a loop."""

    layout: RowLayout
    slots: tuple[int, ...]
    values: list[bytes]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: Any) -> Any:
        project = self.layout.projector(self.slots)
        found = self.values[at]
        return [project(one) for one in found] if isinstance(at, slice) else project(found)

    def to_table(self) -> pa.Table:
        names, size = [f"c{i}" for i in range(len(self.slots))], GIVEN_BATCH_ROWS
        parts = [self.values[at : at + size] for at in range(0, len(self.values), size)]
        if not names:
            return pa.table({"nothing": pa.array([1] * len(self.values), pa.int32())})
        return pa.Table.from_batches(
            [rows_to_arrow(self.layout, part, self.slots, names) for part in parts]
        )


class ColumnDelta(tuple[Any, ...]):
    """Rows for a Changes leaf that are columns c0.. already."""

    table: pa.Table

    @classmethod
    def of_table(cls, table: pa.Table) -> ColumnDelta:
        made = cls()
        made.table = table
        return made


def _delta_table(rows: Sequence[Any], types: list[SqlType]) -> pa.Table:
    if isinstance(rows, ColumnDelta):
        return rows.table
    if isinstance(rows, StoredDelta) and rows.values:
        return rows.to_table()
    return _convert_rows(list(rows), types)


def _convert_rows(rows: list[Any], types: list[SqlType]) -> pa.Table:
    """Rows as a table. `NotExact` for values that Arrow cannot represent: the amounts of a view's
    state may be integers of any length."""
    try:
        return rows_to_table(rows, types)
    except (OverflowError, pa.ArrowInvalid) as error:
        raise NotExact(f"a value has no place in Arrow: {error}") from error


def compile_scan_parts(
    catalog: Catalog, node: n.Scan
) -> Callable[[Run], Iterator[pa.Table | list[Row]] | None]:
    """Reads a scan of a table part by part, as columns, or as rows where Arrow cannot represent a
    value. None: the store has another way to read it."""
    compiled = compiled_table(catalog, node.relation)
    context = CompileContext(catalog, lambda inner: compile_plan(catalog, inner))
    ranges = compile_ranges(context, node.access, compiled.key)
    narrow = compile_narrowing(node, node.filter)
    names = [f"c{i}" for i in range(len(node.slots))]
    project = compiled.layout.projector(node.slots)

    def scan_parts(run: Run) -> Iterator[pa.Table | list[Row]]:
        for start, end in ranges(run, run.outer):
            for values in run.reader.scan_values(start, end, batch_rows=SCAN_BATCH_ROWS):
                run.interrupt.count_rows(len(values))
                try:
                    found = rows_to_arrow(compiled.layout, list(values), node.slots, names)
                except Unsupported:
                    yield list(map(project, values))
                else:
                    yield pa.Table.from_batches([found])

    return lambda run: scan_parts(run) if narrow(run) is None else None


def _compile_scan(catalog: Catalog, node: n.Scan, narrow: Narrow) -> Read:
    compiled = compiled_table(catalog, node.relation)
    context = CompileContext(catalog, lambda inner: compile_plan(catalog, inner))
    ranges = compile_ranges(context, node.access, compiled.key)
    names = [f"c{i}" for i in range(len(node.slots))]
    types = [field.type for field in node.fields]

    def scan_batches(run: Run) -> Iterator[pa.RecordBatch]:
        narrowed = narrow(run)
        for start, end in ranges(run, run.outer):
            if narrowed is not None:
                for batch in narrowed.scan_columns(start, end):
                    run.interrupt.count_rows(batch.num_rows)
                    yield batch
                continue
            for values in run.reader.scan_values(start, end, batch_rows=SCAN_BATCH_ROWS):
                run.interrupt.count_rows(len(values))
                if names:
                    yield rows_to_arrow(compiled.layout, list(values), node.slots, names)
                else:
                    yield pa.record_batch({"nothing": pa.array([1] * len(values), pa.int32())})

    def read_scan(run: Run) -> pa.Table:
        found = list(scan_batches(run))
        if not found:
            return rows_to_table([], types)
        table = pa.Table.from_batches(found)
        if node.access.reverse:  # one range: several in reverse order never occur
            return table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64()))
        return table

    return read_scan


def _compile_state_scan(catalog: Catalog, node: n.Scan) -> Read:
    """The stored state of a view. `NotExact` for amounts of more than eight bytes."""
    compiled = compiled_view(catalog, node.relation)
    context = CompileContext(catalog, lambda inner: compile_plan(catalog, inner))
    ranges = compile_ranges(context, node.access, compiled.key)
    names = [f"c{i}" for i in range(len(node.slots))] or ["nothing"]
    slots = node.slots or (len(compiled.payload.slots),)
    types = [field.type for field in node.fields]

    def read_state(run: Run) -> pa.Table:
        found = []
        for start, end in ranges(run, run.outer):
            for values in run.reader.scan_values(start, end, batch_rows=SCAN_BATCH_ROWS):
                run.interrupt.count_rows(len(values))
                if values:
                    arrays = states_to_arrow(
                        compiled.payload, compiled.layout.amounts, list(values), slots
                    )
                    if arrays is None:
                        raise NotExact("an amount of a view has no place in Arrow")
                    found.append(pa.RecordBatch.from_arrays(arrays, names=names))
        return pa.Table.from_batches(found) if found else rows_to_table([], types)

    return read_state


def rows_to_table(rows: list[Any], types: list[SqlType]) -> pa.Table:
    """Python rows as a table of columns c0.. ."""
    if not types:
        return pa.table({"nothing": pa.array([1] * len(rows), pa.int32())})
    columns = list(zip(*rows)) if rows else [()] * len(types)
    arrays = [_column_array(list(values), one) for values, one in zip(columns, types)]
    return pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(types))])


def _column_array(values: list[Any], sql_type: SqlType) -> pa.Array:
    kind = sql_type.kind
    if kind is Kind.UUID:
        values = [None if value is None else value.bytes for value in values]
    elif kind is Kind.INTERVAL:
        values = [None if v is None else (v.months, v.days, v.microseconds * 1000) for v in values]
    elif kind is Kind.ARRAY:
        assert sql_type.element is not None
        return pa.array(values, pa.list_(arrow_type(sql_type.element)))
    return pa.array(values, arrow_type(sql_type))
