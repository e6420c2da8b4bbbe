"""Task functions of a maintenance batch that read the store's state: look-ups and operators.

    LookupJoinTask          joins rows with the rows of a table that have their key: by primary key
                            or by an index
    RecomputeOperatorTask   touched keys of an operator by partition: its rows after, minus its rows
                            before
    ApplyOperatorTask       inserted and deleted rows on both sides of an outer, semi or anti join,
                            a join of trees or a sub-query: the delta of the operator

Arrow batches in and out, the last column a weight of 1 or -1. Spark does everything before and
after (`pipeline.maintain.delta_dataframes`). The operators are the engine's own
(`views.operators.recompute`, `views.operators.apply`); they are given the deltas of their inputs
instead of computing them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow
from belvedere.errors import Error
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.spark.operators import (
    OperatorInput,
    TaskFailure,
    input_rows,
    rows_to_batches,
)
from belvedere.execution.spark.types import to_array, to_values
from belvedere.pipeline.store.compiled_views import CompiledViews
from belvedere.pipeline.store.log_range_state import LogRangeState
from belvedere.pipeline.store.tables import Batches, convert_batch_to_carriers
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.txn.contracts import Reader
from belvedere.types import BIGINT, Row, SqlType
from belvedere.views.delta.delta_plan import KEYS_LEAF
from belvedere.views.delta.delta_tree import Apply, DeltaTree, child_trees
from belvedere.views.delta.linear_core import Expressions
from belvedere.views.delta.sessionless_run import run_compiled_plan
from belvedere.views.operators.apply import ApplyOperator
from belvedere.views.operators.operator import (
    DeltaOperator,
    DeltaStep,
    KeyLookup,
    WeightedRows,
)
from belvedere.views.operators.recompute import RecomputeOperator

Types = tuple[SqlType, ...]
TreePath = tuple[int, ...]
"""Where a part of a view's tree is: which child, of which child, from the root on."""


def find_subtree_by_path(tree: DeltaTree, place: TreePath) -> DeltaTree:
    for number in place:
        tree = child_trees(tree)[number]
    return tree


def require_range_state(held: LogRangeState | None) -> LogRangeState:
    """The state to read. Task functions that are only explained, never run, have none."""
    assert held is not None, "a step that is run has been given where state is"
    return held


# -- look-ups --------------------------------------------------------------------------------------


class LookupTarget(NamedTuple):
    """Columns of a table, and the parts of its key or of an index by which rows are looked up."""

    scan: n.Scan
    access: paths.Access


