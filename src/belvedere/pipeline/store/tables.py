"""Inputs of jobs: the catalog and base tables of an open store at one position, as frames.

Tasks read through the socket of the store's owner (`pipeline.store.client`), in parts of even size,
one for each task. The store's directory, a lease, key ranges and types are pickled to a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from belvedere import failpoints
from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog, empty_catalog
from belvedere.catalog.model import Table
from belvedere.codec.arrow.rows_to_arrow import arrow_type
from belvedere.errors import Error
from belvedere.execution.spark.dataframes import FrameBuilder, TypedFrame, schema_of
from belvedere.execution.spark.operators import TaskFailure
from belvedere.execution.spark.types import DIGITS, arrow_carrier, to_array
from belvedere.pipeline.store.checkpoint import Checkpoint
from belvedere.pipeline.store.checkpoint_scan import TableSource
from belvedere.pipeline.store.client import PositionLease, ReadRequest, RelationSplit, Store
from belvedere.plan import nodes as n
from belvedere.types import Interval, Kind, SqlType
from belvedere.values.quoting import quote_identifier
from belvedere.views.indexes.entries import CompileExpression
from belvedere.views.registry.view_registry import Bind

Types = tuple[SqlType, ...]
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class DefinitionCompiler:
    """Binds and compiles the SQL text of a catalog. Passed in by the door above, because only a
    session can bind; both are functions of modules, so they pickle by name."""

    bind: Bind
    compile_expression: CompileExpression


def fetch_encoded_catalog(store: Store, lease: PositionLease) -> tuple[bytes, ...]:
    """Every object of the catalog at the lease's position, encoded: a task decodes its own
    catalog from them."""
    return tuple(store.call_owner_verb("catalog", **lease.to_verb_arguments()))


def decode_single_table_catalog(table: bytes) -> Catalog:
    """A catalog of one table, for tasks that only read that table."""
    found = model.decode(table)
    return empty_catalog().with_objects({found.id: found})


def decode_catalog(objects: Sequence[bytes]) -> Catalog:
    decoded = [model.decode(data) for data in objects]
    return Catalog({item.id: item for item in decoded})


@dataclass(slots=True)
class TableFrames:
    """Base tables at a lease as leaves of a lowered plan. Tables given to `persist_table_frames`
    are read once for all plans of a job and persisted by Spark."""

    frames: FrameBuilder
    store: Store
    lease: PositionLease
    catalog: Catalog
    partitions: int
    copy: Checkpoint | None = None
    _persisted: dict[int, tuple[tuple[int, ...], TypedFrame]] = field(default_factory=dict)

    def persist_table_frames(self, wanted: dict[int, set[int]]) -> None:
        """Read these slots of these tables once, for all later scans of them."""
        for relation, slots in wanted.items():
            listed = tuple(sorted(slots))
            frame = self._build_table_frame(relation, listed)
            frame.data.persist()
            self._persisted[relation] = (listed, frame)

    def unpersist_table_frames(self) -> None:
        for _, frame in self._persisted.values():
            frame.data.unpersist()

    def build_scan_frame(self, scan: n.Scan) -> TypedFrame:
        kept = self._persisted.get(scan.relation)
        if kept is None:
            return self._build_table_frame(scan.relation, scan.slots)
        slots, frame = kept
        columns = [frame.columns[slots.index(slot)] for slot in scan.slots]
        return self.frames.select_columns(frame.data, columns)

    def _build_table_frame(self, relation: int, slots: tuple[int, ...]) -> TypedFrame:
        table = self.catalog.table(relation)
        types = self.frames.carrier_types(tuple(table.columns[slot].type for slot in slots))
        names = self.frames.new_names(len(slots))
        wanted = build_table_read_request(self.catalog, relation, slots)
        splits = self.store.plan_relation_splits(wanted, self.lease, self.partitions)
        if self.frames.digits:
            step: Callable[[Batches], Batches] = NumericTextReadTask(
                self.store,
                self.lease,
                _build_numeric_text_query(self.catalog, table, slots),
                types,
                names,
            )
            splits = splits[:1]
        else:
            source = TableSource(self.store, self.lease, self.copy)
            encoded = model.encode(table)
            step = TableReadTask(source, encoded, relation, wanted, tuple(splits), types, names)
        data = create_task_number_frame(self.frames.spark, len(splits)).mapInArrow(
            step, schema_of(names, types)
        )
        return TypedFrame(data, names, types)


def create_task_number_frame(spark: SparkSession, count: int) -> DataFrame:
    """A DataFrame of `count` partitions, one row each: the number of the task."""
    return spark.range(0, max(count, 1), 1, max(count, 1))


def iterate_task_numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


@dataclass(frozen=True, slots=True)
class TableReadTask:
    """In a task: reads the rows of its key range, in carried columns."""

    source: TableSource
    encoded: bytes
    table: int
    relation: ReadRequest
    splits: tuple[RelationSplit, ...]
    types: Types
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        catalog = decode_single_table_catalog(self.encoded)
        for number in iterate_task_numbers(batches):
            if number >= len(self.splits):
                continue
            if failpoints.armed:
                failpoints.hit("fill.task")
            try:
                for batch in self.source.scan_table_split(
                    catalog, self.table, self.relation, self.splits[number]
                ):
                    yield convert_batch_to_carriers(batch, self.types, self.names)
            except Error as error:
                raise TaskFailure(error) from None


@dataclass(frozen=True, slots=True)
class NumericTextReadTask:
    """In one task: reads rows with NUMERIC columns as digits, NaN included."""

    store: Store
    lease: PositionLease
    query: str
    types: Types
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        for _ in iterate_task_numbers(batches):
            try:
                for batch in self.store.run_query_at_lease(self.query, self.lease):
                    yield convert_batch_to_carriers(batch, self.types, self.names)
            except Error as error:
                raise TaskFailure(error) from None


def convert_batch_to_carriers(
    batch: pa.RecordBatch, types: Types, names: Sequence[str]
) -> pa.RecordBatch:
    """Convert columns from the form in which the store sends them (`codec.arrow.rows_to_arrow`) to
    carriers."""
    if not names:
        return pa.RecordBatch.from_arrays(
            [pa.array([1] * batch.num_rows, pa.int32())], names=["nothing"]
        )
    columns = [_convert_column_to_carrier(column, one) for column, one in zip(batch.columns, types)]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def _convert_column_to_carrier(column: pa.Array, sql_type: SqlType) -> pa.Array:
    if sql_type.kind is Kind.TIME:
        return column.cast(pa.int64())
    if sql_type.kind is Kind.INTERVAL:
        values = [
            None if v is None else Interval(v.months, v.days, v.nanoseconds // 1000)
            for v in column.to_pylist()
        ]
        return to_array(values, sql_type)
    if sql_type.kind is Kind.UUID and column.type == arrow_type(sql_type):
        texts = [None if v is None else _format_uuid_digits(v.hex()) for v in column.to_pylist()]
        return pa.array(texts, pa.utf8())
    wanted = arrow_carrier(sql_type)
    return column if column.type == wanted else column.cast(wanted)


def _format_uuid_digits(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def build_table_read_request(catalog: Catalog, relation: int, slots: Sequence[int]) -> ReadRequest:
    """The read request for these slots of all rows of a table."""
    table = catalog.table(relation)
    return ReadRequest(
        "table", _qualify_table_name(catalog, table), _list_slot_column_names(table, slots)
    )


def _qualify_table_name(catalog: Catalog, table: Table) -> str:
    schema = next(s.name for s in catalog.schemas if s.id == table.schema)
    return f"{schema}.{table.name}"


def _list_slot_column_names(table: Table, slots: Sequence[int]) -> tuple[str, ...]:
    """The names of the slots' columns; of any one column for no slots, so that rows are counted."""
    live = [column.slot for column in table.columns if not column.dropped and not column.hidden]
    return tuple(table.columns[slot].name for slot in slots or live[:1])


def _build_numeric_text_query(catalog: Catalog, table: Table, slots: Sequence[int]) -> str:
    schema = next(s.name for s in catalog.schemas if s.id == table.schema)
    columns = [
        quote_identifier(table.columns[slot].name)
        + ("::text" if table.columns[slot].type.kind is DIGITS.kind else "")
        for slot in slots
    ]
    return f"SELECT {', '.join(columns) or '1'} FROM {quote_identifier(schema, table.name)}"
