"""LIKE patterns with a fixed beginning as ranges of text."""

from __future__ import annotations

from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan.transform import columns_of
from belvedere.types import Kind

_LAST = 0x10FFFF


def prefix_range(condition: e.Expression) -> tuple[e.Expression, paths.Range] | None:
    """`side LIKE 'abc%..'` as (side, ['abc', 'abd')); the pattern itself is still to be checked."""
    if not isinstance(condition, e.Call) or condition.function.name != "~~":
        return None
    side, pattern = condition.arguments
    if not isinstance(pattern, e.Literal) or not isinstance(pattern.value, str):
        return None
    if side.type.kind not in (Kind.TEXT, Kind.VARCHAR) or not columns_of(side):
        return None
    prefix = _literal_prefix(pattern.value)
    if not prefix:
        return None
    low = paths.Bound(e.Literal(prefix, side.type), True)
    after = _next_prefix(prefix)
    high = None if after is None else paths.Bound(e.Literal(after, side.type), False)
    return side, paths.Range(low, high)


def _literal_prefix(pattern: str) -> str:
    for i, sign in enumerate(pattern):
        if sign in "%_\\":
            return pattern[:i]
    return pattern


def _next_prefix(prefix: str) -> str | None:
    """The smallest text that is larger than every text with this prefix."""
    while prefix:
        code = ord(prefix[-1])
        if code < _LAST:
            code += 1
            if 0xD800 <= code <= 0xDFFF:  # no characters, only halves of them
                code = 0xE000
            return prefix[:-1] + chr(code)
        prefix = prefix[:-1]
    return None
