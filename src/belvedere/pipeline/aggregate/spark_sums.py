"""Additions to a view's state computed by Spark's aggregates: each group once, with its amounts.

The amounts of a linear aggregate (`views.delta.linear_aggregates`) are counts and exact sums, and
Spark's are exact for integers and decimals:

    SELECT customer, count(*), sum(total) .. GROUP BY customer      total numeric(12,2)

    groups    customer
    amounts   count(1), count(1), count(total), sum(total), 0       the last: how many NaN

Floats, which Spark would sum in some order, and groups whose equal values may differ in
representation raise `NotNative`: our own operators sum them inside the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import CompiledView, compiled_view
from belvedere.codec import accumulator
from belvedere.execution.spark.dataframes import TypedFrame
from belvedere.execution.spark.lower import SparkLowering
from belvedere.execution.spark.native_functions import INTEGERS
from belvedere.execution.spark.types import (
    DECIMAL_DIGITS_MAX,
    NotNative,
    SparkExpression,
    is_decimal,
    is_native,
    to_values,
)
from belvedere.plan import expressions as e
from belvedere.types import BIGINT, Kind, Row, SqlType, numeric_type
from belvedere.views.delta.linear_aggregates import (
    AggregateGrouping,
    LinearAggregate,
    find_fixed_scale,
)

MOMENTS = 4
ROWS_DIGITS = 10
"""Spark's sum of decimal(p, s) is decimal(p + 10, s): room for more rows than it can ever sum."""

Columns = list[SparkExpression]


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """A frame of the groups' columns and then the amounts: BIGINT, or a decimal whose units they
    are. Each group has one row."""

    frame: TypedFrame
    groups: int


def build_spark_group_totals(
    lowering: SparkLowering,
    frame: TypedFrame,
    group: AggregateGrouping | None,
    *,
    weighted: bool = False,
) -> GroupTotals:
    """Sum what the rows of a view's tree add to its state. `weighted`: the last column is the row's
    weight, 1 for an inserted and -1 for a deleted row."""
    if not lowering.native:
        raise NotNative("values beyond Spark's types")
    weight = frame.columns[-1].text if weighted else None
    keys, amounts = frame.columns, [_make_count_expression("TRUE", weight)]
    if weighted:
        keys = keys[:-1]
    if group is not None:
        for call, keep in zip(group.calls, group.linear_aggregates, strict=True):
            _require_exact_spark_sum(call, keep)
        frame, columns = lower_groups_and_arguments(lowering, frame, group)
        keys, rest = columns[: len(group.groups)], iter(columns[len(group.groups) :])
        for call, keep in zip(group.calls, group.linear_aggregates, strict=True):
            amounts = amounts + _build_call_amount_expressions(call, keep, rest, weight)
    if not all(is_native(one.type) for one in keys):
        raise NotNative("groups whose equal values may look different")
    return _build_group_totals_frame(lowering, frame, keys, amounts)


def lower_groups_and_arguments(
    lowering: SparkLowering, frame: TypedFrame, group: AggregateGrouping
) -> tuple[TypedFrame, Columns]:
    """The groups' columns, and then for each call its argument and its filter."""
    wanted = [*group.groups]
    for call in group.calls:
        wanted += call.arguments
        wanted += () if call.filter is None else (call.filter,)
    return lowering.lower_columns(frame, wanted)


def _build_group_totals_frame(
    lowering: SparkLowering, frame: TypedFrame, keys: Columns, amounts: Columns
) -> GroupTotals:
    names = lowering.frames.new_names(len(keys) + len(amounts))
    groups = [f.expr(one.text).alias(name) for one, name in zip(keys, names)]
    sums = [f.expr(one.text).alias(name) for one, name in zip(amounts, names[len(keys) :])]
    data = frame.data.groupBy(*groups).agg(*sums)
    changed = " OR ".join(f"`{name}` <> 0" for name in names[len(keys) :])
    types = tuple(one.type for one in [*keys, *amounts])
    return GroupTotals(TypedFrame(data.where(changed), names, types), len(keys))


# -- amounts ---------------------------------------------------------------------------------------


def _require_exact_spark_sum(call: e.AggregateCall, keep: LinearAggregate) -> None:
    """Raise NotNative before anything is lowered for the call."""
    if keep.form == "count":
        return
    (argument,) = (one.type for one in call.arguments)
    if argument.kind not in INTEGERS and argument.kind is not Kind.NUMERIC:
        raise NotNative(f"exact {call.function.name} of {argument} runs in Python")


_ZERO = SparkExpression("CAST(0 AS bigint)", BIGINT)


def _make_count_expression(held: str, weight: str | None) -> SparkExpression:
    """The number of rows for which a condition holds."""
    if weight is not None:
        return SparkExpression(f"coalesce(sum(CASE WHEN {held} THEN {weight} END), 0)", BIGINT)
    text = "count(1)" if held == "TRUE" else f"count(CASE WHEN {held} THEN 1 END)"
    return SparkExpression(text, BIGINT)


