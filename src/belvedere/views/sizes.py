"""About how many rows relations have, without asking them each time.

To count a relation is to read some of it, and where rows were deleted it is to pass by what is left
of them: it may take longer than the batch it is for. So a table is counted once, and then the rows
that came and went are added up from the batches that follow its log. When one was missed, it is
counted again. The state of a view is not followed: it is counted again after some time, so that
counting takes a small part of all time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from belvedere.txn.border import RowChange
from belvedere.views.window import Stretch

SHARE = 0.05
"""The part of the time that may go into counting states."""


class Span(NamedTuple):
    """The stretch of the log that a batch is for: start < position <= end."""

    start: int
    end: int


class _Table(NamedTuple):
    position: int
    rows: float


class _State(NamedTuple):
    again_at: float
    rows: float


class Sizes:
    """Of an open store. `count` says about how many rows a relation has now."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.count: Callable[[int], float] = lambda relation: math.inf
        self._clock = clock
        self._tables: dict[int, _Table] = {}
        self._states: dict[int, _State] = {}

    def table(self, relation: int, span: Span) -> float:
        """Rows of a table, at a position of the span."""
        known = self._tables.get(relation)
        if known is None or known.position < span.start:
            known = self._tables[relation] = _Table(span.end, self.count(relation))
        return known.rows

    def moved(self, span: Span, stretch: Stretch) -> None:
        """What changed in a span."""
        for relation, known in list(self._tables.items()):
            if known.position == span.start and relation in stretch.relations:
                rows = known.rows + _net(stretch.of(frozenset((relation,))))
                self._tables[relation] = _Table(span.end, max(rows, 0.0))

    def state(self, view: int) -> float:
        """Entries of a view's state."""
        known, started = self._states.get(view), self._clock()
        if known is None or started >= known.again_at:
            rows = self.count(view)
            now = self._clock()
            known = self._states[view] = _State(now + (now - started) / SHARE, rows)
        return known.rows

    def forget(self) -> None:
        self._tables.clear()
        self._states.clear()


def _net(changes: list[RowChange]) -> int:
    """How many rows came, less how many went."""
    return sum([(old is None) - (new is None) for _, old, new, _ in changes])
