"""A fill in parts: what of a view comes of some rows of one table, or of some partitions.

Every tree is made of parts that add up to it, each of which can be worked out a piece at a time:

    Core        each branch is linear in any one of its leaves: rows of that table, joined with all
                rows of the others. The leaf is taken from which the others are reached best
    Map, Union  the parts of what is below
    Apply       the parts of its left input, each row by itself
    Recompute   some partitions at a time. Which there are is not known before: the parts of its
                inputs are walked for their keys first, which are written down in a list
    Whole       is no sum of anything: it has no parts

The *phases* of a fill are its parts, each list of keys filled before it is walked. How far a fill
is, is then a phase and a place in what the phase walks, and both are written with what was added up
so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.rows import RowLayout, Slot
from belvedere.plan.fields import Fields
from belvedere.txn.border import Reader
from belvedere.types import Row

ROWS_TOGETHER = 50_000
"""So many rows of a table, or keys of a list, are worked out at once."""

ROWS_TOGETHER_MAX = 500_000
"""The same where each time goes through all rows of another table."""


@dataclass(frozen=True, slots=True)
class Part:
    """`rows` makes rows of a tree of what was walked: encoded rows of the table with the id
    `driver`, or keys of a list, or nothing (None: the part is made at once). `name` tells it from
    other ways to fill the same view."""

    driver: int | KeyList | None
    rows: Callable[[Reader, Sequence[Any]], Iterable[Row]]
    name: str
    scans: bool = False  # each time goes through all rows of another table
    dear: bool = False  # costs more in pieces than as a whole

    @property
    def together(self) -> int:
        """How many rows or keys are worked out at once."""
        return ROWS_TOGETHER_MAX if self.scans else ROWS_TOGETHER

    def mapped(
        self,
        name: str,
        function: Callable[[Reader, list[Row]], Iterable[Row]],
        *,
        scans: bool = False,
        dear: bool = False,
    ) -> Part:
        """What a function makes of this part's rows."""
        below = self.rows
        rows = lambda reader, walked: function(reader, list(below(reader, walked)))  # noqa: E731
        scans, dear = scans or self.scans, dear or self.dear
        return replace(self, rows=rows, name=f"{name} {self.name}", scans=scans, dear=dear)


@runtime_checkable
class Parted(Protocol):
    """A source that can be filled in parts."""

    def parts(self) -> list[Part] | None:
        """What its whole is the sum of; None where it is no sum."""


def parts_of(source: object) -> list[Part] | None:
    """The parts of a source, if it has any."""
    return source.parts() if isinstance(source, Parted) else None


@dataclass(frozen=True)
class KeyList:
    """Keys of partitions, each once, as the rows of these parts have them."""

    fields: Fields
    feeders: tuple[tuple[Part, Callable[[Iterable[Row], Reader], list[Row]]], ...]

    @cached_property
    def _key(self) -> KeyCodec:
        return KeyCodec(tuple(KeyColumn(field.type) for field in self.fields))

    @cached_property
    def _layout(self) -> RowLayout:
        return RowLayout(tuple(Slot(field.type, None) for field in self.fields))

    def entry(self, key: Row) -> tuple[bytes, bytes]:
        """As it is written down: keys that are equal are one entry."""
        return self._key.encode(key), self._layout.encode(key)

    def decode(self, value: bytes) -> Row:
        return self._layout.decode(value)


@dataclass(frozen=True, slots=True)
class Phase:
    """A part that is walked: for the view, or (`keys` makes them of its rows) for a list, the
    number of which is `into`. `walks` is the number of the list that it walks."""

    part: Part
    keys: Callable[[Iterable[Row], Reader], list[Row]] | None = None
    filled: KeyList | None = None
    into: int = -1
    walks: int = -1


def phases_of(parts: Sequence[Part]) -> list[Phase]:
    """In the order in which they are walked."""
    found: list[Phase] = []
    lists = _Numbers()
    for part in parts:
        found += _phases(part, lists)
    return found


class _Numbers:
    def __init__(self) -> None:
        self.last = -1

    def next(self) -> int:
        self.last += 1
        return self.last


def _phases(part: Part, lists: _Numbers) -> Iterator[Phase]:
    """The last one is of the part itself."""
    if not isinstance(part.driver, KeyList):
        yield Phase(part)
        return
    number = lists.next()
    for feeder, keys in part.driver.feeders:
        *before, last = _phases(feeder, lists)
        yield from before
        yield replace(last, keys=keys, filled=part.driver, into=number)
    yield Phase(part, walks=number)
