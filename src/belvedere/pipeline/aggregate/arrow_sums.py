"""Exact sums of floats, in Arrow columns inside the tasks; Spark's own would depend on the order.

A float is an integer of 53 bits times a power of two. Integer sums are exact, so the values of a
group are summed for each exponent separately, in two halves that cannot overflow, and combined
into one integer in units of 2**-1074 (`codec.accumulator`) once for each group and exponent.
Counts, integers and NUMERIC of up to 18 digits of the same view are summed in the same pass. No
Python code runs for single rows.

    group  value         group  exponent  halves                  group  units of 2**-1074
        5   0.75   ->        5         0  12582912 * 2**26   ->       5  ...
        5  -8.5              5         4  ..
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.codec.row_slots import numeric_bits
from belvedere.errors import Error
from belvedere.execution.spark.dataframes import TypedFrame
from belvedere.execution.spark.lower import SparkLowering
from belvedere.execution.spark.native_functions import FLOATS, INTEGERS
from belvedere.execution.spark.operators import TaskFailure
from belvedere.execution.spark.types import NotNative, SparkExpression, is_native, to_values
from belvedere.pipeline.aggregate.additions import SumRecorder, encode_nonzero_sums
from belvedere.pipeline.aggregate.spark_sums import lower_groups_and_arguments, require_stored_scale
from belvedere.pipeline.store.tables import Batches, decode_catalog
from belvedere.types import Kind, Row, SqlType
from belvedere.views.delta.linear_aggregates import AggregateGrouping, LinearAggregate

GATHERED_ROWS = 300_000
_FLOAT_BITS, _FIXED_BITS = 53, 1074
_HALF_BITS, _UNIT_BITS = 26, 32
"""How many of the lower bits are summed separately: of a float's integer, of other units."""

_ONLY = "only"
Integers = npt.NDArray[np.int64]
Sums = dict[Row, list[int]]


class AmountPart(NamedTuple):
    """A column of numbers to sum, and the index `at` of their amount; they count 2**shift times."""

    at: int
    shift: int
    values: Integers


@dataclass(frozen=True, slots=True)
class SummedCall:
    """An aggregate call: the columns of its argument and filter, and `at`, its first amount."""

    form: str  # count, units or float
    argument: int | None
    filter: int | None
    at: int
    decimal: bool = False


@dataclass(frozen=True, slots=True)
class SummedColumns:
    """What is summed: `types` are those of the columns, the first `groups` of which are the group
    key; `width` is the number of amounts."""

    types: tuple[SqlType, ...]
    groups: int
    calls: tuple[SummedCall, ...]
    width: int


