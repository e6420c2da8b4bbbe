"""Estimated row counts of relations, kept up to date without counting each time.

To count a relation is to read some of it, and where rows were deleted also to skip their
tombstones: it may take longer than the batch it is for. So a table is counted once, and then the
inserted and deleted rows of the batches that follow are added up. When a log range was missed, the
table is counted again. The state of a view is not followed: it is counted again after some time, so
that counting takes a small share of all time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from belvedere.txn.contracts import RowChange
from belvedere.views.maintain.log_window import LogRange

SHARE = 0.005
"""The share of the time that may be spent counting states: where rows were deleted at the low end
of one, a count takes as long as a small batch."""


class PositionSpan(NamedTuple):
    """The positions of a batch's log range: start < position <= end."""

    start: int
    end: int


class _TableCount(NamedTuple):
    position: int
    rows: float


class _StateCount(NamedTuple):
    again_at: float
    rows: float


class RowCounts:
    """Row counts of an open store. `count_rows` estimates how many rows a relation has now,
    `count_distinct` how many values a column of a table."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.count_rows: Callable[[int], float] = lambda relation: math.inf
        self.count_distinct: Callable[[int, int], float | None] = lambda relation, slot: None
        self._clock = clock
        self._tables: dict[int, _TableCount] = {}
        self._states: dict[int, _StateCount] = {}

    def estimate_table_rows(self, relation: int, span: PositionSpan) -> float:
        """About how many rows a table has at a position of the span."""
        known = self._tables.get(relation)
        if known is None or known.position < span.start:
            known = self._tables[relation] = _TableCount(span.end, self.count_rows(relation))
        return known.rows

    def add_changes_to_table_counts(self, span: PositionSpan, log_range: LogRange) -> None:
        """Add the changes of a span to the counts of tables that are known at its start."""
        for relation, known in list(self._tables.items()):
            if known.position == span.start and relation in log_range.relations:
                rows = known.rows + _count_net_inserted_rows(
                    log_range.get_changes_of_relations(frozenset((relation,)))
                )
                self._tables[relation] = _TableCount(span.end, max(rows, 0.0))

    def estimate_state_entries(self, view: int) -> float:
        """About how many entries a view's state has."""
        known, started = self._states.get(view), self._clock()
        if known is None or started >= known.again_at:
            rows = self.count_rows(view)
            now = self._clock()
            known = self._states[view] = _StateCount(now + (now - started) / SHARE, rows)
        return known.rows

    def clear_counts(self) -> None:
        self._tables.clear()
        self._states.clear()


def _count_net_inserted_rows(changes: list[RowChange]) -> int:
    """The number of inserted rows less that of deleted ones."""
    return sum([(old is None) - (new is None) for _, old, new, _ in changes])
