"""Rows as bags that two engines can be compared by: equal values are one, whatever they look
like."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy

from belvedere.types import Interval
from tests.exact import EXACT
from tests.properties.views.generate.schemas import Column

Bag = Counter[tuple[str, ...]]


class Overflow(Exception):
    """A sum that has no float: the view must say so too."""


def bag(rows: Iterable[Sequence[Any]], columns: Sequence[Column]) -> Bag:
    types = [column.type for column in columns]
    return Counter(tuple(map(canonical, row, types)) for row in rows)


def exact_bag(rows: Iterable[Sequence[Any]], columns: Sequence[Column]) -> Bag:
    """As `bag`, of rows that have the summands where the view has a float sum."""
    return bag((tuple(map(_summed, row, columns)) for row in rows), columns)


def canonical(value: Any, type_: str) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value)
        case float():
            return "nan" if math.isnan(value) else repr(value + 0.0)
        case Decimal():
            return "nan" if value.is_nan() else str(value.normalize(EXACT)) if value else "0"
        case Interval():
            return repr((value.months * 30 + value.days) * 86_400_000_000 + value.microseconds)
        case str() if type_.startswith("char("):
            return repr(value.rstrip(" "))
        case _:
            return repr(value)


def _summed(value: Any, column: Column) -> Any:
    if column.kind == "plain" or value is None:
        return value
    values = [float(one) for one in value if one is not None]
    if not values:
        return None
    total = exact_sum(values)
    if math.isnan(total) or math.isinf(total):
        return total
    if column.kind == "avg":
        return total / len(values)
    return _narrow(total) if column.kind == "real sum" else total


def exact_sum(values: list[float]) -> float:
    """The float nearest to the true sum."""
    if any(map(math.isnan, values)) or {math.inf, -math.inf} <= set(values):
        return math.nan
    for end in (math.inf, -math.inf):
        if end in values:
            return end
    try:
        return float(sum(map(Fraction, values), Fraction(0)))
    except OverflowError:
        raise Overflow from None


def _narrow(value: float) -> float:
    narrow = float(numpy.float32(value))
    if math.isinf(narrow):
        raise Overflow
    return narrow