class GroupAdder:
    """Sums the rows of a view by group. Lives in a task."""

    def __init__(self, catalog: Catalog, view: int, calls: SummedColumns) -> None:
        self._stored = compiled_view(catalog, view)
        self._calls = calls.calls
        self._groups = calls.groups
        self._width = calls.width
        self.types = calls.types
        self._sums: Sums = {}
        self._buffered_batches: list[tuple[list[pa.Array], Integers]] = []
        self._buffered_rows = 0

    def add_weighted_rows(self, columns: list[pa.Array], weights: Integers) -> None:
        """Add rows, each `weight` times."""
        self._buffered_batches.append((columns, weights))
        self._buffered_rows += len(weights)
        if self._buffered_rows >= GATHERED_ROWS:
            self._sum_buffered_rows()

    def record_group_sums(self, recorder: SumRecorder) -> None:
        """All that was added, to the keys of the view."""
        self._sum_buffered_rows()
        key, payload = self._stored.key.encode, self._stored.payload.encode
        for group, total in self._sums.items():
            recorder.add(key(group), payload(group), tuple(total))

    def _sum_buffered_rows(self) -> None:
        """Sum the buffered rows together, so that each group is merged once for all of them."""
        if not self._buffered_rows:
            return
        columns = [
            pa.concat_arrays(several)
            for several in zip(*(one for one, _ in self._buffered_batches))
        ]
        weights = np.concatenate([some for _, some in self._buffered_batches])
        self._buffered_batches, self._buffered_rows = [], 0
        self._add_sums_of_columns(columns, weights)

    def _add_sums_of_columns(self, columns: list[pa.Array], weights: Integers) -> None:
        parts = [AmountPart(0, 0, weights)]
        floats: list[tuple[SummedCall, SplitFloats]] = []
        for call in self._calls:
            held = _mask_counted_rows(columns, call)
            counted = weights if held is None else np.where(held, weights, 0)
            parts.append(AmountPart(call.at, 0, counted))
            if call.argument is None or call.form == "count":
                continue
            column = columns[call.argument]
            if call.form == "float":
                floats.append((call, SplitFloats(column, counted)))
                parts += floats[-1][1].count_special_values(call.at + 2)
            else:
                parts += _split_integers_into_halves(
                    column, counted, call.at + 1, decimal=call.decimal
                )
        groups = columns[: self._groups]
        self._add_sums_of_amounts(groups, parts)
        for call, found in floats:
            self._add_sums_of_floats(groups, call.at + 1, found)

    def _add_sums_of_amounts(self, groups: list[pa.Array], parts: list[AmountPart]) -> None:
        found = _sum_columns_by_group(
            groups, {f"a{i}": pa.array(p.values) for i, p in enumerate(parts)}
        )
        totals = (found[f"a{i}_sum"].to_pylist() for i in range(len(parts)))
        for group, *some in zip(self._decode_group_keys(found), *totals):
            known = self._sums.get(group)
            if known is None:
                known = self._sums[group] = [0] * self._width
            for part, total in zip(parts, some):
                known[part.at] += total << part.shift

    def _add_sums_of_floats(self, groups: list[pa.Array], at: int, floats: SplitFloats) -> None:
        found = _sum_columns_by_group(groups, floats.make_weighted_half_columns(), ("exponent",))
        columns = (found[name].to_pylist() for name in ("exponent", "upper_sum", "lower_sum"))
        for group, exponent, upper, lower in zip(self._decode_group_keys(found), *columns):
            total = (upper << _HALF_BITS) + lower
            shift = exponent - _FLOAT_BITS + _FIXED_BITS
            self._sums[group][at] += total << shift if shift >= 0 else total >> -shift

    def _decode_group_keys(self, found: pa.Table) -> list[Row]:
        if not self._groups:
            return [()] * found.num_rows
        columns = [
            to_values(found[f"g{i}"].combine_chunks(), self.types[i]) for i in range(self._groups)
        ]
        return list(zip(*columns))


def _mask_counted_rows(columns: list[pa.Array], call: SummedCall) -> npt.NDArray[np.bool_] | None:
    """The rows that a call counts; None: all."""
    held: npt.NDArray[np.bool_] | None = None
    if call.argument is not None:
        held = columns[call.argument].is_valid().to_numpy(zero_copy_only=False)
    if call.filter is not None:
        chosen = pc.fill_null(columns[call.filter], False).to_numpy(zero_copy_only=False)
        held = chosen if held is None else held & chosen
    return held


def _sum_columns_by_group(
    groups: list[pa.Array], added: dict[str, pa.Array], keys: tuple[str, ...] = ()
) -> pa.Table:
    """Sum the added columns by the groups, and by those added columns that are in `keys`."""
    columns = {f"g{i}": column for i, column in enumerate(groups)}
    if not columns:
        columns = {_ONLY: pa.nulls(len(next(iter(added.values()))), pa.int8())}
    summed = [(name, "sum") for name in added if name not in keys]
    grouped = pa.table(columns | added).group_by([*columns, *keys], use_threads=False)
    return grouped.aggregate(summed)


class SplitFloats:
    """A column of floats as integers and exponents; NaN and infinities are counted separately."""

    def __init__(self, column: pa.Array, counted: Integers) -> None:
        values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        self._values, self._counted = values, counted
        fraction, self._exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
        self._mantissas: Integers = np.ldexp(fraction, _FLOAT_BITS).astype(np.int64)

    def count_special_values(self, at: int) -> list[AmountPart]:
        """How many NaN, infinities and negative infinities: amounts from `at` on."""
        values, counted = self._values, self._counted
        kinds = (np.isnan(values), np.isposinf(values), np.isneginf(values))
        return [AmountPart(at + i, 0, np.where(kind, counted, 0)) for i, kind in enumerate(kinds)]

    def make_weighted_half_columns(self) -> dict[str, pa.Array]:
        return {
            "exponent": pa.array(self._exponent),
            "upper": pa.array((self._mantissas >> _HALF_BITS) * self._counted),
            "lower": pa.array((self._mantissas & (1 << _HALF_BITS) - 1) * self._counted),
        }