@dataclass(frozen=True, slots=True)
class LookupJoinTask:
    """In a task: joins rows with their partners. Input: `width` columns, the weight, and the values
    of the key. Output: the columns, the partner's columns, and the weight."""

    range_state: LogRangeState | None
    partners: LookupTarget
    at_end: bool
    width: int
    key_types: Types
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        scan = self.partners.scan
        try:
            with require_range_state(self.range_state).open_table_reader(
                scan.relation, at_end=self.at_end
            ) as reader:
                find = self._build_partner_finder(reader)
                for batch in batches:
                    if batch.num_rows:
                        yield self._join_batch_with_partners(batch, find)
        except Error as error:
            raise TaskFailure(error) from None

    def _join_batch_with_partners(
        self, batch: pa.RecordBatch, find: PartnerFinder
    ) -> pa.RecordBatch:
        places, keys = _number_distinct_keys(batch, self.width + 1, self.key_types)
        numbers, partners = find(keys)
        counts = np.bincount(numbers, minlength=len(keys))
        order = np.argsort(numbers, kind="stable")
        starts = np.concatenate(([0], np.cumsum(counts)))
        repeats = counts[places]
        left = np.repeat(np.arange(len(places)), repeats)
        firsts = np.repeat(starts[places], repeats)
        within = np.arange(len(left)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        right = order[firsts + within]
        rows = [batch.column(i).take(pa.array(left)) for i in range(self.width + 1)]
        found = [column.take(pa.array(right)) for column in partners]
        return pa.RecordBatch.from_arrays(
            [*rows[: self.width], *found, rows[self.width]], names=list(self.names)
        )

    def _build_partner_finder(self, reader: Reader) -> PartnerFinder:
        access = self.partners.access
        plain = all(type(part) is paths.EqualityPart for part in access.parts)
        if access.index is None and access.full_key and plain:
            return self._build_primary_key_finder(reader)
        return self._build_lookup_join_finder(reader)

    def _build_primary_key_finder(self, reader: Reader) -> PartnerFinder:
        """Find one row at most for each key, by the complete primary key."""
        scan = self.partners.scan
        table = compiled_table(reader.catalog, scan.relation)
        types = tuple(one.type for one in scan.fields)
        names = [f"c{i}" for i in range(len(types))]

        def find_partners_by_key(keys: list[Row]) -> PartnerRows:
            whole = [(at, table.key.encode(key)) for at, key in enumerate(keys) if None not in key]
            values = reader.multi_get([key for _, key in whole]) if whole else []
            found = [(at, value) for (at, _), value in zip(whole, values) if value is not None]
            rows = rows_to_arrow(table.layout, [value for _, value in found], scan.slots, names)
            columns = convert_batch_to_carriers(rows, types, names).columns if names else []
            return np.array([at for at, _ in found], np.int64), columns

        return find_partners_by_key

    def _build_lookup_join_finder(self, reader: Reader) -> PartnerFinder:
        """Find any number of rows for each key, by the engine's own look-up join."""
        scan = self.partners.scan
        width = len(self.key_types)
        fields = tuple(Field(f"key {i}", one) for i, one in enumerate(self.key_types))
        keys_leaf = n.Changes(KEYS_LEAF, "keys", (), (*fields, Field("number", BIGINT)))
        joined = n.Join(
            n.JoinKind.INNER,
            keys_leaf,
            scan,
            method=n.JoinMethod.LOOKUP,
            lookup=n.Lookup(self.partners.access, None),
        )
        rows = compile_plan(reader.catalog, joined)

        def find_partners_by_join(keys: list[Row]) -> PartnerRows:
            given = [(*key, at) for at, key in enumerate(keys)]
            found = list(run_compiled_plan(rows, reader, {KEYS_LEAF: given}))
            columns = list(zip(*(row[width + 1 :] for row in found)))
            types = [one.type for one in scan.fields]
            if not found:
                columns = [()] * len(types)
            arrays = [to_array(list(some), one) for some, one in zip(columns, types)]
            return np.array([row[width] for row in found], np.int64), arrays

        return find_partners_by_join


PartnerRows = tuple[Any, Sequence[pa.Array]]
"""For each row found: the number of its key (an array), and the row's columns."""

PartnerFinder = Callable[[list[Row]], PartnerRows]


def _number_distinct_keys(batch: pa.RecordBatch, first: int, types: Types) -> tuple[Any, list[Row]]:
    """Number the distinct keys of a batch, whose key columns begin at `first`: the key's number
    for each row, and the keys."""
    columns = [batch.column(first + i) for i in range(len(types))]
    if not columns:
        return np.zeros(batch.num_rows, np.int64), [()]
    codes = np.zeros(batch.num_rows, np.int64)
    for column in columns:
        known = column.dictionary_encode(null_encoding="encode")
        codes = codes * max(len(known.dictionary), 1) + known.indices.to_numpy()
        codes = np.unique(codes, return_inverse=True)[1]
    _, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
    some = pa.array(firsts)
    values = [to_values(column.take(some), one) for column, one in zip(columns, types)]
    return places, list(zip(*values))


# -- operators -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecomputeOperatorTask:
    """In the task that owns these keys: recomputes an operator by partition for them."""

    range_state: LogRangeState | None
    view: int
    path: TreePath
    side: OperatorInput
    types: Types
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        try:
            keys = [row for batch in batches for row in input_rows(batch, 0, self.side)]
            if keys:
                held = require_range_state(self.range_state)
                known = held.compiled_views
                maintainer = known.get_view_maintainer(*known.require_views_by_id([self.view]))
                source = maintainer.build_part_operator(
                    find_subtree_by_path(maintainer.tree, self.path)
                )
                assert isinstance(source, RecomputeOperator)
                with held.open_start_and_end_readers() as (before, after):
                    found = source.compute_key_delta(keys, before, after)
                    yield from _encode_weighted_rows(found, self.types, self.names)
        except Error as error:
            raise TaskFailure(error) from None


@dataclass(frozen=True, slots=True)
class ApplyOperatorTask:
    """In the task that owns these keys: computes the delta of an Apply operator for them."""

    range_state: LogRangeState | None
    view: int
    path: TreePath
    sides: tuple[OperatorInput, ...]
    types: Types
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        given: list[list[Row]] = [[] for _ in self.sides]
        try:
            for batch in batches:
                for number, side in enumerate(self.sides):
                    given[number] += input_rows(batch, number, side)
            if any(given):
                held = require_range_state(self.range_state)
                with held.open_start_and_end_readers() as (before, after):
                    step = DeltaStep((), before, held.compiled_views.indexes, after)
                    found = self._build_operator_over_deltas(
                        held.compiled_views, given
                    ).compute_delta(step)
                    yield from _encode_weighted_rows(found, self.types, self.names)
        except Error as error:
            raise TaskFailure(error) from None

    def _build_operator_over_deltas(
        self, known: CompiledViews, given: list[list[Row]]
    ) -> ApplyOperator:
        maintainer = known.get_view_maintainer(*known.require_views_by_id([self.view]))
        tree = find_subtree_by_path(maintainer.tree, self.path)
        assert isinstance(tree, Apply)
        inputs = [
            PrecomputedOperator(maintainer.build_part_operator(one), rows)
            for one, rows in zip(child_trees(tree), given)
        ]
        return ApplyOperator(
            known.catalog, tree, inputs[0], [*inputs[1:]], maintainer.auxiliary_views
        )


class PrecomputedOperator:
    """A delta operator whose delta is given; state is read through the operator it wraps."""

    def __init__(self, source: DeltaOperator, rows: list[Row]) -> None:
        """`rows` is the delta; the last value of each row is its weight."""
        self._source = source
        self._rows = rows
        self.reads_state = source.reads_state

    def compute_delta(self, step: DeltaStep) -> WeightedRows:
        return ((row[:-1], row[-1]) for row in self._rows)

    def compute_all_rows(self, reader: Reader) -> Iterator[Row]:
        return self._source.compute_all_rows(reader)

    def build_key_lookup(self, keys: Expressions) -> KeyLookup:
        return self._source.build_key_lookup(keys)


def _encode_weighted_rows(found: WeightedRows, types: Types, names: tuple[str, ...]) -> Batches:
    """Encode rows with a weight of 1 or -1; a row of a larger weight is repeated."""
    rows = [(*row, 1 if weight > 0 else -1) for row, weight in found for _ in range(abs(weight))]
    return rows_to_batches(rows, types, names)


def extract_lookup_key_values(access: paths.Access) -> tuple[Expressions, paths.Access]:
    """The key values of a look-up as expressions over the row, and the same look-up by the columns
    that will hold these values."""
    values: list[e.Expression] = []
    parts: list[paths.Part] = []
    for part in access.parts:
        if isinstance(part, paths.EqualityPart):
            parts.append(paths.EqualityPart(e.Column(len(values), part.value.type)))
            values.append(part.value)
        else:
            parts.append(part)
    made = paths.Access(access.index, access.index_name, tuple(parts), full_key=access.full_key)
    return tuple(values), made
