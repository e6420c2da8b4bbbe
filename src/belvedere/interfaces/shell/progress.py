"""A progress bar for long statements: one line of the terminal, overwritten at each step.

filling totals [##########..........]  50%  120,000 rows
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TextIO

WIDTH = 20
EVERY_S = 0.1


class ProgressBar:
    """A progress bar that shows nothing unless the output is a terminal."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._shown_at: float | None = None
        self._width = 0
        self._mutex = threading.Lock()

    def show_progress(self, what: str, done: int, expected: float) -> None:
        now = self._clock()
        recent = self._shown_at is not None and now - self._shown_at < EVERY_S
        if not self._out.isatty() or (recent and done < expected):
            return
        self._shown_at = now
        share = min(1.0, done / expected) if expected else 1.0
        full = int(share * WIDTH)
        bar = "#" * full + "." * (WIDTH - full)
        text = f"{what} [{bar}] {share:4.0%}  {done:,} rows"
        with self._mutex:
            self._write_line(text)

    def print_unless_shown(self, text: str) -> None:
        """Print a line, from another thread, unless the bar already tells that work goes on."""
        with self._mutex:
            if self._shown_at is None:
                print(text, file=self._out)

    def clear_line(self) -> None:
        """Erase the line."""
        with self._mutex:
            if self._width:
                self._write_line("")
                self._out.write("\r")
                self._out.flush()
                self._width = 0

    def _write_line(self, text: str) -> None:
        self._out.write("\r" + text.ljust(self._width))
        self._out.flush()
        self._width = max(self._width, len(text))
