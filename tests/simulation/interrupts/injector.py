"""An interrupt at a line of the product: the n-th that a call reaches in this thread."""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import belvedere
from belvedere import interrupts

PACKAGE = str(Path(belvedere.__path__[0])) + "/"
UNTRACED = PACKAGE + "interrupts.py"
SETTLED_S = 30.0


class LineInjector:
    """Calls `action` at the `at`th line; `lines` is how many there were, `place` where it was."""

    def __init__(self, at: int, action: Callable[[], None]) -> None:
        self._at = at
        self._action = action
        self.lines = 0
        self.place = ""
        self.seen: Counter[str] = Counter()

    def run(self, call: Callable[[], object]) -> None:
        """Run the call; what the action makes it raise is the caller's."""
        sys.settrace(self._enter_frame)
        try:
            call()
        finally:
            sys.settrace(None)

    def _enter_frame(self, frame: FrameType, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        return self._count_line if path.startswith(PACKAGE) and path != UNTRACED else None

    def _count_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.lines += 1
            if self.lines == self._at:
                self.place = f"{frame.f_code.co_filename.removeprefix(PACKAGE)}:{frame.f_lineno}"
                self._action()
        return self._count_line


def interrupt_by_signal() -> None:
    """As Ctrl-C does: the handler runs here."""
    signal.raise_signal(signal.SIGINT)


def await_delivery() -> None:
    """Wait until an interrupt that came too late for its statement has gone off."""
    deadline = time.monotonic() + SETTLED_S
    try:
        while interrupts.pending is not None:
            assert time.monotonic() < deadline, "an interrupt is never delivered"
            time.sleep(0.0005)
    except KeyboardInterrupt:
        return
