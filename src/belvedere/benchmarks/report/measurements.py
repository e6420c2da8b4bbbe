"""Benchmark reports: figures as a table and as JSON, with the hardware, the seed and the commit.

A figure has the baseline that was measured in the same run; `goal` bounds the ratio (or, without a
baseline, the value). Rounds of both sides alternate, and each side is judged by its better quarter,
so that other load on the machine affects both alike.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from belvedere.benchmarks.report import plots
from belvedere.benchmarks.report.plots import Plot

NAME_WIDTH = 28
"""Minimum width of the name column, also on a narrow terminal."""

WIDE = 120
"""Terminals at least this wide show the baseline and the published figures."""


@dataclass(frozen=True, slots=True)
class Figure:
    """`goal` reads like '<= 2 ratio' or '>= 200000 value'."""

    name: str
    value: float
    unit: str
    goal: str = ""
    baseline: float | None = None
    published: str = ""
    """The result of the same experiment in its paper, on other hardware."""

    @property
    def ratio(self) -> float | None:
        return None if not self.baseline else self.value / self.baseline

    @property
    def meets_goal(self) -> bool | None:
        """Whether the goal was reached; None when there is none."""
        if not self.goal:
            return None
        comparison, bound, what = self.goal.split()
        found = self.ratio if what == "ratio" else self.value
        assert found is not None
        return found <= float(bound) if comparison == "<=" else found >= float(bound)


@dataclass(slots=True)
class BenchmarkReport:
    workload: str
    seed: int
    figures: list[Figure] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Measurements that were not possible, each with the reason."""

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)

    def print(self, console: Console | None = None) -> None:
        console = console or Console()
        wide = console.width >= WIDE
        title = f"{self.workload} (seed {self.seed}, {describe_hardware()}, {describe_commit()})"
        table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        papers = wide and any(figure.published for figure in self.figures)
        table.add_column("measured", min_width=NAME_WIDTH)
        for heading in ("value", "unit", *(("baseline",) if wide else ()), "ratio", "goal", ""):
            left = heading in ("unit", "goal", "")
            table.add_column(heading, justify="left" if left else "right", no_wrap=True)
        if papers:
            table.add_column("published")
        for figure in self.figures:
            published = [figure.published] if papers else []
            table.add_row(*_table_cells(figure, wide), *published)
        console.print(table)
        for reason in self.absent:
            console.print(f"not there: {reason}", markup=False)

    def write_json(self, path: Path) -> None:
        rows = [{**asdict(f), "ratio": f.ratio, "met": f.meets_goal} for f in self.figures]
        about = {"workload": self.workload, "seed": self.seed}
        about |= {"hardware": describe_hardware(), "commit": describe_commit(), "time": time.time()}
        found = {"figures": rows, "plots": [asdict(p) for p in self.plots], "absent": self.absent}
        path.write_text(json.dumps({**about, **found}, indent=2) + "\n")

    def save_plots(self, directory: Path) -> list[Path]:
        return plots.save_plots(self.plots, directory)


def alternate_rounds(rounds: int, *sides: Callable[[], float]) -> list[float]:
    """Run the sides in turn, `rounds` times; return the better quarter of each side's results."""
    taken: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, times in zip(sides, taken, strict=True):
            times.append(side())
    return [better_quarter(times) for times in taken]


def better_quarter(times: Sequence[float]) -> float:
    """The first quartile of the times."""
    return sorted(times)[len(times) // 4]


def microseconds_each(count: int, work: Callable[[], object]) -> float:
    """Run `work`, which does `count` operations; return the microseconds of one."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) / count * 1e6


def cpu_microseconds_each(count: int, work: Callable[[], object]) -> float:
    """The same in CPU of this process, all its threads together."""
    start = time.process_time()
    work()
    return (time.process_time() - start) / count * 1e6


def describe_hardware() -> str:
    return f"{os.cpu_count()} cpus, {platform.machine()}, python {platform.python_version()}"


def describe_commit() -> str:
    """The commit of the checkout this runs from; 'installed package' outside of one."""
    here = Path(__file__).resolve().parent
    command = ["git", "-C", str(here), "rev-parse", "--short", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "installed package"
    return "commit " + found.stdout.strip()


def _table_cells(figure: Figure, wide: bool) -> list[str]:
    """A row of the table. In a narrow table the published figure is below the name."""
    name = figure.name
    if figure.published and not wide:
        name += f"\npublished: {figure.published}"
    baseline = [_format_number(figure.baseline)] if wide else []
    goal = figure.goal.removesuffix(" ratio").removesuffix(" value")
    met = {True: "met", False: "missed", None: ""}[figure.meets_goal]
    return [
        name,
        _format_number(figure.value),
        figure.unit,
        *baseline,
        _format_number(figure.ratio),
        goal,
        met,
    ]


def _format_number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
