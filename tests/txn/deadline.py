"""Waiting in tests: for a condition, never for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_S = 60


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.0005)
