"""Makes histories, judges them, and prints what was found.

    python -m tests.simulation.history                     the quick profile
    python -m tests.simulation.history --profile ci        the counts of a release candidate
    python -m tests.simulation.history --only i2 --seed 7  one goal, from another seed

The checker is tested first: it must find every planted anomaly, and nothing in the clean histories.
A failure is printed with the call that repeats it, as far as threads repeat themselves.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from belvedere.config import Durability
from tests.simulation.crash.report import Harness, table
from tests.simulation.history.anomalies import CLEAN, PLANTED, TOTAL
from tests.simulation.history.checker import check
from tests.simulation.history.drivers import Outcome, crashed, interleaved, threaded_on_disk
from tests.simulation.history.events import LEVELS
from tests.simulation.history.exhaustive import WORDS, Exhaustive
from tests.simulation.history.planted import CATCHERS, catch


@dataclass(frozen=True, slots=True)
class Profile:
    """How much of everything: transactions of a level, and histories."""

    schedules: int
    threaded: int
    transfers: int
    crashes: int
    orders_of_three: int


PROFILES = {
    "quick": Profile(20, 600, 1_000, 3, 300),
    "ci": Profile(400, 10_000, 20_000, 20, 30_000),
    "soak": Profile(4_000, 60_000, 60_000, 100, 300_000),
}

GOALS: dict[str, str] = {
    "i5": "the checker finds planted anomalies and passes clean histories",
    "i2": "threads in a process that is killed, the store reopened",
    "i0": "statements of 4 sessions interleaved by seed, one thread",
    "i1": "threads on RocksDB, all kinds of transactions",
    "i3": "transfers; the total is right in table and index, in every snapshot",
    "i4": "every interleaving of small transactions, two and three at a time",
    "bugs": "planted bugs are caught in under 10 s",
}


TRANSACTIONS: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""By goal: how many transactions had which outcome."""


def _count(harness: Harness, outcome: Outcome, level: str) -> None:
    harness.count(level, outcome.run, [str(problem) for problem in outcome.problems])
    TRANSACTIONS[harness.name].update(txn.outcome for txn in outcome.history)


def check_checker(harness: Harness, profile: Profile, directory: Path) -> None:
    for name, (level, kind, history) in PLANTED.items():
        found = {anomaly.kind for anomaly in check(history, level, TOTAL)}
        harness.count("planted", name, [] if kind in found else [f"not found, but {found}"])
    for name, (level, clean) in CLEAN.items():
        harness.count("clean", name, [str(a) for a in check(clean, level, TOTAL)])


def check_schedules(harness: Harness, profile: Profile, directory: Path) -> None:
    for level in LEVELS:
        for number in range(profile.schedules):
            seed = f"{harness.seed}/{number}"
            outcome = interleaved(level, seed, sessions=3 + number % 4, in_commit=number % 2 == 1)
            _count(harness, outcome, level)


def check_threads(harness: Harness, profile: Profile, directory: Path) -> None:
    each = 600
    for level in LEVELS:
        for number in range(max(1, profile.threaded // each)):
            outcome = threaded_on_disk(
                level,
                f"{harness.seed}/{number}",
                directory / f"{level}{number}",
                durability=(Durability.FULL, Durability.OFF)[number % 2],
                threads=(4, 8, 6)[number % 3],
                transactions=each,
            )
            _count(harness, outcome, level)


def check_transfers(harness: Harness, profile: Profile, directory: Path) -> None:
    each = 1_000
    for number in range(max(1, profile.transfers // each)):
        outcome = threaded_on_disk(
            LEVELS[number % 3],
            f"{harness.seed}/{number}",
            directory / f"transfers{number}",
            threads=4,
            transactions=each,
            kinds=("transfer", "transfer", "transfer", "audit"),
        )
        _count(harness, outcome, LEVELS[number % 3])


def check_crashes(harness: Harness, profile: Profile, directory: Path) -> None:
    for number in range(profile.crashes):
        level = LEVELS[number % 3]
        outcome = crashed(level, harness.seed + number, directory / f"crash{number}")
        _count(harness, outcome, level)


def check_interleavings(harness: Harness, profile: Profile, directory: Path) -> None:
    for level in LEVELS:
        for size, limit in ((2, None), (3, profile.orders_of_three)):
            exhaustive = Exhaustive(level)
            exhaustive.run_all(WORDS, size, limit)
            harness.runs[f"{level} {size}"] += exhaustive.runs - 1
            harness.count(f"{level} {size}", "every order", exhaustive.problems)


def check_bugs(harness: Harness, profile: Profile, directory: Path) -> None:
    for bug in CATCHERS:
        caught = catch(bug, directory / "bugs")
        harness.count("bug", bug, [] if caught else ["not caught"])
        if caught:
            harness.note(
                f"{bug}: caught by seed {caught['seed']} in {caught['seconds']} s "
                f"({', '.join(caught['kinds'])})"  # type: ignore[arg-type]
            )


RUNS: dict[str, Callable[[Harness, Profile, Path], None]] = {
    "i5": check_checker,
    "i2": check_crashes,
    "i0": check_schedules,
    "i1": check_threads,
    "i3": check_transfers,
    "i4": check_interleavings,
    "bugs": check_bugs,
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.history")
    parser.add_argument("--profile", choices=PROFILES, default="quick")
    parser.add_argument("--only", choices=GOALS, action="append")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    harnesses = []
    with tempfile.TemporaryDirectory() as directory:
        for goal in options.only or GOALS:
            harness = Harness(goal, GOALS[goal], options.seed)
            RUNS[goal](harness, PROFILES[options.profile], Path(directory))
            harnesses.append(harness.end())
            if TRANSACTIONS[goal]:
                counts = TRANSACTIONS[goal].items()
                harness.note("transactions: " + ", ".join(f"{n} {what}" for what, n in counts))
            counted = ", ".join(f"{count} {kind}" for kind, count in harness.runs.items())
            print(f"{goal}: {counted} in {harness.seconds:.1f} s", flush=True)
    print(table(harnesses))
    return 1 if any(harness.failures for harness in harnesses) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
