"""Threads of a node that need positions of the store look for them together.

One of them looks, for the greatest need of all; those that come meanwhile look together after it.
So a node asks for the positions once at a time, however many threads it has, and nobody gets what
was read before it asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from belvedere.txn.row_atomic.cells.layout import Positions

Reached = tuple[Positions, float]
"""Positions, and a moment before they were read."""


class SharedReach:
    """Looks for positions, one thread at a time."""

    def __init__(self, reach: Callable[[int], Reached]) -> None:
        self._reach = reach
        self._changed = threading.Condition()
        self._needed = 0
        self._begun = 0
        self._ended = 0
        self._looking = False
        self._found: Reached = (Positions(), 0.0)

    def reach_position(self, need: int) -> Reached:
        """The positions once everything up to `need` is applied, read after this call began."""
        with self._changed:
            self._needed = max(self._needed, need)
            wanted = self._begun + 1
            self._changed.wait_for(lambda: self._ended >= wanted or not self._looking)
            if self._ended >= wanted:
                return self._found
            self._looking = True
            self._begun += 1
            number, at_least = self._begun, self._needed
        try:
            found = self._reach(at_least)
            with self._changed:
                self._found, self._ended = found, number
            return found
        finally:
            with self._changed:
                self._looking = False
                self._changed.notify_all()
