"""The fixed beginning of a LIKE pattern, as bounds of the texts that may match it."""

from __future__ import annotations

_LAST = 0x10FFFF


def find_prefix_bounds(pattern: str) -> tuple[str, str | None]:
    """The beginning, and the smallest text larger than all that begin so; None: there is none."""
    prefix = _find_literal_prefix(pattern)
    return prefix, _find_next_prefix(prefix)


def _find_literal_prefix(pattern: str) -> str:
    for i, sign in enumerate(pattern):
        if sign in "%_\\":
            return pattern[:i]
    return pattern


def _find_next_prefix(prefix: str) -> str | None:
    while prefix:
        code = ord(prefix[-1])
        if code < _LAST:
            code += 1
            if 0xD800 <= code <= 0xDFFF:  # no characters, only halves of them
                code = 0xE000
            return prefix[:-1] + chr(code)
        prefix = prefix[:-1]
    return None
