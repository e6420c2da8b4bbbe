"""Translation of the filters that Spark pushes down into the owner's filters.

Only filters with the same meaning in Spark and in SQL are passed on: comparisons with a constant of
the column's own type. Spark's literals arrive typed; they are sent as text and cast back.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as d

from belvedere.codec.arrow.rows_to_arrow import SQL_TYPE_KEY
from belvedere.pipeline.store.client import PushedFilter

_COMPARISONS: dict[type[Any], str] = {
    d.EqualTo: "=",
    d.LessThan: "<",
    d.LessThanOrEqual: "<=",
    d.GreaterThan: ">",
    d.GreaterThanOrEqual: ">=",
}
_ORDERED = (
    "smallint integer bigint boolean text date character+varying timestamp+without+time+zone"
    " timestamp+with+time+zone"
)
_KINDS = frozenset(kind.replace("+", " ") for kind in _ORDERED.split())


def translate_pushed_filters(
    filters: Iterable[d.Filter], schema: pa.Schema
) -> tuple[PushedFilter, ...]:
    """The filters that the owner can apply, in its form; the others are left out."""
    types = {field.name: (field.metadata or {}).get(SQL_TYPE_KEY, b"").decode() for field in schema}
    found = [_try_translate_filter(one, types) for one in filters]
    return tuple(one for one in found if one is not None)


def _try_translate_filter(one: d.Filter, types: dict[str, str]) -> PushedFilter | None:
    attribute: tuple[str, ...] = getattr(one, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in types:
        return None
    name = attribute[0]
    kind = types[name]
    match one:
        case d.IsNull():
            return ("null", name)
        case d.In():
            values = [_format_constant_as_sql(value, kind, equality=True) for value in one.value]
            known = [value for value in values if value is not None]
            return ("in", name, *known) if known and len(known) == len(values) else None
        case d.StringStartsWith() if kind.startswith(("text", "character varying")):
            return ("prefix", name, one.value) if one.value else None
    operation = _COMPARISONS.get(type(one))
    if operation is None:
        return None
    text = _format_constant_as_sql(one.value, kind, equality=operation == "=")  # type: ignore[attr-defined]
    return None if text is None else (operation, name, text)


def _format_constant_as_sql(value: Any, kind: str, *, equality: bool) -> str | None:
    """The constant as SQL text; None when its meaning in SQL would differ."""
    base = kind.partition("(")[0]
    if base == "uuid":
        return str(value) if equality and _is_canonical_uuid_text(value) else None
    if base == "numeric":
        exact = isinstance(value, decimal.Decimal) and value.is_finite() and "(" in kind
        return str(value) if exact else None
    if base not in _KINDS:
        return None
    match value:
        case bool():
            return str(value).lower()
        case int() | str():
            return str(value)
        case datetime.datetime() | datetime.date():
            return value.isoformat()
    return None


def _is_canonical_uuid_text(value: Any) -> bool:
    try:
        return bool(str(uuid.UUID(value)) == value)
    except (ValueError, AttributeError, TypeError):
        return False