def _build_call_amount_expressions(
    call: e.AggregateCall,
    keep: LinearAggregate,
    columns: Iterator[SparkExpression],
    weight: str | None,
) -> Columns:
    arguments = [next(columns) for _ in call.arguments]
    conditions = [f"({one.text} IS NOT NULL)" for one in arguments]
    conditions += [] if call.filter is None else [next(columns).text]
    held = " AND ".join(conditions) or "TRUE"
    values = _make_count_expression(held, weight)
    if keep.form == "count" or not arguments:
        return [values]
    (summand,) = arguments
    require_stored_scale(call, summand)
    total = _make_sum_expression(_widen_summand(summand), held, weight)
    if keep.width == MOMENTS:
        return [
            values,
            total,
            _make_sum_expression(_make_square_expression(_widen_summand(summand)), held, weight),
            _ZERO,
        ]
    return [values, total] if keep.form == "integers" else [values, total, _ZERO]


def require_stored_scale(call: e.AggregateCall, carried: SparkExpression) -> None:
    """Require that the last digit has the unit in which the view stores the sum."""
    if carried.type.kind is Kind.NUMERIC and call.function.name != "count":
        if (carried.type.scale or 0) != find_fixed_scale(call.arguments[0]):
            raise NotNative("numbers of another scale")


def _widen_summand(summand: SparkExpression) -> SparkExpression:
    """The summand in a type in which a sum of many cannot overflow."""
    if summand.type.kind in (Kind.SMALLINT, Kind.INTEGER):
        return SparkExpression(f"CAST({summand.text} AS bigint)", BIGINT)
    if summand.type.kind is Kind.BIGINT:
        return SparkExpression(f"CAST({summand.text} AS decimal(19,0))", numeric_type(19, 0))
    if is_decimal(summand.type):
        return summand
    raise NotNative(f"a sum of {summand.type} runs in Python")


def _make_square_expression(wide: SparkExpression) -> SparkExpression:
    if wide.type.kind is Kind.BIGINT:
        return SparkExpression(
            f"CAST({wide.text} * {wide.text} AS decimal(19,0))", numeric_type(19, 0)
        )
    digits, scale = 2 * (wide.type.precision or 0) + 1, 2 * (wide.type.scale or 0)
    if digits > DECIMAL_DIGITS_MAX:
        raise NotNative("squares of more digits than Spark has")
    return SparkExpression(f"({wide.text} * {wide.text})", numeric_type(digits, scale))


def _make_sum_expression(wide: SparkExpression, held: str, weight: str | None) -> SparkExpression:
    sum_type = BIGINT
    if wide.type.kind is not Kind.BIGINT:
        digits = (wide.type.precision or 0) + ROWS_DIGITS
        if digits > DECIMAL_DIGITS_MAX:
            raise NotNative("a sum of more digits than Spark has")
        sum_type = numeric_type(digits, wide.type.scale or 0)
    signs = "" if weight is None else f"WHEN {held} AND {weight} < 0 THEN -{wide.text} "
    return SparkExpression(
        f"coalesce(sum(CASE {signs}WHEN {held} THEN {wide.text} END), 0)", sum_type
    )


# -- in a task -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TotalsEncoder:
    """Encodes totals as stored state. Pickles; the caller decodes the catalog in the task."""

    view: int
    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    groups: int

    @classmethod
    def from_totals(cls, view: int, made: GroupTotals) -> TotalsEncoder:
        return cls(view, made.frame.names, made.frame.types, made.groups)

    def encode_state_entries(
        self, catalog: Catalog, batch: pa.RecordBatch
    ) -> tuple[list[bytes], list[bytes]]:
        """Encode a batch of totals as keys and values of the view's state."""
        stored = compiled_view(catalog, self.view)
        amounts = [
            convert_to_integer_amounts(batch.column(name), one)
            for name, one in zip(self.names[self.groups :], self.types[self.groups :])
        ]
        keys, payloads = self._encode_group_keys_and_payloads(stored, batch)
        encode = accumulator.encode
        return keys, [encode(payload, some) for payload, some in zip(payloads, zip(*amounts))]

    def _encode_group_keys_and_payloads(
        self, stored: CompiledView, batch: pa.RecordBatch
    ) -> tuple[list[bytes], list[bytes]]:
        columns: Sequence[list[object]] = [
            to_values(batch.column(name), one)
            for name, one in zip(self.names[: self.groups], self.types)
        ]
        rows: list[Row] = list(zip(*columns)) if columns else [()] * batch.num_rows
        key, payload = stored.key.encode, stored.payload.encode
        return [key(row) for row in rows], [payload(row) for row in rows]


def convert_to_integer_amounts(column: pa.Array, sql_type: SqlType) -> list[int]:
    """Amounts as integers: those of a decimal in units of its last digit."""
    if sql_type.kind is not Kind.NUMERIC:
        values: list[int] = column.to_pylist()
        return values
    pairs = np.frombuffer(column.buffers()[1], "<i8")[2 * column.offset :]
    low = pairs[0 : 2 * len(column) : 2].view("<u8").tolist()
    high = pairs[1 : 2 * len(column) : 2].tolist()
    return [(upper << 64) | lower for upper, lower in zip(high, low)]
