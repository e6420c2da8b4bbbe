"""The check by which long loops of functions notice that their statement was cancelled.

A function of a value cannot see the statement it belongs to. Whoever runs statements says, for its
thread, what to call; loops that may take longer than a moment call `check_interrupt` as they go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Current(threading.local):
    check: Callable[[], None] | None = None


_current = _Current()


@contextmanager
def interruptible(check: Callable[[], None]) -> Iterator[None]:
    """Calls of `check_interrupt` by this thread call `check`, which may raise."""
    before, _current.check = _current.check, check
    try:
        yield
    finally:
        _current.check = before


def check_interrupt() -> None:
    if _current.check is not None:
        _current.check()
