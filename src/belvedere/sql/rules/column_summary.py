"""Column summaries for estimates, computed from a sample of the column's values.

- distinct: how many different values the column has in all rows (the estimator of Haas and
  Stokes, as in PostgreSQL: what was seen once in the sample tells of what was not seen at all)
- nulls: the share of NULLs
- common: values that are much more frequent than the average one, with their shares
- bounds: values that cut the others into parts of equal size, smallest and largest first and last
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

COMMON_MAX = 32
PARTS = 64
COMMON_TIMES = 2.0
"""A value is common when it is this much more frequent than the average one."""


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    distinct: float
    nulls: float
    common: dict[Any, float]
    bounds: tuple[Any, ...]

    def equal_share(self, value: Any) -> float:
        """The share of rows that have this value."""
        if value is None:
            return 0.0
        known = self.common.get(value) if isinstance(value, Hashable) else None
        if known is not None:
            return known
        return self.uncommon_share / max(1.0, self.distinct - len(self.common))

    @property
    def uncommon_share(self) -> float:
        """The share of rows whose value is neither NULL nor common."""
        return max(0.0, 1.0 - self.nulls - sum(self.common.values()))

    def share_below(self, value: Any, *, inclusive: bool) -> float | None:
        """The share of rows with a smaller value (or this one); None when unknown."""
        try:
            common = sum(
                share
                for one, share in self.common.items()
                if one < value or (inclusive and one == value)
            )
            if len(self.bounds) < 2:
                return common
            left, right = bisect_left(self.bounds, value), bisect_right(self.bounds, value)
        except (TypeError, ArithmeticError):  # of another kind than the column's, or NaN
            return None
        parts = len(self.bounds) - 1
        if left >= len(self.bounds):
            return common + self.uncommon_share
        if right == 0:
            return common
        inside = (
            _interpolate_share(self.bounds[left - 1], self.bounds[left], value) if left else 0.0
        )
        place = left - 1 + inside if left else 0.0
        return common + self.uncommon_share * min(1.0, max(0.0, place / parts))

    def join_share(self, other: ColumnSummary) -> float:
        """The share of all pairs of rows whose values are equal: what an equijoin keeps."""
        both = self.common.keys() & other.common.keys()
        found = sum(self.common[value] * other.common[value] for value in both)
        mine = 1.0 - self.nulls - sum(self.common[value] for value in both)
        theirs = 1.0 - other.nulls - sum(other.common[value] for value in both)
        left = max(self.distinct, other.distinct) - len(both)
        return found + max(0.0, mine) * max(0.0, theirs) / max(1.0, left)


def _interpolate_share(low: Any, high: Any, value: Any) -> float:
    """The fraction of the distance between two bounds at which a value lies; 0.5 when unknown."""
    try:
        return float((value - low) / (high - low))
    except (TypeError, ZeroDivisionError, OverflowError, ArithmeticError):
        return 0.5


def summarize_column(values: Sequence[Any], rows: float) -> ColumnSummary | None:
    """The summary of a column of about `rows` values of which these are a sample."""
    if not values:
        return None
    try:
        counts = Counter(values)
    except TypeError:  # values without a hash
        return None
    nulls = counts.pop(None, 0) / len(values)
    known = sum(counts.values())
    if not known:
        return ColumnSummary(0.0, nulls, {}, ())
    common = _find_common(counts, len(values))
    return ColumnSummary(
        _estimate_distinct(counts, known, rows * (1.0 - nulls)),
        nulls,
        common,
        _find_bounds(counts, common),
    )


def _estimate_distinct(counts: Counter[Any], sampled: int, rows: float) -> float:
    found = float(len(counts))
    once = sum(1 for count in counts.values() if count == 1)
    if rows <= sampled:
        return found
    if once == sampled:
        return rows  # no value was seen twice: assume a key
    estimate = sampled * found / (sampled - once + once * sampled / rows)
    return min(rows, max(found, estimate))


def _find_common(counts: Counter[Any], sampled: int) -> dict[Any, float]:
    average = sum(counts.values()) / len(counts)
    least = max(2.0, COMMON_TIMES * average) if len(counts) > COMMON_MAX else 0.0
    return {
        value: count / sampled for value, count in counts.most_common(COMMON_MAX) if count >= least
    }


def _find_bounds(counts: Counter[Any], common: dict[Any, float]) -> tuple[Any, ...]:
    try:
        ordered = sorted(value for value in counts.elements() if value not in common)
    except (TypeError, ArithmeticError):  # values without an order
        return ()
    if len(ordered) < 2:
        return ()
    last = len(ordered) - 1
    parts = min(PARTS, last)
    return tuple(ordered[round(i * last / parts)] for i in range(parts + 1))
