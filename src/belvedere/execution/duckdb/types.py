"""Values that cross into DuckDB and back: literals, result columns, exactness of types.

A type that DuckDB cannot hold exactly (unbounded NUMERIC) raises `NotExact`; the planner then keeps
that part of the plan in Python, and EXPLAIN says why.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belvedere.plan.functions import duckdb_type
from belvedere.plan.functions.core.sql_form import DECIMAL_DIGITS_MAX
from belvedere.types import Interval, Kind, SqlType, numeric_type
from belvedere.values.decimals import fit_numeric
from belvedere.values.quoting import quote_literal

if TYPE_CHECKING:
    import pyarrow as pa


ARRAY_ITEMS_MAX = 100
TEXT_ITEMS_MAX = 100_000
_NUMBERS = {Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT}


class NotExact(Exception):
    """DuckDB has no exact form of a part of the plan. Never leaves `execution`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RaggedNumeric(SqlType):
    """NUMERIC values that are exact at this scale, but show fewer or more digits after the point,
    each its own number of them: quotients, and branches of a CASE that differ."""


def ragged_type(types: Sequence[SqlType]) -> RaggedNumeric:
    """The type that holds the values of all these bounded NUMERIC types."""
    if any(one.precision is None for one in types):
        raise NotExact("NUMERIC without bounds")
    after = max(one.scale or 0 for one in types)
    before = max((one.precision or 0) - (one.scale or 0) for one in types)
    return RaggedNumeric(
        Kind.NUMERIC, precision=min(before + after, DECIMAL_DIGITS_MAX), scale=after
    )


def type_text(sql_type: SqlType) -> str:
    found = duckdb_type(sql_type)
    if found is None:
        raise NotExact(f"{sql_type} has no exact type in DuckDB")
    return found


def literal_type(value: Any, sql_type: SqlType) -> SqlType:
    """The type of a constant, a NUMERIC one with the digits it has."""
    if sql_type.kind is not Kind.NUMERIC or sql_type.precision is not None:
        return sql_type
    if value is None:
        return numeric_type(1, 0)
    if not value.is_finite():
        raise NotExact("NaN and infinite NUMERIC have no form in DuckDB")
    return fit_numeric(value)


def literal_text(value: Any, sql_type: SqlType) -> str:
    """A constant as DuckDB SQL, always of exactly its type."""
    name = type_text(literal_type(value, sql_type))
    if value is None:
        return f"CAST(NULL AS {name})"
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            if "\0" in value:
                raise NotExact("text with a null character")
            return quote_literal(value)
        case Interval():
            months, days, micros = value
            return f"(to_months({months}) + to_days({days}) + to_microseconds({micros}))"
        case bytes():
            return f"from_hex('{value.hex()}')"
        case list():
            assert sql_type.element is not None
            if len(value) > ARRAY_ITEMS_MAX:
                return _write_long_array(value, sql_type.element, name)
            items = ", ".join(literal_text(item, sql_type.element) for item in value)
            return f"CAST([{items}] AS {name})"
        case _:
            return f"CAST({quote_literal(_plain_text(value))} AS {name})"


def _write_long_array(values: list[Any], element: SqlType, name: str) -> str:
    """A long array as one text: parsing an expression of thousands of items takes long."""
    if element.kind not in _NUMBERS or len(values) > TEXT_ITEMS_MAX:
        raise NotExact("an array of many values")
    items = ",".join("NULL" if value is None else _plain_text(value) for value in values)
    return f"CAST('[{items}]' AS {name})"


def _plain_text(value: Any) -> str:
    match value:
        case decimal.Decimal():
            return f"{value:f}"
        case float():
            return repr(value)
        case datetime.datetime():
            return value.isoformat(sep=" ")
        case _:
            return str(value)


# -- results ---------------------------------------------------------------------------------------


def output_text(column: str, sql_type: SqlType) -> str:
    """A result column as it is fetched: what Arrow would not carry unharmed goes as text."""
    return f"CAST({column} AS VARCHAR)" if sql_type.kind is Kind.UUID else column


def to_values(column: pa.ChunkedArray, sql_type: SqlType) -> list[Any]:
    """A column of DuckDB's result as Python values of the type."""
    kind = sql_type.kind
    match kind:
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            zone = None if kind is Kind.TIMESTAMP else datetime.UTC
            epoch = datetime.datetime(1970, 1, 1, tzinfo=zone)
            found = column.cast("timestamp[us]")  # the instant in UTC, whatever the zone
            return _map_values(
                found.cast("int64").to_pylist(),
                lambda v: epoch + datetime.timedelta(microseconds=v),
            )
        case Kind.UUID:
            return _map_values(column.to_pylist(), _to_uuid)
        case Kind.INTERVAL:
            return _map_values(
                column.to_pylist(), lambda v: Interval(v.months, v.days, v.nanoseconds // 1000)
            )
        case Kind.ARRAY:
            assert sql_type.element is not None
            return [_list_values(item, sql_type.element) for item in column]
        case _:
            return list(column.to_pylist())


def _to_uuid(value: str | bytes) -> uuid.UUID:
    """Text from DuckDB, bytes from a scan."""
    return uuid.UUID(value) if isinstance(value, str) else uuid.UUID(bytes=value)


def _list_values(item: Any, element: SqlType) -> list[Any] | None:
    return to_values(item.values, element) if item.is_valid else None


def _map_values(values: list[Any], form: Callable[[Any], Any]) -> list[Any]:
    return [None if value is None else form(value) for value in values]


def leaf_placeholder(number: int) -> str:
    """The placeholder of a leaf's FROM item, replaced when its source is known. No constant in the
    text has a null character, so it cannot be mistaken."""
    return f"\0leaf_{number}\0"
