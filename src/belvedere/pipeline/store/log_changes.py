"""Reading a range of the log in tasks: net changes of rows, or the changed rows of a table as a
frame.

In a frame every old row has weight -1 and every new row weight 1, in the last column; a change that
touches none of the requested columns is dropped where it is read.

    UPDATE orders SET total = 7 WHERE id = 3        customer 5, total 4 -> 7

    customer  total  weight
           5   4.00      -1
           5   7.00       1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from belvedere import failpoints
from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec import keyspace
from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow
from belvedere.codec.rows import RowLayout
from belvedere.errors import Error
from belvedere.execution.spark.dataframes import FrameBuilder, TypedFrame, schema_of
from belvedere.execution.spark.operators import TaskFailure
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.tables import (
    Batches,
    convert_batch_to_carriers,
    create_task_number_frame,
    decode_single_table_catalog,
    iterate_task_numbers,
)
from belvedere.plan.representation import python_equal_may_differ
from belvedere.txn.contracts import RowChange
from belvedere.types import BIGINT, SqlType

LoggedChange = tuple[int, bytes, bytes | None, bytes | None]
"""Relation, key inside it, old and new row."""

Mask = npt.NDArray[np.bool_]


def read_log_changes(
    store: Store, after: int, through: int, only: int | None = None
) -> Iterator[LoggedChange]:
    """The logged changes with after < position <= through; of one relation with `only`."""
    if after >= through:
        return
    for batch in store.read_log(None, after, through):
        mine = batch if only is None else filter_batch_by_relation(batch, only)
        columns = (mine.column(name).to_pylist() for name in ("relation", "key", "old", "new"))
        yield from zip(*columns)


def compute_net_changes(
    changes: Iterable[LoggedChange], relations: frozenset[int]
) -> list[RowChange]:
    """The net change of every row of these relations."""
    prefixes = {relation: keyspace.row_prefix(relation) for relation in relations}
    first: dict[bytes, bytes | None] = {}
    last: dict[bytes, bytes | None] = {}
    for relation, key, old, new in changes:
        prefix = prefixes.get(relation)
        if prefix is not None:
            whole = prefix + key
            first.setdefault(whole, old)
            last[whole] = new
    return [RowChange(key, old, last[key]) for key, old in first.items() if old != last[key]]


def filter_batch_by_relation(batch: pa.RecordBatch, relation: int) -> pa.RecordBatch:
    return batch.filter(pc.equal(batch.column("relation"), relation))


def compute_task_log_range(start: int, end: int, number: int, count: int) -> tuple[int, int]:
    """The range of positions of task `number` of `count`."""
    size = end - start
    return start + size * number // count, start + size * (number + 1) // count


# -- as frames -------------------------------------------------------------------------------------


@dataclass(slots=True)
class ChangeFrames:
    """The changed rows of tables in a range of the log, as frames with a weight. With `share`, a
    table that several terms read is read once and persisted by Spark; `requested_slots` has the
    slots of each request to come."""

    frames: FrameBuilder
    store: Store
    catalog: Catalog
    start: int
    end: int
    tasks: int
    share: bool = False
    requested_slots: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)
    _read: dict[int, tuple[tuple[int, ...], TypedFrame]] = field(default_factory=dict)
    _persisted: list[TypedFrame] = field(default_factory=list)

    def build_changed_rows_frame(self, relation: int, slots: tuple[int, ...]) -> TypedFrame:
        """These slots of the table, then the weight."""
        askers = self.requested_slots.get(relation, [])
        if len(askers) < 2 or not self.share:
            return self._build_table_changes_frame(relation, slots)
        if relation not in self._read:
            every = tuple(sorted({slot for one in askers for slot in one}))
            frame = self._build_table_changes_frame(relation, every)
            frame.data.persist()
            self._persisted.append(frame)
            self._read[relation] = (every, frame)
        every, frame = self._read[relation]
        columns = [frame.columns[every.index(slot)] for slot in slots]
        return self.frames.select_columns(frame.data, [*columns, frame.columns[-1]])

    def unpersist_change_frames(self) -> None:
        for frame in self._persisted:
            frame.data.unpersist()

    def _build_table_changes_frame(self, relation: int, slots: tuple[int, ...]) -> TypedFrame:
        table = self.catalog.table(relation)
        types = (*(table.columns[slot].type for slot in slots), BIGINT)
        names = self.frames.new_names(len(types))
        log_range = (self.start, self.end, self.tasks)
        step = ChangeReadTask(self.store, *log_range, model.encode(table), slots, types, names)
        data = create_task_number_frame(self.frames.spark, self.tasks).mapInArrow(
            step, schema_of(names, types)
        )
        return TypedFrame(data, names, types)


@dataclass(frozen=True, slots=True)
class ChangeReadTask:
    """In a task: reads the old and new rows of one table in its range of positions."""

    store: Store
    start: int
    end: int
    count: int
    encoded: bytes
    slots: tuple[int, ...]
    types: tuple[SqlType, ...]
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        table = model.decode(self.encoded)
        layout = compiled_table(decode_single_table_catalog(self.encoded), table.id).layout
        for number in iterate_task_numbers(batches):
            if failpoints.armed:
                failpoints.hit("pipeline.task")
            low, high = compute_task_log_range(self.start, self.end, number, self.count)
            try:
                for batch in self.store.read_log(None, low, high) if low < high else ():
                    mine = filter_batch_by_relation(batch, table.id)
                    if mine.num_rows:
                        yield from self._build_weighted_batches(layout, mine)
            except Error as error:
                raise TaskFailure(error) from None

    def _build_weighted_batches(self, layout: RowLayout, logged: pa.RecordBatch) -> Batches:
        there = [logged.column(name).is_valid().to_numpy(False) for name in ("old", "new")]
        sides = [
            self._decode_rows_to_columns(layout, logged.column(name)) for name in ("old", "new")
        ]
        kept = self._mask_changed_rows(sides, there[0] & there[1], there)
        for side, mask, weight in zip(sides, kept, (-1, 1)):
            columns = [column.filter(pa.array(mask)) for column in side]
            weights = pa.array(np.full(int(mask.sum()), weight, np.int64))
            if len(weights):
                yield pa.RecordBatch.from_arrays([*columns, weights], names=list(self.names))

    def _decode_rows_to_columns(self, layout: RowLayout, encoded: pa.Array) -> list[pa.Array]:
        rows = rows_to_arrow(layout, encoded.drop_null().to_pylist(), self.slots, self.names[:-1])
        if not self.slots:
            return []
        return list(convert_batch_to_carriers(rows, self.types[:-1], self.names[:-1]).columns)

    def _mask_changed_rows(
        self, sides: list[list[pa.Array]], both: Mask, there: list[Mask]
    ) -> tuple[Mask, Mask]:
        """Masks of the old and of the new rows: those that an update did not leave the same."""
        updated = [both[mask] for mask in there]
        same = np.ones(int(both.sum()), bool)
        if any(map(python_equal_may_differ, self.types)):
            same[:] = False
        for old, new in zip(*sides):
            if not same.any():
                break
            one, other = (
                column.filter(pa.array(mask)) for column, mask in zip((old, new), updated)
            )
            equal = pc.fill_null(pc.equal(one, other), False)
            unknown = pc.and_(one.is_null(), other.is_null())
            same &= pc.or_(equal, unknown).to_numpy(zero_copy_only=False)
        kept = []
        for mask in updated:
            differs = np.ones(len(mask), bool)
            differs[mask] = ~same
            kept.append(differs)
        return kept[0], kept[1]
