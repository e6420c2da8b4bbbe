"""Shorter turns of the interpreter while commits wait to become durable.

A thread that computes keeps the interpreter for `sys.getswitchinterval()`, 5 ms, although others
wait for it. A durable commit gives it away for a sync of some 100 us and would then wait one such
turn for each thread that reads. While a commit waits, turns are short; after it they are what they
were. The interval is one number of the whole process.
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakSet

TURN_S = 0.00005


class InterpreterHandover:
    """Entered and left by every commit that waits, from any thread, without a lock: a waiting
    thread gives the interpreter away. What they race for is only when turns get longer again. A
    commit that was interrupted before it could leave is forgotten with the object it came with."""

    __slots__ = ("_usual_s", "_waiting")

    def __init__(self) -> None:
        self._waiting: WeakSet[Any] = WeakSet()
        self._usual_s = sys.getswitchinterval()

    def shorten_turns(self, waiting: Any) -> None:
        if not self._waiting:
            now = sys.getswitchinterval()
            if not _is_short(now):  # else another one is about to make it longer
                self._usual_s = now
        self._waiting.add(waiting)
        sys.setswitchinterval(min(TURN_S, self._usual_s))

    def restore_turns(self, waiting: Any) -> None:
        self._waiting.discard(waiting)
        if not self._waiting and _is_short(sys.getswitchinterval()):  # else somebody has set it
            sys.setswitchinterval(self._usual_s)


def _is_short(seconds: float) -> bool:
    return abs(seconds - TURN_S) < TURN_S / 4


HANDOVER = InterpreterHandover()
"""One for all stores of the process."""
