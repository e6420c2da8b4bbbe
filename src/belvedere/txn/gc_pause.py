"""Pausing Python's cycle collector during a maintenance batch.

A batch allocates a few tuples for every change, holds them until it is written, and makes no
cycles. Such allocation triggers full collections, which visit every object of the process, several
times a batch and for tens of milliseconds each, and find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_cycle_collector() -> Iterator[None]:
    """Disable the cycle collector, for all threads. Several pauses may overlap: the first of them
    to end may enable the collector during the others."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
