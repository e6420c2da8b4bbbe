"""Counting runs, printing failures with what repeats them, and the table at the end."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Harness:
    """One kind of fault. `rng` is all its randomness."""

    name: str
    what: str
    seed: int
    quiet: bool = False
    runs: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    rng: random.Random = field(init=False)
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.name}/{self.seed}")
        self._started = time.monotonic()

    def count(self, kind: str, run: str, problems: list[str]) -> None:
        """One run is over; `run` says what it was."""
        self.runs[kind] += 1
        if problems:
            text = "; ".join(problem[:1600] for problem in problems[:4])
            self.failures.append(f"{self.name} seed={self.seed} {kind} [{run}]: {text}")
            if not self.quiet:
                print(f"FAILED {self.failures[-1]}", flush=True)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self) -> Harness:
        self.seconds = time.monotonic() - self._started
        return self

    @property
    def total(self) -> int:
        return sum(self.runs.values())


def table(harnesses: list[Harness]) -> str:
    """The results, one line a harness. With no failure in n runs, 3/n bounds the rate at 95 %."""
    lines = [
        f"{'goal':<6}{'runs':>6}{'failures':>10}{'rate below':>12}{'seconds':>9}{'seed':>8}  what"
    ]
    for harness in harnesses:
        bound = "-" if harness.failures or not harness.total else f"{3 / harness.total:.4f}"
        lines.append(
            f"{harness.name:<6}{harness.total:>6}{len(harness.failures):>10}{bound:>12}"
            f"{harness.seconds:>9.1f}{harness.seed:>8}  {harness.what}"
        )
        lines += [f"{'':<6}  {note}" for note in harness.notes]
    return "\n".join(lines)
