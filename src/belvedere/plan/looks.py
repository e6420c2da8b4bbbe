"""Values that are equal and look different: 0 and -0, 1.0 and 1.00, 24 hours and a day.

A group, or DISTINCT, shows one of its equal values, and SQL does not say which. Rows that are kept
by their looks have to be found again, so it must always be the same one: the first in an order that
goes by looks where values are equal.
"""

from __future__ import annotations

from belvedere.plan import expressions as e
from belvedere.plan.fields import Field, Fields
from belvedere.plan.functions.function import Function
from belvedere.types import TEXT, Kind

UNKEYED = (Kind.JSON, Kind.ARRAY)
"""These have no place in a key, and no order."""

DISGUISED = (Kind.REAL, Kind.DOUBLE, Kind.CHAR, Kind.INTERVAL)

LOOKS = Function("looks of", (), TEXT, lambda *values: repr(values), strict=False)


def disguised(field: Field) -> bool:
    """Whether equal values may look different, or have no place in a key."""
    kind = field.type.kind
    loose = kind is Kind.NUMERIC and field.type.scale is None
    return loose or kind in DISGUISED or kind in UNKEYED


def all_keys(fields: Fields) -> tuple[e.SortKey, ...]:
    """An order by all columns, in which only equal rows are peers."""
    return tuple(
        e.SortKey(e.Column(i, field.type, field.name))
        for i, field in enumerate(fields)
        if field.type.kind not in UNKEYED
    )


def total_keys(fields: Fields) -> tuple[e.SortKey, ...]:
    """An order by all columns, in which only rows that look the same are peers."""
    columns = tuple(
        e.Column(i, field.type, field.name) for i, field in enumerate(fields) if disguised(field)
    )
    look = (e.SortKey(e.Call(LOOKS, columns, TEXT)),) if columns else ()
    return (*all_keys(fields), *look)
