"""Deferred maintenance of views by more executors of Spark than a machine has cores: a formula.

    seconds of a batch = fixed + changes * work * (serial + (1 - serial) / executors)

`fixed` is what a batch of one change takes, `work` the time of one change on one core, `serial` the
share of it that more cores do not shorten. All three follow from what `belvedere bench pipeline`
measures on 2 cores (docs/benchmarks.md): a batch of one change, the changes a second of batches of
100,000, and how much faster 2 cores are than one. Beyond 2 cores nothing is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

CORES_MEASURED = 2


@dataclass(frozen=True, slots=True)
class PipelineFigures:
    """Seconds of a batch of one change; changes a second of a batch of `changes`; how much faster 2
    cores are than one."""

    fixed: float
    rate: float
    changes: int = 100_000
    speedup: float = 1.71

    @property
    def serial(self) -> float:
        """By Amdahl's law."""
        return (CORES_MEASURED / self.speedup - 1) / (CORES_MEASURED - 1)

    @property
    def work(self) -> float:
        """Seconds of one change on one core."""
        on_measured = (self.changes / self.rate - self.fixed) / self.changes
        return on_measured / (self.serial + (1 - self.serial) / CORES_MEASURED)


SUMS = PipelineFigures(fixed=0.149, rate=327_000)
JOINS = PipelineFigures(fixed=0.203, rate=89_000)


def changes_per_second(figures: PipelineFigures, changes: int, executors: int) -> float:
    """Changes a second of batches of this size."""
    share = figures.serial + (1 - figures.serial) / executors
    return changes / (figures.fixed + changes * figures.work * share)
