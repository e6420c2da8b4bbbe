"""How much memory the rows that a statement holds may take, in the direct tier, and how many rows
it may read there.

Operators that keep rows (sort, hash join, aggregate, distinct, window, CTE) count them here, by the
size of one row in every thousand. A sort beyond the limit is spilled; anything else over it fails
alone with 53200. A statement that was free to choose is run again by DuckDB in both cases, which
spills too. A sub-query counts from what is held around it, and its rows are forgotten when it is
done.

A plan that was chosen for few rows has `work`, the rows it may still read: when there are none left
the estimate was wrong, and DuckDB does it all again (`Outgrown`).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator

from belvedere.errors import Unavailable
from belvedere.types import Row

CHUNK_ROWS = 1024
LIMIT_BYTES = 1024 * 1024 * 1024
_OVERHEAD_BYTES = 100  # of an entry in a dictionary, about


class Outgrown(Exception):
    """A plan for few rows has read too many. Never leaves `execution`."""


class Memory:
    __slots__ = ("_work", "limit_bytes", "used_bytes")

    def __init__(
        self,
        limit_bytes: int = LIMIT_BYTES,
        used_bytes: int = 0,
        work: list[int] | None = None,
    ) -> None:
        """`work`: how many rows may still be read, one number for all runs of a statement."""
        self.limit_bytes = limit_bytes
        self.used_bytes = used_bytes
        self._work = work

    def inner(self) -> Memory:
        """For a sub-query: what it holds is given back with it."""
        return Memory(self.limit_bytes, self.used_bytes, self._work)

    def within(self, rows_max: int) -> Memory:
        """The same, but only so many rows may be read."""
        return Memory(self.limit_bytes, self.used_bytes, [rows_max])

    def read(self, count: int) -> None:
        """So many rows were read."""
        if self._work is not None:
            self._work[0] -= count
            if self._work[0] < 0:
                raise Outgrown

    def hold(self, rows: Iterable[Row]) -> list[Row]:
        """All rows, kept."""
        each = iter(rows)
        held = list(itertools.islice(each, CHUNK_ROWS))
        if len(held) < CHUNK_ROWS:
            return held
        self.grown(CHUNK_ROWS, held[0])
        while chunk := list(itertools.islice(each, CHUNK_ROWS)):
            self.grown(len(chunk), chunk[0])
            held += chunk
        return held

    def passing(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Rows that somebody keeps, counted as they pass."""
        each = iter(rows)
        while chunk := list(itertools.islice(each, CHUNK_ROWS)):
            self.grown(len(chunk), chunk[0])
            yield from chunk

    @property
    def may_spill(self) -> bool:
        """Whether nobody else would do it better."""
        return self._work is None

    def has_room(self, count: int, row: Iterable[object]) -> bool:
        """Whether so many rows like this one may be held."""
        return self.used_bytes + _size(count, row) <= self.limit_bytes

    def grown(self, count: int, row: Iterable[object]) -> None:
        """So many rows like this one are held from now on."""
        self.used_bytes += _size(count, row)
        if self.used_bytes > self.limit_bytes:
            raise over_limit(self.limit_bytes)


def _size(count: int, row: Iterable[object]) -> int:
    return count * (_OVERHEAD_BYTES + sum(map(sys.getsizeof, row)))


def over_limit(limit_bytes: int) -> Unavailable:
    return Unavailable(
        "statement needs more memory than it may use",
        sqlstate="53200",
        hint="raise memory_limit_mb of the connection, or ask for less at a time",
        limit_mb=limit_bytes // 2**20,
    )
