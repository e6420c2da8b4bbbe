"""Merge join: both inputs are sorted by the join key and read in parallel.

Of the right side the rows of one key value are held at a time. A row whose key is NULL matches
nothing, wherever it is in the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from belvedere.plan import nodes as n
from belvedere.types import Row

Key = Callable[[Row], Any]
Emit = Callable[[Row, Iterable[Row]], Iterable[Row]]
Test = Callable[[Row, Row], bool]


def merge_join(
    left: Iterator[Row], right: Iterator[Row], keys: tuple[Key, Key], emit: Emit, test: Test | None
) -> Iterator[Row]:
    """Inner, left, semi and anti joins."""
    key, groups = keys[0], MergeGroups(right, keys[1], [])
    for row in left:
        matches: Iterable[Row] = groups.rows_with_key(key(row))
        if test is not None:
            matches = [other for other in matches if test(row, other)]
        yield from emit(row, matches)


def merge_outer_join(
    left: Iterator[Row],
    right: Iterator[Row],
    keys: tuple[Key, Key],
    node: n.Join,
    test: Test | None,
) -> Iterator[Row]:
    """Right and full joins: unmatched right rows are returned when the merge has passed them."""
    left_padding = (None,) * len(node.left.fields)
    right_padding = (None,) * len(node.right.fields)
    passed: list[Row] = []
    key, groups = keys[0], MergeGroups(right, keys[1], passed)
    for row in left:
        found = False
        for place, other in enumerate(groups.rows_with_key(key(row))):
            if test is None or test(row, other):
                found = True
                groups.matched.add(place)
                yield row + other
        if not found and node.kind is n.JoinKind.FULL:
            yield row + right_padding
        if passed:
            yield from [left_padding + other for other in passed]
            passed.clear()
    for other in chain(passed, groups.remaining_rows()):
        yield left_padding + other


class MergeGroups:
    """The right rows, grouped by key value. Unmatched ones are added to `passed`."""

    def __init__(self, rows: Iterator[Row], key: Key, passed: list[Row]) -> None:
        self._rows = rows
        self._key = key
        self._passed = passed
        self._value: Any = None  # of the group; None: no group is left
        self._group: list[Row] = []
        self._next = next(rows, None)
        self.matched: set[int] = set()
        self._advance_group()

    def rows_with_key(self, value: Any) -> list[Row]:
        """The rows with this key. Keys must be requested in ascending order."""
        if value is None:
            return []
        while self._value is not None and self._value < value:
            self._advance_group()
        return self._group if self._value == value else []

    def remaining_rows(self) -> Iterator[Row]:
        """All remaining rows, which no left row has matched."""
        while self._value is not None:
            self._advance_group()
            yield from self._passed
            self._passed.clear()
        yield from self._passed

    def _advance_group(self) -> None:
        self._passed += [row for i, row in enumerate(self._group) if i not in self.matched]
        self._group, self._value = [], None
        self.matched.clear()
        while self._next is not None:
            value = self._key(self._next)
            if value is None:
                self._passed.append(self._next)
            elif self._value is None or value == self._value:
                self._value = value
                self._group.append(self._next)
            else:
                return
            self._next = next(self._rows, None)
