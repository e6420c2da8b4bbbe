"""The rule that whoever forks has no store open, enforced.

A process in which RocksDB has run must not fork: its threads do not come along, so that a child
hangs in its first write or its last close, minutes later and somewhere else. Here both orders fail
at once and say what to do: a fork after a store was opened, and a store opened after a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from belvedere.kv.rocksdb import RocksStore

ADVICE = "open it in a child (tests.simulation.crash.processes.call)"


class NotForkable(AssertionError):
    """A store on disk and a fork in one process."""


class Guard:
    """What one process did so far; a child begins anew.

    A child may open a store after it forked: it ends before anybody forks again. A parent goes on.
    """

    def __init__(self) -> None:
        self._children: set[int] = set()
        self._opened: dict[int, str] = {}
        self._forked: dict[int, str] = {}

    def forking(self) -> None:
        """Called before a fork."""
        here = os.getpid()
        where = self._opened.get(here) or _running_rocksdb()
        if where is not None:
            raise NotForkable(
                f"this process forks and has opened a store on disk: {where}; {ADVICE}"
            )
        self._forked.setdefault(here, _place())

    def born(self) -> None:
        """Called first thing in a child."""
        self._children.add(os.getpid())

    def opening(self, directory: Path) -> None:
        """Called before a store on disk is opened."""
        here = os.getpid()
        if here in self._forked and here not in self._children:
            raise NotForkable(
                f"this process forks its children ({self._forked[here]}) and must not open a store"
                f" on disk: {directory}; {ADVICE}"
            )
        self._opened.setdefault(here, f"{directory} by {_place()}")


def _place() -> str:
    return os.environ.get("PYTEST_CURRENT_TEST", f"process {os.getpid()}")


def _running_rocksdb() -> str | None:
    """Threads of a store that was opened before the guard was there."""
    for task in Path("/proc/self/task").glob("*/comm"):
        try:
            name = task.read_text().strip()
        except FileNotFoundError:  # a thread that has just ended
            continue
        if name.startswith("rocksdb"):
            return f"thread {name} is running"
    return None


def _watched(open_: Callable[..., RocksStore], guard: Guard) -> Callable[..., RocksStore]:
    def watched(directory: Path, **more: Any) -> RocksStore:
        guard.opening(directory)
        return open_(directory, **more)

    return watched


GUARD = Guard()
RocksStore.open = staticmethod(_watched(RocksStore.open, GUARD))  # type: ignore
