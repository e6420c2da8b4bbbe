"""How large a value may become: functions that make one larger than their arguments ask first.

A statement may make values of a quarter of the memory it may use, so that a function's arguments
and result fit in it together. Code that runs statements says so for its thread; other threads
(those of DuckDB, tasks of Spark) make values up to the size that a store holds.
"""

from __future__ import annotations

import threading

from belvedere import interrupts
from belvedere.errors import Unavailable

ALWAYS_ALLOWED = 1 << 16
"""Sizes up to this need not be asked for."""
_STORED_MAX = 64 * 2**20


class _Current(threading.local):
    limit = _STORED_MAX


_current = _Current()


def limit_value_size(limit: int) -> None:
    """Values that this thread makes from now on have at most so many characters or bytes."""
    _current.limit = limit


def require_value_size(size: int) -> None:
    """53200 when a value of this size is larger than it may be. Code that makes many large values
    can be stopped here."""
    if size <= ALWAYS_ALLOWED:
        return
    interrupts.check_statement()
    if size > _current.limit:
        raise Unavailable(
            "a value needs more memory than a statement may use",
            sqlstate="53200",
            hint="raise memory_limit_mb of the connection, or make smaller values",
            limit_bytes=_current.limit,
        )
