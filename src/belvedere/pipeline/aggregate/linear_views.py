"""Deltas of views that use the rows of their tables one by one, computed in Arrow columns.

Such a view is linear in each single change: nothing has to be looked up, and no rows have to be
exchanged before they are summed. So a task reads its part of the log as Arrow columns, each old
row with weight -1 and each new row with weight 1, evaluates the view's conditions and expressions
on them, and sums with signs (`pipeline.aggregate.arrow_sums`); only sums leave the task.

    UPDATE orders SET total = 7 WHERE id = 3        customer 5, total 4 -> 7

    customer  total  weight                 customer  rows  values  units
           5   4.00      -1        ->              5     0       0    300
           5   7.00       1

Plain columns pass unchanged; an expression is evaluated over Arrow columns where Arrow is exact,
else by its Python form. A row that was inserted and deleted within the range is evaluated too.
Should that fail, the batch is computed again by the one maintenance function, which sees only net
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow
from belvedere.errors import Error
from belvedere.execution.spark.operators import ComputeTask, TaskFailure
from belvedere.execution.spark.types import NotNative, SparkExpression
from belvedere.pipeline.aggregate.additions import SumRecorder, encode_nonzero_sums
from belvedere.pipeline.aggregate.arrow_sums import (
    GroupAdder,
    SummedColumns,
    plan_summed_columns,
)
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.compiled_views import CompiledViews, get_compiled_views
from belvedere.pipeline.store.tables import (
    Batches,
    DefinitionCompiler,
    convert_batch_to_carriers,
    iterate_task_numbers,
)
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.types import BOOLEAN, SqlType
from belvedere.views.delta.delta_tree import LinearCore
from belvedere.views.delta.linear_core import CoreBranch, Expressions
from belvedere.views.delta.sessionless_run import ENVIRONMENT


@dataclass(frozen=True, slots=True)
class LinearBranch:
    """A branch of a view: rows of one table, the conditions on them, and the columns to sum."""

    relation: int
    slots: tuple[int, ...]
    types: tuple[SqlType, ...]
    conditions: Expressions
    columns: Expressions


@dataclass(frozen=True, slots=True)
class LinearView:
    """A view that uses the rows of its tables one by one."""

    branches: tuple[LinearBranch, ...]
    calls: SummedColumns


def try_compile_linear_view(known: CompiledViews, view: View) -> LinearView | None:
    """Compile the view for Arrow columns; None unless it uses the rows of its tables one by one and
    can be summed in columns."""
    compiled = known.get_maintenance_plan(view)
    tree = compiled.tree
    if not isinstance(tree, LinearCore) or not all(map(_is_single_table_branch, tree.branches)):
        return None
    group = compiled.group
    fields = [SparkExpression("", one.type) for one in tree.plan.fields]
    wanted: list[e.Expression] = [
        e.Column(i, one.type, one.name) for i, one in enumerate(tree.plan.fields)
    ]
    if group is not None:
        wanted = [*group.groups]
        for call in group.calls:
            wanted += call.arguments
            wanted += () if call.filter is None else (call.filter,)
        fields = [SparkExpression("", one.type) for one in wanted]
    try:
        calls = plan_summed_columns(group, fields)
    except NotNative:
        return None
    changing = [one for one in tree.branches if not one.leaves[0].constant]
    return LinearView(
        tuple(_compile_linear_branch(known.catalog, one, wanted) for one in changing), calls
    )


def _is_single_table_branch(branch: CoreBranch) -> bool:
    expressions = (*branch.conditions, *branch.columns)
    return len(branch.leaves) == 1 and not any(map(transform.has_subplan, expressions))


def _compile_linear_branch(
    catalog: Catalog, branch: CoreBranch, wanted: Sequence[e.Expression]
) -> LinearBranch:
    (leaf,) = branch.leaves
    columns = catalog.table(leaf.relation).columns
    over = [transform.substitute_columns(one, branch.columns) for one in wanted]
    types = tuple(columns[slot].type for slot in leaf.slots)
    return LinearBranch(leaf.relation, leaf.slots, types, branch.conditions, tuple(over))


# -- in a task -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LinearDeltaTask:
    """In a task: computes what its part of the log range adds to some views."""

    store: Store
    objects: tuple[bytes, ...]
    definitions: DefinitionCompiler
    start: int
    end: int
    count: int
    views: tuple[int, ...]

    def __call__(self, batches: Batches) -> Batches:
        known = get_compiled_views(self.objects, self.definitions)
        for number in iterate_task_numbers(batches):
            if failpoints.armed:
                failpoints.hit("pipeline.task")
            recorder = SumRecorder()
            try:
                self._sum_log_changes(known, number, recorder)
            except Error as error:
                raise TaskFailure(error) from None
            yield from encode_nonzero_sums(recorder.sums)

    def _sum_log_changes(self, known: CompiledViews, number: int, recorder: SumRecorder) -> None:
        adders, readers = make_adders_and_feeds(known, self.views)
        for batch in self._read_task_log_range(number):
            for relation, reader in readers.items():
                mine = batch.filter(pc.equal(batch.column("relation"), relation))
                for name, weight in (("old", -1), ("new", 1)):
                    reader.feed_encoded_rows(mine.column(name).drop_null().to_pylist(), weight)
        for adder in adders:
            adder.record_group_sums(recorder)

    def _read_task_log_range(self, number: int) -> Iterator[pa.RecordBatch]:
        size = self.end - self.start
        low = self.start + size * number // self.count
        high = self.start + size * (number + 1) // self.count
        return self.store.read_log(None, low, high) if low < high else iter(())


class TableFeed:
    """Feeds the rows of one table, decoded once, to all the views that use them."""

    def __init__(self, catalog: Catalog, relation: int) -> None:
        self._table = compiled_table(catalog, relation)
        self._branches: list[tuple[BranchEvaluator, GroupAdder]] = []
        self.slots: tuple[int, ...] = ()
        self.types: tuple[SqlType, ...] = ()

    def add_view_branch(self, side: LinearBranch, adder: GroupAdder) -> None:
        """Add a branch of a view that gets the rows."""
        self._branches.append((BranchEvaluator(side, adder.types), adder))
        self.slots = tuple(sorted({slot for one, _ in self._branches for slot in one.slots}))
        self.types = tuple(self._table.layout.types[slot] for slot in self.slots)

    def feed_encoded_rows(self, rows: list[bytes], weight: int) -> None:
        if rows:
            names = [f"c{slot}" for slot in self.slots]
            self.feed_arrow_batch(
                rows_to_arrow(self._table.layout, rows, self.slots, names), len(rows), weight
            )

    def feed_arrow_batch(self, batch: pa.RecordBatch, count: int, weight: int) -> None:
        """Add a batch of the slots' columns, in the form in which the store sends them."""
        names = [f"c{slot}" for slot in self.slots]
        found = convert_batch_to_carriers(batch, self.types, names).columns if names else []
        columns = dict(zip(self.slots, found))
        for side, adder in self._branches:
            chosen = [columns[slot] for slot in side.slots]
            adder.add_weighted_rows(
                *side.filter_and_compute_columns(chosen, np.full(count, weight, np.int64))
            )


