"""Costs and benefits of views, durability off, in one run.

At scale 1: (a) a write with 0 to 16 immediate views, and with deferred ones; (b) changes a second
that deferred maintenance applies; (c) the time from a commit until it is visible; (d) backfill;
(e) the matrix of five views, three sizes and three shares of changed rows, against full recompute
here and REFRESH in PostgreSQL; (f) 1 to 300 deferred views of one table.

`--scale 0.01` does the same with a hundredth of the rows and changes: shape, not speed. `--part a`
runs only that part.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.progress import Progress

from belvedere.benchmarks.report.measurements import BenchmarkReport
from belvedere.benchmarks.views import deferred_views, matrix, writes

Step = Callable[[Path, float, int, BenchmarkReport], None]

STEPS: dict[str, Step] = {
    "a": writes.measure_immediate,
    "a, deferred": writes.measure_deferred,
    "b": deferred_views.measure_throughput,
    "c": deferred_views.measure_freshness,
    "d": deferred_views.measure_backfill,
    "e": matrix.measure_matrix,
    "f": deferred_views.measure_many_views,
}


def run(scale: float, seed: int, parts: Sequence[str] = ()) -> BenchmarkReport:
    """Run all parts, or those with these letters."""
    wanted = {name: step for name, step in STEPS.items() if not parts or name[0] in parts}
    return run_steps("views", wanted, scale, seed)


def run_steps(workload: str, steps: Mapping[str, Step], scale: float, seed: int) -> BenchmarkReport:
    """Run the steps one after the other, each in a new directory."""
    report = BenchmarkReport(f"{workload}, scale {scale:g}", seed)
    with Progress() as progress:
        task = progress.add_task(workload, total=len(steps))
        for name, step in steps.items():
            progress.update(task, description=f"{workload} ({name})")
            with tempfile.TemporaryDirectory(prefix="belvedere-bench-") as directory:
                step(Path(directory), scale, seed, report)
            progress.advance(task)
    return report
