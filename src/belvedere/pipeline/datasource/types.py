"""Mapping of the store's column types to Spark's; types that Spark lacks become strings.

| SQL type | Spark |
|---|---|
| BOOLEAN, integers, REAL, DOUBLE, DATE, BYTEA, text types | the type of that name |
| NUMERIC(p <= 38, s) | decimal(p, s) |
| other NUMERIC | string, the digits |
| TIME | time |
| TIMESTAMP, TIMESTAMPTZ | timestamp_ntz, timestamp |
| UUID, INTERVAL | string, as PostgreSQL writes it |

Every field keeps its SQL type in its metadata (`SQL_TYPE`).
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa

from belvedere.codec.arrow.rows_to_arrow import SQL_TYPE_KEY
from belvedere.plan.functions import text_formatter
from belvedere.types import INTERVAL, Interval

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SQL_TYPE = SQL_TYPE_KEY.decode()


def to_spark_schema(schema: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_type  # heavy
    from pyspark.sql.types import StructField, StructType  # heavy

    return StructType(
        [
            StructField(
                field.name,
                from_arrow_type(to_spark_arrow_type(field.type)),
                field.nullable,
                {SQL_TYPE: (field.metadata or {}).get(SQL_TYPE_KEY, b"").decode()},
            )
            for field in schema
        ]
    )


def to_spark_arrow_type(arrow: pa.DataType) -> pa.DataType:
    """The Arrow type in which Spark accepts a column of this type."""
    if pa.types.is_fixed_size_binary(arrow) or pa.types.is_interval(arrow):
        return pa.utf8()
    if pa.types.is_time64(arrow):
        return pa.time64("ns")
    if pa.types.is_struct(arrow):
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        return pa.struct([field.with_type(to_spark_arrow_type(field.type)) for field in fields])
    return arrow


def to_spark_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert a batch to types that Spark has."""
    wanted = [to_spark_arrow_type(field.type) for field in batch.schema]
    if all(one == field.type for one, field in zip(wanted, batch.schema)):
        return batch
    fields = [field.with_type(one) for one, field in zip(wanted, batch.schema)]
    columns = [_to_spark_column(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _to_spark_column(column: pa.Array) -> pa.Array:
    wanted = to_spark_arrow_type(column.type)
    if wanted == column.type:
        return column
    if pa.types.is_fixed_size_binary(column.type):
        return pa.array([v and str(uuid.UUID(bytes=v)) for v in column.to_pylist()], wanted)
    if pa.types.is_interval(column.type):
        return pa.array([v and _format_interval(v) for v in column.to_pylist()], wanted)
    if pa.types.is_struct(column.type):
        fields = [wanted.field(i) for i in range(wanted.num_fields)]
        inner = [_to_spark_column(column.field(i)) for i in range(wanted.num_fields)]
        return pa.StructArray.from_arrays(inner, fields=fields, mask=column.is_null())
    return column.cast(wanted)


def _format_interval(value: pa.MonthDayNano) -> str:
    return str(
        text_formatter(INTERVAL)(Interval(value.months, value.days, value.nanoseconds // 1000))
    )
