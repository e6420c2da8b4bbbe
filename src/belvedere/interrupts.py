"""Signals that arrive while the engine works: kept until it has come to an end, then delivered.

Python runs a signal's handler between any two instructions of the main thread, and what the handler
raises (KeyboardInterrupt, a soft time limit) goes off right there: between taking a lock and
remembering it, or in the middle of a commit. No code can be right after that. So the handlers that
are installed when a session is made are wrapped. A wrapped handler runs at once; what it raises

- goes off at once when no code of the engine is running in the main thread;
- otherwise is kept in `pending`, and the running statement is canceled, which the engine notices at
  places of its choice (`check_statement` where it waits). The door raises it when the statement has
  ended: `deliver_pending`.

Whether the engine is running is seen from the frames, when a signal comes: statements pay nothing.
A thread sends the signal again for a while, so that none is lost where no door looks for it.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from _signal import getsignal as _getsignal  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import clear_frames
from types import CodeType, FrameType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

RESEND_S = 0.02
RESEND_S_MAX = 0.2
_PACKAGE = os.path.dirname(__file__) + os.sep
_DOORS = ("interfaces/shell", "interfaces/commands", "interfaces/cli", "benchmarks", "pipeline")
"""Programs around the engine: an interrupt may go off in them."""
_CONVERSATIONS = ("remote/", "interfaces/remote")
"""They wait for the owner of a store, and handle an interrupt themselves."""

pending: BaseException | None = None
"""What a handler has raised while the engine was running; for the main thread only."""
_again = False  # the next signal is one that was sent again
_previous: dict[int, Callable[[int, FrameType | None], Any]] = {}
_canceled: set[CodeType] = set()


def canceled_by_interrupt(method: F) -> F:
    """Let an interrupt call `cancel` of the object whose `method` is running."""
    _canceled.add(method.__code__)
    return method


def wrap_handlers() -> None:
    """Wrap the handlers of this process that are functions of Python; in the main thread only.
    Others may install theirs at any time, as notebooks do for every cell."""
    if _getsignal(signal.SIGINT) is _handle_signal or threading.get_ident() != _main_thread():
        return
    for number in signal.valid_signals():
        handler = _getsignal(number)
        if callable(handler) and handler is not _handle_signal:
            _previous[number] = handler
            signal.signal(number, _handle_signal)


def deliver_pending() -> None:
    """In the main thread: raise what was kept."""
    global pending
    if pending is not None and threading.get_ident() == _main_thread():
        error, pending = pending, None
        try:
            raise error from None
        finally:
            del (
                error
            )  # else its traceback and this frame would keep one another, and what they hold


class RunningStatement(threading.local):
    """The statement that a thread runs: `check` raises when it has to stop."""

    check: Callable[[], None] | None = None
    is_undoing: bool = False


running = RunningStatement()
POLL_S = 0.1
"""How often a waiting thread checks whether the statement has to stop."""


def begin_statement(check: Callable[[], None]) -> None:
    """Let `check` tell whether the statement that this thread runs from now on has to stop."""
    wrap_handlers()
    running.check = check


def check_statement() -> None:
    """Raise when the statement that this thread runs has to stop."""
    if running.is_undoing:
        return
    if pending is not None:
        deliver_pending()
    check = running.check
    if check is not None:
        check()


@contextmanager
def undo_statement() -> Iterator[None]:
    """What a statement that was stopped has to undo is not stopped again."""
    running.is_undoing = True
    try:
        yield
    finally:
        running.is_undoing = False


def _handle_signal(number: int, frame: FrameType | None) -> None:
    global _again, pending  # noqa: PLW0603
    resent, _again = _again, False
    working = is_engine_running(frame)
    if resent:
        if working:
            _cancel_statement(frame)
        elif pending is not None:
            deliver_pending()
        return
    try:
        _previous[number](number, frame)
    except BaseException as error:
        if not working:
            pending = None
            raise
        first, pending = pending is None, error
        _cancel_statement(frame)
        frame = None  # the error must not keep what the engine holds, such as an open store
        clear_frames(error.__traceback__)
        if first:
            _thread.start_new_thread(_send_again, (number,))


def is_engine_running(frame: FrameType | None) -> bool:
    """Whether an exception in this frame would go off in the middle of the engine's work."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_PACKAGE) and path != __file__:
            name = path.removeprefix(_PACKAGE)
            if name.startswith(_CONVERSATIONS):
                return False
            if not name.startswith(_DOORS):
                return True
        frame = frame.f_back
    return False


def _cancel_statement(frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code in _canceled:
            frame.f_locals["self"].cancel()
            return
        frame = frame.f_back


def _send_again(number: int) -> None:
    """Send the signal until what is pending was raised."""
    global _again  # noqa: PLW0603
    wait_s = RESEND_S
    while True:
        time.sleep(wait_s)
        if pending is None:
            return
        _again = True
        signal.pthread_kill(_main_thread(), number)
        wait_s = min(2 * wait_s, RESEND_S_MAX)


def _main_thread() -> int:
    return threading.main_thread().ident or 0
