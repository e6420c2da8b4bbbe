"""LIKE patterns with a fixed beginning as ranges of text.

The range of a constant pattern is known here; that of a parameter when the statement runs.
"""

from __future__ import annotations

from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan.pattern_prefix import find_prefix_bounds
from belvedere.plan.transform import columns_of
from belvedere.types import Kind

_TEXTS = (Kind.TEXT, Kind.VARCHAR)


def prefix_range(condition: e.Expression) -> tuple[e.Expression, paths.Range] | None:
    """`side LIKE 'abc%..'` as (side, ['abc', 'abd')); the pattern itself is still to be checked."""
    if not isinstance(condition, e.Call) or condition.function.name != "~~":
        return None
    side, pattern = condition.arguments
    if side.type.kind not in _TEXTS or not columns_of(side):
        return None
    if not isinstance(pattern, e.Literal):
        known = pattern.type.kind in _TEXTS and not columns_of(pattern)
        return (side, paths.Range(pattern=pattern)) if known else None
    if not isinstance(pattern.value, str):
        return None
    low, after = find_prefix_bounds(pattern.value)
    if not low:
        return None
    high = None if after is None else paths.Bound(e.Literal(after, side.type), False)
    return side, paths.Range(paths.Bound(e.Literal(low, side.type), True), high)
