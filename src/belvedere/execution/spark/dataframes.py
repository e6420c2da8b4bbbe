"""DataFrames of carried columns, and exchanges that bring rows of several inputs into one task.

Every frame has column names of its own (n7_0, n7_1, ..), so that any two can be joined and SQL text
can name any column without a qualifier.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from belvedere.execution.spark.operators import (
    KEY,
    NOTHING,
    TAG,
    KeyHashTask,
    OperatorInput,
    rows_to_batches,
)
from belvedere.execution.spark.types import (
    DIGITS,
    SparkExpression,
    arrow_carrier,
    is_native,
    spark_carrier,
)
from belvedere.plan import expressions as e
from belvedere.plan.functions.core.function import Environment
from belvedere.types import Kind, Row, SqlType

Types = tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class TypedFrame:
    """A DataFrame with the SQL types of its columns: a NUMERIC has bounds exactly where its column
    is a decimal."""

    data: DataFrame
    names: tuple[str, ...]
    types: Types

    @property
    def columns(self) -> list[SparkExpression]:
        return [SparkExpression(f"`{name}`", one) for name, one in zip(self.names, self.types)]

    @property
    def schema(self) -> str:
        return schema_of(self.names, self.types)


def schema_of(names: Sequence[str], types: Types) -> str:
    """The columns in Spark's DDL."""
    if not names:
        return f"{NOTHING} int"
    return ", ".join(f"`{name}` {spark_carrier(one)}" for name, one in zip(names, types))


@dataclass(slots=True)
class FrameBuilder:
    """Builds frames in one Spark session. With `digits`, every NUMERIC is carried as digits."""

    spark: SparkSession
    environment: Environment
    digits: bool = False
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_names(self, count: int) -> tuple[str, ...]:
        number = next(self._numbers)
        return tuple(f"n{number}_{i}" for i in range(count))

    def carrier_types(self, types: Types) -> Types:
        """The types that columns of these types are carried as."""
        if not self.digits:
            return types
        return tuple(DIGITS if one.kind is Kind.NUMERIC else one for one in types)

    def rename_columns(self, frame: TypedFrame) -> TypedFrame:
        """The same rows under new names."""
        return self.select_columns(frame.data, frame.columns)

    def select_columns(self, data: DataFrame, columns: Sequence[SparkExpression]) -> TypedFrame:
        names = self.new_names(len(columns))
        made = [f.expr(one.text).alias(name) for one, name in zip(columns, names)]
        whole = data.select(*made) if made else data.select(f.lit(1).alias(NOTHING))
        return TypedFrame(whole, names, tuple(one.type for one in columns))

    def local_frame(self, rows: list[Row], types: Types) -> TypedFrame:
        """A frame of a few rows that the driver has."""
        types, names = self.carrier_types(types), self.new_names(len(types))
        schema = pa.schema([(name, arrow_carrier(one)) for name, one in zip(names, types)])
        if not types:
            schema = pa.schema([(NOTHING, pa.int32())])
        table = pa.Table.from_batches(rows_to_batches(rows, types, names), schema)
        frame = self.spark.createDataFrame(table, schema=schema_of(names, types))
        return TypedFrame(frame, names, types)

    # -- one task for a key -------------------------------------------------------------------

    def gather_rows(
        self, frames: Sequence[TypedFrame]
    ) -> tuple[DataFrame, tuple[OperatorInput, ...]]:
        """All rows in one task, which runs even when there are none."""
        keyed = [frame.data.withColumn(KEY, f.lit(0).cast("bigint")) for frame in frames]
        union, sides = self._tag_inputs(frames, keyed)
        seed = self.spark.range(1).select(f.lit(-1).alias(TAG), f.lit(0).cast("bigint").alias(KEY))
        return union.unionByName(seed, allowMissingColumns=True).repartition(1), sides

    def exchange_by_key(
        self, frames: Sequence[TypedFrame], keys: Sequence[tuple[e.Expression, ...]]
    ) -> tuple[DataFrame, tuple[OperatorInput, ...]]:
        """The rows of all frames with one key in one task."""
        keyed = self._hash_native_keys(frames, keys)
        if keyed is None:
            keyed = [self._hash_python_key(frame, some) for frame, some in zip(frames, keys)]
        union, sides = self._tag_inputs(frames, keyed)
        return union.repartition(f.col(KEY)), sides

    def tag_without_exchange(
        self, frame: TypedFrame
    ) -> tuple[DataFrame, tuple[OperatorInput, ...]]:
        """Tag rows without an exchange, for operators that make rows of each row separately."""
        return self._tag_inputs([frame], [frame.data.withColumn(KEY, f.lit(0).cast("bigint"))])

    def _hash_native_keys(
        self, frames: Sequence[TypedFrame], keys: Sequence[tuple[e.Expression, ...]]
    ) -> list[DataFrame] | None:
        """Add Spark's hash of the keys; None unless all keys are columns of native types, the same
        for all frames."""
        found: list[DataFrame] = []
        kinds: set[Types] = set()
        for frame, some in zip(frames, keys):
            if not all(isinstance(key, e.Column) for key in some):
                return None
            places = [key.index for key in some if isinstance(key, e.Column)]
            types = tuple(frame.types[at] for at in places)
            kinds.add(types)
            if not places or len(kinds) > 1 or not all(map(is_native, types)):
                return None
            columns = [f.col(frame.names[at]) for at in places]
            found.append(frame.data.withColumn(KEY, f.xxhash64(*columns)))
        return found

    def _hash_python_key(self, frame: TypedFrame, keys: tuple[e.Expression, ...]) -> DataFrame:
        function = KeyHashTask(keys, frame.types, frame.names, self.environment)
        schema = f"{frame.schema}, {KEY} bigint"
        return frame.data.mapInArrow(function, schema)

    def _tag_inputs(
        self, frames: Sequence[TypedFrame], keyed: Sequence[DataFrame]
    ) -> tuple[DataFrame, tuple[OperatorInput, ...]]:
        """One DataFrame of all inputs: the number of the input, the key, and for each input a
        struct column of its rows."""
        parts, sides = [], []
        for number, (frame, data) in enumerate(zip(frames, keyed)):
            column, columns = f"s{number}", [f.lit(number).alias(TAG), f.col(KEY)]
            if frame.names:
                columns.append(f.struct(*map(f.col, frame.names)).alias(column))
            parts.append(data.select(*columns))
            sides.append(OperatorInput(column, frame.types, leaf_number(number)))
        union = parts[0]
        for part in parts[1:]:
            union = union.unionByName(part, allowMissingColumns=True)
        return union, tuple(sides)


def leaf_number(number: int) -> int:
    """The `Changes` leaf of an operator's input."""
    return -(number + 1)
