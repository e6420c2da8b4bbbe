"""Values as keys: what Python's `==`, `hash` and `<` need to agree with SQL's equality and order.

Most types are their own key. The others get one here: NaN equals itself and is greater than every
number, CHAR ignores trailing blanks, an interval is its span, an array is the tuple of its
elements' keys with NULL greater than all. None is never passed in, and is its own key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.types import Interval, Kind, SqlType

KeyForm = Callable[[Any], Any]


class _Greatest:
    """Equal to itself, greater than everything else."""

    __slots__ = ("_rank",)

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def __lt__(self, other: object) -> bool:
        return isinstance(other, _Greatest) and self._rank < other._rank

    def __gt__(self, other: object) -> bool:
        return not isinstance(other, _Greatest) or self._rank > other._rank

    def __repr__(self) -> str:
        return f"<greatest {self._rank}>"


NAN = _Greatest(1)
NULL_ELEMENT = _Greatest(2)


def number_key(value: Any) -> Any:
    return value if value == value else NAN


def char_key(value: str) -> str:
    return value.rstrip(" ")


def interval_key(value: Interval) -> int:
    return value.span


def array_key(element: KeyForm | None) -> KeyForm:
    def tuple_key(value: list[Any]) -> tuple[Any, ...]:
        if element is None:
            return tuple([NULL_ELEMENT if item is None else item for item in value])
        return tuple([NULL_ELEMENT if item is None else element(item) for item in value])

    return tuple_key


def key_form(sql_type: SqlType) -> KeyForm | None:
    """The function from value to key, or None when a value of this type is its own key."""
    match sql_type.kind:
        case Kind.NUMERIC | Kind.REAL | Kind.DOUBLE:
            return number_key
        case Kind.CHAR:
            return char_key
        case Kind.INTERVAL:
            return interval_key
        case Kind.ARRAY:
            assert sql_type.element is not None
            return array_key(key_form(sql_type.element))
        case _:
            return None
