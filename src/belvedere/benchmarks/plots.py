"""Curves of a benchmark, saved as PNG and SVG.

A Plot is data, so that it also goes into the JSON of a report; drawing needs matplotlib, which only
a developer's environment has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from belvedere.errors import Unsupported

FORMATS = ("png", "svg")


@dataclass(frozen=True, slots=True)
class Plot:
    """One diagram: points of every curve, by the curve's name."""

    title: str
    x: str
    y: str
    curves: dict[str, list[tuple[float, float]]]
    logarithmic: bool = False
    """The x axis counts in powers."""

    @property
    def file_name(self) -> str:
        return re.sub(r"[^a-z0-9]+", "_", self.title.lower()).strip("_")


def save(plots: Sequence[Plot], directory: Path) -> list[Path]:
    """Draw every plot into `directory`, once for each format; the files made."""
    try:
        import matplotlib as mpl  # heavy
        from matplotlib.figure import Figure as Drawing  # heavy
    except ImportError as error:
        raise Unsupported("plots without matplotlib", hint="pip install matplotlib") from error
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    with mpl.rc_context({"svg.hashsalt": "belvedere"}):
        for plot in plots:
            drawing = Drawing(figsize=(6.4, 4.0), layout="constrained")
            axes = drawing.add_subplot()
            for name, points in plot.curves.items():
                axes.plot(*zip(*sorted(points), strict=True), marker="o", label=name)
            if plot.logarithmic:
                axes.set_xscale("log")
            axes.set(title=plot.title, xlabel=plot.x, ylabel=plot.y)
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
            axes.legend(fontsize="small")
            for format_ in FORMATS:
                files.append(directory / f"{plot.file_name}.{format_}")
                drawing.savefig(files[-1], dpi=120)
    return files
