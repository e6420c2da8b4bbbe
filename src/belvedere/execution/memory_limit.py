"""Limits of a statement in the Python tier: the memory of the rows it holds, and the rows it reads.

Operators that hold rows (sort, hash join, aggregate, distinct, window, CTE) reserve memory here.
Of rows that are held as they are one in eight is measured; sizes of keys and groups are estimated
from one in 64. A sort beyond the limit is spilled; any other operator over it fails with 53200, and
only its statement. If the tier was chosen and not requested, DuckDB, which spills too, runs the
statement again in both cases. A sub-query starts from what is held around it, and its rows are
released when it ends.

A plan that was chosen for few rows has `work`, the rows it may still read: when none are left the
estimate was wrong, and DuckDB runs the statement from the start (`RowLimitExceeded`).
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from belvedere.errors import Unavailable
from belvedere.types import Row

CHUNK_ROWS = 64
MEASURED_ROWS = 8
"""Of so many rows that are held, one is measured."""
LIMIT_BYTES = 1024 * 1024 * 1024
CHANGE_BYTES = 800
ROW_COPIES = 6
"""A changed row, until it is committed: its key, its lock and its entries in dictionaries; its old
and new form in the transaction, the log record and the batch of the store."""
CHANGES_BYTES_MAX = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
"""What the changes of a statement may take: half of the machine's memory, or the limit of the
statement where that is more. They are the data, and cannot be spilled."""
_OVERHEAD_BYTES = 100  # of an entry in a dictionary, about


class RowLimitExceeded(Exception):
    """A plan for few rows has read too many. Never leaves `execution`."""


class Memory:
    __slots__ = ("_changed_bytes", "_work", "limit_bytes", "result_bytes_max", "used_bytes")

    def __init__(
        self,
        limit_bytes: int = LIMIT_BYTES,
        used_bytes: int = 0,
        work: list[int] | None = None,
        result_bytes_max: int | None = None,
    ) -> None:
        """`work`: how many rows may still be read, one number for all runs of a statement.
        `result_bytes_max`: how large a result of DuckDB may become; None: it is not limited."""
        self.limit_bytes = limit_bytes
        self.used_bytes = used_bytes
        self._work = work
        self._changed_bytes = 0
        self.result_bytes_max = result_bytes_max

    def for_subquery(self) -> Memory:
        """For a sub-query: what it holds is released when it ends."""
        return Memory(self.limit_bytes, self.used_bytes, self._work, self.result_bytes_max)

    def with_row_limit(self, rows_max: int) -> Memory:
        """The same limits, with at most this many rows to read."""
        return Memory(self.limit_bytes, self.used_bytes, [rows_max], self.result_bytes_max)

    def count_read(self, count: int) -> None:
        """Counts rows that were read; `RowLimitExceeded` when there are more than allowed."""
        if self._work is not None:
            self._work[0] -= count
            if self._work[0] < 0:
                raise RowLimitExceeded

    def hold_rows(self, rows: Iterable[Row]) -> list[Row]:
        """All rows as a list, with their memory reserved."""
        each = iter(rows)
        held = list(itertools.islice(each, 2))
        if len(held) < 2:
            return held
        self._reserve_all(held)
        while chunk := list(itertools.islice(each, CHUNK_ROWS)):
            self._reserve_all(chunk)
            held += chunk
        return held

    def count_held(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, with memory reserved as they pass: the consumer holds them."""
        each = iter(rows)
        while chunk := list(itertools.islice(each, CHUNK_ROWS)):
            self._reserve_all(chunk)
            yield from chunk

    @property
    def may_spill(self) -> bool:
        """Whether this tier has to spill: no fallback to DuckDB is left."""
        return self._work is None

    def has_room(self, count: int, row: Iterable[object]) -> bool:
        """Whether there is room for `count` rows of this row's size."""
        return self.used_bytes + _estimate_bytes(count, row) <= self.limit_bytes

    def reserve_changes(self, stored: Sequence[bytes]) -> None:
        """Reserves what a transaction needs until it has committed the changes of rows, by the
        lengths of their stored forms; 53200 beyond the limit."""
        self._changed_bytes += CHANGE_BYTES * len(stored) + ROW_COPIES * sum(map(len, stored))
        limit_bytes = max(self.limit_bytes, CHANGES_BYTES_MAX)
        if self._changed_bytes > limit_bytes:
            raise over_limit(limit_bytes, self._changed_bytes)

    def _reserve_all(self, rows: list[Row]) -> None:
        """Reserves memory for these rows, by the sizes of one in every few of them."""
        measured = rows if len(rows) < MEASURED_ROWS else rows[::MEASURED_ROWS]
        sizes = sum(map(sys.getsizeof, itertools.chain.from_iterable(measured)))
        self.used_bytes += (_OVERHEAD_BYTES + sizes // len(measured)) * len(rows)
        if self.used_bytes > self.limit_bytes:
            raise over_limit(self.limit_bytes)

    def reserve_rows(self, count: int, row: Iterable[object]) -> None:
        """Reserves memory for `count` rows of this row's size; 53200 beyond the limit."""
        self.used_bytes += _estimate_bytes(count, row)
        if self.used_bytes > self.limit_bytes:
            raise over_limit(self.limit_bytes)


def _estimate_bytes(count: int, row: Iterable[object]) -> int:
    return count * (_OVERHEAD_BYTES + sum(map(sys.getsizeof, row)))


def over_limit(limit_bytes: int, needed_bytes: int | None = None) -> Unavailable:
    error = Unavailable(
        "statement needs more memory than it may use",
        sqlstate="53200",
        hint="raise memory_limit_mb of the connection, or ask for less at a time",
        limit_mb=limit_bytes // 2**20,
    )
    if needed_bytes is not None:
        error.facts["needed_mb"] = -(-needed_bytes // 2**20)
    return error
