"""Plots of a benchmark, saved as PNG and SVG.

A Plot is data, so that the JSON of a report has it too; drawing needs matplotlib, which only a
development environment has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belvedere.errors import Unsupported

FORMATS = ("png", "svg")
MARKERS = "osD^vPX"
MARKED_MAX = 40
HEIGHT = 4.2
BAR_HEIGHT = 0.15
TICKS_MAX = 8
TICKS_MIN = 4
INSIDE_MAX = 3
"""With more curves than that, the legend is outside the diagram, where it hides nothing."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One diagram: points of every curve, by the curve's name."""

    title: str
    x: str
    y: str
    curves: dict[str, list[tuple[float, float]]]
    logarithmic: bool = False
    """The x axis is logarithmic."""
    logarithmic_y: bool = False
    bars: tuple[str, ...] = ()
    """Names of the x values 0, 1, 2 .. when they are categories: bars instead of lines."""

    @property
    def file_name(self) -> str:
        """Made from the title, without the part in parentheses."""
        return re.sub(r"[^a-z0-9]+", "_", self.title.partition(" (")[0].lower()).strip("_")


def bar_points(found: Sequence[float]) -> list[tuple[float, float]]:
    """Points of a bar plot, in the order of the values."""
    return [(float(place), value) for place, value in enumerate(found)]


def logarithmic_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, also their multiples by two and five if there
    would be too few."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5)):
        ticks = [step * 10.0**exponent for exponent in exponents for step in steps]
        within = [tick for tick in ticks if low <= tick <= high]
        if len(within) >= TICKS_MIN:
            break
    return within


def save_plots(plots: Sequence[Plot], directory: Path) -> list[Path]:
    """Draw every plot into `directory`, once for each format; return the files."""
    try:
        import matplotlib as mpl  # heavy
        from matplotlib.figure import Figure as Drawing  # heavy
    except ImportError as error:
        raise Unsupported("plots without matplotlib", hint="pip install matplotlib") from error
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    with mpl.rc_context({"svg.hashsalt": "belvedere"}):
        for plot in plots:
            drawing = Drawing(figsize=(7.2, _choose_height(plot)), layout="constrained")
            axes = drawing.add_subplot()
            (_draw_bars if plot.bars else _draw_lines)(axes, plot)
            axes.set_title(plot.title)
            if len(plot.curves) > 1:
                _place_legend(axes, beside=len(plot.curves) > INSIDE_MAX)
            for format_ in FORMATS:
                files.append(directory / f"{plot.file_name}.{format_}")
                drawing.savefig(files[-1], dpi=120)
    return files


def _choose_height(plot: Plot) -> float:
    """High enough that the labels of bars do not lie over each other."""
    bars = len(plot.bars) * len(plot.curves)
    return max(HEIGHT, BAR_HEIGHT * bars)


def _place_legend(axes: Any, *, beside: bool) -> None:
    if beside:
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        axes.legend(fontsize="small")


def _draw_lines(axes: Any, plot: Plot) -> None:
    for number, (name, points) in enumerate(plot.curves.items()):
        marker = MARKERS[number % len(MARKERS)] if len(points) <= MARKED_MAX else ""
        axes.plot(*zip(*sorted(points), strict=True), marker=marker, label=name)
    axes.set(xlabel=plot.x, ylabel=plot.y)
    places = sorted({x for points in plot.curves.values() for x, _ in points})
    if plot.logarithmic:
        axes.set_xscale("log")
    if plot.logarithmic or (
        len(places) <= TICKS_MAX and all(float(x).is_integer() for x in places)
    ):
        axes.set_xticks(places, [f"{place:,.0f}" for place in places], minor=False)
    if plot.logarithmic_y:
        axes.set_yscale("log")
        axes.set_yticks(logarithmic_ticks(*axes.get_ylim()))
    else:
        axes.set_ylim(bottom=0)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.grid(alpha=0.3)


def _draw_bars(axes: Any, plot: Plot) -> None:
    """Horizontal bars, so that names are horizontal too; the first one on top."""
    thick = 0.8 / len(plot.curves)
    for number, (name, points) in enumerate(plot.curves.items()):
        shift = (number - (len(plot.curves) - 1) / 2) * thick
        places = [place + shift for place, _ in points]
        drawn = axes.barh(places, [value for _, value in points], thick * 0.9, label=name)
        axes.bar_label(drawn, fmt="{:,.0f}", padding=3, fontsize="x-small")
    axes.set_yticks(range(len(plot.bars)), plot.bars)
    axes.invert_yaxis()
    axes.set(xlabel=plot.y, ylabel=plot.x)
    axes.margins(x=0.12)
    if plot.logarithmic_y:
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.grid(alpha=0.3, axis="x")
