"""Equal values may differ in representation: 0 and -0, 1.0 and 1.00, 24 hours and a day.

Which types have such values depends on the equality, SQL's or Python's:

| type | SQL-equal, yet different | Python-equal, yet different |
|---|---|---|
| REAL, DOUBLE | 0 and -0 | 0.0 and -0.0 |
| NUMERIC without a scale | 1.0 and 1.00 | the same |
| CHAR | 'a' and 'a ' | - |
| INTERVAL | 24 hours and a day | - (fields are compared) |

A group, or DISTINCT, shows one of its SQL-equal values, and SQL does not say which. Rows that are
stored by their representation have to be found again, so it must always be the same one: the first
in an order that goes by representation where values are equal. Whether a row has changed is decided
by comparing Python values, and an expression over Python-equal ones may still differ.
"""

from __future__ import annotations

from belvedere.plan import expressions as e
from belvedere.plan.fields import Field, Fields
from belvedere.plan.functions.core.function import Function
from belvedere.types import TEXT, Kind, SqlType

UNKEYED = (Kind.JSON, Kind.ARRAY, Kind.RECORD)
"""Types that cannot be part of a key and have no order."""

PYTHON_EQUAL_KINDS = (Kind.REAL, Kind.DOUBLE)
SQL_EQUAL_KINDS = (*PYTHON_EQUAL_KINDS, Kind.CHAR, Kind.INTERVAL)
"""The kinds of the table above; NUMERIC is among them only by its scale."""

REPRESENTATION = Function("looks of", (), TEXT, lambda *values: repr(values), strict=False)


def sql_equal_may_differ(type_: SqlType) -> bool:
    """Whether SQL-equal values of the type may differ in representation."""
    return type_.kind in SQL_EQUAL_KINDS or _shows_scale(type_)


def python_equal_may_differ(type_: SqlType) -> bool:
    """Whether Python-equal values of the type may differ in representation."""
    return type_.kind in PYTHON_EQUAL_KINDS or _shows_scale(type_)


def _shows_scale(type_: SqlType) -> bool:
    return type_.kind is Kind.NUMERIC and type_.scale is None


def lacks_canonical_key(field: Field) -> bool:
    """Whether SQL-equal values may differ in representation, or have no place in a key."""
    return sql_equal_may_differ(field.type) or field.type.kind in UNKEYED


def column_sort_keys(fields: Fields) -> tuple[e.SortKey, ...]:
    """An order by all columns, in which only equal rows are peers."""
    return tuple(
        e.SortKey(e.Column(i, field.type, field.name))
        for i, field in enumerate(fields)
        if field.type.kind not in UNKEYED
    )


def total_order_keys(fields: Fields) -> tuple[e.SortKey, ...]:
    """An order by all columns, in which only rows of one representation are peers."""
    columns = tuple(
        e.Column(i, field.type, field.name)
        for i, field in enumerate(fields)
        if lacks_canonical_key(field)
    )
    look = (e.SortKey(e.Call(REPRESENTATION, columns, TEXT)),) if columns else ()
    return (*column_sort_keys(fields), *look)