def make_adders_and_feeds(
    known: CompiledViews, views: Sequence[int]
) -> tuple[list[GroupAdder], dict[int, TableFeed]]:
    """The adders of these views, which use single rows, and by table the feeds of their rows."""
    adders: list[GroupAdder] = []
    readers: dict[int, TableFeed] = {}
    for view in known.require_views_by_id(views):
        linear = try_compile_linear_view(known, view)
        assert linear is not None, "the driver has seen to it"
        adders.append(GroupAdder(known.catalog, view.id, linear.calls))
        for side in linear.branches:
            if side.relation not in readers:
                readers[side.relation] = TableFeed(known.catalog, side.relation)
            readers[side.relation].add_view_branch(side, adders[-1])
    return adders, readers


class BranchEvaluator:
    """A compiled branch of a view: filters rows and computes the columns to sum, batch by batch."""

    def __init__(self, side: LinearBranch, types: tuple[SqlType, ...]) -> None:
        self.slots = side.slots
        self._columns = side.columns
        self._conditions = [
            _compile_column_evaluator(side, (one,), (BOOLEAN,)) for one in side.conditions
        ]
        made = [at for at, one in enumerate(side.columns) if not isinstance(one, e.Column)]
        self._computed_indexes = made
        self._compute = _compile_column_evaluator(
            side, tuple(side.columns[at] for at in made), tuple(types[at] for at in made)
        )

    def filter_and_compute_columns(
        self, columns: list[pa.Array], weights: np.ndarray
    ) -> tuple[list[pa.Array], np.ndarray]:
        """The columns to sum of the rows that meet the conditions, and their weights."""
        for condition in self._conditions:
            held = pc.fill_null(condition(columns, len(weights))[0], False)
            columns = [column.filter(held) for column in columns]
            weights = weights[held.to_numpy(zero_copy_only=False)]
        made = dict(zip(self._computed_indexes, self._compute(columns, len(weights))))
        found = [
            columns[one.index] if isinstance(one, e.Column) else made[at]
            for at, one in enumerate(self._columns)
        ]
        return found, weights


Compute = Callable[[list[pa.Array], int], list[pa.Array]]


def _compile_column_evaluator(
    side: LinearBranch, expressions: Expressions, results: tuple[SqlType, ...]
) -> Compute:
    names = tuple(f"c{i}" for i in range(len(side.types)))
    step = ComputeTask(expressions, side.types, names, (), results, ENVIRONMENT).compile_batch()

    def compute_columns(columns: list[pa.Array], count: int) -> list[pa.Array]:
        rows = pa.nulls(count, pa.int8())  # so that a batch without columns has rows
        return step(pa.RecordBatch.from_arrays([*columns, rows], names=[*names, "rows"]))

    return compute_columns
