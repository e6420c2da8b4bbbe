"""Threads that need positions look together, and nobody gets what was read before it asked."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from belvedere.errors import Unavailable
from belvedere.txn.row_atomic.cells.layout import Positions
from belvedere.txn.row_atomic.log.shared_reach import Reached, SharedReach

THREADS = 8


class SlowLook:
    """The first look ends when it is let go; each finds what it was asked for."""

    def __init__(self) -> None:
        self.needs: list[int] = []
        self.fails = False
        self.looking, self.may_end = threading.Event(), threading.Event()

    def __call__(self, need: int) -> Reached:
        self.needs.append(need)
        number = len(self.needs)
        self.looking.set()
        assert self.may_end.wait(60)
        if self.fails and number == 1:
            raise Unavailable("the store does not answer")
        return Positions(need, need), float(number)


def wait_for_threads(shared: SharedReach, count: int) -> None:
    """Until so many wait for the look under way to end."""
    while len(shared._changed._waiters) < count:  # type: ignore[attr-defined]
        threading.Event().wait(0.001)


@pytest.mark.parametrize("fails", [False, True], ids=["first look ends", "first look fails"])
def test_threads_that_come_during_a_look_share_the_next_one(fails: bool) -> None:
    look = SlowLook()
    look.fails = fails
    shared = SharedReach(look)
    with ThreadPoolExecutor(THREADS) as pool:
        first = pool.submit(shared.reach_position, 3)
        assert look.looking.wait(60)
        others = [pool.submit(shared.reach_position, need) for need in range(10, 10 + THREADS - 1)]
        wait_for_threads(shared, THREADS - 1)
        look.may_end.set()
        if fails:
            with pytest.raises(Unavailable):
                first.result(60)
        else:
            assert first.result(60) == (Positions(3, 3), 1.0)
        found = {other.result(60) for other in others}
    greatest = 10 + THREADS - 2
    assert found == {(Positions(greatest, greatest), 2.0)}, "begun after they asked, for all"
    assert look.needs == [3, greatest]
