"""Mutations of isolation, each with the runs of sessions in which the checker catches it.

Runs are tried from a first seed on until one catches the bug; the very same run without the bug
must find nothing. Only `lock_order_inverted` needs threads; all the others, `torn_batch` with a
kill, are step by step in one thread, so the seed alone decides.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.registry import mutated
from tests.simulation.history.drivers import Outcome, crashed, interleaved, threaded
from tests.simulation.history.events import READ_COMMITTED, SERIALIZABLE, SNAPSHOT

SECONDS_MAX = 10.0
"""Of work, in this process and its children, so that a busy machine does not count."""
WALL_SECONDS_MAX = 60.0
Run = Callable[[int, Path, str], Outcome]
"""(seed, where, mutation or '') -> the judged history."""


@dataclass(frozen=True, slots=True)
class Catcher:
    """`kinds` are the anomalies that give the bug away; `first` a seed known to do it."""

    run: Run
    kinds: frozenset[str]
    first: int = 0


class Caught(dict[str, object]):
    """Seed, kinds and seconds."""


def _steps(level: str, *work: str, in_commit: bool = False) -> Run:
    def run(seed: int, directory: Path, bug: str) -> Outcome:
        more = {"kinds": work} if work else {}
        with mutated(bug):
            return interleaved(level, seed, in_commit=in_commit, **more)

    return run


def _transfers(seed: int, directory: Path, bug: str) -> Outcome:
    """Locks taken in any order; with the bug, both sides of a deadlock wait to the end. Threads
    take turns often, or one mostly has all its locks before another asks for the first."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    wait_ms = 300 if bug else 30_000
    try:
        with mutated(bug):
            return threaded(SNAPSHOT, seed, kinds=("transfer",), lock_wait_ms=wait_ms)
    finally:
        sys.setswitchinterval(usual)


def _kill_in_commit(seed: int, directory: Path, bug: str) -> Outcome:
    home = directory / f"{bug or 'clean'}{seed}"
    return crashed(
        SNAPSHOT,
        seed,
        home,
        rounds=1,
        transactions=60,
        threads=1,
        point="commit.after_write",
        mutation=bug,
        kinds=("transfer",),
    )


CATCHERS: dict[str, Catcher] = {
    "undo_skipped": Catcher(
        _steps(SNAPSHOT), frozenset({"snapshot violation", "non-repeatable read", "read skew"})
    ),
    "undo_after_write": Catcher(
        _steps(SNAPSHOT, in_commit=True),
        frozenset({"snapshot violation", "non-repeatable read", "read skew"}),
    ),
    "undo_purged_early": Catcher(
        _steps(SNAPSHOT), frozenset({"snapshot violation", "non-repeatable read", "read skew"})
    ),
    "conflict_unchecked": Catcher(_steps(READ_COMMITTED), frozenset({"lost update"})),
    "reads_unvalidated": Catcher(_steps(SERIALIZABLE, "skew"), frozenset({"write skew"})),
    "ranges_unvalidated": Catcher(_steps(SERIALIZABLE, "skew"), frozenset({"write skew"})),
    "unique_at_snapshot": Catcher(
        _steps(SNAPSHOT, "claim_value"), frozenset({"duplicate value", "index differs"})
    ),
    "foreign_key_at_snapshot": Catcher(_steps(SNAPSHOT, "family"), frozenset({"orphan"})),
    "lock_order_inverted": Catcher(_transfers, frozenset({"lock wait"})),
    "lock_kept": Catcher(_steps(SNAPSHOT), frozenset({"lock kept"})),
    "savepoint_keeps_changes": Catcher(
        _steps(SNAPSHOT, "second_thoughts"), frozenset({"aborted read", "own writes not seen"})
    ),
    "torn_batch": Catcher(_kill_in_commit, frozenset({"index differs"}), first=4),
}


def _worked() -> float:
    """Seconds of CPU so far, children included that have ended."""
    return sum(os.times()[:4])


def catch(bug: str, directory: Path, seed: int | None = None) -> Caught:
    """The first seed that catches the bug within the time; {} when there is none. Raises when the
    run finds something without the bug."""
    catcher = CATCHERS[bug]
    started, worked = time.monotonic(), _worked()
    number = catcher.first if seed is None else seed
    while _worked() - worked < SECONDS_MAX and time.monotonic() - started < WALL_SECONDS_MAX:
        outcome = catcher.run(number, directory, bug)
        kinds = {problem.kind for problem in outcome.problems}
        if kinds & catcher.kinds:
            seconds = time.monotonic() - started
            clean = catcher.run(number, directory, "")
            if clean.problems:
                raise AssertionError(f"{bug}: found without the bug: {clean.run}, {clean.problems}")
            return Caught(seed=number, kinds=sorted(kinds), seconds=round(seconds, 2))
        number += 1
    return Caught()
