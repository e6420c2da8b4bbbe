"""Arrays of the system catalogs that count from 0: PostgreSQL's int2vector and oidvector."""

from __future__ import annotations

from collections.abc import Sequence


class Vector(list[int]):
    """An array whose first element is number 0."""

    first = 0


def find_lower_bound(values: Sequence[object]) -> int:
    """The number of an array's first element."""
    return getattr(values, "first", 1)
