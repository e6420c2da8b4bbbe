"""Python forms as DuckDB scalar functions.

A call whose SQL form is `UDF` names one of these; `register_udfs` puts the ones a statement uses on
a connection. Values are passed as Arrow batches, so a call costs about a microsecond per row.
DuckDB and Arrow are imported by `register_udfs` only.
"""

from __future__ import annotations

import datetime
import inspect
import itertools
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from belvedere.errors import Error, Unsupported
from belvedere.plan.functions.core.function import UDF, Function, PseudoType
from belvedere.plan.functions.core.sql_form import TEXT_IN_UDF, duckdb_type, udf_name
from belvedere.types import Interval, Kind, SqlType
from belvedere.values.datetimes import EPOCH, EPOCH_UTC
from belvedere.values.decimals import parse_numeric
from belvedere.values.numbers import INT8_MAX
from belvedere.values.value_size import limit_value_size

CHUNK_VALUES = 16
"""So many values are made before their size is counted."""
_SIZED = {Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.JSON, Kind.BYTEA}
_ELEMENT_BYTES = 16
MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Udf:
    """One function to register: its name, DuckDB types and the Python form behind it."""

    name: str
    parameters: tuple[str, ...]
    result: str
    function: Function


def describe_udf(function: Function) -> Udf | None:
    """The UDF of a function, or None when it has none."""
    if not (function.sql is UDF or function.udf):
        return None
    if function.variadic or isinstance(function.result, PseudoType):
        return None
    parameters: list[str] = []
    for argument in function.arguments:
        if isinstance(argument, PseudoType):
            return None
        named = "VARCHAR" if argument.kind in TEXT_IN_UDF else duckdb_type(argument)
        if named is None:
            return None
        parameters.append(named)
    result = duckdb_type(function.result)
    if function.result.kind is Kind.UUID:
        result = "VARCHAR"
    if result is None:
        return None
    return Udf(udf_name(function), tuple(parameters), result, function)


def register_udfs(
    connection: Any, udfs: Iterable[Udf], bytes_max: int, check: Callable[[], None]
) -> None:
    """Register the functions with a DuckDB connection (all its cursors share them). The values of
    one vector have at most so many bytes together; otherwise the statement fails in DuckDB. `check`
    raises when what runs has to stop: in a join DuckDB looks for that only after hundreds of
    vectors."""
    for udf in udfs:
        connection.create_function(
            udf.name,
            _vectorize(udf.function, bytes_max, check),
            list(udf.parameters),
            udf.result,
            type="arrow",
            # Even a strict function may give NULL, which DuckDB's default handling refuses.
            null_handling="special",
        )


def _vectorize(function: Function, bytes_max: int, check: Callable[[], None]) -> Callable[..., Any]:
    import pyarrow  # heavy

    assert callable(function.python)
    form = function.python
    decoders = [
        _column_decoder(argument)
        for argument in function.arguments
        if isinstance(argument, SqlType)
    ]
    assert isinstance(function.result, SqlType)
    encode = _value_encoder(function.result)
    arrow_type = _arrow_type(pyarrow, function.result)
    strict, count_size = function.strict, _size_counter(function.result, bytes_max)

    def call_on_columns(*columns: Any) -> Any:
        rows = zip(*[decode(column) for decode, column in zip(decoders, columns)])
        values: list[Any] = []
        size = 0
        limit_value_size(bytes_max)
        try:
            check()
            while chunk := [
                None if strict and None in row else encode(form(*row))
                for row in itertools.islice(rows, CHUNK_VALUES)
            ]:
                size = count_size(size, chunk)
                values += chunk
        except Error as error:
            # DuckDB carries text only; `sqlstate_of` reads the state back.
            raise ValueError(f"[belvedere {error.sqlstate}] {error.message}") from None
        return pyarrow.array(values, type=arrow_type)

    # DuckDB counts the parameters it finds in the signature.
    parameters = [
        inspect.Parameter(f"column_{i}", inspect.Parameter.POSITIONAL_ONLY)
        for i in range(len(decoders))
    ]
    call_on_columns.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call_on_columns


def _size_counter(sql_type: SqlType, bytes_max: int) -> Callable[[int, list[Any]], int]:
    """Adds the sizes of values to a size. Beyond the limit DuckDB fails, and Python, which makes
    one value at a time, takes over."""
    if sql_type.element is None and sql_type.kind not in _SIZED:
        return lambda size, values: size
    weight = 1 if sql_type.element is None else _ELEMENT_BYTES

    def count_size(size: int, values: list[Any]) -> int:
        size += weight * sum([len(value) for value in values if value is not None])
        if size > bytes_max:
            raise ValueError("the values of a vector need more memory than it may use")
        return size

    return count_size


def _column_decoder(sql_type: SqlType) -> Callable[[Any], list[Any]]:
    kind = sql_type.kind
    if kind is Kind.NUMERIC:
        return lambda column: [None if v is None else parse_numeric(v) for v in column.to_pylist()]
    if kind is Kind.UUID:
        return lambda column: [None if v is None else uuid.UUID(v) for v in column.to_pylist()]
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        epoch = EPOCH if kind is Kind.TIMESTAMP else EPOCH_UTC
        return lambda column: [
            None if v is None else epoch + datetime.timedelta(microseconds=v)
            for v in column.cast("int64").to_pylist()
        ]
    if kind is Kind.INTERVAL:
        return lambda column: [
            None if v is None else Interval(v.months, v.days, v.nanoseconds // 1000)
            for v in column.to_pylist()
        ]
    return lambda column: list(column.to_pylist())


def _value_encoder(sql_type: SqlType) -> Callable[[Any], Any]:
    kind = sql_type.kind
    if kind is Kind.UUID:
        return lambda value: None if value is None else str(value)
    if kind is Kind.INTERVAL:
        return _interval_nanoseconds
    return lambda value: value


def _interval_nanoseconds(value: Interval | None) -> tuple[int, int, int] | None:
    if value is None:
        return None
    if abs(value.microseconds) > INT8_MAX // 1000:
        raise Unsupported("an interval with this much time cannot pass through duckdb")
    return value.months, value.days, value.microseconds * 1000


def _arrow_type(pyarrow: Any, sql_type: SqlType) -> Any:
    if sql_type.element is not None:
        return pyarrow.list_(_arrow_type(pyarrow, sql_type.element))
    return {
        Kind.BOOLEAN: pyarrow.bool_(),
        Kind.SMALLINT: pyarrow.int16(),
        Kind.INTEGER: pyarrow.int32(),
        Kind.BIGINT: pyarrow.int64(),
        Kind.REAL: pyarrow.float32(),
        Kind.DOUBLE: pyarrow.float64(),
        Kind.BYTEA: pyarrow.binary(),
        Kind.DATE: pyarrow.date32(),
        Kind.TIME: pyarrow.time64("us"),
        Kind.TIMESTAMP: pyarrow.timestamp("us"),
        Kind.TIMESTAMPTZ: pyarrow.timestamp("us", tz="UTC"),
        Kind.INTERVAL: pyarrow.month_day_nano_interval(),
    }.get(sql_type.kind, pyarrow.string())
