"""Parts of a backfill: the rows of a view that some rows of one table, or some partitions, give.

Every tree is a sum of parts, each of which can be computed a chunk at a time:

    core        each branch is linear in any one of its leaves: rows of that table, joined with all
                rows of the others. The driving leaf is the one from which the others are reached
                at least cost
    map, union  the parts of their inputs
    apply       the parts of its left input, each row by itself
    recompute   some partitions at a time. Which partitions exist is not known before: the parts of
                its inputs are scanned for their keys first, which are stored in a list
    full        a full recompute is not a sum: it has no parts

The *phases* of a backfill are its parts; each list of keys is completed before a phase walks it.
The progress of a backfill is then a phase and a position in what the phase walks, and both are
written together with the sums so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.rows import RowLayout, Slot
from belvedere.plan.fields import Fields
from belvedere.txn.contracts import Reader
from belvedere.types import Row

BATCH_ROWS = 50_000
"""So many rows of a table, or keys of a list, are processed at once."""

SCANNING_BATCH_ROWS = 500_000
"""The same for parts that scan another table each time."""


@dataclass(frozen=True, slots=True)
class BackfillPart:
    """`make_rows` computes a tree's rows from what was walked: encoded rows of the table with the
    id `driver`, or keys of a list, or nothing (None: the part is computed at once). `name`
    distinguishes it from other ways to backfill the same view."""

    driver: int | KeyList | None
    make_rows: Callable[[Reader, Sequence[Any]], Iterable[Row]]
    name: str
    scans: bool = False  # each chunk scans another table
    costly_in_chunks: bool = False  # costs more in chunks than at once

    @property
    def batch_row_count(self) -> int:
        """How many rows or keys are processed at once."""
        return SCANNING_BATCH_ROWS if self.scans else BATCH_ROWS

    def with_mapped_rows(
        self,
        name: str,
        function: Callable[[Reader, list[Row]], Iterable[Row]],
        *,
        scans: bool = False,
        dear: bool = False,
    ) -> BackfillPart:
        """This part with a function applied to its rows."""
        below = self.make_rows
        rows = lambda reader, walked: function(reader, list(below(reader, walked)))  # noqa: E731
        scans, dear = scans or self.scans, dear or self.costly_in_chunks
        return replace(
            self, make_rows=rows, name=f"{name} {self.name}", scans=scans, costly_in_chunks=dear
        )


@runtime_checkable
class DivisibleOperator(Protocol):
    """An operator that can be backfilled in parts."""

    def build_backfill_parts(self) -> list[BackfillPart] | None:
        """The parts whose sum its rows are; None where it is not a sum."""


def build_parts_if_divisible(source: object) -> list[BackfillPart] | None:
    """The parts of an operator; None where it cannot be divided."""
    return source.build_backfill_parts() if isinstance(source, DivisibleOperator) else None


@dataclass(frozen=True)
class KeyList:
    """A stored list of partition keys, each once, extracted from the rows of these parts."""

    fields: Fields
    feeders: tuple[tuple[BackfillPart, Callable[[Iterable[Row], Reader], list[Row]]], ...]

    @cached_property
    def _key_codec(self) -> KeyCodec:
        return KeyCodec(tuple(KeyColumn(field.type) for field in self.fields))

    @cached_property
    def _row_layout(self) -> RowLayout:
        return RowLayout(tuple(Slot(field.type, None) for field in self.fields))

    def encode_key_entry(self, key: Row) -> tuple[bytes, bytes]:
        """The key as a stored (key, value) pair: equal keys are one entry."""
        return self._key_codec.encode(key), self._row_layout.encode(key)

    def decode_key(self, value: bytes) -> Row:
        return self._row_layout.decode(value)


@dataclass(frozen=True, slots=True)
class BackfillPhase:
    """One walk over a part: for the view, or (`keys` extracts them from its rows) for a list with
    the number `output_list`. `input_list` is the number of the list that it walks."""

    part: BackfillPart
    keys: Callable[[Iterable[Row], Reader], list[Row]] | None = None
    output_keys: KeyList | None = None
    output_list: int = -1
    input_list: int = -1


def plan_backfill_phases(parts: Sequence[BackfillPart]) -> list[BackfillPhase]:
    """The phases of a backfill, in the order in which they run."""
    found: list[BackfillPhase] = []
    lists = _ListNumbers()
    for part in parts:
        found += _plan_part_phases(part, lists)
    return found


class _ListNumbers:
    def __init__(self) -> None:
        self.last = -1

    def allocate_list_number(self) -> int:
        self.last += 1
        return self.last


def _plan_part_phases(part: BackfillPart, lists: _ListNumbers) -> Iterator[BackfillPhase]:
    """The phases of one part; the last one is of the part itself."""
    if not isinstance(part.driver, KeyList):
        yield BackfillPhase(part)
        return
    number = lists.allocate_list_number()
    for feeder, keys in part.driver.feeders:
        *before, last = _plan_part_phases(feeder, lists)
        yield from before
        yield replace(last, keys=keys, output_keys=part.driver, output_list=number)
    yield BackfillPhase(part, input_list=number)