def _split_integers_into_halves(
    column: pa.Array, counted: Integers, at: int, *, decimal: bool
) -> list[AmountPart]:
    """The parts of an integer column, or of a decimal of up to 18 digits in units of its last
    digit."""
    if decimal:
        pairs = np.frombuffer(column.buffers()[1], "<i8")[2 * column.offset :][: 2 * len(column)]
        units = np.where(counted != 0, pairs[::2], 0)
    else:
        units = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    lower = units & (1 << _UNIT_BITS) - 1
    return [
        AmountPart(at, _UNIT_BITS, (units >> _UNIT_BITS) * counted),
        AmountPart(at, 0, lower * counted),
    ]


# -- for a DataFrame -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArrowSumTask:
    """In a task: sums in Arrow columns what its rows add to a view's state."""

    view: int
    objects: tuple[bytes, ...]
    calls: SummedColumns
    weighted: bool = False

    def __call__(self, batches: Batches) -> Batches:
        adder, recorder = (
            GroupAdder(decode_catalog(self.objects), self.view, self.calls),
            SumRecorder(),
        )
        try:
            for batch in batches:
                if self.weighted:
                    adder.add_weighted_rows(batch.columns[:-1], batch.columns[-1].to_numpy())
                else:
                    adder.add_weighted_rows(batch.columns, np.ones(batch.num_rows, np.int64))
            adder.record_group_sums(recorder)
        except Error as error:
            raise TaskFailure(error) from None
        yield from encode_nonzero_sums(recorder.sums)


def plan_arrow_sums(
    lowering: SparkLowering,
    frame: TypedFrame,
    view: int,
    objects: tuple[bytes, ...],
    group: AggregateGrouping | None,
    *,
    weighted: bool = False,
) -> tuple[TypedFrame, ArrowSumTask]:
    """The frame to sum, and the task function for it. NotNative where rows must be evaluated one by
    one."""
    if group is None or not lowering.native:
        raise NotNative("rows whose equal values may look different")
    made, columns = lower_groups_and_arguments(lowering, frame, group)
    calls = plan_summed_columns(group, columns)
    weights = [frame.columns[-1]] if weighted else []
    whole = lowering.frames.select_columns(made.data, [*columns, *weights])
    return whole, ArrowSumTask(view, objects, calls, weighted)


def plan_summed_columns(
    group: AggregateGrouping | None, columns: list[SparkExpression]
) -> SummedColumns:
    """Plan the sums of these columns: the groups, then for each call its argument and filter."""
    types = tuple(one.type for one in columns)
    groups = len(columns) if group is None else len(group.groups)
    if not all(is_native(one) for one in types[:groups]):
        raise NotNative("groups whose equal values may look different")
    place, at, calls = groups, 1, []
    for call, keep in (
        () if group is None else zip(group.calls, group.linear_aggregates, strict=True)
    ):
        argument = chosen = None
        if call.arguments:
            argument, place = place, place + 1
            require_stored_scale(call, columns[argument])
        if call.filter is not None:
            chosen, place = place, place + 1
        calls.append(
            _plan_summed_call(
                keep, None if argument is None else types[argument], argument, chosen, at
            )
        )
        at += keep.width
    return SummedColumns(types, groups, tuple(calls), at)


def _plan_summed_call(
    keep: LinearAggregate, given: SqlType | None, argument: int | None, chosen: int | None, at: int
) -> SummedCall:
    if keep.form == "count" or given is None:
        return SummedCall("count", argument, chosen, at)
    if given.kind in FLOATS:
        return SummedCall("float", argument, chosen, at)
    if given.kind in INTEGERS and keep.width == 2:
        return SummedCall("units", argument, chosen, at)
    if given.kind is Kind.NUMERIC and keep.width == 3 and numeric_bits(given) == 64:
        return SummedCall("units", argument, chosen, at, decimal=True)
    raise NotNative("amounts of another form")
