"""Conversion of result rows to Arrow tables, and of a program's data to them."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any

from belvedere.interfaces.exceptions import ProgrammingError
from belvedere.plan.fields import Fields
from belvedere.types import Kind, Row, SqlType, numeric_type
from belvedere.values.decimals import EXACT

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS_MAX = 38


def table_of_rows(fields: Fields, rows: list[Row]) -> pa.Table:
    from belvedere.execution.duckdb.leaves import rows_to_table  # heavy

    types = [field.type for field in fields]
    columns = list(zip(*rows)) if rows else [()] * len(types)
    shown = [_bound_numeric(list(values), one) for values, one in zip(columns, types)]
    plain = [list(values) for values, _ in shown]
    made = rows_to_table(list(zip(*plain)), [one for _, one in shown])
    return made.rename_columns([field.name for field in fields])


def read_any_table(data: Any) -> pa.Table:
    """An Arrow table of whatever a program has: a table, batch or reader of Arrow, a data frame of
    pandas or polars, an object that exports Arrow, or a dict of columns."""
    import pyarrow as pa  # heavy

    try:
        if isinstance(data, pa.Table):
            return data
        if isinstance(data, pa.RecordBatchReader):
            return data.read_all()
        if type(data).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(data, preserve_index=False)
        return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ProgrammingError(
            "data is not a table that Arrow can read",
            sqlstate="22000",
            detail=f"{type(data).__name__}: {str(error)[:500]}",
        ) from error


def _bound_numeric(values: list[Any], sql_type: SqlType) -> tuple[list[Any], SqlType]:
    """Give NUMERIC without a precision that of its values; text if Arrow cannot hold them."""
    if sql_type.kind is Kind.UNKNOWN:
        return values, SqlType(Kind.TEXT)
    if sql_type.kind is not Kind.NUMERIC or sql_type.precision is not None:
        return values, sql_type
    whole = scale = 0
    for value in values:
        if value is None:
            continue
        if not value.is_finite():
            return [None if v is None else str(v) for v in values], SqlType(Kind.TEXT)
        _, digits, exponent = value.as_tuple()
        scale = max(scale, -exponent)
        whole = max(whole, len(digits) + exponent)
    if whole + scale > DIGITS_MAX:
        return [None if v is None else str(v) for v in values], SqlType(Kind.TEXT)
    step = decimal.Decimal(1).scaleb(-scale, EXACT)
    context = decimal.Context(prec=DIGITS_MAX)
    fitted = [None if v is None else v.quantize(step, context=context) for v in values]
    return fitted, numeric_type(max(whole + scale, 1), scale)
