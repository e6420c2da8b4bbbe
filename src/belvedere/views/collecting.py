"""A batch of maintenance goes on without Python's cycle collector.

A batch makes a few tuples for every change, keeps them until it is written, and makes no cycles.
The collector, which counts what is made and kept, would take that for a reason to look at every
object of the process, several times a batch and for tens of milliseconds each.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Let nothing be collected meanwhile, in any thread. Several may overlap: the first of them
    that ends may let it go on for the others."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
