"""Ctrl-C at every line of a group commit: the others go on, and nobody is told too early."""

from __future__ import annotations

import linecache
import sys
import threading
from itertools import count
from types import FrameType
from typing import Any, Self, cast

import pytest

from belvedere.txn.batch_atomic import group_sync as module
from belvedere.txn.batch_atomic.group_sync import GroupSync
from belvedere.txn.batch_atomic.visibility import Visibility
from belvedere.txn.contracts import Snapshot
from tests.txn.deadline import until

WAIT_S = 20.0


class _Log:
    """What a group commit sees of a store: a state that is written, synced and published."""

    def __init__(self) -> None:
        self.written = self.published_snapshot = Snapshot(0, 0, cast("Any", None), 0)
        self.synced = self.anchored = 0
        self.group = GroupSync(cast("Visibility", self), self.sync, self.anchor)
        self._mutex = threading.Lock()

    def sync(self) -> None:
        self.synced = self.written.batch

    def anchor(self, position: int, _: int) -> None:
        self.anchored = position

    def publish_through(self, state: Snapshot) -> None:
        assert state.batch <= self.synced
        assert state.position <= self.anchored
        self.published_snapshot = max(self.published_snapshot, state)

    def end_waits(self) -> None:
        raise AssertionError("nothing failed")

    def commit(self) -> None:
        with self._mutex:
            number = self.written.batch + 1
            self.written = Snapshot(number, number, cast("Any", None), 0)
        self.group.wait_durable(number)
        assert self.published_snapshot.batch >= number


class _Interrupt:
    """Raises KeyboardInterrupt in this thread at a line of group.py, the `at`th that is reached."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.happened = False

    def __enter__(self) -> Self:
        sys.settrace(self._trace)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != module.__file__:
            return None
        # The line of a `with` comes twice, and nothing can interrupt its end, which frees the lock.
        line = linecache.getline(module.__file__, frame.f_lineno).strip()
        if event == "line" and not self.happened and not line.startswith("with "):
            self._left -= 1
            if not self._left:
                self.happened = True
                raise KeyboardInterrupt
        return self._trace


def _joined(threads: list[threading.Thread], where: int) -> None:
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive(), f"somebody waits for ever after an interrupt at step {where}"


def test_a_leader_may_be_interrupted_anywhere() -> None:
    for at in count(1):
        log = _Log()
        with _Interrupt(at) as interrupt:
            log.commit()
        other = threading.Thread(target=log.commit, daemon=True)
        other.start()
        _joined([other], at)
        if not interrupt.happened:
            break
    assert at > 20


@pytest.mark.parametrize("place", ["first", "second", "last"])
def test_one_of_a_group_may_be_interrupted_anywhere(place: str) -> None:
    """Three are expected. This thread is the one who watches, one who is served in between, or the
    one who leads."""
    steps = 1
    while _interrupted_in_a_group(_Log(), place, steps):
        steps += 1
    assert steps > 20


def _interrupted_in_a_group(log: _Log, place: str, at: int) -> bool:
    """Whether there was such a step."""
    log.group._expected, log.group._sync_s = 3, 0.005
    others = [threading.Thread(target=log.commit, daemon=True) for _ in range(2)]
    before = {"first": 0, "second": 1, "last": 2}[place]
    for number, thread in enumerate(others[:before], 1):
        thread.start()
        until(lambda n=number: len(log.group._waiters) == n or log.published_snapshot.batch)
    late = [threading.Timer(0.002, thread.start) for thread in others[before:]]
    for timer in late:
        timer.start()
    with _Interrupt(at) as interrupt:
        log.commit()
    for timer in late:
        timer.join()
    _joined(others, at)
    newcomer = threading.Thread(target=log.commit, daemon=True)
    newcomer.start()
    _joined([newcomer], at)
    return interrupt.happened
