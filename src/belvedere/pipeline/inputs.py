"""Inputs of jobs: the catalog and base tables of an open store at one position, as frames.

Tasks read through the socket of the store's owner (`pipeline.store`), in parts of even size, one
for each task. The store's directory, a lease, key ranges and types are pickled to a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from belvedere import failpoints
from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog, empty
from belvedere.catalog.model import Table
from belvedere.codec.arrow import arrow_type
from belvedere.errors import Error
from belvedere.execution.spark.frames import Frame, Frames, schema_of
from belvedere.execution.spark.operators import Failed
from belvedere.execution.spark.types import DIGITS, arrow_carrier, to_array
from belvedere.pipeline.bulk import Source
from belvedere.pipeline.checkpoint import Checkpoint
from belvedere.pipeline.store import Lease, Relation, Split, Store
from belvedere.plan import nodes as n
from belvedere.plan.values.quoting import quote_identifier
from belvedere.types import Interval, Kind, SqlType
from belvedere.views.keep import Bind
from belvedere.views.rekey import CompileExpression

Types = tuple[SqlType, ...]
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Definitions:
    """Binds and compiles the SQL text of a catalog. Passed in by the door above, because only a
    session can bind; both are functions of modules, so they pickle by name."""

    bind: Bind
    compile_expression: CompileExpression


def encoded_catalog(store: Store, lease: Lease) -> tuple[bytes, ...]:
    """Every object of the catalog at the lease's position, encoded: a task decodes its own
    catalog from them."""
    return tuple(store.ask("catalog", **lease.arguments()))


def catalog_of(table: bytes) -> Catalog:
    """A catalog of one table, for tasks that only read that table."""
    found = model.decode(table)
    return empty().replaced({found.id: found})


def decoded_catalog(objects: Sequence[bytes]) -> Catalog:
    decoded = [model.decode(data) for data in objects]
    return Catalog({item.id: item for item in decoded})


@dataclass(slots=True)
class Tables:
    """Base tables at a lease as leaves of a lowered plan. Tables given to `share` are read once for
    all plans of a job and persisted by Spark."""

    frames: Frames
    store: Store
    lease: Lease
    catalog: Catalog
    partitions: int
    copy: Checkpoint | None = None
    _kept: dict[int, tuple[tuple[int, ...], Frame]] = field(default_factory=dict)

    def share(self, wanted: dict[int, set[int]]) -> None:
        """Read these slots of these tables once, for all later scans of them."""
        for relation, slots in wanted.items():
            listed = tuple(sorted(slots))
            frame = self._read(relation, listed)
            frame.data.persist()
            self._kept[relation] = (listed, frame)

    def unpersist(self) -> None:
        for _, frame in self._kept.values():
            frame.data.unpersist()

    def leaf(self, scan: n.Scan) -> Frame:
        kept = self._kept.get(scan.relation)
        if kept is None:
            return self._read(scan.relation, scan.slots)
        slots, frame = kept
        columns = [frame.columns[slots.index(slot)] for slot in scan.slots]
        return self.frames.selected(frame.data, columns)

    def _read(self, relation: int, slots: tuple[int, ...]) -> Frame:
        table = self.catalog.table(relation)
        types = self.frames.carried(tuple(table.columns[slot].type for slot in slots))
        names = self.frames.names(len(slots))
        wanted = whole_table(self.catalog, relation, slots)
        splits = self.store.splits(wanted, self.lease, self.partitions)
        if self.frames.digits:
            step: Callable[[Batches], Batches] = ReadText(
                self.store, self.lease, _as_text(self.catalog, table, slots), types, names
            )
            splits = splits[:1]
        else:
            source = Source(self.store, self.lease, self.copy)
            encoded = model.encode(table)
            step = ReadTable(source, encoded, relation, wanted, tuple(splits), types, names)
        data = tasks(self.frames.spark, len(splits)).mapInArrow(step, schema_of(names, types))
        return Frame(data, names, types)


def tasks(spark: SparkSession, count: int) -> DataFrame:
    """A DataFrame of `count` partitions, one row each: the number of the task."""
    return spark.range(0, max(count, 1), 1, max(count, 1))


def numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


@dataclass(frozen=True, slots=True)
class ReadTable:
    """In a task: reads the rows of its key range, in carried columns."""

    source: Source
    encoded: bytes
    table: int
    relation: Relation
    splits: tuple[Split, ...]
    types: Types
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        catalog = catalog_of(self.encoded)
        for number in numbers(batches):
            if number >= len(self.splits):
                continue
            if failpoints.armed:
                failpoints.hit("fill.task")
            try:
                for batch in self.source.scan(
                    catalog, self.table, self.relation, self.splits[number]
                ):
                    yield carried_batch(batch, self.types, self.names)
            except Error as error:
                raise Failed(error) from None


@dataclass(frozen=True, slots=True)
class ReadText:
    """In one task: reads rows with NUMERIC columns as digits, NaN included."""

    store: Store
    lease: Lease
    query: str
    types: Types
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        for _ in numbers(batches):
            try:
                for batch in self.store.query(self.query, self.lease):
                    yield carried_batch(batch, self.types, self.names)
            except Error as error:
                raise Failed(error) from None


def carried_batch(batch: pa.RecordBatch, types: Types, names: Sequence[str]) -> pa.RecordBatch:
    """Convert columns from the form in which the store sends them (`codec.arrow`) to carriers."""
    if not names:
        return pa.RecordBatch.from_arrays(
            [pa.array([1] * batch.num_rows, pa.int32())], names=["nothing"]
        )
    columns = [_column(column, one) for column, one in zip(batch.columns, types)]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def _column(column: pa.Array, sql_type: SqlType) -> pa.Array:
    if sql_type.kind is Kind.TIME:
        return column.cast(pa.int64())
    if sql_type.kind is Kind.INTERVAL:
        values = [
            None if v is None else Interval(v.months, v.days, v.nanoseconds // 1000)
            for v in column.to_pylist()
        ]
        return to_array(values, sql_type)
    if sql_type.kind is Kind.UUID and column.type == arrow_type(sql_type):
        texts = [None if v is None else _uuid_text(v.hex()) for v in column.to_pylist()]
        return pa.array(texts, pa.utf8())
    wanted = arrow_carrier(sql_type)
    return column if column.type == wanted else column.cast(wanted)


def _uuid_text(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def whole_table(catalog: Catalog, relation: int, slots: Sequence[int]) -> Relation:
    """The read request for these slots of all rows of a table."""
    table = catalog.table(relation)
    return Relation("table", _full_name(catalog, table), _column_names(table, slots))


def _full_name(catalog: Catalog, table: Table) -> str:
    schema = next(s.name for s in catalog.schemas if s.id == table.schema)
    return f"{schema}.{table.name}"


def _column_names(table: Table, slots: Sequence[int]) -> tuple[str, ...]:
    """The names of the slots' columns; of any one column for no slots, so that rows are counted."""
    live = [column.slot for column in table.columns if not column.dropped and not column.hidden]
    return tuple(table.columns[slot].name for slot in slots or live[:1])


def _as_text(catalog: Catalog, table: Table, slots: Sequence[int]) -> str:
    schema = next(s.name for s in catalog.schemas if s.id == table.schema)
    columns = [
        quote_identifier(table.columns[slot].name)
        + ("::text" if table.columns[slot].type.kind is DIGITS.kind else "")
        for slot in slots
    ]
    return f"SELECT {', '.join(columns) or '1'} FROM {quote_identifier(schema, table.name)}"
